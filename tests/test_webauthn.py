"""What an authenticator signed is verified in every part, and nothing that a stranger sends breaks the verification."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from strongroom import webauthn
from strongroom.webauthn import Assertion, Credential, Registration, RelyingParty
from tests.kit.people.passkeys import ORIGIN, RP_ID
from tests.kit.people.soft_authenticator import (
    EDDSA,
    ES256,
    RS256,
    SoftPasskey,
    b64,
    cbor,
)
from tests.kit.people.wrong_ceremonies import ASSERTION, BOTH, CHALLENGE, CHALLENGE_HASH, REGISTRATION

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
