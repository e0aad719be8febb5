// Sessions that are saved in a file, on the server at URL, whose access tokens live for four seconds.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { coreOf } from "../src/client.js";
import { Client, Invalid, InvalidRefreshToken, Locked, Tampered, Unreachable } from "../src/index.js";
import { sessionFile } from "../src/node.js";
import { hashCheaply } from "./cheapHashing.js";

hashCheaply();
const url = process.env.URL ?? "";
const PASSWORD = "correct horse battery staple";
const NEW = "another horse, another staple";

interface Person {
  readonly client: Client;
  readonly email: string;
  readonly path: string;
}

async function person(): Promise<Person> {
  const email = `person-${randomUUID()}@example.com`;
  const client = new Client(url);
  await client.register(email, PASSWORD);
  await (await client.vault("v", { create: true })).collection("notes").create("sealed");
  return { client, email, path: join(await mkdtemp(join(tmpdir(), "session-")), "session") };
}

const notesOf = async (client: Client): Promise<unknown[]> => {
  const found: unknown[] = [];
  for await (const note of (await client.vault("v")).collection("notes")) found.push(note.value);
  return found;
};

const fault =
  (field: RegExp) =>
  (error: unknown): boolean =>
    error instanceof Invalid && field.test(error.message);

test("a session that is forgotten is gone here, and open on the server", async () => {
  const { client, path, email } = await person();
  await client.saveSession(await sessionFile(path));
  assert.equal(client.email, email);
  assert.equal(client.hasRecoveryKey, false);
  await Client.forget(await sessionFile(path));
  await assert.rejects(
    sessionFile(path).then((place) => Client.resume(place)),
    Locked,
  );
  // Another device looks: this one's token may have expired by now, and what would give it the next one is forgotten.
  const other = new Client(url);
  await other.login(email, PASSWORD);
  assert.equal((await other.sessions()).length, 2);
  await other.makeRecoveryKey(PASSWORD);
  assert.equal(other.hasRecoveryKey, true);
});

test("a session is resumed without the password; the file is its owner's alone, and shows nothing", async () => {
  const { client, email, path } = await person();
  await client.saveSession(await sessionFile(path));
  const tokens = await coreOf(client).session.tokens();
  client.close();
  assert.equal((await stat(path)).mode & 0o777, 0o600);
  const spelled = await readFile(path, "utf-8");
  for (const secret of [PASSWORD, email, ...tokens, 'sealed"', '"v"'])
    assert.ok(!spelled.includes(secret) || secret === 'sealed"');
  const again = await Client.resume(await sessionFile(path), { email: ` ${email.toUpperCase()}` });
  assert.deepEqual(await notesOf(again), ["sealed"]);
  await again.changePassword(PASSWORD, NEW);
  await again.rotateKeys(NEW);
  assert.deepEqual(await notesOf(await Client.resume(await sessionFile(path))), ["sealed"]);
});

test("what was seen is remembered", async () => {
  const { client, path } = await person();
  await client.saveSession(await sessionFile(path));
  const vault = await client.vault("v");
  const note = await vault.collection("notes").create("seen before the lock");
  await client.lock();
  await assert.rejects(client.sessions(), Locked);
  const { device } = coreOf(await Client.resume(await sessionFile(path)));
  assert.equal(device.known(vault.uid, note.uid)?.version, 1);
});

test("clients that share a session take turns, and none is logged out", async () => {
  const { client, path } = await person();
  await client.saveSession(await sessionFile(path));
  const others = await Promise.all([1, 2].map(async () => Client.resume(await sessionFile(path))));
  await Promise.all(
    [client, ...others].map(async (one) => {
      const seen = new Set<string>();
      while (seen.size < 2) {
        await one.sessions();
        seen.add((await coreOf(one).session.tokens())[1]);
      }
    }),
  );
  await Client.resume(await sessionFile(path)).then((one) => one.sessions());
});

test("a logout ends it for all, and deletes the file", async () => {
  const { client, path } = await person();
  await client.saveSession(await sessionFile(path));
  const other = await Client.resume(await sessionFile(path));
  await client.logout();
  await assert.rejects(stat(path));
  await assert.rejects(other.sessions(), InvalidRefreshToken);
  await assert.rejects(
    sessionFile(path).then((place) => Client.resume(place)),
    Locked,
  );
});

test("a file that is damaged, of another account, or that others could have read or replaced is refused", async () => {
  const { client, path } = await person();
  const mallory = await person();
  const resume = async (from = path): Promise<Client> => Client.resume(await sessionFile(from));
  await client.saveSession(await sessionFile(path));
  await assert.rejects(Client.resume(await sessionFile(path), { email: mallory.email }), fault(/another account/));
  await assert.rejects(mallory.client.saveSession(await sessionFile(path)), fault(/another account/));
  await symlink(path, `${path}-link`);
  await assert.rejects(resume(`${path}-link`), fault(/symbolic link/));
  const whole = await readFile(path, "utf-8");
  const { sealed } = JSON.parse(whole) as { sealed: string };
  const changed = sealed.slice(0, 100) + (sealed[100] === "A" ? "B" : "A") + sealed.slice(101);
  for (const [content, said] of [
    [whole.slice(0, -9), /cut off/],
    [whole.replace(sealed, changed), /damaged/],
    ["{}", /is not a session file/],
  ] as const) {
    await writeFile(path, content);
    await assert.rejects(resume(), fault(said));
    assert.equal(await readFile(path, "utf-8"), content);
  }
  await writeFile(path, whole);
  await chmod(path, 0o640);
  await assert.rejects(resume(), fault(/can be read by others \(mode 640\)/));
  const shared = join(path, "..", "shared");
  await mkdir(shared);
  await chmod(shared, 0o777);
  await assert.rejects(sessionFile(join(shared, "session")), fault(/others can replace it/));
  const token = await (await client.vault("v")).token("agent");
  await assert.rejects((await Client.withToken(url, token)).saveSession(await sessionFile(path)), Locked);
});

/** Sends what a test asks for with a session's access token. */
async function ask(client: Client, method: string, path: string): Promise<void> {
  const [access] = await coreOf(client).session.tokens();
  const answer = await fetch(url + path, { method, headers: { authorization: `Bearer ${access}` } });
  assert.equal(answer.status, 200);
}

const inTwo = (path: string) => sessionFile(path, { needsServer: true });

test("a session that needs the server is resumed with it, changed and shared, and opens nothing without it", async () => {
  const { client, email, path } = await person();
  await client.saveSession(await inTwo(path));
  const key = Buffer.from(coreOf(client).keyring().reveal().key.reveal());
  const spelled = await readFile(path);
  for (const kept of [key, Buffer.from(key.toString("base64")), Buffer.from(email)]) assert.ok(!spelled.includes(kept));
  const cut: typeof fetch = () => Promise.reject(new TypeError("no network"));
  await assert.rejects(Client.resume(await inTwo(path), { fetch: cut, retries: 0 }), Unreachable);
  const others = [client];
  for (let count = 0; count < 3; count += 1) others.push(await Client.resume(await inTwo(path), { email }));
  await Promise.all(
    others.map(async (one) => {
      const seen = new Set<string>();
      while (seen.size < 2) {
        await one.sessions();
        seen.add((await coreOf(one).session.tokens())[1]);
      }
    }),
  );
  await client.vault("another", { create: true });
  const again = await Client.resume(await inTwo(path));
  assert.equal((await again.vaults()).length, 2);
  await again.changePassword(PASSWORD, NEW);
  await again.rotateKeys(NEW);
  assert.deepEqual(await notesOf(await Client.resume(await inTwo(path))), ["sealed"]);
  assert.equal((await again.sessions()).length, 1);
});

test("a response that is lost at a refresh loses neither the session nor the share", async () => {
  const { client, path } = await person();
  await client.saveSession(await inTwo(path));
  let lost = 0;
  const losing: typeof fetch = async (input, init) => {
    const answer = await fetch(input, init);
    if (!(input as Request).url.endsWith("/auth/refresh") || lost++ > 1) return answer;
    throw new TypeError("the connection was reset");
  };
  const again = await Client.resume(await inTwo(path), { fetch: losing });
  assert.ok(lost > 1);
  assert.deepEqual(await notesOf(again), ["sealed"]);
  assert.deepEqual(await notesOf(await Client.resume(await inTwo(path))), ["sealed"]);
});

test("a share that is deleted opens nothing; an open client gives it to the server again", async () => {
  const { client, path } = await person();
  await client.saveSession(await inTwo(path));
  await ask(client, "DELETE", "/auth/key-share");
  const before = (await coreOf(client).session.tokens())[1];
  while ((await coreOf(client).session.tokens())[1] === before) await client.sessions();
  const again = await Client.resume(await inTwo(path));
  assert.deepEqual(await notesOf(again), ["sealed"]);
  await ask(again, "DELETE", "/auth/key-share");
  const copy = await readFile(path);
  await assert.rejects(Client.resume(await inTwo(path)), Locked);
  await assert.rejects(stat(path));
  await writeFile(path, copy, { mode: 0o600 });
  await assert.rejects(Client.resume(await inTwo(path)), InvalidRefreshToken); // it was ended with that
});

test("a copy of the file opens nothing after a logout, a forgotten session that is ended, or another save", async () => {
  const { client, email, path } = await person();
  const refused = async (copy: Buffer, kind: typeof InvalidRefreshToken | typeof Invalid): Promise<void> => {
    await writeFile(path, copy, { mode: 0o600 });
    await assert.rejects(Client.resume(await inTwo(path)), kind);
  };
  await client.saveSession(await inTwo(path));
  const first = await readFile(path);
  await client.saveSession(await inTwo(path));
  const second = await readFile(path);
  await refused(first, Invalid); // of the same session, with another share
  await writeFile(path, second, { mode: 0o600 });
  const end = await Client.forget(await inTwo(path));
  await assert.rejects(stat(path));
  assert.equal(await end(), true);
  await refused(second, InvalidRefreshToken);
  const other = new Client(url);
  await other.login(email, PASSWORD);
  await other.saveSession(await inTwo(path));
  const third = await readFile(path);
  const last = new Client(url);
  await last.login(email, PASSWORD);
  await last.saveSession(await inTwo(path)); // in its place: the other session is ended
  while ((await last.sessions()).length > 1) await new Promise((go) => setTimeout(go, 20));
  const fourth = await readFile(path);
  await refused(third, InvalidRefreshToken);
  await writeFile(path, fourth, { mode: 0o600 });
  assert.equal(await last.leave(), true);
  await assert.rejects(last.sessions(), Locked);
  await assert.rejects(stat(path));
  await refused(fourth, InvalidRefreshToken);
});

test("a client that leaves without a network forgets at once, and tells the server when it is back", async () => {
  const { client, email, path } = await person();
  await client.saveSession(await inTwo(path));
  client.close();
  const copy = await readFile(path);
  let isCut = false;
  const through: typeof fetch = (input, init) =>
    isCut ? Promise.reject(new TypeError("no network")) : fetch(input, init);
  const leaving = await Client.resume(await inTwo(path), { fetch: through });
  isCut = true;
  const left = leaving.leave();
  await assert.rejects(leaving.sessions(), Locked);
  while (await stat(path).catch(() => undefined)) await new Promise((go) => setTimeout(go, 20));
  await writeFile(path, copy, { mode: 0o600 });
  const thief = await Client.resume(await inTwo(path)); // until then, who has the file and a network opens it
  assert.equal(thief.email, email);
  isCut = false;
  assert.equal(await left, true);
  await assert.rejects(thief.sessions(), InvalidRefreshToken);
});

test("a server that gives another share is refused, and what is saved stays", async () => {
  const { client, path } = await person();
  await client.saveSession(await inTwo(path));
  const lying =
    (keyShare: unknown): typeof fetch =>
    async (input, init) => {
      const answer = await fetch(input, init);
      if (!(input as Request).url.endsWith("/auth/refresh")) return answer;
      return Response.json({ ...((await answer.json()) as object), keyShare });
    };
  for (const [share, kind] of [
    [Buffer.alloc(32).toString("base64"), Invalid],
    ["AAAA", Invalid],
    ["", Invalid],
    ["no base64", Tampered],
    [7, Tampered],
    [{}, Tampered],
  ] as const) {
    await assert.rejects(Client.resume(await inTwo(path), { fetch: lying(share), retries: 0 }), kind, String(share));
  }
  assert.deepEqual(await notesOf(await Client.resume(await inTwo(path))), ["sealed"]);
});
