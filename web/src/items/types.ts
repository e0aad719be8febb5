// The types of items: what they are called, and their icons.
import type { IconName } from "../components/icon.js";
import { texts } from "../texts/en.js";

/** What a type is called; the name of one that this version does not know stands as it is. */
export const typeLabel = (type: string): string =>
  (Object.hasOwn(texts.items.types, type) && (texts.items.types as Readonly<Record<string, string>>)[type]) ||
  type.slice(0, 40) ||
  texts.items.noType;

const ICONS: Readonly<Record<string, IconName>> = {
  login: "user",
  note: "list",
  card: "card",
  identity: "identity",
  secret: "key",
  "ssh-key": "terminal",
  totp: "waiting",
  "api-credential": "key",
  file: "file",
};

/** The icon of a type. */
export const typeIcon = (type: string): IconName => (Object.hasOwn(ICONS, type) ? (ICONS[type] as IconName) : "file");
