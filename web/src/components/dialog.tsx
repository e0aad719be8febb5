// A dialogue above the page: the browser's own <dialog>, which keeps the focus inside and closes with Esc.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { texts } from "../texts/en.js";
import { IconButton } from "./iconButton.js";

interface DialogProps {
  title: string;
  children: ComponentChildren;
  /** What is at the bottom, right: buttons. */
  actions?: ComponentChildren;
  onClose: () => void;
  isWide?: boolean;
  /** Whether Esc and the cross close it; no, while something is under way that must be ended by a button. */
  canClose?: boolean;
  /** With it, the whole content is a form. */
  onSubmit?: (() => void) | undefined;
}

/** A modal dialogue. Focus goes to what has `data-autofocus`, else to the first field; afterwards back where it was. */
export function Dialog({ title, children, actions, onClose, isWide, canClose = true, onSubmit }: DialogProps) {
  const frame = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = frame.current;
    const before = document.activeElement;
    dialog?.showModal();
    const first =
      dialog?.querySelector<HTMLElement>("[data-autofocus]") ??
      dialog?.querySelector<HTMLElement>("input, select, textarea");
    first?.focus();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const body = (
    <>
      <header class="dialogHead">
        <h2 id={id}>{title}</h2>
        {canClose && <IconButton icon="close" label={texts.common.close} onClick={onClose} />}
      </header>
      <div class="dialogBody">{children}</div>
      {actions && <footer class="dialogActions">{actions}</footer>}
    </>
  );
  return (
    <dialog
      ref={frame}
      class={isWide ? "dialog wide" : "dialog"}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        if (canClose) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      {onSubmit ? (
        <form
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            onSubmit();
          }}
        >
          {body}
        </form>
      ) : (
        body
      )}
    </dialog>
  );
}
