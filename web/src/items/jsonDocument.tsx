// Documents of other apps: shown as JSON, and edited with care.
import { DocumentConflict } from "@strongroom/client";
import { useEffect, useState } from "preact/hooks";
import { saveFile } from "../account/files.js";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { Icon } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { Menu } from "../components/menu.js";
import { go, hrefOf } from "../state/route.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { deleteEntries, replaceValue } from "./changes.js";
import { copyText } from "./copy.js";
import type { Entry } from "./entries.js";
import { changeSentence } from "./faults.js";
import { LongText, ShownText } from "./fieldRow.js";
import { oneLine, sizeText, timeText } from "./shownText.js";

const spelled = (value: unknown): string => JSON.stringify(value, undefined, 2) ?? "";
const MOST_EDITED = 1_000_000;
const LONG_NUMBER = /(?<=^|[[{:,\s])-?\d{16,}(?=[\]},.\seE]|$)/;

/** A value as JSON; bytes by their number. */
export function Json({ value }: { value: unknown }) {
  if (value instanceof Uint8Array) return <p>{moreTexts.items.bytes(sizeText(value.length))}</p>;
  return (
    <section class="json mono" tabIndex={0} aria-label={moreTexts.items.json}>
      <LongText text={spelled(value)} most={20_000} />
    </section>
  );
}

/** A document of another app. */
export function JsonDocument({ entry }: { entry: Entry }) {
  const { document, title } = entry;
  const [isEdited, setEdited] = useState(false);
  const { raw } = document;
  const isBytes = raw instanceof Uint8Array;
  const save = (): void =>
    isBytes
      ? saveFile(`${document.uid}.bin`, new Blob([raw as BlobPart]))
      : saveFile(`${document.uid}.json`, spelled(raw), "application/json");
  return (
    <article class="itemView" data-uid={document.uid}>
      <header class="itemHead">
        <a class="backLink" href={hrefOf("items")}>
          <Icon name="back" />
          {texts.common.back}
        </a>
        <div class="itemTitle">
          <span class="typeMark">
            <Icon name="file" size={20} />
          </span>
          <div class="itemNames">
            <h1>
              <ShownText text={title} />
            </h1>
            <p class="muted small">{moreTexts.items.documentOf(oneLine(document.collection, 60))}</p>
          </div>
          <div class="itemActions">
            {!isBytes && (
              <IconButton
                icon="copy"
                label={moreTexts.items.copy(moreTexts.items.json)}
                onClick={() => void copyText(spelled(raw), moreTexts.items.json, true)}
              />
            )}
            {!isBytes && !isEdited && spelled(raw).length <= MOST_EDITED && (
              <Button icon="edit" onClick={() => setEdited(true)}>
                {moreTexts.items.edit}
              </Button>
            )}
            <Menu
              label={texts.common.more}
              items={[
                {
                  label: moreTexts.items.history,
                  icon: "history",
                  run: () => go("items", document.vault, document.uid, "history"),
                },
                { label: moreTexts.items.downloadIt, icon: "download", run: save },
                {
                  label: texts.common.delete,
                  icon: "trash",
                  isDanger: true,
                  run: () => {
                    void deleteEntries([entry]);
                    go("items");
                  },
                },
              ]}
            />
          </div>
        </div>
      </header>
      {isEdited ? (
        <JsonEditor key={document.uid} entry={entry} onDone={() => setEdited(false)} />
      ) : (
        <Json value={raw} />
      )}
      <footer class="itemFoot muted small">
        <p>
          {moreTexts.items.changedAt(timeText(document.updatedAt))} · {moreTexts.items.version(document.version)}
        </p>
      </footer>
    </article>
  );
}

/** An editor for JSON. What another program expects is not known here, so it asks once more. */
function JsonEditor({ entry, onDone }: { entry: Entry; onDone: () => void }) {
  const [base, setBase] = useState(entry.document);
  const [text, setText] = useState(() => spelled(base.raw));
  const [fault, setFault] = useState<string>();
  const [isSure, setSure] = useState(false);
  const isChanged = entry.document.proof !== base.proof;
  const isDirty = text !== spelled(base.raw);
  useEffect(() => {
    const ask = (event: Event): void => event.preventDefault();
    if (isDirty) addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isDirty]);
  const check = (): void => {
    try {
      JSON.parse(text);
    } catch (met) {
      return setFault(moreTexts.items.invalidJson(met instanceof Error ? met.message.slice(0, 200) : ""));
    }
    const [long] = LONG_NUMBER.exec(text.replace(/"(?:[^"\\]|\\.)*"/g, '""')) ?? [];
    if (long !== undefined) return setFault(moreTexts.items.longNumber(long.slice(0, 40)));
    setFault(undefined);
    setSure(true);
  };
  const save = async (): Promise<void> => {
    setSure(false);
    try {
      await replaceValue(base, JSON.parse(text) as unknown);
      onDone();
    } catch (met) {
      if (!(met instanceof DocumentConflict)) return setFault(changeSentence(met));
      setFault(moreTexts.items.changedElsewhere);
    }
  };
  return (
    <div class="stack">
      <p class="notice warning">
        <Icon name="warning" />
        {moreTexts.items.jsonCare}
      </p>
      {isChanged && (
        <div class="notice warning" role="alert">
          <Icon name="conflict" />
          <div class="stack tight">
            <p>{moreTexts.items.openChanged}</p>
            <div class="row">
              <Button
                onClick={() => {
                  setBase(entry.document);
                  setText(spelled(entry.document.raw));
                  setFault(undefined);
                }}
              >
                {moreTexts.items.takeTheirs}
              </Button>
              <Button
                onClick={() => {
                  setBase(entry.document);
                  setFault(undefined);
                }}
              >
                {moreTexts.items.keepEditing}
              </Button>
            </div>
          </div>
        </div>
      )}
      <textarea
        class="input mono jsonInput"
        aria-label={moreTexts.items.json}
        spellcheck={false}
        rows={20}
        value={text}
        aria-invalid={fault === undefined ? undefined : "true"}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setFault(undefined);
        }}
      />
      {fault && (
        <p class="fault" role="alert">
          {fault}
        </p>
      )}
      <div class="row">
        <Button kind="primary" isDisabled={isChanged} onClick={check}>
          {texts.common.save}
        </Button>
        <Button onClick={onDone}>{texts.common.cancel}</Button>
      </div>
      {isSure && (
        <Confirm
          title={moreTexts.items.jsonSure}
          action={texts.common.save}
          onConfirm={() => void save()}
          onClose={() => setSure(false)}
        >
          <p>{moreTexts.items.jsonCare}</p>
        </Confirm>
      )}
    </div>
  );
}
