"""Files of accounts that were altered by somebody on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from strongroom.client import Client, RolledBack, Tampered, WeakParameters
from strongroom.client.format import names, seal
from strongroom.client.format.encoding import short
from strongroom.errors import (
    Invalid,
    Refusal,
)
from tests.client.moving_accounts import (
    DOCUMENT,
    Json,
    alter_keyring,
    delete,
    drop_first,
    edit,
    lines,
    repeat_first,
    repeat_version,
    swap,
    undelete,
    write,
)
from tests.kit.servers.process import Server


def is_registered(server: Server, email: str) -> bool:
    """Whether an email can be registered no more."""
    account = {"email": email, "password": "a plain password"}
    return server.connect().post("/auth/email/register", json=account).status_code == 409


ALTERED: dict[str, tuple[Any, type[Refusal]]] = {
    "contents exchanged": (swap(DOCUMENT, "data"), Tampered),
    "contents and proofs of two documents exchanged": (
        lambda rows: swap(DOCUMENT, "hmac")(swap(DOCUMENT, "data")(rows)),
        Tampered,
    ),
    "uids of two documents exchanged": (swap(DOCUMENT, "uid"), Tampered),
    "another version of a document": (edit(DOCUMENT, version=900), Tampered),
    "a document without a proof": (edit(DOCUMENT, hmac=None), Tampered),
    "another collection": (edit(DOCUMENT, collection="plain"), Tampered),
    "a deletion undone": (undelete, Tampered),
    "a deletion invented": (delete, Tampered),
    "a document twice": (repeat_first, Tampered),
    "a version twice": (repeat_version, Tampered),
    "contents of the history exchanged": (swap("version", "data"), Tampered),
    "another version in the history": (edit("version", version=1_000), Tampered),
    "blobs of the history exchanged": (swap("blobVersion", "data"), Tampered),
    "the keyring at another version": (edit("keyring", version=900), Tampered),
    "keyrings of the history exchanged": (swap("keyringVersion", "keyring"), Tampered),
    "a keyring of the history with another content": (alter_keyring, Tampered),
    "a vault less": (drop_first("vault"), RolledBack),
    "a keyring less": (drop_first("keyring"), Invalid),
    "a weak derivation": (
        lambda rows: [{**rows[0], "kdf": {**rows[0]["kdf"], "memory": 1_024}}, *rows[1:]],
        WeakParameters,
    ),
    "a costly derivation": (
        lambda rows: [{**rows[0], "kdf": {**rows[0]["kdf"], "memory": 1 << 24}}, *rows[1:]],
        WeakParameters,
    ),
    "no derivation": (lambda rows: [{**rows[0], "kdf": None}, *rows[1:]], Tampered),
    "a later format": (lambda rows: [{**rows[0], "version": 3}, *rows[1:]], Invalid),
}


def forged(client: Client, path: Path, target: Path) -> Path:
    """A file with a version under keys of before a rotation, which follows on one under the keys of after it."""
    rows = lines(path)[:-1]
    entry = client._core.keyring().vault("private")
    assert entry is not None
    keys = client._core.keyring().vault_keys(entry)
    past = msgspec.structs.replace(keys, keys=keys.keys[:1])
    at = next(
        n
        for n, row in enumerate(rows)
        if row["kind"] == "document" and row["vaultUid"] == entry.uid and "deletedAt" not in row
    )
    row = rows[at]
    assert seal.read_proof(row["hmac"]).generation == 2
    old_keys = names.collection_keys(past, "notes", sealed=True)
    wire = next(one["collection"] for one in rows if one["kind"] == "document" and one["uid"] == row["uid"])
    version = row["version"] + 1
    made = seal.seal_document(old_keys, row["uid"], version, "forged", parent=short(row["hmac"]), wire=wire)
    rows[at] = {**row, "version": version, "data": made.data, "hmac": made.hmac}
    last = max(n for n, one in enumerate(rows) if one["kind"] == "version" and one["vaultUid"] == entry.uid)
    times = {"updatedAt": rows[last]["updatedAt"] + 1, "replacedAt": rows[last]["updatedAt"] + 1}
    rows.insert(last + 1, {**row, **times, "kind": "version"})
    return write(target, rows)


def mixed(path: Path, other: Path, target: Path) -> Iterator[Path]:
    """Files that are put together from two accounts, one after another in the same place."""
    mine, others = lines(path)[:-1], lines(other)[:-1]

    def of(rows: list[Json], *kinds: str) -> list[Json]:
        return [row for row in rows if row["kind"] in kinds]

    everything = ("vault", "document", "version", "blobVersion")
    together = {
        "their vaults": [*of(mine, "header", "keyring", "keyringVersion"), *of(others, *everything)],
        "their history of keyrings": [
            *of(mine, "header", "keyring"), *of(others, "keyringVersion"), *of(mine, *everything)
        ],
        "their keyring": [mine[0], *of(others, "keyring", "keyringVersion"), *of(mine, *everything)],
    }  # fmt: skip
    for fault, rows in together.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        clock = max(row["clock"] for row in (mine[0], others[0]))
        yield write(target, [{**rows[0], "clock": clock}, *rows[1:]])
