// The sheet that names all keys.
import { Dialog } from "../components/dialog.js";
import { moreTexts } from "../texts/lazyTexts.js";

/** The sheet with all keys. */
export function KeyboardSheet({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={moreTexts.keyboard.title} onClose={onClose}>
      <dl class="keys">
        {moreTexts.keyboard.keys.map(([key, meaning]) => (
          <div key={key}>
            <dt>
              {key.split("  ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
