// How far something is that takes time.

/** A bar with its label; without a total, it only says that something is under way. */
export function Progress({
  label,
  done,
  total,
}: {
  label: string;
  done?: number | undefined;
  total?: number | undefined;
}) {
  const isKnown = done !== undefined && total !== undefined && total > 0;
  return (
    <div class="progress" role="status">
      <span>{label}</span>
      <progress aria-label={label} {...(isKnown ? { value: Math.min(done, total), max: total } : {})} />
    </div>
  );
}

/** The words for a wait without a measure. */
export function Waiting({ label }: { label: string }) {
  return (
    <p class="waiting" role="status">
      <span class="spinner" aria-hidden="true" />
      {label}
    </p>
  );
}
