// The fields of the editor.
import { type Field, InvalidTotp, type OneTimeCode, parseTotp, strength, totpUri } from "@strongroom/client/items";
import { isConcealed } from "@strongroom/client/items/shapes";
import { useId, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { IconButton } from "../components/iconButton.js";
import { Select } from "../components/select.js";
import { TextField } from "../components/textField.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { useReveal } from "./fieldRow.js";
import { GeneratorDialog, StrengthMeter } from "./generator.js";
import { memberLabel, type MemberKind, textAt } from "./members.js";

interface ValueProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  autoFocus?: boolean;
}

const rowsOf = (value: string, least: number): number =>
  Math.min(12, Math.max(least, value.slice(0, 2000).split("\n").length));

/** A text: a line, or lines where it has some already; the browser would take line breaks out of a line. */
export function PlainField({
  label,
  value,
  onInput,
  autoFocus,
  isLines = false,
  isMono = false,
  placeholder,
}: ValueProps & { isLines?: boolean; isMono?: boolean; placeholder?: string }) {
  const [isLong] = useState(isLines || value.includes("\n"));
  return (
    <TextField
      label={label}
      value={value}
      onInput={onInput}
      lines={isLong ? rowsOf(value, isLines ? 3 : 2) : undefined}
      isMono={isMono}
      placeholder={placeholder}
      autoFocus={autoFocus ?? false}
    />
  );
}

/** A secret: hidden while it is typed, revealed by intent, generated if wanted. */
export function SecretField({
  label,
  value,
  onInput,
  isLines = false,
  canGenerate = false,
  fault,
}: ValueProps & { isLines?: boolean; canGenerate?: boolean; fault?: string | undefined }) {
  const id = useId();
  const [isLong] = useState(isLines || value.includes("\n"));
  const [isShown, setShown] = useReveal();
  const [isGenerating, setGenerating] = useState(false);
  const shared = {
    id,
    value,
    spellcheck: false,
    autoComplete: "off",
    autoCapitalize: "off" as const,
    "aria-invalid": fault === undefined ? undefined : ("true" as const),
    "aria-describedby": fault === undefined ? undefined : `${id}-more`,
  };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="inputRow">
        {isLong ? (
          <textarea
            {...shared}
            class={isShown ? "input mono" : "input mono masked"}
            rows={rowsOf(value, 2)}
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        ) : (
          <input
            {...shared}
            class={isShown ? "input mono" : "input mono masked"}
            type="text"
            onInput={(event) => onInput(event.currentTarget.value)}
          />
        )}
        <IconButton
          icon={isShown ? "eyeOff" : "eye"}
          label={isShown ? moreTexts.items.hide(label) : moreTexts.items.reveal(label)}
          isPressed={isShown}
          onClick={() => setShown(!isShown)}
        />
        {canGenerate && (
          <IconButton icon="sync" label={moreTexts.items.generate(label)} onClick={() => setGenerating(true)} />
        )}
      </div>
      {fault !== undefined && (
        <p id={`${id}-more`} class="fault" role="alert">
          {fault}
        </p>
      )}
      {canGenerate && value && <StrengthMeter bits={strength(value).bits} />}
      {isGenerating && (
        <GeneratorDialog
          onClose={() => setGenerating(false)}
          onUse={(made) => {
            setGenerating(false);
            onInput(made);
          }}
        />
      )}
    </div>
  );
}

/** A member of a type. */
export function MemberField({
  name,
  kind,
  value,
  onInput,
}: {
  name: string;
  kind: MemberKind;
  value: string;
  onInput: (value: string) => void;
}) {
  const label = memberLabel(name);
  if (kind === "secret" || kind === "secretLines") {
    return (
      <SecretField
        label={label}
        value={value}
        onInput={onInput}
        isLines={kind === "secretLines"}
        canGenerate={["password", "value", "key"].includes(name)}
      />
    );
  }
  const placeholder = { month: "YYYY-MM", date: "YYYY-MM-DD" }[kind as string];
  return (
    <PlainField
      label={label}
      value={value}
      onInput={onInput}
      isLines={kind === "lines"}
      isMono={kind === "lines"}
      {...(placeholder !== undefined && { placeholder })}
    />
  );
}

function totpText(totp: OneTimeCode | undefined): string {
  try {
    return totp ? totpUri(totp) : "";
  } catch (fault) {
    if (fault instanceof InvalidTotp) return totp?.secret ?? "";
    throw fault;
  }
}

/** What makes one-time codes, as a secret or as an address. `onChange` is given "fault" for what cannot be read. */
export function TotpField({
  totp,
  onChange,
}: {
  totp: OneTimeCode | undefined;
  onChange: (totp: OneTimeCode | undefined | "fault") => void;
}) {
  const [text, setText] = useState(() => totpText(totp));
  const [fault, setFault] = useState<string>();
  const read = (typed: string): void => {
    setText(typed);
    setFault(undefined);
    if (!typed.trim()) return onChange(undefined);
    try {
      onChange({ ...totp, ...parseTotp(typed) });
    } catch (met) {
      if (!(met instanceof InvalidTotp)) throw met;
      setFault(met.message);
      onChange("fault");
    }
  };
  return <SecretField label={moreTexts.items.members.totp} value={text} onInput={read} fault={fault} />;
}

/** Texts, one a line. */
export function LinesField({
  label,
  values,
  onChange,
  hint,
}: {
  label: string;
  values: readonly string[];
  onChange: (values: string[]) => void;
  hint?: string;
}) {
  const [text, setText] = useState(values.join("\n"));
  return (
    <TextField
      label={label}
      value={text}
      lines={rowsOf(text, 1)}
      hint={hint}
      onInput={(typed) => {
        setText(typed);
        onChange([
          ...new Set(
            typed
              .split("\n")
              .map((one) => one.trim())
              .filter(Boolean),
          ),
        ]);
      }}
    />
  );
}

const KINDS = ["string", "concealed-string", "email", "number", "date", "boolean"];

/** The fields that a person has added. */
export function CustomFields({ fields, onChange }: { fields: readonly Field[]; onChange: (fields: Field[]) => void }) {
  const set = (at: number, changed: Partial<Field>): void =>
    onChange(fields.map((field, place) => (place === at ? { ...field, ...changed } : field)));
  const [keys, setKeys] = useState<readonly number[]>(() => fields.map((_, at) => at)); // no field takes the place of another
  const arrange = (order: readonly number[]): void => {
    setKeys(order.map((at) => keys[at] ?? nextKey));
    onChange(order.map((at) => fields[at] ?? { label: "", value: "" }));
  };
  const nextKey = Math.max(-1, ...keys) + 1;
  const places = fields.map((_, at) => at);
  return (
    <section class="itemSection">
      <h2>{moreTexts.items.moreFields}</h2>
      {fields.map(({ label = "", value = "", type = "string", section = "" }, at) => (
        <fieldset class="customField" key={keys[at]}>
          <legend class="visuallyHidden">{label || moreTexts.items.unnamedField}</legend>
          <div class="pair">
            <TextField
              label={moreTexts.items.fieldLabel}
              value={label}
              onInput={(typed) => set(at, { label: typed })}
            />
            <Select
              label={moreTexts.items.kind}
              value={type}
              choices={[...new Set([...KINDS, type])].map((kind) => [
                kind,
                textAt(moreTexts.items.fieldTypes, kind) ?? kind.slice(0, 40),
              ])}
              onChange={(kind) => set(at, { type: kind })}
            />
          </div>
          {isConcealed(type) ? (
            <SecretField
              label={moreTexts.items.fieldValue}
              value={value}
              onInput={(typed) => set(at, { value: typed })}
              canGenerate
            />
          ) : (
            <PlainField
              label={moreTexts.items.fieldValue}
              value={value}
              onInput={(typed) => set(at, { value: typed })}
            />
          )}
          <div class="pair">
            <TextField
              label={moreTexts.items.fieldSection}
              value={section}
              onInput={(typed) => set(at, { section: typed })}
            />
            <div class="row end">
              <IconButton
                icon="up"
                label={moreTexts.items.moveUp(label)}
                isDisabled={at === 0}
                onClick={() => arrange([...places.slice(0, at - 1), at, at - 1, ...places.slice(at + 1)])}
              />
              <IconButton
                icon="trash"
                label={moreTexts.items.remove(label || moreTexts.items.unnamedField)}
                onClick={() => arrange(places.filter((place) => place !== at))}
              />
            </div>
          </div>
        </fieldset>
      ))}
      <Button icon="add" onClick={() => arrange([...places, places.length])}>
        {moreTexts.items.addField}
      </Button>
    </section>
  );
}
