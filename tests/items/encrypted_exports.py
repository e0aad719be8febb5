"""Encrypted exports of Bitwarden, made as its own clients make them."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.padding import PKCS7


def protected(plain: dict[str, Any], password: str, kdf: dict[str, int]) -> dict[str, Any]:
    """The file of a password-protected export."""
    salt = base64.b64encode(os.urandom(16)).decode()
    if kdf["kdfType"] == 0:
        key = hashlib.pbkdf2_hmac("sha256", password.encode(), salt.encode(), kdf["kdfIterations"])
    else:
        key = Argon2id(
            salt=hashlib.sha256(salt.encode()).digest(),
            length=32,
            iterations=kdf["kdfIterations"],
            lanes=kdf["kdfParallelism"],
            memory_cost=kdf["kdfMemory"] * 1024,
        ).derive(password.encode())
    keys = HKDFExpand(SHA256(), 32, b"enc").derive(key), HKDFExpand(SHA256(), 32, b"mac").derive(key)
    head = {"encrypted": True, "passwordProtected": True, "salt": salt} | kdf
    checked, data = (_encrypted(*keys, text) for text in (b"a guid", json.dumps(plain).encode()))
    return head | {"encKeyValidation_DO_NOT_EDIT": checked, "data": data}


def _encrypted(key: bytes, mac: bytes, text: bytes) -> str:
    nonce, padder = os.urandom(16), PKCS7(128).padder()
    encryptor = Cipher(algorithms.AES256(key), modes.CBC(nonce)).encryptor()
    data = encryptor.update(padder.update(text) + padder.finalize()) + encryptor.finalize()
    parts = (nonce, data, hmac.digest(mac, nonce + data, "sha256"))
    return "2." + "|".join(base64.b64encode(part).decode() for part in parts)
