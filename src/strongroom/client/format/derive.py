"""Key derivation from a password. The server gets one of two independent keys: neither password nor the other.

master   = Argon2id(NFC of the password, 16 bytes of SHA-256 of email and salt, memory, passes, one lane)
auth key = HKDF(master, "auth")     sent as `password`, in base64url
wrap key = HKDF(master, "wrap")     never leaves the device
"""

from __future__ import annotations

import unicodedata
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from strongroom import rules
from strongroom.client.errors import Tampered, Unsupported, WeakParameters
from strongroom.client.format import primitives, public_box, strict_json
from strongroom.client.format.encoding import (
    FORMAT,
    WHITE,
    check_format,
    checked_text,
    from_base64,
    items,
    label,
    number,
    text,
    to_base64,
    to_url,
)
from strongroom.client.format.keys import derive as derive_key
from strongroom.errors import Invalid


class Floor(NamedTuple):
    """The least that a key derivation must cost: memory in KiB, and passes over it."""

    memory: int
    passes: int


FLOOR: Final = Floor(65_536, 3)  # what a reader takes at the least: a server cannot talk a client into less
DEFAULT: Final = Floor(65_536, 3)  # what a writer sets; a later edition of the format may raise it
MOST_MEMORY: Final = 1_048_576  # KiB
MOST_PASSES: Final = 16
MOST_WORK: Final = 4_194_304  # memory in KiB times passes
SALT: Final = 16
SECRET_KEY: Final = b""  # reserved: an optional secret of 16 bytes beside the password
SEALED_AUTH: Final = primitives.KEY + public_box.OVERHEAD
LEAST_PASSWORD: Final = 8  # characters of a new password
_WHITE: Final = "\t\n\v\f\r "
_UNKNOWN: Final = "The server's key-derivation descriptor has a format that this client does not know."
_UNREADABLE: Final = "The server's key-derivation descriptor cannot be read."
_KEYED: Final = (
    "This account needs a secret key beside its password, which this client does not know; update the client."
)


class _Spelled(Struct, frozen=True, rename="camel"):
    """A descriptor in JSON."""

    format: int
    kdf: str
    memory: int
    passes: int
    lanes: int
    secret_key: bool
    salt: str
    recovery: str


class Descriptor(Struct, frozen=True, kw_only=True):
    """How an account's master key is derived, and its auth key sealed for the recovery key. Public: no secret is in it.

    Without a recovery key, `recovery` is as many random bytes: it does not show which accounts have one.
    """

    salt: bytes
    recovery: bytes
    memory: int
    passes: int

    @classmethod
    def new(cls, random: primitives.Random = primitives.random, *, least: Floor = DEFAULT) -> Descriptor:
        """A fresh one, without a recovery key; never with less work than `least`."""
        made = cls(
            salt=random(SALT),
            recovery=public_box.filler(SEALED_AUTH, random),
            memory=max(least.memory, DEFAULT.memory),
            passes=max(least.passes, DEFAULT.passes),
        )
        made.check()
        return made

    @property
    def work(self) -> Floor:
        """The figures of this descriptor."""
        return Floor(self.memory, self.passes)

    @property
    def is_below_default(self) -> bool:
        """Whether a client that has the password at hand should set it again with more work."""
        return self.memory < DEFAULT.memory or self.passes < DEFAULT.passes

    @classmethod
    def read(cls, given: Any, floor: Floor = FLOOR) -> Descriptor:
        """What the server says, as text or as plain data; refused where it is not format 2 or outside the limits.

        `floor` is what this device has seen of this account (`SeenAccount.floor`): neither figure may fall below it.
        """
        if isinstance(given, str | bytes):
            raw = given if isinstance(given, bytes) else given.encode("utf-8", "surrogatepass")
            given = strict_json.read(raw, strict_json.DESCRIPTOR, _UNREADABLE)
        given = _integers(given)
        number_ = given.get("format") if isinstance(given, dict) else None
        if isinstance(number_, int) and not isinstance(number_, bool):
            check_format(number_, _UNKNOWN)  # the other members may be others in another format
        if isinstance(given, dict) and given.get("secretKey") is True:
            raise Unsupported(_KEYED)  # which may add members too
        try:
            spelled = msgspec.convert(given, _Spelled)
        except msgspec.MsgspecError:
            raise Tampered(_UNREADABLE) from None
        if spelled.kdf != "argon2id":
            raise Tampered(_UNKNOWN)
        made = cls(
            salt=from_base64(spelled.salt),
            recovery=from_base64(spelled.recovery),
            memory=spelled.memory,
            passes=spelled.passes,
        )
        made.check(floor)
        if spelled.lanes != 1:
            raise WeakParameters
        return made

    def reaches(self, floor: Floor) -> bool:
        """Whether neither figure is below a floor."""
        return self.memory >= floor.memory and self.passes >= floor.passes

    def check(self, floor: Floor = FLOOR) -> None:
        """Refuse figures below the floor or above the ceiling."""
        if len(self.salt) != SALT or len(self.recovery) != SEALED_AUTH:
            raise Tampered("The server's key-derivation descriptor has fields of the wrong length.")
        if not self.reaches(FLOOR) or not self.reaches(floor):
            raise WeakParameters
        if self.memory > MOST_MEMORY or self.passes > MOST_PASSES or self.memory * self.passes > MOST_WORK:
            raise WeakParameters("The server asked for more work than any account needs; the password was not used.")

    def spelled(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {
            "format": FORMAT,
            "kdf": "argon2id",
            "memory": self.memory,
            "passes": self.passes,
            "lanes": 1,
            "secretKey": False,
            "salt": to_base64(self.salt),
            "recovery": to_base64(self.recovery),
        }

    def bound(self) -> tuple[bytes, bytes, bytes]:
        """What associated data holds of it."""
        return number(self.memory), number(self.passes), self.salt


def _integers(given: Any) -> Any:
    """A descriptor in which 3.0 is 3, as every reader takes it."""
    if not isinstance(given, dict):
        return given
    return {name: int(one) if isinstance(one, float) and one.is_integer() else one for name, one in given.items()}


class PasswordKeys(Struct, frozen=True, kw_only=True):
    """What follows from a password."""

    auth: bytes
    wrap: bytes

    @property
    def password(self) -> str:
        """What the server is sent as `password`."""
        return spelled_auth(self.auth)

    def __repr__(self) -> str:
        return "PasswordKeys(...)"


def spelled_auth(auth: bytes) -> str:
    """An auth key as the server is sent it."""
    return primitives.SecretText(to_url(auth))


def normal_email(email: str) -> str:
    """The spelling of an email that counts: trimmed, and A to Z in lower case."""
    normal = rules.lower_ascii(checked_text(email, "email").strip(_WHITE))
    if not rules.is_email(normal) or normal.strip(WHITE) != normal:
        raise Invalid({"email": "must be an email address of 3 to 254 characters with one @"})
    return normal


def normal_password(password: str) -> bytes:
    """A password's bytes: composed characters (NFC), in UTF-8, so that every keyboard makes the same."""
    try:
        normal = primitives.SecretBytes(text(unicodedata.normalize("NFC", password)))
    except UnicodeEncodeError:
        normal = primitives.SecretBytes()
    if not normal or len(password) > 1024:
        raise Invalid({"password": "must be 1 to 1024 characters"})
    return normal


def check_new_password(password: str) -> None:
    """Refuse a password that is too short to be set; an old one is only checked by being right."""
    if len(unicodedata.normalize("NFC", password)) < LEAST_PASSWORD:
        raise Invalid({"password": "must be 8 to 1024 characters"})


def kdf_salt(email: str, descriptor: Descriptor) -> bytes:
    """The salt of the slow step. The email is part of it: a server that gives everybody one salt gains nothing."""
    return primitives.sha256(items(label("salt"), text(normal_email(email)), descriptor.salt))[:SALT]


def master_key(salt: bytes, password: str, descriptor: Descriptor) -> bytes:
    """The slow step: a quarter of a second of work. `salt` is `kdf_salt` of the email."""
    descriptor.check()
    return primitives.argon2id(normal_password(password), salt, descriptor.memory, descriptor.passes)


def split(master: bytes) -> PasswordKeys:
    """The two keys that follow from a master key. The salt is the place of a secret key, which is empty today."""
    return PasswordKeys(
        auth=derive_key(master, "auth", salt=SECRET_KEY), wrap=derive_key(master, "wrap", salt=SECRET_KEY)
    )


def password_keys(email: str, password: str, descriptor: Descriptor) -> PasswordKeys:
    """The keys that follow from a password."""
    return split(master_key(kdf_salt(email, descriptor), password, descriptor))
