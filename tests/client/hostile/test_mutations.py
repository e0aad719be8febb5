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

from strongroom.client.errors import Locked, RolledBack, Tampered, Unsupported
from strongroom.client.format import box, content, keyring, names, primitives, seal
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.encoding import NO_PARENT, PREFIX, short, to_url
from strongroom.client.format.keys import CollectionKeys, VaultKeys
from strongroom.client.net import decoders
from strongroom.client.net.session import Session
from strongroom.client.operations import documents
from strongroom.client.operations.core import Core
from strongroom.client.operations.device import Device
from tests.kit.samples import rounds

COUNT = rounds(3_000, 100_000, "MUTATIONS")
VAULTS = ("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7")
UIDS = tuple(f"0192f0c2-0000-7000-8000-00000000000{n}" for n in range(4))
TIMES = {"createdAt", "updatedAt", "deletedAt"}
Row = dict[str, Any]
_dice = random.Random  # what is drawn here guards nothing


class World:
    """Rows as a server stores them, and a device that opens them."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.core = Core(Session(), Device())
        self.sealed, self.rings = _rings()
        self.keys = {uid: _vault_keys(self.rings[-1], uid) for uid in VAULTS}
        self.older = {uid: _vault_keys(self.rings[-2], uid) for uid in VAULTS}  # before the first vault's rotation
        self.places = {uid: documents.key_scope(keys) for uid, keys in self.keys.items()}
        self.rows = [row for vault in VAULTS for sealed in (True, False) for row in self._furnish(vault, sealed=sealed)]
        self.blobs = [row for vault in VAULTS for row in self._blobs(vault)]
        self.names = {
            names.seal_vault_name(key, name): name
            for key in self.keys[VAULTS[0]].keys
            for name in ("personal", "work", "x" * 40)
        }

    def _furnish(self, vault: str, *, sealed: bool) -> list[Row]:
        name = "notes" if sealed else "plain"
        older, newer = (names.collection_keys(keys[vault], name, sealed=sealed) for keys in (self.older, self.keys))
        made: list[Row] = []
        for number, uid in enumerate(UIDS):
            row = None
            for version, keys in ((1, older), (2, older), (3, newer)):
                text = f"{vault} {name} {uid} {version}"
                value = {"text": text, "n": number} if number % 2 else bytes(40 * version)
                parent = _parent(row)
                sealed_row = seal.seal_document(keys, uid, version, value, parent=parent, wire=older.wire)
                row = _row(keys, uid, version, sealed_row, older.wire)
                made.append(row)
            last, parent = content.to_content("the last words"), _parent(row)
            notice = seal.seal_deletion(newer, uid, 4, last, parent=parent, wire=older.wire)
            row = _row(newer, uid, 4, notice, older.wire)
            made += [row, row | {"version": 5, "deletedAt": 9}, row | {"version": 5, "deletedAt": 9, "data": ""}]
        return made

    def _blobs(self, vault: str) -> list[Row]:
        made: list[Row] = []
        for version, keys in ((1, self.older[vault]), (2, self.keys[vault])):
            parent = seal.parent_after_blob(made[-1]["data"] if made else None)
            blob = seal.seal_blob(keys, "wire", version, f"{vault} {version}", parent=parent)
            times = {"updatedAt": 5, "epoch": "first"}
            made.append(
                {"uid": vault, "name": "wire", "version": version, **times, "data": blob.data, "salt": blob.salt}
            )
        return made

    # What a device makes of them

    def open_row(self, body: bytes) -> Any:
        """A row as an answer, opened as a device opens it that has seen nothing."""
        row = decoders.document(body)
        place = self.places.get(row.vault_uid)
        if place is None:
            raise Tampered  # no such place was asked for
        self.core.device = Device()
        found = _returned(documents.open_row(self.core, place, row, 0))
        return (found.uid, found.vault, found.wire, found.version, found.deleted, found.proof, _plain(found.value))

    def open_blob(self, body: bytes) -> Any:
        row = decoders.vault(body)
        if row.uid not in VAULTS or row.name != "wire":
            raise Tampered
        opened = seal.open_blob(self.keys[row.uid], row)
        return (row.uid, row.version, opened)

    def open_ring(self, body: bytes) -> Any:
        stored = decoders.keyring(body)
        ring = keyring.reopen(stored.keyring, self.rings[0].key)
        if ring.version != stored.version:
            raise Tampered
        return ring

    def open_name(self, body: bytes) -> Any:
        return names.open_vault_name(self.keys[VAULTS[0]], body.decode("utf-8", "replace"))


def _plain(value: Any) -> Any:
    return value if isinstance(value, bytes | str) else msgspec.json.encode(value)


def _rings() -> tuple[list[str], list[keyring.Keyring]]:
    """Keyrings of one account, each following on the one before: with two vaults, and a rotation of the first."""
    keys = PasswordKeys(auth=bytes(32), wrap=bytes(32))
    made = [keyring.seal(keyring.Keyring.new(keys, Descriptor.new()), password=keys)]
    made.append(keyring.seal(made[-1][1].with_vault(VAULTS[0], "personal", sealed=True)))
    made.append(keyring.seal(made[-1][1].with_vault(VAULTS[1], "work", sealed=True)))
    made.append(keyring.seal(made[-1][1].with_rotated_vault(VAULTS[0])))
    return [sealed for sealed, _ in made], [ring for _, ring in made]


def _vault_keys(ring: keyring.Keyring, uid: str) -> VaultKeys:
    entry = ring.entry(uid)
    assert entry is not None
    return ring.vault_keys(entry)


def _parent(row: Row | None) -> bytes:
    return NO_PARENT if row is None else short(row["hmac"])


def _returned(steps: Any) -> Any:
    """What a generator of effects returns that asks for nothing."""
    try:
        next(steps)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it asked for something")


def _row(keys: CollectionKeys, uid: str, version: int, sealed: seal.Sealed, wire: str) -> Row:
    return {
        "uid": uid,
        "vaultUid": keys.vault,
        "collection": wire,
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
        except (Tampered, RolledBack, Locked, Unsupported):
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


@pytest.mark.parametrize("guard", ["equal", "_row"])
def test_the_changes_reach_the_guards(monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    """Without the proof, or without what a row is bound to, some change is believed."""
    monkeypatch.setattr(box, "open_", lambda _key, _box, _associated: b"\1\0\0\0\2{}".ljust(256, b"\0"))
    with monkeypatch.context() as patch:
        if guard == "equal":
            patch.setattr(primitives, "equal", lambda _one, _two: True)
        else:
            patch.setattr(seal, "_row", lambda keys, *_: keys.account)
        dice = _dice(7)
        world = World.__new__(World)
        world.dice, world.core = dice, Core(Session(), Device())
        vault = VaultKeys.build(bytes(16), VAULTS[0], [(1, bytes(32))])
        world.places = {VAULTS[0]: documents.key_scope(vault)}
        keys = names.collection_keys(vault, "plain", sealed=False)
        data = base64.b64encode(b"\2\1\0\0\0\1" + bytes(336)).decode()
        items = seal._row(keys, keys.newest, "plain", UIDS[0], 1, NO_PARENT)
        proof = b"\0\0\0\1" + NO_PARENT + seal._mac(keys.newest, seal.DOCUMENT, items, data)
        row = _row(keys, UIDS[0], 1, seal.Sealed(data, PREFIX + to_url(proof)), "plain")
        honest = {world.open_row(msgspec.json.encode(row))}
        others = [row | {"version": 2, "uid": UIDS[1]}]
        with pytest.raises(AssertionError, match="believed"):
            _try(dice, world, row, others, honest)


def _try(dice: random.Random, world: World, row: Row, others: list[Row], honest: set[Any]) -> None:
    count = Count()
    while count.made < 2_000:
        count.note(world.open_row, mutated(dice, row, others), honest)
