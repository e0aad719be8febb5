// The recovery sheet: the key is shown once, printed, and confirmed by typing a part of it.
import { useRef, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { TextField } from "../components/textField.js";
import { texts } from "../texts/en.js";
import { Fault, Form } from "./frame.js";
import { saveFile } from "./files.js";

interface SheetProps {
  recoveryKey: string;
  email: string;
  server: string;
  onDone: () => void;
  /** With it, a person may go on without the key. */
  onLater?: (() => void) | undefined;
}

/** The groups of four of a recovery key, without what it begins with. */
const groupsOf = (key: string): string[] => key.split("-").slice(1);
/** As a person may type it: O, I, L are 0, 1, 1; case, spaces and hyphens do not count. */
const plain = (typed: string): string =>
  typed.toUpperCase().replace(/[\s-]/g, "").replace(/O/g, "0").replace(/[IL]/g, "1");

/** The sheet. Only it is on paper when the page is printed. */
export function RecoverySheet({ recoveryKey, email, server, onDone, onLater }: SheetProps) {
  const groups = groupsOf(recoveryKey);
  const asked = useRef((crypto.getRandomValues(new Uint8Array(1))[0] ?? 0) % groups.length).current;
  const [typed, setTyped] = useState("");
  const [fault, setFault] = useState<string>();
  const [isLater, setLater] = useState(false);
  const made = new Date().toLocaleDateString("en", { dateStyle: "long" });
  const lines: readonly (readonly [string, string])[] = [
    [texts.recoverySheet.account, email],
    [texts.recoverySheet.server, server],
    [texts.recoverySheet.made, made],
  ];
  const file = (): void =>
    saveFile(
      texts.recoverySheet.fileName,
      [
        texts.recoverySheet.title,
        ...lines.map(([name, value]) => `${name}: ${value}`),
        `${texts.recoverySheet.key}: ${recoveryKey}`,
        texts.recoverySheet.use,
        "",
      ].join("\n\n"),
      "text/plain",
    );
  const submit = (): void => {
    if (plain(typed) !== groups[asked]) return setFault(texts.recoverySheet.confirmWrong);
    onDone();
  };
  return (
    <div class="stack">
      <p>{texts.recoverySheet.why}</p>
      <div class="sheet">
        <h2 class="onPaper">{texts.recoverySheet.title}</h2>
        <dl class="facts">
          {lines.map(([name, value]) => (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <section class="sheetKey mono" aria-label={texts.recoverySheet.key}>
          {recoveryKey.split("-").map((group, at) => (
            <span key={at}>
              {group}
              {at < groups.length ? "-" : ""}
            </span>
          ))}
        </section>
        <p class="small onPaper">{texts.recoverySheet.use}</p>
      </div>
      <div class="row">
        <Button icon="print" onClick={() => print()}>
          {texts.recoverySheet.print}
        </Button>
        <Button icon="download" onClick={file}>
          {texts.recoverySheet.download}
        </Button>
      </div>
      <Form onSubmit={submit}>
        <Fault>{fault}</Fault>
        <TextField label={texts.recoverySheet.confirm(asked)} isMono value={typed} onInput={setTyped} maxLength={10} />
        <div class="row">
          <Button type="submit" kind="primary">
            {texts.recoverySheet.submit}
          </Button>
          {onLater && (
            <Button kind="plain" onClick={() => setLater(true)}>
              {texts.recoverySheet.later}
            </Button>
          )}
        </div>
      </Form>
      {isLater && onLater && (
        <Confirm
          title={texts.recoverySheet.laterTitle}
          action={texts.common.next}
          isDanger
          onConfirm={onLater}
          onClose={() => setLater(false)}
        >
          <p>{texts.recoverySheet.laterWhy}</p>
        </Confirm>
      )}
    </div>
  );
}
