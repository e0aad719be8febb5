"""Ceremonies with passkeys: what an authenticator is asked, and what of its response is sent.

The options of a server are not passed on as they are: the rp id must be this server's host, user verification is always
required, and the input of the PRF is the format's. Of a response only what a server needs is sent: never the output of
the PRF, which opens the account.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from strongroom.client.errors import CeremonyFailed, Tampered, WrongServer
from strongroom.client.format import passkey
from strongroom.client.format.encoding import from_url, to_url
from strongroom.client.format.passkey import PasskeySecret
from strongroom.client.format.primitives import SecretBytes
from strongroom.client.net import effects, requests
from strongroom.client.net.call import Factor
from strongroom.errors import Invalid

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.net.session import Session
    from strongroom.wire.webauthn import CreationOptions, RequestOptions

_PORTS: Final = {"https": 443, "http": 80}
_UNREADABLE: Final = "The authenticator gave a response that cannot be read."
_OTHER_HOST: Final = (
    "The server's passkeys are for {}, and this client reaches it as {}. Use the address that its operator has set as "
    "PUBLIC_URL. If you have never heard of that name, do not trust the server."
)
_SHOWN: Final = re.compile(r"[a-z0-9.-]{1,253}")


@runtime_checkable
class Authenticator(Protocol):
    """What makes and uses passkeys: a `SecurityKey`, or one of your own, for example a browser.

    Options and responses are those of WebAuthn in JSON, as a browser's `parseCreationOptionsFromJSON`,
    `parseRequestOptionsFromJSON` and `toJSON` have them. `origin` is the server's. Both methods may wait for a person.

    Chromium's `toJSON` leaves the output of the PRF out, without which nothing is unlocked: add it from
    `getClientExtensionResults()`, as base64url in `clientExtensionResults.prf.results.first`. It is not sent anywhere.
    """

    def create(self, origin: str, options: dict[str, Any]) -> Mapping[str, Any]:
        """Make a passkey: `navigator.credentials.create` with these options."""
        ...

    def get(self, origin: str, options: dict[str, Any]) -> Mapping[str, Any]:
        """Use a passkey: `navigator.credentials.get` with these options."""
        ...


class Made(Struct, frozen=True, kw_only=True):
    """A passkey that was made: what is sent of it, and whether its authenticator has the PRF."""

    credential_id: str
    sent: dict[str, Any]
    prf: bool


class Asserted(Struct, frozen=True, kw_only=True):
    """A passkey that was used: what is sent of it, and what opens the account, if it was asked for and given."""

    credential_id: str
    sent: dict[str, Any]
    secret: PasskeySecret | None

    def __repr__(self) -> str:
        return "Asserted(...)"


def host(session: Session) -> str:
    """The host name in the server's address: the rp id of its passkeys."""
    return _ascii(urlsplit(session.url).hostname or "")


def _ascii(name: str) -> str:
    try:
        return name.encode("idna").decode("ascii").lower()
    except ValueError:
        return ""


def _origin(session: Session) -> str:
    parts = urlsplit(session.url)
    port = "" if parts.port in {None, _PORTS.get(parts.scheme)} else f":{parts.port}"
    return f"{parts.scheme}://{host(session)}{port}"


def _require_host(session: Session, rp_id: str) -> None:
    if not rp_id or rp_id != host(session):
        raise WrongServer(_OTHER_HOST.format(rp_id if _SHOWN.fullmatch(rp_id) else "another host", host(session)))


def create(session: Session, authenticator: Authenticator, options: CreationOptions) -> Effects[Made]:
    """Make a passkey."""
    _require_host(session, options.rp.id)
    asked = {
        **_json(options),
        "attestation": "none",
        "authenticatorSelection": {"residentKey": "preferred", "userVerification": "required"},
        "extensions": {"prf": {}},
    }
    made = yield from effects.compute(lambda: _made(authenticator.create(_origin(session), asked)))
    if made is None:
        raise CeremonyFailed(_UNREADABLE)
    return made


def get(
    session: Session, authenticator: Authenticator, options: RequestOptions, *, unlock: bool, only: str | None = None
) -> Effects[Asserted]:
    """Use a passkey; with `unlock`, to open the account as well. `only` is the one that is meant, by its id."""
    _require_host(session, options.rp_id)
    asked = {**_json(options), "userVerification": "required"}
    if unlock:
        asked["extensions"] = {"prf": {"eval": {"first": to_url(passkey.INPUT)}}}
    if only is not None:
        asked["allowCredentials"] = [{"type": "public-key", "id": only}]
    asserted = yield from effects.compute(
        lambda: _asserted(authenticator.get(_origin(session), asked), options.rp_id, unlock=unlock)
    )
    if asserted is None or only not in {None, asserted.credential_id}:
        raise CeremonyFailed(_UNREADABLE if asserted is None else "The authenticator used another passkey.")
    return asserted


def prove(session: Session, authenticator: Authenticator, ticket: str | None) -> Effects[Factor]:
    """Use a passkey as a second factor: of the session, or of the login with this ticket."""
    call = requests.passkeys.begin_proof() if ticket is None else requests.passkeys.begin_login(ticket)
    options = (yield from session.send(call)).public_key
    asserted = yield from get(session, authenticator, options, unlock=False)
    return Factor({"passkey": asserted.sent})


def _json(options: CreationOptions | RequestOptions) -> dict[str, Any]:
    asked: dict[str, Any] = msgspec.to_builtins(options)
    return asked


class _Attestation(Struct, frozen=True):
    client_data: str = msgspec.field(name="clientDataJSON")
    attestation_object: str = msgspec.field(name="attestationObject")


class _Assertion(Struct, frozen=True):
    client_data: str = msgspec.field(name="clientDataJSON")
    authenticator_data: str = msgspec.field(name="authenticatorData")
    signature: str
    user_handle: str | None = msgspec.field(name="userHandle", default=None)


class _Values(Struct, frozen=True):
    first: str

    def __repr__(self) -> str:
        return "_Values(...)"


class _Prf(Struct, frozen=True):
    enabled: bool | None = None
    results: _Values | None = None


class _Extensions(Struct, frozen=True):
    prf: _Prf | None = None


class _Registered(Struct, frozen=True, rename="camel"):
    id: str
    response: _Attestation
    client_extension_results: _Extensions = _Extensions()


class _Used(Struct, frozen=True, rename="camel"):
    id: str
    response: _Assertion
    client_extension_results: _Extensions = _Extensions()


# These two return None for what cannot be read, and raise nothing: a traceback would show the response.


def _made(given: Mapping[str, Any]) -> Made | None:
    try:
        found = msgspec.convert(given, _Registered)
        from_url(found.id)
    except (msgspec.MsgspecError, Tampered, ValueError, TypeError):
        return None
    prf = found.client_extension_results.prf
    return Made(
        credential_id=found.id, sent=_sent(found.id, found.response), prf=prf is not None and prf.enabled is True
    )


def _asserted(given: Mapping[str, Any], rp_id: str, *, unlock: bool) -> Asserted | None:
    try:
        found = msgspec.convert(given, _Used)
        prf = found.client_extension_results.prf
        secret = None
        if unlock and prf is not None and prf.results is not None:
            secret = PasskeySecret.of(rp_id, from_url(found.id), SecretBytes(from_url(prf.results.first)))
    except (msgspec.MsgspecError, Tampered, Invalid, ValueError, TypeError):
        return None
    return Asserted(credential_id=found.id, sent=_sent(found.id, found.response), secret=secret)


def _sent(credential_id: str, response: Struct) -> dict[str, Any]:
    return {
        "id": credential_id,
        "rawId": credential_id,
        "type": "public-key",
        "response": msgspec.to_builtins(response),
    }
