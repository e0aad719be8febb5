// The trash: deleted documents that can be restored, or deleted for good. It is the server's, so it needs the server.
import type { Document } from "@strongroom/client";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { EmptyState } from "../components/emptyState.js";
import { Icon } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { Waiting } from "../components/progress.js";
import { entryOf, type Entry } from "../items/entries.js";
import { changeSentence, tellFault } from "../items/faults.js";
import { ShownText } from "../items/fieldRow.js";
import { typeIcon } from "../items/types.js";
import { oneLine, timeText } from "../items/shownText.js";
import { vaultByUid } from "../items/vaultByUid.js";
import { sessionGuard } from "../items/sessionGuard.js";
import { tell } from "../state/notices.js";
import { useOpen, vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { syncStatus } from "../state/sync.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";

const PAGE = 100;

/** The view "trash". */
export function TrashView(_: { parts: readonly string[] }) {
  const { client } = useOpen();
  const known = useStore(vaults);
  const { pending, syncedAt } = useStore(syncStatus);
  const [found, setFound] = useState<readonly Document[]>();
  const [shown, setShown] = useState(PAGE);
  const [fault, setFault] = useState<string>();
  const [asked, setAsked] = useState<Document | "all">();
  const [isBusy, setBusy] = useState(false);
  const nameOf = (uid: string): string => known.find((vault) => vault.uid === uid)?.name ?? "";
  const read = async (): Promise<void> => {
    try {
      const all: Document[] = [];
      for (const vault of await client.vaults()) for await (const one of vault.trash) all.push(one);
      setFound(all.filter(({ purged }) => !purged).sort((one, other) => other.updatedAt - one.updatedAt));
      setFault(undefined);
    } catch (met) {
      setFault(changeSentence(met) ?? texts.common.notLoaded);
    }
  };
  useEffect(() => void read(), [syncedAt]);
  const collection = async ({ vault, collection: name }: Document) =>
    (await vaultByUid(client, { uid: vault, name: nameOf(vault) })).collection(name);
  const attempt = async (task: () => Promise<void>): Promise<void> => {
    setBusy(true);
    try {
      await task();
    } catch (met) {
      tellFault(met);
    }
    setBusy(false);
    setAsked(undefined);
    await read();
  };
  const revive = (document: Document): Promise<void> =>
    attempt(async () => {
      await (await collection(document)).revive(document);
      tell(moreTexts.time.revived);
    });
  const purge = (document: Document): Promise<void> =>
    attempt(async () => {
      await (await collection(document)).purge(document);
      tell(moreTexts.time.purged);
    });
  const empty = (): Promise<void> =>
    attempt(async () => {
      const isOpen = sessionGuard();
      let count = 0;
      let fault: unknown;
      const opened = new Map<string, Awaited<ReturnType<typeof collection>>>();
      for (const document of found ?? []) {
        // those that are listed: what was deleted since stays
        try {
          const place = `${document.vault} ${document.collection}`;
          const inside = opened.get(place) ?? (await collection(document));
          opened.set(place, inside);
          await inside.purge(document);
          count += 1;
        } catch (met) {
          if (!isOpen()) return;
          fault = met; // such as of one that was restored meanwhile
        }
      }
      if (!isOpen()) return;
      if (count) tell(moreTexts.time.emptied(count));
      if (fault) tellFault(fault);
    });
  return (
    <div class="page">
      <header class="pageHead">
        <div>
          <h1>{moreTexts.time.trash}</h1>
          <p class="muted">{moreTexts.time.trashNote}</p>
          {pending > 0 && <p class="muted small">{moreTexts.time.unsentDeletions}</p>}
        </div>
        {found && found.length > 0 && (
          <Button icon="trash" onClick={() => setAsked("all")}>
            {moreTexts.time.empty}
          </Button>
        )}
      </header>
      {fault && (
        <p class="notice warning" role="alert">
          <Icon name="warning" />
          {fault}
        </p>
      )}
      {!found && !fault && <Waiting label={texts.common.loading} />}
      {found && !found.length && <EmptyState icon="trash" title={moreTexts.time.trashEmpty} />}
      {found && found.length > 0 && (
        <ul class="lines" aria-label={moreTexts.time.trash}>
          {found.slice(0, shown).map((document) => (
            <Line
              key={document.uid}
              entry={entryOf(document)}
              vault={nameOf(document.vault)}
              isBusy={isBusy}
              onRevive={() => void revive(document)}
              onPurge={() => setAsked(document)}
            />
          ))}
        </ul>
      )}
      {found && found.length > shown && (
        <Button onClick={() => setShown(shown + PAGE)}>{moreTexts.items.showMore(found.length - shown)}</Button>
      )}
      {asked === "all" && (
        <Confirm
          title={moreTexts.time.emptyTitle}
          action={moreTexts.time.empty}
          isDanger
          isBusy={isBusy}
          onConfirm={() => void empty()}
          onClose={() => setAsked(undefined)}
        >
          <p>{moreTexts.time.emptyWhat(found?.length ?? 0)}</p>
        </Confirm>
      )}
      {asked && asked !== "all" && (
        <Confirm
          title={moreTexts.time.purgeTitle}
          action={moreTexts.time.purge}
          isDanger
          isBusy={isBusy}
          onConfirm={() => void purge(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>{moreTexts.time.purgeWhat(entryOf(asked).title || texts.items.untitled)}</p>
        </Confirm>
      )}
    </div>
  );
}

interface LineProps {
  entry: Entry;
  vault: string;
  isBusy: boolean;
  onRevive: () => void;
  onPurge: () => void;
}

function Line({ entry, vault, isBusy, onRevive, onPurge }: LineProps) {
  const title = entry.title || texts.items.untitled;
  return (
    <li class="line">
      <span class="rowMark">
        <Icon name={typeIcon(entry.type)} />
      </span>
      <span class="rowText">
        <span class="rowTitle">
          <ShownText text={title} />
        </span>
        <span class="rowMore">
          <ShownText text={oneLine(vault, 60)} /> · {moreTexts.time.deletedAt(timeText(entry.document.updatedAt))}
        </span>
      </span>
      <Button icon="undo" isDisabled={isBusy} onClick={onRevive}>
        {moreTexts.time.revive}
      </Button>
      <IconButton
        icon="trash"
        label={`${moreTexts.time.purge}: ${oneLine(title, 60)}`}
        isDisabled={isBusy}
        onClick={onPurge}
      />
    </li>
  );
}
