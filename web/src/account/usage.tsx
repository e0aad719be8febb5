// What the account uses, and what it may use.
import { useOpen } from "../state/session.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { Loaded, useLoaded } from "./loaded.js";

/** The section. */
export function UsageSection() {
  const { client } = useOpen();
  const usage = useLoaded(() => client.usage());
  return (
    <Loaded of={usage}>
      {({ documents, bytes, kept, maxDocuments, maxBytes }) => (
        <div class="stack narrow">
          <Measure
            label={moreTexts.usage.documents}
            used={documents}
            most={maxDocuments}
            spell={(count) => count.toLocaleString("en")}
          />
          <Measure label={moreTexts.usage.size} used={bytes} most={maxBytes} spell={moreTexts.usage.bytes} />
          <Measure
            label={moreTexts.usage.kept}
            used={kept}
            most={maxBytes}
            spell={moreTexts.usage.bytes}
            canRefuse={false}
          />
          <p class="muted small">{moreTexts.usage.what}</p>
        </div>
      )}
    </Loaded>
  );
}

interface MeasureProps {
  label: string;
  used: number;
  most: number | null;
  spell: (count: number) => string;
  /** Whether nothing more is taken when it is full: of history, the oldest goes instead. */
  canRefuse?: boolean;
}

function Measure({ label, used, most, spell, canRefuse = true }: MeasureProps) {
  const isFull = canRefuse && most !== null && used >= most;
  return (
    <div class="measure">
      <div class="row spread">
        <span>{label}</span>
        <span>
          {most === null ? moreTexts.usage.unlimited(spell(used)) : moreTexts.usage.of(spell(used), spell(most))}
        </span>
      </div>
      {most !== null && (
        <meter aria-label={label} min={0} max={most} high={most * 0.9} optimum={0} value={Math.min(used, most)} />
      )}
      {isFull && <p class="fault">{moreTexts.usage.full}</p>}
    </div>
  );
}
