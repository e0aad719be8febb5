// What is on this device only: changes that wait to be sent, and those that the server refuses.
import type { Document } from "@strongroom/client";
import { ITEMS } from "@strongroom/client/items";
import type { RefusedChange } from "@strongroom/client/replica";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { EmptyState } from "../components/emptyState.js";
import { Icon } from "../components/icon.js";
import { Menu } from "../components/menu.js";
import { entryOf, type Entry } from "../items/entries.js";
import { tellFault } from "../items/faults.js";
import { ShownText } from "../items/fieldRow.js";
import { typeIcon } from "../items/types.js";
import { oneLine, sizeText } from "../items/shownText.js";
import { tell } from "../state/notices.js";
import { hrefOf } from "../state/route.js";
import { syncNow, useOpen, vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";

const PAGE = 100;

/** The view "waiting". */
export function WaitingView(_: { parts: readonly string[] }) {
  const { replica } = useOpen();
  const { pending } = useStore(syncStatus); // why nothing is sent, the banner says
  const { refused, conflicts } = useStore(replica.undecided);
  const [queued, setQueued] = useState<readonly Document[]>([]);
  const state = useStore(replica.state);
  useEffect(() => {
    let isOver = false;
    replica.queued().then(
      (found) => !isOver && setQueued(found),
      () => undefined,
    );
    return () => {
      isOver = true;
    };
  }, [state, refused]);
  const isHeld = ({ vault, uid }: Document): boolean =>
    [...refused, ...conflicts].some((one) => one.vault === vault && one.uid === uid);
  const waiting = queued.filter((document) => !isHeld(document));
  return (
    <div class="page">
      <header class="pageHead">
        <div>
          <h1>{moreTexts.time.waiting}</h1>
          {pending > 0 && <p class="muted">{moreTexts.time.waitingNote(pending)}</p>}
        </div>
        {pending > 0 && (
          <Button icon="sync" onClick={syncNow}>
            {texts.sync.now}
          </Button>
        )}
      </header>
      {!pending && !refused.length && <EmptyState icon="check" title={moreTexts.time.allSent} />}
      {refused.length > 0 && (
        <section class="stack">
          <h2>{moreTexts.time.refused}</h2>
          <ul class="lines">
            {refused.map((change) => (
              <Refused key={`${change.vault} ${change.uid}`} change={change} />
            ))}
          </ul>
        </section>
      )}
      {waiting.length > 0 && (
        <section class="stack">
          <h2>{moreTexts.time.willSend(waiting.length)}</h2>
          <ul class="lines">
            {waiting.slice(0, PAGE).map((document) => (
              <Waiting key={document.uid} entry={entryOf(document)} />
            ))}
          </ul>
        </section>
      )}
    </div>
  );
}

function Waiting({ entry }: { entry: Entry }) {
  const { document } = entry;
  return (
    <li class="line">
      <span class="rowMark">
        <Icon name={document.deleted ? "trash" : typeIcon(entry.type)} />
      </span>
      <span class="rowText">
        <span class="rowTitle">
          {document.deleted ? (
            <ShownText text={entry.title || texts.items.untitled} />
          ) : (
            <a href={hrefOf("items", document.vault, document.uid)}>
              <ShownText text={entry.title || texts.items.untitled} />
            </a>
          )}
        </span>
        <span class="rowMore">
          {document.deleted ? moreTexts.time.isDeletion : <ShownText text={entry.subtitle} />}
        </span>
      </span>
    </li>
  );
}

/** A change that the server refuses, why, and what can be done. */
function Refused({ change }: { change: RefusedChange }) {
  const known = useStore(vaults);
  const [isAsked, setAsked] = useState(false);
  const { document, reason, isTemporary, vault } = change;
  const entry = document && entryOf(document);
  const title = entry?.title || texts.items.untitled;
  const attempt = async (task: () => Promise<unknown>, sentence: string): Promise<void> => {
    try {
      await task();
      tell(sentence);
      syncNow();
    } catch (fault) {
      tellFault(fault);
    }
  };
  const targets = document && !document.deleted ? known.filter(({ uid }) => uid !== vault) : [];
  return (
    <li class="line refused">
      <span class="rowMark">
        <Icon name="warning" />
      </span>
      <span class="rowText">
        <span class="rowTitle">
          <ShownText text={document ? title : moreTexts.time.unreadable} />
        </span>
        <span class="refusedWhy">{reason.sentence}</span>
        {reason.size !== undefined && reason.limit !== undefined && (
          <span class="refusedWhy">{moreTexts.time.sizes(sizeText(reason.size), sizeText(reason.limit))}</span>
        )}
        {isTemporary && (
          <span class="refusedWhy">
            {moreTexts.time.refusedTemporary}{" "}
            {reason.kind === "quota_exceeded" && <a href={hrefOf("settings", "usage")}>{moreTexts.time.usageLink}</a>}
          </span>
        )}
      </span>
      <Button onClick={() => void attempt(() => change.retry(), texts.sync.syncing)}>{moreTexts.time.retry}</Button>
      <Menu
        label={texts.common.more}
        items={[
          ...targets.map((target) => ({
            label: `${moreTexts.time.moveChange}: ${oneLine(target.name, 40)}`,
            icon: "folder" as const,
            run: () =>
              void attempt(
                () => change.moveTo(target.collection(change.collection || ITEMS)),
                moreTexts.items.movedMany(1),
              ),
          })),
          { label: moreTexts.time.discardChange, icon: "trash", isDanger: true, run: () => setAsked(true) },
        ]}
      />
      {isAsked && (
        <Confirm
          title={moreTexts.time.discardTitle}
          action={moreTexts.time.discardChange}
          isDanger
          onClose={() => setAsked(false)}
          onConfirm={() => {
            setAsked(false);
            void attempt(() => change.discard(), moreTexts.time.discarded);
          }}
        >
          <p>{moreTexts.time.discardWhat}</p>
        </Confirm>
      )}
    </li>
  );
}
