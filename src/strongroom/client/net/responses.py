"""Responses as typed values. What cannot be read is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from strongroom import rules
from strongroom.client.errors import Tampered
from strongroom.model import ApiKey, Document, User
from strongroom.model import Vault as VaultRow
from strongroom.wire import ListedSession

T = TypeVar("T")
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")
_UNREADABLE: Final = "The server's answer cannot be read."


class SignedIn(Struct, frozen=True, rename="camel"):
    """An opened session."""

    access_token: str
    user: User
    refresh_token: str = ""

    def __repr__(self) -> str:
        return f"SignedIn(user={self.user!r})"


class Tokens(Struct, frozen=True, rename="camel"):
    """A new access token, and the refresh token that goes with it, if it was changed."""

    access_token: str
    refresh_token: str = ""

    def __repr__(self) -> str:
        return "Tokens(...)"


class Prelogin(Struct, frozen=True):
    """How an account's password is derived, as the server says it."""

    kdf: msgspec.Raw


class StoredKeyring(Struct, frozen=True, rename="camel"):
    """A keyring as the server keeps it."""

    keyring: str
    version: int
    kdf: msgspec.Raw = msgspec.Raw(b"null")

    def __repr__(self) -> str:
        return f"StoredKeyring(version={self.version})"


class Vault(VaultRow, frozen=True, rename="camel", kw_only=True):
    """A vault, and the epoch of the database that stores it."""

    epoch: str = ""


class Vaults(Struct, frozen=True):
    """The vaults of an account."""

    vaults: list[Vault]


class Page(Struct, frozen=True, rename="camel"):
    """Documents in the order of `updatedAt`."""

    documents: list[Document]
    has_more: bool
    next: int


class Results(Struct, frozen=True):
    """What became of the operations of a batch."""

    results: list[Document]


class Health(Struct, frozen=True):
    """The epoch of the server's database."""

    epoch: str = ""


class NewKey(Struct, frozen=True):
    """A new API key."""

    uid: str
    key: str

    def __repr__(self) -> str:
        return f"NewKey(uid={self.uid!r})"


class Keys(Struct, frozen=True):
    """The API keys of an account."""

    keys: list[ApiKey]


class Sessions(Struct, frozen=True):
    """The open sessions of an account."""

    sessions: list[ListedSession]


def reads(kind: type[T]) -> Callable[[bytes], T]:
    """A function that reads this kind of answer."""
    decoder = msgspec.json.Decoder(kind)

    def read(body: bytes) -> T:
        try:
            return decoder.decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise Tampered(_UNREADABLE) from None

    return read


def _within(*numbers: int | None) -> None:
    """Refuse numbers that no server can store: what comes of them further on is nobody's promise."""
    if any(number is not None and not 0 <= number <= rules.LARGEST for number in numbers):
        raise Tampered(_UNREADABLE)


def _document(row: Document) -> Document:
    _within(row.version, row.created_at, row.updated_at, row.deleted_at)
    return row


def _vault(row: Vault) -> Vault:
    _within(row.version, row.updated_at, row.documents, row.bytes)
    return row


def _bearer(token: str) -> None:
    """Refuse a token that no header can carry."""
    if not _TOKEN.fullmatch(token):
        raise Tampered(_UNREADABLE)


_read_document = reads(Document)
_read_page = reads(Page)
_read_signed_in = reads(SignedIn)
_read_tokens = reads(Tokens)
_read_vault = reads(Vault)
_read_vaults = reads(Vaults)
_read_results = reads(Results)


def document(body: bytes) -> Document:
    """One document."""
    return _document(_read_document(body))


def page(body: bytes) -> Page:
    """A list of documents."""
    found = _read_page(body)
    for row in found.documents:
        _document(row)
    return found


def vault(body: bytes) -> Vault:
    """One vault."""
    return _vault(_read_vault(body))


def vaults(body: bytes) -> Vaults:
    """All vaults."""
    found = _read_vaults(body)
    for row in found.vaults:
        _vault(row)
    return found


def results(body: bytes) -> Results:
    """What became of a batch."""
    found = _read_results(body)
    for row in found.results:
        _document(row)
    return found


def signed_in(body: bytes) -> SignedIn:
    """A session that was opened."""
    found = _read_signed_in(body)
    _bearer(found.access_token)
    return found


def tokens(body: bytes) -> Tokens:
    """Tokens in the place of those that have run out."""
    found = _read_tokens(body)
    _bearer(found.access_token)
    return found


def anything(body: bytes) -> Any:
    """An answer of which nothing is used."""
    return body


prelogin = reads(Prelogin)
stored_keyring = reads(StoredKeyring)
health = reads(Health)
new_key = reads(NewKey)
keys = reads(Keys)
sessions = reads(Sessions)
