"""The replica in a real browser: IndexedDB, two tabs, a tab that is killed, what is stored, storage that is deleted."""

from __future__ import annotations

import base64
import contextlib
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client
from tests.js.browser_files import assert_not_on_disk
from tests.js.tab import Tab
from tests.kit.browsers.chromium import Page, chromium, private_window
from tests.kit.clients.javascript import served
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.samples import SEED, rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until

CANARY = "KANARIENVOGEL"
REQUESTS = ("get", "getAll", "getAllKeys", "count", "put", "transaction")


@pytest.fixture
def browser() -> Iterator[tuple[Page, str]]:
    """A browser, and the address of the pages."""
    with served() as url, private_window() as page:
        yield page, url


@pytest.fixture
def own_browser(tmp_path: Path) -> Iterator[tuple[Page, str]]:
    """A browser with a profile in the folder of the test, and the address of the pages."""
    (tmp_path / "browser").mkdir()
    with served() as url, chromium(tmp_path / "browser") as page:
        yield page, url


def test_two_tabs_share_a_replica(server: Server, own_browser: tuple[Page, str], tmp_path: Path) -> None:
    """One tab syncs, the other follows, and takes its place; what either writes is sent; nothing is readable."""
    page, url = own_browser
    email, address = unique_email(), f"http://localhost:{server.port}"
    one, other = Tab(page, url, "replica"), Tab(page, url, "replica")
    assert one.call("begin", address, email, PASSWORD, "new") == {"isNew": True}
    one.call("write", f"{CANARY} written on a train")
    assert one.call("sync") == [0, 1]
    assert other.call("begin", address, email, PASSWORD, "") == {"isNew": False}
    other.call("live")
    assert other.call("shown", 1) == [f"{CANARY} written on a train"]
    one.call("watch")
    other.call("watch")
    other.call("write", "Écrit in the other tab")
    assert other.call("sent") == 0
    one.call("write", "and here")
    assert len(other.call("shown", 3)) == 3
    assert one.call("found", "ecrit TAB") == ["Écrit in the other tab"]
    with Client(address) as client:
        client.login(email, PASSWORD)
        assert {note.value for note in client.vault("v")} >= {"Écrit in the other tab"}
        keys = [key for entry in client._core.keyring().vaults for _, key in entry.keys]
        notes = client.vault("v").collection("notes")
        notes.create("from another device")
        assert len(other.call("shown", 4)) == 4
        one.crash()  # the tab that followed the server
        notes.create("after the crash")
        assert len(other.call("shown", 5)) == 5
    stored = other.call("stored") + other.call("besides") + repr(page.reported)
    for secret in (CANARY, "Écrit", "notes", email, PASSWORD):
        assert secret not in stored
    assert len(stored) > 2_000
    assert not any(base64.b64encode(bytes(key)).decode() in stored for key in keys)
    assert_not_on_disk(tmp_path / "browser", [CANARY, "Écrit", PASSWORD, email])


def test_many_documents_take_few_requests(server: Server, browser: tuple[Page, str]) -> None:
    """A first sync asks IndexedDB for no document by itself, and WebCrypto twice for each; nor does reading all.

    Each request costs more than what it carries, so the number of requests is what counts.
    """
    page, url = browser
    email, address, many = unique_email(), f"http://localhost:{server.port}", 500
    with Client(address) as client:
        client.register(email, PASSWORD)
        list(client.vault("v", create=True).collection("notes").create_many(f"note {one}" for one in range(many)))
    tab = Tab(page, url, "replica")
    tab.call("begin", address, email, PASSWORD, "")
    tab.call("counted")
    assert tab.call("sync") == [many, 0]
    asked = tab.call("counted")
    assert (asked["digest"] // many, asked["verify"]) == (1, many)
    assert sum(asked.get(name, 0) for name in REQUESTS) < many / 3
    assert len(tab.call("found", "note")) == many
    asked = tab.call("counted")
    assert max(asked[name] for name in ("digest", "verify", "deriveBits", "importKey", "decrypt")) < 1.1 * many
    assert sum(asked.get(name, 0) for name in REQUESTS) < many / 5
    tab.call("unpack")
    again = Tab(page, url, "replica")
    assert again.call("begin", address, email, PASSWORD, "") == {"isNew": False}  # of an earlier release
    assert len(again.call("found", "note")) == many
    again.call("write", "one more")
    assert again.call("sync") == [0, 1]
    assert len(again.call("found", "note")) == many


def _keep_contents(tab: Tab, address: str, email: str, many: int, boxes: int) -> Tab:
    """Sync in a tab, read all documents, and wait until their contents are kept in so many boxes."""
    tab.call("begin", address, email, PASSWORD, "")
    tab.call("sync")
    tab.call("live")
    assert len(tab.call("shown", many)) == many
    assert tab.call("boxed", boxes) == boxes
    return tab


def test_contents_that_were_opened_are_kept_for_the_next_start(
    server: Server, browser: tuple[Page, str], tmp_path: Path
) -> None:
    """A tab that is opened again decrypts a few boxes, not every document.

    What has changed since, or was tampered with, is opened from its row. Nothing is readable; it goes with its vault.
    """
    page, url = browser
    email, address, many = unique_email(), f"http://localhost:{server.port}", 600
    with Client(address) as client:
        client.register(email, PASSWORD)
        notes = client.vault("v", create=True).collection("notes")
        made = [one.document for one in notes.create_many(f"{CANARY} {number}" for number in range(many))]
        first = _keep_contents(Tab(page, url, "replica"), address, email, many, boxes=3)
        second = Tab(page, url, "replica")
        second.call("begin", address, email, PASSWORD, "")
        second.call("counted")
        second.call("live")
        assert len(second.call("shown", many)) == many
        asked = second.call("counted")
        assert max(asked.get(name, 0) for name in ("digest", "verify", "deriveBits", "decrypt")) < many / 20
        for tab in (first, second):
            tab.crash()
        notes.replace(made[0], "changed")
        notes.delete(made[1])
        third = Tab(page, url, "replica")
        third.call("begin", address, email, PASSWORD, "")
        assert third.call("sync") == [2, 0]
        third.call("live")
        expected = sorted(["changed", *(f"{CANARY} {number}" for number in range(2, many))])
        until(lambda: sorted(third.call("shown", many - 1)) == expected, "what has changed since")
        third.crash()
        fourth = Tab(page, url, "replica")
        fourth.call("begin", address, email, PASSWORD, "")
        assert fourth.call("spoil") == 3
        fourth.call("counted")
        fourth.call("live")
        assert sorted(fourth.call("shown", many - 1)) == expected
        assert fourth.call("counted")["verify"] >= many - 1
        assert_not_on_disk(tmp_path / "browser", [CANARY])
        client.vault("v").delete()
        fifth = Tab(page, url, "replica")
        fifth.call("begin", address, email, PASSWORD, "")
        fourth.crash()
        fifth.call("sync")
        assert fifth.call("boxed", 0) == 0


@pytest.mark.parametrize("what", ["vault", "account"])
def test_kept_contents_are_those_of_the_newest_keys(server: Server, browser: tuple[Page, str], what: str) -> None:
    """After a rotation, nothing old is shown and nothing is missing; contents are kept again under the new keys."""
    page, url = browser
    email, address, many = unique_email(), f"http://localhost:{server.port}", 20
    with Client(address) as client:
        client.register(email, PASSWORD)
        notes = client.vault("v", create=True).collection("notes")
        made = [one.document for one in notes.create_many(f"note {number}" for number in range(many))]
        first = _keep_contents(Tab(page, url, "replica"), address, email, many, boxes=1)
        before = first.call("sealed")
        first.crash()
        if what == "vault":
            client.vault("v").rotate()
        else:
            client.rotate_keys(PASSWORD)
        notes = client.vault("v").collection("notes")
        notes.replace(notes.get(made[0].uid), "changed")
        notes.delete(notes.get(made[1].uid))
    expected = sorted(["changed", *(f"note {number}" for number in range(2, many))])
    second = Tab(page, url, "replica")
    second.call("begin", address, email, PASSWORD, "")
    second.call("sync")
    second.call("counted")
    second.call("live")
    assert sorted(second.call("shown", many - 1)) == expected
    assert second.call("counted")["verify"] >= many - 1  # every row is one of the new key
    until(lambda: second.call("sealed") != before, "contents are kept anew")
    assert second.call("boxed", 1) == 1
    second.crash()
    third = Tab(page, url, "replica")
    third.call("begin", address, email, PASSWORD, "")
    third.call("counted")
    third.call("live")
    assert sorted(third.call("shown", many - 1)) == expected
    assert third.call("counted").get("verify", 0) < many / 2


def test_a_transaction_that_the_browser_aborts(server: Server, browser: tuple[Page, str]) -> None:
    """The sync fails, nothing is half written, the storage is not taken for lost, and the next sync brings all."""
    page, url = browser
    email, address = unique_email(), f"http://localhost:{server.port}"
    tab = Tab(page, url, "replica")
    tab.call("begin", address, email, PASSWORD, "new")
    tab.call("write", "one")
    tab.call("sync")
    with Client(address) as client:
        client.login(email, PASSWORD)
        list(client.vault("v").collection("notes").create_many(f"another {number}" for number in range(100)))
    assert "AbortError" in tab.call("aborted")
    assert tab.call("kept") == [["one"], 0]
    assert tab.call("sync") == [100, 0]
    assert len(tab.call("kept")[0]) == 101


def test_packs_hold_what_was_written(browser: tuple[Page, str]) -> None:
    """Records that lie in packs, against a plain map: random and ascending uids, small and large values, deletions."""
    page, url = browser
    found, most = Tab(page, url, "packs").call("differences", rounds(25, 300), SEED)
    assert found == []
    assert most > 500


def test_a_tab_that_is_killed_loses_nothing(server: Server, browser: tuple[Page, str]) -> None:
    """Killed while it writes and syncs: what was on disk is there, and is on the server once, after the next sync."""
    page, url = browser
    email, address = unique_email(), f"http://localhost:{server.port}"
    tab = Tab(page, url, "replica")
    tab.call("begin", address, email, PASSWORD, "new")
    written: set[str] = set()
    for number in range(2):
        tab.call("writeOn", f"part {number}, note")
        until(lambda: int(page.run("document.title")) >= 6, "writes")
        done = int(page.run("document.title"))
        tab.crash()
        written |= {f"part {number}, note {one}" for one in range(done)}
        tab = Tab(page, url, "replica")
        tab.call("begin", address, email, PASSWORD, "")
        found, _ = tab.call("kept")
        assert written <= set(found)
    tab.call("sync")
    found, pending = tab.call("kept")
    assert (len(found), pending) == (len(set(found)), 0)
    with Client(address) as client:
        client.login(email, PASSWORD)
        assert sorted(note.value for note in client.vault("v")) == sorted(found)


@pytest.mark.parametrize("told", [True, False], ids=["told", "not told"])
def test_a_tab_follows_one_that_has_met_a_restore(own_server: Server, browser: tuple[Page, str], *, told: bool) -> None:
    """One tab compares everything with a restored server: the client of the other goes on with it, without a reload.

    Where tabs cannot be told, it does so with its next sync; so does a session that was saved before the restore.
    """
    page, url = browser
    own_server.start()
    own_server.settings["PORT"] = str(own_server.port)  # after a restart too
    email, address, vault = unique_email(), f"http://localhost:{own_server.port}", own_server.home / "vault.db"
    one, other = Tab(page, url, "replica"), Tab(page, url, "replica")
    one.call("begin", address, email, PASSWORD, "new")
    one.call("write", "1 in the backup")
    one.call("sync")
    if not told:
        other.run("delete globalThis.BroadcastChannel")
    other.call("begin", address, email, PASSWORD, "")
    assert own_server.end() == 0
    shutil.copy(vault, own_server.home / "backup")
    own_server.start()
    one.call("write", "2 after it")
    one.call("sync")
    both = ["1 in the backup", "2 after it"]
    assert other.call("online") == both
    other.call("save")
    assert own_server.end() == 0
    shutil.copy(own_server.home / "backup", vault)
    with contextlib.closing(sqlite3.connect(vault)) as database, database:
        database.execute("DELETE FROM lineage")  # as a restore does
    own_server.start()
    assert other.call("online") == "RolledBack"
    assert one.call("sync")[1] == 0
    if not told:
        assert other.call("online") in {"RolledBack", "Tampered"}  # times of another database
        other.call("sync")
        assert other.call("online") == both
    assert other.call("onlineAgain") == both
    later = Tab(page, url, "replica")
    later.call("resume")  # with what was seen before the restore
    later.call("sync")
    assert later.call("online") == both


@pytest.mark.parametrize("by", ["the browser", "another tab"])
def test_storage_that_is_deleted_is_told(server: Server, browser: tuple[Page, str], by: str) -> None:
    """The open replica says so, the next one is new, and one that must be there is refused."""
    page, url = browser
    tab, other = Tab(page, url, "replica"), Tab(page, url, "replica")
    begin: tuple[Any, ...] = ("begin", f"http://localhost:{server.port}", email := unique_email(), PASSWORD)
    assert tab.call(*begin, "new") == {"isNew": True}
    tab.call("write", "not sent")
    if by == "the browser":
        page.send("Storage.clearDataForOrigin", origin=url, storageTypes="indexeddb")
        assert "The storage of this replica is gone" in tab.call("lost")
    else:
        other.call("remove")
        assert "Another tab deletes this replica" in tab.call("lost")
    assert "is not there" in tab.call("missing")
    assert other.call("begin", f"http://localhost:{server.port}", email, PASSWORD, "") == {"isNew": True}
