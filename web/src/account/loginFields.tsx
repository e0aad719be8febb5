// What the pages before the account share.
import type { ComponentType } from "preact";
import { TextField } from "../components/textField.js";
import { isHostedApart } from "../state/device.js";
import { texts } from "../texts/en.js";

/** The email and the server, as typed. */
export interface Typed {
  readonly email: string;
  readonly server: string;
}

interface PageProps {
  typed: Typed;
  onTyped: (typed: Typed) => void;
  onBack: () => void;
}
/** A page that is reached from the log-in. */
export type LoginSubpage = ComponentType<PageProps>;

/** Whether a text can be an email: the client says more. */
export const isEmail = (text: string): boolean => /^\S+@\S+$/.test(text.trim());

/** The address of the server, where the app is hosted apart from one. */
export function ServerField({ typed, onTyped }: { typed: Typed; onTyped: (typed: Typed) => void }) {
  if (!isHostedApart()) return null;
  return (
    <TextField
      label={texts.common.server}
      type="url"
      autoComplete="url"
      hint={texts.logIn.serverHint}
      value={typed.server}
      onInput={(server) => onTyped({ ...typed, server })}
    />
  );
}

/** The email of the account. `isFirst`: it has the focus when the form appears. */
export function EmailField({
  typed,
  onTyped,
  isFirst = false,
}: {
  typed: Typed;
  onTyped: (typed: Typed) => void;
  isFirst?: boolean;
}) {
  return (
    <TextField
      label={texts.common.email}
      type="email"
      autoComplete="username"
      autoFocus={isFirst}
      value={typed.email}
      onInput={(email) => onTyped({ ...typed, email })}
    />
  );
}
