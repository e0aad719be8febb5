// Two columns, a list and what is chosen in it. On a phone one of them is shown.
import type { ComponentChildren } from "preact";

interface ColumnsProps {
  list: ComponentChildren;
  listLabel: string;
  detail: ComponentChildren;
  detailLabel: string;
  /** Whether something is chosen: on a phone, that is shown then. */
  isDetail: boolean;
}

/** A list and a detail beside it. */
export function Columns({ list, listLabel, detail, detailLabel, isDetail }: ColumnsProps) {
  return (
    <div class={isDetail ? "columns isDetail" : "columns"}>
      <section class="columnList" aria-label={listLabel}>
        {list}
      </section>
      <section class="columnDetail" aria-label={detailLabel} tabIndex={0}>
        {detail}
      </section>
    </div>
  );
}
