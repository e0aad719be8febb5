// Copies what an item is about: of a login, the password.
import { field, FieldNotFound, type Item, mainField } from "@strongroom/client/items";
import { tell } from "../state/notices.js";
import { moreTexts } from "../texts/lazyTexts.js";
import { copyText } from "./copy.js";
import { memberLabel } from "./members.js";
import { sessionGuard } from "./sessionGuard.js";

/** Copy the main field of an item. */
export async function copyMain(item: Item): Promise<void> {
  const name = mainField(item);
  const isOpen = sessionGuard();
  try {
    if (!name || name === "file") throw new FieldNotFound();
    const { value, concealed } = await field(item, name);
    if (isOpen()) await copyText(value, memberLabel(name), concealed);
  } catch (fault) {
    if (!(fault instanceof FieldNotFound)) throw fault;
    tell(moreTexts.items.nothingToCopy);
  }
}
