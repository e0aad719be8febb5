"""What a thief can find in the files of a browser's profile: keys that open a keyring, at any place of any file."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Iterator
from pathlib import Path

from strongroom.client.format import keyring
from strongroom.client.format.encoding import items, label
from strongroom.client.format.primitives import KEY

_FEWEST = 16  # different bytes: 32 random ones have more, zeros and words have fewer
_BOX = items(label("box")) + b"\x01"
_SECOND = items(label("box")) + b"\x02"
_KEYRING = items(label("keyring")) + b"\x01"


def files(folder: Path) -> dict[Path, bytes]:
    """The contents of all files of a profile."""
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()}


def spellings(key: bytes) -> list[bytes]:
    """A key as its bytes, and as a text would have it; without padding, it is found in all."""
    texts = [base64.b64encode(key).rstrip(b"="), base64.urlsafe_b64encode(key).rstrip(b"="), key.hex().encode()]
    texts += [key.hex().upper().encode()]
    return [key, *texts, *(text.decode().encode("utf-16-le") for text in texts)]


def holding(folder: Path, keys: dict[str, bytes]) -> list[str]:
    """Which files hold which of these keys, in any spelling."""
    return [
        f"{path.relative_to(folder)} holds {name}"
        for path, content in files(folder).items()
        for name, key in keys.items()
        if any(spelling in content for spelling in spellings(key))
    ]


def opening(folder: Path, sealed: str) -> list[str]:
    """The files in which 32 bytes at any place open a keyring, as its account key. The commitment of its box tells."""
    _, body = keyring._parts(sealed)
    salt, commitment = body[:KEY], body[KEY : 2 * KEY]
    return [
        f"{path.relative_to(folder)} opens the keyring"
        for path, content in files(folder).items()
        if any(_opens(candidate, salt, commitment) for candidate in _candidates(content))
    ]


def _candidates(content: bytes) -> Iterator[bytes]:
    """Every 32 bytes that are as mixed as a key is, each once."""
    seen: set[bytes] = set()
    for at in range(len(content) - KEY + 1):
        candidate = content[at : at + KEY]
        if len(set(candidate)) >= _FEWEST and candidate not in seen:
            seen.add(candidate)
            yield candidate


def _opens(key: bytes, salt: bytes, commitment: bytes) -> bool:
    """Whether this is the account key: the key of the keyring follows from it, and from that the commitment."""
    extracted = hmac.digest(bytes(KEY), key, "sha256")
    below = hmac.digest(extracted, _KEYRING, "sha256")
    extracted = hmac.digest(salt, below, "sha256")
    first = hmac.digest(extracted, _BOX, "sha256")
    return hmac.digest(extracted, first + _SECOND, "sha256") == commitment
