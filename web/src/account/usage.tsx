// What the account uses, and what it may use.
import { useOpen } from "../state/session.js";
import { moreTexts } from "../texts/later.js";
import { Loaded, useLoaded } from "./loaded.js";

/** The section. */
export function UsageSection() {
  const { client } = useOpen();
  const usage = useLoaded(() => client.usage());
  return (
    <Loaded of={usage}>
      {({ documents, bytes, kept, maxDocuments, maxBytes }) => (
        <div class="stack narrow">
          <Measure label={moreTexts.usage.documents} used={documents} most={maxDocuments} spell={(count) => count.toLocaleString("en")} />
          <Measure label={moreTexts.usage.size} used={bytes} most={maxBytes} spell={moreTexts.usage.bytes} />
          <dl class="facts">
            <div><dt>{moreTexts.usage.kept}</dt><dd>{maxBytes === null ? moreTexts.usage.bytes(kept) : moreTexts.usage.of(moreTexts.usage.bytes(kept), moreTexts.usage.bytes(maxBytes))}</dd></div>
          </dl>
          <p class="muted small">{moreTexts.usage.what}</p>
        </div>
      )}
    </Loaded>
  );
}

function Measure({ label, used, most, spell }: { label: string; used: number; most: number | null; spell: (count: number) => string }) {
  const isFull = most !== null && used >= most;
  return (
    <div class="measure">
      <div class="row spread">
        <span>{label}</span>
        <span>{most === null ? moreTexts.usage.unlimited(spell(used)) : moreTexts.usage.of(spell(used), spell(most))}</span>
      </div>
      {most !== null && <meter aria-label={label} min={0} max={most} high={most * 0.9} optimum={0} value={Math.min(used, most)} />}
      {isFull && <p class="fault">{moreTexts.usage.full}</p>}
    </div>
  );
}
