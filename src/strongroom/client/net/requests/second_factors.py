"""Requests of second factors: one-time codes and recovery codes."""

from __future__ import annotations

from typing import Any, Final

from strongroom import errors
from strongroom.client.net import decoders
from strongroom.client.net.call import Call, Factor, encode, factor_secrets, proof, with_factor
from strongroom.model import SecondFactors
from strongroom.wire import responses

_TOTP: Final = "/auth/second-factor/totp"


def finish_login(ticket: str, factor: Factor) -> Call[responses.SignedIn]:
    """Finish a login with a second factor. Not idempotent: the ticket is good once."""
    return Call(
        method="POST",
        path="/auth/email/login/second",
        body=encode(with_factor({"ticket": str(ticket)}, factor)),
        decode=decoders.signed_in,
        refusals={401: errors.InvalidSecondFactor},
        secrets=(ticket, *factor_secrets(factor)),
        authenticated=False,
        idempotent=False,
    )


def status() -> Call[SecondFactors]:
    """The second factors of the account."""
    return Call(method="GET", path="/auth/second-factor", decode=decoders.second_factors)


def enrol(password: str, factor: Factor | None) -> Call[responses.Enrolment]:
    """Begin the enrolment of one-time codes."""
    return Call(
        method="POST",
        path=_TOTP,
        body=proof(password, factor),
        decode=decoders.enrolment,
        refusals={401: errors.InvalidCredentials},
        secrets=(password, *factor_secrets(factor)),
        idempotent=factor is None,
    )


def confirm(code: str) -> Call[list[str]]:
    """Confirm the enrolment of one-time codes. Not idempotent: the recovery codes are shown once."""
    return Call(
        method="POST",
        path=f"{_TOTP}/confirm",
        body=encode({"code": str(code)}),
        decode=decoders.recovery_codes,
        refusals={401: errors.InvalidSecondFactor, 404: errors.SecondFactorNotFound},
        secrets=(code,),
        idempotent=False,
    )


def disable(password: str, factor: Factor | None) -> Call[Any]:
    """Delete the one-time codes."""
    return Call(
        method="DELETE",
        path=_TOTP,
        body=proof(password, factor),
        decode=decoders.ignored,
        refusals={401: errors.InvalidCredentials, 404: errors.SecondFactorNotFound},
        already_done=(errors.SecondFactorNotFound,),
        secrets=(password, *factor_secrets(factor)),
    )


def new_recovery_codes(password: str, factor: Factor | None) -> Call[list[str]]:
    """Replace the recovery codes. Not idempotent: they are shown once."""
    return Call(
        method="POST",
        path="/auth/second-factor/recovery-codes",
        body=proof(password, factor),
        decode=decoders.recovery_codes,
        refusals={401: errors.InvalidCredentials, 404: errors.SecondFactorNotFound},
        secrets=(password, *factor_secrets(factor)),
        idempotent=False,
    )
