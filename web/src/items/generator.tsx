// The generator of passwords and passphrases.
import { type Generated, generatePassphrase, generatePassword } from "@strongroom/client/items";
import { useEffect, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Dialog } from "../components/dialog.js";
import { Checkbox, Select } from "../components/select.js";
import { TextField } from "../components/textField.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { copyText } from "./copy.js";

interface Wanted {
  readonly kind: "password" | "passphrase";
  readonly length: number;
  readonly words: number;
  readonly symbols: boolean;
  readonly separator: string;
}

let last: Wanted = { kind: "password", length: 20, words: 5, symbols: true, separator: "-" };

const made = ({ kind, length, words, symbols, separator }: Wanted): Generated =>
  kind === "password" ? generatePassword(length, { symbols }) : generatePassphrase(words, { separator });

/** How strong something of so many bits is, in a word. */
export const strengthWord = (bits: number): string =>
  moreTexts.items.strengths[bits < 45 ? 0 : bits < 65 ? 1 : bits < 100 ? 2 : 3] ?? "";

/** A bar and a word for so many bits. */
export function StrengthMeter({ bits }: { bits: number }) {
  const level = bits < 45 ? "weak" : bits < 65 ? "fair" : "strong";
  return (
    <div class="strength">
      <meter
        class={level}
        min={0}
        max={128}
        low={45}
        high={65}
        optimum={128}
        value={Math.min(128, bits)}
        aria-label={moreTexts.items.strength}
      />
      <span>{moreTexts.items.strengthText(strengthWord(bits), Math.floor(bits))}</span>
    </div>
  );
}

/** A dialogue that makes secrets until one is used. */
export function GeneratorDialog({
  onUse,
  onClose,
}: {
  onUse?: ((value: string) => void) | undefined;
  onClose: () => void;
}) {
  const [wanted, setWanted] = useState(last);
  const [generated, setGenerated] = useState(() => made(last));
  useEffect(() => {
    last = wanted;
    setGenerated(made(wanted));
  }, [wanted]);
  const change = (changed: Partial<Wanted>): void => setWanted((before) => ({ ...before, ...changed }));
  return (
    <Dialog
      title={moreTexts.items.generator}
      onClose={onClose}
      onSubmit={() => (onUse ? onUse(generated.value) : onClose())}
      actions={
        <>
          <Button icon="copy" onClick={() => void copyText(generated.value, moreTexts.items.generated, true)}>
            {texts.common.copy}
          </Button>
          {onUse && (
            <Button type="submit" kind="primary">
              {moreTexts.items.use}
            </Button>
          )}
        </>
      }
    >
      <output class="generated mono" aria-live="polite">
        {generated.value}
      </output>
      <div class="row spread">
        <StrengthMeter bits={generated.bits} />
        <Button kind="plain" icon="sync" onClick={() => setGenerated(made(wanted))}>
          {moreTexts.items.another}
        </Button>
      </div>
      <Select
        label={moreTexts.items.kind}
        value={wanted.kind}
        choices={[
          ["password", moreTexts.items.ofCharacters],
          ["passphrase", moreTexts.items.ofWords],
        ]}
        onChange={(kind) => change({ kind })}
      />
      {wanted.kind === "password" ? (
        <>
          <Range
            label={moreTexts.items.length}
            value={wanted.length}
            from={8}
            to={64}
            onInput={(length) => change({ length })}
          />
          <Checkbox
            label={moreTexts.items.symbols}
            isChecked={wanted.symbols}
            onChange={(symbols) => change({ symbols })}
          />
        </>
      ) : (
        <>
          <Range
            label={moreTexts.items.words}
            value={wanted.words}
            from={3}
            to={12}
            onInput={(words) => change({ words })}
          />
          <TextField
            label={moreTexts.items.separator}
            value={wanted.separator}
            onInput={(separator) => change({ separator })}
            maxLength={3}
            isMono
          />
        </>
      )}
    </Dialog>
  );
}

function Range({
  label,
  value,
  from,
  to,
  onInput,
}: {
  label: string;
  value: number;
  from: number;
  to: number;
  onInput: (value: number) => void;
}) {
  return (
    <label class="range">
      <span>{label}</span>
      <input
        type="range"
        min={from}
        max={to}
        value={value}
        onInput={(event) => onInput(Number(event.currentTarget.value))}
      />
      <span class="mono">{value}</span>
    </label>
  );
}
