"""Guards to take away, one at a time: with each of them gone, these attacks succeed (docs/testing.md)."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
import msgspec
import pytest

from strongroom.client.format import keyring, keyring_merge, seal
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.padding import Content
from strongroom.client.format.parents import Descent
from strongroom.client.format.seal import Opened, Verified
from strongroom.client.net import decoders, http, requests
from strongroom.client.net.effects import Effects
from strongroom.client.operations import (
    collections,
    documents,
    factors,
    history,
    keyrings,
    listing,
    rollback,
    sessions_and_keys,
    vaults,
)
from strongroom.client.operations.device import Device
from strongroom.client.operations.usage_and_log import LogPages
from strongroom.client.replica import blobs, incoming, outgoing, unlock
from strongroom.client.replica.conflicts import Conflict
from strongroom.client.replica.pull import Pull
from strongroom.client.replica.store.documents import DocumentTable
from strongroom.client.replica.sync import Sync


class Guard(NamedTuple):
    """How a guard is taken away, and which attacks it stood against: of a client, or of a replica."""

    away: Callable[[pytest.MonkeyPatch], None]
    client: tuple[str, ...] = ()
    replica: tuple[str, ...] = ()


def replaced(*places: tuple[Any, str, Any]) -> Callable[[pytest.MonkeyPatch], None]:
    """Other functions in the place of these."""

    def away(patch: pytest.MonkeyPatch) -> None:
        for owner, name, other in places:
            patch.setattr(owner, name, other)

    return away


def nothing(*_: Any, **__: Any) -> None:
    """Check nothing."""


def yes(*_: Any, **__: Any) -> bool:
    """Find nothing wrong."""
    return True


def opened_as_it_says(keys: Any, row: Any) -> Opened:
    """Believe `deletedAt`."""
    if row.deleted_at is None:
        return _open(keys, row)
    return Opened(
        uid=row.uid,
        version=row.version,
        generation=1,
        parent=seal.parent_of(row.hmac),
        deleted=True,
        purged=False,
        content=Content(0, b""),
    )


def verified_as_it_says(keys: Any, row: Any) -> Verified:
    """Believe `deletedAt`, for a replica."""
    if row.deleted_at is None:
        return _verify(keys, row)
    parent = seal.parent_of(row.hmac)
    return Verified(uid=row.uid, version=row.version, generation=1, parent=parent, deleted=True, purged=not row.data)


def loosely(keys: Any, *_: Any) -> bytes:
    """A row that is bound to nothing but its collection's key."""
    account: bytes = keys.account
    return account


def last_row(page: Any, at: Any, since: int, limit: int | None, *, deleted: bool) -> int:
    """Go on wherever the page says."""
    del at, limit, deleted
    return max([row.updated_at for row in page.documents], default=since)


def misses_nothing(_listing: Any) -> Effects[None]:
    """Do not look for what is missing."""
    return
    yield


def blob_as_shown(_local: Any, _scope: Any, _record: Any, row: Any) -> Effects[Any]:
    """Keep whatever blob the server shows."""
    return row, 0
    yield


def vault_as_shown(core: Any, vault: Any) -> Effects[Any]:
    """Take whatever vault the server shows."""
    vault = vaults.renewed(core, vault)
    row = yield from core.session.send(requests.vaults.get(vault.uid))
    return vault, row, False


def no_steps(*_: Any, **__: Any) -> Effects[None]:
    """Check nothing, and ask for nothing."""
    return
    yield


def of_one_generation(hmac: str) -> tuple[int, bytes]:
    """Take every row as one under the newest key."""
    return 1, seal.parent_of(hmac)


def follows(*_: Any) -> Descent:
    """Take every newer row as one that knew of what was seen."""
    return Descent.FOLLOWS


def restated(local: Any, scope: Any, uid: str, base: int) -> Any:
    """Send the same content again, sealed anew above what the server has."""
    row = local.file.documents.get(scope.vault, uid)
    keys = scope.key(row.collection)
    content = seal.open_document(keys, row).content
    parent, version = seal.parent_of(row.hmac), row.version + 1
    made = seal.seal_content(keys, seal.DOCUMENT, uid, version, content, parent=parent, wire=row.collection)
    prepared = _repeated(local, scope, uid, base)
    operation = requests.batches.put_operation(uid, made, base, version)
    return msgspec.structs.replace(prepared, operations=[operation], versions=[version], last=made)


def always_new(_self: Any, _row: Any) -> bool:
    """Pull whatever the server shows."""
    return True


def always_fresh(seen: Any, row: Any) -> bool:
    """Take every row over."""
    return (
        seen is None or seen[0] != row.version or seen[1] != row.hmac or seen[2:4] != (row.created_at, row.updated_at)
    )


def as_shown(token: Any, keys: Any, wire: str) -> Any:
    """Take the server's word for whether names are sealed."""
    sealed = wire.startswith("sr2.")
    return vaults.OpenVault(uid=token.vault, name=token.name, wire=wire, sealed=sealed, keys=keys, wires=(wire,))


def no(*_: Any, **__: Any) -> bool:
    """Find nothing."""
    return False


def loose_base64(text: str) -> bytes:
    """Read whatever a decoder of base64 takes."""
    return base64.b64decode(text)


class Believing(http._BoundedBody):
    """An answer without a bound, from wherever it comes."""

    def __init__(self, wanted: Any, response: Any, timeout: float) -> None:
        del wanted, timeout
        self._max_bytes = 1 << 40
        self._response = response
        self._parts: list[bytes] = []
        self._length = 0
        self._end = float("inf")


class Following(httpx2.Client):
    """A line that goes where it is sent."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "follow_redirects": True})


class AsyncFollowing(httpx2.AsyncClient):
    """The same, awaited."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{**options, "follow_redirects": True})


_open, _verify, _repeated = seal.open_document, seal.verify_document, outgoing._repeated
_update_wire = vaults.update_wire

GUARDS: dict[str, Guard] = {
    "that base64 has one spelling": Guard(
        replaced((keyring, "from_base64", loose_base64), (seal, "from_base64", loose_base64)),
        client=("a keyring with one sign of padding too many", "salt of a blob with padding too much"),
    ),
    "the floor of the key derivation": Guard(
        replaced((Descriptor, "check", nothing)),
        client=("key derivation with less memory", "key derivation with fewer passes"),
    ),
    "what a device remembers of an account": Guard(
        replaced((Device, "record_account", nothing), (unlock, "store_keys", nothing)),
        client=("a replayed keyring", "two keyrings of one version"),
        replica=("a replayed keyring", "two keyrings of one version"),
    ),
    "that the server has kept the keyring": Guard(
        replaced((keyrings, "require_stored", nothing)), client=("a keyring that is not kept",)
    ),
    "uid and version in what a row is bound to": Guard(
        replaced((seal, "_row", loosely), (Device, "record", yes)),
        client=("ciphertext of another document", "an older version called by a newer number"),
        replica=("ciphertext of another document",),
    ),
    "that a deletion is proven": Guard(
        replaced((seal, "open_document", opened_as_it_says), (seal, "verify_document", verified_as_it_says)),
        client=("a forged tombstone", "a forged tombstone, emptied"),
        replica=("a forged tombstone", "a forged tombstone, emptied", "a new epoch and a forged tombstone"),
    ),
    "what a device remembers of a row": Guard(
        replaced((rollback, "next_row", nothing)), client=("a document that is set back", "two contents of one version")
    ),
    "the collection that a document was created in": Guard(
        replaced((rollback, "require_collection", nothing)),
        client=(
            "a document overwritten by a token for another collection",
            "a document deleted by a token for another collection",
        ),
        replica=(
            "a document overwritten by a token for another collection",
            "a document deleted by a token for another collection",
            "a new epoch and a document overwritten by a token for another collection",
            "a new epoch and an older document by a token for another collection",
        ),
    ),
    "that times stay": Guard(
        replaced((Device, "record", yes)),
        client=("another time of making", "another time of the last change", "a write from before"),
    ),
    "what a replica remembers of a row": Guard(
        replaced((incoming, "is_new", always_fresh)),
        replica=("a document that is set back", "another time of making", "an old tombstone whose trash was emptied"),
    ),
    "what a replica remembers of a vault": Guard(
        replaced((Pull, "is_new", always_new)),
        replica=("a whole vault that is set back", "a clock that is set back"),
    ),
    "what a device remembers of a vault": Guard(
        replaced((Device, "record_vault", nothing)), client=("a whole vault that is set back", "a blob that is gone")
    ),
    "that it is the vault that was asked for": Guard(
        replaced((vaults, "current_row", vault_as_shown)),
        client=("names swapped between two vaults", "another vault than the one that was asked for"),
    ),
    "that blobs are opened before they are kept": Guard(
        replaced((blobs, "reconcile", blob_as_shown)),
        replica=("a blob that is gone", "an older blob in the place of the newest"),
    ),
    "that what was written is what is answered": Guard(
        replaced((documents, "check_stored", nothing)),
        client=("another of the owner's own contents is kept", "a batch with results out of order"),
        replica=(
            "another of the owner's own contents is kept",
            "a batch with the result of another document",
            "a new epoch and what is sent again at another version",
            "a new epoch and other ciphertext for what is sent again",
        ),
    ),
    "that nothing is missed in a list": Guard(
        replaced((listing.Listing, "_check_missing", misses_nothing)),
        client=("a row is left out of a page", "a list that is cut off", "a row is left out of what has changed"),
    ),
    "the order of a list": Guard(
        replaced((listing, "check_page", last_row)),
        client=("a list that goes on further than it has shown",),
        replica=("a row twice", "rows out of order"),
    ),
    "that documents are counted": Guard(
        replaced((Pull, "_count", nothing)),
        replica=("a vault that counts other documents than it shows", "a row is left out of a page"),
    ),
    "that an answer has bounds": Guard(
        replaced((http, "_BoundedBody", Believing)), client=("a descriptor of two megabytes",)
    ),
    "that no redirect is followed": Guard(
        replaced((httpx2, "Client", Following), (httpx2, "AsyncClient", AsyncFollowing)),
        client=("a redirect to another host", "a redirect to another host, at login"),
        replica=("a permanent redirect to another host",),
    ),
    "that a bearer fits into a header": Guard(
        replaced((decoders, "_bearer", nothing)), client=("a bearer with a header in it",)
    ),
    "that a person is asked a few times at the most": Guard(
        replaced((factors, "MOST_ASKED", 6)),
        client=(
            "every second factor is answered with invalid_second_factor",
            "every second factor is answered with second_factor_required",
        ),
    ),
    "that an enrolment is one of one-time codes": Guard(
        replaced((decoders, "enrolment", decoders._decode_enrolment)),
        client=(
            "an enrolment with an address that runs in a browser",
            "an enrolment with an address with another secret",
        ),
    ),
    "that recovery codes can be printed": Guard(
        replaced((decoders, "_recovery_codes", lambda found: found)),
        client=("recovery codes with an escape sequence", "recovery codes with a thousand"),
    ),
    "that a token says whether names are sealed": Guard(
        replaced((sessions_and_keys, "token_vault", as_shown), (seal, "open_blob", nothing)),
        client=("an agent is told that names are not sealed",),
    ),
    "that a version is in the past of the current one": Guard(
        replaced((history, "_is_gap", no)),
        client=("an older version of another branch", "a history of another branch"),
    ),
    "that a history shows each version once": Guard(
        replaced((history, "_require_once", nothing)),
        client=("a history with a version twice", "a blob's history with a version twice"),
    ),
    "the order of the account's log": Guard(
        replaced((LogPages, "_check_order", nothing)), client=("an entry of the log twice", "a log out of order")
    ),
    "that the name of a collection is opened": Guard(
        replaced((collections, "_name", lambda _vault, wire: wire)),
        client=("a collection in the clear", "a collection of another vault"),
    ),
    "that a collection which was seen is missed": Guard(
        replaced((collections, "_check_missing", no_steps)), client=("a collection that is hidden",)
    ),
    "that numbers are such as a server can store": Guard(
        replaced((decoders, "_within", nothing)),
        client=("a usage below nothing", "a blob's history with a version beyond all numbers"),
    ),
    "what a row follows on": Guard(
        replaced((incoming, "trace", follows), (documents, "trace", follows)),
        client=("a write that is withheld, and another branch", "a write that is withheld, and a longer branch"),
        replica=(
            "a write that is withheld, and another branch",
            "a new epoch and a higher row of another branch",
            "a change that was refused, in the history",
        ),
    ),
    "what a blob follows on": Guard(
        replaced((vaults, "trace", follows)),
        client=("a blob that is withheld, and another branch", "an older blob of another branch"),
        replica=("a blob that is withheld, and another branch", "a new epoch and a higher blob of another branch"),
    ),
    "what a keyring follows on": Guard(
        replaced((keyring.Keyring, "follows_on", yes)),
        client=("a newer keyring, and another in between", "a newer keyring that follows on another"),
        replica=("a newer keyring, and another in between", "a newer keyring that follows on another"),
    ),
    "that a directory keeps its vaults and their keys": Guard(
        replaced((keyrings, "require_directory", nothing)),
        client=("a directory that lacks a vault which nobody deleted", "a directory with another key of a vault"),
    ),
    "that a vault which was made is missed": Guard(
        replaced((Sync, "_check_missing", no_steps)),
        replica=("a vault that is hidden", "a vault that is hidden from a new device"),
    ),
    "which rows were written here": Guard(
        replaced((DocumentTable, "is_mine", no)),
        replica=(
            "the history of a row that was written here, withheld",
            "a write that is withheld, and a branch without its history",
        ),
    ),
    "that generations do not fall": Guard(
        replaced(
            (seal, "lineage", of_one_generation),
            (seal, "require_floor", nothing),  # it refuses such a row too
            (Pull, "require_floor", no_steps),
        ),
        client=("a row under a key of before a rotation",),
        replica=("a row under a key of before a rotation",),
    ),
    "that a deletion is opened before it is kept": Guard(
        replaced((seal, "verify_document", lambda keys, row: seal._verified(keys, row)[0])),
        replica=("a deletion with other data",),
    ),
    "that a blob is opened before anything follows on it": Guard(
        replaced((seal, "open_blob", nothing)), client=("a blob of the server's own making, to be replaced",)
    ),
    "that what is here is kept beside another branch": Guard(
        replaced((incoming, "queue_local_conflict", nothing)),
        replica=(
            "a write that is withheld, and another branch",
            "a new epoch and a row of another branch",
            "a new epoch and a lower row of another branch",
        ),
    ),
    "that no resolver decides for what is not newer": Guard(
        replaced((Conflict, "needs_manual_resolution", False)),
        replica=(
            "a new epoch and a row of another branch, to keep mine",
            "a new epoch and a row of another branch, to keep theirs",
            "a new epoch and a lower row of another branch, to keep theirs",
            "a new epoch and a lower row where a change waits, to keep theirs",
        ),
    ),
    "that what is sent again is sealed no more": Guard(
        replaced((outgoing, "_repeated", restated)),
        replica=("a new epoch and an older row", "a new epoch and a row left out"),
    ),
    "that a keyring is sent again only for the same slots": Guard(
        replaced((keyring, "slots_of", nothing)), replica=("a new epoch and an older keyring with other slots",)
    ),
    "that keyrings are merged only where their keys agree": Guard(
        replaced((keyring_merge, "_vault", lambda one, _other: one)),
        replica=("a new epoch and an older keyring with another key",),
    ),
    "that a name is mended only on what the replica has": Guard(
        replaced((vaults, "update_wire", lambda core, vault, _seen=None: _update_wire(core, vault))),
        replica=("a vault of before it was renamed",),
    ),
    "that a blob is sent again only where it follows": Guard(
        replaced((blobs, "_is_past", yes)), replica=("a new epoch and a lower blob of another branch",)
    ),
}
