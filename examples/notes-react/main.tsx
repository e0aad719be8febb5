// Notes in React that work without a network: everything is read and written on this device, and synced when it can be.
import { type FormEvent, StrictMode, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";
import { Client, Locked, Refusal } from "@strongroom/client";
import { useCollection, useConflicts, useSync } from "@strongroom/client/react";
import {
  type Conflict,
  deleteReplica,
  keepMine,
  keepTheirs,
  openReplica,
  type Replica,
  type ReplicaCollection,
} from "@strongroom/client/replica";

interface Note {
  title: string;
  text: string;
}

function parse(value: unknown): Note {
  const { title, text } = value as Partial<Note>;
  if (typeof title !== "string" || typeof text !== "string") throw new TypeError("This is not a note.");
  return { title, text };
}

/** What is there once somebody has logged in. */
interface Opened {
  client: Client;
  replica: Replica;
  notes: ReplicaCollection<Note>;
}

const server = document.querySelector<HTMLMetaElement>('meta[name="server"]')?.content ?? location.origin;
const told = (error: unknown): string =>
  error instanceof Refusal ? error.message : "Something went wrong in this page.";

async function open(client: Client): Promise<Opened> {
  const replica = await openReplica(client, "notes");
  if (replica.isNew) await replica.sync(); // the vault may be there already
  const vault = await replica.vault("personal", { create: true });
  return { client, replica, notes: vault.collection<Note>("notes", { parse }) };
}

async function leave({ client, replica }: Opened): Promise<void> {
  await replica.sync();
  await replica.close();
  await deleteReplica("notes");
  await client.logout();
}

/** The session of before; not in an effect, which React may run twice. */
const resumed = Client.resume().then(open);

function App() {
  const [opened, setOpened] = useState<Opened>();
  const [status, setStatus] = useState("Opening…");
  const run = async (task: () => Promise<Opened | undefined>, done: string): Promise<void> => {
    try {
      setOpened(await task());
      setStatus(done);
    } catch (error) {
      setStatus(error instanceof Locked ? "Log in, or register." : told(error));
    }
  };
  useEffect(() => void run(() => resumed, ""), []);
  const enter = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget, (event.nativeEvent as SubmitEvent).submitter);
    const [email, password] = [String(form.get("email")), String(form.get("password"))];
    setStatus("Opening…");
    void run(async () => {
      const client = new Client(server, { deviceName: "Notes in React" });
      await (form.get("action") === "register" ? client.register(email, password) : client.login(email, password));
      await client.saveSession();
      return open(client);
    }, "");
  };
  return (
    <main>
      <h1>Notes</h1>
      {opened ? (
        <Notes opened={opened} onLeave={() => void run(async () => void (await leave(opened)), "Logged out.")} />
      ) : (
        <form onSubmit={enter}>
          <label>
            Email <input name="email" type="email" autoComplete="username" required />
          </label>
          <label>
            Password <input name="password" type="password" autoComplete="current-password" required />
          </label>
          <button type="submit" name="action" value="login">
            Log in
          </button>
          <button type="submit" name="action" value="register">
            Register
          </button>
        </form>
      )}
      <p role="status">{status}</p>
    </main>
  );
}

function Notes({ opened: { replica, notes }, onLeave }: { opened: Opened; onLeave: () => void }) {
  const [search, setSearch] = useState("");
  const { documents } = useCollection(notes, { search, sort: (one, other) => other.updatedAt - one.updatedAt });
  const { pending, error } = useSync(replica);
  const { conflicts } = useConflicts(replica);
  const [selected, setSelected] = useState<string>();
  const note = documents.find(({ uid }) => uid === selected);
  const save = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const value = { title: String(form.get("title")), text: String(form.get("text")) };
    void (note ? notes.replace(note, value) : notes.create(value)).then(() => setSelected(undefined));
    event.currentTarget.reset();
  };
  return (
    <>
      <label>
        Search <input value={search} onChange={(event) => setSearch(event.target.value)} />
      </label>
      <ul aria-label="Notes">
        {documents.map(({ uid, value }) => (
          <li key={uid}>
            <button type="button" onClick={() => setSelected(uid)}>
              {value.title}
            </button>
          </li>
        ))}
      </ul>
      <form key={note?.proof ?? "new"} onSubmit={save}>
        <label>
          Title <input name="title" defaultValue={note?.value.title} required />
        </label>
        <label>
          Text <textarea name="text" rows={6} defaultValue={note?.value.text} />
        </label>
        <button type="submit">Save</button>
        {note && (
          <button type="button" onClick={() => void notes.delete(note)}>
            Delete
          </button>
        )}
      </form>
      {conflicts.map((conflict) => (
        <Decision key={conflict.uid} conflict={conflict} />
      ))}
      <p>
        {pending ? `${pending} to send.` : "Everything is sent."} {error && told(error)}
      </p>
      <button type="button" onClick={onLeave}>
        Log out
      </button>
    </>
  );
}

function Decision({ conflict }: { conflict: Conflict }) {
  const title = (value: unknown): string => (value as Partial<Note> | null)?.title ?? "deleted";
  return (
    <p className="conflict">
      Changed here and elsewhere:
      <button type="button" onClick={() => void conflict.resolve(keepMine)}>
        Keep mine: {title(conflict.mine.raw)}
      </button>
      <button type="button" onClick={() => void conflict.resolve(keepTheirs)}>
        Keep theirs: {title(conflict.theirs.raw)}
      </button>
    </p>
  );
}

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <App />
    </StrictMode>,
  );
