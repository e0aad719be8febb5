"""Operations on vaults. They are found in the directory in the keyring, not by the server's list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from strongroom import identifiers
from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import content, names, seal
from strongroom.client.format.keys import VaultKey
from strongroom.client.net import requests
from strongroom.client.operations import accounts
from strongroom.errors import Invalid, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring, VaultEntry
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.wire import responses

_WRONG_VAULT: Final = "The server answered with another vault than the one that was asked for."
_GONE: Final = "Your directory has this vault, and the server says that there is none."


class OpenVault(Struct, frozen=True, kw_only=True):
    """A vault with its key. `name` is its plaintext name, `wire` its name on the server."""

    uid: str
    name: str
    wire: str
    sealed: bool
    keys: VaultKey

    def collection_wire(self, name: str) -> str:
        """The name of a collection on the server."""
        return names.seal_collection_name(self.keys, name) if self.sealed else names.plain(name, "collection")

    def __repr__(self) -> str:
        return f"OpenVault(uid={self.uid!r})"


class Blob(Struct, frozen=True):
    """A vault's blob. `version` is the vault's."""

    value: Any
    version: int

    def __repr__(self) -> str:
        return f"Blob(version={self.version}, ...)"


def open_vault(core: Core, name: str, *, create: bool, sealed: bool) -> Effects[OpenVault]:
    """Open the vault of this name."""
    names.plain(name)
    if core.token is not None:
        raise Locked("A token opens what it was made for, and nothing else.")
    entry = _entry(core, name)
    if entry is None:
        yield from accounts.reload(core)
        entry = _entry(core, name)
    if entry is None:
        if not create:
            raise VaultNotFound
        entry = yield from _add_to_directory(core, name, sealed=sealed)
    return (yield from _fetch(core, entry, create=create))


def list_vaults(core: Core) -> Effects[list[OpenVault]]:
    """List the vaults of the directory. Raises RolledBack if the server hides one."""
    mark = core.device.mark()
    found = yield from list_with_rows(core)
    if core.ring is not None:
        shown = {vault.uid for vault, _ in found}
        if any(entry.uid not in shown and core.device.knows_vault(entry.uid) for entry in core.ring.vaults):
            raise RolledBack(_GONE)  # one never seen is in the directory and not created yet
    return [check_vault(core, vault, row, mark) for vault, row in found]


def list_with_rows(core: Core) -> Effects[list[tuple[OpenVault, responses.Vault]]]:
    """The vaults of the directory that the server lists, each with its row."""
    core.account_key()
    found = yield from core.session.send(requests.list_vaults())
    rows = {row.uid: row for row in found.vaults}
    if len(rows) != len(found.vaults):
        raise Tampered("The server lists a vault twice.")
    yield from accounts.reload(core)
    entries = () if core.ring is None else core.ring.vaults
    opened = [(open_entry(core, entry), rows[entry.uid]) for entry in entries if entry.uid in rows]
    if any(row.name != vault.wire for vault, row in opened):
        raise Tampered(_WRONG_VAULT)
    return opened


def recreate_vault(core: Core, uid: str) -> Effects[tuple[OpenVault, responses.Vault]]:
    """Create a vault of the directory again that the server has lost."""
    entries = () if core.ring is None else core.ring.vaults
    entry = next((entry for entry in entries if entry.uid == uid), None)
    if entry is None:
        raise VaultNotFound
    vault = open_entry(core, entry)
    row = yield from core.session.send(requests.create_vault(vault.uid, vault.wire, None))
    if row.uid != vault.uid or row.name != vault.wire:
        raise Tampered(_WRONG_VAULT)
    return vault, row


def delete_vault(core: Core, vault: OpenVault) -> Effects[None]:
    """Delete a vault and everything in it."""
    yield from core.session.send_or_done(requests.delete_vault(vault.uid))
    core.device.forget_vault(vault.uid)
    if core.ring is not None:
        yield from accounts.update_keyring(core, lambda ring: ring.without_vault(vault.uid))


def get_blob(core: Core, vault: OpenVault) -> Effects[Blob | None]:
    """Get the blob of a vault, if it has one."""
    row = yield from _row(core, vault)
    if row.data is None:
        return None
    return Blob(content.to_value(seal.open_blob(vault.keys, row)), row.version)


def put_blob(core: Core, vault: OpenVault, value: Any, version: int | None) -> Effects[Blob]:
    """Replace the blob. `version` is the vault's expected version; None for the current one."""
    if version is None:
        version = (yield from _row(core, vault)).version
    sealed = seal.seal_blob(vault.keys, vault.wire, version + 1, value)
    mark = core.device.mark()
    row = yield from core.session.send(requests.put_blob(vault.uid, sealed, version))
    check_vault(core, vault, row, mark)
    if row.version != version + 1 or row.data != sealed.data or row.salt != sealed.salt:
        raise Tampered("The server did not keep the blob that it was given.")
    return Blob(value, row.version)


def _row(core: Core, vault: OpenVault) -> Effects[responses.Vault]:
    mark = core.device.mark()
    row = yield from core.session.send(requests.get_vault(vault.uid))
    check_vault(core, vault, row, mark)
    return row


def _entry(core: Core, name: str) -> VaultEntry | None:
    return None if core.ring is None else core.ring.vault(name)


def _add_to_directory(core: Core, name: str, *, sealed: bool) -> Effects[VaultEntry]:
    """Add a vault to the directory, before it is created on the server: the server never has one unknown to it."""
    uid = identifiers.new_uid(core.clock())

    def enter(ring: Keyring) -> Keyring | None:
        return None if ring.vault(name) else ring.with_vault(uid, name, sealed=sealed)

    yield from accounts.update_keyring(core, enter)
    entry = _entry(core, name)
    if entry is None:
        raise VaultNotFound
    return entry


def _fetch(core: Core, entry: VaultEntry, *, create: bool) -> Effects[OpenVault]:
    vault = open_entry(core, entry)
    try:
        yield from _row(core, vault)
    except VaultNotFound:
        if core.device.knows_vault(entry.uid):
            raise RolledBack(_GONE) from None
        if not create:
            raise
        yield from _make(core, vault)
    return vault


def _make(core: Core, vault: OpenVault) -> Effects[responses.Vault]:
    mark = core.device.mark()
    try:
        row = yield from core.session.send(requests.create_vault(vault.uid, vault.wire, None))
    except Invalid:  # a server of blobs takes no vault without one
        blob = seal.seal_blob(vault.keys, vault.wire, 1, None)
        row = yield from core.session.send(requests.create_vault(vault.uid, vault.wire, blob))
    check_vault(core, vault, row, mark)
    return row


def open_entry(core: Core, entry: VaultEntry) -> OpenVault:
    """A vault of the directory, with its key."""
    keys = core.account_key()
    wire = names.seal_vault_name(keys, entry.name) if entry.sealed else entry.name
    return OpenVault(uid=entry.uid, name=entry.name, wire=wire, sealed=entry.sealed, keys=keys.vault(entry.uid))


def check_vault(core: Core, vault: OpenVault, row: responses.Vault, mark: int) -> OpenVault:
    """Refuse a row of another vault, or one older than what this device has seen."""
    if row.uid != vault.uid or row.name != vault.wire:
        raise Tampered(_WRONG_VAULT)
    core.device.record_vault(row, mark)
    return vault
