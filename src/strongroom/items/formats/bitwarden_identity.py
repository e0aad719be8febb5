"""Identities of Bitwarden: one flat object, where items have a name, an address and papers."""

from __future__ import annotations

from typing import Any, Final

from strongroom.items.formats.common import text_of
from strongroom.items.types import STRING, Address, Field, Identity, IdentityDocument, Kept, Passport, PersonName
from strongroom.items.types import DriversLicense as License

# Member of Bitwarden: the part of an identity, and the member of that part.
_PLACES: Final = {
    "title": ("name", "title"),
    "firstName": ("name", "given"),
    "middleName": ("name", "given2"),
    "lastName": ("name", "surname"),
    "city": ("address", "city"),
    "state": ("address", "territory"),
    "postalCode": ("address", "postal_code"),
    "country": ("address", "country"),
    "phone": ("address", "tel"),
    "ssn": ("document", "identification_number"),
    "passportNumber": ("passport", "passport_number"),
    "licenseNumber": ("license", "license_number"),
}
_PARTS: Final[dict[str, type[Kept]]] = {
    "name": PersonName,
    "address": Address,
    "document": IdentityDocument,
    "passport": Passport,
    "license": License,
}
_LINES: Final = ("address1", "address2", "address3")
# Of these, CXF has nothing: they are fields.
_FIELDS: Final = {"company": STRING, "email": "email", "username": STRING}


def read_identity(raw: dict[str, Any]) -> Identity:
    """The item of an identity."""
    item = Identity()
    for name, (part, member) in _PLACES.items():
        if value := text_of(raw.get(name)):
            _put(item, part, member, value)
    lines = [text_of(raw.get(name)) for name in _LINES]
    if street := "\n".join(lines).rstrip("\n"):
        _put(item, "address", "street_address", street)
    item.fields = [
        Field(label=name, value=value, type=kind) for name, kind in _FIELDS.items() if (value := text_of(raw.get(name)))
    ]
    return item


def _put(item: Identity, part: str, member: str, value: str) -> None:
    if getattr(item, part) is None:
        setattr(item, part, _PARTS[part]())
    setattr(getattr(item, part), member, value)


def identity_members(item: Identity) -> tuple[dict[str, Any], list[Field]]:
    """The identity of Bitwarden, and the fields that are left."""
    found: dict[str, Any] = dict.fromkeys((*_LINES, *_PLACES, *_FIELDS))
    for name, (part, member) in _PLACES.items():
        holder = getattr(item, part)
        found[name] = (getattr(holder, member) or None) if holder is not None else None
    street = item.address.street_address if item.address is not None else ""
    for name, line in zip(_LINES, street.split("\n", 2), strict=False):
        found[name] = line or None
    left = []
    for one in item.fields:
        takes = one.label in _FIELDS and not one.section and not one.extra and one.type == _FIELDS[one.label]
        if takes and found[one.label] is None and one.value:
            found[one.label] = one.value
        else:
            left.append(one)
    return found, left
