// Differences between two versions of an item, as a table: secrets are hidden until somebody reveals them.
import type { Difference, FieldValue } from "@strongroom/client/items";
import { IconButton } from "../components/iconButton.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { LongText, ShownText, useReveal } from "./fieldRow.js";
import { memberLabel, partLabel } from "./members.js";
import { cut, sizeText } from "./shownText.js";

/** What a field is called: its section and its name. */
export const fieldLabel = ({ section, name }: { readonly section: string; readonly name: string }): string =>
  [section && partLabel(section), memberLabel(name) || moreTexts.items.unnamedField].filter(Boolean).join(" · ");

/** The value of a field, a file by its size. */
export function fieldText(field: FieldValue | undefined): string {
  if (!field) return "";
  return field.type === "file" ? sizeText(field.data.length) : field.value;
}

/** The fields that differ, each with what it was and what it is. */
export function Differences({ found }: { found: readonly Difference[] }) {
  if (!found.length) return <p class="muted">{moreTexts.time.noDifference}</p>;
  return (
    <div class="tableFrame">
      <table class="differences">
        <thead>
          <tr>
            <th scope="col">{moreTexts.time.field}</th>
            <th scope="col">{moreTexts.time.before}</th>
            <th scope="col">{moreTexts.time.after}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {found.map((one) => (
            <Line key={one.key} difference={one} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Line({ difference }: { difference: Difference }) {
  const { concealed, before, after } = difference;
  const [isShown, setShown] = useReveal();
  const isHidden = concealed && before?.type !== "file" && after?.type !== "file";
  const label = cut(fieldLabel(difference), 80);
  return (
    <tr>
      <th scope="row">
        <ShownText text={label} />
      </th>
      <Cell field={before} kind="before" isHidden={isHidden && !isShown} />
      <Cell field={after} kind="after" isHidden={isHidden && !isShown} />
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

function Cell({
  field,
  kind,
  isHidden,
}: {
  field: FieldValue | undefined;
  kind: "before" | "after";
  isHidden: boolean;
}) {
  const side = moreTexts.time[kind];
  if (!field)
    return (
      <td class="muted" data-side={side}>
        {moreTexts.time.absent}
      </td>
    );
  return (
    <td data-side={side} class={`${kind} ${field.concealed ? "mono" : ""}`}>
      {isHidden ? <span class="mask">••••••</span> : <LongText text={fieldText(field)} most={300} />}
    </td>
  );
}
