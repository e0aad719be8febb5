// Notices at the edge of the page. They are read out, and never take the focus.
import { texts } from "../texts/en.js";
import { dismiss, notices } from "../state/notices.js";
import { useStore } from "../state/store.js";
import { Icon } from "./icon.js";
import { IconButton } from "./iconButton.js";

/** The notices that are shown. */
export function Toasts() {
  const shown = useStore(notices);
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, kind, action }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === "fault" ? "warning" : "check"} />
          <span>{text}</span>
          {action && (
            <button
              type="button"
              class="button plain"
              onClick={() => {
                dismiss(id);
                void action.run();
              }}
            >
              {action.label}
            </button>
          )}
          <IconButton icon="close" label={texts.common.dismiss} onClick={() => dismiss(id)} />
        </div>
      ))}
    </div>
  );
}
