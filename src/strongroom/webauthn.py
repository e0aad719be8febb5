"""WebAuthn: the server as browsers know it, and the verification of what an authenticator made.

The only file of the server that imports `fido2`. Bytes are texts in base64url here, as JSON has them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import ipaddress
import json
import os
import uuid
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from cryptography.exceptions import InvalidSignature
from fido2 import cbor
from fido2.cose import CoseKey
from fido2.server import Fido2Server
from fido2.webauthn import (
    Aaguid,
    AttestationConveyancePreference,
    AttestationObject,
    AttestedCredentialData,
    AuthenticationResponse,
    AuthenticatorAssertionResponse,
    AuthenticatorAttestationResponse,
    AuthenticatorData,
    CollectedClientData,
    PublicKeyCredentialRpEntity,
    RegistrationResponse,
    UserVerificationRequirement,
)

# EdDSA, ES256, and RS256 for the TPMs of Windows. The library would accept others too, SHA-1 among them.
ALGORITHMS: Final = (-8, -7, -257)
_CHALLENGE_BYTES: Final = 32
_MAX_PUBLIC_KEY: Final = 1_024  # bytes; that of RSA with 4096 bits has about 540
_MAX_CREDENTIAL_ID: Final = 1_023  # bytes, by the standard
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class Credential(NamedTuple):
    """What a registration proves: the id of a credential, its public key in COSE, its sign counter."""

    credential_id: str
    public_key: str
    sign_count: int


class Registration(NamedTuple):
    """What an authenticator made to register a credential."""

    credential_id: str
    client_data: str
    attestation_object: str


class Assertion(NamedTuple):
    """What an authenticator made to prove that it has a credential."""

    credential_id: str
    client_data: str
    authenticator_data: str
    signature: str


class _RefusedError(Exception):
    """The response of an authenticator is not what was asked for."""


class RelyingParty:
    """This server as browsers know it: one origin, and its host as the id that credentials are bound to."""

    def __init__(self, origin: str, rp_id: str) -> None:
        self.origin = origin
        self.id = rp_id
        self.algorithms = ALGORITHMS
        self._server = Fido2Server(
            PublicKeyCredentialRpEntity(name=rp_id, id=rp_id),
            attestation=AttestationConveyancePreference.NONE,
            verify_origin=self._is_own_origin,
        )

    def _is_own_origin(self, origin: object) -> bool:
        """Whether a ceremony took place on a page of this origin; a page of a subdomain has another."""
        return origin == self.origin

    @staticmethod
    def new_challenge() -> tuple[str, str]:
        """A new challenge, and the hash under which it is stored."""
        challenge = os.urandom(_CHALLENGE_BYTES)
        return _encode(challenge), _hash(challenge)

    @staticmethod
    def challenge_hash(client_data: str) -> str | None:
        """The hash of the challenge that the client data names; None if it names none."""
        try:
            return _hash(_challenge_of(_decode(client_data)))
        except Exception:  # noqa: BLE001 - parsers fail in many ways on what a stranger sends; all mean no
            return None

    @staticmethod
    def user_handle(user_id: str) -> str:
        """What an authenticator stores of an account, and returns with an assertion: its id."""
        return _encode(uuid.UUID(user_id).bytes)

    def verify_registration(self, challenge_hash: str, given: Registration) -> Credential | None:
        """The credential that was registered with this challenge, or None.

        The attestation statement is not read: which make of authenticator it is makes no difference here.
        """
        try:
            return self._registered(challenge_hash, given)
        except Exception:  # noqa: BLE001 - as above
            return None

    def verify_assertion(self, challenge_hash: str, public_key: str, given: Assertion) -> int | None:
        """The sign counter of an assertion for this challenge, made with the key of this public key; or None."""
        try:
            return self._asserted(challenge_hash, public_key, given)
        except Exception:  # noqa: BLE001 - as above
            return None

    def _registered(self, challenge_hash: str, given: Registration) -> Credential:
        client_data, challenge = _client_data(given.client_data, challenge_hash)
        credential_id = _decode(given.credential_id)
        response = AuthenticatorAttestationResponse(
            client_data=client_data, attestation_object=AttestationObject(_decode(given.attestation_object))
        )
        data = self._server.register_complete(
            _state(challenge), RegistrationResponse(raw_id=credential_id, response=response)
        )
        credential = data.credential_data
        if credential is None or credential.credential_id != credential_id:
            raise _RefusedError
        key = cbor.encode(credential.public_key)
        if not 0 < len(credential_id) <= _MAX_CREDENTIAL_ID or len(key) > _MAX_PUBLIC_KEY:
            raise _RefusedError
        if credential.public_key.get(3) not in ALGORITHMS or not _is_usable(credential.public_key):
            raise _RefusedError
        return Credential(_encode(credential_id), _encode(key), data.counter)

    def _asserted(self, challenge_hash: str, public_key: str, given: Assertion) -> int:
        client_data, challenge = _client_data(given.client_data, challenge_hash)
        credential_id = _decode(given.credential_id)
        data = AuthenticatorData(_decode(given.authenticator_data))
        response = AuthenticatorAssertionResponse(
            client_data=client_data, authenticator_data=data, signature=_decode(given.signature)
        )
        key: Any = cbor.decode(_decode(public_key))
        stored = AttestedCredentialData.create(Aaguid.NONE, credential_id, CoseKey.parse(key))
        self._server.authenticate_complete(
            _state(challenge), [stored], AuthenticationResponse(raw_id=credential_id, response=response)
        )
        return data.counter


def relying_party(public_url: str) -> RelyingParty | None:
    """The relying party of a server with this address; None if browsers make no passkeys for it.

    They want HTTPS, but for localhost, and a name instead of an IP address.
    """
    try:
        parts = urlsplit(public_url)
        host, port = (parts.hostname or "").encode("idna").decode(), parts.port
    except ValueError:
        return None
    is_localhost = host == "localhost" or host.endswith(".localhost")
    if not host or _is_address(host) or (parts.scheme != "https" and not (parts.scheme == "http" and is_localhost)):
        return None
    is_default = port in {None, _DEFAULT_PORTS[parts.scheme]}
    return RelyingParty(f"{parts.scheme}://{host}" + ("" if is_default else f":{port}"), host)


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    if _encode(data) != text:
        raise binascii.Error("not canonical base64url")
    return data


def _hash(challenge: bytes) -> str:
    return hashlib.sha256(challenge).hexdigest()


def _challenge_of(client_data: bytes) -> bytes:
    """The challenge in client data. The library takes a number for a length, and reserves as much memory."""
    challenge = json.loads(client_data.decode())["challenge"]
    if not isinstance(challenge, str):
        raise _RefusedError
    return _decode(challenge)


def _client_data(text: str, challenge_hash: str) -> tuple[CollectedClientData, bytes]:
    """The client data and its challenge, of which this is the hash; not from a frame in a page of another origin."""
    raw = _decode(text)
    challenge = _challenge_of(raw)  # before the library reads it
    data = CollectedClientData(raw)
    if _hash(challenge) != challenge_hash or data.cross_origin is not False:
        raise _RefusedError
    return data, challenge


def _state(challenge: bytes) -> dict[str, Any]:
    """What the library compares a response with."""
    return {"challenge": _encode(challenge), "user_verification": UserVerificationRequirement.REQUIRED}


def _is_usable(key: CoseKey) -> bool:
    """Whether signatures can be verified with a key: with one that is no key, this fails in another way."""
    try:
        key.verify(b"", b"")
    except InvalidSignature:
        return True
    return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
