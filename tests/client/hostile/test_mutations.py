"""Whatever happens to a stored row, it is not believed for something that it is not.

3,000 changes in `make test`, 100,000 with SOAK=1. A run prints its seed; set MUTATIONS_SEED to repeat it.
"""

from __future__ import annotations

import base64
import os
import random
import secrets
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import content, keyring, names, seal
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.keys import AccountKey
from strongroom.client.net import decoders
from strongroom.client.net.session import Session
from strongroom.client.operations import documents
from strongroom.client.operations.core import Core
from strongroom.client.operations.device import Device
from tests.support.sampling import rounds

COUNT = rounds(3_000, 100_000)
VAULTS = ("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7")
UIDS = tuple(f"0192f0c2-0000-7000-8000-00000000000{n}" for n in range(4))
TIMES = {"createdAt", "updatedAt", "deletedAt"}
Row = dict[str, Any]
_dice = random.Random  # what is drawn here guards nothing


class World:
    """Rows as a server stores them, and a device that opens them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.keys = AccountKey.new()
        self.core = Core(Session(), Device())
        self.places = {uid: documents.key_scope(uid, self.keys.vault(uid)) for uid in VAULTS}
        self.rows = [row for vault in VAULTS for wire in self._wires(vault) for row in self._furnish(vault, wire)]
        self.blobs = [self._blob(vault, version) for vault in VAULTS for version in (1, 2)]
        ring = keyring.Keyring.new(self.keys, PasswordKeys(auth=bytes(32), wrap=bytes(32)), Descriptor.new())
        self.rings = [ring, ring.with_vault(VAULTS[0], "personal", sealed=True)]
        self.sealed = [ring.sealed() for ring in self.rings]
        self.names = {names.seal_vault_name(self.keys, name): name for name in ("personal", "work", "x" * 40)}

    def _wires(self, vault: str) -> tuple[str, str]:
        return names.seal_collection_name(self.keys.vault(vault), "notes"), "plain"

    def _furnish(self, vault: str, wire: str) -> list[Row]:
        keys = self.keys.vault(vault).collection(wire)
        made: list[Row] = []
        for number, uid in enumerate(UIDS):
            for version in (1, 2, 3):
                value = {"text": f"{vault} {wire} {uid} {version}", "n": number} if number % 2 else bytes(40 * version)
                made.append(_row(keys, uid, version, seal.seal_document(keys, uid, version, value)))
            last = content.to_content("the last words")
            notice = _row(keys, uid, 4, seal.seal_deletion(keys, uid, 4, last))
            made += [
                notice,
                notice | {"version": 5, "deletedAt": 9},
                notice | {"version": 5, "deletedAt": 9, "data": ""},
            ]
        return made

    def _blob(self, vault: str, version: int) -> Row:
        made = seal.seal_blob(self.keys.vault(vault), "wire", version, f"{vault} {version}")
        return {
            "uid": vault,
            "name": "wire",
            "version": version,
            "updatedAt": 5,
            "epoch": "first",
            "data": made.data,
            "salt": made.salt,
        }

    # What a device makes of them

    def open_row(self, body: bytes) -> Any:
        """A row as an answer, opened as a device opens it that has seen nothing."""
        row = decoders.document(body)
        place = self.places.get(row.vault_uid)
        if place is None:
            raise Tampered  # no such place was asked for
        self.core.device = Device()
        found = documents.open_row(self.core, place, row, 0)
        assert found is not None
        return (found.uid, found.vault, found.wire, found.version, found.deleted, found.proof, _plain(found.value))

    def open_blob(self, body: bytes) -> Any:
        row = decoders.vault(body)
        if row.uid not in VAULTS or row.name != "wire":
            raise Tampered
        opened = seal.open_blob(self.keys.vault(row.uid), row)
        return (row.uid, row.version, opened)

    def open_ring(self, body: bytes) -> Any:
        stored = decoders.keyring(body)
        ring = keyring.reopen(stored.keyring, self.keys)
        if ring.version != stored.version:
            raise Tampered
        return ring

    def open_name(self, body: bytes) -> Any:
        return names.open_vault_name(self.keys, body.decode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    return value if isinstance(value, bytes | str) else msgspec.json.encode(value)


def _row(keys: Any, uid: str, version: int, sealed: seal.Sealed) -> Row:
    return {
        "uid": uid,
        "vaultUid": keys.vault,
        "collection": keys.collection,
        "data": sealed.data,
        "hmac": sealed.hmac,
        "version": version,
        "createdAt": 5,
        "updatedAt": 6,
        "deletedAt": None,
    }


# Changes


def bits(dice: random.Random, text: str) -> str:
    """Some bits behind base64 turned over."""
    try:
        raw = bytearray(base64.b64decode(text))
    except ValueError:
        return signs(dice, text)
    for _ in range(dice.choice((1, 1, 1, 2, 8))):
        if raw:
            raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    return base64.b64encode(raw).decode()


def cut(dice: random.Random, text: str) -> str:
    at = dice.randrange(len(text) + 1)
    return dice.choice((text[:at], text[at:], text[:at] + text[at + 4 :], text + text[at:]))


def signs(dice: random.Random, text: str) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice("AZaz09+/=-_. \n\u00e9\u0000") + text[at + dice.choice((0, 1)) :]


def spliced(dice: random.Random, text: str, other: str) -> str:
    at = dice.randrange(len(text) + 1)
    return text[:at] + other[at:]


def changed_text(dice: random.Random, text: str, other: str) -> str:
    how = dice.randrange(5)
    if how == 0:
        return bits(dice, text)
    if how == 1:
        return cut(dice, text)
    if how == 2:
        return signs(dice, text)
    return spliced(dice, text, other) if how == 3 else other


def changed_row(dice: random.Random, row: Row, others: list[Row]) -> Row:
    """A row with one to three fields changed, or taken from other rows."""
    made, other = dict(row), dice.choice(others)
    for _ in range(dice.choice((1, 1, 2, 3))):
        field = dice.choice([*row, *(name for name in ("data", "data", "keyring") if name in row)])
        value = made[field]
        if isinstance(value, str):
            made[field] = changed_text(dice, value, str(other.get(field) or ""))
        elif dice.random() < 0.7:
            made[field] = other[field]
        else:
            made[field] = dice.choice((None, 0, 1, 2, 3, 4, 5, 6, -1, 2**63 - 1, 2**63, 2**64, 1.5, True, "1", [], {}))
    if dice.random() < 0.05:
        made.pop(dice.choice(list(row)))
    return made


def changed_bytes(dice: random.Random, body: bytes) -> bytes:
    """The answer itself, as if the line had changed it."""
    raw = bytearray(body)
    for _ in range(dice.choice((1, 1, 2, 5))):
        raw[dice.randrange(len(raw))] ^= 1 << dice.randrange(8)
    return bytes(raw)


def mutated(dice: random.Random, given: Row, others: list[Row]) -> bytes:
    if dice.random() < 0.2:
        return changed_bytes(dice, msgspec.json.encode(given))
    return msgspec.json.encode(changed_row(dice, given, others))


class Count:
    """What came of the changes."""

    def __init__(self) -> None:
        self.made = self.refused = self.same = 0

    def note(self, open_: Callable[[bytes], Any], body: bytes, honest: Any) -> None:
        """Open it: what opens must be among what key holders made."""
        self.made += 1
        try:
            found = open_(body)
        except (Tampered, RolledBack):
            self.refused += 1
            return
        assert found in honest, f"believed: {body[:600]!r}"
        self.same += 1


def test_no_change_of_a_stored_row_is_believed() -> None:
    """What opens is one of the rows that a key holder made, whole; everything else is refused by its type."""
    seed = os.environ.get("MUTATIONS_SEED") or secrets.token_hex(8)
    print(f"MUTATIONS_SEED={seed}")  # noqa: T201
    dice = _dice(seed)
    world = World(dice)
    rows = {world.open_row(msgspec.json.encode(row)) for row in world.rows}
    assert len(rows) == len(world.rows)
    blobs = [world.open_blob(msgspec.json.encode(row)) for row in world.blobs]
    ringed = [
        {"keyring": sealed, "version": ring.version, "updatedAt": 5, "kdf": None}
        for ring, sealed in zip(world.rings, world.sealed, strict=True)
    ]
    sealed_names = list(world.names)
    count = Count()
    while count.made < COUNT:
        kind = dice.random()
        if kind < 0.8:
            count.note(world.open_row, mutated(dice, dice.choice(world.rows), world.rows), rows)
        elif kind < 0.88:
            count.note(world.open_blob, mutated(dice, dice.choice(world.blobs), world.blobs), blobs)
        elif kind < 0.95:
            count.note(world.open_ring, mutated(dice, dice.choice(ringed), ringed), world.rings)
        else:
            text = changed_text(dice, dice.choice(sealed_names), dice.choice(sealed_names))
            count.note(world.open_name, text.encode("utf-8", "replace"), list(world.names.values()))
    print(f"{count.made} changes: {count.refused} refused, {count.same} the same as before")  # noqa: T201
    assert count.refused > 0.7 * COUNT
    assert count.same < 0.3 * COUNT


@pytest.mark.parametrize("guard", ["_equal", "_row"])
def test_the_changes_reach_the_guards(monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    """Without the proof, or without what a row is bound to, some change is believed."""
    monkeypatch.setattr(
        "strongroom.client.format.box.open_", lambda _key, _box, _associated: b"\1\0\0\0\2{}".ljust(256, b"\0")
    )
    loose: dict[str, Any] = {"_equal": lambda _one, _two: True, "_row": lambda keys, _uid, _version: keys.place}
    with monkeypatch.context() as patch:
        patch.setattr(seal, guard, loose[guard])
        patch.setattr(seal, "_AGAIN", "")
        dice = _dice(7)
        world = World.__new__(World)
        world.dice, world.keys = dice, AccountKey.new()
        world.core = Core(Session(), Device())
        world.places = {uid: documents.key_scope(uid, world.keys.vault(uid)) for uid in VAULTS}
        keys = world.keys.vault(VAULTS[0]).collection("plain")
        sealed = seal.Sealed(base64.b64encode(b"\1\1" + bytes(336)).decode(), "")
        proof = seal._proof(keys, seal.DOCUMENT, seal._row(keys, UIDS[0], 1), sealed.data)
        row = _row(keys, UIDS[0], 1, seal.Sealed(sealed.data, proof))
        honest = {world.open_row(msgspec.json.encode(row))}
        others = [row | {"version": 2, "uid": UIDS[1]}]
        with pytest.raises(AssertionError, match="believed"):
            _try(dice, world, row, others, honest)


def _try(dice: random.Random, world: World, row: Row, others: list[Row], honest: set[Any]) -> None:
    count = Count()
    while count.made < 2_000:
        count.note(world.open_row, mutated(dice, row, others), honest)
