// Conflicts: what was changed here and elsewhere, side by side with what both began from.
import { DocumentConflict } from "@strongroom/client";
import {
  type Clash,
  type Difference,
  differences,
  type FieldValue,
  fromStored,
  type Item,
  ITEMS,
  merge,
  toStored,
} from "@strongroom/client/items";
import {
  type BlobConflict,
  type Conflict,
  keepBoth,
  keepMine,
  keepTheirs,
  merged,
  type Resolver,
} from "@strongroom/client/replica";
import { useId, useMemo, useState } from "preact/hooks";
import { Button } from "../components/button.js";
import { EmptyState } from "../components/emptyState.js";
import { Icon } from "../components/icon.js";
import { IconButton } from "../components/iconButton.js";
import { fieldLabel, fieldText } from "../items/differences.js";
import { entryOf } from "../items/entries.js";
import { tellFault } from "../items/faults.js";
import { LongText, ShownText, useReveal } from "../items/fieldRow.js";
import { Json } from "../items/jsonDocument.js";
import { cut, oneLine, timeText } from "../items/shownText.js";
import { vaultByUid } from "../items/vaultByUid.js";
import { tell } from "../state/notices.js";
import { syncNow, useOpen, vaults } from "../state/session.js";
import { useStore } from "../state/store.js";
import { texts } from "../texts/en.js";
import { moreTexts } from "../texts/lazyTexts.js";

type Side = "mine" | "theirs";

/** The view "conflicts"; `parts` may name one by the uids of its vault and document, which is then the first. */
export function ConflictsView({ parts: [vault, uid] }: { parts: readonly string[] }) {
  const { replica } = useOpen();
  const { conflicts, blobConflicts } = useStore(replica.undecided);
  const isFirst = (one: Conflict): number => (one.vault === vault && one.uid === uid ? 0 : 1);
  const ordered = [...conflicts].sort((one, other) => isFirst(one) - isFirst(other));
  return (
    <div class="page wide">
      <header class="pageHead">
        <div>
          <h1>{moreTexts.time.conflicts}</h1>
          <p class="muted">{moreTexts.time.conflictsNote}</p>
        </div>
      </header>
      {!conflicts.length && !blobConflicts.length && <EmptyState icon="check" title={moreTexts.time.noConflicts} />}
      {ordered.map((conflict) => (
        <ConflictCard key={`${conflict.uid} ${conflict.mine.proof} ${conflict.theirs.proof}`} conflict={conflict} />
      ))}
      {blobConflicts.map((conflict) => (
        <BlobCard key={conflict.vault} conflict={conflict} />
      ))}
    </div>
  );
}

/** Decide a conflict, and tell how that went. */
async function decide(conflict: Conflict, how: Resolver): Promise<void> {
  try {
    await conflict.resolve(how);
    tell(moreTexts.time.resolved);
    syncNow();
  } catch (fault) {
    if (fault instanceof DocumentConflict) tell(moreTexts.time.moved, { kind: "fault" });
    else tellFault(fault);
  }
}

function ConflictCard({ conflict }: { conflict: Conflict }) {
  const { base, mine, theirs, collection, needsManualResolution } = conflict;
  const known = useStore(vaults);
  const [isBusy, setBusy] = useState(false);
  const title = entryOf(mine.deleted ? theirs : mine).title || texts.items.untitled;
  const vault = known.find(({ uid }) => uid === conflict.vault)?.name ?? "";
  const sides = useMemo(
    () => (collection === ITEMS && !mine.deleted && !theirs.deleted ? itemsOf(mine.raw, theirs.raw) : undefined),
    [mine, theirs],
  );
  const run = async (how: Resolver): Promise<void> => {
    setBusy(true);
    await decide(conflict, how);
    setBusy(false);
  };
  return (
    <section class="conflict" aria-label={oneLine(title, 100)}>
      <header>
        <h2>
          <ShownText text={title} />
        </h2>
        <p class="muted small">
          <ShownText text={oneLine(vault, 60)} /> · {moreTexts.time.mine}: {timeText(mine.updatedAt)}
          {" · "}
          {moreTexts.time.theirs}: {timeText(theirs.updatedAt)}
        </p>
      </header>
      {needsManualResolution && (
        <p class="notice warning">
          <Icon name="warning" />
          {moreTexts.time.oldServer}
        </p>
      )}
      {sides ? (
        <FieldChoice
          base={base && !base.deleted ? fromStored(base.raw) : undefined}
          {...sides}
          isBusy={isBusy}
          onSave={(item) => void run(() => merged(toStored(item)))}
        />
      ) : (
        <div class="sides three">
          {(
            [
              ["base", base],
              ["mine", mine],
              ["theirs", theirs],
            ] as const
          ).map(([name, document]) => (
            <div key={name}>
              <h3>{moreTexts.time[name]}</h3>
              {!document ? (
                <p class="muted">{moreTexts.time.unknownBase}</p>
              ) : document.deleted ? (
                <p class="muted">{moreTexts.time.isDeleted}</p>
              ) : (
                <SideValue raw={document.raw} isItem={collection === ITEMS} />
              )}
            </div>
          ))}
        </div>
      )}
      <div class="row">
        <Button isDisabled={isBusy} onClick={() => void run(keepMine)}>
          {moreTexts.time.keepMine}
        </Button>
        <Button isDisabled={isBusy} onClick={() => void run(keepTheirs)}>
          {moreTexts.time.keepTheirs}
        </Button>
        {!mine.deleted && (
          <Button isDisabled={isBusy} onClick={() => void run(keepBoth)}>
            {moreTexts.time.keepBothOf}
          </Button>
        )}
      </div>
    </section>
  );
}

/** Two items, if they can be compared field by field: both fit their type, and it is the same. */
function itemsOf(one: unknown, other: unknown): { mine: Item; theirs: Item } | undefined {
  const [mine, theirs] = [fromStored(one), fromStored(other)];
  const isSameType = typeNameOf(mine) === typeNameOf(theirs);
  return isSameType && !("problem" in mine && mine.problem) && !("problem" in theirs && theirs.problem)
    ? { mine, theirs }
    : undefined;
}

const typeNameOf = (item: Item): string => (item.type === "" ? item.typeName : item.type);

/** One side of a conflict that is not chosen field by field: an item by its title, for it may hold secrets. */
function SideValue({ raw, isItem }: { raw: unknown; isItem: boolean }) {
  const [isShown, setShown] = useReveal();
  if (!isItem) return <Json value={raw} />;
  return (
    <>
      <p>
        <ShownText text={oneLine(fromStored(raw).title ?? "") || texts.items.untitled} />
      </p>
      <Button kind="plain" icon={isShown ? "eyeOff" : "eye"} onClick={() => setShown(!isShown)}>
        {isShown ? moreTexts.items.hide(moreTexts.items.json) : moreTexts.items.reveal(moreTexts.items.json)}
      </Button>
      {isShown && <Json value={raw} />}
    </>
  );
}

interface FieldChoiceProps {
  base: Item | undefined;
  mine: Item;
  theirs: Item;
  isBusy: boolean;
  onSave: (item: Item) => void;
}

/** The fields that differ. Those that both sides changed are chosen; of the others, the side counts that changed them. */
function FieldChoice({ base, mine, theirs, isBusy, onSave }: FieldChoiceProps) {
  const id = useId();
  const [chosen, setChosen] = useState<ReadonlyMap<string, Side>>(new Map());
  const both = useMemo(() => merge(base, mine, theirs), [base, mine, theirs]);
  const differing = useMemo(() => differences(mine, theirs), [mine, theirs]);
  const save = (): void => onSave(merge(base, mine, theirs, ({ key }) => chosen.get(key) ?? "mine").item);
  const clashOf = ({ key }: Difference): Clash | undefined => both.clashes.find((clash) => clash.key === key);
  const changedHere = useMemo(() => new Set(base ? differences(base, mine).map(({ key }) => key) : []), [base, mine]);
  const sure = differing.filter((one) => !clashOf(one)).length;
  return (
    <>
      <div class="tableFrame">
        <table class="differences three">
          <thead>
            <tr>
              <th scope="col">{moreTexts.time.field}</th>
              <th scope="col">{moreTexts.time.base}</th>
              <th scope="col">{moreTexts.time.mine}</th>
              <th scope="col">{moreTexts.time.theirs}</th>
              <td />
            </tr>
          </thead>
          <tbody>
            {differing.map((one) => {
              const clash = clashOf(one);
              const was = clash ? clash.base : changedHere.has(one.key) ? one.after : one.before;
              const side: Side = clash
                ? (chosen.get(one.key) ?? "mine")
                : changedHere.has(one.key) || !base
                  ? "mine"
                  : "theirs";
              return (
                <ChoiceLine
                  key={one.key}
                  group={`${id} ${one.key}`}
                  difference={one}
                  base={base ? was : undefined}
                  side={side}
                  onChoose={clash && ((next) => setChosen((before) => new Map(before).set(one.key, next)))}
                />
              );
            })}
          </tbody>
        </table>
      </div>
      {sure > 0 && <p class="muted small">{moreTexts.time.sameOnBoth(sure)}</p>}
      <div class="row">
        <Button kind="primary" isBusy={isBusy} onClick={save}>
          {moreTexts.time.mergeFields}
        </Button>
      </div>
    </>
  );
}

interface ChoiceLineProps {
  /** The name of its radio buttons, which no other line of the page has. */
  group: string;
  /** `before` is mine, `after` theirs. */
  difference: Difference;
  base: FieldValue | undefined;
  side: Side;
  /** Absent where only one side has changed the field. */
  onChoose: ((side: Side) => void) | undefined;
}

function ChoiceLine({ group, difference, base, side, onChoose }: ChoiceLineProps) {
  const { concealed, before: mine, after: theirs } = difference;
  const [isShown, setShown] = useReveal();
  const isHidden = concealed && mine?.type !== "file" && theirs?.type !== "file";
  const label = cut(fieldLabel(difference), 80);
  const cell = (name: Side, field: FieldValue | undefined) => (
    <td class={side === name ? "chosen" : ""} data-side={moreTexts.time[name]}>
      {onChoose ? (
        <label class="choice">
          <input
            type="radio"
            name={group}
            checked={side === name}
            aria-label={`${moreTexts.time.choose(label)}: ${moreTexts.time[name]}`}
            onChange={() => onChoose(name)}
          />
          <Value field={field} isHidden={isHidden && !isShown} />
        </label>
      ) : (
        <span class="choice">
          {side === name && <Icon name="check" />}
          <Value field={field} isHidden={isHidden && !isShown} />
        </span>
      )}
    </td>
  );
  return (
    <tr>
      <th scope="row">
        <ShownText text={label} />
      </th>
      <td data-side={moreTexts.time.base}>
        <Value field={base} isHidden={isHidden && !isShown} />
      </td>
      {cell("mine", mine)}
      {cell("theirs", theirs)}
      <td class="fieldActions">
        {isHidden && (
          <IconButton
            icon={isShown ? "eyeOff" : "eye"}
            label={isShown ? moreTexts.items.hide(label) : moreTexts.items.reveal(label)}
            isPressed={isShown}
            onClick={() => setShown(!isShown)}
          />
        )}
      </td>
    </tr>
  );
}

function Value({ field, isHidden }: { field: FieldValue | undefined; isHidden: boolean }) {
  if (!field) return <span class="muted">{moreTexts.time.absent}</span>;
  if (isHidden) return <span class="mask">••••••</span>;
  return (
    <span class={field.concealed ? "mono" : ""}>
      <LongText text={fieldText(field)} most={300} />
    </span>
  );
}

/** The one value of a vault that a restored server has gone on without. */
function BlobCard({ conflict }: { conflict: BlobConflict }) {
  const { client } = useOpen();
  const name = useStore(vaults).find(({ uid }) => uid === conflict.vault)?.name ?? "";
  const [isBusy, setBusy] = useState(false);
  const run = async (isMine: boolean): Promise<void> => {
    setBusy(true);
    try {
      if (isMine) {
        const { blob } = await vaultByUid(client, { uid: conflict.vault, name });
        await blob.put(conflict.mine, { after: await blob.get() });
      }
      await conflict.discard();
      tell(moreTexts.time.resolved);
    } catch (fault) {
      tellFault(fault);
    }
    setBusy(false);
  };
  return (
    <section class="conflict">
      <header>
        <h2>{moreTexts.time.blobTitle(oneLine(name, 60))}</h2>
        <p class="muted small">{moreTexts.time.blobWhat}</p>
      </header>
      <div class="sides">
        <div>
          <h3>{moreTexts.time.mine}</h3>
          <Json value={conflict.mine} />
        </div>
        <div>
          <h3>{moreTexts.time.theirs}</h3>
          {conflict.theirs === undefined ? (
            <p class="muted">{moreTexts.time.absent}</p>
          ) : (
            <Json value={conflict.theirs} />
          )}
        </div>
      </div>
      <div class="row">
        <Button isDisabled={isBusy} onClick={() => void run(true)}>
          {moreTexts.time.blobKeep}
        </Button>
        <Button isDisabled={isBusy} onClick={() => void run(false)}>
          {moreTexts.time.blobDiscard}
        </Button>
      </div>
    </section>
  );
}
