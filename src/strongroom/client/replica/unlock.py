"""Opening a replica: its owner, its keys without a server, its vaults."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom import identifiers, model
from strongroom.client.errors import CredentialsRolledBack, Locked, Tampered
from strongroom.client.format import box, content, derive, keyring, names, primitives, seal
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.encoding import PARENT, from_base64, items, label, text, to_base64, to_url
from strongroom.client.format.keys import CollectionKeys, VaultKeys
from strongroom.client.net import effects
from strongroom.client.operations import documents, keyrings
from strongroom.client.operations.rollback import OLD_KEYS, TWO_KEYRINGS
from strongroom.client.operations.sessions_and_keys import token_vault
from strongroom.client.operations.vaults import OpenVault, open_entry
from strongroom.client.replica import vault_keys
from strongroom.client.replica.follow import follow_keys
from strongroom.client.replica.local import Local
from strongroom.client.replica.store.file import File
from strongroom.errors import InsufficientScope, Invalid, InvalidCredentials, VaultNotFound

if TYPE_CHECKING:
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.client.operations.factors import FactorSource

_EMAIL: Final = "replica-email"
_OTHERS: Final = {"path": "is the replica of another account, or of another token"}


def open_replica(core: Core, path: str | os.PathLike[str], *, read_only: bool | None = None) -> Local:
    """Open or create the replica at this path, for the account or token in use."""
    owner = _owner(core)
    file = File(path, read_only=read_only)
    try:
        if file.is_writer:
            with file.transaction():
                _claim(file, owner)
                _note_token(core, file)
                store_keys(core, file)
                if core.ring is not None:
                    vault_keys.seal_renamed(file, core.ring)
        else:
            _require_owner(file, owner)
            follow_keys(core, file)
    except BaseException:
        file.close()
        raise
    core.on_keyring.append(lambda: _keep_keys(core, file))
    return Local(core, file)


def _keep_keys(core: Core, file: File) -> None:
    """Keep a newer keyring at once: after a restore, the keys in it may be nowhere else. A reader keeps nothing."""
    if not file.is_closed and file.is_writer:
        store_keys(core, file)


def _claim(file: File, owner: str) -> None:
    if file.fact("owner") is None:
        file.set_fact("owner", owner)
    _require_owner(file, owner)


def _require_owner(file: File, owner: str) -> None:
    if file.fact("owner") != owner:
        raise Invalid(_OTHERS)


def _note_token(core: Core, file: File) -> None:
    """With another token for the same place, what the one before did not allow is tried again."""
    token = core.token
    if token is not None and (digest := to_url(primitives.sha256(text(token.api_key))[:PARENT])) != file.fact("token"):
        file.set_fact("token", digest)
        file.refusals.offer_again([InsufficientScope.code])


def _owner(core: Core) -> str:
    token = core.token
    if token is None:
        return f"account {to_url(core.keyring().account)}"
    # The name on the wire that the collection had first: a rotation adds others, and its agents get new tokens.
    scope = token.keys.wires[-1] if isinstance(token.keys, CollectionKeys) else ""
    return f"token {to_url(token.keys.account)} {token.vault} {scope}".strip()


def store_keys(core: Core, file: File) -> None:
    """Keep what opens the account without a server: its descriptor and its keyring, as the server has them.

    The email is kept sealed. What the slow step needs of it is its salt. A keyring is kept only if it was made knowing
    of the one that is here.
    """
    ring, sealed, descriptor, email = core.ring, core.sealed, core.descriptor, core.email
    if ring is None or sealed is None or descriptor is None or email is None or sealed == file.fact("keyring"):
        return
    before, version = file.fact("keyring"), int(file.fact("keyring version") or 0)
    if version > ring.version or (before is not None and _is_forked(ring, version, before)):
        _use_own(core, file)
        return
    if file.fact("identity") not in {None, *ring.identity_checks()}:
        raise Tampered(OLD_KEYS)
    if before is not None:
        keyrings.count_gap(core, ring, version, keyring.digest_of(before))
    if before is not None and keyring.generation_of(before) == ring.generation:
        keyrings.require_directory(keyring.reopen(before, ring.key), ring)
    seen = file.fact("descriptor")
    if seen is not None:
        descriptor.check(Descriptor.read(seen).work)
    with file.transaction():
        if before is not None and _must_erase(file, before, sealed, ring):
            file.erase_replaced()
        file.set_fact("salt", to_base64(derive.kdf_salt(email, descriptor)))
        file.set_fact("email", to_base64(_seal_email(ring, email)))
        file.set_fact("descriptor", msgspec.json.encode(descriptor.spelled()).decode())
        file.set_fact("keyring", sealed)
        vault_keys.keep_all(file, ring)
        file.set_fact("identity", ring.identity_checks()[-1])
        file.set_fact("keyring version", str(ring.version))
        file.vaults.set_generations({entry.uid: entry.keys[-1][0] for entry in ring.vaults})


def _must_erase(file: File, before: str, sealed: str, ring: Keyring) -> bool:
    """Whether the keyring of before opens what the one that takes its place does not: with other ways in, or keys."""
    gone = any(ring.is_gone(uid) for uid, _ in file.vaults.sealed_keys())
    return gone or keyring.slots_of(before) != keyring.slots_of(sealed)


def _is_forked(ring: Keyring, version: int, before: str) -> bool:
    """Whether a keyring was made without knowing of the one that is here."""
    return version == ring.version or ring.follows_on(version, keyring.digest_of(before)) is False


def _use_own(core: Core, file: File) -> None:
    """The server has sent an older keyring than the one that is here, or one of another branch: go on with this one.

    The same keys must open both. Whether the server was restored from a backup, the next sync asks.
    """
    ring, sealed, email = core.keyring(), file.fact("keyring") or "", core.email or ""
    descriptor = Descriptor.read(file.fact("descriptor"))
    if keyring.slots_of(sealed) != keyring.slots_of(core.sealed or "") or descriptor != core.descriptor:
        if keyring.version_of(sealed) > ring.version:
            raise CredentialsRolledBack
        raise Tampered(TWO_KEYRINGS)
    own = keyring.reopen(sealed, ring.key)
    if own.follows_on(ring.version, ring.digest):
        core.device.record_account(email, own, descriptor)
    elif own.version > ring.version and own.follows_on(ring.version, ring.digest) is None:
        raise Tampered(TWO_KEYRINGS)
    else:
        core.forked = True
    core.ring, core.sealed = own, sealed


def _seal_email(ring: Keyring, email: str) -> bytes:
    return box.seal(ring.storage_key(_EMAIL), primitives.random(primitives.KEY), text(email), _email_label(ring))


def _open_email(ring: Keyring, sealed: bytes) -> str:
    return box.open_(ring.storage_key(_EMAIL), sealed, _email_label(ring)).decode()


def _email_label(ring: Keyring) -> bytes:
    return items(label(_EMAIL), ring.account)


def unlock(core: Core, path: str | os.PathLike[str], password: str, source: FactorSource) -> Effects[None]:
    """Unlock the account from its replica, without a server. The first request logs in."""
    file = File(path, read_only=True)
    try:
        salt, email, spelled, sealed = (file.fact(name) for name in ("salt", "email", "descriptor", "keyring"))
    finally:
        file.close()
    if salt is None or email is None or spelled is None or sealed is None:
        raise Locked("This replica holds no keys: it was never opened by somebody who had logged in.")
    descriptor, raw = Descriptor.read(spelled), from_base64(salt)
    keys = yield from effects.compute(lambda: derive.split(derive.master_key(raw, password, descriptor)))
    try:
        ring = keyring.open_with_password(sealed, keys, descriptor)
        whose = _open_email(ring, from_base64(email))
        core.unlock(whose, ring, sealed, descriptor, keys, source)
    except Tampered:
        raise InvalidCredentials("The password is wrong, or the replica was changed.") from None


def vaults(local: Local) -> list[OpenVault]:
    """The vaults of a replica, those included that were made here and are not sent yet."""
    follow_keys(local.core, local.file)
    record = {row.uid: row for row in local.file.vaults.all()}
    token = local.core.token
    if token is not None:
        if not isinstance(token.keys, VaultKeys) or token.vault not in record:
            return []
        return [token_vault(token, token.keys, record[token.vault].wire)]
    ring = local.core.keyring()
    entries = {entry.uid: entry for entry in vault_keys.created(local.file, ring)}
    entries |= {entry.uid: entry for entry in ring.vaults if entry.uid in record or entry.uid in entries}
    return [open_entry(local.core, entry) for _, entry in sorted(entries.items())]


def vault(local: Local, name: str | None, *, create: bool = False, sealed: bool = True) -> OpenVault:
    """One vault of a replica. With `create` it is made here, if there is none of this name; the next sync sends it."""
    token = local.core.token
    if token is not None and not isinstance(token.keys, VaultKeys):
        raise Locked("This token opens one collection; use collection().")
    if name is None and token is None:
        raise Invalid({"name": "is required"})
    found = next((opened for opened in vaults(local) if name is None or opened.name == name), None)
    if found is not None:
        return found
    if not create or name is None or token is not None or local.core.keyring().vault(name) is not None:
        raise VaultNotFound("There is no such vault in this replica; sync first, if it is new.")
    with local.file.transaction():
        made = next(
            (entry for entry in vault_keys.created(local.file, local.core.keyring()) if entry.name == name), None
        )
        if made is None:  # by another thread, since the look above
            uid, ring = identifiers.new_uid(local.core.clock()), local.core.keyring()
            name = names.checked_vault_name(name, sealed=sealed)
            made = vault_keys.create(local.file, ring, uid, name, sealed=sealed)
        return open_entry(local.core, made)


def scopes(local: Local) -> dict[str, KeyScope]:
    """The scopes of all vaults of a replica, by uid."""
    token = local.core.token
    if token is not None:
        return {token.vault: documents.key_scope(token.keys)}
    return {opened.uid: local.writable(documents.key_scope(opened.keys)) for opened in vaults(local)}


def places(local: Local) -> dict[str, vault_keys.Place]:
    """The vaults of a replica by uid, with those that were deleted and in which changes wait."""
    ring = local.core.ring
    found = {uid: vault_keys.Place(scope, "") for uid, scope in scopes(local).items()}
    if ring is not None:
        for uid, entry in vault_keys.kept(local.file, ring).items():
            found.setdefault(uid, vault_keys.Place(documents.key_scope(ring.vault_keys(entry)), entry.name))
    called = {opened.uid: opened.name for opened in vaults(local)}
    return {uid: place._replace(name=called.get(uid, place.name)) for uid, place in found.items()}


def blob(local: Local, opened: OpenVault) -> Any:
    """The blob of a vault, as last received."""
    record = local.file.vaults.blob_aside(opened.uid) or local.file.vaults.get(opened.uid)
    if record is None or record.data is None:
        return None
    row = model.Vault(record.uid, record.wire, record.version, record.clock, data=record.data, salt=record.salt)
    found = content.to_value(seal.open_known_blob(opened.keys, row))
    local.core.device.record_blob(row)
    return found
