"""Sealed rows, as properties: what goes in comes out, and nothing else comes out anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strongroom.client.errors import Tampered
from strongroom.client.format import box, padding, primitives, seal
from strongroom.client.format.content import EMPTY, to_content, to_value
from strongroom.client.format.keys import AccountKey, CollectionKey, VaultKey
from strongroom.errors import Invalid
from strongroom.model import Document, Vault

KEYS = AccountKey.new()
OTHER = AccountKey.new()
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
UID = "0192f0c2-0000-7000-8000-000000000001"

names = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=255)
uids = st.uuids().map(str)
versions = st.integers(1, 2**63 - 2)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
values = st.binary(max_size=2000) | json_values


def row_of(keys: CollectionKey, uid: str, version: int, sealed: seal.Sealed, deleted_at: int | None = None) -> Document:
    return Document(uid, keys.vault, keys.collection, sealed.data, sealed.hmac, version, 1, 1, deleted_at)


def refused(keys: CollectionKey, row: Document) -> bool:
    try:
        seal.open_document(keys, row)
    except Tampered:
        return True
    return False


@given(vault=uids, collection=names, uid=uids, version=versions, value=values)
def test_what_is_sealed_opens(vault: str, collection: str, uid: str, version: int, value: Any) -> None:
    """Any value, anywhere, opens to itself."""
    keys = KEYS.vault(vault).collection(collection)
    opened = seal.open_document(keys, row_of(keys, uid, version, seal.seal_document(keys, uid, version, value)))
    assert opened.value == value
    assert type(opened.value) is type(value)
    assert (opened.uid, opened.version, opened.deleted, opened.purged) == (uid, version, False, False)


@given(uid=uids, version=versions, value=values | st.none())
def test_a_deletion_is_proven(uid: str, version: int, value: Any) -> None:
    """A notice is a deletion as it is, under a tombstone, and after the trash is emptied."""
    keys = KEYS.vault(VAULT).collection("notes")
    sealed = seal.seal_deletion(keys, uid, version, EMPTY if value is None else to_content(value))
    for row in (row_of(keys, uid, version, sealed), row_of(keys, uid, version + 1, sealed, 5)):
        opened = seal.open_document(keys, row)
        assert opened.deleted
        assert opened.value == value
    purged = seal.open_document(keys, row_of(keys, uid, version + 1, seal.Sealed("", sealed.hmac), 5))
    assert purged.deleted
    assert purged.purged
    assert purged.content == EMPTY


def test_every_flipped_bit_is_seen() -> None:
    """Each single bit of `data` and `hmac`, of a document and of a tombstone, turned over: all refused."""
    keys = KEYS.vault(VAULT).collection("notes")
    live = row_of(keys, UID, 1, seal.seal_document(keys, UID, 1, {"a": 1}))
    dead = row_of(keys, UID, 3, seal.seal_deletion(keys, UID, 2), 5)
    for row in (live, dead):
        for field in ("data", "hmac"):
            for changed in flips(getattr(row, field)):
                assert refused(keys, msgspec.structs.replace(row, **{field: changed}))
    for changed in flips(dead.hmac or ""):
        assert refused(keys, msgspec.structs.replace(dead, data="", hmac=changed))


def flips(text: str) -> Iterator[str]:
    """The text with each of its bits turned over."""
    raw = bytearray(text, "ascii")
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        yield raw.decode("latin-1")
        raw[at // 8] ^= 1 << at % 8


def test_every_flipped_bit_of_a_blob_is_seen() -> None:
    """Each single bit of a blob's `data` and `salt`, turned over: all refused."""
    keys = KEYS.vault(VAULT)
    sealed = seal.seal_blob(keys, "personal", 1, b"blob")
    vault = Vault(VAULT, "personal", 1, 1, data=sealed.data, salt=sealed.salt)
    assert seal.open_blob(keys, vault).data == b"blob"
    for field, text in (("data", sealed.data), ("salt", sealed.salt)):
        for changed in flips(text):
            with pytest.raises(Tampered):
                seal.open_blob(keys, msgspec.structs.replace(vault, **{field: changed}))


@settings(max_examples=200)
@given(data=st.data(), deletion=st.booleans(), purged=st.booleans())
def test_a_row_stays_in_its_place(data: st.DataObject, deletion: bool, purged: bool) -> None:  # noqa: FBT001
    """A row in another account, vault, collection, under another uid or version is refused, deleted or not."""
    vault, collection, uid, version = data.draw(uids), data.draw(names), data.draw(uids), data.draw(versions)
    keys = KEYS.vault(vault).collection(collection)
    sealed = (
        seal.seal_deletion(keys, uid, version) if deletion else seal.seal_document(keys, uid, version, {"moved": False})
    )
    row = row_of(keys, uid, version + deletion, sealed, 5 if deletion else None)
    if deletion and purged:
        row = msgspec.structs.replace(row, data="")
    seal.open_document(keys, row)
    other_vault, other_name = data.draw(uids), data.draw(names)
    for there in (
        OTHER.vault(vault).collection(collection),
        KEYS.vault(other_vault).collection(collection),
        KEYS.vault(vault).collection(other_name),
        CollectionKey.of(OTHER.account, vault, collection, keys.key),
        CollectionKey.of(keys.account, other_vault, collection, keys.key),
        CollectionKey.of(keys.account, vault, other_name, keys.key),
    ):
        moved = msgspec.structs.replace(row, vault_uid=there.vault, collection=there.collection)
        assert there == keys or refused(there, moved)
    for uid_ in (data.draw(uids), uid.upper()):
        assert uid_ == uid or refused(keys, msgspec.structs.replace(row, uid=uid_))
    for version_ in (row.version + 1, row.version - 1, data.draw(st.integers(-5, 2**64))):
        assert version_ == row.version or refused(keys, msgspec.structs.replace(row, version=version_))


@given(a=versions, b=versions, value=values)
def test_a_tombstone_needs_its_own_notice(a: int, b: int, value: Any) -> None:
    """Neither a document nor the notice of another version makes a tombstone believable."""
    keys = KEYS.vault(VAULT).collection("notes")
    sealed = seal.seal_document(keys, UID, a, value)
    for version in (a, a + 1, b):
        assert refused(keys, row_of(keys, UID, version, sealed, 5))
        assert refused(keys, row_of(keys, UID, version, seal.Sealed("", sealed.hmac), 5))
    notice = seal.seal_deletion(keys, UID, a)
    assert b == a + 1 or refused(keys, row_of(keys, UID, b, notice, 5))
    assert b == a + 1 or refused(keys, row_of(keys, UID, b, seal.Sealed("", notice.hmac), 5))


@given(length=st.integers(0, 2**40))
def test_lengths_follow_padme(length: int) -> None:
    """A padded length is no shorter, at most twelve in a hundred longer, and has few significant bits."""
    padded = padding.padded_length(length)
    assert padded >= max(length, 256)
    assert padding.padded_length(padded) == padded
    if length > 256:
        assert padded - length <= length * 0.12
        significant = padded.bit_length() - (padded & -padded).bit_length() + 1
        assert significant <= (length.bit_length() - 1).bit_length() + 1


@given(value=st.binary(max_size=5000))
def test_the_wire_shows_the_padded_length_only(value: bytes) -> None:
    """The length of `data` follows from the padded length alone."""
    keys = KEYS.vault(VAULT).collection("notes")
    data = seal.seal_document(keys, UID, 1, value).data
    raw = 2 + box.OVERHEAD + padding.padded_length(5 + len(value))
    assert len(data) == -(-raw // 3) * 4


def test_no_key_seals_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand sealed rows, half of them the same value in the same place, no two share a key."""
    used: list[bytes] = []
    real = primitives.encrypt

    def watched(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
        used.append(key)
        return real(key, plaintext, associated)

    monkeypatch.setattr(primitives, "encrypt", watched)
    keys = KEYS.vault(VAULT).collection("notes")
    datas = {seal.seal_document(keys, UID, 1 + at % 2, b"same").data for at in range(10_000)}
    assert len(used) == len(set(used)) == len(datas) == 10_000
    assert len({data[4:40] for data in datas}) == 10_000


@pytest.mark.parametrize("at", [0, 40, 70, -1])
def test_what_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Where the machine turns a bit over while sealing, nothing is handed out."""
    real = box.seal

    def faulty(key: bytes, salt: bytes, plaintext: bytes, associated: bytes) -> bytes:
        made = bytearray(real(key, salt, plaintext, associated))
        made[at] ^= 1
        return bytes(made)

    monkeypatch.setattr(box, "seal", faulty)
    keys = KEYS.vault(VAULT)
    for attempt in (
        lambda: seal.seal_document(keys.collection("notes"), UID, 1, b"x"),
        lambda: seal.seal_deletion(keys.collection("notes"), UID, 1),
        lambda: seal.seal_blob(keys, "personal", 1, b"x"),
    ):
        with pytest.raises(Tampered):
            attempt()


_ENDLESS: list[Any] = []
_ENDLESS.append(_ENDLESS)


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, float, "\ud800", {"a": "\udfff"}, float("nan"), [float("inf")], {"a": b"b"}, _ENDLESS],
    ids=range(9),
)
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    """A value that cannot be sealed is the caller's mistake, and says so."""
    with pytest.raises(Invalid):
        to_content(value)


@pytest.mark.parametrize(
    ("value", "read"),
    [((1, 2), [1, 2]), ({1: None}, {"1": None}), (2**70, 2**70), (bytearray(b"x"), b"x"), (True, True), (1.5, 1.5)],
)
def test_values_come_back_as_json_has_them(value: object, read: object) -> None:
    """A tuple is a list, a key is a text; numbers keep their size."""
    back = to_value(to_content(value))
    assert back == read
    assert type(back) is type(read)


@pytest.mark.parametrize("version", [0, -1, 2**63])
def test_a_version_out_of_range_is_not_sealed(version: int) -> None:
    """A version that the server cannot store is the caller's mistake."""
    with pytest.raises(Invalid):
        seal.seal_document(KEYS.vault(VAULT).collection("notes"), UID, version, 1)


def test_json_that_is_none_is_tampered() -> None:
    """Content that says that it is JSON and is not was made by a broken client."""
    keys = KEYS.vault(VAULT).collection("notes")
    broken = padding.Content(padding.JSON, b"{")
    sealed = seal.seal_content(keys, seal.DOCUMENT, UID, 1, broken, primitives.random)
    opened = seal.open_document(keys, row_of(keys, UID, 1, sealed))
    with pytest.raises(Tampered):
        _ = opened.value


def test_a_vault_without_a_blob_opens_nothing() -> None:
    """A plain container has no blob to believe."""
    keys: VaultKey = KEYS.vault(VAULT)
    with pytest.raises(Tampered):
        seal.open_blob(keys, Vault(VAULT, "personal", 1, 1))
