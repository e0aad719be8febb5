"""Sessions of the TypeScript client that last: in a file of Node.js, and in a browser's IndexedDB."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.js.browser_files import assert_not_on_disk
from tests.kit.browsers import profile_files
from tests.kit.browsers.chromium import Page, chromium
from tests.kit.clients.javascript import run_test, served
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.live_server import live_server
from tests.kit.servers.process import Server


@pytest.fixture(scope="session")
def short_lived(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose access tokens live for four seconds."""
    with live_server(tmp_path_factory.mktemp("short"), JWT_ACCESS_EXPIRY="4s") as running:
        yield running


def test_in_a_file(short_lived: Server) -> None:
    """Saved, resumed, shared and refused: js/test/sessions.test.ts."""
    run_test("sessions", URL=f"http://127.0.0.1:{short_lived.port}")


BEGIN = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = new it.Client("%(url)s");
  await client.register("%(email)s", "%(password)s");
  await (await client.vault("family album", { create: true })).collection("notes").create("remember the milk");
  await client.saveSession();
  const [, refresh] = await it.coreOf(client).session.tokens();
  return { refresh, key: [...it.coreOf(client).keyring().reveal().key.reveal()] };
})()"""
RESUME = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = await it.Client.resume();
  const found = [];
  for await (const note of (await client.vault("family album")).collection("notes")) found.push(note.value);
  return found;
})()"""
TABS = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const clients = await Promise.all([1, 2, 3].map(() => it.Client.resume()));
  await Promise.all(clients.map(async (client) => {
    const seen = new Set();
    while (seen.size < 2) {
      await client.sessions();
      seen.add((await it.coreOf(client).session.tokens())[1]);
    }
  }));
  return "all open";
})()"""
KEPT = """(async () => {
  const request = indexedDB.open("strongroom sessions");
  const database = await new Promise((done) => { request.onsuccess = () => done(request.result); });
  const getting = database.transaction("sessions").objectStore("sessions").getAll();
  const [record] = await new Promise((done) => { getting.onsuccess = () => done(getting.result); });
  database.close();
  const [exported] = await Promise.allSettled([crypto.subtle.exportKey("raw", record.sealing)]);
  return {
    members: Object.fromEntries(Object.entries(record).map(([name, value]) => [name, value.constructor.name])),
    isExtractable: record.sealing.extractable,
    exported: exported.status,
    local: localStorage.length + sessionStorage.length,
  };
})()"""
LOGOUT = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = await it.Client.resume();
  await client.changePassword("%(password)s", "%(password)s, another");
  await client.logout();
  return it.Client.resume().then(() => "resumed", (error) => error.name);
})()"""


def test_in_a_browser(tmp_path: Path, short_lived: Server) -> None:
    """A page that is loaded again goes on without the password, and nothing that opens the account is on the disk.

    All tabs go on while tokens are refreshed. With the password the ways in change, although no key can be extracted.
    """
    (tmp_path / "browser").mkdir()
    with served() as pages:
        told = {
            "pages": pages,
            "url": f"http://localhost:{short_lived.port}",
            "email": unique_email(),
            "password": PASSWORD,
        }
        with chromium(tmp_path / "browser") as page:

            def run(script: str, on: Page = page) -> object:
                return on.run(script % told)

            page.open(f"{pages}/empty.html")
            begun: Any = run(BEGIN)
            page.open(f"{pages}/empty.html")
            assert run(RESUME) == ["remember the milk"]
            assert run(KEPT) == {
                "members": {"id": "String", "sealed": "Uint8Array", "sealing": "CryptoKey", "tokens": "Uint8Array"},
                "isExtractable": False,
                "exported": "rejected",
                "local": 0,
            }
            assert run(TABS) == "all open"
        written = [PASSWORD, begun["refresh"], told["email"], "remember the milk", "family album"]
        assert_not_on_disk(tmp_path / "browser", written)
        assert profile_files.holding(tmp_path / "browser", {"the account key": bytes(begun["key"])}) == []
        with chromium(tmp_path / "browser") as page:
            page.open(f"{pages}/empty.html")
            assert page.run(RESUME % told) == ["remember the milk"]
            assert page.run(LOGOUT % told) == "Locked"
