"""One file of each format with every member that its published schema has, and a text or a number of its own in each.

Each is in the file once. What a reader makes of a file is looked through for them in tests/items/test_schemas.py.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any, Final

from tests.items import corpora


class Canaries:
    """Texts and numbers that occur once, by the place that has them."""

    def __init__(self) -> None:
        self.places: dict[str, str] = {}

    def text(self, place: str) -> str:
        """A text that only this place has."""
        made = f"canary{len(self.places):03}yranac"
        self.places[made] = place
        return made

    def number(self, place: str) -> int:
        """A number that only this place has: a time of the year 2026."""
        made = 1_780_000_000 + len(self.places)
        self.places[str(made)] = place
        return made

    def data(self, place: str) -> bytes:
        """Bytes that only this place has; an item has them in base64."""
        made = f"canary{len(self.places):03}yranac".encode()
        self.places[base64.b64encode(made).decode()] = place
        return made

    def members(self, place: str, names: str) -> dict[str, str]:
        """An object with a text in each of these members."""
        return {name: self.text(f"{place}.{name}") for name in names.split()}


# CXF 1.0

_EDITABLE: Final = {
    "basic-auth": "username password",
    "credit-card": "number fullName cardType verificationNumber pin expiryDate validFrom",
    "api-key": "key username keyType url validFrom expiryDate",
    "address": "streetAddress postalCode city territory country tel",
    "person-name": "title given givenInformal given2 surnamePrefix surname surname2 credentials generation",
    "drivers-license": "fullName birthDate issueDate expiryDate issuingAuthority territory country licenseNumber "
    "licenseClass",
    "identity-document": "issuingCountry documentNumber identificationNumber nationality fullName birthDate birthPlace "
    "sex issueDate expiryDate issuingAuthority",
    "passport": "issuingCountry passportType passportNumber nationalIdentificationNumber nationality fullName "
    "birthDate birthPlace sex issueDate expiryDate issuingAuthority",
    "wifi": "ssid networkSecurityType passphrase hidden",
    "note": "content",
    "ssh-key": "creationDate expiryDate keyGenerationSource",
}


def _editable(made: Canaries, place: str) -> dict[str, Any]:
    return {
        **made.members(place, "id value label"),
        "fieldType": "string",
        "extensions": [{"name": "x.example/y", "z": made.text(f"{place}.extensions")}],
    }


def _credential(made: Canaries, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = {"type": kind}
    found |= {name: _editable(made, f"{kind}.{name}") for name in _EDITABLE.get(kind, "").split()}
    if kind == "ssh-key":
        found |= {"keyType": made.text("ssh-key.keyType"), "privateKey": "MC4CAQAwBQYDK2VwBCIEIA"}
        found |= {"keyComment": made.text("ssh-key.keyComment")}
    elif kind == "totp":
        found |= {"secret": corpora.SECRET, "period": 47, "digits": 8, "algorithm": "sha512"}
        found |= made.members(kind, "username issuer")
    elif kind == "custom-fields":
        found |= made.members(kind, "id label") | {"fields": [_editable(made, "custom-fields.fields")]}
        found["extensions"] = [{"name": made.text("custom-fields.extensions")}]
    elif kind == "file":
        found |= made.members(kind, "id name integrityHash") | {"decryptedSize": made.number("file.decryptedSize")}
    elif kind == "generated-password":
        found |= made.members(kind, "password")
    elif kind == "item-reference":
        found |= {"reference": made.members(kind, "item account")}
    elif kind == "passkey":
        found |= made.members(kind, "credentialId rpId username userDisplayName userHandle key")
        hmac = made.members("passkey.fido2Extensions.hmacCredentials", "algorithm credWithUV credWithoutUV")
        blob = made.members("passkey.fido2Extensions.largeBlob", "data")
        found["fido2Extensions"] = {
            "hmacCredentials": hmac,
            "credBlob": made.text("passkey.fido2Extensions.credBlob"),
            "largeBlob": blob | {"uncompressedSize": made.number("passkey.fido2Extensions.largeBlob.uncompressedSize")},
            "payments": True,
        }
    return found


CREDENTIALS: Final = (
    *_EDITABLE,
    *("totp", "custom-fields", "file", "generated-password", "item-reference", "passkey"),
)


def _cxf_item(made: Canaries, identifier: str, credentials: list[dict[str, Any]]) -> dict[str, Any]:
    certificate = made.members(f"item {identifier}.scope.androidApps.certificate", "fingerprint hashAlg")
    app = made.members(f"item {identifier}.scope.androidApps", "bundleId name") | {"certificate": certificate}
    place = f"item {identifier}"
    return {
        **made.members(place, "title subtitle"),
        "id": identifier,
        "creationAt": made.number(f"{place}.creationAt"),
        "modifiedAt": made.number(f"{place}.modifiedAt"),
        "favorite": True,
        "scope": {"urls": [made.text(f"{place}.scope.urls")], "androidApps": [app]},
        "credentials": credentials,
        "tags": [made.text(f"{place}.tags")],
        "extensions": [{"name": "shared", "accessors": [made.members(f"{place}.extensions", "type name permissions")]}],
    }


def cxf(made: Canaries) -> bytes:
    """Each credential alone in an item, and all of them in one."""
    items = [_cxf_item(made, kind, [_credential(made, kind)]) for kind in CREDENTIALS]
    items.append(_cxf_item(made, "all", [_credential(made, kind) for kind in CREDENTIALS]))
    inner = {**made.members("inner", "id title subtitle"), "items": [{"item": "note"}]}
    outer: dict[str, Any] = {
        **made.members("collection", "id title subtitle"),
        "creationAt": made.number("collection.creationAt"),
        "modifiedAt": made.number("collection.modifiedAt"),
        "items": [{"item": "basic-auth", "account": made.text("collection.items.account")}],
        "subCollections": [inner, made.members("empty", "id title")],
        "extensions": [{"name": made.text("collection.extensions")}],
    }
    account = {
        **made.members("account", "id username email fullName"),
        "collections": [outer],
        "items": items,
        "extensions": [{"name": made.text("account.extensions")}],
    }
    header = made.members("header", "exporterRpId exporterDisplayName")
    whole = header | {"version": {"major": 1, "minor": 0}, "timestamp": made.number("header.timestamp")}
    return json.dumps(whole | {"accounts": [account]}).encode()


# Bitwarden

_IDENTITY: Final = (
    "title firstName middleName lastName address1 address2 address3 city state postalCode country company email phone "
    "ssn username passportNumber licenseNumber"
)


def _bitwarden_item(made: Canaries, kind: int, members: dict[str, Any], folder_id: str) -> dict[str, Any]:
    place = f"type {kind}"
    field = made.members(f"{place}.fields", "name value") | {"type": 1, "linkedId": 100}
    return {
        "passwordHistory": [made.members(f"{place}.passwordHistory", "lastUsedDate password")],
        "revisionDate": "2026-05-06T07:08:09.123Z",
        "creationDate": "2026-05-06T07:08:09.000Z",
        "deletedDate": None,
        "archivedDate": made.text(f"{place}.archivedDate"),
        "id": f"item {kind}",
        "organizationId": made.text(f"{place}.organizationId"),
        "folderId": folder_id,
        "type": kind,
        "reprompt": made.number(f"{place}.reprompt"),
        "name": made.text(f"{place}.name"),
        "notes": made.text(f"{place}.notes"),
        "favorite": True,
        "fields": [field],
        "collectionIds": ["collection", made.text(f"{place}.collectionIds")],
        "attachments": [made.members(f"{place}.attachments", "id fileName url size")],
        **members,
    }


def bitwarden(made: Canaries) -> bytes:
    """An item of each type, and one of a type of tomorrow; of a person and of an organisation at once."""
    passkey = made.members(
        "passkey",
        "credentialId keyType keyAlgorithm keyCurve keyValue rpId userHandle userName counter rpName userDisplayName "
        "discoverable creationDate",
    )
    login: dict[str, Any] = made.members("login", "username password totp passwordRevisionDate")
    login |= {"uris": [made.members("login.uris", "uri uriChecksum") | {"match": made.number("login.uris.match")}]}
    types: dict[int, dict[str, Any]] = {
        1: {"login": login | {"fido2Credentials": [passkey], "autofillOnPageLoad": made.text("login.autofill")}},
        2: {"secureNote": {"type": made.number("secureNote.type")}},
        3: {"card": made.members("card", "cardholderName brand number expMonth expYear code")},
        4: {"identity": made.members("identity", _IDENTITY)},
        5: {"sshKey": made.members("sshKey", "privateKey publicKey keyFingerprint")},
        6: {"hologram": made.members("hologram", "x")},
    }
    whole = {
        "encrypted": False,
        "folders": [
            {"id": "folder", "name": made.text("folders.name")},
            {"id": "empty", "name": made.text("empty folder.name")},
        ],
        "collections": [{"id": "collection", "organizationId": "o", **made.members("collections", "name externalId")}],
        "items": [
            *(
                _bitwarden_item(made, kind, members, "folder" if kind < 6 else made.text("folderId of no folder"))
                for kind, members in types.items()
            ),
            {"name": made.text("trash.name"), "type": 2, "deletedDate": "2026-05-06T07:08:09.123Z"},
        ],
        "novel": made.text("a member of tomorrow"),
    }
    return json.dumps(whole).encode()


# 1Password

_KINDS: Final = "concealed string totp phone url gender menu creditCardType creditCardNumber reference"


def _onepassword_values(made: Canaries, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {kind: made.text(f"{place}.{kind}") for kind in _KINDS.split()}
    found["date"], found["monthYear"] = made.number(f"{place}.date"), 203011
    found["email"] = made.members(f"{place}.email", "email_address provider")
    found["address"] = made.members(f"{place}.address", "street city country zip state")
    metadata = made.members(f"{place}.sshKey.metadata", "privateKey publicKey fingerprint keyType")
    found["sshKey"] = {"privateKey": made.text(f"{place}.sshKey.privateKey"), "metadata": metadata}
    found["file"] = {"fileName": "f.txt", "documentId": f"{place}-file", "decryptedSize": made.number(f"{place}.file")}
    return found


def _onepassword_item(made: Canaries, category: str, files: dict[str, bytes]) -> dict[str, Any]:
    place = f"category {category}"
    fields = [
        {
            **made.members(f"{place}.{kind}", "title id"),
            "value": {kind: value},
            "indexAtSource": made.number(f"{place}.{kind}.indexAtSource"),
            "guarded": True,
            "inputTraits": made.members(f"{place}.{kind}.inputTraits", "keyboard correction capitalization"),
        }
        for kind, value in _onepassword_values(made, place).items()
    ]
    files[f"files/{place}-file__f.txt"] = made.data(f"{place}.file content")
    files[f"files/{place}-document__d.txt"] = made.data(f"{place}.document content")
    login = made.members(f"{place}.loginFields", "value id name designation") | {"fieldType": "T"}
    user = made.members(f"{place}.username", "value id name") | {"fieldType": "T", "designation": "username"}
    return {
        "uuid": f"uuid {category}",
        "favIndex": made.number(f"{place}.favIndex"),
        "createdAt": made.number(f"{place}.createdAt"),
        "updatedAt": made.number(f"{place}.updatedAt"),
        "state": "archived",
        "categoryUuid": category,
        "details": {
            "loginFields": [login, user],
            "notesPlain": made.text(f"{place}.notesPlain"),
            "password": made.text(f"{place}.password"),
            "sections": [{**made.members(f"{place}.sections", "title name"), "fields": fields}],
            "passwordHistory": [
                {"value": made.text(f"{place}.passwordHistory.value"), "time": made.number(f"{place}.passwordHistory")}
            ],
            "documentAttributes": {"fileName": "d.txt", "documentId": f"{place}-document", "decryptedSize": 1},
        },
        "overview": {
            **made.members(f"{place}.overview", "subtitle title url"),
            "urls": [made.members(f"{place}.overview.urls", "label url")],
            "ps": made.number(f"{place}.overview.ps"),
            "pbe": made.number(f"{place}.overview.pbe"),
            "pgrng": True,
            "tags": [made.text(f"{place}.overview.tags")],
        },
    }


def onepassword(made: Canaries) -> bytes:
    """An item of each category, with a field of each kind."""
    files: dict[str, bytes] = {}
    items = [
        _onepassword_item(made, category, files)
        for category in ("001", "002", "003", "004", "005", "006", "103", "106", "108", "110", "112", "114", "999")
    ]
    items.append({"uuid": "t", "state": "trashed", "overview": {"title": made.text("trash.title")}})
    files["files/nobody__x"] = made.data("a file of no item")
    vault = {"attrs": made.members("vault", "uuid desc avatar name type"), "items": items}
    empty = {"attrs": made.members("empty vault", "uuid desc name"), "items": []}
    account = {"attrs": made.members("account", "accountName name avatar email uuid domain"), "vaults": [vault, empty]}
    attributes = {"version": 3, "description": made.text("export.attributes"), "createdAt": made.number("createdAt")}
    data = {"export.attributes": json.dumps(attributes).encode()}
    return corpora.zipped(data | {"export.data": json.dumps({"accounts": [account]}).encode()} | files)


# KeePass

_META: Final = (
    "Generator SettingsChanged HeaderHash DatabaseName DatabaseNameChanged DatabaseDescription "
    "DatabaseDescriptionChanged DefaultUserName DefaultUserNameChanged MaintenanceHistoryDays Color "
    "MasterKeyChanged MasterKeyChangeRec "
    "MasterKeyChangeForce MasterKeyChangeForceOnce RecycleBinEnabled RecycleBinChanged EntryTemplatesGroup "
    "EntryTemplatesGroupChanged HistoryMaxItems HistoryMaxSize LastSelectedGroup LastTopVisibleGroup"
)
_GROUP: Final = (
    "Name Notes IconID CustomIconUUID IsExpanded DefaultAutoTypeSequence EnableAutoType EnableSearching "
    "LastTopVisibleEntry PreviousParentGroup Tags"
)
_ENTRY: Final = (
    "UUID IconID CustomIconUUID ForegroundColor BackgroundColor OverrideURL QualityCheck Tags PreviousParentGroup"
)
_TIMES: Final = "CreationTime LastModificationTime LastAccessTime ExpiryTime UsageCount LocationChanged"


def _elements(made: Canaries, place: str, names: str) -> str:
    return "".join(f"<{name}>{made.text(f'{place}.{name}')}</{name}>" for name in names.split())


def _custom_data(made: Canaries, place: str) -> str:
    return f"<CustomData><Item>{_elements(made, f'{place}.CustomData', 'Key Value')}</Item></CustomData>"


def _group(made: Canaries, place: str, inner: str) -> str:
    times = f"<Times>{_elements(made, f'{place}.Times', _TIMES)}<Expires>True</Expires></Times>"
    return f"<Group>{_elements(made, place, _GROUP)}{times}{_custom_data(made, place)}{inner}</Group>"


def _string(made: Canaries, place: str, name: str, attributes: str = "") -> str:
    return f"<String><Key>{name}</Key><Value{attributes}>{made.text(f'{place}.{name}')}</Value></String>"


def _entry(made: Canaries, place: str, *, binary: str = "", attributes: str = "") -> str:
    times = f"<Times>{_elements(made, f'{place}.Times', _TIMES)}<Expires>True</Expires></Times>"
    strings = "".join(_string(made, place, name) for name in ("Title", "UserName", "Password", "URL", "Notes", "otp"))
    strings += _string(made, place, made.text(f"{place}.own key"), attributes)
    association = f"<Association>{_elements(made, f'{place}.AutoType', 'Window KeystrokeSequence')}</Association>"
    auto = _elements(made, f"{place}.AutoType", "Enabled DataTransferObfuscation DefaultSequence")
    old = f"<Entry>{_string(made, f'{place}.History', 'Password')}</Entry>"
    return (
        f"<Entry>{_elements(made, place, _ENTRY)}{times}{strings}{binary}<AutoType>{auto}{association}</AutoType>"
        f"{_custom_data(made, place)}<History>{old}</History></Entry>"
    )


def keepass(made: Canaries) -> bytes:
    """Groups in groups: with entries, with encrypted ones only, and with nothing; the recycle bin, icons and files."""
    named, unnamed = made.data("Binaries.Binary"), made.data("Binaries.Binary of nobody")
    binaries = "".join(
        f'<Binary ID="{number}">{base64.b64encode(data).decode()}</Binary>'
        for number, data in enumerate((named, unnamed))
    )
    icon = f"<Icon>{_elements(made, 'CustomIcons.Icon', 'UUID Data Name LastModificationTime')}</Icon>"
    protection = "<MemoryProtection><ProtectTitle>False</ProtectTitle></MemoryProtection>"
    meta = (
        f"<Meta>{_elements(made, 'Meta', _META)}<RecycleBinUUID>BIN</RecycleBinUUID>{protection}"
        f"<CustomIcons>{icon}</CustomIcons><Binaries>{binaries}</Binaries>{_custom_data(made, 'Meta')}</Meta>"
    )
    entry = _entry(made, "Entry", binary='<Binary><Key>a.txt</Key><Value Ref="0"/></Binary>')
    closed = _group(made, "encrypted group", _entry(made, "encrypted", attributes=' Protected="True"'))
    empty = _group(made, "empty group", "")
    quiet = f"<Group><Name>{made.text('quiet group.Name')}</Name></Group>"
    bin_ = f"<Group><UUID>BIN</UUID><Notes>{made.text('bin.Notes')}</Notes>{_entry(made, 'deleted')}</Group>"
    of_bin = f"<Group><Name>{made.text('group of the bin.Name')}</Name>{bin_}</Group>"
    deleted = f"<DeletedObject>{_elements(made, 'DeletedObjects', 'UUID DeletionTime')}</DeletedObject>"
    inner = _group(made, "Group", entry) + closed + empty + quiet + of_bin
    database = f"<Group><UUID>R</UUID>{_elements(made, 'database group', 'Name Notes')}{inner}</Group>"
    loose = _entry(made, "entry in no group")
    root = f"<Root>{database}{loose}<DeletedObjects>{deleted}</DeletedObjects></Root>"
    return f"<KeePassFile>{meta}{root}</KeePassFile>".encode()


# CSV and variables


def _csv(head: str) -> Callable[[Canaries], bytes]:
    names = head.split(",")

    def make(made: Canaries) -> bytes:
        cells = [made.text(f"column {number} {name}") for number, name in enumerate(names)]
        cells[0] = f"Database/{cells[0]}" if names[0] == "Group" else cells[0]
        return f"{head}\n{','.join(cells)}\n".encode()

    return make


def variables(made: Canaries) -> bytes:
    """Comments of every kind."""
    first, second = made.text("comment before"), made.text("comment beside")
    return (
        f"# {first}\n\nA={made.text('value')} # {second}\nB='{made.text('quoted value')}' # {made.text('beside B')}\n"
        f"#{made.text('comment at the end')}\n"
    ).encode()


WHOLE: Final[dict[str, tuple[str, Callable[[Canaries], bytes]]]] = {
    "CXF": ("cxf", cxf),
    "Bitwarden": ("bitwarden", bitwarden),
    "1PUX": ("1pux", onepassword),
    "KeePass": ("keepass-xml", keepass),
    "CSV of KeePassXC": (
        "keepass-csv",
        _csv("Group,Title,Username,Password,URL,Notes,TOTP,Icon,Last Modified,Created,Title,Novel"),
    ),
    "CSV of KeePass": ("keepass-csv", _csv("Account,Login Name,Password,Web Site,Comments")),
    "CSV of Chrome": ("chrome", _csv("name,url,username,password,note,notes,title,URL,novel,novel")),
    "CSV of Firefox": (
        "firefox",
        _csv("url,username,password,httpRealm,formActionOrigin,guid,timeCreated,timeLastUsed,timePasswordChanged"),
    ),
    "CSV of Safari": ("safari", _csv("Title,URL,Username,Password,Notes,OTPAuth")),
    "variables": ("dotenv", variables),
}
