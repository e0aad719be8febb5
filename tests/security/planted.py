"""Authorisation bugs to plant, one at a time, in a server that runs. The matrix must notice each (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from strongroom import rules, store
from strongroom.actions import keyrings, keys, sessions, vaults
from strongroom.credentials import TokenSigner
from strongroom.errors import InsufficientScope, VaultNotFound
from strongroom.model import Actor, Permission
from strongroom.server import app, authentication
from strongroom.server.request import Access, Endpoint, Request
from strongroom.server.routing import Router
from strongroom.store.statement import Sql
from tests.security.fixtures import Stage

Plant = Callable[[pytest.MonkeyPatch, Stage], None]


def replaced(module: Any, name: str, planted: Callable[..., Any]) -> Plant:
    """Another function in the place of this one."""
    return lambda patch, _stage: patch.setattr(module, name, planted)


def shorter(module: Any, name: str, without: str) -> Plant:
    """A statement that lost a condition."""

    def plant(patch: pytest.MonkeyPatch, _stage: Stage) -> None:
        text: str = getattr(module, name).sqlite
        assert without in text, f"{name} does not say {without!r}: {text}"
        patch.setattr(module, name, Sql(text.replace(without, "")))

    return plant


def both(one: Plant, two: Plant) -> Plant:
    """Two bugs, where each alone would be caught by the other guard."""

    def plant(patch: pytest.MonkeyPatch, stage: Stage) -> None:
        one(patch, stage)
        two(patch, stage)

    return plant


def rerouted(method: str, path: str, **changes: Any) -> Plant:
    """A route whose row in the server's table says something else; a path of `*` is all of them."""

    def plant(patch: pytest.MonkeyPatch, stage: Stage) -> None:
        def changed(endpoint: Endpoint) -> Endpoint:
            hit = path == "*" or (endpoint.method, endpoint.path) == (method, path)
            return (
                msgspec.structs.replace(endpoint, **changes)
                if hit and endpoint.access is not Access.PUBLIC
                else endpoint
            )

        router = Router([changed(endpoint) for endpoint in stage.app._app._router.endpoints])
        patch.setattr(stage.app._app, "_router", router)

    return plant


def nothing(*_: Any, **__: Any) -> None:
    """Do nothing."""


def yes(*_: Any, **__: Any) -> bool:
    """Say yes."""
    return True


async def expired_too(tx: Any, key_hash: str) -> Actor | None:
    """Look at no date."""
    return (await store.keys.actor(tx, key_hash))[0]


async def never_gone(_tx: Any, _user_id: str, _uid: str) -> bool:
    """Say that the key is revoked."""
    return True


async def taken_at_its_word(tx: Any, actor: Actor, wanted: Any, key_hash: str, origin: Any) -> Any:
    """Make a key for whatever vaults it names."""
    made = await _create_key(tx, actor, msgspec.structs.replace(wanted, vault_uids=None), key_hash, origin)
    return msgspec.structs.replace(made, vault_uids=wanted.vault_uids)


async def telling(tx: Any, actor: Actor, uid: str) -> Any:
    """Tell a vault of another account from one that is not there."""
    try:
        return await _get_vault(tx, actor, uid)
    except VaultNotFound:
        if await tx.value(Sql("SELECT 1 FROM vaults WHERE uid = :uid"), uid=uid):
            raise InsufficientScope("This vault is not yours.") from None
        raise


def of_either_kind(tokens: TokenSigner, token: str, _kind: str, now: int) -> Any:
    """Take a refresh token for an access token."""
    return _claims(tokens, token, "access", now) or _claims(tokens, token, "refresh", now)


def of_any_age(tokens: TokenSigner, token: str, kind: Any, _now: int) -> Any:
    """Take a token that has expired."""
    return _claims(tokens, token, kind, 0)


def permission_only(key: Any, permission: Permission | None, **_: bool) -> None:
    """Forget that a key may be limited to vaults or collections."""
    _require(key, permission)


def limits_only(key: Any, _permission: Permission | None, *, whole_account: bool = False) -> None:
    """Forget the permissions."""
    _require(key, None, whole_account=whole_account)


def unproven(claims: Any) -> Any:
    """Ask for the session, and take whatever is found for an open one."""
    return store.sessions.session_check(claims.sub, claims.sid, lambda _found: 10**15)


def as_named(_actor: Actor, named: str | None) -> Any:
    """List the collection that is named, or all."""
    return None if named is None else (named,)


async def from_the_query(request: Request) -> Actor:
    """Take a token from the address too, where logs and histories keep it."""
    if b"authorization" not in request.headers and "access_token" in request.query():
        request.headers[b"authorization"] = f"Bearer {request.query()['access_token']}".encode()
    return await _authenticate(request)


def of_everybody(collections: int, *, of_one: bool) -> Sql:
    """Read the history of a vault's uid, whosever it is."""
    return Sql(_history(collections, of_one=of_one).sqlite.replace(_OWNER, ""))


def last_in_scope(actor: Actor, vault_uid: str) -> None:
    """Check the vaults of a key only if it is not limited to collections too."""
    if actor.key is not None and actor.key.collections is None:
        _require_vault(actor, vault_uid)


_claims, _require, _require_vault = TokenSigner.claims, rules.require, rules.require_vault
_authenticate = authentication.authenticate
_create_key, _get_vault = keys.create, vaults.get
_history = store.versions._history
_OWNER = "user_id = :user_id AND "

BUGS: dict[str, Plant] = {
    "a key's vaults are not checked": replaced(rules, "require_vault", nothing),
    "a key's vaults are not checked if it has collections": replaced(rules, "require_vault", last_in_scope),
    "a key's collections are not checked on one document": replaced(rules, "in_scope", yes),
    "a key's collections are not applied to lists": replaced(rules, "collections_of", as_named),
    "a key of some collections sees blobs": replaced(rules, "may_see_blobs", yes),
    "a key's permissions are not checked": replaced(rules, "require", limits_only),
    "a limited key may change whole vaults": replaced(rules, "require", permission_only),
    "an expired key is taken": replaced(keys, "holder", expired_too),
    "a revoked key is taken": replaced(store.keys, "delete", never_gone),
    "a key is made for a vault of somebody else": replaced(keys, "create", taken_at_its_word),
    "the session behind a token is not looked up": replaced(sessions, "session_check", unproven),
    "a refresh token is taken as an access token": replaced(TokenSigner, "claims", of_either_kind),
    "an expired token is taken": replaced(TokenSigner, "claims", of_any_age),
    "a token is taken from the query": replaced(app, "authenticate", from_the_query),
    "a foreign vault is told from one that is not there": replaced(vaults, "get", telling),
    "what only users may do is open to keys": rerouted("", "*", access=Access.ANY),
    "one route of users is open to keys": rerouted("GET", "/auth/events", access=Access.ANY),
    "one route asks for no permission": rerouted("DELETE", "/vaults/{vaultUid}/documents/{uid}", permission=None),
    "one route asks for the wrong permission": rerouted("PUT", "/vault/{uid}", permission=Permission.READ),
    "a limited key may delete a vault": rerouted("DELETE", "/vault/{uid}", whole_account=False),
    "a document is found without its owner": shorter(store.documents, "_GET", _OWNER),
    "a document is found under any vault": shorter(store.documents, "_GET", " AND vault_uid || '' = :vault_uid"),
    "a vault is found without its owner": shorter(store.vaults, "_GET", _OWNER),
    "a vault's time is read without its owner": shorter(store.vaults, "_CLOCK", _OWNER),
    "a document is looked up for a change without its owner": shorter(store.documents, "_HEAD", _OWNER),
    "a document is looked up for a change under any vault": shorter(
        store.documents, "_HEAD", " AND vault_uid || '' = :vault_uid"
    ),
    "a vault is changed without its owner": shorter(store.vaults, "_CHANGE", _OWNER),
    "a vault is deleted without its owner": both(
        shorter(store.vaults, "_GET_BARE", _OWNER), shorter(store.vaults, "_DELETE", _OWNER)
    ),
    "a name is looked up without its owner": shorter(store.vaults, "_BY_NAME", _OWNER),
    "vaults are listed without their owner": shorter(store.vaults, "_LIST", _OWNER),
    "a key is revoked without its owner": shorter(store.keys, "_DELETE", _OWNER),
    "keys are listed without their owner": shorter(store.keys, "_LIST", " WHERE user_id = :user_id"),
    "a session is ended without its owner": shorter(store.sessions, "_END", _OWNER),
    "sessions are listed without their owner": shorter(store.sessions, "_LIST", " WHERE user_id = :user_id"),
    "a keyring is read without its owner": shorter(store.keyrings, "_GET", " WHERE user_id = :user_id"),
    "a keyring is replaced without its owner": shorter(store.keyrings, "_REPLACE", _OWNER),
    "a retained keyring is read without its owner": shorter(store.keyrings, "_VERSION", _OWNER),
    "what opens an account is replaced without the password": replaced(keyrings, "_has_same_slots", yes),
    "the account id of a keyring may change": replaced(keyrings, "_has_same_account", yes),
    "the history is read without its owner": replaced(store.versions, "_history", of_everybody),
    "the history asks for no permission": rerouted("GET", "/vaults/{vaultUid}/documents/history", permission=None),
    "retained keyrings are open to keys": rerouted("GET", "/auth/keyring/versions/{version}", access=Access.ANY),
    "the log is read without its owner": shorter(store.events, "_NEWEST", _OWNER),
}
