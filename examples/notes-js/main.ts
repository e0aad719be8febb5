// Notes, end-to-end encrypted: register or log in, write, change, delete. The session lasts over a reload.
import {
  Client,
  type Collection,
  type Document,
  DocumentConflict,
  InvalidRefreshToken,
  Locked,
  Refusal,
} from "@strongroom/client";

interface Note {
  title: string;
  text: string;
}

function parse(value: unknown): Note {
  const { title, text } = value as Partial<Note>;
  if (typeof title !== "string" || typeof text !== "string") throw new TypeError("This is not a note.");
  return { title, text };
}

/** The element with this id. */
function element<T extends HTMLElement>(id: string, kind: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new TypeError(`The page has no ${id}.`);
  return found;
}

const account = element("account", HTMLFormElement);
const editor = element("editor", HTMLFormElement);
const list = element("notes", HTMLUListElement);
const status = element("status", HTMLParagraphElement);
const deleteButton = element("delete", HTMLButtonElement);
const server = document.querySelector<HTMLMetaElement>('meta[name="server"]')?.content ?? location.origin;

let client: Client | undefined;
let notes: Collection<Note> | undefined;
let selected: Document<Note> | undefined;

/** Do something, and tell how it went. What is not a refusal is a fault of this program. */
async function run(doing: string, task: () => Promise<string>): Promise<void> {
  status.textContent = doing;
  try {
    status.textContent = await task();
  } catch (error) {
    if (error instanceof Locked || error instanceof InvalidRefreshToken) show(false);
    status.textContent = error instanceof Refusal ? error.message : "Something went wrong in this page.";
    if (!(error instanceof Refusal)) throw error;
  }
}

/** Show the notes, or the form to log in. */
function show(isOpen: boolean): void {
  account.hidden = isOpen;
  element("app", HTMLElement).hidden = !isOpen;
  if (!isOpen) list.replaceChildren();
  select(undefined);
}

/** Put a note into the editor; without one, an empty one. */
function select(note: Document<Note> | undefined): void {
  selected = note;
  field("title").value = note?.value.title ?? "";
  field("text").value = note?.value.text ?? "";
  deleteButton.hidden = !note;
}

function field(name: "title" | "text"): HTMLInputElement | HTMLTextAreaElement {
  const found = editor.elements.namedItem(name);
  if (!(found instanceof HTMLInputElement || found instanceof HTMLTextAreaElement)) throw new TypeError(name);
  return found;
}

async function open(opened: Client): Promise<void> {
  client = opened;
  notes = (await opened.vault("personal", { create: true })).collection<Note>("notes", { parse });
  await refresh();
  show(true);
}

/** Read all notes anew. */
async function refresh(): Promise<void> {
  const items: HTMLLIElement[] = [];
  for await (const note of notes ?? []) {
    const button = document.createElement("button");
    button.textContent = note.value.title;
    button.addEventListener("click", () => select(note));
    const item = document.createElement("li");
    item.append(button);
    items.push(item);
  }
  list.replaceChildren(...items.reverse());
}

async function save(value: Note): Promise<string> {
  if (!notes) throw new Locked();
  try {
    await (selected ? notes.replace(selected, value) : notes.create(value));
  } catch (error) {
    if (!(error instanceof DocumentConflict)) throw error;
    await notes.create(value); // both stay: nothing that somebody has typed is lost
  }
  await refresh();
  select(undefined);
  return "Saved.";
}

account.addEventListener("submit", (event) => {
  event.preventDefault();
  const form = new FormData(account, event.submitter);
  const [email, password] = [String(form.get("email")), String(form.get("password"))];
  void run("Opening…", async () => {
    const opened = new Client(server, { deviceName: "Notes in a browser" });
    await (form.get("action") === "register" ? opened.register(email, password) : opened.login(email, password));
    await opened.saveSession();
    account.reset();
    await open(opened);
    return "Open.";
  });
});

editor.addEventListener("submit", (event) => {
  event.preventDefault();
  void run("Saving…", () => save({ title: field("title").value, text: field("text").value }));
});

element("new", HTMLButtonElement).addEventListener("click", () => select(undefined));

deleteButton.addEventListener("click", () => {
  void run("Deleting…", async () => {
    if (notes && selected) await notes.delete(selected);
    await refresh();
    select(undefined);
    return "Deleted.";
  });
});

element("logout", HTMLButtonElement).addEventListener("click", () => {
  void run("Logging out…", async () => {
    await client?.logout();
    show(false);
    return "Logged out.";
  });
});

void run("", async () => {
  try {
    await open(await Client.resume());
    return "Open.";
  } catch (error) {
    if (error instanceof Locked) return "Log in, or register.";
    throw error;
  }
});
