"""Guards to take away, one at a time: with each of them gone, these attacks succeed (docs/testing.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import httpx2
import pytest

from strongroom.client.format import seal
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.padding import Content
from strongroom.client.format.seal import Opened, Verified
from strongroom.client.net import decoders, http
from strongroom.client.net.effects import Effects
from strongroom.client.operations import accounts, documents, listing, rollback, sessions_and_keys, vaults
from strongroom.client.operations.device import Device
from strongroom.client.replica import incoming, unlock
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


def blob_as_shown(_self: Any, _scope: Any, _record: Any, row: Any) -> Effects[Any]:
    """Keep whatever blob the server shows."""
    return row
    yield


def check_no_vault(*_: Any, **__: Any) -> Effects[None]:
    """Take whatever vault the server shows."""
    return
    yield


def always_new(_self: Any, _row: Any) -> bool:
    """Pull whatever the server shows."""
    return True


def always_fresh(seen: Any, row: Any) -> bool:
    """Take every row over."""
    return seen is None or seen[0] != row.version or seen[1] != row.hmac or seen[2:] != (row.created_at, row.updated_at)


def as_shown(token: Any, keys: Any, wire: str) -> Any:
    """Take the server's word for whether names are sealed."""
    sealed = wire.startswith("sr2.")
    return vaults.OpenVault(uid=token.vault, name=token.name, wire=wire, sealed=sealed, keys=keys, wires=(wire,))


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


_open, _verify = seal.open_document, seal.verify_document

GUARDS: dict[str, Guard] = {
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
        replaced((accounts, "_require_stored", nothing)), client=("a keyring that is not kept",)
    ),
    "uid and version in what a row is bound to": Guard(
        replaced((seal, "_row", loosely), (Device, "record", yes)),
        client=("ciphertext of another document", "an older version called by a newer number"),
        replica=("ciphertext of another document",),
    ),
    "that a deletion is proven": Guard(
        replaced((seal, "open_document", opened_as_it_says), (seal, "verify_document", verified_as_it_says)),
        client=("a forged tombstone", "a forged tombstone, emptied"),
        replica=("a forged tombstone", "a forged tombstone, emptied"),
    ),
    "what a device remembers of a row": Guard(
        replaced((rollback, "next_row", nothing)), client=("a document that is set back", "two contents of one version")
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
        replaced((Sync, "_is_new", always_new)),
        replica=("a whole vault that is set back", "a clock that is set back"),
    ),
    "what a device remembers of a vault": Guard(
        replaced((Device, "record_vault", nothing)), client=("a whole vault that is set back", "a blob that is gone")
    ),
    "that it is the vault that was asked for": Guard(
        replaced((vaults, "check_vault", check_no_vault)),
        client=("names swapped between two vaults", "another vault than the one that was asked for"),
    ),
    "that blobs are opened before they are kept": Guard(
        replaced((Sync, "_meet_blob", blob_as_shown)),
        replica=("a blob that is gone", "an older blob in the place of the newest"),
    ),
    "that what was written is what is answered": Guard(
        replaced((documents, "check_stored", nothing)),
        client=("another of the owner's own contents is kept",),
        replica=("another of the owner's own contents is kept",),
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
        replaced((Sync, "_count", nothing)),
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
    "that a token says whether names are sealed": Guard(
        replaced((sessions_and_keys, "token_vault", as_shown)), client=("an agent is told that names are not sealed",)
    ),
}
