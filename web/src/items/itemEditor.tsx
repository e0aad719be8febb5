// The editor of an item. What it does not know of an item, it keeps.
import { type Document, DocumentConflict } from "@strongroom/client";
import {
  differences,
  type FileContent,
  fromStored,
  type Item,
  type ItemType,
  merge,
  type OneTimeCode,
  toStored,
  TYPES,
} from "@strongroom/client/items";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Confirm } from "../components/confirm.js";
import { focusUnlessTyping } from "../components/focus.js";
import { Icon } from "../components/icon.js";
import { Checkbox, Select } from "../components/select.js";
import { tell } from "../state/notices.js";
import { replaceRoute, routeGuard } from "../state/route.js";
import { vaults } from "../state/session.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { createItem, replaceValue } from "./changes.js";
import { Differences } from "./differences.js";
import { type Draft, drafts, keepDraft } from "./drafts.js";
import { CustomFields, LinesField, MemberField, PlainField, TotpField } from "./editorFields.js";
import type { Entry } from "./entries.js";
import { changeSentence } from "./faults.js";
import { AddFiles, Files, MOST_BYTES } from "./files.js";
import { filter } from "./listState.js";
import { MEMBERS, memberLabel, partLabel, PARTS } from "./members.js";
import { typeIcon, typeLabel } from "./types.js";
import { oneLine, sizeText } from "./shownText.js";

type Members = Readonly<Record<string, unknown>>;

const isType = (type: string | undefined): type is ItemType => (TYPES as readonly string[]).includes(type ?? "");

/** The draft of an editor: the one that was left, or a new one. */
function firstDraft(key: string, entry: Entry | undefined, type: string | undefined): Draft {
  const kept = drafts.getSnapshot().get(key);
  if (kept && (key !== "new" || !isType(type) || kept.item.type === type)) return kept;
  if (entry) return { item: fromStored(entry.document.raw), base: entry.document, vault: entry.document.vault };
  const { vault, folder } = filter.getSnapshot();
  const item = { type: isType(type) ? type : "login", ...(folder !== undefined && { folders: [folder] }) } as Item;
  return { item, base: undefined, vault: vault ?? vaults.getSnapshot()[0]?.uid ?? "" };
}

/** Edit an item, or make one, whose key is "new". Without an entry, the item was deleted while it was edited. */
export function ItemEditor({
  itemKey: key,
  entry,
  type,
}: {
  itemKey: string;
  entry?: Entry | undefined;
  type?: string | undefined;
}) {
  const [draft, setDraft] = useState(() => firstDraft(key, entry, type));
  const [fault, setFault] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const [isLeaving, setLeaving] = useState(false);
  const [badTotp, setBadTotp] = useState(false);
  const [turn, setTurn] = useState(0); // another one draws the fields anew
  const form = useRef<HTMLFormElement>(null);
  const { item, base, vault } = draft;
  const held = item as unknown as Members;
  const stored = useMemo(() => spelled(item), [item]);
  const before = useMemo(() => spelled(base ? fromStored(base.raw) : ({ type: item.type } as Item)), [base, item.type]);
  const isDirty = stored !== before || badTotp;
  const bytes = useMemo(() => new TextEncoder().encode(stored).length, [stored]);
  useEffect(() => keepDraft(key, isDirty ? draft : undefined), [draft, isDirty]);
  useEffect(() => focusUnlessTyping(form.current?.querySelector<HTMLElement>("[data-autofocus], input, textarea")), []);

  const change = (changed: Members): void => {
    setFault(undefined);
    setDraft((now) => ({ ...now, item: { ...now.item, ...changed } as Item }));
  };
  const changeFiles = (make: (files: readonly FileContent[]) => FileContent[]): void => {
    setFault(undefined);
    setDraft((now) => ({ ...now, item: { ...now.item, files: make(now.item.files ?? []) } }));
  };
  const restart = (next: Draft): void => {
    setDraft(next);
    setFault(undefined);
    setTurn((now) => now + 1);
  };
  const leave = (): void => {
    keepDraft(key, undefined);
    if (base) replaceRoute("items", base.vault, base.uid);
    else replaceRoute("items");
  };
  const save = async (): Promise<void> => {
    if (isBusy || badTotp) return;
    if (bytes > MOST_BYTES) return setFault(moreTexts.items.tooLarge(sizeText(bytes), sizeText(MOST_BYTES)));
    setBusy(true);
    const isHere = routeGuard();
    try {
      const saved = base ? (isDirty ? await replaceValue(base, toStored(item)) : base) : await createItem(vault, item);
      keepDraft(key, undefined);
      if (isHere()) replaceRoute("items", saved.vault, saved.uid); // otherwise the person has left meanwhile
    } catch (met) {
      setFault(met instanceof DocumentConflict ? moreTexts.items.changedElsewhere : changeSentence(met));
      setBusy(false);
    }
  };

  return (
    <form
      class="itemEditor"
      ref={form}
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
      onKeyDown={(event) => {
        if ((event.ctrlKey || event.metaKey) && (event.key === "s" || event.key === "Enter")) {
          event.preventDefault();
          void save();
        } else if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open]")) {
          event.preventDefault(); // or the browser would close the dialog that opens now
          if (isDirty) setLeaving(true);
          else leave();
        }
      }}
    >
      <header class="editorHead">
        <span class="typeMark">
          <Icon name={typeIcon(item.type)} size={20} />
        </span>
        <h1>{base ? moreTexts.items.editItem : moreTexts.items.newItem(typeLabel(item.type))}</h1>
        <div class="row">
          <Button onClick={() => (isDirty ? setLeaving(true) : leave())}>{texts.common.cancel}</Button>
          <Button type="submit" kind="primary" isBusy={isBusy} isDisabled={badTotp || (!isDirty && base !== undefined)}>
            {texts.common.save}
          </Button>
        </div>
      </header>
      {fault && (
        <p class="notice fault" role="alert">
          <Icon name="warning" />
          {fault}
        </p>
      )}
      {base && <Elsewhere draft={draft} base={base} now={entry?.document} onDraft={restart} onLeave={leave} />}
      <div class="editorBody" key={turn}>
        {!base && (
          <div class="pair">
            <Select
              label={texts.items.type}
              value={item.type as string}
              choices={TYPES.map((one) => [one, typeLabel(one)])}
              onChange={(one) => change({ type: one })}
            />
            <Select
              label={moreTexts.items.vault}
              value={vault}
              choices={vaults.getSnapshot().map(({ uid, name }) => [uid, oneLine(name, 60)])}
              onChange={(uid) => setDraft((now) => ({ ...now, vault: uid }))}
            />
          </div>
        )}
        <PlainField
          label={moreTexts.items.title}
          value={item.title ?? ""}
          onInput={(title) => change({ title })}
          autoFocus
        />
        {(item.type === "" ? [] : MEMBERS[item.type]).map(([name, kind]) =>
          kind === "totp" ? (
            <TotpField
              key={name}
              totp={held.totp as OneTimeCode | undefined}
              onChange={(totp) => {
                setBadTotp(totp === "fault");
                if (totp !== "fault") change({ totp });
              }}
            />
          ) : (
            <MemberField
              key={name}
              name={name}
              kind={kind}
              value={textOf(held[name])}
              onInput={(value) => change({ [name]: value })}
            />
          ),
        )}
        {item.type === "identity" &&
          Object.entries(PARTS).map(([part, names]) => (
            <PartFields
              key={part}
              part={part}
              names={names}
              value={held[part] as Members | undefined}
              onChange={(value) => change({ [part]: value })}
            />
          ))}
        <LinesField
          label={moreTexts.items.addresses}
          values={item.urls ?? []}
          onChange={(urls) => change({ urls })}
          hint={moreTexts.items.onePerLine}
        />
        <PlainField
          label={moreTexts.items.members.notes}
          value={item.notes ?? ""}
          onInput={(notes) => change({ notes })}
          isLines
        />
        <CustomFields fields={item.fields ?? []} onChange={(fields) => change({ fields })} />
        <section class="itemSection">
          <h2>{moreTexts.items.files}</h2>
          {item.files && item.files.length > 0 && (
            <Files
              files={item.files}
              onRemove={(removed) => changeFiles((files) => files.filter((one) => one !== removed))}
            />
          )}
          <AddFiles bytes={bytes} onRefuse={setFault} onAdd={(added) => changeFiles((files) => [...files, ...added])} />
          <p class="hint">{moreTexts.items.sizeOf(sizeText(bytes), sizeText(MOST_BYTES))}</p>
        </section>
        <section class="itemSection">
          <h2>{moreTexts.items.organise}</h2>
          <PlainField
            label={moreTexts.items.members.subtitle}
            value={item.subtitle ?? ""}
            onInput={(subtitle) => change({ subtitle })}
          />
          <LinesField
            label={moreTexts.items.folders}
            values={item.folders ?? []}
            onChange={(folders) => change({ folders })}
            hint={moreTexts.items.foldersHint}
          />
          <LinesField
            label={moreTexts.items.tags}
            values={item.tags ?? []}
            onChange={(tags) => change({ tags })}
            hint={moreTexts.items.onePerLine}
          />
          <Checkbox
            label={texts.items.isFavorite}
            isChecked={item.favorite ?? false}
            onChange={(favorite) => change({ favorite })}
          />
        </section>
      </div>
      {isLeaving && (
        <Confirm
          title={moreTexts.items.discardTitle}
          action={moreTexts.items.discard}
          isDanger
          onConfirm={() => {
            tell(moreTexts.items.discarded);
            leave();
          }}
          onClose={() => setLeaving(false)}
        >
          <p>{moreTexts.items.discardWhat}</p>
        </Confirm>
      )}
    </form>
  );
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** An item as it would be stored, or as it is where it does not fit. */
function spelled(item: Item): string {
  try {
    return JSON.stringify(toStored(item));
  } catch {
    return JSON.stringify(item);
  }
}

/** A part of an identity. */
function PartFields({
  part,
  names,
  value,
  onChange,
}: {
  part: string;
  names: readonly string[];
  value: Members | undefined;
  onChange: (value: Members | undefined) => void;
}) {
  const [isOpen] = useState(part === "name" || value !== undefined);
  const set = (name: string, typed: string): void => {
    const next = Object.fromEntries(Object.entries({ ...value, [name]: typed }).filter(([, one]) => one !== ""));
    onChange(Object.keys(next).length ? next : undefined);
  };
  return (
    <details class="part" open={isOpen}>
      <summary>{partLabel(part)}</summary>
      <div class="partFields">
        {names.map((name) => (
          <PlainField
            key={name}
            label={memberLabel(name)}
            value={textOf(value?.[name])}
            isLines={name === "streetAddress"}
            onInput={(typed) => set(name, typed)}
          />
        ))}
      </div>
    </details>
  );
}

interface ElsewhereProps {
  draft: Draft;
  base: Document;
  /** The document as it is now; undefined if it was deleted. */
  now: Document | undefined;
  onDraft: (draft: Draft) => void;
  onLeave: () => void;
}

/** The item was changed or deleted elsewhere while it is edited here: nothing is overwritten, and a person decides. */
function Elsewhere({ draft, base, now, onDraft, onLeave }: ElsewhereProps) {
  if (now?.proof === base.proof) return null;
  if (!now) {
    return (
      <div class="notice warning" role="alert">
        <Icon name="conflict" />
        <div class="stack tight">
          <p>{moreTexts.items.deletedElsewhere}</p>
          <div class="row">
            <Button onClick={() => onDraft({ ...draft, base: undefined })}>{moreTexts.items.makeAnew}</Button>
            <Button onClick={onLeave}>{moreTexts.items.discard}</Button>
          </div>
        </div>
      </div>
    );
  }
  const [was, theirs] = [fromStored(base.raw), fromStored(now.raw)];
  const both = merge(was, draft.item, theirs);
  return (
    <div class="notice warning" role="alert">
      <Icon name="conflict" />
      <div class="stack tight">
        <p>{moreTexts.items.openChanged}</p>
        <Differences found={differences(was, theirs)} />
        {both.clashes.length > 0 && <p>{moreTexts.items.clashes(both.clashes.length)}</p>}
        <div class="row">
          <Button kind="primary" onClick={() => onDraft({ ...draft, item: both.item, base: now })}>
            {moreTexts.items.takeBoth}
          </Button>
          <Button onClick={() => onDraft({ ...draft, item: theirs, base: now })}>{moreTexts.items.takeTheirs}</Button>
        </div>
      </div>
    </div>
  );
}
