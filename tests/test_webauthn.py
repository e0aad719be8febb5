"""What an authenticator signed is verified in every part, and nothing that a stranger sends breaks the verification."""

from __future__ import annotations

import hashlib
import json
import os
import tracemalloc
from typing import Any

import pytest

from strongroom import webauthn
from strongroom.webauthn import Assertion, Credential, Registration, RelyingParty
from tests.kit.people.soft_authenticator import (
    ATTESTED,
    EDDSA,
    ES256,
    RS256,
    USER_PRESENT,
    USER_VERIFIED,
    SoftPasskey,
    b64,
    cbor,
)

ORIGIN, RP_ID = "https://vault.example.com", "vault.example.com"
CHALLENGE, CHALLENGE_HASH = RelyingParty.new_challenge()
OPTIONS = {"challenge": CHALLENGE}


@pytest.fixture(scope="module")
def party() -> RelyingParty:
    found = webauthn.relying_party(ORIGIN)
    assert found is not None
    return found


def registered(party: RelyingParty, passkey: SoftPasskey, **wrong: Any) -> Credential | None:
    given = passkey.register(OPTIONS, ORIGIN, **wrong)
    response = given["response"]
    sent = Registration(given["id"], response["clientDataJSON"], response["attestationObject"])
    return party.verify_registration(CHALLENGE_HASH, sent)


def asserted(party: RelyingParty, passkey: SoftPasskey, **wrong: Any) -> int | None:
    given = passkey.assertion(OPTIONS, ORIGIN, **wrong)
    response = given["response"]
    parts = (response[name] for name in ("clientDataJSON", "authenticatorData", "signature"))
    key = b64(cbor(passkey.public_key()))
    return party.verify_assertion(CHALLENGE_HASH, key, Assertion(given["id"], *parts))


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
def test_each_algorithm_that_is_offered_is_verified(party: RelyingParty, algorithm: int) -> None:
    """A registration and an assertion of each, with the counter that the authenticator gave."""
    passkey = SoftPasskey(RP_ID, b"ann", algorithm)
    made = registered(party, passkey)
    assert made is not None
    assert (made.credential_id, made.sign_count) == (passkey.credential_id, 1)
    assert asserted(party, passkey) == 2
    assert set(webauthn.ALGORITHMS) == {ES256, EDDSA, RS256}


BOTH: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "https://evil.example.com"},
    "the origin of a subdomain": {"origin": f"https://www.{RP_ID}"},
    "the origin without TLS": {"origin": f"http://{RP_ID}"},
    "another port": {"origin": f"{ORIGIN}:8443"},
    "an origin that is no text": {"origin": [ORIGIN]},
    "another rp id": {"rp_id": "example.com"},
    "another challenge": {"challenge": b64(os.urandom(32))},
    "no challenge": {"challenge": ""},
    "a challenge that is a length": {"challenge": 2**40},
    "a challenge that is a list": {"challenge": [1, 2, 3]},
    "a challenge in other letters": {"challenge": "ÄÖÜ"},
    "the other ceremony": {"type": "payment.get"},
    "a frame of another page": {"cross_origin": True},
    "a frame, in other words": {"cross_origin": "yes"},
    "nobody touched it": {"flags": USER_VERIFIED},
    "nobody was verified": {"flags": USER_PRESENT},
    "client data that is no JSON": {"client_data": b"\xff{"},
    "client data that is a number": {"client_data": b"7"},
    "client data without an origin": {"client_data": json.dumps({"challenge": CHALLENGE}).encode()},
    "client data without end": {"client_data": b"[" * 4_000},
    "no authenticator data": {"auth_data": b""},
    "half of the authenticator data": {"auth_data": hashlib.sha256(RP_ID.encode()).digest()},
}
REGISTRATION: dict[str, dict[str, Any]] = {
    "another credential id": {"id": os.urandom(32)},
    "nobody was verified": {"flags": USER_PRESENT | ATTESTED},
    "nobody touched it": {"flags": USER_VERIFIED | ATTESTED},
    "the other ceremony": {"type": "webauthn.get"},
    "an algorithm with SHA-1": {"public_key": {1: 3, 3: -65535, -1: b"\xc5" * 256, -2: b"\1\0\1"}},
    "an algorithm that nobody knows": {"public_key": {1: 2, 3: -999, -1: 1, -2: bytes(32), -3: bytes(32)}},
    "a point that is on no curve": {"public_key": {1: 2, 3: ES256, -1: 1, -2: b"\1" * 32, -3: b"\1" * 32}},
    "the curve of another algorithm": {"public_key": {1: 2, 3: ES256, -1: 2, -2: bytes(32), -3: bytes(32)}},
    "a key without its parts": {"public_key": {1: 2, 3: ES256}},
    "a key that is a list": {"public_key": [1, 2, 3]},
    "a key too large": {"public_key": {1: 3, 3: RS256, -1: b"\xc5" * 2_000, -2: b"\1\0\1"}},
    "a key without end": {"public_key": b"\x81" * 5_000},
    "a map with a list as its key": {"public_key": b"\xa1\x80\x00"},
    "more items than there are": {"public_key": b"\xbb" + b"\xff" * 8},
    "no attestation": {"attestation": b""},
    "an attestation that is a number": {"attestation": b"\x07"},
    "an attestation without its data": {"attestation": cbor({"fmt": "none", "attStmt": {}})},
    "an attestation without end": {"attestation": b"\x81" * 16_000},
    "data after the attestation": {"attestation": cbor({"fmt": "none", "attStmt": {}, "authData": bytes(37)}) + b"\0"},
}
ASSERTION: dict[str, dict[str, Any]] = {
    "the other ceremony": {"type": "webauthn.create"},
    "another key": {"signed_by": SoftPasskey(RP_ID, b"eve")},
    "no signature": {"signature": b""},
    "a signature of nothing": {"signature": SoftPasskey(RP_ID, b"eve").sign(b"")},
    "other client data than was signed": {"other_client_data": json.dumps({"challenge": CHALLENGE}).encode()},
    "an attestation": {"flags": USER_PRESENT | USER_VERIFIED | ATTESTED},
}


@pytest.mark.parametrize("how", sorted(BOTH | REGISTRATION))
def test_a_wrong_registration_is_refused(party: RelyingParty, how: str) -> None:
    """Each with one thing wrong, and always in the same way."""
    assert registered(party, SoftPasskey(RP_ID, b"ann"), **(BOTH | REGISTRATION)[how]) is None


@pytest.mark.parametrize("how", sorted(BOTH | ASSERTION))
def test_a_wrong_assertion_is_refused(party: RelyingParty, how: str) -> None:
    """Each with one thing wrong, and always in the same way."""
    assert asserted(party, SoftPasskey(RP_ID, b"ann"), **(BOTH | ASSERTION)[how]) is None


def test_a_number_for_a_challenge_reserves_no_memory(party: RelyingParty) -> None:
    """Python makes so many bytes of a number, if it is let."""
    tracemalloc.start()
    try:
        assert asserted(party, SoftPasskey(RP_ID, b"ann"), challenge=10**8) is None
        assert registered(party, SoftPasskey(RP_ID, b"ann"), challenge=10**8) is None
        assert tracemalloc.get_traced_memory()[1] < 10**7
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://vault.example.com", "https://vault.example.com"),
        ("https://Vault.Example.com:443/base", "https://vault.example.com"),
        ("https://vault.example.com:8443", "https://vault.example.com:8443"),
        ("https://tresor.müller.example", "https://tresor.xn--mller-kva.example"),
        ("http://localhost:3000", "http://localhost:3000"),
        ("http://vault.localhost", "http://vault.localhost"),
        ("http://vault.example.com", None),
        ("https://192.0.2.7", None),
        ("https://[2001:db8::1]:3000", None),
        ("https://a..b", None),
        ("https://vault.example.com:port", None),
        ("", None),
    ],
)
def test_whom_browsers_make_passkeys_for(url: str, origin: str | None) -> None:
    """HTTPS and a name; localhost without TLS too. The origin is spelled as browsers spell it."""
    found = webauthn.relying_party(url)
    assert (found and found.origin) == origin
