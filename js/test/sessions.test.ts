// Sessions that are saved in a file, on the server at URL, whose access tokens live for four seconds.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { coreOf } from "../src/client.js";
import { Client, Invalid, InvalidRefreshToken, Locked } from "../src/index.js";
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
