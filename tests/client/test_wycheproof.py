"""The primitives agree with Project Wycheproof, also where others went wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strongroom.client.format import primitives
from tests.support.rows import each_row

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
