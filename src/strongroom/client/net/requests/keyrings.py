"""Requests of the keyring."""

from __future__ import annotations

from typing import Any

from strongroom import errors
from strongroom.client.net import decoders
from strongroom.client.net.call import Call, Factor, encode, factor_secrets, with_factor
from strongroom.wire import responses


def get() -> Call[responses.Keyring]:
    """Get the keyring."""
    return Call(method="GET", path="/auth/keyring", decode=decoders.keyring)


def put(
    keyring: str, version: int, new_version: int, *, password: str | None = None, factor: Factor | None = None
) -> Call[responses.Keyring]:
    """Another keyring in the place of the one of this version. Where its slots change, the password is the proof."""
    body: dict[str, Any] = {"keyring": keyring, "version": version, "newVersion": new_version}
    if password is not None:
        body["currentPassword"] = str(password)
    return Call(
        method="PUT",
        path="/auth/keyring",
        body=encode(with_factor(body, factor)),
        decode=decoders.keyring,
        refusals={401: errors.InvalidCredentials} if password is not None else {},
        already_done=() if factor is None else (errors.InvalidSecondFactor,),
        secrets=() if password is None else (password, *factor_secrets(factor)),
    )
