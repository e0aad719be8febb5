"""Lies about a restore: a server that says it was restored from a backup may have forgotten, and nothing else.

What is sent to it is the identical text of before, at its own version; nothing is sealed because of its word.
"""

from __future__ import annotations

import base64
import itertools
from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client import keep_mine, keep_theirs
from strongroom.client.errors import CredentialsRolledBack
from strongroom.client.format import derive, keyring, seal
from strongroom.client.format.encoding import short
from strongroom.client.format.primitives import random
from tests.client.forged_keyrings import earlier
from tests.client.hostile.attack import CANARY, CONFLICT, HARMLESS, REPEATED, RolledBack, Tampered, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_accounts import KEYRING, PRELOGIN
from tests.client.hostile.on_documents import of_token
from tests.client.hostile.on_forks import newest
from tests.client.hostile.scenario import Row, Stage, about, about_row, about_rows, about_vault, together, with_
from tests.kit.people.credentials import PASSWORD

_numbers = itertools.count(1)


def epoch(name: Callable[[], str]) -> Lie:
    """Another epoch, wherever it is said."""

    def lie(talk: Talk) -> None:
        if talk.path == "/health":
            talk.say(talk.told | {"epoch": name()})
        elif talk.path.startswith("/vault") and "/vaults/" not in talk.path and talk.status < 300:
            told = talk.told
            if "vaults" in told:
                talk.say({"vaults": [row | {"epoch": name()} for row in told["vaults"]]})
            elif "epoch" in told:
                talk.say(told | {"epoch": name()})

    return lie


def reads(lie: Lie) -> Lie:
    """A lie about what is read; what is written is answered as the server answers it."""
    return lambda talk: lie(talk) if talk.method == "GET" else None


def restored(*lies: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """A new epoch, and what the server then shows."""

    def prepare(stage: Stage) -> Lie:
        number = next(_numbers)
        return together(*(lie(stage) for lie in lies), epoch(lambda: f"another {number}"))

    return prepare


def epochs(name: str, *lies: Callable[[Stage], Lie], replica: Any, **more: Any) -> None:
    lie = restored(*lies)
    attack(f"a new epoch{name}", lie, sync=lie, replica=replica, **more)


epochs("", replica=HARMLESS)
attack(
    "a new epoch at every request",
    lambda _stage: epoch(lambda: f"epoch {next(_numbers)}"),
    sync=lambda _stage: epoch(lambda: f"epoch {next(_numbers)}"),
    replica=HARMLESS,
)


# Documents


def older(stage: Stage) -> Lie:
    return reads(about_row(stage, stage.note.uid, lambda row: stage.old | {"updatedAt": row["updatedAt"]}))


def left_out(stage: Stage) -> Lie:
    return reads(about_row(stage, stage.other.uid, lambda _row: None))


def nothing_at_all(stage: Stage) -> Lie:
    return reads(together(about_rows(stage, lambda _rows: []), about_vault(stage, with_(documents=0))))


def at_other_times(stage: Stage) -> Lie:
    def later(rows: list[Row]) -> list[Row]:
        return [row | {name: row[name] + 7 for name in ("createdAt", "updatedAt")} for row in rows]

    return together(about_rows(stage, later), about_vault(stage, with_(updatedAt=lambda at: at + 7)))


def branch(version: int, parent: Callable[[Stage], bytes]) -> Callable[[Stage], Lie]:
    """A row of this version that a key holder made, and that this device has never seen."""

    def prepare(stage: Stage) -> Lie:
        made = seal.seal_document(
            stage.keys(), stage.note.uid, version, f"{CANARY} another branch", parent=parent(stage)
        )
        change = {"version": version, "data": made.data, "hmac": made.hmac}
        return reads(about_row(stage, stage.note.uid, lambda row: row | change))

    return prepare


def waiting(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """A change of the note waits to be sent; then the lie."""

    def prepare(stage: Stage) -> Lie:
        mine = stage.mine()
        mine.replace(mine.get(stage.note.uid), f"{CANARY} waits here")
        return lie(stage)

    return prepare


def random_parent(_stage: Stage) -> bytes:
    return random(16)


def of_the_first(stage: Stage) -> bytes:
    return short(stage.first.proof)


lower = branch(1, lambda _stage: bytes(16))
epochs(" and an older row", older, replica=REPEATED)
epochs(" and a row left out", left_out, replica=REPEATED)
epochs(" and no rows at all", nothing_at_all, replica=REPEATED)
epochs(" and the same rows at other times", at_other_times, replica=HARMLESS)
epochs(" and a row of another branch", branch(2, of_the_first), replica=CONFLICT)
epochs(" and a lower row of another branch", lower, replica=CONFLICT)
epochs(" and a higher row of another branch", branch(5, random_parent), replica=CONFLICT)
for resolver in (keep_mine, keep_theirs):
    called = resolver.__name__.replace("_", " ")
    epochs(f" and a row of another branch, to {called}", branch(2, of_the_first), replica=CONFLICT, resolver=resolver)
    epochs(f" and a lower row of another branch, to {called}", lower, replica=CONFLICT, resolver=resolver)
    lie = waiting(restored(lower))
    attack(
        f"a new epoch and a lower row where a change waits, to {called}",
        lie,
        sync=lie,
        replica=CONFLICT,
        resolver=resolver,
    )


def forged_tombstone(stage: Stage) -> Lie:
    def change(row: Row) -> Row:
        return row | {"deletedAt": row["updatedAt"], "version": row["version"] + 1}

    return reads(about_row(stage, stage.note.uid, change))


def flipped(stage: Stage) -> Lie:
    def change(data: str) -> str:
        *others, last = base64.b64decode(data)
        return base64.b64encode(bytes([*others, last ^ 1])).decode()

    return reads(about_row(stage, stage.note.uid, with_(data=change)))


def mismatched(**changes: Any) -> Callable[[Stage], Lie]:
    """Another answer to what is sent again, which the server has stored."""

    def prepare(stage: Stage) -> Lie:
        def lie(talk: Talk) -> None:
            if talk.path == f"/vaults/{stage.uid}/batch":
                rows = [stage.raw(one["uid"]) | changes for one in talk.asked["operations"]]
                talk.say({"results": rows}, 200)

        return lie

    return prepare


epochs(" and a forged tombstone", forged_tombstone, replica=Tampered)
epochs(" and a document overwritten by a token for another collection", of_token(), replica=Tampered)
epochs(" and a document deleted by a token for another collection", of_token(deletion=True), replica=Tampered)
epochs(" and an older document by a token for another collection", of_token(lambda at: at - 1), replica=Tampered)
epochs(" and ciphertext with one bit turned over", flipped, replica=Tampered)
sent_again: dict[str, Any] = {"writes": ("POST /vaults/",), "partly": True}
epochs(" and what is sent again at another version", older, mismatched(version=9), replica=Tampered, **sent_again)
epochs(" and what is sent again deleted", older, mismatched(deletedAt=5), replica=Tampered, **sent_again)
epochs(" and other ciphertext for what is sent again", older, mismatched(data="AAAA"), replica=Tampered, **sent_again)


# Vaults and blobs


def older_blob(stage: Stage) -> Lie:
    was = {name: stage.old_vault[name] for name in ("data", "salt", "version")}
    return reads(about_vault(stage, lambda row: row | was))


def no_blob(stage: Stage) -> Lie:
    def without(row: Row) -> Row:
        return {name: value for name, value in row.items() if name not in {"data", "salt"}} | {"version": 1}

    return reads(about_vault(stage, without))


def other_blob(version: Callable[[int], int]) -> Callable[[Stage], Lie]:
    """A blob that a key holder made, and that this device has never seen."""

    def prepare(stage: Stage) -> Lie:
        row = stage.raw_vault()
        number = version(row["version"])
        made = seal.seal_blob(stage.vault._opened.keys, row["name"], number, f"{CANARY} branch", parent=random(16))
        change = {"data": made.data, "salt": made.salt, "version": number}
        return about_vault(stage, lambda row: row | change)

    return prepare


epochs(" and an older blob", older_blob, replica=REPEATED)
epochs(" and no blob", no_blob, replica=REPEATED)
epochs(" and a blob of another branch", other_blob(lambda version: version), replica=CONFLICT)
epochs(" and a lower blob of another branch", other_blob(lambda version: version - 1), replica=CONFLICT)
epochs(" and a higher blob of another branch", other_blob(lambda version: version + 1), replica=CONFLICT)
epochs(" and a clock that is set back", lambda stage: about_vault(stage, with_(updatedAt=5)), replica=HARMLESS)


def hidden(stage: Stage) -> Lie:
    """The vault is not there, and is made again."""

    def lie(talk: Talk) -> None:
        if talk.path == "/vault" and talk.method == "GET":
            talk.say({"vaults": [row for row in talk.told["vaults"] if row["uid"] != stage.uid]})
        elif talk.path == "/vault" and talk.method == "POST":
            talk.say(stage.raw_vault(), 200)

    return lie


epochs(" and a vault that is hidden", hidden, replica=REPEATED)


# The keyring


def older_ring(stage: Stage) -> Lie:
    """The keyring of before the newest vault; what is put is taken without a word."""
    before = stage.before
    stage.victim.vault(f"newer than {before['version']}", create=True)
    stage.replica.sync()
    row = {"keyring": before["keyring"], "version": before["version"]}
    put: list[Row] = []

    def lie(talk: Talk) -> None:
        if (talk.method, talk.path) == KEYRING and not put:
            talk.say(talk.told | row)
        elif (talk.method, talk.path) == ("PUT", "/auth/keyring"):
            put.append(talk.asked)
            talk.say(stage.raw_keyring(), 200)

    return lie


def ring(change: Callable[[Stage], Row]) -> Callable[[Stage], Lie]:
    def prepare(stage: Stage) -> Lie:
        row = change(stage)
        return about(*KEYRING, lambda talk: talk.say(talk.told | row))

    return prepare


def other_slots(stage: Stage) -> Row:
    """An older keyring, with slots for the password of that time."""
    mine = newest(stage)
    descriptor = stage.core.descriptor
    assert descriptor is not None
    keys = derive.password_keys(stage.people.email, PASSWORD, descriptor)
    then = msgspec.structs.replace(earlier(mine), sealed_slots=b"")
    return {"keyring": keyring.seal(then, password=keys)[0], "version": then.version}


def same_slots(stage: Stage) -> Row:
    mine = newest(stage)
    then = earlier(mine)
    return {"keyring": keyring.seal(then)[0], "version": then.version}


def other_descriptor(stage: Stage) -> Lie:
    descriptor = stage.people.mallory._core.descriptor
    assert descriptor is not None
    return about(*PRELOGIN, lambda talk: talk.say({"kdf": descriptor.spelled()}))


def other_key(stage: Stage) -> Row:
    """An older keyring with a new vault and another key of a generation: no merge decides between two keys."""
    mine = newest(stage)
    then = earlier(mine).with_vault("another", f"{CANARY} x", sealed=True)
    [first, *rest] = then.vaults
    keys = tuple((generation, random(32)) for generation, _ in first.keys)
    then = msgspec.structs.replace(then, vaults=(msgspec.structs.replace(first, keys=keys), *rest))
    return {"keyring": keyring.seal(then)[0], "version": then.version}


epochs(" and an older keyring", older_ring, replica=REPEATED)
epochs(" and an older keyring with other slots", ring(other_slots), replica=CredentialsRolledBack)
epochs(" and an older descriptor", ring(same_slots), other_descriptor, replica=CredentialsRolledBack)
epochs(" and an older keyring with another key", ring(other_key), replica=RolledBack)
