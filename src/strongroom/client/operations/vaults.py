"""Operations on vaults. They are found in the directory in the keyring, not by the server's list."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any, Final, Generic

import msgspec
from msgspec import Struct

from strongroom import identifiers
from strongroom.client.errors import Locked, RolledBack, Tampered, TypeMismatch
from strongroom.client.format import content as contents
from strongroom.client.format import names, seal
from strongroom.client.format.keys import VaultKeys
from strongroom.client.format.parents import Descent, Link, follows, trace
from strongroom.client.net import requests
from strongroom.client.operations import keyrings
from strongroom.client.operations.value_types import Misfit, T, T_co, to_raw, value_type
from strongroom.errors import Invalid, KeyringConflict, VaultAlreadyExists, VaultConflict, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.format.keyring_body import VaultEntry
    from strongroom.client.format.padding import Content
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.wire import responses

_NOT_KEPT: Final = "The server did not keep what it was given for a vault."
_OTHER_BLOB: Final = (
    "The vault has another blob than the one that this client has last read or written; read it with blob.get, merge, "
    "and put again."
)
WRONG_VAULT: Final = "The server answered with another vault than the one that was asked for."
_NAMED: Final = "The server shows the name of a vault in another way than the one that it was made in."
_RENAMED: Final = 20  # names that are tried for a vault that was made without the server
_ASKED: Final = 3  # times that a list is asked for which the directory contradicts
GONE: Final = "Your directory has this vault, and the server says that there is none."


class OpenVault(Struct, frozen=True, kw_only=True):
    """A vault with its keys. `name` is what people call it, `wire` what the server is to call it."""

    uid: str
    name: str
    wire: str
    sealed: bool
    keys: VaultKeys
    wires: tuple[str, ...]  # what the server may call it: a name for each generation of its key, the newest first

    def __repr__(self) -> str:
        return f"OpenVault(uid={self.uid!r})"


class Blob(Struct, Generic[T_co], frozen=True):
    """A vault's blob. `version` is the vault's. `raw` is the value as it is stored, JSON or bytes.

    `gap`: this client had seen an earlier one, and the server's history no longer shows whether this one follows on it.
    """

    vault: str
    raw: Any
    version: int
    gap: bool = False
    _value: Any = msgspec.UNSET

    @property
    def value(self) -> T_co:
        """The value. If it does not fit the type of `typed`, that is a TypeMismatch; `raw` has it then."""
        if isinstance(self._value, Misfit):
            raise TypeMismatch(self.vault, self._value.type, self._value.problem, kind="blob of the vault")
        found: T_co = self.raw if self._value is msgspec.UNSET else self._value
        return found

    def typed(self, type: type[T]) -> Blob[T]:  # noqa: A002 - as in `collection`
        """The same blob with its value as this type."""
        kind: Any = type
        found: Any = msgspec.structs.replace(self, _value=value_type(kind).decode(self.raw))
        typed: Blob[T] = found
        return typed

    def __repr__(self) -> str:
        return f"Blob(version={self.version}, ...)"


def open_vault(core: Core, name: str, *, create: bool, sealed: bool) -> Effects[OpenVault]:
    """Open the vault of this name."""
    names.checked_vault_name(name, sealed=create and sealed)
    if core.token is not None:
        raise Locked("A token opens what it was made for, and nothing else.")
    entry = _entry(core, name)
    found = None if entry is None else (yield from _fetch(core, entry))
    if found is None:  # another device may have made or deleted it
        yield from keyrings.reload(core)
        entry = _entry(core, name)
        if entry is None and create:
            entry = yield from _add_to_directory(core, name, sealed=sealed)
        if entry is None:
            raise VaultNotFound
        found = yield from _fetch(core, entry)
    if found is None:
        if entry is None or entry.made or core.device.knows_vault(entry.uid):
            raise RolledBack(GONE)
        if not create:
            raise VaultNotFound
        found = open_entry(core, entry)
        yield from _make(core, found)
    yield from keyrings.update(core, lambda ring: _made(ring, found.uid))
    return found


def add_vault(core: Core, entry: VaultEntry) -> Effects[OpenVault | None]:
    """Make a vault on the server that was made without it: first in the directory, under a name that is free there.

    None if it was deleted meanwhile. Where an earlier attempt was interrupted, this goes on with it.
    """

    def enter(ring: Keyring) -> Keyring | None:
        if ring.entry(entry.uid) is not None or ring.is_gone(entry.uid):
            return None
        name = names.free_name(entry.name, ring.vault)
        return ring.with_vault(entry.uid, name, sealed=entry.sealed, random=lambda _: entry.keys[0][1])

    for _ in range(_RENAMED):
        yield from keyrings.update(core, enter)
        now = core.keyring().entry(entry.uid)
        if now is None or now.made:
            break
        try:
            if (yield from _fetch(core, now)) is None:
                yield from _make(core, open_entry(core, now))
        except VaultAlreadyExists:  # another program's vault, which is in no directory, has the name
            yield from keyrings.update(core, lambda ring: _renamed(ring, entry.uid))
            continue
        yield from keyrings.update(core, lambda ring: _made(ring, entry.uid))
    now = core.keyring().entry(entry.uid)
    return None if now is None else open_entry(core, now)


def _renamed(ring: Keyring, uid: str) -> Keyring | None:
    entry = ring.entry(uid)
    return None if entry is None or entry.made else ring.with_entry(uid, name=names.free_name(entry.name, ring.vault))


def list_vaults(core: Core) -> Effects[list[OpenVault]]:
    """Every vault of the directory. One that was made and that the server hides is missed."""
    mark = core.device.mark()
    found = yield from list_with_rows(core)
    shown = {vault.uid for vault, _ in found}
    if any(entry.made and entry.uid not in shown for entry in core.keyring().vaults):
        raise RolledBack(GONE)
    for vault, row in found:
        if row.name in vault.wires:
            yield from check_vault(core, vault, row, mark)
        else:  # a rename that was interrupted
            yield from update_wire(core, vault)
    return [vault for vault, _ in found]


def list_with_rows(core: Core) -> Effects[list[tuple[OpenVault, responses.Vault]]]:
    """Every vault of the directory that the server shows, and how it shows it."""
    core.keyring()
    for _ in range(_ASKED):
        found = yield from core.session.send(requests.vaults.list_all())
        rows = {row.uid: row for row in found.vaults}
        if len(rows) != len(found.vaults):
            raise Tampered("The server lists a vault twice.")
        yield from keyrings.reload(core)
        if all(entry.uid in rows for entry in core.keyring().vaults if entry.made):
            break  # otherwise another device may have made or deleted one between the two responses
    return [(open_entry(core, entry), rows[entry.uid]) for entry in core.keyring().vaults if entry.uid in rows]


def recreate_vault(core: Core, entry: VaultEntry) -> Effects[tuple[OpenVault, responses.Vault]]:
    """A vault of the directory that the server has forgotten."""
    vault = open_entry(core, entry)
    row = yield from core.session.send(requests.vaults.create(vault.uid, vault.wire, None))
    if row.uid != vault.uid or row.name != vault.wire:
        raise Tampered(WRONG_VAULT)
    return vault, row


def rename_vault(core: Core, vault: OpenVault, name: str) -> Effects[OpenVault]:
    """Another name: first in the directory, then on the wire. A blob is sealed anew for it."""
    names.checked_vault_name(name, sealed=vault.sealed)
    yield from keyrings.update(core, lambda ring: ring.with_entry(vault.uid, name=name))
    entry = core.keyring().entry(vault.uid)
    if entry is None:
        raise VaultNotFound
    renamed = open_entry(core, entry)
    yield from update_wire(core, renamed)
    return renamed


def update_wire(
    core: Core, vault: OpenVault, seen: Link | None = None, believed: Container[str] | None = None
) -> Effects[responses.Vault]:
    """Encrypt the vault's name and blob again where they are of another name or generation; the vault's row.

    Where a replica has `seen` another blob, or a later version, that is compared first, and nothing is encrypted here.
    In a rotation, a blob under an older key that is not among the `believed` ones is left, with the vault's name.
    """
    for _ in range(10):
        mark = core.device.mark()
        row = yield from core.session.send(requests.vaults.get(vault.uid))
        yield from _check_row(core, vault, row, mark)
        newest = vault.keys.newest.generation
        blob_is_old = row.data is not None and seal.blob_generation(row.data) != newest
        if row.name == vault.wire and not blob_is_old:
            return row
        if seen is not None and (row.version < seen.version or row.data not in {None, seen.text}):
            return row
        if believed is not None and blob_is_old and row.data not in believed:
            return row
        blob = None
        if row.data is not None:
            content = seal.open_blob(vault.keys, row)
            parent = seal.parent_after_blob(row.data)
            blob = seal.seal_blob_content(vault.keys, vault.wire, row.version + 1, content, parent=parent)
        mark = core.device.mark()
        call = requests.vaults.put(vault.uid, vault.wire, blob, row.version, keyring_version=vault.keys.keyring)
        try:
            changed = yield from core.session.send(call)
        except VaultConflict:
            continue  # another device was quicker, or an answer was lost
        except KeyringConflict:
            yield from keyrings.reload(core)  # another device may have renamed the vault, or rotated its key
            vault = renewed(core, vault)
            continue
        yield from check_vault(core, vault, changed, mark)
        if changed.version != row.version + 1 or (
            blob is not None and (changed.data, changed.salt) != (blob.data, blob.salt)
        ):
            raise Tampered(_NOT_KEPT)
        return changed
    raise Tampered(_NOT_KEPT)


def delete_vault(core: Core, vault: OpenVault) -> Effects[None]:
    """The end of a vault and of everything in it: a key holder says so in the directory, then it is deleted."""
    if core.token is None:
        yield from keyrings.update(
            core, lambda ring: None if ring.entry(vault.uid) is None else ring.without_vault(vault.uid)
        )
    yield from core.session.send_or_done(requests.vaults.delete(vault.uid))
    core.device.forget_vault(vault.uid)


def get_blob(core: Core, vault: OpenVault) -> Effects[Blob | None]:
    """Get the blob of a vault, if it has one."""
    vault, row, gap = yield from current_row(core, vault)
    found = to_blob(vault, row, gap=gap)
    core.device.record_blob(row)
    return found


def to_blob(vault: OpenVault, row: responses.Vault, *, gap: bool) -> Blob | None:
    """The blob of a vault's row, if it has one."""
    if row.data is None:
        return None
    return Blob(vault.uid, contents.to_value(seal.open_blob(vault.keys, row)), row.version, gap)


def put_blob(core: Core, vault: OpenVault, value: Any, after: Blob | None) -> Effects[Blob]:
    """Another blob. `after` is the one that it follows on; None for the one that was last read or written here."""
    if after is not None:
        _require_blob(vault, after)
    raw = to_raw(value)
    content = contents.to_content(raw)
    row = yield from keyrings.with_newest(core, lambda: _put_blob(core, vault, content, after))
    core.device.record_blob(row)
    blob = Blob(vault.uid, raw, row.version)
    return blob if raw is value else msgspec.structs.replace(blob, _value=value)


def _require_blob(vault: OpenVault, after: Blob) -> None:
    if not isinstance(after, Blob):
        raise Invalid({"after": f"must be a Blob, as get and put return it, not {type(after).__name__}"})
    if after.vault != vault.uid:
        raise Invalid({"after": "must be a Blob of this vault, and is one of another"})


def _put_blob(core: Core, vault: OpenVault, content: Content, after: Blob | None) -> Effects[responses.Vault]:
    vault, before, _ = yield from current_row(core, vault)
    if after is not None:
        if after.version != before.version:
            raise VaultConflict(before.version, before.updated_at)
    elif before.data is not None and not _may_replace(core, vault, before, content):
        raise VaultConflict(before.version, before.updated_at, _OTHER_BLOB)
    version, parent = before.version, seal.parent_after_blob(before.data)
    sealed = seal.seal_blob_content(vault.keys, before.name, version + 1, content, parent=parent)
    mark = core.device.mark()
    row = yield from core.session.send(requests.vaults.put_blob(vault.uid, sealed, version, vault.keys.keyring))
    yield from check_vault(core, vault, row, mark)
    if row.version != version + 1 or row.data != sealed.data or row.salt != sealed.salt:
        raise Tampered(_NOT_KEPT)
    return row


def _may_replace(core: Core, vault: OpenVault, before: responses.Vault, content: Content) -> bool:
    """Whether the blob is the one that was last read or written here, or has the new content already.

    The contents are compared: a rename and a rotation seal the same content anew.
    """
    known = core.device.blob(vault.uid)
    if known is not None and known.data == before.data:
        return True
    there = seal.open_blob(vault.keys, before)
    if there == content:  # by an earlier attempt without a response, perhaps
        return True
    return known is not None and known.data is not None and seal.open_known_blob(vault.keys, known) == there


def current_row(core: Core, vault: OpenVault) -> Effects[tuple[OpenVault, responses.Vault, bool]]:
    """The vault with the name and the keys that it has by now, its row, and whether there is a gap before that."""
    vault, mark = renewed(core, vault), core.device.mark()
    row = yield from core.session.send(requests.vaults.get(vault.uid))
    if core.token is None and (row.name not in vault.wires or not _is_known(vault, row)):
        yield from keyrings.reload(core)  # another device may have renamed the vault, or rotated its key
        vault = renewed(core, vault)
        if row.name not in vault.wires:
            row = yield from update_wire(core, vault)
    elif core.token is not None:
        vault = named(vault, row.name)  # its owner may have renamed it
    gap = yield from check_vault(core, vault, row, mark)
    return vault, row, gap


def named(vault: OpenVault, wire: str) -> OpenVault:
    """The vault of a token under the name that the server shows, if a key holder gave it that name.

    Whether names are sealed is the token's word. A name in the clear is the server's.
    """
    if names.is_sealed(wire) != vault.sealed:
        raise Tampered(_NAMED)
    name = names.open_vault_name(vault.keys, wire) if vault.sealed else wire
    return msgspec.structs.replace(vault, name=name, wire=wire, wires=(wire,))


def _is_known(vault: OpenVault, row: responses.Vault) -> bool:
    """Whether there is a key for the vault's blob."""
    return row.data is None or seal.blob_generation(row.data) <= vault.keys.newest.generation


def renewed(core: Core, vault: OpenVault) -> OpenVault:
    """The same vault, as the keyring has it by now."""
    entry = None if core.ring is None else core.ring.entry(vault.uid)
    return vault if entry is None else open_entry(core, entry)


def _entry(core: Core, name: str) -> VaultEntry | None:
    return None if core.ring is None else core.ring.vault(name)


def _add_to_directory(core: Core, name: str, *, sealed: bool) -> Effects[VaultEntry]:
    """Add a vault to the directory, before it is created on the server: the server never has one unknown to it."""
    uid = identifiers.new_uid(core.clock())

    def enter(ring: Keyring) -> Keyring | None:
        return None if ring.vault(name) else ring.with_vault(uid, name, sealed=sealed)

    yield from keyrings.update(core, enter)
    entry = _entry(core, name)
    if entry is None:
        raise VaultNotFound
    return entry


def _fetch(core: Core, entry: VaultEntry) -> Effects[OpenVault | None]:
    """A vault of the directory, if the server has it."""
    try:
        vault, _, _ = yield from current_row(core, open_entry(core, entry))
    except VaultNotFound:
        return None
    return vault if vault.name == entry.name else None


def _made(ring: Keyring, uid: str) -> Keyring | None:
    entry = ring.entry(uid)
    return None if entry is None or entry.made else ring.with_entry(uid, made=True)


def _make(core: Core, vault: OpenVault) -> Effects[responses.Vault]:
    mark = core.device.mark()
    try:
        row = yield from core.session.send(requests.vaults.create(vault.uid, vault.wire, None))
    except Invalid:  # a server of blobs takes no vault without one
        blob = seal.seal_blob(vault.keys, vault.wire, 1, None)
        row = yield from core.session.send(requests.vaults.create(vault.uid, vault.wire, blob))
    yield from check_vault(core, vault, row, mark)
    core.device.record_blob(row)
    return row


def open_entry(core: Core, entry: VaultEntry) -> OpenVault:
    """A vault of the directory, with its keys."""
    keys = core.keyring().vault_keys(entry)
    wires: tuple[str, ...] = (entry.name,)
    if entry.sealed:
        wires = tuple(names.seal_vault_name(key, entry.name) for key in reversed(keys.keys))
    return OpenVault(uid=entry.uid, name=entry.name, wire=wires[0], sealed=entry.sealed, keys=keys, wires=wires)


def check_vault(core: Core, vault: OpenVault, row: responses.Vault, mark: int) -> Effects[bool]:
    """Remember the vault, if the server responded with it and nothing that this device knows speaks against it.

    True where the server's history is too short to tell.
    """
    if row.name not in vault.wires:
        raise Tampered(WRONG_VAULT)
    return (yield from _check_row(core, vault, row, mark))


def _check_row(core: Core, vault: OpenVault, row: responses.Vault, mark: int) -> Effects[bool]:
    if row.uid != vault.uid:
        raise Tampered(WRONG_VAULT)
    gap = False
    known = core.device.vault(vault.uid)
    seen = (0, None) if known is None else (known.version, known.data)
    if row.data is not None and row.version >= seen[0] and seen != (row.version, row.data):
        seal.open_blob(vault.keys, row)  # before it is remembered, or anything is sealed to follow on it
    if known is not None and known.data is not None and row.data is not None and row.version > known.version:
        gap = yield from require_blob_descent(core, row, Link(known.version, known.data))
    core.device.record_vault(row, mark)
    return gap


def require_blob_descent(core: Core, row: responses.Vault, known: Link) -> Effects[bool]:
    """Refuse a newer blob that was made without knowing of the one that this device has seen; whether none can tell."""
    descent = yield from blob_descent(core, row, known)
    if descent is Descent.FORKED:
        raise Tampered("The server shows a newer blob whose writer did not know of what this device has seen.")
    return descent is Descent.GAP


def blob_descent(core: Core, row: responses.Vault, known: Link) -> Effects[Descent]:
    """How a newer blob stands to the one that this device has seen; a rename alone does not change it."""
    data = row.data or ""
    if data == known.text or follows(data, known.text, seal.blob_lineage):
        return Descent.FOLLOWS
    kept = (yield from core.session.send(requests.vaults.blob_versions(row.uid))).versions
    history = []
    for version in kept:
        if version.version > known.version:
            blob = yield from core.session.send(requests.vaults.blob_version(row.uid, version.version))
            history.append(Link(version.version, blob.data or ""))
    return trace(Link(row.version, data), known, history, seal.blob_lineage)
