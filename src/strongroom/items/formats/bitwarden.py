"""Bitwarden's JSON, plain or encrypted with a password, in; plain, out."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

import msgspec

from strongroom.foreign_encryption import BadParameters, Opener
from strongroom.items import totp
from strongroom.items.errors import InvalidTotp
from strongroom.items.formats.bitwarden_identity import identity_members, read_identity
from strongroom.items.formats.changes import applied, by_name, changes, in_order, well_formed
from strongroom.items.formats.common import (
    LONGEST_FOLDERS,
    FileRefused,
    Found,
    Password,
    PasswordNeeded,
    Problem,
    checked,
    content_id,
    folder_names,
    iso_time,
    items_of,
    members,
    named,
    parse_json,
    read_all,
    seconds,
    source_id,
    text_of,
    unplaced,
)
from strongroom.items.formats.encoding import b64url, from_b64url
from strongroom.items.formats.overlay import SourceIds, is_numbered, overlay, with_overlay
from strongroom.items.types import (
    CONCEALED,
    STRING,
    ApiCredential,
    Card,
    Field,
    File,
    Identity,
    Item,
    Login,
    Note,
    Secret,
    Source,
    SshKey,
    Totp,
    members_of,
)

NAME: Final = "bitwarden"
_LOGIN, _NOTE, _CARD, _IDENTITY, _SSH_KEY = 1, 2, 3, 4, 5
_FIELD_TYPES: Final = {0: STRING, 1: CONCEALED, 2: "boolean", 3: "linked"}
_TYPE_NUMBERS: Final = {kind: number for number, kind in _FIELD_TYPES.items()}
# Members of a passkey that CXF has not, with the values that they have in practice.
_PASSKEY: Final = {
    "keyType": "public-key",
    "keyAlgorithm": "ECDSA",
    "keyCurve": "P-256",
    "counter": "0",
    "discoverable": "true",
}
# Of these, Bitwarden has nothing; their members are shown as fields of a note.
_AS_NOTES: Final = (Secret, ApiCredential, File)
_LONGEST_MONTH: Final = 2  # digits
_TOP: Final = frozenset({"encrypted", "passwordProtected", "items", "folders", "collections"})
_FOLDER: Final = frozenset({"id", "name", "organizationId"})


# Reading


def read(file: BinaryIO, password: Password | None = None) -> Iterator[Found]:
    """The items of a file."""
    raw = parse_json(read_all(file))
    if not isinstance(raw, dict) or not ("items" in raw or "encrypted" in raw):
        raise FileRefused("The file is not an export of Bitwarden: it has no items.")
    if raw.get("encrypted") is True:
        raw = _decrypted(raw, password)
    if not isinstance(raw, dict) or not isinstance(raw.get("items"), list):
        raise FileRefused("The file is not an export of Bitwarden: it has no list of items.")
    return checked(_whole(raw))


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _decrypted(raw: dict[str, Any], password: Password | None) -> Any:
    if raw.get("passwordProtected") is not True:
        raise FileRefused(
            "This export can only be opened by the Bitwarden account that made it: "
            "export again as JSON, or as encrypted JSON with the option 'Password protected'."
        )
    if password is None:
        raise PasswordNeeded
    try:
        opener = Opener(password(), raw)
    except BadParameters:
        raise FileRefused("The file asks for a key derivation that no export of Bitwarden has.") from None
    if opener.open(raw.get("encKeyValidation_DO_NOT_EDIT")) is None:
        raise PasswordNeeded("The password is wrong, or the file is damaged.")
    data = opener.open(raw.get("data"))
    if data is None:
        raise FileRefused("The file is damaged: its password is right, and its content was changed.")
    return parse_json(data)


def _whole(raw: dict[str, Any]) -> Iterator[Found]:
    yield from unplaced("The file", raw, _TOP)
    names: dict[str, str] = {}
    for one in [*_listed(raw.get("folders")), *_listed(raw.get("collections"))]:
        if isinstance(one, dict) and isinstance(one.get("id"), str) and isinstance(one.get("name"), str):
            names[one["id"]] = _folder(one["name"])
            yield from unplaced(f"The folder {one['name'][:60]!r}", one, _FOLDER)
        else:
            yield Problem("A folder of the file has no id or no name; it was left out.")
    yield from _items(raw["items"], names)
    used = {one for item in raw["items"] for one in _places(item)}
    for identifier, name in names.items():
        if identifier not in used:
            yield Problem(f"The folder {_shown(name)[:60]!r} has no items; it was left out.")


def _places(item: Any) -> list[str]:
    """The ids of the folder and of the collections of an item that is not in the trash."""
    if not isinstance(item, dict) or item.get("deletedDate") is not None:
        return []
    return [one for one in (item.get("folderId"), *_listed(item.get("collectionIds"))) if isinstance(one, str)]


def _folder(name: str) -> str:
    """The path of a folder of Bitwarden: its name has those around it, with slashes between them."""
    return name.replace("%", "%25")[: LONGEST_FOLDERS + 1]


def _shown(path: str) -> str:
    return "/".join(folder_names(path))


def _items(listed: list[Any], names: dict[str, str]) -> Iterator[Found]:
    for number, raw in enumerate(listed, 1):
        if not isinstance(raw, dict):
            yield Problem(f"{named(None, number)} is not an item of Bitwarden.")
            continue
        title = raw.get("name")
        try:
            if raw.get("deletedDate") is not None:
                yield Problem(f"{named(title, number)} is in the trash of Bitwarden, and was left out.")
                continue
            yield _read_item(raw, names)
        except (msgspec.ValidationError, RecursionError):
            yield Problem(f"{named(title, number)} is not an item of Bitwarden.")


def _read_item(raw: dict[str, Any], names: dict[str, str]) -> Item:
    ours = raw.get("strongroom")
    raw = {name: value for name, value in raw.items() if name != "strongroom"}
    item = to_item(raw)
    identifier = text_of(raw.get("id")) or content_id(raw)
    item.source = Source(format=NAME, id=identifier)
    original = {name: value for name, value in raw.items() if name != "folderId"}
    item.source.changes = changes(_keyed(_made(item, identifier)), _keyed(original))
    within = raw.get("folderId")
    item.source.rest = {} if within is None else {"folderId": within}
    item.folders = [*dict.fromkeys(names[one] for one in _places(raw) if one in names)]
    return item if ours is None else with_overlay(item, ours)


def to_item(raw: dict[str, Any]) -> Item:
    """An item of Bitwarden, without its source and its folders."""
    kind = raw.get("type")
    item: Item
    if kind == _LOGIN:
        item = _read_login(members(raw.get("login")))
    elif kind == _CARD:
        item = _read_card(members(raw.get("card")))
    elif kind == _IDENTITY:
        item = read_identity(members(raw.get("identity")))
    elif kind == _SSH_KEY:
        key = members(raw.get("sshKey"))
        item = SshKey(
            private_key=text_of(key.get("privateKey")),
            public_key=text_of(key.get("publicKey")),
            fingerprint=text_of(key.get("keyFingerprint")),
        )
    else:
        item = Note()
    item.title, item.notes = text_of(raw.get("name")), text_of(raw.get("notes"))
    item.favorite = raw.get("favorite") is True
    item.creation_at, item.modified_at = seconds(raw.get("creationDate")), seconds(raw.get("revisionDate"))
    for one in items_of(raw.get("fields")):
        field = members(one)
        extra = {name: value for name, value in field.items() if name not in {"name", "value", "type"}}
        if extra.get("linkedId") is None:
            extra.pop("linkedId", None)
        item.fields.append(
            Field(
                label=text_of(field.get("name")),
                value=text_of(field.get("value")),
                type=next((name for number, name in _FIELD_TYPES.items() if number == field.get("type")), CONCEALED),
                extra={name: value for name, value in extra.items() if name not in {"label", "section"}},
            )
        )
    return item


def _read_login(login: dict[str, Any]) -> Login:
    item = Login(username=text_of(login.get("username")), password=text_of(login.get("password")))
    item.urls = [url for one in items_of(login.get("uris")) if (url := text_of(members(one).get("uri")))]
    if isinstance(login.get("totp"), str) and login["totp"].strip():
        try:
            item.totp = totp.parse(login["totp"])
        except InvalidTotp:
            item.fields.append(Field(label="totp", value=login["totp"], type=CONCEALED))
    item.credentials = [_read_passkey(members(one)) for one in items_of(login.get("fido2Credentials"))]
    return item


def _read_card(card: dict[str, Any]) -> Card:
    month, year = text_of(card.get("expMonth")), text_of(card.get("expYear"))
    whole = re.fullmatch(r"\d{4}", year) and re.fullmatch(r"0?[1-9]|1[0-2]", month)
    return Card(
        number=text_of(card.get("number")),
        full_name=text_of(card.get("cardholderName")),
        card_type=text_of(card.get("brand")),
        verification_number=text_of(card.get("code")),
        expiry_date=f"{year}-{int(month):02}" if whole else "",
    )


def _read_passkey(raw: dict[str, Any]) -> dict[str, Any]:
    """A passkey as CXF has it."""
    identifier = text_of(raw.get("credentialId"))
    try:
        spelled = identifier[4:] if identifier.startswith("b64.") else b64url(uuid.UUID(identifier).bytes)
    except ValueError:
        spelled = identifier
    return {
        "type": "passkey",
        "credentialId": spelled,
        "rpId": text_of(raw.get("rpId")),
        "username": text_of(raw.get("userName")),
        "userDisplayName": text_of(raw.get("userDisplayName")),
        "userHandle": text_of(raw.get("userHandle")),
        "key": text_of(raw.get("keyValue")),
    }


# Writing


def write(items: Iterable[tuple[str, Item]], _now: int) -> bytes:
    """A plain file. The items come with the uids of their documents."""
    folders: dict[str, str] = {}
    listed = []
    ids = SourceIds(NAME)
    for uid, item in items:
        source = item.source if item.source is not None and item.source.format == NAME else None
        made = _write_item(uid, item, ids.of(item), source)
        made["folderId"] = None
        if item.folders:
            name = _folder_name(item)
            known = None if source is None else source.rest.get("folderId")
            made["folderId"] = folders.setdefault(name, known if isinstance(known, str) else _folder_id(name))
        listed.append(made)
    listing = [{"id": identifier, "name": name} for name, identifier in folders.items()]
    whole = {"encrypted": False, "folders": listing, "items": listed}
    return msgspec.json.format(msgspec.json.encode(whole), indent=2)


def _folder_name(item: Item) -> str:
    """The name of an item's folder as Bitwarden has it, the names around it included."""
    return _shown(item.folders[0])


def _folder_id(name: str) -> str:
    return str(uuid.UUID(hex=source_id("folder", name), version=4))


def _write_item(uid: str, item: Item, own_id: str | None, source: Source | None) -> dict[str, Any]:
    identifier = uid if own_id is None else own_id
    if own_id is not None and is_numbered(own_id):
        identifier = str(uuid.UUID(hex=source_id("item", own_id), version=4))
    made: dict[str, Any] = _made(item, identifier)
    if source is not None and well_formed(source.changes):
        made = _listed_again(applied(_keyed(made), source.changes))
    again = to_item(made)
    again.folders = [_folder(_folder_name(item))] if item.folders else []
    if kept := overlay(uid, item, again, NAME, None if made.get("id") == own_id else own_id):
        made["strongroom"] = kept
    return made


_LISTS: Final = {"uris": "uri", "fido2Credentials": "credentialId"}  # of a login, and what names each


def _keyed(raw: dict[str, Any]) -> dict[str, Any]:
    login = raw.get("login")
    if not isinstance(login, dict):
        return raw
    return raw | {"login": login | {name: by_name(login[name], by) for name, by in _LISTS.items() if name in login}}


def _listed_again(keyed: dict[str, Any]) -> dict[str, Any]:
    login = keyed.get("login")
    if not isinstance(login, dict):
        return keyed
    return keyed | {"login": login | {name: in_order(login[name]) for name in _LISTS if name in login}}


def _made(item: Item, identifier: str) -> dict[str, Any]:
    when = iso_time(item.creation_at or 0)
    found: dict[str, Any] = {
        "passwordHistory": None,
        "revisionDate": iso_time(item.modified_at or item.creation_at or 0),
        "creationDate": when,
        "deletedDate": None,
        "id": identifier,
        "organizationId": None,
        "type": _NOTE,
        "reprompt": 0,
        "name": item.title,
        "notes": item.notes or None,
        "favorite": item.favorite,
        "fields": [],
        "collectionIds": None,
    }
    fields = item.fields
    if isinstance(item, Login | Totp):
        found |= {"type": _LOGIN, "login": _login(item, when)}
        if found["login"]["totp"] is None:
            found["login"]["totp"], fields = _unread_totp(fields)
    elif isinstance(item, Card):
        found |= {"type": _CARD, "card": _card(item)}
    elif isinstance(item, Identity):
        written, fields = identity_members(item)
        found |= {"type": _IDENTITY, "identity": written}
    elif isinstance(item, SshKey):
        key = {"privateKey": item.private_key or None, "publicKey": item.public_key or None}
        found |= {"type": _SSH_KEY, "sshKey": key | {"keyFingerprint": item.fingerprint or None}}
    else:
        found["secureNote"] = {"type": 0}
    found["fields"] = [_field(one) for one in [*_members_as_fields(item), *fields]]
    return found


def _unread_totp(fields: list[Field]) -> tuple[str | None, list[Field]]:
    """One-time codes that could not be read came as a field, the first."""
    if fields and (fields[0].label, fields[0].type, fields[0].section) == ("totp", CONCEALED, ""):
        return fields[0].value, fields[1:]
    return None, fields


def _members_as_fields(item: Item) -> Iterator[Field]:
    if isinstance(item, _AS_NOTES):
        common = {member.name for member in members_of(Item)}
        for member in members_of(type(item)):
            if member.name not in common and (value := getattr(item, member.name)):
                yield Field(label=member.spelled, value=value, type=CONCEALED)


def _field(one: Field) -> dict[str, Any]:
    known = {"name": one.label or None, "value": one.value or None, "type": _TYPE_NUMBERS.get(one.type, 0)}
    return known | {"linkedId": one.extra.get("linkedId")} | {k: v for k, v in one.extra.items() if k not in known}


def _login(item: Login | Totp, when: str) -> dict[str, Any]:
    code = None
    if item.totp is not None:
        try:
            code = totp.uri(item.totp)
        except InvalidTotp:
            code = item.totp.secret or None
    passkeys = [one for one in item.credentials if one.get("type") == "passkey"]
    return {
        "uris": [{"match": None, "uri": url} for url in item.urls],
        "fido2Credentials": [_passkey(one, when) for one in passkeys],
        "username": getattr(item, "username", "") or None,
        "password": getattr(item, "password", "") or None,
        "totp": code,
    }


def _card(item: Card) -> dict[str, Any]:
    year, _, month = item.expiry_date.partition("-")
    whole = month.isdecimal() and len(month) <= _LONGEST_MONTH
    return {
        "cardholderName": item.full_name or None,
        "brand": item.card_type or None,
        "number": item.number or None,
        "expMonth": str(int(month)) if whole else None,
        "expYear": year if whole else None,
        "code": item.verification_number or None,
    }


def _passkey(one: dict[str, Any], when: str) -> dict[str, Any]:
    spelled = str(one.get("credentialId", ""))
    data = from_b64url(spelled)
    identifier = str(uuid.UUID(bytes=data)) if data is not None and len(data) == 16 else f"b64.{spelled}"
    return {
        **_PASSKEY,
        "credentialId": identifier,
        "keyValue": one.get("key", ""),
        "rpId": one.get("rpId", ""),
        "rpName": one.get("rpId", ""),
        "userHandle": one.get("userHandle", ""),
        "userName": one.get("username", ""),
        "userDisplayName": one.get("userDisplayName", ""),
        "creationDate": when,
    }
