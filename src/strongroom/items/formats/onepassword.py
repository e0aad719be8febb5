"""1Password's 1PUX: a zip file with `export.data`, and the files of items in `files/`."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, BinaryIO, Final

import msgspec

from strongroom.items import totp
from strongroom.items.errors import InvalidTotp
from strongroom.items.formats.common import (
    MOST_ATTACHMENT,
    MOST_BYTES,
    Archive,
    FileRefused,
    Found,
    Password,
    Problem,
    checked,
    fits_besides,
    inner_folder,
    items_of,
    keep_besides,
    members,
    named,
    parse_json,
    seconds,
    source_id,
    sourced,
    text_of,
    unplaced,
)
from strongroom.items.types import (
    CONCEALED,
    STRING,
    Address,
    ApiCredential,
    Card,
    DriversLicense,
    Field,
    File,
    FileContent,
    Identity,
    IdentityDocument,
    Item,
    Login,
    Note,
    Passport,
    PersonName,
    Secret,
    SshKey,
)

NAME: Final = "1pux"
_CATEGORIES: Final[dict[str, Callable[[], Item]]] = {
    "001": Login,
    "002": Card,
    "003": Note,
    "004": Identity,
    "005": Secret,
    "006": File,
    "103": Identity,
    "106": Identity,
    "108": Identity,
    "110": Login,
    "112": ApiCredential,
    "114": SshKey,
}
# The fields of 1Password's categories that are members of an item, by category and id.
_MEMBERS: Final[dict[str, dict[str, str]]] = {
    "002": {
        "ccnum": "number",
        "cardholder": "full_name",
        "type": "card_type",
        "cvv": "verification_number",
        "pin": "pin",
        "expiry": "expiry_date",
        "validFrom": "valid_from",
    },
    "110": {"username": "username", "password": "password"},
    "112": {"credential": "key", "username": "username", "type": "key_type", "hostname": "url"}
    | {"validFrom": "valid_from", "expires": "expiry_date"},
}
_PARTS: Final[dict[str, tuple[str, Callable[[], Any], dict[str, str]]]] = {
    "004": ("name", PersonName, {"firstname": "given", "initial": "given2", "lastname": "surname"}),
    "103": (
        "license",
        DriversLicense,
        {
            "fullname": "full_name",
            "number": "license_number",
            "class": "license_class",
            "state": "territory",
            "country": "country",
            "birthdate": "birth_date",
            "expiry_date": "expiry_date",
        },
    ),
    "106": (
        "passport",
        Passport,
        {
            "type": "passport_type",
            "issuing_country": "issuing_country",
            "number": "passport_number",
            "fullname": "full_name",
            "sex": "sex",
            "nationality": "nationality",
            "issuing_authority": "issuing_authority",
            "birthdate": "birth_date",
            "birthplace": "birth_place",
            "issue_date": "issue_date",
            "expiry_date": "expiry_date",
        },
    ),
    "108": ("document", IdentityDocument, {"name": "full_name", "number": "identification_number"}),
}
_ADDRESS: Final = {"street": "street_address", "city": "city", "state": "territory", "zip": "postal_code"} | {
    "country": "country"
}


def read(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """The items of all accounts and vaults; a vault becomes a folder."""
    archive = Archive(file)
    data = archive.read("export.data", MOST_BYTES)
    if data is None:
        raise FileRefused("The file is not 1PUX: it has no export.data, or that is damaged or too large.")
    raw = parse_json(data)
    if not isinstance(raw, dict) or not isinstance(raw.get("accounts"), list):
        raise FileRefused("The file is not 1PUX: it has no accounts.")
    return checked(_accounts(raw["accounts"], archive))


def _accounts(accounts: list[Any], archive: Archive) -> Iterator[Found]:
    number = 0
    for account in accounts:
        besides = _Besides("account", _attributes(account))
        for vault in _listed(account, "vaults"):
            attributes = _attributes(vault)
            name = attributes.pop("name", None)
            name = name if isinstance(name, str) else ""
            of_vault = _Besides("vault", attributes)
            within = inner_folder("", name)
            listed = _listed(vault, "items")
            for one in listed:
                number += 1
                for found in _item(one, number, within, archive):
                    if isinstance(found, Item):
                        besides.keep_with(found)
                        of_vault.keep_with(found)
                    yield found
            yield from of_vault.left_out(f"The vault {name[:60]!r}")
            if not listed:
                yield Problem(f"The vault {name[:60]!r} has no items; it was left out.")
        yield from besides.left_out("An account of the file")
    if count := archive.count_others("files/"):
        yield Problem(f"The zip file has files that belong to no item that was read: {count:,}. They were left out.")


def _attributes(holder: Any) -> dict[str, Any]:
    """What an account or a vault says of itself."""
    found = holder.get("attrs") if isinstance(holder, dict) else None
    return {**found} if isinstance(found, dict) else {}


class _Besides:
    """What an account or a vault says of itself: kept with its first item."""

    def __init__(self, name: str, attributes: dict[str, Any]) -> None:
        self._fits = fits_besides(attributes)
        self._attributes = _pruned(attributes) if self._fits else attributes
        self._name = name

    def keep_with(self, item: Item) -> None:
        """Keep it, unless it is kept already."""
        if self._attributes and self._fits and keep_besides(item, {self._name: self._attributes}):
            self._attributes = {}

    def left_out(self, holder: str) -> Iterator[Problem]:
        """A sentence where it is not kept."""
        yield from unplaced(holder, self._attributes, ())


def _item(listed: Any, number: int, within: str, archive: Archive) -> Iterator[Found]:
    raw = listed.get("item", listed) if isinstance(listed, dict) else listed
    if not isinstance(raw, dict):
        yield Problem(f"{named(None, number)} is not an item of 1Password.")
        return
    title = None
    try:
        title = members(raw.get("overview")).get("title")
        if raw.get("trashed") is True or raw.get("state") == "trashed":
            yield Problem(f"{named(title, number)} is in the trash of 1Password, and was left out.")
            return
        reader = _Reader(copy.deepcopy(raw), archive)
        item = reader.read(within)
    except (msgspec.ValidationError, RecursionError):
        yield Problem(f"{named(title, number)} is not an item of 1Password.")
        return
    yield from reader.problems
    yield item


def _listed(value: Any, name: str) -> list[Any]:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


class _Reader:
    """Reads one item: takes out what becomes a member, and keeps the rest."""

    def __init__(self, raw: dict[str, Any], archive: Archive) -> None:
        self._raw = raw
        self._archive = archive
        self._category = text_of(raw.get("categoryUuid"))
        self._item = _CATEGORIES.get(self._category, Note)()
        self.problems: list[Problem] = []

    def read(self, within: str) -> Item:
        raw, item = self._raw, self._item
        overview, details = members(raw.get("overview")), members(raw.get("details"))
        item.title = text_of(overview.pop("title", None))
        item.tags = [text_of(one) for one in items_of(overview.pop("tags", None))]
        urls = [text_of(members(one).get("url")) for one in items_of(overview.get("urls"))]
        item.urls = list(dict.fromkeys(one for one in [text_of(overview.pop("url", None)), *urls] if one))
        item.notes = text_of(details.pop("notesPlain", None))
        item.favorite = bool(raw.get("favIndex", 0))
        item.creation_at, item.modified_at = seconds(raw.get("createdAt")), seconds(raw.get("updatedAt"))
        said = {"createdAt": item.creation_at, "updatedAt": item.modified_at, "favIndex": int(item.favorite)}
        for name, value in said.items():
            if raw.get(name) == value:
                raw.pop(name, None)
        item.folders = [within] if within else []
        if raw.get("state") == "archived":
            item.tags.append("archived")
        self._login_fields(details)
        if isinstance(item, Secret):
            item.value = text_of(details.pop("password", None))
        self._document(details)
        for section in items_of(details.get("sections")):
            self._section(members(section))
        identifier = text_of(raw.pop("uuid", None)) or source_id(item.title, item.notes, *item.urls)
        return sourced(item, NAME, identifier, _pruned(raw))

    def _login_fields(self, details: dict[str, Any]) -> None:
        left = []
        for one in items_of(details.get("loginFields")):
            field = members(one)
            role, value = str(field.get("designation")), text_of(field.get("value"))
            if isinstance(self._item, Login) and role in {"username", "password"} and not getattr(self._item, role):
                setattr(self._item, role, value)
                field.pop("value", None)
            elif value:
                kind = CONCEALED if field.get("fieldType") == "P" else STRING
                label = text_of(field.get("name")) or text_of(field.get("id"))
                self._item.fields.append(Field(label=label, value=value, type=kind, section="Web form"))
                field.pop("value", None)
            left.append(field)
        if "loginFields" in details:
            details["loginFields"] = left

    def _document(self, details: dict[str, Any]) -> None:
        described = details.get("documentAttributes")
        if isinstance(described, dict):
            self._attach(described)

    def _attach(self, described: dict[str, Any]) -> None:
        """The content of a file, from the zip file."""
        name, identifier = text_of(described.get("fileName")), text_of(described.get("documentId"))
        content = self._archive.read(f"files/{identifier}__{name}", MOST_ATTACHMENT)
        if content is None:
            told = f"{named(self._item.title)} has a file that is missing, damaged or too large; it was left out."
            self.problems.append(Problem(told))
        else:
            self._item.files.append(FileContent(name=name, content=content))

    def _section(self, section: dict[str, Any]) -> None:
        title = text_of(section.get("title"))
        for one in items_of(section.get("fields")):
            self._field(members(one), title)

    def _field(self, field: dict[str, Any], section: str) -> None:
        """Take over a field: its value is taken out where it has a place, and the kind of the value is left."""
        wrapped = field.get("value")
        if isinstance(wrapped, str):
            wrapped = {"string": wrapped}
        if isinstance(wrapped, dict) and len(wrapped) == 1:
            [(kind, value)] = wrapped.items()
            if self._value(field, section, kind, value):
                field["value"] = kind

    def _value(self, field: dict[str, Any], section: str, kind: str, value: Any) -> bool:
        """Take over the value of a field; False where it has to be kept, as far as it was not taken out of it."""
        identifier = text_of(field.get("id"))
        label = text_of(field.get("title")) or identifier
        if kind == "totp" and isinstance(self._item, Login) and self._item.totp is None and isinstance(value, str):
            try:
                self._item.totp = totp.parse(value)
            except InvalidTotp:
                pass
            else:
                return True
        if kind == "file" and isinstance(value, dict):
            self._attach(value)
            return False
        if kind == "sshKey" and isinstance(value, dict) and isinstance(self._item, SshKey):
            self._ssh_key(value)
            return False
        if kind == "address" and isinstance(value, dict):
            return self._address(value, label, section)
        text = _text(kind, value)
        if text is None:
            return False
        if text and not self._member(identifier, text):
            self._item.fields.append(Field(label=label, value=text, type=_type(kind), section=section))
        if kind == "email" and isinstance(value, dict):
            value.pop("email_address", None)
            return not value.get("provider")
        return kind != "date"  # a time, of which the day is shown

    def _member(self, identifier: str, text: str) -> bool:
        name = _MEMBERS.get(self._category, {}).get(identifier)
        if name is not None and not getattr(self._item, name):
            setattr(self._item, name, text)
            return True
        if self._category not in _PARTS:
            return False
        part, kind, names = _PARTS[self._category]
        name = names.get(identifier)
        if name is None:
            return False
        if getattr(self._item, part) is None:
            setattr(self._item, part, kind())
        holder = getattr(self._item, part)
        if getattr(holder, name):
            return False
        setattr(holder, name, text)
        return True

    def _address(self, value: dict[str, Any], label: str, section: str) -> bool:
        parts = {name: text_of(value.get(name)) for name in _ADDRESS}
        if not set(value) <= set(_ADDRESS):
            return False
        if isinstance(self._item, Identity) and self._item.address is None:
            self._item.address = Address()
            for name, member in _ADDRESS.items():
                setattr(self._item.address, member, parts[name])
        else:
            lines = [parts["street"], f"{parts['zip']} {parts['city']}".strip(), parts["state"], parts["country"]]
            text = "\n".join(line for line in lines if line)
            self._item.fields.append(Field(label=label, value=text, section=section))
            return False
        return True

    def _ssh_key(self, value: dict[str, Any]) -> None:
        item, about = self._item, members(value.get("metadata"))
        assert isinstance(item, SshKey)  # noqa: S101 - the caller looked
        if item.private_key:
            return
        item.private_key = text_of(value.pop("privateKey", None))
        item.public_key = text_of(about.pop("publicKey", None))
        item.fingerprint = text_of(about.pop("fingerprint", None))
        item.key_type = item.public_key.partition(" ")[0]


def _text(kind: str, value: Any) -> str | None:
    """The text of a value; None where it is of no known kind."""
    if kind == "email" and isinstance(value, dict):
        return text_of(value.get("email_address")) if value.keys() <= {"email_address", "provider"} else None
    if kind == "date" and isinstance(value, int):
        try:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d")
        except (ValueError, OverflowError, OSError):
            return None
    if kind == "monthYear" and isinstance(value, int):
        spelled = f"{value:06}"
        return f"{spelled[:4]}-{spelled[4:]}" if re.fullmatch(r"\d{4}(0[1-9]|1[0-2])", spelled) else None
    return text_of(value) if value is None or isinstance(value, str | int | float) else None


def _type(kind: str) -> str:
    known = {"concealed": CONCEALED, "email": "email", "date": "date", "monthYear": "year-month", "totp": CONCEALED}
    return known.get(kind, CONCEALED if kind == "creditCardNumber" else STRING)


def _pruned(value: Any) -> Any:
    """The same without what is empty."""
    if isinstance(value, dict):
        inner = {name: _pruned(one) for name, one in value.items()}
        return {name: one for name, one in inner.items() if one not in ({}, [], "", None)}
    if isinstance(value, list):
        return [pruned for one in value if (pruned := _pruned(one)) not in ({}, [], "", None)]
    return value
