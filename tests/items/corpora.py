"""Files of other programs, made from their published schemas by a seed: members are there, empty or absent."""

from __future__ import annotations

import base64
import io
import json
import random
import uuid
import zipfile
from typing import Any
from xml.sax.saxutils import escape, quoteattr

WORDS = ["quince", "Müller", "東京", "a/b", "50%", "x\ny", "<&>", '"q"', "emoji 🔑", "tab\tbed", "'single'", "ünïcode"]
SECRET = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


class Maker:
    """Random texts and members."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - the same file every time
        self.number = 0

    def text(self) -> str:
        self.number += 1
        return f"{self.random.choice(WORDS)} {self.number}"

    def maybe(self, *values: Any) -> Any:
        """One of these, a text, or nothing."""
        return self.random.choice([*values, self.text(), None])

    def some(self, made: dict[str, Any]) -> dict[str, Any]:
        """The same without some of its members."""
        return {name: value for name, value in made.items() if self.random.random() < 0.8}

    def uuid(self) -> str:
        return str(uuid.UUID(int=self.random.getrandbits(128), version=4))

    def id(self) -> str:
        return base64.urlsafe_b64encode(self.random.randbytes(16)).decode().rstrip("=")

    def url(self) -> str:
        return f"https://{self.random.choice(['a', 'b', 'c'])}.example/{self.random.randint(1, 9)}"


# CXF


def cxf(seed: int, count: int) -> dict[str, Any]:
    made = Maker(seed)
    items = [_cxf_item(made) for _ in range(count)]
    links = [{"item": one["id"]} for one in items[: count // 2]]
    inner = {"id": made.id(), "title": "In/ner %", "items": links[:3]}
    collection = {"id": made.id(), "title": "Outer", "items": links, "subCollections": [inner]}
    account = {"id": made.id(), "username": "", "email": "", "collections": [collection], "items": items}
    version = {"major": 1, "minor": 0}
    return {
        "version": version,
        "exporterRpId": "x.example",
        "exporterDisplayName": "X",
        "timestamp": 1,
        "accounts": [account],
    }


def _editable(made: Maker, kind: str, value: str | None = None) -> dict[str, Any]:
    found = {"fieldType": kind, "value": made.text() if value is None else value}
    more = {"id": made.id(), "label": made.text(), "extensions": [{"name": "x.example/y", "z": 1}], "novel": None}
    return found | {name: value for name, value in more.items() if made.random.random() < 0.2}


def _cxf_item(made: Maker) -> dict[str, Any]:
    kinds = made.random.sample(sorted(CREDENTIALS), made.random.randint(0, 4))
    if made.random.random() < 0.1:
        kinds += kinds[:1]
    found: dict[str, Any] = {
        "id": made.id(),
        "title": made.text(),
        "credentials": [CREDENTIALS[one](made) for one in kinds],
    }
    more = {
        "creationAt": 1700000000,
        "modifiedAt": 1700000001,
        "subtitle": made.text(),
        "favorite": made.random.random() < 0.5,
        "scope": made.some({"urls": [made.url()], "androidApps": [{"bundleId": "com.example"}], "novel": 1}),
        "tags": [made.text()],
        "extensions": [{"name": "shared", "accessors": []}],
        "novel": {"deep": [1, 2.5, None, True]},
    }
    return found | {name: value for name, value in more.items() if made.random.random() < 0.4}


def _fields(made: Maker, names: dict[str, str]) -> dict[str, Any]:
    return made.some({name: _editable(made, kind) for name, kind in names.items()})


_PAPER = {"fullName": "string", "birthDate": "date", "issueDate": "date", "expiryDate": "date", "sex": "string"}
CREDENTIALS: dict[str, Any] = {
    "basic-auth": lambda made: (
        {"type": "basic-auth"}
        | _fields(made, {"username": made.random.choice(["string", "email"]), "password": "concealed-string"})
    ),
    "credit-card": lambda made: (
        {"type": "credit-card"}
        | _fields(
            made,
            {"number": "concealed-string", "fullName": "string", "expiryDate": "year-month", "pin": "concealed-string"},
        )
    ),
    "api-key": lambda made: (
        {"type": "api-key"}
        | _fields(made, {"key": "concealed-string", "username": "string", "url": "string", "validFrom": "date"})
    ),
    "note": lambda made: {"type": "note", "content": _editable(made, "string")},
    "totp": lambda made: (
        {"type": "totp", "secret": SECRET, "period": 30, "digits": 6, "algorithm": "sha1"}
        | made.some({"username": made.text(), "issuer": made.text()})
    ),
    "person-name": lambda made: {"type": "person-name"} | _fields(made, {"given": "string", "surname": "string"}),
    "address": lambda made: (
        {"type": "address"}
        | _fields(made, {"streetAddress": "string", "country": "country-code", "territory": "subdivision-code"})
    ),
    "identity-document": lambda made: {"type": "identity-document"} | _fields(made, _PAPER),
    "passport": lambda made: {"type": "passport"} | _fields(made, _PAPER | {"passportNumber": "string"}),
    "drivers-license": lambda made: {"type": "drivers-license"} | _fields(made, {"licenseNumber": "string"}),
    "generated-password": lambda made: {"type": "generated-password", "password": made.text()},
    "ssh-key": lambda made: (
        {"type": "ssh-key", "keyType": "ssh-ed25519", "privateKey": "MC4CAQAwBQYDK2VwBCIEIA"}
        | made.some({"keyComment": made.text(), "expiryDate": _editable(made, "date")})
    ),
    "custom-fields": lambda made: (
        {"type": "custom-fields", "fields": [_editable(made, "string") for _ in range(2)]}
        | made.some({"id": made.id(), "label": made.text()})
    ),
    "file": lambda made: {"type": "file", "id": made.id(), "name": "a.pdf", "decryptedSize": 3, "integrityHash": "AA"},
    "wifi": lambda made: {"type": "wifi"} | _fields(made, {"ssid": "string", "passphrase": "concealed-string"}),
    "passkey": lambda made: (
        {"type": "passkey", "credentialId": made.id(), "rpId": "x.example", "key": "AAAA"}
        | {"username": made.text(), "userDisplayName": made.text(), "userHandle": made.id()}
    ),
    "item-reference": lambda made: {"type": "item-reference", "reference": {"item": made.id()}},
    "of-tomorrow": lambda made: {"type": "of-tomorrow", "value": made.text()},
}


def with_shared_ids(whole: dict[str, Any]) -> dict[str, Any]:
    """A file of CXF or of Bitwarden in which items share ids: twice, again and again, none at all, and with numbers."""
    listed = whole["items"] if "items" in whole else whole["accounts"][0]["items"]
    given = [listed[0]["id"], "again", "again", "again", "again#2", "a#1", "a#1", "a#٣", "a#b", "#7", "#7", "", ""]
    for one, identifier in zip(listed[1:], given, strict=False):
        one["id"] = identifier
    for one in listed[-2:]:
        del one["id"]
    listed[-1].update(listed[-2])
    return whole


# Bitwarden


def bitwarden(seed: int, count: int) -> dict[str, Any]:
    made = Maker(seed)
    folders = [{"id": made.uuid(), "name": name} for name in ("Work", "Work/Clients", "50% off")]
    return {"encrypted": False, "folders": folders, "items": [_bitwarden_item(made, folders) for _ in range(count)]}


def _bitwarden_item(made: Maker, folders: list[dict[str, Any]]) -> dict[str, Any]:
    kind = made.random.randint(1, 5)
    field_types = [(0, None), (1, None), (2, None), (3, 100)]
    fields = []
    for number, linked in made.random.sample(field_types, made.random.randint(0, 4)):
        value = {2: "true", 3: None}.get(number, made.maybe(""))
        fields.append({"name": made.maybe(""), "value": value, "type": number, "linkedId": linked})
    found: dict[str, Any] = {
        "passwordHistory": made.random.choice(
            [None, [{"lastUsedDate": "2024-01-02T03:04:05.678Z", "password": made.text()}]]
        ),
        "revisionDate": "2024-05-06T07:08:09.123Z",
        "creationDate": "2024-05-06T07:08:09.000Z",
        "deletedDate": None,
        "id": made.uuid(),
        "organizationId": None,
        "folderId": made.random.choice([None, *(one["id"] for one in folders)]),
        "type": kind,
        "reprompt": made.random.choice([0, 1]),
        "name": made.text(),
        "notes": made.maybe(""),
        "favorite": made.random.random() < 0.5,
        "collectionIds": None,
    }
    if fields or made.random.random() < 0.5:
        found["fields"] = fields
    return {**found, **BITWARDEN[kind](made)}


def _bitwarden_login(made: Maker) -> dict[str, Any]:
    passkey = {
        "credentialId": made.random.choice([made.uuid(), "b64." + made.id() + "AAAA"]),
        "keyType": "public-key",
        "keyAlgorithm": "ECDSA",
        "keyCurve": "P-256",
        "keyValue": "AAAA",
        "rpId": "x.example",
        "userHandle": made.id(),
        "userName": made.text(),
        "counter": made.random.choice(["0", "17"]),
        "rpName": "X",
        "userDisplayName": made.text(),
        "discoverable": "true",
        "creationDate": "2024-01-02T03:04:05.678Z",
    }
    uris = [{"match": made.random.choice([None, 0, 3]), "uri": made.url()} for _ in range(made.random.randint(0, 3))]
    codes = [SECRET, SECRET.lower(), f"otpauth://totp/A:b?secret={SECRET}&issuer=A&digits=8", f"steam://{SECRET}"]
    login = {
        "uris": uris,
        "fido2Credentials": made.random.choice([[], [passkey]]),
        "username": made.maybe(""),
        "password": made.maybe(""),
        "totp": made.random.choice([None, "not a secret!", *codes]),
    }
    return {"login": login}


BITWARDEN: dict[int, Any] = {
    1: _bitwarden_login,
    2: lambda _made: {"secureNote": {"type": 0}},
    3: lambda made: {
        "card": {
            "cardholderName": made.maybe(),
            "brand": made.maybe("Visa"),
            "number": made.maybe("4111111111111111"),
            "expMonth": made.random.choice(["1", "12", "07", None, "abc"]),
            "expYear": made.random.choice(["2030", None, "30"]),
            "code": made.maybe("123"),
        }
    },
    4: lambda made: {
        "identity": {
            name: made.maybe()
            for name in (
                *("title", "firstName", "middleName", "lastName", "address1", "address2", "address3", "city", "state"),
                *("postalCode", "country", "company", "email", "phone", "ssn", "username", "passportNumber"),
                "licenseNumber",
            )
        }
    },
    5: lambda made: {
        "sshKey": {"privateKey": made.text(), "publicKey": "ssh-ed25519 AAAA", "keyFingerprint": "SHA256:x"}
    },
}


# 1Password


def onepassword(seed: int, count: int) -> bytes:
    made = Maker(seed)
    files: dict[str, bytes] = {}
    items = [_onepassword_item(made, files) for _ in range(count)]
    vaults = [
        {"attrs": {"name": "Private", "desc": "All of\nmine"}, "items": items[: count // 2]},
        {"attrs": {"name": "Shared", "desc": ""}, "items": items[count // 2 :]},
    ]
    account = {"attrs": {"name": "Ada", "uuid": "A"}, "vaults": vaults}
    return zipped({"export.attributes": b"{}", "export.data": json.dumps({"accounts": [account]}).encode()} | files)


def zipped(entries: dict[str, bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return target.getvalue()


def _onepassword_item(made: Maker, files: dict[str, bytes]) -> dict[str, Any]:
    category = made.random.choice(["001", "002", "003", "004", "005", "006", "101", "106", "108", "110", "112", "114"])
    values: list[tuple[str, dict[str, Any]]] = [
        ("x", {"concealed": made.text()}),
        ("y", {"string": made.text()}),
        ("one-time", {"totp": SECRET}),
        ("mail", {"email": {"email_address": "a@example.com", "provider": made.random.choice([None, "", "gmail"])}}),
        ("site", {"url": made.url()}),
        ("born", {"date": 1700000000}),
        ("expiry", {"monthYear": 203012}),
        ("ccnum", {"creditCardNumber": "4111111111111111"}),
        ("credential", {"concealed": made.text()}),
        ("firstname", {"string": made.text()}),
        ("address", {"address": {"street": made.text(), "city": "Wien", "zip": "1010", "state": "", "country": "at"}}),
        (
            "private_key",
            {
                "sshKey": {
                    "privateKey": made.text(),
                    "metadata": {"publicKey": "ssh-ed25519 AAAA", "keyType": "ed25519"},
                }
            },
        ),
        ("new", {"hologram": {"x": made.text()}}),
    ]
    fields = [{"title": name.upper(), "id": name, "value": value, "guarded": False} for name, value in values]
    details: dict[str, Any] = {
        "loginFields": [
            {"value": made.text(), "id": "", "name": "u", "fieldType": "T", "designation": "username"},
            {"value": made.text(), "id": "", "name": "p", "fieldType": "P", "designation": "password"},
            {"value": made.text(), "id": "f", "name": "other", "fieldType": "T"},
        ],
        "notesPlain": made.maybe(""),
        "sections": [{"title": made.text(), "name": "s", "fields": made.random.sample(fields, 6)}],
        "passwordHistory": [{"value": made.text(), "time": 1}],
    }
    if category == "005":
        details["password"] = made.text()
    if category == "006":
        identifier = made.id()
        files[f"files/{identifier}__scan.pdf"] = made.text().encode()
        details["documentAttributes"] = {"fileName": "scan.pdf", "documentId": identifier, "decryptedSize": 1}
    return {
        "uuid": made.id(),
        "favIndex": made.random.choice([0, 1]),
        "createdAt": 1700000000,
        "updatedAt": 1700000001,
        "state": made.random.choice(["active", "archived"]),
        "categoryUuid": category,
        "details": details,
        "overview": {"title": made.text(), "url": made.url(), "tags": [made.text()], "ps": 3, "subtitle": made.text()},
    }


# KeePass


def keepass(seed: int, count: int) -> str:
    made = Maker(seed)
    entries = [_keepass_entry(made) for _ in range(count)]
    data = "<CustomData><Item><Key>k</Key><Value>v</Value></Item></CustomData>"
    empty = "It's \u00a0" + "🔑" * 70
    blob = base64.b64encode(b"file content").decode()
    return (
        '<?xml version="1.0" encoding="utf-8"?><KeePassFile><Meta><RecycleBinUUID>BIN</RecycleBinUUID>'
        f'<Binaries><Binary ID="0">{blob}</Binary></Binaries></Meta><Root><Group><UUID>R</UUID><Name>Database</Name>'
        f"<Notes>of all</Notes><Group><UUID>G</UUID><Name>Mail/Web</Name><Notes>\u00a0</Notes><Tags>t;u</Tags>{data}"
        f"<CustomData/>{''.join(entries[: count // 2])}<Group><Name>Inner</Name><Notes a='1'>of the\ninner one</Notes>"
        f"{''.join(entries[count // 2 :])}</Group></Group>"
        f"<Group><Name>{empty}</Name><Group><Name/><Notes>of nobody</Notes></Group><Tags>none</Tags></Group>"
        "<Group><UUID>BIN</UUID><Name>Recycle Bin</Name><Entry><UUID>old</UUID></Entry></Group></Group></Root>"
        "</KeePassFile>"
    )


def _keepass_entry(made: Maker) -> str:
    strings = {"Title": made.text(), "UserName": made.maybe(""), "Password": made.maybe(""), "URL": made.maybe("")}
    strings |= {
        "Notes": made.maybe(""),
        "PIN": made.maybe(""),
        "otp": made.random.choice([None, "", f"otpauth://totp/x?secret={SECRET}"]),
    }
    told = "".join(
        f'<String><Key>{escape(name)}</Key><Value ProtectInMemory="True">{escape(value)}</Value></String>'
        for name, value in strings.items()
        if value is not None
    )
    binary = '<Binary><Key>a.txt</Key><Value Ref="0"/></Binary>' if made.random.random() < 0.3 else ""
    uid = base64.b64encode(made.random.randbytes(16)).decode()
    return (
        f"<Entry><UUID>{uid}</UUID><IconID>3</IconID><Tags>a;b</Tags><Times><CreationTime>2024-01-02T03:04:05Z</CreationTime>"
        f"<Expires>True</Expires></Times>{told}{binary}<History><Entry><String><Key>Password</Key>"
        f"<Value Note={quoteattr(made.text())}>{escape(made.text())}</Value></String></Entry></History></Entry>"
    )
