// A field for a password: hidden, shown while a person wants to see it.
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { texts } from "../texts/en.js";
import { IconButton } from "./iconButton.js";
import { More } from "./textField.js";

interface PasswordFieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  /** "current-password" or "new-password" for the account's password; "off" for others. */
  autoComplete: "current-password" | "new-password" | "off";
  hint?: ComponentChildren;
  fault?: string | undefined;
  autoFocus?: boolean;
}

/** A labelled password field with a button that reveals it. */
export function PasswordField({ label, value, onInput, autoComplete, hint, fault, autoFocus }: PasswordFieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="inputRow">
        <input
          id={id}
          class={isShown ? "input mono" : "input"}
          {...((isShown ? { type: "text" } : { type: "password" }) as { type: "text" })}
          value={value}
          autoComplete={autoComplete}
          autoCapitalize="off"
          spellcheck={false}
          aria-invalid={fault === undefined ? undefined : "true"}
          aria-describedby={hint !== undefined || fault !== undefined ? `${id}-more` : undefined}
          data-autofocus={autoFocus ? "" : undefined}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
        <IconButton
          icon={isShown ? "eyeOff" : "eye"}
          label={isShown ? texts.common.hidePassword : texts.common.showPassword}
          isPressed={isShown}
          onClick={() => setShown(!isShown)}
        />
      </div>
      <More id={`${id}-more`} hint={hint} fault={fault} />
    </div>
  );
}
