"""Items: what people keep in a vault, as documents of the collection `items`. The shapes are docs/items.md.

    types        login, note, card, identity, secret, SSH key, one-time code, API credential, file
    fields       the fields of an item by name, and which of them are secret
    references   `sr://vault/item/field`, and how an item is found by its title or uid
    totp         one-time codes (RFC 6238)
    errors       what cannot be found or read

Nothing here does I/O, and nothing imports the client or the server.
"""

from strongroom.items.errors import AmbiguousName, FieldNotFound, InvalidReference, InvalidTotp, ItemNotFound
from strongroom.items.fields import FieldValue, field, fields_of
from strongroom.items.references import Reference, find_item, is_reference, parse_reference
from strongroom.items.types import (
    ITEMS,
    TYPES,
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
    OneTimeCode,
    Other,
    Passport,
    PersonName,
    Secret,
    Source,
    SshKey,
    Totp,
)

__all__ = [
    "ITEMS",
    "TYPES",
    "Address",
    "AmbiguousName",
    "ApiCredential",
    "Card",
    "DriversLicense",
    "Field",
    "FieldNotFound",
    "FieldValue",
    "File",
    "FileContent",
    "Identity",
    "IdentityDocument",
    "InvalidReference",
    "InvalidTotp",
    "Item",
    "ItemNotFound",
    "Login",
    "Note",
    "OneTimeCode",
    "Other",
    "Passport",
    "PersonName",
    "Reference",
    "Secret",
    "Source",
    "SshKey",
    "Totp",
    "field",
    "fields_of",
    "find_item",
    "is_reference",
    "parse_reference",
]
