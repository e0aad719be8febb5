"""The replica against a live server: work without it, sync with it, lose nothing."""

from __future__ import annotations

import stat
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from strongroom import errors
from strongroom.client import Locked, RolledBack
from strongroom.client.format import box
from strongroom.client.replica import Progress, Resolution, keep_both, keep_mine, keep_theirs, merged
from strongroom.client.replica.store.outbox import Outbox
from strongroom.client.replica.store.records import Entry
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.pair import Pair
from tests.kit.network.proxy import ABSENT, LOSE, PASS, REFUSE, Once, Proxy
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


@pytest.mark.both_languages
def test_work_without_a_server(pair: Pair) -> None:
    """What is written is read at once, and is on the other device after both have synced."""
    here, there = pair.notes
    note = here.create({"title": "offline"})
    note = here.replace(note, {"title": "changed offline"})
    gone = here.create("not for long")
    here.delete(gone)
    assert [found.value for found in here] == [{"title": "changed offline"}]
    assert pair.replicas[0].pending == 1
    assert list(there) == []
    report = pair.replicas[0].sync()
    assert (report.pushed, report.conflicts, pair.replicas[0].pending) == (1, [], 0)
    assert here.get(note.uid).proof == note.proof
    assert pair.replicas[1].sync().pulled == 1
    assert there.get(note.uid).value == {"title": "changed offline"}
    there.delete(there.get(note.uid))
    pair.sync()
    assert pair.values() == [[], []]
    with pytest.raises(errors.DocumentNotFound):
        here.get(note.uid)
    assert here.get(note.uid, deleted=True).value == {"title": "changed offline"}


@pytest.mark.both_languages
def test_a_deleted_document_comes_back(pair: Pair) -> None:
    """A replacement of what was deleted revives it, on every device."""
    here, there = pair.notes
    note = here.create("first life")
    pair.sync()
    there.delete(there.get(note.uid))
    pair.sync()
    here.replace(here.get(note.uid, deleted=True), "second life")
    pair.sync()
    assert pair.values() == [["second life"]] * 2


@pytest.mark.both_languages
def test_the_file_tells_nothing(pair: Pair, tmp_path: Path) -> None:
    """Only its owner can read it, and whoever does finds ciphertext."""
    pair.notes[0].create({"canary": "KANARIENVOGEL"})
    pair.replicas[0].sync()
    pair.notes[0].create("KANARIENVOGEL")
    files = [path for path in tmp_path.iterdir() if path.name.startswith("replica-")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    for path in files:
        content = path.read_bytes()
        for secret in (b"KANARIENVOGEL", b"notes", PASSWORD.encode()):
            assert secret not in content


@pytest.mark.both_languages
def test_a_stale_document_is_refused_here_too(pair: Pair) -> None:
    """Who replaces what has changed on this device meanwhile is told so."""
    notes = pair.notes[0]
    old = notes.create(1)
    notes.replace(old, 2)
    with pytest.raises(errors.DocumentConflict):
        notes.replace(old, 3)
    with pytest.raises(errors.DocumentConflict):
        notes.delete(old)
    assert pair.values()[0] == [2]


@pytest.mark.both_languages
def test_a_conflict_shows_all_three(pair: Pair) -> None:
    """Base, mine and theirs; and until it is decided, mine is shown here and theirs there."""
    conflict = pair.disputed()
    assert conflict.base is not None
    assert (conflict.base.value, conflict.mine.value, conflict.theirs.value) == ("base", "mine", "theirs")
    assert conflict.collection == "notes"
    pair.sync()
    assert pair.values() == [["theirs"], ["mine"]]
    assert [found.uid for found in pair.replicas[1].conflicts()] == [conflict.uid]


@pytest.mark.both_languages
@pytest.mark.parametrize(
    ("how", "values"),
    [
        (keep_mine, ["mine"]),
        (keep_theirs, ["theirs"]),
        (keep_both, ["mine", "theirs"]),
        (lambda conflict: merged(f"{conflict.theirs.value} and {conflict.mine.value}"), ["theirs and mine"]),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_a_conflict_is_decided(pair: Pair, how: Any, values: list[str], at_once: bool) -> None:  # noqa: FBT001
    """By a resolver that is given to sync, or later; both devices then show the same."""
    conflict = pair.disputed()
    if at_once:
        assert pair.replicas[1].sync(how).conflicts == []
    else:
        conflict.resolve(how)
    pair.sync()
    assert pair.values() == [values, values]
    assert pair.replicas[1].pending == 0


@pytest.mark.both_languages
def test_a_conflict_that_has_moved_on_is_not_decided(pair: Pair) -> None:
    """A decision about what is not there any more is refused."""
    conflict = pair.disputed()
    pair.notes[1].replace(pair.notes[1].get(conflict.uid), "mine again")
    with pytest.raises(errors.DocumentConflict):
        conflict.resolve(keep_theirs)
    assert pair.values()[1] == ["mine again"]


@pytest.mark.both_languages
def test_one_deletes_what_the_other_changes(pair: Pair) -> None:
    """A conflict as any other, in both directions; nothing is dropped by itself."""
    here, there = pair.notes
    first, second = here.create("first"), here.create("second")
    pair.sync()
    here.delete(here.get(first.uid))
    here.replace(here.get(second.uid), "changed here")
    there.replace(there.get(first.uid), "changed there")
    there.delete(there.get(second.uid))
    pair.replicas[0].sync()
    conflicts = {found.uid: found for found in pair.replicas[1].sync().conflicts}
    assert conflicts[first.uid].theirs.deleted
    assert conflicts[second.uid].mine.deleted
    conflicts[first.uid].resolve(keep_mine)
    conflicts[second.uid].resolve(keep_theirs)
    pair.sync()
    assert pair.values() == [["changed here", "changed there"]] * 2


@pytest.mark.both_languages
def test_both_delete(pair: Pair) -> None:
    """That is no conflict."""
    here, there = pair.notes
    note = here.create("unloved")
    pair.sync()
    for notes in (here, there):
        notes.delete(notes.get(note.uid))
    pair.sync()
    assert pair.values() == [[], []]
    assert [replica.pending for replica in pair.replicas] == [0, 0]


def test_progress_is_shown(pair: Pair) -> None:
    """A callback hears of every page and every batch."""
    for number in range(450):
        pair.notes[0].create(number)
    heard: list[Progress] = []
    pair.replicas[0].sync(progress=heard.append)
    assert [step.phase for step in heard if step.done] == ["push"]
    heard.clear()
    pair.replicas[1].sync(progress=heard.append)
    pulled = [step for step in heard if step.phase == "pull"]
    assert len(pulled) > 1
    assert (pulled[-1].done, pulled[-1].total) == (450, 450)


def test_a_replica_belongs_to_one_account(pair: Pair, clients: ClientFactory, tmp_path: Path) -> None:
    """Another account, and somebody who has not logged in, do not open it."""
    pair.close()
    with pytest.raises(errors.Invalid):
        clients.person().open_replica(tmp_path / "replica-0")
    with pytest.raises(Locked):
        clients.client().open_replica(tmp_path / "replica-0")
    (tmp_path / "other").write_text("not a database, but a text that is long enough to look like something")
    with pytest.raises(errors.Invalid):
        pair.clients[0].open_replica(tmp_path / "other")


@pytest.mark.both_languages
def test_a_vault_that_was_deleted_elsewhere(pair: Pair) -> None:
    """It leaves this device too: its owner said so, in the directory that only key holders can write."""
    pair.notes[0].create("x")
    pair.sync()
    pair.clients[0].vault("v").delete()
    pair.sync()
    assert pair.replicas[1].vaults() == []
    pair.clients[1].vault("w", create=True)
    pair.sync()
    assert [vault.name for vault in pair.replicas[0].vaults()] == ["w"]


@pytest.mark.both_languages
def test_a_replica_of_a_token(clients: ClientFactory, tmp_path: Path) -> None:
    """An agent works without a server too, in its collection and nowhere else."""
    vault = clients.person().vault("v", create=True)
    notes = vault.collection("notes")
    notes.create("by the owner")
    vault.collection("secrets").create("not for agents")
    agent = clients.with_token(notes.token("agent"))
    replica = agent.open_replica(tmp_path / "agent")
    replica.sync()
    place = replica.collection()
    assert [note.value for note in place] == ["by the owner"]
    place.create("by the agent")
    with pytest.raises(Locked):
        replica.vault()
    assert replica.sync().pushed == 1
    assert sorted(note.value for note in notes) == ["by the agent", "by the owner"]
    replica.close()


@pytest.mark.both_languages
def test_a_start_without_a_server(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """The password opens the replica; when the server is back, the client logs in by itself."""
    own_server.start()
    url = f"http://127.0.0.1:{own_server.port}"
    email = unique_email()
    first = clients.client(url)
    first.register(email, PASSWORD)
    first.vault("v", create=True).collection("notes").create("online")
    replica = first.open_replica(tmp_path / "replica")
    replica.sync()
    replica.close()
    own_server.end()
    later = clients.client(url, retries=0)
    with pytest.raises(errors.InvalidCredentials):
        later.unlock(tmp_path / "replica", "not the password")
    later.unlock(tmp_path / "replica", PASSWORD)
    replica = later.open_replica(tmp_path / "replica")
    notes = replica.vault("v").collection("notes")
    notes.create("offline")
    assert sorted(note.value for note in notes) == ["offline", "online"]
    with pytest.raises(errors.Unavailable):
        replica.sync()
    assert replica.pending == 1
    own_server.settings["PORT"] = str(own_server.port)
    own_server.start()
    assert replica.sync().pushed == 1
    assert sorted(note.value for note in first.vault("v").collection("notes")) == ["offline", "online"]
    replica.close()


def busy_day(pair: Pair) -> None:
    """Creates, replacements and deletions on both devices, without any conflict."""
    here, there = pair.notes
    kept = [here.create(number) for number in range(5)]
    pair.replicas[0].sync()
    pair.replicas[1].sync()
    there.replace(there.get(kept[0].uid), "changed")
    there.delete(there.get(kept[1].uid))
    there.create("new there")
    here.replace(here.get(kept[2].uid), "changed here")
    here.delete(here.get(kept[3].uid))


@pytest.mark.both_languages
@pytest.mark.parametrize("fate", [LOSE, REFUSE])
def test_lost_answers_make_neither_duplicates_nor_conflicts(
    clients: ClientFactory, tmp_path: Path, proxy: Proxy, fate: str
) -> None:
    """A device whose first requests all get lost knows its own writes when it meets them."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    for _ in range(2):
        proxy.policy = Once(fate)
        busy_day(pair)
        pair.sync()
    assert pair.values()[0] == pair.values()[1]
    assert pair.values()[0].count("new there") == 2
    assert [replica.conflicts() for replica in pair.replicas] == [[], []]
    pair.close()


@pytest.mark.both_languages
def test_a_change_after_a_lost_answer(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """What was sent and never answered, and changed again here, is no conflict with oneself."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    here, there = pair.notes
    note = here.create("base")
    pair.sync()
    there.replace(there.get(note.uid), "first")
    fresh = there.create("new")
    proxy.policy = lambda _, path: LOSE if "batch" in path else PASS
    with pytest.raises(errors.Unavailable):
        pair.replicas[1].sync()
    there.replace(there.get(note.uid), "second")
    there.delete(there.get(fresh.uid))
    proxy.policy = lambda *_: PASS
    assert pair.replicas[1].sync().conflicts == []
    pair.sync()
    assert pair.values() == [["second"], ["second"]]
    pair.close()


def during_a_push(pair: Pair, proxy: Proxy, change: Callable[[], Any]) -> None:
    """Sync the second device, and make a change on it while its batch is on its way."""
    arrived, changed = threading.Event(), threading.Event()

    def hold(_: str, path: str) -> str:
        if "batch" in path and not arrived.is_set():
            arrived.set()
            assert changed.wait(20)
        return PASS

    proxy.policy = hold
    with ThreadPoolExecutor(1) as worker:
        syncing = worker.submit(pair.replicas[1].sync)
        assert arrived.wait(20)
        change()
        changed.set()
        assert syncing.result(60).conflicts == []


@pytest.mark.both_languages
def test_a_change_during_a_push_is_sent_later(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """What is replaced, and what is deleted, while an earlier version of it is being sent, is not forgotten."""
    pair = Pair(clients, tmp_path, (None, proxy.url))
    here, there = pair.notes
    changed, deleted = there.create("first"), there.create("unwanted")

    def change() -> None:
        there.replace(there.get(changed.uid), "second")
        there.delete(there.get(deleted.uid))

    during_a_push(pair, proxy, change)
    pair.sync()
    assert pair.values() == [["second"], ["second"]]
    assert here.get(changed.uid).value == "second"
    assert [replica.pending for replica in pair.replicas] == [0, 0]
    pair.close()


def test_a_server_without_batches(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """Nothing is sent one by one to a server that says it has no batches: the refusal is raised, the change waits."""
    pair = Pair(clients, tmp_path, (proxy.url, proxy.url))
    proxy.policy = lambda _, path: ABSENT if "batch" in path else PASS
    note = pair.notes[0].create("first")
    proxy.seen.clear()
    with pytest.raises(errors.NotFound):
        pair.replicas[0].sync()
    assert [(method, fate) for method, _, fate in proxy.seen if method != "GET"] == [("POST", ABSENT)]
    assert pair.replicas[0].pending == 1
    proxy.policy = lambda _method, _path: PASS
    pair.sync()
    assert [replica.pending for replica in pair.replicas] == [0, 0]
    assert pair.notes[1].get(note.uid).value == "first"
    pair.close()


@pytest.mark.both_languages
def test_a_first_download_that_is_cut_off(clients: ClientFactory, tmp_path: Path, proxy: Proxy) -> None:
    """It goes on where it was, and learns of what was deleted meanwhile."""
    owner = clients.person()
    notes = owner.vault("v", create=True).collection("notes")
    full = owner.open_replica(tmp_path / "full")  # sends them together
    full.sync()
    for number in range(300):
        full.vault("v").collection("notes").create(number)
    full.sync()
    full.close()
    made = sorted(notes, key=lambda note: int(note.value))
    device = clients.client(proxy.url, retries=0)
    device.login(owner._thing._core.email if clients.kind == "awaiting" else owner._core.email, PASSWORD)
    replica = device.open_replica(tmp_path / "replica")
    lists = 0

    def second_page_fails(_: str, path: str) -> str:
        nonlocal lists
        lists += path.endswith("/documents")
        return REFUSE if lists == 2 and path.endswith("/documents") else PASS

    proxy.policy = second_page_fails
    with pytest.raises(errors.Unavailable):
        replica.sync()
    here = {note.value for note in replica.vault("v")}
    assert 0 in here
    assert 299 not in here
    notes.delete(made[0])
    notes.delete(made[299])
    proxy.policy = lambda *_: PASS
    replica.sync()
    assert sorted(note.value for note in replica.vault("v")) == list(range(1, 299))
    replica.close()


@pytest.mark.both_languages
def test_a_server_that_goes_back_is_not_believed(clients: ClientFactory, own_server: Server, tmp_path: Path) -> None:
    """An older database under the same epoch is a rollback, and nothing here changes because of it."""
    own_server.start()
    url = f"http://127.0.0.1:{own_server.port}"
    own_server.settings["PORT"] = str(own_server.port)
    client = clients.client(url)
    client.register(unique_email(), PASSWORD)
    notes = client.vault("v", create=True).collection("notes")
    note = notes.create("old")
    own_server.end()
    old = (own_server.home / "vault.db").read_bytes()
    own_server.start()
    replica = client.open_replica(tmp_path / "replica")
    notes.replace(note, "new")
    replica.sync()
    own_server.end()
    (own_server.home / "vault.db").write_bytes(old)
    own_server.start()
    with pytest.raises(RolledBack):
        replica.sync()
    assert [found.value for found in replica.vault("v")] == ["new"]
    replica.close()


def test_resolutions_do_not_show_values() -> None:
    """What a resolver gives may be secret."""
    assert "KANARIENVOGEL" not in repr(merged("KANARIENVOGEL"))
    assert repr(Resolution("mine")) == "Resolution('mine')"


@pytest.mark.both_languages
def test_many_are_created_at_once(pair: Pair) -> None:
    """`create_many` gives the documents in the order of their values; each is read, synced and pushed as any other."""
    here, there = pair.notes
    made = here.create_many({"number": number} for number in range(30))
    assert [note.value["number"] for note in made] == list(range(30))
    assert len({note.uid for note in made}) == 30
    assert [here.get(note.uid) for note in made] == made
    assert here.create_many([]) == []
    changed = here.replace(made[0], {"number": "changed"})
    assert here.get(changed.uid) == changed
    assert pair.replicas[0].sync().pushed == 30
    pair.sync()
    assert sorted(str(note.value["number"]) for note in there) == sorted(["changed", *map(str, range(1, 30))])


def test_many_are_created_or_none(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that cannot be stored, and an error in the middle of the transaction, leave none of them."""
    here, _ = pair.notes
    with pytest.raises(errors.Invalid):
        here.create_many([{"number": 1}, {"number": 2**60}])
    assert (pair.replicas[0].pending, list(here)) == (0, [])
    real, put = Outbox.put, []

    def fails_at_the_third(self: Outbox, entry: Entry) -> None:
        put.append(entry)
        if len(put) == 3:
            raise OSError("the disk is full")
        real(self, entry)

    monkeypatch.setattr(Outbox, "put", fails_at_the_third)
    with pytest.raises(OSError, match="disk is full"):
        here.create_many([1, 2, 3])
    monkeypatch.undo()
    assert (pair.replicas[0].pending, list(here)) == (0, [])


@pytest.mark.both_languages
def test_a_uid_is_taken_once(pair: Pair) -> None:
    """A uid that is in use here is refused: queued, stored or deleted; the document stays as it was."""
    here, _ = pair.notes
    note = here.create("first")
    for _ in range(2):  # queued, then stored by the server
        with pytest.raises(errors.UidTaken):
            here.create("second", uid=note.uid.upper())
        assert here.get(note.uid).value == "first"
        pair.sync()
    here.delete(here.get(note.uid))
    pair.sync()
    with pytest.raises(errors.UidTaken):
        here.create("second", uid=note.uid)
    assert here.get(note.uid, deleted=True).deleted


def test_what_is_written_is_decrypted_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """A create seals once and decrypts once, to compare what it is about to store; the result is what `get` reads."""
    here, _ = pair.notes
    real = box.open_
    opened: list[bytes] = []

    def counted(key: bytes, sealed: bytes, associated: bytes) -> bytes:
        opened.append(sealed)
        return real(key, sealed, associated)

    monkeypatch.setattr(box, "open_", counted)
    note = here.create({"title": ("a", "tuple")})
    assert len(opened) == 1
    assert len(here.create_many(["one", "two"])) == 2
    assert len(opened) == 3
    monkeypatch.undo()
    assert note.value == {"title": ["a", "tuple"]}
    assert here.get(note.uid) == note
    gone = here.delete(here.replace(note, b"bytes"))
    assert (gone.deleted, gone.value) == (True, b"bytes")


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.both_languages
def test_both_are_kept_where_mine_is_a_deletion(pair: Pair, at_once: bool) -> None:  # noqa: FBT001
    """Nothing is left to keep of it: the other change stays, and no new document is made."""
    here, there = pair.notes
    note = here.create("base")
    pair.sync()
    here.replace(here.get(note.uid), "theirs")
    there.delete(there.get(note.uid))
    pair.replicas[0].sync()
    [conflict] = pair.replicas[1].sync().conflicts
    assert conflict.mine.deleted
    if at_once:
        assert pair.replicas[1].sync(keep_both).conflicts == []
    else:
        conflict.resolve(keep_both)
    assert pair.replicas[1].pending == 0
    pair.sync()
    assert pair.values() == [["theirs"]] * 2
