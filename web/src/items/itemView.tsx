// One item as it is read.
import { fieldsOf, type Item, toStored } from "@strongroom/client/items";
import { isConcealed } from "@strongroom/client/items/shapes";
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { Icon } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { Menu } from "../components/menu.js";
import { go, hrefOf } from "../state/route.js";
import { useOpen, vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { changeItems, deleteEntries } from "./changes.js";
import { drafts } from "./drafts.js";
import type { Entry } from "./entries.js";
import { FieldRow, LongText, ShownText } from "./fieldRow.js";
import { Files } from "./files.js";
import { pathText } from "./folders.js";
import { Json } from "./jsonDocument.js";
import { isShownAsMarkdown, Markdown, OuterLink, safeAddress } from "./markdown.js";
import { MEMBERS, memberLabel, type MemberKind, partLabel, PARTS } from "./members.js";
import { MoveDialog } from "./moveDialog.js";
import { OneTimeCode } from "./oneTimeCode.js";
import { cut, oneLine, timeText } from "./shownText.js";
import { typeIcon, typeLabel } from "./types.js";

const KNOWN = new Set([
  "type",
  "title",
  "subtitle",
  "notes",
  "urls",
  "tags",
  "favorite",
  "folders",
  "fields",
  "files",
  "credentials",
  "creationAt",
  "modifiedAt",
  "source",
  "typeName",
  "problem",
  "document",
]);

/** An item, or what is wrong with it. */
export function ItemView({ entry }: { entry: Entry }) {
  const { item, problem, document } = entry;
  if (!item) return null;
  return (
    <article class="itemView" data-uid={document.uid}>
      <ItemHead entry={entry} />
      <Banners entry={entry} />
      {problem ? <Misfit problem={problem} raw={document.raw} /> : <ItemBody item={item} />}
      <footer class="itemFoot muted small">
        <p>
          {moreTexts.items.changedAt(timeText(document.updatedAt))}
          {" · "}
          {moreTexts.items.createdAt(timeText(document.createdAt))} · {moreTexts.items.version(document.version)}
        </p>
        {document.gap && <p>{moreTexts.items.gap}</p>}
      </footer>
    </article>
  );
}

/** A document that does not fit its type: what is wrong, and the whole of it. Nothing here changes it. */
function Misfit({ problem, raw }: { problem: string; raw: unknown }) {
  return (
    <section class="stack">
      <div class="notice warning" role="note">
        <Icon name="warning" />
        <div>
          <p>{moreTexts.items.misfit}</p>
          <p>
            <LongText text={problem} most={500} />
          </p>
        </div>
      </div>
      <Json value={raw} />
    </section>
  );
}

/** What needs a person: a conflict, a draft that was left. */
function Banners({ entry: { key, document } }: { entry: Entry }) {
  const { conflicts, refused } = useStore(useOpen().replica.undecided);
  const isDraft = useStore(drafts).has(key);
  const isHere = ({ vault, uid }: { vault: string; uid: string }): boolean =>
    vault === document.vault && uid === document.uid;
  const held = refused.find(isHere);
  return (
    <>
      {conflicts.some(isHere) && (
        <p class="notice warning">
          <Icon name="conflict" />
          <a href={hrefOf("conflicts", document.vault, document.uid)}>{moreTexts.items.inConflict}</a>
        </p>
      )}
      {held && (
        <p class="notice warning">
          <Icon name="waiting" />
          <a href={hrefOf("waiting")}>{moreTexts.items.notSent(held.reason.sentence)}</a>
        </p>
      )}
      {isDraft && (
        <p class="notice">
          <Icon name="edit" />
          <a href={hrefOf("items", document.vault, document.uid, "edit")}>{moreTexts.items.hasDraft}</a>
        </p>
      )}
    </>
  );
}

function ItemHead({ entry }: { entry: Entry }) {
  const { document, isFavorite, tags, folders, type, problem } = entry;
  const vault = useStore(vaults).find(({ uid }) => uid === document.vault);
  const [isMoving, setMoving] = useState(false);
  const place = [vault?.name ?? "", ...folders.slice(0, 3).map(pathText)]
    .filter(Boolean)
    .map((one) => oneLine(one, 80));
  const whole = entry.item?.title ?? "";
  return (
    <header class="itemHead">
      <a class="backLink" href={hrefOf("items")}>
        <Icon name="back" />
        {texts.common.back}
      </a>
      <div class="itemTitle">
        <span class="typeMark">
          <Icon name={typeIcon(type)} size={20} />
        </span>
        <div class="itemNames">
          <h1>{whole.trim() ? <LongText text={whole} most={300} /> : texts.items.untitled}</h1>
          <p class="muted small">
            {[typeLabel(type), ...place].map((one, at) => (
              <>
                {at > 0 && " · "}
                <ShownText text={one} />
              </>
            ))}
          </p>
        </div>
        <div class="itemActions">
          {!problem && (
            <>
              <IconButton
                icon="star"
                label={isFavorite ? moreTexts.items.unfavorite : moreTexts.items.favorite}
                isPressed={isFavorite}
                onClick={() =>
                  void changeItems(
                    [entry],
                    (item) => ({ ...item, favorite: !isFavorite }),
                    isFavorite ? moreTexts.items.unfavorited : moreTexts.items.favorited,
                  )
                }
              />
              <Button icon="edit" onClick={() => go("items", document.vault, document.uid, "edit")}>
                {moreTexts.items.edit}
              </Button>
            </>
          )}
          <Menu
            label={texts.common.more}
            items={[
              {
                label: moreTexts.items.history,
                icon: "history",
                run: () => go("items", document.vault, document.uid, "history"),
              },
              { label: moreTexts.items.moveTo, icon: "folder", run: () => setMoving(true) },
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
      {tags.length > 0 && (
        <ul class="tags" aria-label={moreTexts.items.tags}>
          {tags.slice(0, 50).map((tag) => (
            <li key={tag}>
              <ShownText text={oneLine(tag, 60)} />
            </li>
          ))}
        </ul>
      )}
      {isMoving && <MoveDialog entries={[entry]} onClose={() => setMoving(false)} />}
    </header>
  );
}

/** What an item holds. */
export function ItemBody({ item }: { item: Item }) {
  const own = item.type === "" ? [] : MEMBERS[item.type];
  const held = item as unknown as Readonly<Record<string, unknown>>;
  const { urls = [], notes = "", files = [], fields = [], credentials = [] } = item;
  const sections = useMemo(() => [...new Set(fields.map(({ section = "" }) => section))], [fields]);
  const kept = useMemo(() => keptMembers(item), [item]);
  const rest = useMemo(
    () =>
      credentials.length
        ? fieldsOf({ ...item, fields: [], files: [] }).filter(({ section }) =>
            credentials.some(({ type }) => type === section),
          )
        : [],
    [item],
  );
  return (
    <div class="itemBody">
      <FieldList>
        {item.subtitle && <FieldRow label={moreTexts.items.members.subtitle} value={item.subtitle} />}
        {own.map(([name, kind]) => (
          <MemberRow key={name} name={name} kind={kind} value={held[name]} />
        ))}
        {urls.map((url, at) => (
          <UrlRow key={at} label={at ? `${memberLabel("url")} ${at + 1}` : memberLabel("url")} url={url} />
        ))}
      </FieldList>
      {item.type === "identity" && Object.keys(PARTS).map((part) => <Part key={part} part={part} value={held[part]} />)}
      {notes && <Notes text={notes} />}
      {sections.map((section) => (
        <Section key={section} title={section || moreTexts.items.moreFields}>
          {fields
            .filter((field) => (field.section ?? "") === section)
            .map(({ label = "", value = "", type }, at) => (
              <FieldRow
                key={JSON.stringify([at, label, value])}
                label={label || moreTexts.items.unnamedField}
                value={value}
                isSecret={isConcealed(type)}
              />
            ))}
        </Section>
      ))}
      {rest.length > 0 && (
        <Section title={moreTexts.items.credentials}>
          {rest.map((field, at) => (
            <FieldRow
              key={JSON.stringify([at, field.path, field.value])}
              label={`${field.section} · ${memberLabel(field.name)}`}
              value={field.value}
              isSecret={field.concealed}
            />
          ))}
        </Section>
      )}
      {files.length > 0 && (
        <section class="itemSection">
          <h2>{moreTexts.items.files}</h2>
          <Files files={files} />
        </section>
      )}
      {kept.length > 0 && (
        <p class="muted small">
          {moreTexts.items.keptMembers(
            kept
              .map((name) => oneLine(name, 40))
              .slice(0, 20)
              .join(", "),
          )}
        </p>
      )}
    </div>
  );
}

/** Members that this version does not know. They are kept when the item is changed. */
function keptMembers(item: Item): string[] {
  const own =
    item.type === "" ? [] : item.type === "identity" ? Object.keys(PARTS) : MEMBERS[item.type].map(([name]) => name);
  const stored = toStored(item);
  return Object.keys(typeof stored === "object" && stored !== null ? stored : {}).filter(
    (name) => !KNOWN.has(name) && !own.includes(name),
  );
}

function FieldList({ children }: { children: ComponentChildren }) {
  return <dl class="fieldList">{children}</dl>;
}

function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="itemSection">
      <h2>
        <ShownText text={cut(title, 200)} />
      </h2>
      <FieldList>{children}</FieldList>
    </section>
  );
}

function MemberRow({ name, kind, value }: { name: string; kind: MemberKind; value: unknown }) {
  if (kind === "totp") return typeof value === "object" && value !== null ? <OneTimeCode totp={value} /> : null;
  if (typeof value !== "string" || !value) return null;
  if (kind === "url") return <UrlRow label={memberLabel(name)} url={value} />;
  const isSecret = kind === "secret" || kind === "secretLines";
  return <FieldRow label={memberLabel(name)} value={value} isSecret={isSecret} isMono={isSecret || kind === "lines"} />;
}

function UrlRow({ label, url }: { label: string; url: string }) {
  const address = safeAddress(url);
  return (
    <FieldRow label={label} value={url}>
      {address && url.length < 500 ? (
        <OuterLink address={address}>
          <ShownText text={url} />
        </OuterLink>
      ) : undefined}
    </FieldRow>
  );
}

function Part({ part, value }: { part: string; value: unknown }) {
  if (typeof value !== "object" || value === null) return null;
  const held = value as Readonly<Record<string, unknown>>;
  const found = (PARTS[part] ?? []).filter((name) => typeof held[name] === "string" && held[name]);
  if (!found.length) return null;
  return (
    <Section title={partLabel(part)}>
      {found.map((name) => (
        <FieldRow key={name} label={memberLabel(name)} value={held[name] as string} />
      ))}
    </Section>
  );
}

/** Notes, as Markdown or as they were typed. */
function Notes({ text }: { text: string }) {
  const canRender = isShownAsMarkdown(text);
  const [isPlain, setPlain] = useState(!canRender);
  return (
    <section class="itemSection">
      <div class="row spread">
        <h2>{moreTexts.items.members.notes}</h2>
        {canRender && (
          <Button kind="plain" onClick={() => setPlain(!isPlain)}>
            {isPlain ? moreTexts.items.asMarkdown : moreTexts.items.asTyped}
          </Button>
        )}
      </div>
      {isPlain ? (
        <div class="plainNotes">
          <LongText text={text} most={20_000} />
        </div>
      ) : (
        <Markdown text={text} />
      )}
    </section>
  );
}
