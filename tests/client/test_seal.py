"""Sealed rows, as properties: what goes in comes out, and nothing else comes out anywhere."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strongroom.client.errors import Locked, Tampered, Unsupported
from strongroom.client.format import box, encoding, names, padding, parents, primitives, seal
from strongroom.client.format.content import EMPTY, to_content, to_value
from strongroom.client.format.keys import CollectionKey, CollectionKeys, VaultKeys
from strongroom.client.format.parents import Descent
from strongroom.errors import Invalid
from strongroom.model import Document, Vault

ACCOUNT, OTHER = primitives.random(16), primitives.random(16)
KEY, OTHER_KEY, NEXT_KEY = primitives.random(32), primitives.random(32), primitives.random(32)
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
UID = "0192f0c2-0000-7000-8000-000000000001"
FORMAT_BITS = 8 * 4  # of the signs that name the format: `sr2.`, and the first byte in base64

titles = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=255)
uids = st.uuids().map(str)
versions = st.integers(1, 2**53 - 2)
hashes = st.binary(min_size=16, max_size=16)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
values = st.binary(max_size=2000) | json_values


def vault_keys(vault: str = VAULT, account: bytes = ACCOUNT, keys: tuple[bytes, ...] = (KEY,)) -> VaultKeys:
    return VaultKeys.build(account, vault, list(enumerate(keys, 1)))


def collection_keys(keys: VaultKeys, name: str = "notes") -> CollectionKeys:
    return CollectionKeys(
        account=keys.account,
        vault=keys.vault,
        name=name,
        wires=(name,),
        keys=tuple(key.collection(name) for key in keys.keys),
    )


NOTES = collection_keys(vault_keys())


def row_of(
    keys: CollectionKeys, uid: str, version: int, sealed: seal.Sealed, deleted_at: int | None = None
) -> Document:
    return Document(uid, keys.vault, keys.wire, sealed.data, sealed.hmac, version, 1, 1, deleted_at)


def fails_to_open(keys: CollectionKeys, row: Document) -> bool:
    try:
        seal.open_document(keys, row)
    except Tampered:
        return True
    return False


@given(vault=uids, collection=titles, uid=uids, version=versions, value=values, parent=hashes)
def test_what_is_sealed_opens(vault: str, collection: str, uid: str, version: int, value: Any, parent: bytes) -> None:
    """Any value, anywhere, opens to itself, and says what it follows on."""
    keys = collection_keys(vault_keys(vault), collection)
    sealed = seal.seal_document(keys, uid, version, value, parent=parent)
    opened = seal.open_document(keys, row_of(keys, uid, version, sealed))
    assert (opened.parent, opened.generation) == (parent, 1)
    assert opened.value == value
    assert type(opened.value) is type(value)
    assert (opened.uid, opened.version, opened.deleted, opened.purged) == (uid, version, False, False)


@given(uid=uids, version=versions, value=values | st.none())
def test_a_deletion_is_proven(uid: str, version: int, value: Any) -> None:
    """A notice is a deletion as it is, under a tombstone, and after the trash is emptied."""
    keys = NOTES
    last = EMPTY if value is None else to_content(value)
    sealed = seal.seal_deletion(keys, uid, version, last, parent=encoding.NO_PARENT)
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
    keys = NOTES
    live = row_of(keys, UID, 1, seal.seal_document(keys, UID, 1, {"a": 1}))
    dead = row_of(keys, UID, 3, seal.seal_deletion(keys, UID, 2, parent=encoding.NO_PARENT), 5)
    for row in (live, dead):
        for field in ("data", "hmac"):
            for at, changed in enumerate(flips(getattr(row, field))):
                assert unbelieved(keys, msgspec.structs.replace(row, **{field: changed}), at)
    for at, changed in enumerate(flips(dead.hmac or "")):
        assert unbelieved(keys, msgspec.structs.replace(dead, data="", hmac=changed), at)


def unbelieved(keys: CollectionKeys, row: Document, flipped: int) -> bool:
    """Refused, or of a generation or format that nobody here knows: that may be true, for all that a reader knows."""
    try:
        return fails_to_open(keys, row)
    except Locked:
        return True
    except Unsupported:
        return flipped < FORMAT_BITS


def flips(text: str) -> Iterator[str]:
    """The text with each of its bits turned over."""
    raw = bytearray(text, "ascii")
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        yield raw.decode("latin-1")
        raw[at // 8] ^= 1 << at % 8


def test_every_flipped_bit_of_a_blob_is_seen() -> None:
    """Each single bit of a blob's `data` and `salt`, turned over: all refused."""
    keys = vault_keys()
    sealed = seal.seal_blob(keys, "personal", 1, b"blob")
    vault = Vault(VAULT, "personal", 1, 1, data=sealed.data, salt=sealed.salt)
    assert seal.open_blob(keys, vault).data == b"blob"
    for field, text in (("data", sealed.data), ("salt", sealed.salt)):
        for at, changed in enumerate(flips(text)):
            with pytest.raises((Tampered, Locked, Unsupported) if at < FORMAT_BITS else (Tampered, Locked)):
                seal.open_blob(keys, msgspec.structs.replace(vault, **{field: changed}))


@settings(max_examples=200)
@given(data=st.data(), deletion=st.booleans(), purged=st.booleans())
def test_a_row_stays_in_its_place(data: st.DataObject, deletion: bool, purged: bool) -> None:  # noqa: FBT001
    """A row in another account, vault, collection, under another uid or version is refused, deleted or not."""
    vault, collection, uid, version = data.draw(uids), data.draw(titles), data.draw(uids), data.draw(versions)
    keys = collection_keys(vault_keys(vault), collection)
    parent = data.draw(hashes)
    sealed = (
        seal.seal_deletion(keys, uid, version, parent=parent)
        if deletion
        else seal.seal_document(keys, uid, version, {"moved": False}, parent=parent)
    )
    row = row_of(keys, uid, version + deletion, sealed, 5 if deletion else None)
    if deletion and purged:
        row = msgspec.structs.replace(row, data="")
    seal.open_document(keys, row)
    other_vault, other_name = data.draw(uids), data.draw(titles)
    for there in (
        collection_keys(vault_keys(vault, OTHER, (OTHER_KEY,)), collection),
        collection_keys(vault_keys(other_vault, keys=(OTHER_KEY,)), collection),
        collection_keys(vault_keys(vault), other_name),
        msgspec.structs.replace(keys, account=OTHER),
        msgspec.structs.replace(keys, vault=other_vault),
        msgspec.structs.replace(keys, wires=(other_name,)),
    ):
        moved = msgspec.structs.replace(row, vault_uid=there.vault, collection=there.wire)
        assert (there.account, there.vault, there.wires) == (ACCOUNT, vault, keys.wires) or fails_to_open(there, moved)
    for uid_ in (data.draw(uids), uid.upper()):
        assert uid_ == uid or fails_to_open(keys, msgspec.structs.replace(row, uid=uid_))
    for version_ in (row.version + 1, row.version - 1, data.draw(st.integers(-5, 2**64))):
        assert version_ == row.version or fails_to_open(keys, msgspec.structs.replace(row, version=version_))


@given(a=versions, b=versions, value=values)
def test_a_tombstone_needs_its_own_notice(a: int, b: int, value: Any) -> None:
    """Neither a document nor the notice of another version makes a tombstone believable."""
    keys = NOTES
    sealed = seal.seal_document(keys, UID, a, value)
    for version in (a, a + 1, b):
        assert fails_to_open(keys, row_of(keys, UID, version, sealed, 5))
        assert fails_to_open(keys, row_of(keys, UID, version, seal.Sealed("", sealed.hmac), 5))
    notice = seal.seal_deletion(keys, UID, a, parent=encoding.NO_PARENT)
    assert b == a + 1 or fails_to_open(keys, row_of(keys, UID, b, notice, 5))
    assert b == a + 1 or fails_to_open(keys, row_of(keys, UID, b, seal.Sealed("", notice.hmac), 5))


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
    keys = NOTES
    data = seal.seal_document(keys, UID, 1, value).data
    raw = 6 + box.OVERHEAD + padding.padded_length(5 + len(value))
    assert len(data) == -(-raw // 3) * 4


def test_no_key_seals_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ten thousand sealed rows, half of them the same value in the same place, no two share a key."""
    used: list[bytes] = []
    real = primitives.encrypt

    def watched(key: bytes, plaintext: bytes, associated: bytes) -> bytes:
        used.append(key)
        return real(key, plaintext, associated)

    monkeypatch.setattr(primitives, "encrypt", watched)
    keys = NOTES
    datas = {seal.seal_document(keys, UID, 1 + at % 2, b"same").data for at in range(10_000)}
    assert len(used) == len(set(used)) == len(datas) == 10_000
    assert len({data[8:48] for data in datas}) == 10_000


@pytest.mark.parametrize("at", [0, 40, 70, -1])
def test_what_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Where the machine turns a bit over while sealing, nothing is handed out."""
    real = box.seal

    def faulty(key: bytes, salt: bytes, plaintext: bytes, associated: bytes) -> bytes:
        made = bytearray(real(key, salt, plaintext, associated))
        made[at] ^= 1
        return bytes(made)

    monkeypatch.setattr(box, "seal", faulty)
    for attempt in (
        lambda: seal.seal_document(NOTES, UID, 1, b"x"),
        lambda: seal.seal_deletion(NOTES, UID, 1, parent=encoding.NO_PARENT),
        lambda: seal.seal_blob(vault_keys(), "personal", 1, b"x"),
    ):
        with pytest.raises(Tampered):
            attempt()


_ENDLESS: list[Any] = []
_ENDLESS.append(_ENDLESS)


@pytest.mark.parametrize(
    "value",
    [
        *(object(), {1, 2}, float, "\ud800", {"a": "\udfff"}, float("nan"), [float("inf")], {"a": b"b"}, _ENDLESS),
        *(2**53, -(2**53), [2**70], {"a": {"b": 2**64}}, {1: None}, [{"a": {True: 1}}], {"1": 1, 1: 2}),
    ],
    ids=range(16),
)
def test_what_json_cannot_hold_is_refused(value: object) -> None:
    """A value that cannot be sealed is the caller's mistake, and says so."""
    with pytest.raises(Invalid):
        to_content(value)


def test_a_stack_without_room_is_no_fault_of_the_server() -> None:
    """A value that is not too deep is not called tampered where the caller's own stack is nearly full."""
    content = padding.Content(padding.JSON, b"[" * 400 + b"]" * 400)
    assert to_value(content)

    def called(levels: int) -> Any:
        return called(levels - 1) if levels else to_value(content)

    with pytest.raises(RecursionError):
        called(sys.getrecursionlimit() - len(inspect.stack()) - 300)


@pytest.mark.parametrize(
    ("value", "read"),
    [((1, 2), [1, 2]), (2**53 - 1, 2**53 - 1), (1e300, 1e300), (bytearray(b"x"), b"x"), (True, True), (1.5, 1.5)],
)
def test_values_come_back_as_json_has_them(value: object, read: object) -> None:
    """A tuple is a list; numbers keep their size."""
    back = to_value(to_content(value))
    assert back == read
    assert type(back) is type(read)


@pytest.mark.parametrize("version", [0, -1, 2**53])
def test_a_version_out_of_range_is_not_sealed(version: int) -> None:
    """A version that the server cannot store is the caller's mistake."""
    with pytest.raises(Invalid):
        seal.seal_document(NOTES, UID, version, 1)


def test_json_that_is_none_is_tampered() -> None:
    """Content that says that it is JSON and is not was made by a broken client."""
    keys = NOTES
    broken = padding.Content(padding.JSON, b"{")
    sealed = seal.seal_content(keys, seal.DOCUMENT, UID, 1, broken, parent=encoding.NO_PARENT)
    opened = seal.open_document(keys, row_of(keys, UID, 1, sealed))
    with pytest.raises(Tampered):
        _ = opened.value


def test_a_vault_without_a_blob_opens_nothing() -> None:
    """A plain container has no blob to believe."""
    with pytest.raises(Tampered):
        seal.open_blob(vault_keys(), Vault(VAULT, "personal", 1, 1))


def test_generations() -> None:
    """A writer takes the newest key; a reader the one that the row names, and says so where it has none."""
    old, new = vault_keys(), vault_keys(keys=(KEY, NEXT_KEY))
    before, after = (collection_keys(keys) for keys in (old, new))
    first = row_of(before, UID, 1, seal.seal_document(before, UID, 1, b"first"))
    second = row_of(after, UID, 2, seal.seal_document(after, UID, 2, b"second", parent=seal.parent_after(first)))
    assert [seal.open_document(after, row).generation for row in (first, second)] == [1, 2]
    with pytest.raises(Locked):
        seal.open_document(before, second)
    stale = row_of(before, UID, 3, seal.seal_document(before, UID, 3, b"third", parent=seal.parent_after(second)))
    for newest, seen, is_next in ((second, first, True), (stale, second, False)):
        assert parents.follows(newest.hmac or "", seen.hmac or "", seal.lineage) is is_next
        descent = parents.trace(seal.link(newest), seal.link(seen), [], seal.lineage)
        assert descent is (Descent.FOLLOWS if is_next else Descent.FORKED)
    blob = seal.seal_blob(new, "personal", 1, b"blob")
    assert seal.blob_generation(blob.data) == 2
    with pytest.raises(Locked):
        seal.open_blob(old, Vault(VAULT, "personal", 1, 1, data=blob.data, salt=blob.salt))
    swapped = collection_keys(vault_keys(keys=(NEXT_KEY, KEY)))
    for row in (first, second):
        assert fails_to_open(swapped, row)
    wires = [names.seal_collection_name(key, "notes") for key in new.keys]
    assert names.collection_keys(new, "notes", sealed=True).wires == tuple(reversed(wires))
    assert [names.open_collection_name(new, wire) for wire in wires] == ["notes", "notes"]
    with pytest.raises(Locked):
        names.open_collection_name(old, wires[1])


def test_a_notice_can_be_made_again() -> None:
    """The proof of a tombstone whose data is gone stands for new data, of nothing."""
    sealed = seal.seal_deletion(NOTES, UID, 2, to_content(b"last"), parent=b"p" * 16)
    purged = row_of(NOTES, UID, 3, seal.Sealed("", sealed.hmac), 5)
    again = seal.reseal_notice(NOTES, purged)
    assert again.hmac == sealed.hmac
    opened = seal.open_document(NOTES, row_of(NOTES, UID, 2, again))
    assert (opened.deleted, opened.content, opened.parent) == (True, EMPTY, b"p" * 16)


def test_a_collection_key_leads_nowhere_else() -> None:
    """The keys of two collections, and those below one, have nothing in common."""
    keys = [vault_keys().newest.collection(name) for name in ("notes", "letters")]
    found = {part for key in keys for part in (key.key, key.sealing, key.proving)}
    assert len(found | {KEY, vault_keys().newest.blob(), vault_keys().newest.names()}) == 9
    assert CollectionKey.of(1, keys[0].key) == keys[0]
