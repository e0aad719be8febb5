"""Requests of an account: sessions, password, log, API keys, export and import."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom import errors
from strongroom.client.net import decoders
from strongroom.client.net.call import LARGE, Call, Factor, encode, factor_secrets, path_part, with_factor
from strongroom.client.net.effects import Upload
from strongroom.wire import responses
from strongroom.wire.export_lines import MEDIA_TYPE


def prelogin(email: str) -> Call[responses.Derivation]:
    """Get the key-derivation parameters of an account."""
    body = encode({"email": email})
    return Call(method="POST", path="/auth/email/prelogin", body=body, decode=decoders.derivation, authenticated=False)


def register(
    email: str,
    password: str,
    kdf: dict[str, Any],
    keyring: str | None,
    device_name: str | None,
    invitation: str | None,
) -> Call[responses.SignedIn]:
    """Register an account; one that is to be imported has no keyring yet."""
    body = {"email": email, "password": str(password), "kdf": kdf, "keyring": keyring} | _device(device_name)
    if invitation is not None:
        body["invitation"] = str(invitation)
    return Call(
        method="POST",
        path="/auth/email/register",
        body=encode(body),
        decode=decoders.signed_in,
        refusals={409: errors.EmailAlreadyExists},
        already_done=(errors.EmailAlreadyExists, errors.InvalidInvitation),
        secrets=(password, *([invitation] if invitation else [])),
        authenticated=False,
    )


def _device(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"deviceName": name}


def login(email: str, password: str, device_name: str | None) -> Call[responses.SignedIn]:
    """Log in."""
    return Call(
        method="POST",
        path="/auth/email/login",
        body=encode({"email": email, "password": str(password)} | _device(device_name)),
        decode=decoders.signed_in,
        refusals={401: errors.InvalidCredentials},
        secrets=(password,),
        authenticated=False,
    )


def refresh(refresh_token: str) -> Call[responses.Tokens]:
    """Refresh the tokens of a session."""
    return Call(
        method="POST",
        path="/auth/refresh",
        body=encode({"refreshToken": str(refresh_token)}),
        decode=decoders.tokens,
        refusals={401: errors.InvalidRefreshToken},
        authenticated=False,
    )


def logout(*, everywhere: bool) -> Call[Any]:
    """Log out: end this session, or all."""
    body = encode({"everywhere": True}) if everywhere else None
    return Call(
        method="POST", path="/auth/logout", body=body, decode=decoders.ignored, already_done=(errors.Unauthorized,)
    )


def sessions() -> Call[responses.Sessions]:
    """List the open sessions."""
    return Call(method="GET", path="/auth/sessions", decode=decoders.sessions)


def end_session(sid: str) -> Call[Any]:
    """End a session."""
    return Call(
        method="DELETE",
        path=f"/auth/sessions/{path_part(sid)}",
        decode=decoders.ignored,
        refusals={404: errors.SessionNotFound},
        already_done=(errors.SessionNotFound,),
    )


def me() -> Call[responses.Me]:
    """Get the account, its usage and its limits."""
    return Call(method="GET", path="/auth/me", decode=decoders.me)


def log(before: str | None) -> Call[responses.Events]:
    """Get a page of the account's log, before an entry."""
    query = () if before is None else (("before", before),)
    return Call(method="GET", path="/auth/events", query=query, decode=decoders.events)


def change_password(
    current: str,
    new: str,
    kdf: dict[str, Any],
    keyring: str,
    keyring_version: int,
    *,
    new_version: int,
    factor: Factor | None = None,
) -> Call[Any]:
    """Another password, with the keyring that is sealed for it."""
    body = {
        "currentPassword": str(current),
        "newPassword": str(new),
        "kdf": kdf,
        "keyring": keyring,
        "keyringVersion": keyring_version,
        "keyringNewVersion": new_version,
    }
    return Call(
        method="PUT",
        path="/auth/password",
        body=encode(with_factor(body, factor)),
        decode=decoders.ignored,
        refusals={401: errors.InvalidCredentials},
        already_done=(errors.InvalidCredentials, errors.InvalidSecondFactor),
        secrets=(current, new, *factor_secrets(factor)),
    )


def delete(password: str, factor: Factor | None) -> Call[Any]:
    """Delete the account."""
    return Call(
        method="DELETE",
        path="/auth/me",
        body=encode(with_factor({"password": str(password)}, factor)),
        decode=decoders.ignored,
        already_done=(errors.Unauthorized,),
        secrets=(password, *factor_secrets(factor)),
    )


def make_key(name: str, scopes: dict[str, Any]) -> Call[responses.NewApiKey]:
    """Create an API key. Not idempotent: sent twice, it creates two."""
    body = encode({"name": name, **scopes})
    return Call(
        method="POST",
        path="/auth/api-keys",
        body=body,
        decode=decoders.new_key,
        refusals={404: errors.VaultNotFound},
        idempotent=False,
    )


def list_keys() -> Call[responses.ApiKeys]:
    """List the API keys."""
    return Call(method="GET", path="/auth/api-keys", decode=decoders.keys, max_bytes=LARGE)


def revoke_key(uid: str) -> Call[Any]:
    """Revoke an API key."""
    return Call(
        method="DELETE",
        path=f"/auth/api-keys/{path_part(uid)}",
        decode=decoders.ignored,
        refusals={404: errors.ApiKeyNotFound},
        already_done=(errors.ApiKeyNotFound,),
    )


def export() -> Call[Any]:
    """Open the stream of the account's export."""
    return Call(method="GET", path="/auth/export", decode=decoders.ignored, accept=MEDIA_TYPE)


def import_(password: str, path: str, size: int, progress: Callable[[int], None]) -> Call[responses.Imported]:
    """Import the file of an account, with the password as the proof; `progress` is told how much of it was sent."""
    line = encode({"kind": "password", "currentPassword": str(password)}) + b"\n"
    return Call(
        method="POST",
        path="/auth/import",
        body=Upload(line, path, len(line) + size, progress),
        decode=decoders.imported,
        refusals={409: errors.ImportUnfinished},
        secrets=(password,),
        wait=60.0,
    )


def abandon_import() -> Call[Any]:
    """Give up an unfinished import: what came in is deleted."""
    return Call(
        method="DELETE",
        path="/auth/import",
        decode=decoders.ignored,
        refusals={404: errors.ImportNotFound},
        already_done=(errors.ImportNotFound,),
        wait=60.0,
    )
