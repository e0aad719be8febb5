"""FIDO's Credential Exchange Format 1.0: JSON, in and out without loss."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import Any, BinaryIO, Final

import msgspec

from strongroom.items.formats import ssh_keys
from strongroom.items.formats.changes import applied, by_name, changes, in_order, well_formed
from strongroom.items.formats.common import (
    MOST_FOLDERS,
    FileRefused,
    Found,
    Password,
    Problem,
    checked,
    content_id,
    folder,
    folder_names,
    inner_folder,
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
from strongroom.items.formats.encoding import b64url
from strongroom.items.formats.overlay import SourceIds, is_numbered, overlay, with_overlay
from strongroom.items.types import (
    CONCEALED,
    STRING,
    TYPES,
    Field,
    Identity,
    Item,
    Kept,
    OneTimeCode,
    Secret,
    Source,
    members_of,
)

NAME: Final = "cxf"
EXPORTER: Final = "strongroom.invalid"  # no domain is ours: whoever runs strongroom has their own
EXTENSION: Final = f"{EXPORTER}/item"
_DEEPEST: Final = 50
_HEADER: Final = frozenset({"version", "exporterRpId", "exporterDisplayName", "timestamp", "accounts"})
_ACCOUNT: Final = frozenset({"id", "collections", "items"})
_COLLECTION: Final = frozenset({"id", "title", "creationAt", "modifiedAt", "items", "subCollections"})

_DATE, _MONTH, _COUNTRY, _TERRITORY = "date", "year-month", "country-code", "subdivision-code"
# The credentials that become the members of an item, and the type of each member that is an editable field.
_FLAT: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "basic-auth": ("login", {"username": STRING, "password": CONCEALED}),
    "credit-card": (
        "card",
        {
            "number": CONCEALED,
            "fullName": STRING,
            "cardType": STRING,
            "verificationNumber": CONCEALED,
            "pin": CONCEALED,
            "expiryDate": _MONTH,
            "validFrom": _MONTH,
        },
    ),
    "api-key": (
        "api-credential",
        {
            "key": CONCEALED,
            "username": STRING,
            "keyType": STRING,
            "url": STRING,
            "validFrom": _DATE,
            "expiryDate": _DATE,
        },
    ),
    "ssh-key": ("ssh-key", {"creationDate": _DATE, "expiryDate": _DATE, "keyGenerationSource": STRING}),
}
# The credentials of an identity, and the member that each becomes.
_PARTS: Final = {
    "person-name": "name",
    "address": "address",
    "identity-document": "document",
    "passport": "passport",
    "drivers-license": "license",
}
_PART_TYPES: Final = {
    "birthDate": _DATE,
    "issueDate": _DATE,
    "expiryDate": _DATE,
    "country": _COUNTRY,
    "issuingCountry": _COUNTRY,
    "territory": _TERRITORY,
}
# Which credential decides the type of an item, the first that is there.
_DECIDING: Final = (
    *((kind, named_type) for kind, (named_type, _) in _FLAT.items()),
    ("passkey", "login"),
    *((kind, "identity") for kind in _PARTS),
    ("generated-password", "secret"),
    ("totp", "totp"),
    ("note", "note"),
)


# Reading


def read(file: BinaryIO, _password: Password | None = None) -> Iterator[Found]:
    """The items of all accounts in a file."""
    raw = parse_json(read_all(file))
    if isinstance(raw, dict) and isinstance(raw.get("accounts"), list):
        version = raw.get("version")
        if isinstance(version, dict) and version.get("major") not in (None, 0, 1):
            raise FileRefused("The file has a later version of CXF than 1.")
        accounts, besides = raw["accounts"], [*unplaced("The file", raw, _HEADER)]
    elif isinstance(raw, dict) and isinstance(raw.get("items"), list) and "encrypted" not in raw:
        accounts, besides = [raw], []
    else:
        raise FileRefused("The file is not CXF: it has no accounts.")
    return checked(chain(besides, _accounts(accounts)))


def _accounts(accounts: list[Any]) -> Iterator[Found]:
    number = 0
    for account in accounts:
        if not isinstance(account, dict) or not isinstance(account.get("items"), list):
            yield Problem("An account of the file has no list of items.")
            continue
        yield from unplaced("An account of the file", account, _ACCOUNT)
        folders: dict[str, dict[str, None]] = {}
        yield from _collect(account.get("collections"), "", 0, folders)
        for raw in account["items"]:
            number += 1
            if not isinstance(raw, dict):
                yield Problem(f"{named(None, number)} is not an item of CXF.")
                continue
            try:
                yield _read_item(raw, folders)
            except (msgspec.ValidationError, RecursionError):
                yield Problem(f"{named(raw.get('title'), number)} is not an item of CXF.")


def _collect(collections: Any, path: str, depth: int, folders: dict[str, dict[str, None]]) -> Iterator[Problem]:
    """The folders of every item, by the collections that name it."""
    for one in collections if isinstance(collections, list) else []:
        if depth > _DEEPEST or not isinstance(one, dict) or not isinstance(one.get("title"), str):
            yield Problem("A collection of the file has no title, or is nested too deeply; it was left out.")
            continue
        yield from unplaced(f"The collection {one['title'][:60]!r}", one, _COLLECTION)
        here = inner_folder(path, one["title"])
        linked, inner = one.get("items"), one.get("subCollections")
        for link in linked if isinstance(linked, list) else []:
            if isinstance(link, dict) and isinstance(link.get("item"), str):
                known = folders.setdefault(link["item"], {})
                if len(known) <= MOST_FOLDERS:
                    known[here] = None
        if not linked and not inner:
            yield Problem(f"The collection {one['title'][:60]!r} is empty; it was left out.")
        yield from _collect(inner, here, depth + 1, folders)


def _read_item(raw: dict[str, Any], folders: dict[str, dict[str, None]]) -> Item:
    extensions = raw.get("extensions")
    ours = None
    if isinstance(extensions, list):
        ours = next((one for one in extensions if isinstance(one, dict) and one.get("name") == EXTENSION), None)
    if ours is not None:
        others = [one for one in items_of(extensions) if one is not ours]
        raw = {name: value for name, value in raw.items() if name != "extensions"}
        raw |= {"extensions": others} if others else {}
    item = to_item(raw)
    identifier = text_of(raw.get("id")) or content_id(raw)
    order = [str(one.get("type")) for one in items_of(raw.get("credentials")) if isinstance(one, dict)]
    item.source = Source(format=NAME, id=identifier)
    if [str(one.get("type")) for one in _credentials(item)] != order:
        item.source.order = order
    item.source.changes = changes(_keyed(_made(item, identifier)), _keyed(raw))
    item.folders = [*folders.get(identifier, ())]
    return item if ours is None else with_overlay(item, ours.get("item"))


def to_item(raw: dict[str, Any]) -> Item:
    """An item of CXF, without its source and its folders."""
    credentials = [members(one) for one in items_of(raw.get("credentials"))]
    present = [one.get("type") for one in credentials]
    named_type = next((kind for deciding, kind in _DECIDING if deciding in present), "note")
    scope = members(raw.get("scope"))
    item = TYPES[named_type](
        title=text_of(raw.get("title")),
        subtitle=text_of(raw.get("subtitle")),
        favorite=raw.get("favorite") is True,
        urls=[text_of(one) for one in items_of(scope.get("urls"))],
        apps=[members(one) for one in items_of(scope.get("androidApps"))],
        tags=[text_of(one) for one in items_of(raw.get("tags"))],
        creation_at=seconds(raw.get("creationAt")),
        modified_at=seconds(raw.get("modifiedAt")),
    )
    taken: set[str] = set()
    for one in credentials:
        kind = str(one.get("type"))
        repeats = kind in taken and kind != "custom-fields"
        if repeats or not _take(item, kind, one):
            item.credentials.append(one)
        else:
            taken.add(kind)
    return item


def _take(item: Item, kind: str, one: dict[str, Any]) -> bool:
    """Make a credential the members of an item; False where it has to be kept as it is."""
    if kind in _FLAT and item.type == _FLAT[kind][0]:
        return _take_flat(item, kind, one)
    if kind in _PARTS and isinstance(item, Identity):
        part = _part_type(_PARTS[kind])()
        values = _values(one, [member.spelled for member in members_of(type(part))])
        for member in members_of(type(part)):
            setattr(part, member.name, values.get(member.spelled, ""))
        setattr(item, _PARTS[kind], part if values else None)
        return bool(values)
    if kind == "note":
        value = _value(one.get("content"))
        item.notes = value or ""
        return bool(value)
    if kind == "generated-password" and item.type == "secret" and isinstance(one.get("password"), str):
        item.value = one["password"]  # type: ignore[attr-defined]
        return bool(one["password"])
    if kind == "totp" and item.type in {"login", "totp"}:
        try:
            found = OneTimeCode.from_json({name: value for name, value in one.items() if name != "type"})
        except msgspec.ValidationError:
            return False
        found.extra = {}
        item.totp = found  # type: ignore[attr-defined]
        return bool(found.secret)
    return kind == "custom-fields" and _take_fields(item, one)


def _take_flat(item: Item, kind: str, one: dict[str, Any]) -> bool:
    types = _FLAT[kind][1]
    values = _values(one, types)
    if kind == "ssh-key":
        key = one.get("privateKey")
        text = ssh_keys.pem(key) if isinstance(key, str) else None
        if text is None:
            return False
        values |= {"privateKey": text}
        values |= {name: one[name] for name in ("keyType", "keyComment") if isinstance(one.get(name), str)}
    for member in members_of(type(item)):
        if member.spelled in values:
            setattr(item, member.name, values[member.spelled])
    return bool(values)


def _take_fields(item: Item, one: dict[str, Any]) -> bool:
    label, listed = one.get("label", ""), one.get("fields")
    if not isinstance(label, str) or not isinstance(listed, list) or not listed:
        return False
    found = []
    for raw in listed:
        if _value(raw) is None or not isinstance(raw.get("label", ""), str) or "section" in raw or "type" in raw:
            return False
        extra = {name: value for name, value in raw.items() if name not in {"label", "value", "fieldType"}}
        kind = raw.get("fieldType", STRING)
        found.append(Field(label=raw.get("label", ""), value=raw["value"], type=str(kind), section=label, extra=extra))
    item.fields += found
    return True


def _part_type(member: str) -> type[Kept]:
    found = next(one.inner for one in members_of(Identity) if one.name == member)
    assert found is not None  # noqa: S101 - each of them is a struct
    return found


def _values(one: dict[str, Any], names: Iterable[str]) -> dict[str, str]:
    return {name: value for name in names if (value := _value(one.get(name)))}


def _value(field: Any) -> str | None:
    """The value of an editable field; None where it is none."""
    value = field.get("value") if isinstance(field, dict) else None
    return value if isinstance(value, str) else None


# Writing


def write(items: Iterable[tuple[str, Item]], now: int) -> bytes:
    """A file with one account. The items come with the uids of their documents; `now` is in seconds since 1970."""
    made: list[dict[str, Any]] = []
    root: dict[str, Any] = {}
    ids = SourceIds(NAME)
    for uid, item in items:
        own_id = ids.of(item)
        identifier = _identifier(uid, own_id)
        made.append(_write_item(uid, item, identifier, own_id))
        for path in item.folders:
            place = root
            for name in folder_names(path):
                place = place.setdefault("in", {}).setdefault(name, {})
            place.setdefault("items", []).append({"item": identifier})
    account = {
        "id": b64url(b"strongroom"),
        "username": "",
        "email": "",
        "collections": _collections(root, ""),
        "items": made,
    }
    header = {
        "version": {"major": 1, "minor": 0},
        "exporterRpId": EXPORTER,
        "exporterDisplayName": "strongroom",
        "timestamp": now,
        "accounts": [account],
    }
    return msgspec.json.format(msgspec.json.encode(header), indent=1)


def _collections(place: dict[str, Any], path: str) -> list[dict[str, Any]]:
    found = []
    for name, inner in place.get("in", {}).items():
        here = f"{path}/{folder(name)}"
        one: dict[str, Any] = {"id": b64url(bytes.fromhex(source_id(here))), "title": name}
        one["items"] = inner.get("items", [])
        if "in" in inner:
            one["subCollections"] = _collections(inner, here)
        found.append(one)
    return found


def _identifier(uid: str, own_id: str | None) -> str:
    if own_id is not None:
        return b64url(bytes.fromhex(source_id("item", own_id))) if is_numbered(own_id) else own_id
    try:
        return b64url(uuid.UUID(uid).bytes)
    except ValueError:
        return b64url(uid.encode()[:64])


def _write_item(uid: str, item: Item, identifier: str, own_id: str | None) -> dict[str, Any]:
    made: dict[str, Any] = _made(item, identifier)
    if item.source is not None and item.source.format == NAME and well_formed(item.source.changes):
        made = _listed(applied(_keyed(made), item.source.changes))
    again = to_item(made)
    again.folders = item.folders
    if kept := overlay(uid, item, again, NAME, None if made.get("id") == own_id else own_id):
        made["extensions"] = [*items_of(made.get("extensions")), {"name": EXTENSION, "item": kept}]
    return made


def _keyed(raw: dict[str, Any]) -> dict[str, Any]:
    return raw | ({"credentials": by_name(raw["credentials"], "type")} if "credentials" in raw else {})


def _listed(keyed: dict[str, Any]) -> dict[str, Any]:
    return keyed | ({"credentials": in_order(keyed["credentials"])} if "credentials" in keyed else {})


def _made(item: Item, identifier: str) -> dict[str, Any]:
    found: dict[str, Any] = {"id": identifier, "title": item.title}
    found |= {"creationAt": item.creation_at} if item.creation_at is not None else {}
    found |= {"modifiedAt": item.modified_at} if item.modified_at is not None else {}
    found |= {"subtitle": item.subtitle} if item.subtitle else {}
    found |= {"favorite": True} if item.favorite else {}
    if item.urls or item.apps:
        found["scope"] = {"urls": item.urls, "androidApps": item.apps}
    found["credentials"] = _credentials(item)
    found |= {"tags": item.tags} if item.tags else {}
    return found


def _credentials(item: Item) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [*_typed(item)]
    if item.notes:
        made.append({"type": "note", "content": {"fieldType": STRING, "value": item.notes}})
    for section, group in groupby(item.fields, key=lambda one: one.section):
        made.append(_fields_credential(section, list(group)))
    for file in item.files:
        one = {"type": "file", "id": b64url(file.sha256[:16]), "name": file.name}
        made.append(one | {"decryptedSize": len(file.content), "integrityHash": b64url(file.sha256)})
    made += item.credentials
    source = item.source
    if source is None or source.format != NAME or not source.order:
        return made
    waiting: dict[str, deque[int]] = {}  # places in the list, by type
    for place, one in enumerate(made):
        waiting.setdefault(str(one.get("type")), deque()).append(place)
    first = [waiting[kind].popleft() for kind in source.order if waiting.get(kind)]
    left = sorted(place for places in waiting.values() for place in places)
    return [made[place] for place in [*first, *left]]


def _typed(item: Item) -> Iterator[dict[str, Any]]:
    """The credentials of the members that an item's type has."""
    for kind, (named_type, types) in _FLAT.items():
        if isinstance(item, TYPES[named_type]):  # an item that does not fit has the name of the type alone
            found = {"type": kind} | _editable(item, types)
            if kind == "ssh-key":
                found = _ssh_key(item, found)
            if len(found) > 1:
                yield found
    if isinstance(item, Identity):
        for kind, name in _PARTS.items():
            part: Any = getattr(item, name)
            if isinstance(part, Kept):
                types = {member.spelled: _PART_TYPES.get(member.spelled, STRING) for member in members_of(type(part))}
                yield {"type": kind} | _editable(part, types)
    if isinstance(item, Secret) and item.value:
        yield {"type": "generated-password", "password": item.value}
    totp = getattr(item, "totp", None)
    if isinstance(totp, OneTimeCode):
        found = {"type": "totp", "secret": totp.secret, "period": totp.period, "digits": totp.digits}
        found |= {"username": totp.username} if totp.username else {}
        found["algorithm"] = totp.algorithm
        yield found | ({"issuer": totp.issuer} if totp.issuer else {})


def _ssh_key(item: Any, found: dict[str, Any]) -> dict[str, Any]:
    key = ssh_keys.pkcs8(item.private_key)
    if key is None:
        return {}
    kind = item.key_type or ssh_keys.algorithm(item.private_key, item.public_key)
    comment = {"keyComment": item.key_comment} if item.key_comment else {}
    return found | {"keyType": kind, "privateKey": key} | comment


def _editable(holder: Kept, types: dict[str, str]) -> dict[str, Any]:
    values = {member.spelled: getattr(holder, member.name) for member in members_of(type(holder))}
    return {name: {"fieldType": kind, "value": values[name]} for name, kind in types.items() if values[name]}


def _fields_credential(section: str, group: list[Field]) -> dict[str, Any]:
    fields = []
    for one in group:
        made = {"fieldType": one.type, "value": one.value} | ({"label": one.label} if one.label else {})
        fields.append(made | {name: value for name, value in one.extra.items() if name not in made})
    found: dict[str, Any] = {"type": "custom-fields"} | ({"label": section} if section else {})
    return found | {"fields": fields}
