// A small page in React: the hooks, as an app uses them.
import { createElement as h, StrictMode, useState } from "react";
import { createRoot } from "react-dom/client";
import { Client } from "../src/client.js";
import { useCollection, useConflicts, useDocument, useSync } from "../src/react.js";
import { keepMine, keepTheirs, openReplica, type Replica, type ReplicaVault } from "../src/replica.js";
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
let renders = 0;
let replica: Replica | undefined;

function App({ of, vault }: { of: Replica | undefined; vault: ReplicaVault | undefined }) {
  renders += 1;
  const [search, setSearch] = useState("");
  const [name, setName] = useState("notes");
  const notes = vault?.collection(name); // another object each time
  const { documents, isReady, error } = useCollection(notes, {
    search,
    sort: (one, other) => (String(one.value) < String(other.value) ? -1 : 1),
  });
  const { document } = useDocument(notes, documents[0]?.uid);
  const { pending, isSyncing, error: fault, sync } = useSync(of);
  const { conflicts } = useConflicts(of);
  return h(
    "main",
    null,
    h("input", { id: "search", value: search, onChange: (event) => setSearch(event.target.value) }),
    h(
      "ul",
      null,
      documents.map(({ uid, value }) => h("li", { key: uid }, String(value))),
    ),
    h("p", { id: "first" }, String(document?.value)),
    h(
      "p",
      { id: "state" },
      isReady ? `${pending} to send, ${conflicts.length} to decide` : "not ready",
      error?.message,
      fault?.message,
    ),
    h("button", { type: "button", id: "sync", disabled: isSyncing, onClick: () => void sync() }, "Sync"),
    h("button", { type: "button", id: "elsewhere", onClick: () => setName("elsewhere") }, "Elsewhere"),
    h(
      "button",
      { type: "button", id: "write", onClick: () => void notes?.create(`written here ${documents.length}`) },
      "Write",
    ),
    conflicts.map((conflict) =>
      h(
        "p",
        { key: conflict.uid, className: "conflict" },
        `${String(conflict.base?.value)}, ${String(conflict.mine.value)}, ${String(conflict.theirs.value)}`,
        h("button", { type: "button", className: "mine", onClick: () => void conflict.resolve(keepMine) }, "Mine"),
        h(
          "button",
          { type: "button", className: "theirs", onClick: () => void conflict.resolve(keepTheirs) },
          "Theirs",
        ),
      ),
    ),
  );
}

/** Show the page before anything is open, then open the replica. */
export async function begin(url: string, email: string, password: string): Promise<void> {
  const place = document.body.appendChild(document.createElement("div"));
  const root = createRoot(place);
  const show = (of?: Replica, vault?: ReplicaVault): void => root.render(h(StrictMode, null, h(App, { of, vault })));
  show();
  const client = new Client(url);
  await client.login(email, password);
  replica = await openReplica(client, "react");
  await replica.sync();
  show(replica, await replica.vault("v"));
}

/** What the page shows, once this occurs in it. */
export async function shows(text: string): Promise<string> {
  while (!document.body.innerText.includes(text)) await new Promise((go) => setTimeout(go, 20));
  return document.body.innerText;
}

/** The document by itself, once it is this one. */
export async function first(text: string): Promise<string> {
  const shown = (): string => document.querySelector<HTMLElement>("#first")?.innerText ?? "";
  while (shown() !== text) await new Promise((go) => setTimeout(go, 20));
  return shown();
}

/** The items of the list, once there are so many. */
export async function listed(count: number): Promise<string[]> {
  const items = (): string[] => [...document.querySelectorAll("li")].map((one) => one.innerText);
  while (items().length !== count) await new Promise((go) => setTimeout(go, 20));
  return items();
}

/** Click on what a selector finds, once it is there. */
export async function click(selector: string): Promise<void> {
  const found = (): HTMLElement | null => document.querySelector(selector);
  while (!found()) await new Promise((go) => setTimeout(go, 20));
  found()?.click();
}

/** Type into the search. */
export function search(text: string): void {
  const input = document.querySelector("input");
  const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value")?.set;
  set?.call(input, text); // React listens to the real setter only
  input?.dispatchEvent(new Event("input", { bubbles: true }));
}

/** Write on this device, outside React: as another part of the page does. */
export async function replace(before: string, after: string): Promise<void> {
  const notes = (await replica?.vault("v"))?.collection("notes");
  for await (const note of notes ?? []) if (note.value === before) await notes?.replace(note, after);
}

/** How often the page was rendered. */
export const rendered = (): number => renders;
