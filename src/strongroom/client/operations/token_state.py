"""What a machine with a token has seen, in a file: without it, a program that runs again is a new device each time.

    {"format": "strongroom state 1", "places": {"ACCOUNT/VAULT": {
        "keyring": 7, "floor": 1, "vault": [version, clock, blob, epoch] or null,
        "rows": {"UID": [version, proof, collection, version that is proven, created, updated, deleted]}
    }}}

It holds no secret, and all of it is the server's knowledge. Clients in all languages read it. A file that others can
read or replace is refused.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct, field

from strongroom.client.errors import Locked
from strongroom.client.format.encoding import to_url
from strongroom.client.format.parents import Link
from strongroom.client.net import effects
from strongroom.client.operations import own_files
from strongroom.client.operations.device import Device, KnownDocument, KnownVault
from strongroom.client.operations.rollback import SeenRow
from strongroom.errors import Invalid

if TYPE_CHECKING:
    from strongroom.client.format.tokens import Token
    from strongroom.client.net.effects import Effects

_ANY_FORMAT: Final = "strongroom state "
_FORMAT: Final = f"{_ANY_FORMAT}1"
_ADVICE: Final = "Delete it, or run chmod 600"
_OLD_TOKEN: Final = "This token was made before the keys were rotated; ask for a new one."  # noqa: S105 - a sentence


class _Vault(Struct, frozen=True, array_like=True):
    version: int
    clock: int
    data: str | None
    epoch: str


class _Row(Struct, frozen=True, array_like=True):
    version: int
    proof: str
    collection: str
    link: int
    created_at: int
    updated_at: int
    deleted: bool


class _Place(Struct, frozen=True, kw_only=True):
    """What was seen of one vault, and the newest of what its tokens say."""

    keyring: int
    floor: int
    vault: _Vault | None = None
    rows: dict[str, _Row] = field(default_factory=dict)

    def merged(self, other: _Place) -> _Place:
        """The newest of everything that either has seen."""
        vaults = [vault for vault in (self.vault, other.vault) if vault is not None]
        rows = dict(self.rows)
        rows.update(
            (uid, row) for uid, row in other.rows.items() if uid not in rows or row.version >= rows[uid].version
        )
        return _Place(
            keyring=max(self.keyring, other.keyring),
            floor=max(self.floor, other.floor),
            vault=max(vaults, key=lambda vault: (vault.version, vault.clock), default=None),
            rows=rows,
        )


class _File(Struct, frozen=True, kw_only=True):
    format: str
    places: dict[str, _Place]


class TokenState:
    """The state file of a machine, and the place in it that a token is for."""

    def __init__(self, path: str | os.PathLike[str], token: Token) -> None:
        self._path = Path(path).absolute()
        self._uid = token.vault
        self._place = f"{to_url(token.keys.account)}/{token.vault}"
        self._least = _Place(keyring=token.keyring, floor=token.keys.floor)
        own_files.check_folder(self._path)

    def use(self, device: Device, token: Token) -> Token:
        """Begin with what was seen earlier; the token with the highest floor that was seen."""
        seen = self._read().places.get(self._place, self._least)
        if seen.floor > token.keys.newest.generation:
            raise Locked(_OLD_TOKEN)
        vault, rows = seen.vault, seen.rows
        known = None if vault is None else KnownVault(vault.version, vault.clock, vault.data, 0, vault.epoch)
        device.remember_vault(self._uid, known, {uid: _known(row) for uid, row in rows.items()})
        keys = msgspec.structs.replace(token.keys, floor=max(seen.floor, token.keys.floor))
        return msgspec.structs.replace(token, keys=keys)

    def save(self, device: Device) -> Effects[None]:
        """Write what was seen, and the newer of what another program has written meanwhile."""
        vault = device.vault(self._uid)
        mine = msgspec.structs.replace(
            self._least,
            vault=None if vault is None else _Vault(vault.version, vault.clock, vault.data, vault.epoch),
            rows={uid: _row(known) for uid, known in device.rows(self._uid).items()},
        )
        yield from own_files.in_turn(self._path, effects.compute(lambda: self._write(mine)))

    def _write(self, mine: _Place) -> None:
        found = self._read()
        before = found.places.get(self._place)
        now = mine if before is None else before.merged(mine)
        if now != before:
            places = found.places | {self._place: now}
            own_files.replace(self._path, msgspec.json.encode(_File(format=_FORMAT, places=places)))

    def _read(self) -> _File:
        raw, name = own_files.read(self._path, _ADVICE), self._path.name
        if raw is None:
            return _File(format=_FORMAT, places={})
        with suppress(msgspec.MsgspecError, ValueError):
            found = msgspec.json.decode(raw, type=_File)
            if found.format == _FORMAT:
                return found
            if found.format.startswith(_ANY_FORMAT):
                raise Invalid({"path": f"is a state file of another release: {name}. Update this program"})
        raise Invalid({"path": f"is not a state file, or was cut off: {name}. It was not changed"})

    def __repr__(self) -> str:
        return f"TokenState({self._path.name!r})"


def _known(row: _Row) -> KnownDocument:
    seen, link = SeenRow(row.version, row.proof, row.collection), Link(row.link, row.proof)
    return KnownDocument(seen, link, row.created_at, row.updated_at, row.deleted, 0)


def _row(known: KnownDocument) -> _Row:
    seen, times = known.row, (known.created_at, known.updated_at)
    return _Row(seen.version, seen.proof, seen.collection, known.link.version, *times, known.deleted)
