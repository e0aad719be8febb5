// The history of a document: its versions, what changed, and the way back.
import type { Document, Version } from "@strongroom/client";
import { differences, fromStored } from "@strongroom/client/items";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { EmptyState } from "../components/emptyState.js";
import { Icon } from "../components/icon.js";
import { Waiting } from "../components/progress.js";
import { replaceValue } from "../items/changes.js";
import { Differences } from "../items/differences.js";
import type { Entry } from "../items/entries.js";
import { changeSentence, tellFault } from "../items/faults.js";
import { ShownText } from "../items/fieldRow.js";
import { Json } from "../items/jsonDocument.js";
import { timeText } from "../items/shownText.js";
import { hrefOf, replaceRoute, routeGuard } from "../state/route.js";
import { useOpen, vaults } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";

/** The versions of a document that the server keeps. */
export function HistoryView({ entry }: { entry: Entry }) {
  const { client } = useOpen();
  const { document } = entry;
  const [versions, setVersions] = useState<readonly Version[]>();
  const [chosen, setChosen] = useState<Document>();
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState<string>();
  const there = async () => {
    const vault = vaults.getSnapshot().find(({ uid }) => uid === document.vault);
    return (await client.vault(vault?.name ?? "")).collection(document.collection);
  };
  const attempt = async (task: () => Promise<void>): Promise<void> => {
    try {
      setFault(undefined);
      await task();
    } catch (met) {
      setFault(changeSentence(met) ?? texts.common.notLoaded);
    }
  };
  const choose = (version: number): Promise<void> =>
    attempt(async () => setChosen(await (await there()).getVersion(document.uid, version)));
  useEffect(() => {
    void attempt(async () => {
      const found = await (await there()).history(document.uid);
      setVersions(found);
      const [newest] = found.filter(({ deleted }) => !deleted);
      if (newest) await choose(newest.version);
    });
  }, [document.proof]);
  const restore = async (): Promise<void> => {
    if (!chosen || isBusy) return;
    setBusy(true);
    const isHere = routeGuard();
    try {
      await replaceValue(document, chosen.raw, moreTexts.time.restored);
      if (isHere()) replaceRoute("items", document.vault, document.uid); // otherwise the person has left meanwhile
    } catch (met) {
      tellFault(met);
      setBusy(false);
    }
  };
  return (
    <article class="itemView">
      <header class="itemHead">
        <a class="backLink always" href={hrefOf("items", document.vault, document.uid)}>
          <Icon name="back" />
          {texts.common.back}
        </a>
        <h1>
          {moreTexts.time.history}: <ShownText text={entry.title || texts.items.untitled} />
        </h1>
        <p class="muted small">{moreTexts.time.historyNote}</p>
      </header>
      {fault && (
        <p class="notice warning" role="alert">
          <Icon name="warning" />
          {fault}
        </p>
      )}
      {!versions && !fault && <Waiting label={texts.common.loading} />}
      {versions && !versions.length && <EmptyState icon="history" title={moreTexts.time.noHistory} />}
      {versions && versions.length > 0 && (
        <ol class="versions" aria-label={moreTexts.time.history}>
          <li class="versionNow">
            <span>{moreTexts.time.now}</span>
            <span class="muted">{timeText(document.updatedAt)}</span>
          </li>
          {versions.map((one) => (
            <li key={one.version}>
              <button
                type="button"
                aria-pressed={chosen?.version === one.version}
                onClick={() => void choose(one.version)}
              >
                <span>
                  {moreTexts.time.versionOf(one.version)}
                  {one.deleted && ` (${moreTexts.time.wasDeleted})`}
                </span>
                <span class="muted">{timeText(one.updatedAt)}</span>
                {one.gap && (
                  <span title={moreTexts.time.notShown}>
                    <Icon name="warning" />
                    <span class="visuallyHidden">{moreTexts.time.notShown}</span>
                  </span>
                )}
              </button>
            </li>
          ))}
        </ol>
      )}
      {chosen && (
        <section class="itemSection">
          <div class="row spread">
            <h2>{moreTexts.time.compared(chosen.version)}</h2>
            {!chosen.purged && (
              <Button icon="undo" kind="primary" isBusy={isBusy} onClick={() => void restore()}>
                {moreTexts.time.restore}
              </Button>
            )}
          </div>
          {entry.item ? (
            <Differences found={differences(fromStored(chosen.raw), entry.item)} />
          ) : (
            <div class="sides">
              <div>
                <h3>{moreTexts.time.versionOf(chosen.version)}</h3>
                <Json value={chosen.raw} />
              </div>
              <div>
                <h3>{moreTexts.time.now}</h3>
                <Json value={document.raw} />
              </div>
            </div>
          )}
        </section>
      )}
    </article>
  );
}
