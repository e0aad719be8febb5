"""The recovery key: 160 random bits that people can print, read out and type.

    SR2-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX

36 signs of Crockford's alphabet, which has no I, L, O and U: 160 bits, then the first 20 bits of a SHA-256 of them, so
that a slip of the pen is noticed before anything is tried.
"""

from __future__ import annotations

import re
from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec
from msgspec import Struct

from strongroom.client.format import primitives, public_box
from strongroom.client.format.derive import Descriptor, PasswordKeys, normal_email
from strongroom.client.format.encoding import WHITE, check_format, checked_text, items, label, text
from strongroom.client.format.keys import derive
from strongroom.client.format.public_box import KeyPair
from strongroom.errors import Invalid

SECRET: Final = 20
_SIGNS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 36
_CHECK: Final = 20  # bits
_PREFIX: Final = "SR2"
_DIGITS: Final = frozenset("123456789")
_READ: Final = {sign: value for value, sign in enumerate(_SIGNS)} | {"O": 0, "I": 1, "L": 1}
# White space and hyphens do not count, and no more does the case of ASCII letters. Others are not made into these.
_IGNORED: Final = str.maketrans(ascii_lowercase, ascii_uppercase, WHITE + "-")


class RecoveryKey(Struct, frozen=True):
    """A recovery key, and the two secrets that follow from it: for a slot of the keyring, and for the auth key."""

    secret: bytes

    @classmethod
    def new(cls, random: primitives.Random = primitives.random) -> RecoveryKey:
        """A fresh one."""
        return cls(primitives.SecretBytes(random(SECRET)))

    @classmethod
    def read(cls, printed: str) -> RecoveryKey:
        """From what a person typed: case, spaces and hyphens do not count, and O, I, L are read as 0, 1, 1."""
        signs = primitives.SecretText(checked_text(printed, "recovery_key").translate(_IGNORED))
        if signs[:2] == _PREFIX[:2] and signs[2:3] in _DIGITS:
            check_format(int(signs[2]))
        body = primitives.SecretText(signs.removeprefix(_PREFIX))
        if len(body) != _LENGTH or body == signs or not all(sign in _READ for sign in body):
            raise Invalid({"recovery_key": _fault(printed, signs)})
        values = primitives.SecretBytes(bytes(_READ[sign] for sign in body))
        secret = _secret(values)
        if secret is None:
            raise Invalid({"recovery_key": _typo(values)})
        return cls(secret)

    def printed(self) -> str:
        """As people print it."""
        value = int.from_bytes(self.secret, "big") << _CHECK | _check(self.secret)
        signs = "".join(_SIGNS[value >> 5 * place & 31] for place in reversed(range(_LENGTH)))
        return "-".join([_PREFIX, *(signs[at : at + 4] for at in range(0, _LENGTH, 4))])

    def wrap(self) -> bytes:
        """The secret whose key pair opens a slot of the keyring."""
        return derive(self.secret, "recovery-wrap")

    def auth(self) -> KeyPair:
        """The key pair that opens the auth key in the descriptor; the keyring holds its public key."""
        return KeyPair.of(derive(self.secret, "recovery-auth"))

    def __repr__(self) -> str:
        return "RecoveryKey(...)"


def _secret(values: bytes) -> bytes | None:
    """The secret that these signs spell, by the value of each; None if the checksum does not fit."""
    value = 0
    for one in values:
        value = value << 5 | one
    secret = primitives.SecretBytes((value >> _CHECK).to_bytes(SECRET, "big"))
    return secret if value & (1 << _CHECK) - 1 == _check(secret) else None


def _fault(printed: str, signs: str) -> str:
    """What is wrong with the form of what was typed, and in which group. It shows none of it."""
    body = signs.removeprefix(_PREFIX)
    if body == signs:
        return "is a token; use it with with_token" if printed.startswith("srv_") else f"must begin with {_PREFIX}"
    bad = next((place for place, sign in enumerate(body) if sign not in _READ), None)
    if bad is not None and len(body) == _LENGTH:
        return f"has a typo: sign {bad % 4 + 1} of group {bad // 4 + 1} is in no recovery key"
    groups = [len(group) for group in re.split(f"[{WHITE}-]+", printed.strip(WHITE + "-"))][1:]
    wrong = next((number for number, length in enumerate(groups, 1) if length != 4), None)
    if wrong is not None and len(groups) == _LENGTH // 4:
        return f"has a typo: group {wrong} has {groups[wrong - 1]} signs instead of 4"
    return f"must be {_PREFIX} and nine groups of four letters or digits; it has {len(body)} instead of {_LENGTH}"


def _typo(values: bytes) -> str:
    """Where the typo is, if one other sign, or two that changed places, make the checksum fit."""
    likely = set()
    for place in range(_LENGTH):
        others = [values[:place] + bytes([other]) + values[place + 1 :] for other in range(32)]
        swapped = values[:place] + values[place : place + 2][::-1] + values[place + 2 :]
        if any(_secret(other) is not None for other in (*others, swapped)):
            likely.add(place // 4 + 1)
    if len(likely) == 1:
        return f"has a typo, most likely in group {likely.pop()}; compare it with the print"
    return "has more than one typo, or was changed; compare all of it with the print"


def _check(secret: bytes) -> int:
    return int.from_bytes(primitives.sha256(items(label("recovery-check"), secret))[:3], "big") >> 24 - _CHECK


def _associated(email: str, descriptor: Descriptor) -> bytes:
    return items(label("sealed-auth"), text(normal_email(email)), *descriptor.bound())


def seal_auth(
    recovery_public: bytes,
    email: str,
    descriptor: Descriptor,
    keys: PasswordKeys,
    random: primitives.Random = primitives.random,
) -> Descriptor:
    """The descriptor with the auth key sealed in it, for a login with the recovery key."""
    sealed = public_box.seal(recovery_public, keys.auth, _associated(email, descriptor), random)
    return msgspec.structs.replace(descriptor, recovery=sealed)


def open_auth(recovery: RecoveryKey, email: str, descriptor: Descriptor) -> bytes:
    """The auth key, for a login without the password."""
    return public_box.open_(recovery.auth(), descriptor.recovery, _associated(email, descriptor))
