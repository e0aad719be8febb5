"""What the tests of a move share: an account with everything in it, and files that were altered with care."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

Json = dict[str, Any]
Change = Callable[[list[Json]], list[Json]]
DOCUMENT = "document"


def furnish(client: Any, documents: int = 6) -> str:
    """An account with everything: names sealed and not, history, trash, blobs, a rename, a rotation; its email."""
    email = unique_email()
    client.register(email, PASSWORD)
    notes = client.vault("personal", create=True).collection("notes")
    made = [notes.create({"number": number}) for number in range(documents)]
    made = [notes.replace(note, {**note.value, "changed": 1}) for note in made]
    notes.delete(made[0])
    revived = notes.delete(made[1])
    notes.replace(revived, {"revived": True})
    open_vault = client.vault("open", create=True, sealed=False)
    open_vault.collection("files").create(b"\x00bytes")
    open_vault.blob.put({"settings": 1})
    vault = client.vault("personal")
    for number in range(3):
        vault.blob.put({"blob": number})
    vault.rename("private")
    vault.blob.put({"blob": "renamed"})
    client.vault("private").rotate()
    rotated = client.vault("private").collection("notes")
    rotated.replace(rotated.create({"after": "the rotation"}), {"changed": "after the rotation"})
    client.vault("empty", create=True)
    client.vault("gone", create=True).delete()
    return email


def contents(client: Any) -> Json:
    """Everything that a client reads of its account."""
    found: Json = {}
    for vault in client.vaults():
        blob = vault.blob.get()
        rows = [(one.uid, one.version, one.collection, one.value, one.deleted, one.proof) for one in vault.since(0)]
        found[vault.name] = (vault.uid, None if blob is None else (blob.value, blob.version), rows)
    return found


def lines(path: Path) -> list[Json]:
    """The lines of a file."""
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def spelled(written: Iterable[Json]) -> bytes:
    """A file of these lines, with a trailer that fits them: what somebody makes who wants to deceive."""
    rows = list(written)
    before = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in rows)
    kinds = [line["kind"] for line in rows]
    plural = ("keyring", "keyringVersion", "vault", "document", "version", "blobVersion")
    counts = {f"{kind}s": kinds.count(kind) for kind in plural}
    end = {"kind": "trailer", "counts": counts, "sha256": hashlib.sha256(before).hexdigest()}
    return before + json.dumps(end).encode() + b"\n"


def write(path: Path, written: Iterable[Json]) -> Path:
    """Such a file on disk."""
    path.write_bytes(spelled(written))
    return path


def altered(source: Path, target: Path, change: Change) -> Path:
    """A copy of a file with other lines and a trailer that fits them."""
    return write(target, change(lines(source)[:-1]))


def swap(kind: str, field: str) -> Change:
    """Give two rows of a kind each other's field."""

    def change(rows: list[Json]) -> list[Json]:
        first, second = [n for n, row in enumerate(rows) if row["kind"] == kind and row.get(field)][:2]
        one, two = rows[first], rows[second]
        rows[first], rows[second] = {**one, field: two[field]}, {**two, field: one[field]}
        return rows

    return change


def edit(kind: str, **fields: Any) -> Change:
    """Set fields of the first row of a kind."""

    def change(rows: list[Json]) -> list[Json]:
        at = next(n for n, row in enumerate(rows) if row["kind"] == kind)
        rows[at] = {**rows[at], **fields}
        return rows

    return change


def drop_first(kind: str) -> Change:
    """Leave out the first row of a kind; of a vault, everything in it."""

    def change(rows: list[Json]) -> list[Json]:
        at = next(n for n, row in enumerate(rows) if row["kind"] == kind)
        uid = rows[at].get("uid")
        return [
            row
            for n, row in enumerate(rows)
            if n != at and (kind != "vault" or row.get("vaultUid", row.get("uid")) != uid)
        ]

    return change


def repeat_first(rows: list[Json]) -> list[Json]:
    """The first document of a vault, once more, a moment earlier."""
    pairs = [n for n in range(1, len(rows)) if (rows[n - 1]["kind"], rows[n]["kind"]) == ("vault", DOCUMENT)]
    at = next(n for n in pairs if rows[n]["createdAt"] < rows[n]["updatedAt"])
    earlier = {name: rows[at][name] - 1 for name in ("updatedAt", "deletedAt") if name in rows[at]}
    return [*rows[:at], {**rows[at], **earlier}, *rows[at:]]


def repeat_version(rows: list[Json]) -> list[Json]:
    """The last version of a vault's history, once more, a moment later."""
    at = max(n for n, row in enumerate(rows) if row["kind"] == "version")
    again = {**rows[at], "updatedAt": rows[at]["updatedAt"] + 1, "replacedAt": rows[at]["replacedAt"] + 1}
    return [*rows[: at + 1], again, *rows[at + 1 :]]


def alter_keyring(rows: list[Json]) -> list[Json]:
    """The last keyring that was replaced, with another content."""
    at = max(n for n, row in enumerate(rows) if row["kind"] == "keyringVersion")
    whole = rows[at]["keyring"]
    rows[at] = {**rows[at], "keyring": whole[:-40] + ("A" if whole[-40] != "A" else "B") + whole[-39:]}
    return rows


def undelete(rows: list[Json]) -> list[Json]:
    """A deleted document, shown as if it lived."""
    at = next(n for n, row in enumerate(rows) if row["kind"] == DOCUMENT and "deletedAt" in row)
    rows[at] = {name: value for name, value in rows[at].items() if name != "deletedAt"}
    return rows


def delete(rows: list[Json]) -> list[Json]:
    """A document, shown as if it was deleted."""
    at = next(n for n, row in enumerate(rows) if row["kind"] == DOCUMENT and "deletedAt" not in row)
    rows[at] = {**rows[at], "deletedAt": rows[at]["updatedAt"]}
    return rows


def url_of(server: Server) -> str:
    """The address of a server."""
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def moving(server: Server, tmp_path: Path) -> Iterator[tuple[Client, str, Path]]:
    """A client of an account with everything, its email, and its file."""
    with Client(url_of(server)) as client:
        email = furnish(client)
        client.export_account(tmp_path / "account")
        yield client, email, tmp_path / "account"
