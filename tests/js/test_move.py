"""Accounts that move: the file of one client is read by the other, and what is not right in it is refused by both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client, HistoryLeftOut, Invalid, InvalidCredentials, Locked, Refusal, RolledBack, Tampered
from strongroom.errors import AccountNotEmpty, EmailAlreadyExists, ImportUnfinished, SignupsClosed, Unavailable
from tests.client.altered_files import ALTERED, forged, is_registered, mixed
from tests.client.hostile.lying_proxy import Liar, Talk
from tests.client.moving_accounts import Change, contents, furnish, lines, spelled, url_of, write
from tests.client.moving_lies import NOT_KEPT, SEEN_NEWER
from tests.client.operator import invite
from tests.kit.clients.typescript import TypeScriptClientFactory, camel
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

ROWS = ("vault", "document", "version", "blobVersion")


@pytest.mark.parametrize("from_python", [True, False])
def test_an_account_moves_whole(
    clients: TypeScriptClientFactory,
    other_server: Server,
    tmp_path: Path,
    *,
    from_python: bool,
) -> None:
    """One client exports, the other imports: documents, deletions, versions, blobs, names, the recovery key."""
    path, again, url = tmp_path / "account", tmp_path / "again", url_of(other_server)
    with Client(clients.url) as python:
        old = python if from_python else clients.client()
        email = furnish(old)
        recovery_key = old.make_recovery_key(PASSWORD)
        before = contents(old)
        old.export_account(path)
    importing: Callable[..., Any] = clients.import_account if from_python else Client.import_account
    exporting: Callable[..., Any] = Client if from_python else clients.client
    new = importing(url, path, email, PASSWORD)
    assert contents(new) == before
    reader = exporting(url)
    reader.login(email, PASSWORD)
    assert contents(reader) == before
    new.export_account(again)
    there, here = lines(path), lines(again)
    rows = [line for line in there if line["kind"] in ROWS]
    assert [line for line in here if line["kind"] in ROWS] == rows
    assert {line["kind"] for line in rows} == set(ROWS)
    keyrings = {line["keyring"] for line in there if "keyring" in line["kind"]}
    assert keyrings <= {line["keyring"] for line in here if "keyring" in line["kind"]}
    note = new.vault("private").collection("notes").create({"new": "home"})
    assert reader.vault("private").collection("notes").get(note.uid).value == {"new": "home"}
    recovered = exporting(url)
    recovered.recover(email, recovery_key, "another battery staple")
    assert contents(recovered)["open"] == before["open"]
    for client in (new, reader, recovered):
        client.close()


def test_neither_server_can_act_on_the_other(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    other_server: Server,
) -> None:
    """The new server has another salt, and so another auth key for the same password."""
    _, email, path = moving
    told: list[int] = []
    new = clients.import_account(
        url_of(other_server), path, email, PASSWORD, progress=lambda done, _: told.append(done)
    )
    kdf = other_server.connect().post("/auth/email/prelogin", json={"email": email}).json()["kdf"]
    assert kdf["salt"] != lines(path)[0]["kdf"]["salt"]
    assert {times * path.stat().st_size for times in (1, 2, 3)} <= set(told)
    with pytest.raises(Tampered, match="the server that the file was exported from"):
        clients.import_account(clients.url, path, email, PASSWORD)
    with pytest.raises(Locked):
        clients.with_token(new.vault("open").token("agent"), url_of(other_server)).export_account(path)


def test_a_file_that_was_altered_is_refused(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    other_server: Server,
    tmp_path: Path,
) -> None:
    """The table of the Python client: the same refusals, nothing is sent, and no error shows the password."""
    client, email, path = moving
    for fault, (change, error) in ALTERED.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        spoilt = write(tmp_path / "altered", change(lines(path)[:-1]))
        with pytest.raises(error) as refused:
            clients.import_account(url_of(other_server), spoilt, email, PASSWORD)
        assert PASSWORD not in str(refused.value.args)
    with pytest.raises(Tampered):
        clients.import_account(url_of(other_server), forged(client, path, tmp_path / "forged"), email, PASSWORD)
    with Client(clients.url) as other:
        furnish(other)
        other.export_account(tmp_path / "other")
    for file in mixed(path, tmp_path / "other", tmp_path / "mixed"):
        with pytest.raises((Tampered, RolledBack, InvalidCredentials)):
            clients.import_account(url_of(other_server), file, email, PASSWORD)
    for who, secret in ((email, "not the right password"), (unique_email(), PASSWORD)):
        with pytest.raises(InvalidCredentials, match="do not open the account in the file"):
            clients.import_account(url_of(other_server), path, who, secret)
    assert not is_registered(other_server, email)


def test_a_file_that_was_damaged_is_refused(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    tmp_path: Path,
) -> None:
    """Cut off, lengthened, of another kind, or with a byte changed: what it is. Nothing is sent: there is no server."""
    client, email, path = moving
    client.export_plaintext(tmp_path / "plaintext")
    whole = path.read_bytes()
    first, second, third = whole.splitlines(keepends=True)[:3]
    cut = "The file ends before its last line: it was cut off. Export the account again."
    damaged = "The file is incomplete or damaged; export the account again."
    told = {
        b"": cut,
        first + second + third[:-9]: cut,
        first + second + third: cut,
        whole[:-9]: cut,
        first + second + b"\0\n": f"Line 3 of the file is not valid: body must be well-formed JSON. {damaged}",
        first + second + b"\xff\n": f"Line 3 of the file is not valid: body must be text in UTF-8. {damaged}",
        (tmp_path / "plaintext").read_bytes(): "This is a file of a plaintext export, which cannot be imported",
        b"a text\n": "This is no file of exportAccount, or its beginning is damaged.",
        first.replace(b'"version":2', b'"version":3'): "Line 1 of the file is not valid: version must be 2",
        whole + b"{}\n": "comes after the trailer, which must be the last line",
        whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:]: "sha256 is not that of the lines before",
    }
    for raw, said in told.items():
        (tmp_path / "other").write_bytes(raw)
        with pytest.raises(Invalid) as raised:
            clients.import_account("http://127.0.0.1:9", tmp_path / "other", email, PASSWORD)
        assert said in str(raised.value), said
    for at in (50, len(whole) // 4, len(whole) // 2, len(whole) - 400):
        (tmp_path / "other").write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises((Invalid, Tampered, InvalidCredentials)):
            clients.import_account("http://127.0.0.1:9", tmp_path / "other", email, PASSWORD)


def _edited(rows: list[Any], kind: str, **fields: Any) -> list[Any]:
    at = next(n for n, row in enumerate(rows) if row["kind"] == kind)
    return [*rows[:at], {**rows[at], **fields}, *rows[at + 1 :]]


def _exchanged(rows: list[Any], kind: str) -> list[Any]:
    at = next(n for n in range(1, len(rows)) if rows[n - 1]["kind"] == rows[n]["kind"] == kind)
    return [*rows[: at - 1], rows[at], rows[at - 1], *rows[at + 1 :]]


def _version_first(rows: list[Any]) -> list[Any]:
    """The last document of a vault after a version of another one."""
    version = next(n for n, row in enumerate(rows) if row["kind"] == "version" and row["uid"] != rows[n - 1]["uid"])
    assert rows[version - 1]["kind"] == "document"
    return [*rows[: version - 1], rows[version], rows[version - 1], *rows[version + 1 :]]


BAD_LINES: dict[str, Change] = {
    "no header": lambda rows: rows[1:],
    "two headers": lambda rows: [rows[0], *rows],
    "a keyring after the vaults": lambda rows: [*rows, rows[1]],
    "two keyrings": lambda rows: [*rows[:2], *rows[1:]],
    "a replaced keyring before the keyring": lambda rows: [rows[0], rows[2], rows[1], *rows[3:]],
    "replaced keyrings in another order": lambda rows: [*rows[:2], rows[3], rows[2], *rows[4:]],
    "a vault after the clock": lambda rows: [{**rows[0], "clock": 1}, *rows[1:]],
    "a document without a vault": lambda rows: [row for row in rows if row["kind"] != "vault"],
    "documents in another order": lambda rows: _exchanged(rows, "document"),
    "versions in another order": lambda rows: _exchanged(rows, "version"),
    "a version before the documents": _version_first,
    "a document after its vault": lambda rows: _edited(rows, "document", updatedAt=2**52),
    "a time that is no number": lambda rows: _edited(rows, "document", createdAt="1"),
    "a time below zero": lambda rows: _edited(rows, "document", createdAt=-1),
    "a version that no server has": lambda rows: _edited(rows, "document", version=2**53),
    "a version of zero": lambda rows: _edited(rows, "document", version=0),
    "a uid that is none": lambda rows: _edited(rows, "document", uid="no uid"),
    "a collection without a name": lambda rows: _edited(rows, "document", collection=""),
    "a name with a control character": lambda rows: _edited(rows, "vault", name="a\nb"),
    "data that is no base64": lambda rows: _edited(rows, "document", data="!"),
    "a document without data": lambda rows: _edited(rows, "document", data=None),
    "a purged document that lives": lambda rows: _edited(rows, "document", purgedAt=1, data=None, deletedAt=None),
    "a purged document with data": lambda rows: _edited(rows, "document", purgedAt=2**51, deletedAt=2**50),
    "a blob without its salt": lambda rows: _edited(rows, "vault", data="AAAA", salt=None),
    "a salt without a blob": lambda rows: _edited(rows, "vault", data=None, salt="AAAA"),
    "a proof that is too long": lambda rows: _edited(rows, "document", hmac="a" * 1_025),
    "made after it was changed": lambda rows: _edited(rows, "document", createdAt=2**51),
    "replaced before it was written": lambda rows: _edited(rows, "version", replacedAt=1),
    "an unknown kind": lambda rows: [*rows[:-1], {**rows[-1], "kind": "toString"}],
}


def test_a_line_that_breaks_a_rule_is_refused(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    tmp_path: Path,
) -> None:
    """By both clients, with the same error; their sentences name the same line and the same field."""
    _, email, path = moving
    for fault, change in BAD_LINES.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        spoilt = write(tmp_path / "spoilt", change(lines(path)[:-1]))
        raised: list[Any] = []
        for importing in (Client.import_account, clients.import_account):
            with pytest.raises(Invalid) as refused:
                importing("http://127.0.0.1:9", spoilt, email, PASSWORD)
            raised.append(refused.value.details or {})
        python, typescript = raised
        assert python["line"] == typescript["line"]
        assert set(python["fields"]) == {camel(name) for name in typescript["fields"]}, (python, typescript)


def test_a_file_comes_in_once(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    other_server: Server,
    tmp_path: Path,
) -> None:
    """Again, it changes nothing; after the account was used, and where another has the email, it is refused.

    An unfinished import of another file is told, and given up with `restart`.
    """
    client, email, path = moving
    url = url_of(other_server)
    for _ in range(2):
        new = clients.import_account(url, path, email, PASSWORD)
    assert contents(new) == contents(client)
    new.vault("private").collection("notes").create("used")
    with pytest.raises(AccountNotEmpty, match="has been changed there since"):
        clients.import_account(url, path, email, PASSWORD)
    new.vault("another", create=True)
    with pytest.raises(AccountNotEmpty, match="has been changed there since"):
        clients.import_account(url, path, email, PASSWORD)
    new.delete_account(PASSWORD)
    with Client(url) as other:
        other.register(email, PASSWORD)
        with pytest.raises(EmailAlreadyExists, match="another account with this email"):
            clients.import_account(url, path, email, PASSWORD)
        other.change_password(PASSWORD, "another battery staple")
        with pytest.raises(EmailAlreadyExists, match="another account with this email"):
            clients.import_account(url, path, email, PASSWORD)
        other.delete_account("another battery staple")
    client.vault("private").collection("notes").create("written later")
    client.export_account(tmp_path / "later")
    liar = Liar(other_server.port)
    try:
        liar.lie = _cut_upload
        with pytest.raises(Refusal):
            clients.import_account(liar.url, path, email, PASSWORD, retries=0)
        with pytest.raises(ImportUnfinished, match="unfinished import of another file"):
            clients.import_account(url, tmp_path / "later", email, PASSWORD)
    finally:
        liar.close()
    restarted = clients.import_account(url, tmp_path / "later", email, PASSWORD, restart=True)
    assert contents(restarted) == contents(client)


def _cut_upload(talk: Talk) -> None:
    """Pass on an upload without its last lines: the connection broke."""
    if talk.path == "/auth/import":
        talk.given = b"".join(talk.given.splitlines(keepends=True)[:-3])
        talk._call.headers.replace_header("content-length", str(len(talk.given)))


def _lie(change: Change, cut: int | None = None) -> Callable[[Talk], None]:
    """Alter what the server's export says."""

    def lie(talk: Talk) -> None:
        if talk.path == "/auth/export" and talk.status == 200:
            rows = [json.loads(line) for line in talk.answer()[2].splitlines()]
            talk.say(spelled(change(rows[:-1]))[:cut], headers={"content-type": "application/x-ndjson"})

    return lie


@pytest.fixture
def liar(other_server: Server) -> Iterator[Liar]:
    """A liar before the new server."""
    made = Liar(other_server.port)
    yield made
    made.close()


def test_a_new_server_that_did_not_keep_all_is_found_out(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    liar: Liar,
) -> None:
    """Whatever the new server lacks or shows otherwise, the move does not say that it is done; with it, it does."""
    client, email, path = moving
    for fault, (change, error) in NOT_KEPT.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        liar.lie = _lie(change)
        with pytest.raises(error):
            clients.import_account(liar.url, path, email, PASSWORD)
    liar.lie = _lie(lambda rows: rows, cut=5_000)
    with pytest.raises((Invalid, Unavailable)):
        clients.import_account(liar.url, path, email, PASSWORD)
    liar.lie = _lie(NOT_KEPT["a version less"][0])
    assert contents(clients.import_account(liar.url, path, email, PASSWORD, allow_less_history=True)) == contents(
        client
    )
    liar.lie = None
    assert contents(clients.import_account(liar.url, path, email, PASSWORD)) == contents(client)


def test_an_export_that_lies_is_refused(clients: TypeScriptClientFactory, server: Server) -> None:
    """What is older than this device has seen, altered, left out or cut off; without the lie there is a file."""
    liar = Liar(server.port)
    try:
        told = clients.client(liar.url)
        furnish(told)
        contents(told)
        for fault, (change, error) in SEEN_NEWER.items():
            print(fault)  # noqa: T201 - the last one is the one that failed
            liar.lie = _lie(change)
            with pytest.raises(error):
                told.exported()
        liar.lie = _lie(lambda rows: rows, cut=5_000)
        with pytest.raises((Invalid, Unavailable)):
            told.exported()
        liar.lie = None
        assert told.exported().endswith(b"}\n")
    finally:
        liar.close()


def test_a_server_that_is_closed_or_keeps_less_is_told(
    clients: TypeScriptClientFactory,
    moving: tuple[Client, str, Path],
    own_server: Server,
) -> None:
    """It asks for an invitation; that history was left out is an error until the caller accepts it."""
    client, email, path = moving
    own_server.settings |= {"SIGNUPS": "closed", "HISTORY_VERSIONS": "1"}
    url = url_of(own_server.start())
    with pytest.raises(SignupsClosed):
        clients.import_account(url, path, email, PASSWORD)
    with pytest.raises(HistoryLeftOut) as told:
        clients.import_account(url, path, email, PASSWORD, invitation=invite(own_server))
    assert (told.value.details or {})["leftOut"] > 0
    new = clients.import_account(url, path, email, PASSWORD, allow_less_history=True)
    assert contents(new) == contents(client)
