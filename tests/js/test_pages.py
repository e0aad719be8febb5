"""The TypeScript client in pages: under a strict policy, in several tabs, and what is found of secrets around it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.js.browser_files import assert_not_on_disk
from tests.kit.browsers.chromium import chromium, private_window
from tests.kit.clients.javascript import served
from tests.kit.people.credentials import unique_email
from tests.kit.servers.process import Server

# The strictest policy that a page can have which shows nothing; the server has the page's origin.
STRICT = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; connect-src 'self'; worker-src 'self'; "
    "require-trusted-types-for 'script'"
)
PASSWORD = "KANARIENVOGEL battery staple"
WRONG = "NACHTIGALL battery staple"
NOTE, VAULT, COLLECTION = "ROTKEHLCHEN", "AMSEL", "DROSSEL"

APP = """(async () => {
  const it = await import("%(url)s/app.page.js");
  window.violations = [];
  document.addEventListener("securitypolicyviolation", (event) => violations.push(event.violatedDirective));
  window.reports = [];
  const report = (error) => reports.push(
    [String(error), error?.message, error?.stack, JSON.stringify(error), JSON.stringify(error?.details)].join("\\n"));
  addEventListener("error", ({ error }) => report(error));
  addEventListener("unhandledrejection", ({ reason }) => report(reason));

  const fiveLines = async (email) => {
    const client = new it.Client("%(url)s");
    await client.register(email, "%(password)s");
    const notes = (await client.vault("%(vault)s", { create: true })).collection("%(collection)s");
    let note = await notes.create({ title: "%(note)s" });
    note = await notes.replace(note, { title: "%(note)s again" });
    const found = [];
    for await (const { value } of notes) found.push(value.title);
    return { client, notes, note, found };
  };
  const { found } = await fiveLines("first-%(email)s");

  await import("%(url)s/browser.page.js"); // from now on hashing is cheap
  const { client, notes, note } = await fiveLines("%(email)s");
  await client.saveSession();
  const vault = await client.vault("%(vault)s");
  const recovery = await client.makeRecoveryKey("%(password)s");
  const enrolment = await client.secondFactor.enrol("%(password)s");
  const token = await vault.token("agent");
  const plain = await notes.create("%(note)s");
  await vault.blob.put("%(note)s");
  const things = [plain, await vault.blob.get(), client, vault, notes, note, enrolment];
  console.log(...things, things.map(String), JSON.stringify([client, vault, enrolment]));
  const altered = async (request) => {
    const answer = await fetch(request);
    const body = await answer.text();
    const { status, headers } = answer;
    return new Response(body.replaceAll(/"data":"(.{40})./g, '"data":"$1A'), { status, headers });
  };
  const failures = [
    () => new it.Client("%(url)s").login("%(email)s", "%(wrong)s"),
    () => new it.Client("%(url)s").register("%(email)s", "%(password)s"),
    () => new it.Client("%(url)s").recover("%(email)s", recovery.slice(0, -1), "%(password)s"),
    () => it.Client.withToken("%(url)s", token.slice(0, -1)),
    () => client.changePassword("%(wrong)s", "%(password)s"),
    () => notes.replace(note, { title: Symbol("%(note)s") }),
    () => vault.collection("%(collection)s", { parse: () => { throw new Error("%(note)s"); } }).create("%(note)s"),
    async () => {
      const lied = new it.Client("%(url)s", { fetch: altered });
      await lied.login("%(email)s", "%(password)s");
      for await (const one of (await lied.vault("%(vault)s")).collection("%(collection)s")) console.log(one);
    },
  ];
  const names = [];
  for (const fail of failures) {
    const fault = await fail().then(() => null, (error) => error);
    names.push(fault?.name ?? "nothing");
    console.error(fault);
    report(fault);
    Promise.reject(fault);
  }
  const tokens = await it.coreOf(client).session.tokens();
  await new Promise((done) => setTimeout(done)); // the reports of what was rejected
  return { found, names, secrets: [recovery, enrolment.secret, token, ...tokens] };
})()"""
AROUND = """(async () => {
  const { violations, reports } = window;
  const stored = [];
  for (const { name } of await indexedDB.databases()) {
    const opening = indexedDB.open(name);
    const database = await new Promise((done) => { opening.onsuccess = () => done(opening.result); });
    for (const store of database.objectStoreNames) {
      const getting = database.transaction(store).objectStore(store).getAll();
      const rows = await new Promise((done) => { getting.onsuccess = () => done(getting.result); });
      stored.push([name, store, rows.length, JSON.stringify(rows, (_, value) => ArrayBuffer.isView(value)
        ? new TextDecoder("latin1").decode(value) : value)]);
    }
    database.close();
  }
  const caches_ = await caches.keys();
  return { violations, reports, stored, caches: caches_, cookies: document.cookie,
    local: JSON.stringify(localStorage), session: JSON.stringify(sessionStorage) };
})()"""


def test_the_five_lines_under_a_strict_policy(tmp_path: Path, server: Server) -> None:
    """They run, with Argon2id in its worker under Trusted Types; around the page no secret is found.

    Neither in localStorage, sessionStorage, IndexedDB, caches or cookies, nor in the console, nor in what a reporter of
    errors sees of wrong passwords, typos and lies; nor on disk.
    """
    (tmp_path / "browser").mkdir()
    with served(api=server.port, policy=STRICT) as url:
        told = {"url": url, "email": unique_email(), "password": PASSWORD, "wrong": WRONG}
        told |= {"note": NOTE, "vault": VAULT, "collection": COLLECTION}
        with chromium(tmp_path / "browser") as page:
            page.open(f"{url}/empty.html")
            done = page.run(APP % told)
            around = page.run(AROUND)
            reported = json.dumps(page.reported)
    assert done["found"] == [f"{NOTE} again"]
    expected = ["InvalidCredentials", "EmailAlreadyExists", "Invalid", "Invalid", "InvalidCredentials"]
    assert done["names"] == [*expected, "Invalid", "Invalid", "Tampered"]
    assert around["violations"] == []
    assert len(around["reports"]) == 2 * len(done["names"])
    assert "Tampered" in reported
    assert [store[:3] for store in around["stored"]] == [["strongroom sessions", "sessions", 1]]
    assert (around["caches"], around["cookies"], around["local"], around["session"]) == ([], "", "{}", "{}")
    secrets = [PASSWORD, WRONG, NOTE, *done["secrets"]]
    seen = {"console": reported, "reports": json.dumps(around["reports"]), "storage": json.dumps(around["stored"])}
    for place, text in seen.items():
        assert [secret for secret in secrets if secret in text] == [], place
    assert VAULT not in seen["storage"]
    assert_not_on_disk(tmp_path / "browser", [*secrets, VAULT, COLLECTION])


def test_a_page_that_allows_no_worker_is_told(server: Server) -> None:
    """Without the policy of Trusted Types, or without WebAssembly, a login is refused with what the page needs."""
    email = unique_email()
    with private_window() as page:
        for policy in (f"{STRICT}; trusted-types other", STRICT.replace(" 'wasm-unsafe-eval'", "")):
            with served(api=server.port, policy=policy) as url:
                page.open(f"{url}/empty.html")
                found: Any = page.run(
                    f"""import("{url}/app.page.js")
                    .then((it) => new it.Client("{url}").register("{email}", "{PASSWORD}"))
                    .then(() => "registered", (error) => error.name + ": " + error.message)"""
                )
            assert found.startswith("Unsupported: Argon2id could not run. A page needs 'wasm-unsafe-eval'")
            assert "strongroom in trusted-types" in found


BEGIN = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = new it.Client("%(url)s");
  await client.register("%(email)s", "%(password)s");
  await client.saveSession({ ...it.sessionDatabase("strongroom"), needsServer: false });
})()"""
# Each tab finds its token expired; to resume needs no refresh here, so that both begin with the same tokens. The one
# that refreshes waits until the other tab waits for it, or refreshes too.
REFRESH = """void (async () => {
  const it = await import("%(pages)s/browser.page.js");
  const channel = new BroadcastChannel("refreshes");
  let others = 0;
  window.refreshes = 0;
  channel.onmessage = ({ data }) => {
    others += 1;
    if (data === "refreshes" && window.refreshes) channel.postMessage("refreshes too");
  };
  let expired;
  const watched = async (request) => {
    if (request.url.endsWith("/auth/refresh")) {
      window.refreshes += 1;
      channel.postMessage("refreshes");
      while (!others && !(await navigator.locks.query()).pending.length) await new Promise((go) => setTimeout(go, 5));
    }
    if (!expired || request.headers.get("authorization") !== "Bearer " + expired) return fetch(request);
    return fetch(new Request(request, { headers: { authorization: "Bearer expired" } }));
  };
  const place = { ...it.sessionDatabase("strongroom"), needsServer: false };
  const client = await it.Client.resume(place, { fetch: watched });
  [expired] = await it.coreOf(client).session.tokens();
  window.ended = await client.sessions().then((found) => found.length, (error) => error.name);
  window.tokens = await it.coreOf(client).session.tokens();
})()"""
ENDED = """(async () => {
  while (!window.tokens && !(typeof window.ended === "string")) await new Promise((go) => setTimeout(go, 5));
  return [window.ended, window.refreshes, window.tokens];
})()"""


def test_one_tab_refreshes_for_all(server: Server) -> None:
    """Two tabs find at the same time that their token has expired: one refreshes, the other takes what it got."""
    with served() as pages, private_window() as page:
        told = {"pages": pages, "url": f"http://localhost:{server.port}", "email": unique_email(), "password": PASSWORD}
        first = page.open(f"{pages}/empty.html")
        page.run(BEGIN % told)
        second = page.open(f"{pages}/empty.html")
        for tab in (first, second):
            page.show(tab)
            page.run(REFRESH % told)
        ends: list[Any] = []
        for tab in (first, second):
            page.show(tab)
            ends.append(page.run(ENDED))
    (one, refreshed, tokens), (other, refreshed_too, others) = ends
    assert (one, other) == (1, 1)
    assert refreshed + refreshed_too == 1
    assert tokens == others
