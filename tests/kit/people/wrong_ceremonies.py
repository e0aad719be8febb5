"""Ceremonies in which one thing is wrong."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from strongroom.webauthn import RelyingParty
from tests.kit.people.passkeys import ORIGIN, RP_ID
from tests.kit.people.soft_authenticator import (
    ATTESTED,
    ES256,
    RS256,
    USER_PRESENT,
    USER_VERIFIED,
    SoftPasskey,
    b64,
    cbor,
)

CHALLENGE, CHALLENGE_HASH = RelyingParty.new_challenge()
BOTH: dict[str, dict[str, Any]] = {
    "another origin": {"origin": "https://evil.example.com"},
    "the origin of a subdomain": {"origin": f"https://www.{RP_ID}"},
    "the origin without TLS": {"origin": f"http://{RP_ID}"},
    "another port": {"origin": f"{ORIGIN}:8443"},
    "an origin that is no text": {"origin": [ORIGIN]},
    "another rp id": {"rp_id": "example.com"},
    "another challenge": {"challenge": b64(os.urandom(32))},
    "a challenge with padding": {"challenge": CHALLENGE + "="},
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
