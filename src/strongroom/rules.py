"""Rules that need no database: limits, validation of values, scopes of API keys."""

from __future__ import annotations

import re
import string
import unicodedata
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from strongroom.errors import InsufficientScope, VaultNotFound
from strongroom.model import DOCUMENT_ROW_BYTES, Document, Permission, Vault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.model import Actor, ApiKey, Invitation

S = TypeVar("S", Vault, Document)

MINUTE: Final = 60_000
FAILURE_WINDOW: Final = 15 * MINUTE
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR
FAILURES_PER_ACCOUNT: Final = 10  # failures of one account from one address in a window; the next is refused
FAILURES_PER_ADDRESS: Final = 100  # failures of one address over all accounts and secrets
SESSIONS_PER_ACCOUNT: Final = 100
TICKET_LIFETIME: Final = 5 * MINUTE  # of a login whose second factor is still to come
TICKETS_PER_ACCOUNT: Final = 100
ENROLMENT_LIFETIME: Final = HOUR  # in which an enrolment must be confirmed
INVITATION_DAYS: Final = 30  # that an invitation is kept after it was used or has expired
TAKEN_EMAILS: Final = 10  # emails that have an account, which an invitation may be tried with
MAX_INVITATION: Final = 366 * DAY  # the longest lifetime of an invitation
MAX_NOTE: Final = 255  # characters of an invitation's note
EVENTS_PER_TYPE: Final = 200  # in an account's log
KEY_SHARE_GRACE: Final = HOUR  # a key share outlives the access token that came with it by this
REUSE_GRACE: Final = 30_000  # a superseded refresh token used this soon comes from a second browser tab
CHALLENGE_LIFETIME: Final = 5 * MINUTE  # of a ceremony with a passkey
CHALLENGES_PER_ACCOUNT: Final = 20  # that are open; the oldest makes room
CHALLENGES_PER_ADDRESS: Final = 1_000  # that are open; the next is refused
PASSKEYS_PER_ACCOUNT: Final = 20
KEYS_PER_ACCOUNT: Final = 100  # API keys; an account that has more keeps them
MAX_KEY_SCOPE: Final = 16_384  # bytes of the scope of an API key in JSON, as it is stored
VAULTS_PER_ACCOUNT: Final = 1_000  # an account that has more keeps them
VAULT_CHANGES_PER_ACCOUNT: Final = 4_000  # the oldest make room; an import adds one for each vault
DELETIONS_PER_ACCOUNT: Final = 1_000  # deleted vaults that are not forgotten yet; the next is to be tried again
WAITING_DELETIONS: Final = 20  # of these, whose rows wait; from half of it on, the next deletion deletes some of them
TOKENS_PER_SESSION: Final = 1_000  # refresh tokens; the oldest make room. A week of quarter hours has 672
MAX_COLLECTION: Final = 512  # bytes of a collection; longer ones would take a page of an index each
MAX_EMAIL: Final = 254  # characters of an email
MAX_DEVICE_NAME: Final = 128  # characters of the name of a session's device
MAX_KEYRING: Final = 262_144  # characters of a keyring
RETENTION_MINIMUM: Final = 1024 * 1024  # bytes that trash and history may take, however small the quota
ROWS_MINIMUM: Final = 1024 * 1024  # bytes that the rows of documents may take, however small the quota
MAX_KDF: Final = 2_048  # bytes of a key-derivation descriptor in JSON
MAX_OPERATIONS: Final = 1_000  # in one batch
MAX_INTEGER: Final = 2**63 - 1  # the largest integer that both engines store
MAX_IMPORTED: Final = 2**52  # the largest time and version of an import: both are incremented from there
MAX_NEW_VERSION: Final = 2**52  # the largest version that a client may choose: far below 2**53, where JSON ends

_BASE64 = (string.ascii_letters + string.digits + "+/-_").encode()
_AT_ONCE = 32 * 1024  # characters that are copied at a time: memory for all of a long text takes longer than the check
_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def is_base64(text: str) -> bool:
    """Whether a text is in the base64 or base64url alphabet, with at most two characters of padding."""
    if not text.isascii():
        return False
    start = max(0, len(text) - _AT_ONCE)
    if start and any(
        text[at : min(at + _AT_ONCE, start)].encode("ascii").translate(None, _BASE64)
        for at in range(0, start, _AT_ONCE)
    ):
        return False
    body = text[start:].encode("ascii")
    rest = body.translate(None, _BASE64)
    return not rest or (rest in b"==" and body.endswith(rest) and len(body) > len(rest))


def has_control(text: str) -> bool:
    """Whether a text contains a control character."""
    return _CONTROL.search(text) is not None


def octets(*texts: str | None) -> int:
    """The size of these texts in UTF-8, as they are stored."""
    total = 0
    for text in texts:
        if text is not None:
            total += len(text) if text.isascii() else len(text.encode())
    return total


def is_collection(text: str) -> bool:
    """Whether a collection is short enough in UTF-8, as it is stored."""
    return len(text) <= MAX_COLLECTION // 4 or octets(text) <= MAX_COLLECTION


def retention_limit(quota: int | None) -> int | None:
    """The limit of trash and history in bytes: as much again as the quota; None does not limit."""
    return None if quota is None else max(quota, RETENTION_MINIMUM)


def row_limit(quota: int | None) -> int | None:
    """The limit of the rows of documents in bytes: as much again as the quota; None does not limit."""
    return None if quota is None else max(quota, ROWS_MINIMUM)


def row_bytes(collection: str) -> int:
    """What the row of a document counts beside its ciphertext, live or deleted, until its vault is deleted."""
    return DOCUMENT_ROW_BYTES + octets(collection)


def normalise_email(text: str) -> str:
    """The canonical form of an email: trimmed, and A to Z in lower case."""
    return lower_ascii(text.strip())


def lower_ascii(text: str) -> str:
    """A text with A to Z in lower case. The case of other letters differs between languages and versions of Unicode."""
    return text.translate(_LOWER)


def is_email(text: str) -> bool:
    """Whether a normalised email is valid."""
    before, _, after = text.partition("@")
    return 3 <= len(text) <= MAX_EMAIL and bool(before and after) and "@" not in after and not has_control(text)


def is_new_email(text: str) -> bool:
    """Whether an account may be made with a normalised email: one with invisible characters looks like another."""
    return is_email(text) and not any(unicodedata.category(sign) == "Cf" for sign in text)


def invitation_state(invitation: Invitation, now: int) -> str:
    """The state of an invitation: open, used, expired, or blocked by too many emails that have an account."""
    if invitation.used_at is not None:
        return "used"
    if invitation.expires_at <= now:
        return "expired"
    return "open" if invitation.taken_emails < TAKEN_EMAILS else "blocked"


def may_read(actor: Actor) -> bool:
    """Whether the actor may read stored ciphertext, and not only what it has just sent."""
    return actor.key is None or actor.key.permissions is None or Permission.READ in actor.key.permissions


def may_see_blobs(actor: Actor) -> bool:
    """Whether the actor may read a vault's blob: it is in no collection, so a key limited to collections may not."""
    return actor.key is None or actor.key.collections is None


def visible_to(actor: Actor, stored: S, sent: object = None) -> S:
    """A vault or a document with only what the actor may see; every response with stored data goes through this.

    Ciphertext is visible to an actor that may read it or has `sent` it in the same request; the counts of a vault to
    one that may read all of it. Names, collections, versions and times are visible if the object is in scope.
    """
    if may_read(actor) and (isinstance(stored, Document) or may_see_blobs(actor)):
        return stored
    empty: dict[str, Any] = {"data": None, "salt": None} if isinstance(stored, Vault) else {"data": "", "hmac": None}
    hidden = {name: value for name, value in empty.items() if getattr(sent, name, None) != getattr(stored, name)}
    if isinstance(stored, Vault):
        hidden |= {"documents": None, "bytes": None}
    return msgspec.structs.replace(stored, **hidden)


def is_restricted(actor: Actor) -> bool:
    """Whether the actor is a key limited to vaults or collections."""
    return actor.key is not None and (actor.key.vault_uids is not None or actor.key.collections is not None)


def require(key: ApiKey | None, permission: Permission | None, *, whole_account: bool = False) -> None:
    """Refuse an API key that lacks the permission; with `whole_account`, also one limited to vaults or collections."""
    if key is None:
        return
    if permission is not None and key.permissions is not None and permission not in key.permissions:
        raise InsufficientScope(f"This API key lacks the permission '{permission}'.")
    if whole_account and (key.vault_uids is not None or key.collections is not None):
        raise InsufficientScope("An API key limited to vaults or collections cannot create, rename or delete vaults.")


def require_vault(actor: Actor, vault_uid: str) -> None:
    """Refuse a vault outside the key's scope, exactly like one that does not exist."""
    if actor.key is not None and actor.key.vault_uids is not None and vault_uid not in actor.key.vault_uids:
        raise VaultNotFound


def require_collection(actor: Actor, collection: str) -> None:
    """Refuse a collection outside the key's scope."""
    if not in_scope(actor, collection):
        raise InsufficientScope("This API key does not reach that collection.")


def in_scope(actor: Actor, collection: str) -> bool:
    """Whether a collection is in the actor's scope."""
    return actor.key is None or actor.key.collections is None or collection in actor.key.collections


def reaches(actor: Actor, vault_uid: str, collection: str) -> bool:
    """Whether a vault and a collection are in the actor's scope."""
    vaults = None if actor.key is None else actor.key.vault_uids
    return (vaults is None or vault_uid in vaults) and in_scope(actor, collection)


def require_any(key: ApiKey | None, *permissions: Permission) -> None:
    """Refuse an API key that has none of these permissions."""
    if key is not None and key.permissions is not None and not set(permissions) & set(key.permissions):
        lacking = "' and '".join(permissions)
        raise InsufficientScope(f"This API key lacks the permissions '{lacking}'.")


def collections_of(actor: Actor, named: str | None) -> Sequence[str] | None:
    """The collections of a list: the requested one, those of the key's scope, or None for all."""
    if named is not None:
        require_collection(actor, named)
        return (named,)
    return None if actor.key is None else actor.key.collections
