"""Decoders of responses. What is not a response that this server can give is Tampered."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from strongroom import rules
from strongroom.client.errors import Tampered
from strongroom.model import Document, SecondFactors, VaultBlob
from strongroom.wire import responses

T = TypeVar("T")
_ENROLMENT: Final = re.compile(r"otpauth://totp/[!-~]{1,2048}")
_BASE32: Final = re.compile(r"[A-Z2-7]{16,128}")
_RECOVERY_CODE: Final = re.compile(r"[0-9A-Z-]{16,40}")
_TOKEN: Final = re.compile(r"[!-~]{1,16384}")
_UNREADABLE: Final = "The server's answer cannot be read."


def decoder(kind: type[T]) -> Callable[[bytes], T]:
    """A function that decodes responses of this kind."""
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        try:
            return decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            raise Tampered(_UNREADABLE) from None

    return read


def _within(*numbers: int | None) -> None:
    """Refuse numbers that no server can store: the rest of the client relies on their range."""
    if any(number is not None and not 0 <= number <= rules.MAX_INTEGER for number in numbers):
        raise Tampered(_UNREADABLE)


def _document(row: Document) -> Document:
    if not (
        0 <= row.version <= rules.MAX_INTEGER
        and 0 <= row.created_at <= rules.MAX_INTEGER
        and 0 <= row.updated_at <= rules.MAX_INTEGER
        and (row.deleted_at is None or 0 <= row.deleted_at <= rules.MAX_INTEGER)
    ):
        raise Tampered(_UNREADABLE)
    return row


def _vault(row: responses.Vault) -> responses.Vault:
    _within(row.version, row.updated_at, row.documents, row.bytes)
    return row


def _bearer(token: str) -> None:
    """Refuse a token that no header can carry."""
    if not _TOKEN.fullmatch(token):
        raise Tampered(_UNREADABLE)


_decode_blob_versions = decoder(responses.BlobVersions)
_decode_added_passkey = decoder(responses.AddedPasskey)
_decode_enrolment = decoder(responses.Enrolment)
_decode_recovery_codes = decoder(responses.RecoveryCodes)
_decode_document = decoder(Document)
_decode_documents = decoder(responses.Documents)
_decode_history = decoder(responses.History)
_decode_me = decoder(responses.Me)
_decode_purged = decoder(responses.Purged)
_decode_results = decoder(responses.Results)
_decode_signed_in = decoder(responses.SignedIn)
_decode_tokens = decoder(responses.Tokens)
_decode_vault = decoder(responses.Vault)
_decode_vaults = decoder(responses.Vaults)


def document(body: bytes) -> Document:
    """One document."""
    return _document(_decode_document(body))


def documents(body: bytes) -> responses.Documents:
    """A page of documents."""
    found = _decode_documents(body)
    for row in found.documents:
        _document(row)
    return found


def vault(body: bytes) -> responses.Vault:
    """Get a vault."""
    return _vault(_decode_vault(body))


def vaults(body: bytes) -> responses.Vaults:
    """All vaults."""
    found = _decode_vaults(body)
    for row in found.vaults:
        _vault(row)
    return found


def results(body: bytes) -> responses.Results:
    """The results of a batch."""
    found = _decode_results(body)
    for row in found.results:
        _document(row)
    return found


def signed_in(body: bytes) -> responses.SignedIn:
    """A new session."""
    found = _decode_signed_in(body)
    _bearer(found.access_token)
    return found


def tokens(body: bytes) -> responses.Tokens:
    """The tokens that replace expired ones."""
    found = _decode_tokens(body)
    _bearer(found.access_token)
    return found


def enrolment(body: bytes) -> responses.Enrolment:
    """The secret of one-time codes. The URI is shown or opened, so it is one of one-time codes with this secret."""
    found = _decode_enrolment(body)
    if not _BASE32.fullmatch(found.secret) or not _ENROLMENT.fullmatch(found.uri) or found.secret not in found.uri:
        raise Tampered(_UNREADABLE)
    return found


def recovery_codes(body: bytes) -> list[str]:
    """Recovery codes."""
    return _recovery_codes(_decode_recovery_codes(body).recovery_codes)


def added_passkey(body: bytes) -> responses.AddedPasskey:
    """A new passkey, and recovery codes if it is the first second factor."""
    found = _decode_added_passkey(body)
    _recovery_codes(found.recovery_codes or [])
    return found


def _recovery_codes(found: list[str]) -> list[str]:
    if len(found) > 100 or not all(_RECOVERY_CODE.fullmatch(code) for code in found):
        raise Tampered(_UNREADABLE)
    return found


def ignored(body: bytes) -> Any:
    """A response whose body is not used."""
    return body


def history(body: bytes) -> responses.History:
    """Versions of documents that were replaced."""
    found = _decode_history(body)
    _within(found.next, *(one.version for one in found.versions))
    return found


def blob_versions(body: bytes) -> responses.BlobVersions:
    """Versions of a vault's blob that were replaced."""
    found = _decode_blob_versions(body)
    _within(*(number for one in found.versions for number in (one.version, one.updated_at)))
    return found


def purged(body: bytes) -> responses.Purged:
    """How many deleted documents were purged."""
    found = _decode_purged(body)
    _within(found.purged)
    return found


def me(body: bytes) -> responses.Me:
    """The account, its usage and its limits."""
    found = _decode_me(body)
    if found.usage is not None:
        _within(found.usage.documents, found.usage.bytes, found.usage.kept)
    if found.limits is not None:
        _within(found.limits.documents, found.limits.bytes)
    return found


blob_version = decoder(VaultBlob)
derivation = decoder(responses.Derivation)
keyring = decoder(responses.Keyring)
imported = decoder(responses.Imported)
health = decoder(responses.Health)
new_key = decoder(responses.NewApiKey)
keys = decoder(responses.ApiKeys)
collections = decoder(responses.Collections)
events = decoder(responses.Events)
sessions = decoder(responses.Sessions)
second_factors = decoder(SecondFactors)
passkeys = decoder(responses.Passkeys)
passkey_request = decoder(responses.PasskeyRequest)
passkey_creation = decoder(responses.PasskeyCreation)
