"""The fields of an item by name: members of its type, fields that a person has added, fields of kept credentials."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from strongroom.items import totp
from strongroom.items.errors import AmbiguousName, FieldNotFound, InvalidTotp
from strongroom.items.types import CONCEALED, STRING, Item, Kept, OneTimeCode, members_of

# The members that are not shown unless somebody asks for them.
_SECRET_MEMBERS: Final = {"password", "value", "privateKey", "key", "number", "verificationNumber", "pin", "totp"}
# Types of fields that may be shown; a type that this version does not know is taken for a secret.
_OPEN_TYPES: Final = {
    STRING,
    "email",
    "number",
    "boolean",
    "date",
    "year-month",
    "wifi-network-security-type",
    "country-code",
    "subdivision-code",
    "linked",
}
_OPEN_CREDENTIAL_MEMBERS: Final = {"rpId", "username", "userDisplayName", "issuer", "name", "keyType", "keyComment"}
_MEMBER, _CUSTOM, _CREDENTIAL = range(3)


class FieldValue(NamedTuple):
    """A field: its section (or empty), its name, its content, whether it is a secret, and its type."""

    section: str
    name: str
    data: bytes
    concealed: bool
    type: str

    @property
    def value(self) -> str:
        """Its content as text."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            raise FieldNotFound(f"The content of {self.path} is not text.") from None

    @property
    def path(self) -> str:
        """How it is named: `name`, or `section/name`."""
        return f"{self.section}/{self.name}" if self.section else self.name

    def __repr__(self) -> str:
        return f"FieldValue(path={self.path!r})"


def fields_of(item: Item, now: float | None = None) -> list[FieldValue]:
    """Every field that is not empty, in the order of docs/items.md. `now` is for the field `code`, which needs it."""
    return [one for _, one in _all(item, now)]


def field(item: Item, name: str = "", section: str = "", now: float | None = None) -> FieldValue:
    """The field of this name. Without a name, the one that is meant by the type: of a login, the password.

    A member of the type is preferred to a field that a person has added, and that to one of a kept credential. Where no
    name is the same, capitals, spaces, hyphens and underscores do not matter. With `section`, only fields of it count.
    """
    name = name or item.MAIN
    if not name:
        raise FieldNotFound(f"Say which field: an item of the type {item.type or 'unknown'} has no main field.")
    found = [(rank, one) for rank, one in _all(item, now) if not section or _same(one.section, section)]
    for same in (_equal, _same):
        for wanted in (_MEMBER, _CUSTOM, _CREDENTIAL):
            fitting = [one for rank, one in found if rank == wanted and same(one.name, name)]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                raise _ambiguous(name, fitting)
    raise FieldNotFound(_not_found(item, name, now))


def _not_found(item: Item, name: str, now: float | None) -> str:
    if name == "code" and now is not None and isinstance(getattr(item, "totp", None), OneTimeCode):
        return "The one-time codes of the item cannot be made: its secret or its settings are not valid."
    return f"The item has no field {name!r}, or it is empty."


def _ambiguous(name: str, fitting: list[FieldValue]) -> AmbiguousName:
    paths = sorted({one.path for one in fitting})
    if len(paths) == 1:
        told = f"The item has {len(fitting)} fields {paths[0]!r}: give them different names."
    else:
        told = f"The item has several fields {name!r}; say which one: {', '.join(paths)}."
    return AmbiguousName(told, paths)


def _equal(one: str, other: str) -> bool:
    return one == other


def _same(one: str, other: str) -> bool:
    return _plain(one) == _plain(other)


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char not in " -_")


def _all(item: Item, now: float | None) -> Iterator[tuple[int, FieldValue]]:
    common = {member.name for member in members_of(Item)}
    for member in members_of(type(item)):
        if member.name not in common:
            yield from ((_MEMBER, one) for one in _of_member(member.spelled, getattr(item, member.name), now))
    if item.notes:
        yield _MEMBER, _made("", "notes", item.notes, concealed=False)
    for number, url in enumerate(item.urls):
        yield _MEMBER, _made("", "url" if number == 0 else f"url{number + 1}", url, concealed=False)
    for number, file in enumerate(item.files):
        if item.type == "file" and number == 0:
            yield _MEMBER, FieldValue("", "file", file.content, concealed=True, type="file")
        yield _CUSTOM, FieldValue("files", file.name, file.content, concealed=True, type="file")
    for one in item.fields:
        if one.value:
            concealed = one.type not in _OPEN_TYPES
            yield _CUSTOM, FieldValue(one.section, one.label, _bytes(one.value), concealed, one.type)
    for credential in item.credentials:
        yield from ((_CREDENTIAL, one) for one in _of_credential(credential))


def _of_member(name: str, value: Any, now: float | None) -> Iterator[FieldValue]:
    if isinstance(value, OneTimeCode):
        try:
            yield _made("", name, totp.uri(value), concealed=True)
            if now is not None:
                yield _made("", "code", totp.code(value, now), concealed=True)
        except InvalidTotp:
            yield _made("", name, value.secret, concealed=True)
    elif isinstance(value, Kept):
        for inner in members_of(type(value)):
            if text := getattr(value, inner.name):
                yield _made(name, inner.spelled, text, concealed=False)
    elif isinstance(value, str) and value:
        yield _made("", name, value, concealed=name in _SECRET_MEMBERS)


def _of_credential(credential: dict[str, Any]) -> Iterator[FieldValue]:
    kind = credential.get("type")
    section = kind if isinstance(kind, str) else ""
    for name, value in credential.items():
        if isinstance(value, dict) and isinstance(value.get("value"), str) and value["value"]:
            named = value.get("fieldType")
            yield _made(section, name, value["value"], concealed=named not in _OPEN_TYPES, type_=str(named))
        elif isinstance(value, str) and value and name != "type":
            yield _made(section, name, value, concealed=name not in _OPEN_CREDENTIAL_MEMBERS)


def _made(section: str, name: str, text: str, *, concealed: bool, type_: str = "") -> FieldValue:
    return FieldValue(section, name, _bytes(text), concealed, type_ or (CONCEALED if concealed else STRING))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
