// The items: a list, and the one that is chosen.
import { Columns } from "../components/columns.js";
import { EmptyState } from "../components/emptyState.js";
import { texts } from "../texts/en.js";

/** `parts` are the vault's uid and the item's uid, if they are chosen. */
export function ItemsView({ parts }: { parts: readonly string[] }) {
  return (
    <Columns
      list={<EmptyState icon="list" title={texts.shell.items} />}
      listLabel={texts.shell.list}
      detail={null}
      detailLabel={texts.shell.detail}
      isDetail={parts.length > 1}
    />
  );
}
