"""The recovery key: 160 random bits that people can print, read out and type.

    SR2-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX-XXXX

36 signs of Crockford's alphabet, which has no I, L, O and U: 160 bits, then the first 20 bits of a SHA-256 of them, so
that a slip of the pen is noticed before anything is tried.
"""

from __future__ import annotations

from string import ascii_lowercase, ascii_uppercase
from typing import Final

import msgspec
from msgspec import Struct

from strongroom.client.format import primitives, public_box
from strongroom.client.format.derive import Descriptor, PasswordKeys, normal_email
from strongroom.client.format.encoding import WHITE, items, label, text
from strongroom.client.format.keys import derive
from strongroom.client.format.public_box import KeyPair
from strongroom.errors import Invalid

SECRET: Final = 20
_SIGNS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LENGTH: Final = 36
_CHECK: Final = 20  # bits
_PREFIX: Final = "SR2"
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
        signs = printed.translate(_IGNORED)
        body = signs.removeprefix(_PREFIX)
        if len(body) != _LENGTH or body == signs or not all(sign in _READ for sign in body):
            raise Invalid({"recoveryKey": "must be SR2 and nine groups of four letters or digits"})
        value = 0
        for sign in body:
            value = value << 5 | _READ[sign]
        secret = primitives.SecretBytes((value >> _CHECK).to_bytes(SECRET, "big"))
        if value & (1 << _CHECK) - 1 != _check(secret):
            raise Invalid({"recoveryKey": "has a slip somewhere; compare it with the print"})
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
