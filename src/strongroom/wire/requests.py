"""Request bodies: their fields, the rules of each, and the sentence that explains it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, ClassVar, TypeAlias

from msgspec import Meta, Struct

from strongroom import descriptors, identifiers, rules
from strongroom.model import Permission
from strongroom.wire import webauthn

# What a field is, and the sentence that explains it when it is wrong. Patterns end in \Z: in Python, `$` lets a
# trailing line feed through.
_NAME_PATTERN = r"^[^\x00-\x1f\x7f-\x9f]+\Z"
_INT64 = {"ge": -(2**63), "le": rules.MAX_INTEGER}


def _meta(says: str, **limits: Any) -> Meta:
    return Meta(description=says[0].upper() + says[1:] + ".", extra={"says": says}, **limits)


Email = Annotated[str, _meta("must be an email address of 3 to 254 characters with one @")]
NewPassword = Annotated[str, _meta("must be 8 to 1024 characters", min_length=8, max_length=1024)]
Invitation = Annotated[
    str, _meta("must be an invitation as the operator of this server gave it, of up to 100 characters", max_length=100)
]
Code = Annotated[
    str, _meta("must be a one-time code: six digits, with or without a space", pattern=r"^[0-9]{3} ?[0-9]{3}\Z")
]
RecoveryCode = Annotated[
    str, _meta("must be one of the account's recovery codes, of up to 100 characters", max_length=100)
]
Flag = Annotated[bool, _meta("must be true or false")]
Text = Annotated[str, _meta("must be a string")]
Name = Annotated[
    str,
    _meta(
        "must be 1 to 255 characters without control characters", min_length=1, max_length=255, pattern=_NAME_PATTERN
    ),
]
Collection = Annotated[
    str,
    _meta(
        f"must be 1 to 255 characters without control characters, of at most {rules.MAX_COLLECTION} bytes in UTF-8",
        min_length=1,
        max_length=255,
        pattern=_NAME_PATTERN,
    ),
]
DeviceName = Annotated[
    str,
    _meta(
        f"must be 1 to {rules.MAX_DEVICE_NAME} characters without control characters",
        min_length=1,
        max_length=rules.MAX_DEVICE_NAME,
        pattern=_NAME_PATTERN,
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
KeyShare = Annotated[
    str,
    _meta(
        "must be 32 bytes in base64: 44 characters", pattern=r"^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=\Z", max_length=44
    ),
]
Version = Annotated[int, _meta("must be an integer: the version you last saw", **_INT64)]
NewVersion = Annotated[
    int,
    _meta(
        "must be an integer from 1 to 2^52, above the stored version: the version that this is to have",
        ge=1,
        le=rules.MAX_NEW_VERSION,
    ),
]
Timestamp = Annotated[int, _meta("must be an integer of Unix milliseconds", **_INT64)]
Kdf = Annotated[
    dict[str, str | Annotated[int, Meta(**_INT64)] | bool],
    _meta(
        "must be an object of 1 to 16 fields that are texts, integers or booleans, of at most 2048 bytes in JSON",
        min_length=1,
        max_length=16,
    ),
]
Wrapped = Annotated[
    str,
    _meta(
        "must be base64 or base64url of 1 to 262144 characters; wrap the keys before sending, this server takes none",
        min_length=1,
        max_length=rules.MAX_KEYRING,
    ),
]
_AT_MOST = 100
Permissions = Annotated[
    list[Permission],
    _meta("must be a list of one or more of 'read', 'write' and 'delete'", min_length=1, max_length=_AT_MOST),
]
Uids = Annotated[
    list[Uid], _meta("must be a list of 1 to 100 UUIDs of your own vaults", min_length=1, max_length=_AT_MOST)
]
Collections = Annotated[
    list[Collection], _meta("must be a list of 1 to 100 collection names", min_length=1, max_length=_AT_MOST)
]


def _is_uid(value: str) -> bool:
    return identifiers.canonical(value) is not None


def _is_email(value: str) -> bool:
    text = value.strip()  # first, for to put a long text into lower case takes long
    return len(text) <= rules.MAX_EMAIL and rules.is_email(rules.normalise_email(text))


def _is_new_email(value: str) -> bool:
    return _is_email(value) and rules.is_new_email(rules.normalise_email(value))


def _is_kdf(value: dict[str, str | int | bool]) -> bool:
    return rules.octets(descriptors.canonical_json(value)) <= rules.MAX_KDF


def _are_collections(value: list[str]) -> bool:
    return all(map(rules.is_collection, value))


def _are_uids(value: list[str]) -> bool:
    return all(map(_is_uid, value))


class Body(Struct, frozen=True, rename="camel"):
    """A request's body. `checks` are the rules that a type cannot say; `together` those between fields."""

    checks: ClassVar[dict[str, Callable[[Any], bool]]] = {}
    lists: ClassVar[dict[str, dict[str, type[Body]]]] = {}  # fields that are lists of bodies, by the tag of each

    @staticmethod
    def together(given: dict[str, Any]) -> dict[str, str]:  # noqa: ARG004
        """What is wrong between the fields, by field."""
        return {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"  # bodies hold passwords, tokens and ciphertext


_NO_PRF = "without clientExtensionResults.prf.results, which is a key that no server may have"
NewPasskey = Annotated[
    webauthn.RegisteredCredential, _meta(f"must be a registered credential as a browser gives it in JSON, {_NO_PRF}")
]
PasskeyAssertion = Annotated[
    webauthn.AssertedCredential, _meta(f"must be the assertion of a passkey as a browser gives it in JSON, {_NO_PRF}")
]


class SecondFactor(Body, frozen=True):
    """A second factor: exactly one of a one-time code, a recovery code and a passkey."""

    code: Code | None = None
    recovery_code: RecoveryCode | None = None
    passkey: PasskeyAssertion | None = None


def _is_one_factor(given: SecondFactor) -> bool:
    return sum(getattr(given, name) is not None for name in given.__struct_fields__) == 1


OneFactor = Annotated[
    SecondFactor,
    _meta("must be an object with one of code, a one-time code of six digits, recoveryCode, and passkey, an assertion"),
]


class Register(Body, frozen=True):
    """A new account, with what its client keeps here for itself, if it does."""

    email: Email
    password: NewPassword
    kdf: Kdf | None = None
    keyring: Wrapped | None = None
    device_name: DeviceName | None = None
    invitation: Invitation | None = None
    checks = {"email": _is_new_email, "kdf": _is_kdf, "keyring": rules.is_base64}


class Prelogin(Body, frozen=True):
    """An email, whose password is about to be derived."""

    email: Email
    checks = {"email": _is_email}


class LogIn(Body, frozen=True):
    """An email and a password. Their form is not judged here: a wrong one is a wrong login."""

    email: Text
    password: Text
    device_name: DeviceName | None = None


class FinishLogin(Body, frozen=True):
    """The ticket of a login, and the second factor that it lacks."""

    ticket: Text
    second_factor: OneFactor
    checks = {"second_factor": _is_one_factor}


class Refresh(Body, frozen=True):
    """A refresh token, to be exchanged."""

    refresh_token: Text


class PutKeyShare(Body, frozen=True):
    """A share of a key, for this session."""

    key_share: KeyShare


class LogOut(Body, frozen=True):
    """Nothing is required to log out; `everywhere` ends all sessions."""

    everywhere: Flag = False


def _versioned(given: dict[str, Any]) -> dict[str, str]:
    if given.get("keyring") is not None and given.get("keyringVersion") is None:
        return {"keyringVersion": "is required together with keyring: the version you last saw, 0 if there is none"}
    return {}


class ChangePassword(Body, frozen=True):
    """The password that is, and the one that shall be, with how it is derived and what is wrapped under it."""

    current_password: Text
    new_password: NewPassword
    kdf: Kdf | None = None
    keyring: Wrapped | None = None
    keyring_version: Version | None = None
    keyring_new_version: NewVersion | None = None
    second_factor: OneFactor | None = None
    checks = {"kdf": _is_kdf, "keyring": rules.is_base64, "second_factor": _is_one_factor}
    together = staticmethod(_versioned)


def _with_proof(given: dict[str, Any]) -> dict[str, str]:
    if given.get("kdf") is not None and given.get("currentPassword") is None:
        return {"currentPassword": "is required together with kdf"}
    return {}


class PutKeyring(Body, frozen=True):
    """A keyring in the place of the one that the client last saw; where slots or `kdf` change, with the password."""

    keyring: Wrapped
    version: Version | None = None
    new_version: NewVersion | None = None
    kdf: Kdf | None = None
    current_password: Text | None = None
    second_factor: OneFactor | None = None
    checks = {"keyring": rules.is_base64, "kdf": _is_kdf, "second_factor": _is_one_factor}
    together = staticmethod(_with_proof)


class DeleteAccount(Body, frozen=True):
    """The password, as proof; where the account has a second factor, with it."""

    password: Text
    second_factor: OneFactor | None = None
    checks = {"second_factor": _is_one_factor}


class ChangeSecondFactor(Body, frozen=True):
    """The password, as proof of a change of second factors; where the account has one, with it."""

    current_password: Text
    second_factor: OneFactor | None = None
    checks = {"second_factor": _is_one_factor}


class ConfirmOneTimeCodes(Body, frozen=True):
    """The first one-time code of an enrolment."""

    code: Code


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
    new_version: NewVersion | None = None

    data: ClassVar[None] = None
    salt: ClassVar[None] = None


class PutBlob(Body, frozen=True):
    """A new blob for a vault (Variant B). Without a version, the last writer wins."""

    data: Blob
    salt: Salt
    version: Version | None = None
    new_version: NewVersion | None = None
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
    new_version: NewVersion | None = None
    checks = {"salt": rules.is_base64}
    together = staticmethod(_vault_change)


class CreateDocument(Body, frozen=True):
    """A new document."""

    collection: Collection
    data: Ciphertext
    hmac: Hmac | None = None
    uid: Uid | None = None
    new_version: NewVersion | None = None
    checks = {"collection": rules.is_collection, "data": rules.is_base64, "uid": _is_uid}


class PutDocument(Body, frozen=True):
    """New ciphertext for a document, and the version that the client last saw."""

    data: Ciphertext
    hmac: Hmac | None = None
    version: Version | None = None
    new_version: NewVersion | None = None
    checks = {"data": rules.is_base64}


class DeleteDocument(Body, frozen=True):
    """Optionally, the version that the client last saw."""

    version: Version | None = None


class CreateOperation(CreateDocument, frozen=True, tag_field="op", tag="create"):
    """A new document, in a batch."""


class PutOperation(PutDocument, frozen=True, kw_only=True, tag_field="op", tag="put"):
    """New ciphertext for a document, in a batch."""

    uid: Uid
    version: Version
    checks = {**PutDocument.checks, "uid": _is_uid}


class DeleteOperation(DeleteDocument, frozen=True, kw_only=True, tag_field="op", tag="delete"):
    """The deletion of a document, in a batch."""

    uid: Uid
    checks = {"uid": _is_uid}


Operation: TypeAlias = CreateOperation | PutOperation | DeleteOperation
Operations = Annotated[
    list[Operation],
    _meta(f"must be a list of 1 to {rules.MAX_OPERATIONS} operations", min_length=1, max_length=rules.MAX_OPERATIONS),
]


def _are_good(operations: list[Operation]) -> bool:
    return all(
        value is None or good(value)
        for operation in operations
        for name, good in operation.checks.items()
        for value in (getattr(operation, name),)
    )


class Batch(Body, frozen=True):
    """Operations on the documents of a vault, of which all are done or none."""

    operations: Operations
    checks = {"operations": _are_good}
    lists = {"operations": {"create": CreateOperation, "put": PutOperation, "delete": DeleteOperation}}


class CreateApiKey(Body, frozen=True):
    """A new API key; a scope that is absent does not limit it."""

    name: Name
    expires_at: Timestamp | None = None
    permissions: Permissions | None = None
    vault_uids: Uids | None = None
    collections: Collections | None = None
    checks = {"vault_uids": _are_uids, "collections": _are_collections}


def _one_proof(given: dict[str, Any]) -> dict[str, str]:
    has = [given.get(name) is not None for name in ("currentPassword", "passkey")]
    if has == [False, False]:
        return {"currentPassword": "is required, or the assertion of a passkey is"}
    if has == [True, True]:
        return {"passkey": "cannot stand beside currentPassword; as a second factor it belongs into secondFactor"}
    return {}


class ProvePasskeyChange(Body, frozen=True):
    """The password and the second factor if there is one, or a passkey, which is both; before passkeys change."""

    current_password: Text | None = None
    second_factor: OneFactor | None = None
    passkey: PasskeyAssertion | None = None
    checks = {"second_factor": _is_one_factor}
    together = staticmethod(_one_proof)


class AddPasskey(Body, frozen=True):
    """A new passkey, its name, and whether its authenticator can unlock keys."""

    name: DeviceName
    credential: NewPasskey
    prf: Flag = False


class RenamePasskey(Body, frozen=True):
    """Another name for a passkey."""

    name: DeviceName


class BeginPasskeyLogin(Body, frozen=True):
    """The ticket of a login with the password, if the passkey is to be its second factor."""

    ticket: Text | None = None


class PasskeyLogIn(Body, frozen=True):
    """An assertion of a passkey, in the place of email and password."""

    credential: PasskeyAssertion
    device_name: DeviceName | None = None
