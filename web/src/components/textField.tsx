// A field for a line, or for lines, of text, with its label above and a hint or a fault below.
import type { ComponentChildren, Ref } from "preact";
import { useId } from "preact/hooks";

interface TextFieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  type?: "text" | "email" | "search" | "url" | "number" | "date" | "month";
  hint?: ComponentChildren;
  /** What is wrong with the value; it is read out. */
  fault?: string | undefined;
  autoComplete?: string;
  inputMode?: "numeric" | "text" | "email" | "url" | undefined;
  isMono?: boolean;
  isReadOnly?: boolean;
  isRequired?: boolean;
  /** With it, the field has so many lines. */
  lines?: number | undefined;
  autoFocus?: boolean;
  maxLength?: number | undefined;
  placeholder?: string | undefined;
  inputRef?: Ref<HTMLInputElement>;
  onKeyDown?: (event: KeyboardEvent) => void;
}

/** A labelled field. Neither spelling nor capitals are corrected: what is typed here goes to no other service. */
export function TextField(props: TextFieldProps) {
  const { label, value, onInput, type = "text", hint, fault, lines, isMono, isReadOnly, isRequired, autoFocus } = props;
  const id = useId();
  const shared = {
    id,
    value,
    class: isMono ? "input mono" : "input",
    readOnly: isReadOnly,
    required: isRequired,
    maxLength: props.maxLength,
    placeholder: props.placeholder,
    spellcheck: false,
    autoComplete: props.autoComplete ?? "off",
    "aria-invalid": fault === undefined ? undefined : ("true" as const),
    "aria-describedby": hint !== undefined || fault !== undefined ? `${id}-more` : undefined,
    "data-autofocus": autoFocus ? "" : undefined,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {lines === undefined ? (
        <input
          {...shared}
          {...({ type } as { type: "text" })}
          ref={props.inputRef ?? null}
          inputMode={props.inputMode}
          autoCapitalize="off"
          onInput={(event) => onInput(event.currentTarget.value)}
          onKeyDown={props.onKeyDown}
        />
      ) : (
        <textarea {...shared} rows={lines} onInput={(event) => onInput(event.currentTarget.value)} />
      )}
      <More id={`${id}-more`} hint={hint} fault={fault} />
    </div>
  );
}

/** What stands below a field: a fault, else a hint. */
export function More({ id, hint, fault }: { id: string; hint?: ComponentChildren; fault?: string | undefined }) {
  if (fault !== undefined)
    return (
      <p id={id} class="fault" role="alert">
        {fault}
      </p>
    );
  return hint === undefined ? null : (
    <div id={id} class="hint">
      {hint}
    </div>
  );
}
