"""Operations on sessions, API keys and tokens."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format import tokens
from strongroom.client.format.encoding import checked_text
from strongroom.client.format.keys import CollectionKeys, VaultKeys
from strongroom.client.net import requests
from strongroom.client.operations import documents, vaults
from strongroom.client.operations.token_state import TokenState
from strongroom.client.operations.vaults import OpenVault
from strongroom.errors import Invalid, VaultNotFound
from strongroom.items import ITEMS, Item
from strongroom.model import Permission

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import KeyScope
    from strongroom.model import ApiKey
    from strongroom.wire.responses import ListedSession

# What a token may be allowed to do.
Permissions: TypeAlias = Sequence[Permission | Literal["read", "write", "delete"]]
_NO_KEY: Final = "The server gave an API key that no token can carry."
_NARROW: Final = "This token opens one collection; use collection()."


def sessions(core: Core) -> Effects[list[ListedSession]]:
    """List the open sessions."""
    return (yield from core.session.send(requests.accounts.sessions())).sessions


def end_session(core: Core, sid: str) -> Effects[None]:
    """End a session."""
    yield from core.session.send_or_done(requests.accounts.end_session(checked_text(sid, "session_id")))


def api_keys(core: Core) -> Effects[list[ApiKey]]:
    """The API keys."""
    return (yield from core.session.send(requests.accounts.list_keys())).keys


def revoke_key(core: Core, uid: str) -> Effects[None]:
    """Revoke an API key."""
    yield from core.session.send_or_done(requests.accounts.revoke_key(checked_text(uid, "uid")))


def make_token(
    core: Core,
    name: str,
    keys: VaultKeys | CollectionKeys,
    called: str,
    permissions: Permissions | None,
    expires_at: int | None,
    *,
    sealed: bool,
    older_keys: bool = False,
) -> Effects[str]:
    """An API key that reaches a vault or a collection, together with the key that opens it.

    Keys of before the floor open history, and what an agent has written before a rotation and not sent: they are in it
    with `older_keys`.
    """
    ring = core.keyring()
    scopes: dict[str, Any] = {"vaultUids": [keys.vault]}
    if isinstance(keys, CollectionKeys):
        scopes["collections"] = list(keys.wires)
    if permissions is not None:
        scopes["permissions"] = list(permissions)
    if expires_at is not None:
        scopes["expiresAt"] = expires_at
    made = yield from core.session.send(requests.accounts.make_key(checked_text(name, "name"), scopes))
    version = ring.version if keys.keyring is None else keys.keyring
    keys = msgspec.structs.replace(keys if older_keys else keys.from_floor(), keyring=None)
    if not sealed and isinstance(keys, VaultKeys):
        keys = msgspec.structs.replace(keys, former=())  # no name is sealed
    token = tokens.Token(api_key=made.key, keys=keys, keyring=version, name=called, sealed=sealed)
    try:
        return token.spelled()
    except Invalid:
        raise Tampered(_NO_KEY) from None


def use_token(core: Core, spelled: str, state: str | os.PathLike[str] | None = None) -> None:
    """Use a token instead of a session. `state` is the path of a file with what was seen earlier."""
    token = tokens.read(spelled)
    core.lock()
    if state is not None:
        core.state = TokenState(state, token)
        token = core.state.use(core.device, token)
    core.token = token
    core.session.use_key(token.api_key)


def save_state(core: Core) -> Effects[None]:
    """Write what was seen with a token, if there is a state file."""
    if core.state is not None:
        yield from core.state.save(core.device)


def token_scope(core: Core, values: Any = None) -> KeyScope:
    """The scope of the collection that a token opens. `values` is the type of its values."""
    token = core.token
    if token is None or not isinstance(token.keys, CollectionKeys):
        raise Locked("Only a token that was made for one collection opens one; open its vault first.")
    return documents.key_scope(token.keys, values=values)


def token_items(core: Core) -> KeyScope | None:
    """The scope of a vault's items, if a token opens that collection and no more."""
    token = core.token
    if token is None or not isinstance(token.keys, CollectionKeys):
        return None
    if token.keys.name != ITEMS:
        raise Locked("This token opens another collection than that of the items.")
    return documents.key_scope(token.keys, values=Item)


def open_vault(core: Core, name: str | None, *, create: bool, sealed: bool) -> Effects[OpenVault]:
    """Open a vault by its name, or the one of the token."""
    token = core.token
    if token is None:
        if name is None:
            raise Invalid({"name": "is required"})
        return (yield from vaults.open_vault(core, name, create=create, sealed=sealed))
    if not isinstance(token.keys, VaultKeys):
        raise Locked(_NARROW)
    mark = core.device.mark()
    row = yield from core.session.send(requests.vaults.get(token.vault))
    opened = token_vault(token, token.keys, row.name)
    yield from vaults.check_vault(core, opened, row, mark)
    if name not in {None, token.name, opened.name}:  # it may have been renamed since the token was made
        raise VaultNotFound("This token opens another vault.")
    return opened


def token_vault(token: tokens.Token, keys: VaultKeys, wire: str) -> OpenVault:
    """The vault that a token opens, under the name that the server shows."""
    opened = OpenVault(uid=token.vault, name=token.name, wire=wire, sealed=token.sealed, keys=keys, wires=(wire,))
    return vaults.named(opened, wire)
