"""JSON in and out, shared by server and client: what a request may carry, and how a bad one is explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeVar

import msgspec
from msgspec import Meta, Struct

from strongroom import identifiers, rules
from strongroom.errors import Invalid
from strongroom.model import Document, Event, Permission, User, Vault

_encoder = msgspec.json.Encoder()
encode = _encoder.encode
encode_into = _encoder.encode_into
T = TypeVar("T", bound="Body")

# What a field is, and the sentence that explains it when it is wrong. Patterns end in \Z: in Python, `$` lets a
# trailing line feed through.
_NAME_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+\Z"
_INT64 = {"ge": -(2**63), "le": rules.LARGEST}


def _meta(says: str, **limits: Any) -> Meta:
    return Meta(description=says[0].upper() + says[1:] + ".", extra={"says": says}, **limits)


Email = Annotated[str, _meta("must be an email address of 3 to 254 characters with one @")]
NewPassword = Annotated[str, _meta("must be 8 to 1024 characters", min_length=8, max_length=1024)]
Flag = Annotated[bool, _meta("must be true or false")]
Text = Annotated[str, _meta("must be a string")]
Name = Annotated[
    str,
    _meta(
        "must be 1 to 255 characters without control characters", min_length=1, max_length=255, pattern=_NAME_PATTERN
    ),
]
Uid = Annotated[str, _meta("must be a UUID, like 0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")]
Ciphertext = Annotated[
    str,
    _meta(
        "must be base64 or base64url ciphertext of 1 character or more; encrypt it before sending, "
        "this server takes no plaintext",
        min_length=1,
    ),
]
Blob = Annotated[str, _meta("must be a string of 1 character or more", min_length=1)]
Salt = Annotated[str, _meta("must be base64 or base64url, up to 1024 characters", max_length=1024)]
Hmac = Annotated[str, _meta("must be a string of up to 1024 characters, or null", max_length=1024)]
Version = Annotated[int, _meta("must be an integer: the version you last saw", **_INT64)]
Moment = Annotated[int, _meta("must be an integer of Unix milliseconds", **_INT64)]
_AT_MOST = 100
Permissions = Annotated[
    list[Permission],
    _meta("must be a list of one or more of 'read', 'write' and 'delete'", min_length=1, max_length=_AT_MOST),
]
Uids = Annotated[
    list[Uid], _meta("must be a list of 1 to 100 UUIDs of your own vaults", min_length=1, max_length=_AT_MOST)
]
Collections = Annotated[
    list[Name], _meta("must be a list of 1 to 100 collection names", min_length=1, max_length=_AT_MOST)
]


def _is_uid(value: str) -> bool:
    return identifiers.canonical(value) is not None


def _is_email(value: str) -> bool:
    return rules.is_email(rules.normal_email(value))


def _are_uids(value: list[str]) -> bool:
    return all(map(_is_uid, value))


class Body(Struct, frozen=True, rename="camel"):
    """A request's body. `checks` are the rules that a type cannot say; `together` those between fields."""

    checks: ClassVar[dict[str, Callable[[Any], bool]]] = {}

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:  # noqa: ARG004
        """What is wrong between the fields, by field."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"  # bodies hold passwords, tokens and ciphertext


class Register(Body, frozen=True):
    """A new account."""

    email: Email
    password: NewPassword
    checks = {"email": _is_email}


class LogIn(Body, frozen=True):
    """An email and a password. Their form is not judged here: a wrong one is a wrong login."""

    email: Text
    password: Text


class Refresh(Body, frozen=True):
    """A refresh token, to be exchanged."""

    refresh_token: Text


class LogOut(Body, frozen=True):
    """Nothing is required to log out; `everywhere` ends all sessions."""

    everywhere: Flag = False


class ChangePassword(Body, frozen=True):
    """The password that is, and the one that shall be."""

    current_password: Text
    new_password: NewPassword


class DeleteAccount(Body, frozen=True):
    """The password, as proof."""

    password: Text


def _blob_whole(given: dict[str, Any]) -> dict[str, str]:
    has = [given.get(name) is not None for name in ("data", "salt")]
    if has == [True, False]:
        return {"salt": "is required together with data"}
    if has == [False, True]:
        return {"data": "is required together with salt"}
    return {}


class CreateContainer(Body, frozen=True):
    """A vault that holds documents only (Variant A)."""

    name: Name
    uid: Uid | None = None
    checks = {"uid": _is_uid}

    data: ClassVar[None] = None
    salt: ClassVar[None] = None


class CreateBlob(Body, frozen=True):
    """A vault that carries a blob (Variant B)."""

    name: Name
    data: Blob
    salt: Salt
    uid: Uid | None = None
    checks = {"uid": _is_uid, "salt": rules.is_base64}


class CreateVault(Body, frozen=True):
    """A vault: with `data` and `salt` it carries a blob, without them it is a plain container."""

    name: Name
    data: Blob | None = None
    salt: Salt | None = None
    uid: Uid | None = None
    checks = {"uid": _is_uid, "salt": rules.is_base64}
    together = staticmethod(_blob_whole)


class RenameVault(Body, frozen=True):
    """A new name for a vault (Variant A)."""

    name: Name
    version: Version | None = None

    data: ClassVar[None] = None
    salt: ClassVar[None] = None


class PutBlob(Body, frozen=True):
    """A new blob for a vault (Variant B). Without a version, the last writer wins."""

    data: Blob
    salt: Salt
    version: Version | None = None
    checks = {"salt": rules.is_base64}

    name: ClassVar[None] = None


def _vault_change(given: dict[str, Any]) -> dict[str, str]:
    if all(given.get(name) is None for name in ("name", "data", "salt")):
        return {"name": "is required, or data and salt are"}
    return _blob_whole(given)


class PutVault(Body, frozen=True):
    """A new blob for a vault (`data` and `salt`), a new name (`name`, then `version` is required), or both."""

    name: Name | None = None
    data: Blob | None = None
    salt: Salt | None = None
    version: Version | None = None
    checks = {"salt": rules.is_base64}
    together = staticmethod(_vault_change)


class CreateDocument(Body, frozen=True):
    """A new document."""

    collection: Name
    data: Ciphertext
    hmac: Hmac | None = None
    uid: Uid | None = None
    checks = {"data": rules.is_base64, "uid": _is_uid}


class PutDocument(Body, frozen=True):
    """New ciphertext for a document, and the version that the client last saw."""

    data: Ciphertext
    hmac: Hmac | None = None
    version: Version | None = None
    checks = {"data": rules.is_base64}


class DeleteDocument(Body, frozen=True):
    """Optionally, the version that the client last saw."""

    version: Version | None = None


class CreateApiKey(Body, frozen=True):
    """A new API key; a scope that is absent does not limit it."""

    name: Name
    expires_at: Moment | None = None
    permissions: Permissions | None = None
    vault_uids: Uids | None = None
    collections: Collections | None = None
    checks = {"vault_uids": _are_uids}


# Answers


class Tokens(Struct, frozen=True, rename="camel"):
    """A new pair of tokens."""

    access_token: str
    refresh_token: str

    def __repr__(self) -> str:
        return "Tokens(...)"


class SignedIn(Struct, frozen=True, rename="camel"):
    """An opened session. `token` is the access token again, as published clients of this API expect it."""

    access_token: str
    refresh_token: str
    user: User
    token: str

    def __repr__(self) -> str:
        return f"SignedIn(user={self.user!r})"


class KeyAbout(Struct, frozen=True, rename="camel"):
    """What an API key may learn of itself."""

    uid: str
    name: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None


class Me(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The current user, and the API key if one was presented."""

    user: User
    api_key: KeyAbout | None = None


class Health(Struct, frozen=True):
    """The process is alive."""

    status: str
    timestamp: int


class Done(Struct, frozen=True):
    """It is done."""

    success: bool = True


class Deleted(Struct, frozen=True, rename="camel"):
    """A document's tombstone."""

    success: bool
    uid: str
    vault_uid: str
    collection: str
    data: str
    hmac: str | None
    version: int
    created_at: int
    updated_at: int
    deleted_at: int | None

    def __repr__(self) -> str:
        return f"Deleted(uid={self.uid!r}, version={self.version})"


class Vaults(Struct, frozen=True):
    """The vaults of the current user."""

    vaults: list[Vault]


class Documents(Struct, frozen=True, rename="camel"):
    """Documents in the order of `updatedAt`. `next` is the `since` of the next request."""

    documents: list[Document]
    has_more: bool
    next: int


class Synced(Struct, frozen=True, rename="camel"):
    """A list of documents; `syncedAt` is `next` again, as published clients of this API expect it."""

    documents: list[Document]
    has_more: bool
    next: int
    synced_at: int


class NewApiKey(Struct, frozen=True, rename="camel"):
    """A new API key. `key` is shown in this answer and never again."""

    uid: str
    name: str
    key: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None
    created_at: int

    def __repr__(self) -> str:
        return f"NewApiKey(uid={self.uid!r})"


class ListedApiKey(Struct, frozen=True, rename="camel"):
    """An API key without its secret."""

    uid: str
    name: str
    permissions: list[Permission] | None
    vault_uids: list[str] | None
    collections: list[str] | None
    expires_at: int | None
    created_at: int
    last_used_at: int | None


class ApiKeys(Struct, frozen=True):
    """The active API keys of the current user."""

    keys: list[ListedApiKey]


class ListedSession(Struct, frozen=True, rename="camel"):
    """A session; `current` is the one that asks."""

    id: str
    created_at: int
    last_used_at: int
    address: str | None
    user_agent: str | None
    current: bool


class Sessions(Struct, frozen=True):
    """The open sessions of the current user, the one used last first."""

    sessions: list[ListedSession]


class Events(Struct, frozen=True, rename="camel"):
    """Lines of the account's log, newest first. `before` of the next request is the last one's id."""

    events: list[Event]
    has_more: bool


class Fault(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Why a request was refused."""

    code: str
    message: str
    request_id: str
    details: dict[str, Any] | None = None


class Failure(Struct, frozen=True):
    """The body of every answer from status 400 up."""

    error: Fault


# Reading a body

_decoders: dict[type[Body], msgspec.json.Decoder[Any]] = {}


def decode(kind: type[T], body: bytes) -> T:
    """Read a body, or refuse it with every bad field named at once."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        if not body.isascii():
            body.decode()  # msgspec does not look into the strings of fields that it skips
        value: T = decoder.decode(body or b"{}")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _second_look(kind, body)
    for name, good in kind.checks.items():
        field = getattr(value, name)
        if field is not None and not good(field):
            return _second_look(kind, body)
    if kind.together is not Body.together and kind.together(msgspec.to_builtins(value)):
        return _second_look(kind, body)
    return value


def _second_look(kind: type[T], body: bytes) -> T:
    """Go field by field through a body that did not pass at once.

    It may be good all the same: of a key that is given twice the last counts, and the first may have been nonsense.
    """
    given = _object(body)
    bad: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in given:
            if field.required:
                bad[field.encode_name] = "is required"
            continue
        try:
            value = msgspec.convert(given[field.encode_name], field.type)
        except (msgspec.ValidationError, ValueError):
            bad[field.encode_name] = says(field.type)
            continue
        check = kind.checks.get(field.name)
        if check is not None and value is not None and not check(value):
            bad[field.encode_name] = says(field.type)
    for name, sentence in kind.together(given).items():
        bad.setdefault(name, sentence)
    if bad:
        raise Invalid(bad)
    return msgspec.convert(given, kind)


def _object(body: bytes) -> dict[str, Any]:
    """A body as plain data, or the sentence that says why it is none."""
    try:
        given = msgspec.json.decode(body.decode() or "{}")
    except UnicodeDecodeError:
        raise Invalid({"body": "must be text in UTF-8"}, "The request body is not UTF-8.") from None
    except RecursionError:
        raise Invalid({"body": "is nested too deeply"}, "The request body is nested too deeply.") from None
    except (msgspec.MsgspecError, ValueError):
        raise Invalid({"body": "must be well-formed JSON"}, "The request body is not well-formed JSON.") from None
    if not isinstance(given, dict):
        raise Invalid({"body": "must be a JSON object"}, "The request body must be a JSON object.")
    return given


def says(annotation: Any) -> str:
    """The sentence that explains a field's type."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, Meta) and note.extra:
                return str(note.extra["says"])
    return "is not valid"
