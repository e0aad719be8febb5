"""Opening a replica: its owner, its keys without a server, its vaults."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom import model
from strongroom.client.errors import Locked, RolledBack, Tampered
from strongroom.client.format import content, derive, keyring, seal
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.encoding import to_url
from strongroom.client.format.keys import CollectionKey, VaultKey
from strongroom.client.net import effects
from strongroom.client.operations import documents
from strongroom.client.operations.sessions_and_keys import token_vault
from strongroom.client.operations.vaults import OpenVault, open_entry
from strongroom.client.replica.file import File, VaultRecord
from strongroom.client.replica.local import Local
from strongroom.errors import Invalid, InvalidCredentials, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope

_OTHERS: Final = {"path": "is the replica of another account, or of another token"}


def open_replica(core: Core, path: str | os.PathLike[str]) -> Local:
    """Open or create the replica at this path, for the account or token in use."""
    owner = _owner(core)
    file = File(path)
    try:
        with file.transaction():
            _claim(file, owner)
            store_keys(core, file)
    except BaseException:
        file.close()
        raise
    return Local(core, file)


def _claim(file: File, owner: str) -> None:
    known = file.fact("owner")
    if known is None:
        file.set_fact("owner", owner)
    elif known != owner:
        raise Invalid(_OTHERS)


def _owner(core: Core) -> str:
    token = core.token
    if token is None:
        return f"account {to_url(core.account_key().account)}"
    scope = token.keys.collection if isinstance(token.keys, CollectionKey) else ""
    return f"token {to_url(token.keys.account)} {token.vault} {scope}".strip()


def store_keys(core: Core, file: File) -> None:
    """Store the descriptor and the wrapped keyring, which unlock the account without a server."""
    if core.sealed is None or core.descriptor is None or core.email is None or core.sealed == file.fact("keyring"):
        return
    record = file.fact("keyring")
    if record is not None and core.ring is not None:
        version = keyring.reopen(record, core.ring.keys).version
        if version > core.ring.version:
            raise RolledBack("The server sent an older keyring than this device has seen.")
        if version == core.ring.version:
            raise Tampered("The server shows two keyrings of one version.")
    seen = file.fact("descriptor")
    if seen is not None:
        old = Descriptor.read(seen)
        core.descriptor.check(Floor(old.memory, old.passes))
    with file.transaction():
        file.set_fact("email", core.email)
        file.set_fact("descriptor", msgspec.json.encode(core.descriptor.spelled()).decode())
        file.set_fact("keyring", core.sealed)


def unlock(core: Core, path: str | os.PathLike[str], password: str) -> Effects[None]:
    """Unlock the account from its replica, without a server. The first request logs in."""
    file = File(path)
    try:
        email, spelled, sealed = file.fact("email"), file.fact("descriptor"), file.fact("keyring")
    finally:
        file.close()
    if email is None or spelled is None or sealed is None:
        raise Locked("This replica holds no keys: it was never opened after a login.")
    descriptor = Descriptor.read(spelled)
    keys = yield from effects.compute(lambda: derive.password_keys(email, password, descriptor))
    try:
        ring = keyring.open_with_password(sealed, keys, descriptor)
    except Tampered:
        raise InvalidCredentials("The password is wrong, or the replica was changed.") from None
    core.unlock(email, ring, sealed, descriptor, keys)


def vaults(local: Local) -> list[OpenVault]:
    """The vaults of a replica."""
    return [opened for opened, _ in _open_vaults(local)]


def vault(local: Local, name: str | None) -> OpenVault:
    """One vault of a replica."""
    token = local.core.token
    if token is not None and not isinstance(token.keys, VaultKey):
        raise Locked("This token opens one collection; use collection().")
    if name is None and token is None:
        raise Invalid({"name": "is required"})
    for opened in vaults(local):
        if name is None or opened.name == name:
            return opened
    raise VaultNotFound("There is no such vault in this replica; sync first, if it is new.")


def collection(local: Local) -> KeyScope:
    """The scope of the collection that a token opens."""
    token = local.core.token
    if token is None or not isinstance(token.keys, CollectionKey):
        raise Locked("Only a token that was made for one collection opens one; open its vault first.")
    return documents.key_scope(token.vault, token.keys, name=token.name)


def scopes(local: Local) -> dict[str, KeyScope]:
    """The scopes of all vaults of a replica, by uid."""
    token = local.core.token
    if token is not None:
        return {token.vault: documents.key_scope(token.vault, token.keys, name=token.name)}
    return {opened.uid: documents.key_scope(opened.uid, opened.keys) for opened in vaults(local)}


def blob(local: Local, opened: OpenVault) -> Any:
    """The blob of a vault, as last received."""
    record = local.file.vault(opened.uid)
    if record is None or record.data is None:
        return None
    row = model.Vault(record.uid, record.wire, record.version, record.clock, data=record.data, salt=record.salt)
    return content.to_value(seal.open_blob(opened.keys, row))


def _open_vaults(local: Local) -> list[tuple[OpenVault, VaultRecord]]:
    record = {row.uid: row for row in local.file.vaults()}
    token = local.core.token
    if token is not None:
        if not isinstance(token.keys, VaultKey) or token.vault not in record:
            return []
        return [(token_vault(token, token.keys, record[token.vault].wire), record[token.vault])]
    local.core.account_key()
    entries = () if local.core.ring is None else local.core.ring.vaults
    return [(open_entry(local.core, entry), record[entry.uid]) for entry in entries if entry.uid in record]
