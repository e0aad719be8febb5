// What is shown where there is nothing yet.
import type { ComponentChildren } from "preact";
import { Icon, type IconName } from "./icon.js";

/** A sentence, perhaps with what to do. */
export function EmptyState({ icon, title, children }: { icon: IconName; title: string; children?: ComponentChildren }) {
  return (
    <div class="emptyState">
      <Icon name={icon} size={28} />
      <p class="emptyTitle">{title}</p>
      {children !== undefined && <div class="emptyMore">{children}</div>}
    </div>
  );
}
