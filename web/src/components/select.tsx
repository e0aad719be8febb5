// A choice of one from a few.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { More } from "./textField.js";

interface SelectProps<T extends string> {
  label: string;
  value: T;
  choices: readonly (readonly [value: T, label: string])[];
  onChange: (value: T) => void;
  hint?: ComponentChildren;
}

/** A labelled list to choose from: the browser's own. */
export function Select<T extends string>({ label, value, choices, onChange, hint }: SelectProps<T>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select
        id={id}
        class="input"
        aria-describedby={hint === undefined ? undefined : `${id}-more`}
        onChange={(event) => {
          const chosen = choices[event.currentTarget.selectedIndex];
          if (chosen) onChange(chosen[0]);
        }}
      >
        {choices.map(([one, shown]) => (
          <option key={one} value={one} selected={one === value}>
            {shown}
          </option>
        ))}
      </select>
      <More id={`${id}-more`} hint={hint} />
    </div>
  );
}

/** A box to tick, with its label beside it. */
export function Checkbox({
  label,
  isChecked,
  onChange,
  hint,
}: {
  label: ComponentChildren;
  isChecked: boolean;
  onChange: (checked: boolean) => void;
  hint?: ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="checkbox">
      <input
        id={id}
        type="checkbox"
        checked={isChecked}
        aria-describedby={hint === undefined ? undefined : `${id}-more`}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <label for={id}>{label}</label>
      <More id={`${id}-more`} hint={hint} />
    </div>
  );
}
