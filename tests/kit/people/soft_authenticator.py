"""An authenticator in software: makes passkeys and real assertions, right ones or wrong in a chosen way.

It writes CBOR and signs by itself, with nothing of the library that the server verifies with.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

USER_PRESENT, USER_VERIFIED, ATTESTED, EXTENSIONS = 0x01, 0x04, 0x40, 0x80
ES256, EDDSA, RS256 = -7, -8, -257


def b64(data: bytes) -> str:
    """Bytes as WebAuthn writes them in JSON."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unb64(text: str) -> bytes:
    """The bytes of such a text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def cbor(value: Any) -> bytes:
    """A value in CBOR."""
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, bytes):
        return _head(2, len(value)) + value
    if isinstance(value, str):
        return _head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(cbor, value))
    return _head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())


def _head(major: int, number: int) -> bytes:
    if number < 24:
        return bytes([major << 5 | number])
    size = next(size for size in (1, 2, 4, 8) if number < 1 << 8 * size)
    return bytes([major << 5 | {1: 24, 2: 25, 4: 26, 8: 27}[size]]) + number.to_bytes(size)


class SoftPasskey:
    """One credential: its key pair, its counter, and the account that it was made for."""

    def __init__(self, rp_id: str, user_handle: bytes, algorithm: int = ES256, *, counts: bool = True) -> None:
        self.rp_id = rp_id
        self.user_handle = user_handle
        self.algorithm = algorithm
        self.id = os.urandom(32)
        self.counter = 0
        self.counts = counts  # passkeys that are synchronised between devices do not count
        self._key: Any = _new_key(algorithm)

    @property
    def credential_id(self) -> str:
        """The id of the credential, as JSON has it."""
        return b64(self.id)

    @property
    def private_key(self) -> bytes:
        """The private key, as a file can hold it."""
        form = serialization.PrivateFormat.PKCS8
        made: bytes = self._key.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption())
        return made

    @private_key.setter
    def private_key(self, data: bytes) -> None:
        self._key = serialization.load_der_private_key(data, None)

    def public_key(self) -> dict[int, Any]:
        """The public key in COSE."""
        public = self._key.public_key()
        if self.algorithm == EDDSA:
            return {1: 1, 3: EDDSA, -1: 6, -2: public.public_bytes_raw()}
        numbers = public.public_numbers()
        if self.algorithm == RS256:
            return {1: 3, 3: RS256, -1: numbers.n.to_bytes(256), -2: numbers.e.to_bytes(3)}
        return {1: 2, 3: self.algorithm, -1: 1, -2: numbers.x.to_bytes(32), -3: numbers.y.to_bytes(32)}

    def sign(self, message: bytes) -> bytes:
        """A signature of a message."""
        if self.algorithm == EDDSA:
            return bytes(self._key.sign(message))
        if self.algorithm == RS256:
            return bytes(self._key.sign(message, padding.PKCS1v15(), hashes.SHA256()))
        return bytes(self._key.sign(message, ec.ECDSA(hashes.SHA256())))

    def register(self, options: dict[str, Any], origin: str, /, **wrong: Any) -> dict[str, Any]:
        """The response to options of registration; what is `wrong` stands in the place of what is right."""
        client_data = _client_data("webauthn.create", options["challenge"], origin, wrong)
        key = wrong.get("public_key", self.public_key())
        spelled = key if isinstance(key, bytes) else cbor(key)
        attested = bytes(16) + struct.pack(">H", len(self.id)) + self.id + spelled
        data = self._authenticator_data(USER_PRESENT | USER_VERIFIED | ATTESTED, wrong) + attested
        data = wrong.get("auth_data", data)
        attestation = cbor({"fmt": "none", "attStmt": {}, "authData": data})
        response = {"clientDataJSON": b64(client_data), "attestationObject": b64(wrong.get("attestation", attestation))}
        return {"id": b64(wrong.get("id", self.id)), "response": response}

    def assertion(self, options: dict[str, Any], origin: str, /, **wrong: Any) -> dict[str, Any]:
        """The response to options of an assertion; what is `wrong` stands in the place of what is right."""
        client_data = _client_data("webauthn.get", options["challenge"], origin, wrong)
        data = self._authenticator_data(USER_PRESENT | USER_VERIFIED, wrong)
        data = wrong.get("auth_data", data)
        signer: SoftPasskey = wrong.get("signed_by", self)
        signature = wrong.get("signature", signer.sign(data + hashlib.sha256(client_data).digest()))
        response = {
            "clientDataJSON": b64(wrong.get("other_client_data", client_data)),
            "authenticatorData": b64(data),
            "signature": b64(signature),
            "userHandle": b64(wrong.get("user_handle", self.user_handle)),
        }
        return {"id": b64(wrong.get("id", self.id)), "response": response}

    def _authenticator_data(self, flags: int, wrong: dict[str, Any]) -> bytes:
        self.counter += self.counts
        rp_id = hashlib.sha256(wrong.get("rp_id", self.rp_id).encode()).digest()
        return rp_id + struct.pack(">BI", wrong.get("flags", flags), wrong.get("counter", self.counter))


def _client_data(kind: str, challenge: str, origin: str, wrong: dict[str, Any]) -> bytes:
    data = {
        "type": wrong.get("type", kind),
        "challenge": wrong.get("challenge", challenge),
        "origin": wrong.get("origin", origin),
        "crossOrigin": wrong.get("cross_origin", False),
    }
    return bytes(wrong.get("client_data", json.dumps(data).encode()))


def _new_key(algorithm: int) -> Any:
    if algorithm == EDDSA:
        return ed25519.Ed25519PrivateKey.generate()
    if algorithm == RS256:
        return rsa.generate_private_key(65537, 2048)
    return ec.generate_private_key(ec.SECP256R1())
