"""The primitives agree with Project Wycheproof, also where others went wrong; X25519 with RFC 7748."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strongroom.client.format import primitives
from tests.kit.rows import each_row

FOLDER = Path(__file__).parent.parent / "vectors" / "wycheproof"


def groups(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / name).read_text())["testGroups"]
    return found


GCM = [
    case
    for group in groups("aes_gcm_test.json")
    if (group["keySize"], group["ivSize"], group["tagSize"]) == (256, 96, 128)
    for case in group["tests"]
]
HKDF = [case for group in groups("hkdf_sha256_test.json") for case in group["tests"]]
HMAC = json.loads((FOLDER / "hmac_sha256_test.json").read_text())["tests"]


def test_all_of_them_are_here() -> None:
    """The sets that apply are complete: keys of 256 bits, nonces of 96, tags of 128."""
    assert (len(GCM), len(HKDF), len(HMAC)) == (66, 86, 174)
    assert {case["result"] for case in [*GCM, *HKDF, *HMAC]} == {"valid", "invalid"}


@each_row("case", GCM, ids=lambda case: str(case["tcId"]))
def test_aes_gcm(case: dict[str, Any]) -> None:
    """AES-256-GCM decrypts what is valid, encrypts it to the same, and refuses the rest."""
    key, nonce, associated, message = (bytes.fromhex(case[name]) for name in ("key", "iv", "aad", "msg"))
    sealed = bytes.fromhex(case["ct"] + case["tag"])
    valid = case["result"] == "valid"
    assert primitives.decrypt(key, sealed, associated, nonce) == (message if valid else None)
    assert (primitives.encrypt(key, message, associated, nonce) == sealed) is valid


@each_row("case", HKDF, ids=lambda case: str(case["tcId"]))
def test_hkdf(case: dict[str, Any]) -> None:
    """HKDF-SHA-256 gives the same bytes, and refuses to give more than there are."""
    key, salt, info = (bytes.fromhex(case[name]) for name in ("ikm", "salt", "info"))
    if case["result"] == "valid":
        assert primitives.hkdf(key, salt, info, case["size"]).hex() == case["okm"]
    else:
        with pytest.raises(ValueError, match="larger"):
            primitives.hkdf(key, salt, info, case["size"])


@each_row("case", HMAC, ids=lambda case: str(case["tcId"]))
def test_hmac(case: dict[str, Any]) -> None:
    """HMAC-SHA-256 gives the same bytes, and others where a tag was altered."""
    tag = bytes.fromhex(case["tag"])
    made = primitives.hmac_sha256(bytes.fromhex(case["key"]), bytes.fromhex(case["msg"]))
    assert primitives.equal(made[: len(tag)], tag) is (case["result"] == "valid")


@pytest.mark.parametrize(
    ("times", "result"),
    [
        (1, "422c8e7a6227d7bca1350b3e2bb7279f7897b87bb6854b783c60e80311ae3079"),
        (1000, "684cf59ba83309552800ef566f2f4d3c1c3887c49360e3875f2eb94d99532c51"),
    ],
)
def test_x25519(times: int, result: str) -> None:
    """X25519 gives what RFC 7748, section 5.2, says after so many rounds."""
    scalar = point = b"\x09" + bytes(31)
    for _ in range(times):
        scalar, point = primitives.x25519(scalar, point) or b"", scalar
    assert scalar.hex() == result


def test_x25519_of_two() -> None:
    """Two key pairs come to one secret, and a public key is the product with the base point."""
    mine, yours = primitives.random(32), primitives.random(32)
    shared = primitives.x25519(mine, primitives.x25519_public(yours))
    assert shared == primitives.x25519(yours, primitives.x25519_public(mine)) is not None
    assert primitives.x25519(mine, b"\x09" + bytes(31)) == primitives.x25519_public(mine)
