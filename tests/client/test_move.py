"""An account moves to another server: whole, verified, and with the same password and recovery key."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, HistoryLeftOut, RolledBack, Tampered
from strongroom.client import client as blocking
from strongroom.client.format import derive
from strongroom.client.net.driver import Driver
from strongroom.client.net.effects import Effect
from strongroom.errors import (
    AccountNotEmpty,
    EmailAlreadyExists,
    ImportUnfinished,
    Invalid,
    InvalidCredentials,
    SignupsClosed,
)
from tests.client.altered_files import ALTERED, forged, is_registered, mixed
from tests.client.moving_accounts import (
    altered,
    contents,
    furnish,
    lines,
    url_of,
    write,
)
from tests.client.operator import invite
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


def test_an_account_moves_whole(clients: ClientFactory, other_server: Server, tmp_path: Path) -> None:
    """Every document, deletion, version, blob and name is on the new server, opened with the same password."""
    path, url = tmp_path / "account", url_of(other_server)
    old = clients.client()
    email = furnish(old)
    recovery_key = old.make_recovery_key(PASSWORD)
    before = contents(old)
    old.export_account(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told: list[tuple[int, int]] = []
    new = clients.import_account(url, path, email, PASSWORD, progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert told == sorted(told)
    assert {(size, 3 * size), (2 * size, 3 * size), (3 * size, 3 * size)} <= set(told)
    assert contents(new) == before
    again = tmp_path / "again"
    new.export_account(again)
    there, here = lines(path), lines(again)
    rows = [line for line in there if line["kind"] in {"vault", "document", "version", "blobVersion"}]
    assert [line for line in here if line["kind"] in {"vault", "document", "version", "blobVersion"}] == rows
    assert {line["kind"] for line in rows} == {"vault", "document", "version", "blobVersion"}
    keyrings = [line["keyring"] for line in there if "keyring" in line["kind"]]
    assert set(keyrings) <= {line["keyring"] for line in here if "keyring" in line["kind"]}
    note = new.vault("private").collection("notes").create({"new": "home"})
    fresh = clients.client(url)
    fresh.login(email, PASSWORD)
    assert fresh.vault("private").collection("notes").get(note.uid).value == {"new": "home"}
    recovered = clients.client(url)
    recovered.recover(email, recovery_key, "another battery staple")
    assert contents(recovered)["open"] == before["open"]
    assert contents(old) == before


def test_neither_server_can_act_on_the_other(moving: tuple[Client, str, Path], other_server: Server) -> None:
    """The new server has another auth key for the same password: what one server has seen logs in there alone."""
    _, email, path = moving
    new = Client.import_account(url_of(other_server), path, email, PASSWORD)
    spelled = lines(path)[0]["kdf"]
    old_key = derive.password_keys(email, PASSWORD, derive.Descriptor.read(spelled)).password
    body = {"email": email, "password": str(old_key)}
    assert other_server.connect().post("/auth/email/login", json=body).status_code == 401
    kdf = other_server.connect().post("/auth/email/prelogin", json={"email": email}).json()["kdf"]
    assert kdf["salt"] != spelled["salt"]
    new.close()


# Files that are not what they should be


def test_a_file_that_is_not_whole_or_no_export_is_told(clients: ClientFactory, tmp_path: Path) -> None:
    """Cut in a line or after one, damaged, of another kind: what it is, and what to do. Nothing is sent."""
    client = clients.client()
    email = furnish(client)
    client.export_account(tmp_path / "account")
    client.export_plaintext(tmp_path / "plaintext")
    whole = (tmp_path / "account").read_bytes()
    first, second, third = whole.splitlines(keepends=True)[:3]
    for raw, said in [
        (b"", "The file ends before its last line: it was cut off. Export the account again."),
        (first + second + third[:-9], "The file ends before its last line: it was cut off. Export the account again."),
        (first + second + third, "The file ends before its last line: it was cut off. Export the account again."),
        (whole[:-9], "The file ends before its last line: it was cut off. Export the account again."),
        (
            first + second + b"\0" * 9 + b"\n",
            (
                "Line 3 of the file is not valid: body must be well-formed JSON. The file is incomplete or damaged; "
                "export the account again."
            ),
        ),
        (
            (tmp_path / "plaintext").read_bytes(),
            (
                "This is a file of export_plaintext, which cannot be imported; to move an account, use a file of "
                "export_account."
            ),
        ),
        (b"a text\n", "This is no file of export_account, or its beginning is damaged."),
        (first[:20], "This is no file of export_account, or its beginning is damaged."),
        (
            first.replace(b'"version":2', b'"version":3'),
            "Line 1 of the file is not valid: version must be 2: no other is read here.",
        ),
    ]:
        (tmp_path / "other").write_bytes(raw)
        with pytest.raises(Invalid) as raised:
            clients.import_account("http://127.0.0.1:9", tmp_path / "other", email, PASSWORD)
        assert str(raised.value) == said


def test_an_import_to_the_server_of_the_file_is_told(moving: tuple[Client, str, Path], server: Server) -> None:
    """That it may be that server, and what to do then."""
    _, email, path = moving
    with pytest.raises(Tampered, match=r"the server that the file was exported from.*the address of the new server"):
        Client.import_account(url_of(server), path, email, PASSWORD)


def test_a_file_that_was_altered_is_refused(
    moving: tuple[Client, str, Path], other_server: Server, tmp_path: Path
) -> None:
    """Whoever alters a file and mends its checksum is found out by the keys, and nothing is sent to the new server."""
    _, email, path = moving
    for number, (fault, (change, error)) in enumerate(ALTERED.items()):
        print(fault)  # noqa: T201 - the last one is the one that failed
        spoilt = altered(path, tmp_path / f"altered {number}", change)
        with pytest.raises(error) as refused:
            Client.import_account(url_of(other_server), spoilt, email, PASSWORD)
        assert PASSWORD not in str(refused.value)
    assert not is_registered(other_server, email)


def test_a_row_of_keys_that_were_rotated_away_is_refused(
    moving: tuple[Client, str, Path], other_server: Server, tmp_path: Path
) -> None:
    """Whoever had the keys of before a rotation cannot put a newer version into a file that follows on a newer key."""
    client, email, path = moving
    with pytest.raises(Tampered):
        Client.import_account(url_of(other_server), forged(client, path, tmp_path / "forged"), email, PASSWORD)


def test_a_file_that_was_damaged_is_refused(
    moving: tuple[Client, str, Path], other_server: Server, tmp_path: Path
) -> None:
    """Cut off at any place, lengthened, or with any byte changed: refused before anything is sent."""
    _, email, path = moving
    whole = path.read_bytes()
    spoilt = tmp_path / "spoilt"
    cuts = [0, 1, 100, len(whole) // 3, len(whole) // 2, len(whole) - 1_000, len(whole) - 2]
    flips = [50, len(whole) // 4, len(whole) // 2, len(whole) - 400, len(whole) - 20]
    cuts.append(whole.rindex(b"\n", 0, -1) + 1)  # before the trailer, at the end of a line
    files = [whole[:cut] for cut in cuts] + [whole + b"{}", whole + whole]
    files += [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in flips]
    for file in files:
        spoilt.write_bytes(file)
        with pytest.raises((Invalid, Tampered, InvalidCredentials)):
            Client.import_account(url_of(other_server), spoilt, email, PASSWORD)
    assert not is_registered(other_server, email)


def test_two_accounts_do_not_mix(moving: tuple[Client, str, Path], server: Server, tmp_path: Path) -> None:
    """Rows, vaults or keyrings of another account, with the same password, are not taken into a file."""
    _, email, path = moving
    with Client(url_of(server)) as client:
        furnish(client)
        client.export_account(tmp_path / "other")
    for file in mixed(path, tmp_path / "other", tmp_path / "mixed"):
        with pytest.raises((Tampered, RolledBack, InvalidCredentials)):
            Client.import_account(url_of(server), file, email, PASSWORD)


def test_only_the_password_opens_a_file(moving: tuple[Client, str, Path], other_server: Server, tmp_path: Path) -> None:
    """Another password, another email and a file of a plain account are refused, each with a sentence, and not sent."""
    _, email, path = moving
    url = url_of(other_server)
    for who, secret in ((email, "not the right password"), (unique_email(), PASSWORD)):
        with pytest.raises(InvalidCredentials, match="do not open the account in the file"):
            Client.import_account(url, path, who, secret)
        assert not is_registered(other_server, who)
    plain = write(tmp_path / "plain", [{**lines(path)[0], "kdf": None}])
    with pytest.raises(Invalid, match="has no keyring"):
        Client.import_account(url, plain, email, PASSWORD)


# Again, and elsewhere


def test_a_file_comes_in_once(moving: tuple[Client, str, Path], other_server: Server) -> None:
    """Again, it changes nothing; after the account was used, and where another has the email, it is refused."""
    client, email, path = moving
    url = url_of(other_server)
    before = contents(client)
    for _ in range(2):
        with Client.import_account(url, path, email, PASSWORD) as new:
            assert contents(new) == before
    with Client(url) as used:
        used.login(email, PASSWORD)
        used.vault("private").collection("notes").create("used")
        with pytest.raises(AccountNotEmpty, match="has been changed there since"):
            Client.import_account(url, path, email, PASSWORD)
        used.vault("another", create=True)
        with pytest.raises(AccountNotEmpty, match="has been changed there since"):
            Client.import_account(url, path, email, PASSWORD)
        assert len(contents(used)) == len(before) + 1


@pytest.mark.parametrize("secret", [PASSWORD, "another battery staple"])
def test_an_email_that_is_taken_is_told(moving: tuple[Client, str, Path], other_server: Server, secret: str) -> None:
    """Another account of this email, whatever its password, stays as it is."""
    _, email, path = moving
    url = url_of(other_server)
    with Client(url) as taken:
        taken.register(email, secret)
        taken.vault("mine", create=True)
        with pytest.raises(EmailAlreadyExists, match="another account with this email"):
            Client.import_account(url, path, email, PASSWORD)
        assert [vault.name for vault in taken.vaults()] == ["mine"]


def test_another_file_needs_a_restart(moving: tuple[Client, str, Path], other_server: Server, tmp_path: Path) -> None:
    """An unfinished import of an earlier file is told, and ended only where the caller says so."""
    client, email, path = moving
    url = url_of(other_server)
    client.export_account(tmp_path / "later")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(blocking, "Driver", CutUpload)
        with pytest.raises(Crash):
            Client.import_account(url, path, email, PASSWORD)
    with pytest.raises(ImportUnfinished, match="restart=True"):
        Client.import_account(url, tmp_path / "later", email, PASSWORD)
    with Client.import_account(url, tmp_path / "later", email, PASSWORD, restart=True) as new:
        assert contents(new) == contents(client)


def test_an_invitation_serves_the_whole_move(moving: tuple[Client, str, Path], tmp_path: Path) -> None:
    """A closed server takes a move by invitation; once registered, a call continues with the code or without."""
    client, email, path = moving
    closed = Server(tmp_path / "closed", SIGNUPS="closed")
    try:
        url = url_of(closed.start())
        with pytest.raises(SignupsClosed):
            Client.import_account(url, path, email, PASSWORD)
        code = invite(closed)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(blocking, "Driver", CutUpload)
            with pytest.raises(Crash):
                Client.import_account(url, path, email, PASSWORD, invitation=code)
        for invitation in (code, None):
            with Client.import_account(url, path, email, PASSWORD, invitation=invitation) as new:
                assert contents(new) == contents(client)
    finally:
        closed.abandon()


class Crash(BaseException):
    """The process ends here."""


class CutUpload(Driver):
    """Sends a part of the file only, and ends."""

    def _perform(self, effect: Effect) -> Any:
        if getattr(effect, "path", "") == "/auth/import":
            first, path = effect.body.first, Path(effect.body.path)  # type: ignore[union-attr]
            with pytest.MonkeyPatch.context() as patched:
                rows = path.read_bytes().splitlines(keepends=True)
                patched.setattr(self.http, "_content", lambda _: iter([first, *rows[:-3]]))
                super()._perform(effect)
            raise Crash
        return super()._perform(effect)


class Crashing(Driver):
    """Ends the process at a given step, before it is taken or after."""

    left, after, steps = 0, False, 0

    def _perform(self, effect: Effect) -> Any:
        cls = type(self)
        cls.left -= 1
        cls.steps += 1
        if cls.left < 0 and not cls.after:
            raise Crash
        result = super()._perform(effect)
        if cls.left < 0:
            raise Crash
        return result


@pytest.mark.parametrize("after", [False, True])
def test_an_import_that_ends_at_any_step_is_continued(
    server: Server, other_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, after: bool
) -> None:
    """Cut off at its first step, its second, and so on, of one and the same import: the next call continues it."""
    path, url = tmp_path / "account", url_of(other_server)
    with Client(url_of(server)) as client:
        email = furnish(client)
        client.export_account(path)
        before = contents(client)
    monkeypatch.setattr(blocking, "Driver", Crashing)
    Crashing.after = after
    done = at = 0
    while not done:
        Crashing.left = at
        try:
            with Client.import_account(url, path, email, PASSWORD) as new:
                Crashing.left = 1_000
                assert contents(new) == before
            done = 1
        except Crash:
            at += 1
    assert at > 10


def test_a_server_that_keeps_less_history_is_told(moving: tuple[Client, str, Path], tmp_path: Path) -> None:
    """The account is there, verified; that history was left out is an error until the caller accepts it."""
    client, email, path = moving
    frugal = Server(tmp_path / "frugal", HISTORY_VERSIONS="1")
    try:
        frugal.start()
        with pytest.raises(HistoryLeftOut) as told:
            Client.import_account(url_of(frugal), path, email, PASSWORD)
        assert (told.value.details or {})["leftOut"] > 0
        with Client.import_account(url_of(frugal), path, email, PASSWORD, allow_less_history=True) as new:
            assert contents(new) == contents(client)
    finally:
        frugal.abandon()


def test_a_replica_moves_along(clients: ClientFactory, other_server: Server, tmp_path: Path) -> None:
    """A replica of the old server is opened with a client of the new one: what waits in it is sent there, once."""
    old = clients.client()
    email = furnish(old)
    with_replica = tmp_path / "replica"
    replica = old.open_replica(with_replica)
    replica.sync()
    old.export_account(tmp_path / "account")
    kept = replica.vault("private").collection("notes")
    written = kept.create({"written": "meanwhile"})
    changed = kept.replace(next(iter(kept)), {"changed": "meanwhile"})
    replica.close()
    new = clients.import_account(url_of(other_server), tmp_path / "account", email, PASSWORD)
    moved = clients.client(url_of(other_server))
    moved.login(email, PASSWORD)
    replica = moved.open_replica(with_replica)
    report = replica.sync()
    assert (report.conflicts, report.refused, replica.pending) == ([], [], 0)
    notes = new.vault("private").collection("notes")
    assert notes.get(written.uid).value == {"written": "meanwhile"}
    assert notes.get(changed.uid).value == {"changed": "meanwhile"}
    replica.close()
