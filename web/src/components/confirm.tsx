// A question before something that cannot be taken back.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { texts } from "../texts/en.js";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { TextField } from "./textField.js";

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  /** The word on the button that does it. */
  action: string;
  isDanger?: boolean;
  isBusy?: boolean;
  /** What must be typed before the button works. */
  typed?: { readonly label: string; readonly text: string } | undefined;
  onConfirm: () => void;
  onClose: () => void;
}

/** Ask, perhaps by letting a person type a word. */
export function Confirm({
  title,
  children,
  action,
  isDanger,
  isBusy = false,
  typed,
  onConfirm,
  onClose,
}: ConfirmProps) {
  const [given, setGiven] = useState("");
  const isSaid = !typed || given.trim() === typed.text;
  return (
    <Dialog
      title={title}
      onClose={onClose}
      canClose={!isBusy}
      onSubmit={() => isSaid && !isBusy && onConfirm()}
      actions={
        <>
          <Button onClick={onClose} isDisabled={isBusy} autoFocus={!typed}>
            {texts.common.cancel}
          </Button>
          <Button type="submit" kind={isDanger ? "danger" : "primary"} isDisabled={!isSaid} isBusy={isBusy}>
            {action}
          </Button>
        </>
      }
    >
      {children}
      {typed && <TextField label={typed.label} value={given} onInput={setGiven} autoComplete="off" />}
    </Dialog>
  );
}
