// A new master password, typed twice, with its strength.
import { strength } from "@strongroom/client/items/strength";
import { useState } from "preact/hooks";
import { PasswordField } from "../components/passwordField.js";
import { texts } from "../texts/en.js";

/** What the client takes at least. */
const SHORTEST = 8;

/** A new password as it is being typed. */
export interface NewPassword {
  readonly first: string;
  readonly again: string;
}

/** Nothing typed yet. */
export const NO_PASSWORD: NewPassword = { first: "", again: "" };

/** What is wrong with a new password, if anything is. */
export function faultOf({ first, again }: NewPassword): string | undefined {
  if ([...first].length < SHORTEST) return texts.signUp.tooShort;
  return first === again ? undefined : texts.signUp.differs;
}

interface NewPasswordProps {
  label?: string;
  value: NewPassword;
  onInput: (value: NewPassword) => void;
}

/** The two fields. That they differ is said once the second one was left. */
export function NewPasswordFields({ label = texts.signUp.password, value, onInput }: NewPasswordProps) {
  const [isLeft, setLeft] = useState(false);
  const { first, again } = value;
  return (
    <>
      <PasswordField
        label={label}
        autoComplete="new-password"
        value={first}
        hint={<Strength password={first} />}
        onInput={(next) => onInput({ ...value, first: next })}
      />
      <div onFocusOut={() => setLeft(true)}>
        <PasswordField
          label={texts.signUp.again}
          autoComplete="new-password"
          value={again}
          fault={isLeft && again && first !== again ? texts.signUp.differs : undefined}
          onInput={(next) => onInput({ ...value, again: next })}
        />
      </div>
    </>
  );
}

function Strength({ password }: { password: string }) {
  if (!password) return <>{texts.signUp.passwordHint}</>;
  const { bits, level } = strength(password);
  return (
    <span class={`strength ${level}`} role="status">
      <meter min={0} max={100} low={45} high={65} optimum={100} value={Math.min(100, bits)} aria-hidden="true" />
      {texts.signUp.strength[level](Math.round(bits))}
    </span>
  );
}
