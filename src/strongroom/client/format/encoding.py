"""Canonical encodings: unambiguous lists, strict base64 and base64url, bounded texts and numbers."""

from __future__ import annotations

import binascii
import re
from typing import Final

from strongroom import identifiers, rules
from strongroom.client.errors import Tampered, Unsupported
from strongroom.client.format import primitives
from strongroom.errors import Invalid

FORMAT: Final = 2
PREFIX: Final = "sr2."  # of proofs and sealed names
_ANY_PREFIX: Final = re.compile(r"sr([1-9][0-9]{0,3})\.", re.ASCII)
_OLDER: Final = (
    "This was made by an older client, in format {}, which this one does not read: export the account with a client of "
    "that format, and import the file into a new account."
)
MOST_VERSION: Final = 2**53 - 1  # the largest integer that every JSON reader keeps
MOST_GENERATION: Final = 2**32 - 1
PARENT: Final = 16  # bytes
NO_PARENT: Final = bytes(PARENT)
LONGEST: Final = 255  # characters of a name, a collection or a uid
_MISSING: Final = ("", "===", "==", "=")  # signs that base64url leaves out at the end; three are never right
# Unicode's White_Space, spelled out: what `str.split` takes for it differs.
WHITE: Final = (
    "\t\n\v\f\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000"
)


def items(*parts: bytes) -> bytes:
    """A list of byte strings as one: each is preceded by its length in four bytes, so no two lists look alike."""
    return b"".join([len(part).to_bytes(4, "big") + part for part in parts])


def split_items(data: bytes) -> list[bytes]:
    """The byte strings of a list; ValueError where it is none."""
    parts, at = [], 0
    while at < len(data):
        start = at + 4
        at = start + int.from_bytes(data[at:start], "big")
        if start > len(data) or at > len(data):
            raise ValueError
        parts.append(data[start:at])
    return parts


def check_format(number_: int, otherwise: str | None = None) -> None:
    """Refuse what was made in another format: what a newer or an older client made was not changed by anybody."""
    if number_ > FORMAT:
        raise Unsupported(f"This was made by a newer client, in format {number_}; update this one.")
    if 0 < number_ < FORMAT:
        raise Unsupported(_OLDER.format(number_))
    if number_ != FORMAT:
        raise Tampered(otherwise)


def without_prefix(value: str, otherwise: str | None = None) -> str:
    """What follows on the prefix of a proof or of a sealed name; refused where it is another."""
    found = _ANY_PREFIX.match(value)
    check_format(int(found[1]) if found else 0, otherwise)
    return value[len(PREFIX) :]


def has_prefix(value: str) -> bool:
    """Whether a text begins as the proofs and sealed names of some format do."""
    return _ANY_PREFIX.match(value) is not None


def label(name: str) -> bytes:
    """What a key or associated data is for: the first item of every list."""
    return f"strongroom/{FORMAT}/{name}".encode("ascii")


def number(value: int) -> bytes:
    """A number in eight bytes."""
    return value.to_bytes(8, "big")


def generation_bytes(value: int) -> bytes:
    """A generation in four bytes, as it stands before a box."""
    return value.to_bytes(4, "big")


def read_generation(raw: bytes) -> int:
    """A generation from its four bytes; 0 is none."""
    value = int.from_bytes(raw, "big")
    if not is_generation(value):
        raise Tampered
    return value


def short(value: str) -> bytes:
    """The first 16 bytes of the SHA-256 of what a proof or base64 spells: what a row names its parent by."""
    raw = from_url(value.removeprefix(PREFIX)) if value.startswith(PREFIX) else from_base64(value)
    return primitives.sha256(raw)[:PARENT]


def text(value: str) -> bytes:
    """A text in UTF-8."""
    return value.encode("utf-8")


def is_version(value: int) -> bool:
    """Whether a number can be a version."""
    return 1 <= value <= MOST_VERSION


def is_generation(value: int) -> bool:
    """Whether a number can be a generation."""
    return 1 <= value <= MOST_GENERATION


def checked_text(value: str, field: str) -> str:
    """A text that UTF-8 can hold; anything else is the caller's mistake."""
    if not isinstance(value, str):
        raise Invalid({field: f"must be a text (str), not {type(value).__name__}"})
    if not is_unicode(value):
        raise Invalid({field: "must be valid Unicode"})
    return value


def checked_secret(value: str, field: str) -> str:
    """A password, a recovery key or a token, as a text that no repr shows."""
    return primitives.SecretText(checked_text(value, field))


def checked_name(value: str, field: str) -> str:
    """A name, collection or uid that the format can hold; anything else is the caller's mistake."""
    if not 1 <= len(checked_text(value, field)) <= LONGEST or rules.has_control(value):
        raise Invalid({field: "must be 1 to 255 characters without control characters"})
    return value


def checked_uid(value: str) -> str:
    """A uid as keys and associated data spell it: a UUID in lower case, any other text as it is."""
    return identifiers.canonical(checked_text(value, "uid")) or checked_name(value, "uid")


def checked_integer(value: int, field: str) -> int:
    """An integer; anything else is the caller's mistake."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise Invalid({field: f"must be an integer (int), not {type(value).__name__}"})
    return value


def checked_cursor(value: int) -> int:
    """A cursor, as `cursor` of earlier changes gives it; anything else is the caller's mistake."""
    if not 0 <= checked_integer(value, "cursor") <= MOST_VERSION:
        raise Invalid({"cursor": "must be 0, or the cursor of earlier changes"})
    return value


def checked_version(value: int) -> int:
    """A version that the format can hold; anything else is the caller's mistake."""
    if not is_version(value):
        raise Invalid({"version": "must be an integer from 1 to 2^53 - 1"})
    return value


def is_unicode(value: str) -> bool:
    """Whether a text can be written in UTF-8."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def to_base64(data: bytes) -> str:
    """base64 with padding: what the server keeps as `data` and `salt`."""
    return binascii.b2a_base64(data, newline=False).decode("ascii")


def from_base64(value: str) -> bytes:
    """The bytes behind base64. Only the one spelling that `to_base64` makes is taken."""
    try:
        data = binascii.a2b_base64(value, strict_mode=True)
    except ValueError:
        raise Tampered from None
    if to_base64(data) != value:
        raise Tampered  # the decoder takes superfluous padding, and bits of the last sign that mean nothing
    return data


def to_url(data: bytes) -> str:
    """base64url without padding: what stands in addresses, and what people copy."""
    return to_base64(data).rstrip("=").replace("+", "-").replace("/", "_")


def from_url(value: str) -> bytes:
    """The bytes behind base64url. Only the one spelling that `to_url` makes is taken."""
    if "+" in value or "/" in value or "=" in value:
        raise Tampered
    return from_base64(value.replace("-", "+").replace("_", "/") + _MISSING[len(value) % 4])
