"""A security key in software as USB shows it: CTAP 2 with a PIN and `hmac-secret`, below the library for such keys."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from fido2 import cbor
from fido2.ctap import STATUS, CtapDevice

from tests.kit.people.soft_authenticator import ATTESTED, EXTENSIONS, USER_PRESENT, USER_VERIFIED, SoftPasskey

MAKE_CREDENTIAL, GET_ASSERTION, GET_INFO, CLIENT_PIN = 1, 2, 4, 6
KEY_AGREEMENT, PIN_TOKEN = 2, 5
OK, EXCLUDED, NO_CREDENTIALS, PIN_INVALID, PIN_AUTH_INVALID = 0, 0x19, 0x2E, 0x31, 0x33


class _RefusedError(Exception):
    """A status that is not OK."""


class SoftCtapDevice(CtapDevice):
    """Holds passkeys; every ceremony needs the PIN."""

    def __init__(self, pin: str = "1234", *, prf: bool = True) -> None:
        self._pin = hashlib.sha256(pin.encode()).digest()[:16]
        self._prf = prf
        self._token = os.urandom(32)
        self._agreement = ec.generate_private_key(ec.SECP256R1())
        self._secrets: dict[bytes, bytes] = {}
        self.passkeys: list[SoftPasskey] = []
        self.closed = 0
        self._path: Path | None = None

    def save(self, path: Path) -> None:
        """Write the key to a file, so that another process can plug it in."""
        kept = [(one.rp_id, one.user_handle, one.id, one.counter, one.private_key) for one in self.passkeys]
        path.write_bytes(cbor.encode({"pin": self._pin, "passkeys": kept, "secrets": self._secrets}))

    @classmethod
    def load(cls, path: Path) -> SoftCtapDevice:
        """The key of a file, which is written again when the key is closed."""
        told: Any = cbor.decode(path.read_bytes())
        found = cls()
        found._pin, found._secrets, found._path = told["pin"], dict(told["secrets"]), path
        for rp_id, user_handle, identifier, counter, private_key in told["passkeys"]:
            made = SoftPasskey(rp_id, user_handle)
            made.id, made.counter, made.private_key = identifier, counter, private_key
            found.passkeys.append(made)
        return found

    @property
    def capabilities(self) -> int:
        return 0x04  # CBOR

    @classmethod
    def list_devices(cls) -> Iterator[CtapDevice]:
        yield cls()

    def close(self) -> None:
        self.closed += 1
        if self._path is not None:
            self.save(self._path)

    def call(self, cmd: int, data: bytes = b"", event: Any = None, on_keepalive: Any = None) -> bytes:
        """One command."""
        if on_keepalive is not None:
            on_keepalive(STATUS.UPNEEDED)
        given: Any = cbor.decode(data[1:]) if data[1:] else {}
        commands = {
            MAKE_CREDENTIAL: self._make,
            GET_ASSERTION: self._assert,
            GET_INFO: self._info,
            CLIENT_PIN: self._client_pin,
        }
        del cmd, event
        try:
            return bytes([OK]) + cbor.encode(commands[data[0]](given))
        except _RefusedError as refused:
            return bytes([refused.args[0]])

    def _info(self, _given: Any) -> dict[int, Any]:
        extensions = ["hmac-secret"] if self._prf else []
        options = {"rk": True, "up": True, "clientPin": True}
        return {1: ["FIDO_2_0"], 2: extensions, 3: bytes(16), 4: options, 5: 1200, 6: [1]}

    def _client_pin(self, given: Any) -> dict[int, Any]:
        if given[2] == KEY_AGREEMENT:
            numbers = self._agreement.public_key().public_numbers()
            return {1: {1: 2, 3: -25, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}}
        assert given[2] == PIN_TOKEN
        shared = self._shared(given[3])
        if _decrypt(shared, given[6]) != self._pin:
            raise _RefusedError(PIN_INVALID)
        return {2: _encrypt(shared, self._token)}

    def _shared(self, theirs: Any) -> bytes:
        x, y = (int.from_bytes(theirs[at], "big") for at in (-2, -3))
        public = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
        return hashlib.sha256(self._agreement.exchange(ec.ECDH(), public)).digest()

    def _verify(self, parameter: bytes | None, message: bytes) -> None:
        if parameter != hmac.new(self._token, message, hashlib.sha256).digest()[:16]:
            raise _RefusedError(PIN_AUTH_INVALID)

    def _make(self, given: Any) -> dict[int, Any]:
        self._verify(given.get(8), given[1])
        excluded = {one["id"] for one in given.get(5) or []}
        if any(one.id in excluded for one in self.passkeys):
            raise _RefusedError(EXCLUDED)
        made = SoftPasskey(given[2]["id"], given[3]["id"])
        self.passkeys.append(made)
        self._secrets[made.id] = os.urandom(32)
        attested = bytes(16) + len(made.id).to_bytes(2, "big") + made.id + cbor.encode(made.public_key())
        flags, more = USER_PRESENT | USER_VERIFIED | ATTESTED, b""
        if (given.get(6) or {}).get("hmac-secret"):
            flags, more = flags | EXTENSIONS, cbor.encode({"hmac-secret": True})
        return {1: "none", 2: made._authenticator_data(flags, {}) + attested + more, 3: {}}

    def _assert(self, given: Any) -> dict[int, Any]:
        silent = (given.get(5) or {}).get("up") is False
        if not silent:
            self._verify(given.get(6), given[2])
        allowed = {one["id"] for one in given.get(3) or []}
        fitting = [one for one in self.passkeys if one.rp_id == given[1] and (not allowed or one.id in allowed)]
        if not fitting:
            raise _RefusedError(NO_CREDENTIALS)
        used, flags, more = fitting[-1], 0 if silent else USER_PRESENT | USER_VERIFIED, b""
        wanted = (given.get(4) or {}).get("hmac-secret")
        if wanted is not None:
            shared = self._shared(wanted[1])
            assert wanted[3] == hmac.new(shared, wanted[2], hashlib.sha256).digest()[:16]
            output = hmac.new(self._secrets[used.id], _decrypt(shared, wanted[2])[:32], hashlib.sha256).digest()
            flags, more = flags | EXTENSIONS, cbor.encode({"hmac-secret": _encrypt(shared, output)})
        data = used._authenticator_data(flags, {}) + more
        user = {"id": used.user_handle}
        return {1: {"type": "public-key", "id": used.id}, 2: data, 3: used.sign(data + given[2]), 4: user}


def _encrypt(key: bytes, data: bytes) -> bytes:
    encryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).encryptor()
    return encryptor.update(data) + encryptor.finalize()


def _decrypt(key: bytes, data: bytes) -> bytes:
    decryptor = Cipher(algorithms.AES(key), modes.CBC(bytes(16))).decryptor()
    return decryptor.update(data) + decryptor.finalize()
