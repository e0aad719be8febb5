"""The types of items, as structs of Python and as JSON. docs/items.md has every member.

Members that a program does not know are kept: each struct has them in `extra`, and writes them again. A value that does
not fit its type is read as `Other`, whole, so that one bad document never hides the others.
"""

from __future__ import annotations

import hashlib
from functools import cache
from typing import Any, ClassVar, Final, Self, TypeVar, get_args

import msgspec
from msgspec import Struct

ITEMS: Final = "items"  # the collection of a vault that holds them

K = TypeVar("K", bound="Kept")


class Kept(Struct, kw_only=True, omit_defaults=True, rename="camel"):
    """A JSON object. `extra` has the members that this version does not know; they are written again."""

    NOT_STORED: ClassVar[frozenset[str]] = frozenset({"extra"})

    extra: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"

    def to_json(self) -> dict[str, Any]:
        """The object as JSON: members that are empty are left out."""
        found: dict[str, Any] = {}
        for member in members_of(type(self)):
            value = getattr(self, member.name)
            if value != member.empty:
                found[member.spelled] = _to_json(value)
        return found | {name: value for name, value in self.extra.items() if name not in found}

    @classmethod
    def from_json(cls, raw: Any) -> Self:
        """The object that JSON describes; `msgspec.ValidationError` where it does not fit."""
        return _read(cls, raw, "$")


class Member(Struct, frozen=True):
    """A member of a struct: its name in Python and in JSON, what an empty one is, and the struct that it holds."""

    name: str
    spelled: str
    empty: Any
    inner: type[Kept] | None
    listed: bool


@cache
def members_of(kind: type[Kept]) -> tuple[Member, ...]:
    """The members that are stored, in the order of the struct."""
    found = []
    for one in msgspec.structs.fields(kind):
        if one.name in kind.NOT_STORED:
            continue
        inner = next((part for part in get_args(one.type) if isinstance(part, type) and issubclass(part, Kept)), None)
        listed = one.default_factory is not msgspec.NODEFAULT
        empty = one.default_factory() if listed else one.default
        found.append(Member(one.name, one.encode_name, empty, inner, listed))
    return tuple(found)


def _to_json(value: Any) -> Any:
    if isinstance(value, Kept):
        return value.to_json()
    if isinstance(value, list):
        return [_to_json(one) for one in value]
    return msgspec.to_builtins(value)


def _read(kind: type[K], raw: Any, place: str) -> K:
    if not isinstance(raw, dict):
        raise msgspec.ValidationError(f"Expected `object`, got `{type(raw).__name__}` - at `{place}`")
    plain: dict[str, Any] = {}
    inner: dict[str, Any] = {}
    extra = dict(raw)
    for member in members_of(kind):
        value = extra.pop(member.spelled, None)
        if value is None:  # null is the same as no member
            continue
        if member.inner is None:
            plain[member.spelled] = value
        elif not member.listed:
            inner[member.name] = _read(member.inner, value, f"{place}.{member.spelled}")
        elif isinstance(value, list):
            inner[member.name] = [
                _read(member.inner, one, f"{place}.{member.spelled}[{at}]") for at, one in enumerate(value)
            ]
        else:
            raise msgspec.ValidationError(f"Expected `array` - at `{place}.{member.spelled}`")
    try:
        found = msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        raise msgspec.ValidationError(str(error).replace("`$", f"`{place}", 1)) from None
    for name, value in inner.items():
        setattr(found, name, value)
    found.extra = extra
    return found


# What items are made of

STRING: Final = "string"
CONCEALED: Final = "concealed-string"


class Field(Kept):
    """A field that a person has added. `type` is a `fieldType` of CXF; `section` is the heading above it."""

    label: str = ""
    value: str = ""
    type: str = STRING
    section: str = ""


class OneTimeCode(Kept):
    """What makes one-time codes (RFC 6238). `secret` is in base32; `algorithm` is sha1, sha256, sha512 or steam."""

    secret: str = ""
    algorithm: str = "sha1"
    digits: int = 6
    period: int = 30
    issuer: str = ""
    username: str = ""


class FileContent(Kept):
    """A file: its name, and its content."""

    name: str = ""
    content: bytes = b""

    @property
    def sha256(self) -> bytes:
        """The hash of its content."""
        return hashlib.sha256(self.content).digest()


class PersonName(Kept):
    """The parts of a person's name."""

    title: str = ""
    given: str = ""
    given_informal: str = ""
    given2: str = ""
    surname_prefix: str = ""
    surname: str = ""
    surname2: str = ""
    credentials: str = ""
    generation: str = ""


class Address(Kept):
    """A postal address. Lines of the street are separated by line feeds."""

    street_address: str = ""
    postal_code: str = ""
    city: str = ""
    territory: str = ""
    country: str = ""
    tel: str = ""


class IdentityDocument(Kept):
    """A document, card or number that identifies a person, such as a social security number."""

    issuing_country: str = ""
    document_number: str = ""
    identification_number: str = ""
    nationality: str = ""
    full_name: str = ""
    birth_date: str = ""
    birth_place: str = ""
    sex: str = ""
    issue_date: str = ""
    expiry_date: str = ""
    issuing_authority: str = ""


class Passport(Kept):
    """A passport."""

    issuing_country: str = ""
    passport_type: str = ""
    passport_number: str = ""
    national_identification_number: str = ""
    nationality: str = ""
    full_name: str = ""
    birth_date: str = ""
    birth_place: str = ""
    sex: str = ""
    issue_date: str = ""
    expiry_date: str = ""
    issuing_authority: str = ""


class DriversLicense(Kept):
    """A driver's license."""

    full_name: str = ""
    birth_date: str = ""
    issue_date: str = ""
    expiry_date: str = ""
    issuing_authority: str = ""
    territory: str = ""
    country: str = ""
    license_number: str = ""
    license_class: str = ""


class Source(Kept):
    """Where an item was imported from: the format, its id there, and what has no place in an item.

    `rest` has it as it came. Formats that items can be written in again keep it as `changes`: how the original differs
    from what the writer makes of the item; and `order` is that of the credentials, where it is another.
    """

    format: str = ""
    id: str = ""
    rest: dict[str, Any] = {}
    changes: list[dict[str, Any]] = []
    order: list[str] = []


# The items


class Item(Kept):
    """What all items have. `credentials` are credentials of CXF that the type has no member for, as they came.

    `folders` are paths of names: a `/` in a name is written `%2F`, and a `%` is `%25`. `creation_at` and `modified_at`
    are those of the program that the item came from, in seconds since 1970; the document has its own.
    """

    TYPE: ClassVar[str] = ""
    MAIN: ClassVar[str] = ""  # the field that is meant where none is named

    title: str = ""
    subtitle: str = ""
    notes: str = ""
    urls: list[str] = []
    apps: list[dict[str, Any]] = []
    tags: list[str] = []
    favorite: bool = False
    folders: list[str] = []
    fields: list[Field] = []
    files: list[FileContent] = []
    credentials: list[dict[str, Any]] = []
    creation_at: int | None = None
    modified_at: int | None = None
    source: Source | None = None

    @property
    def type(self) -> str:
        """The name of its type, as in JSON."""
        return self.TYPE

    def to_stored(self) -> dict[str, Any]:
        """The item as JSON, the value of a document; `msgspec.ValidationError` where a member has a wrong type."""
        raw = {"type": self.type} | self.to_json()
        type(self).from_json({name: value for name, value in raw.items() if name != "type"})
        return raw

    @staticmethod
    def from_stored(raw: Any) -> Item:
        """The item that a document holds. What does not fit is an `Other` with a `problem`."""
        if not isinstance(raw, dict):
            return Other(problem="The document is no item: it is not a JSON object.")
        named = raw.get("type")
        kind = TYPES.get(named, Other) if isinstance(named, str) else Other
        members = {name: value for name, value in raw.items() if name != "type"}
        try:
            item = kind.from_json(members)
        except msgspec.ValidationError as error:
            title = members.pop("title", "") if isinstance(members.get("title"), str) else ""
            item = Other(title=title, extra=members, problem=f"The item does not fit its type: {error}.")
        if isinstance(item, Other):
            if isinstance(named, str):
                item.type_name = named
            else:
                item.problem = item.problem or "The document is no item: it has no type."
                item.extra |= {"type": named} if "type" in raw else {}
        return item


class Login(Item):
    """A username and a password, perhaps with one-time codes."""

    TYPE = "login"
    MAIN = "password"

    username: str = ""
    password: str = ""
    totp: OneTimeCode | None = None


class Note(Item):
    """A text: its `notes`."""

    TYPE = "note"
    MAIN = "notes"


class Card(Item):
    """A credit card. Dates have the form YYYY-MM."""

    TYPE = "card"
    MAIN = "number"

    number: str = ""
    full_name: str = ""
    card_type: str = ""
    verification_number: str = ""
    pin: str = ""
    expiry_date: str = ""
    valid_from: str = ""


class Identity(Item):
    """A person: name, address and papers."""

    TYPE = "identity"

    name: PersonName | None = None
    address: Address | None = None
    document: IdentityDocument | None = None
    passport: Passport | None = None
    license: DriversLicense | None = None


class Secret(Item):
    """One secret value."""

    TYPE = "secret"
    MAIN = "value"

    value: str = ""


class SshKey(Item):
    """An SSH key. `private_key` is PEM text: OpenSSH or PKCS#8."""

    TYPE = "ssh-key"
    MAIN = "privateKey"

    key_type: str = ""
    private_key: str = ""
    public_key: str = ""
    fingerprint: str = ""
    key_comment: str = ""
    creation_date: str = ""
    expiry_date: str = ""
    key_generation_source: str = ""


class Totp(Item):
    """One-time codes without a password."""

    TYPE = "totp"
    MAIN = "code"

    totp: OneTimeCode | None = None


class ApiCredential(Item):
    """A key for an API. Dates have the form YYYY-MM-DD."""

    TYPE = "api-credential"
    MAIN = "key"

    key: str = ""
    username: str = ""
    key_type: str = ""
    url: str = ""
    valid_from: str = ""
    expiry_date: str = ""


class File(Item):
    """A file, the first of its `files`."""

    TYPE = "file"
    MAIN = "file"


class Other(Item):
    """An item of a type that this version does not know, or a document that does not fit: `problem` says why."""

    NOT_STORED = Item.NOT_STORED | {"type_name", "problem"}

    type_name: str = ""
    problem: str = ""

    @property
    def type(self) -> str:
        """The name of its type, as in JSON; empty where it has none."""
        return self.type_name

    def to_stored(self) -> dict[str, Any]:
        """The document again."""
        return {"type": self.type_name} | self.to_json() if self.type_name else self.to_json()


TYPES: Final[dict[str, type[Item]]] = {
    kind.TYPE: kind for kind in (Login, Note, Card, Identity, Secret, SshKey, Totp, ApiCredential, File)
}
