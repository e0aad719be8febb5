"""Requests of passkeys."""

from __future__ import annotations

from typing import Any, Final

from strongroom import errors
from strongroom.client.net import decoders
from strongroom.client.net.call import Call, Factor, encode, factor_secrets, path_part, proof
from strongroom.wire import responses

_PASSKEYS: Final = "/auth/passkeys"


def begin_login(ticket: str | None) -> Call[responses.PasskeyRequest]:
    """The options of a login with a passkey, or of one as the second factor of the login with this ticket."""
    return Call(
        method="POST",
        path=f"{_PASSKEYS}/login/options",
        body=encode({} if ticket is None else {"ticket": str(ticket)}),
        decode=decoders.passkey_request,
        refusals={401: errors.InvalidTicket},
        secrets=() if ticket is None else (ticket,),
        authenticated=False,
    )


def login(credential: dict[str, Any], device_name: str | None) -> Call[responses.SignedIn]:
    """Log in with a passkey. Not idempotent: the challenge is good once."""
    named = {} if device_name is None else {"deviceName": device_name}
    return Call(
        method="POST",
        path=f"{_PASSKEYS}/login",
        body=encode({"credential": credential, **named}),
        decode=decoders.signed_in,
        refusals={401: errors.InvalidPasskey},
        authenticated=False,
        idempotent=False,
    )


def begin_proof() -> Call[responses.PasskeyRequest]:
    """The options with which a passkey of the account is proven."""
    return Call(method="POST", path=f"{_PASSKEYS}/proof/options", decode=decoders.passkey_request)


def begin_registration(password: str, factor: Factor | None) -> Call[responses.PasskeyCreation]:
    """The options with which a passkey is made."""
    return Call(
        method="POST",
        path=f"{_PASSKEYS}/registration/options",
        body=proof(password, factor),
        decode=decoders.passkey_creation,
        refusals={401: errors.InvalidCredentials},
        secrets=(password, *factor_secrets(factor)),
        idempotent=factor is None,
    )


def add(name: str, credential: dict[str, Any], *, prf: bool) -> Call[responses.AddedPasskey]:
    """Register a passkey. Not idempotent: the challenge is good once."""
    return Call(
        method="POST",
        path=_PASSKEYS,
        body=encode({"name": name, "credential": credential, "prf": prf}),
        decode=decoders.added_passkey,
        refusals={401: errors.InvalidPasskey, 409: errors.PasskeyTaken},
        idempotent=False,
    )


def list_() -> Call[responses.Passkeys]:
    """List the passkeys."""
    return Call(method="GET", path=_PASSKEYS, decode=decoders.passkeys)


def rename(uid: str, name: str) -> Call[Any]:
    """Rename a passkey."""
    return Call(
        method="PUT",
        path=f"{_PASSKEYS}/{path_part(uid)}",
        body=encode({"name": name}),
        decode=decoders.ignored,
        refusals={404: errors.PasskeyNotFound},
    )


def delete(uid: str, password: str, factor: Factor | None) -> Call[Any]:
    """Delete a passkey."""
    return Call(
        method="DELETE",
        path=f"{_PASSKEYS}/{path_part(uid)}",
        body=proof(password, factor),
        decode=decoders.ignored,
        refusals={401: errors.InvalidCredentials, 404: errors.PasskeyNotFound},
        already_done=(errors.PasskeyNotFound,),
        secrets=(password, *factor_secrets(factor)),
    )
