"""The chapter of sealed rows: documents, deletions, tombstones, blobs, and what a device remembers of them."""

from __future__ import annotations

from typing import Any

from strongroom.client.format import box, encoding, padding, seal
from strongroom.client.format.keys import AccountKey
from strongroom.client.format.padding import Content
from tests.vectors.book import (
    ACCOUNT_KEY,
    NOON,
    OTHER_ACCOUNT_KEY,
    OTHER_UID,
    OTHER_VAULT,
    UID,
    VAULT,
    Book,
    Stream,
    flipped_text,
    spellings,
)
from tests.vectors.operations import Given, collection_key

_TITLE = b'{"title":"Hello"}'
# Where each part of a sealed row begins, and where it ends.
PARTS = {"format": 0, "kind": 1, "salt": 2, "commitment": 34, "ciphertext": 66, "tag": -16}


def place(account_key: str = ACCOUNT_KEY, vault: str = VAULT, collection: str = "notes") -> Given:
    """The key of a collection, and where it lies."""
    keys = AccountKey.of(bytes.fromhex(account_key))
    key = keys.vault(vault).collection(collection).key.hex()
    return {"account": keys.account.hex(), "vault": vault, "collection": collection, "collectionKey": key}


def row(where: Given, sealed: Given, version: int, uid: str = UID, deleted_at: int | None = None) -> Given:
    """A row as an honest server answers it."""
    return {
        "uid": uid,
        "vaultUid": where["vault"],
        "collection": where["collection"],
        "data": sealed["data"],
        "hmac": sealed["hmac"],
        "version": version,
        "createdAt": NOON,
        "updatedAt": NOON + version,
        "deletedAt": deleted_at,
    }


def sealing() -> Book:
    """Sealed rows, good and bad."""
    book = Book(
        "Documents, deletions and tombstones: sealed, opened, and refused where anything is not as it was made."
    )
    salts = Stream("sealing")
    here = place()

    def write(name: str, version: int, content: Content, *, deletion: bool = False, uid: str = UID, **at: Any) -> Given:
        given = {
            **place(**at),
            "uid": uid,
            "version": version,
            "deletion": deletion,
            "kind": content.kind,
            "content": content.data.hex(),
            "salt": salts(32).hex(),
        }
        return book.good(name, "seal-document", given)

    def read(where: Given, answered: Given) -> Given:
        return {**where, "row": answered}

    first = write("a new document is sealed as version 1", 1, Content(padding.JSON, _TITLE))
    second = write("its next version is sealed as version 2", 2, Content(padding.BYTES, b"\x00\xff"))
    notice = write("a deletion is sealed as the next version", 3, Content(padding.BYTES, b"\0\xff"), deletion=True)
    empty = write("a deletion may carry nothing", 3, Content(padding.NOTHING, b""), deletion=True)
    large = write(
        "a larger document is padded by Padmé", 1, Content(padding.BYTES, bytes(range(256)) * 17), uid=OTHER_UID
    )
    nothing = write("a document may be empty", 1, Content(padding.BYTES, b""), uid=OTHER_UID)
    far = write("a version may be as large as the contract's largest", 2**63 - 1, Content(padding.JSON, b"null"))
    accents = write("a collection may have any letters", 1, Content(padding.JSON, b"[]"), collection="Bücher/日本")
    book.good("the first version opens", "open-document", read(here, row(here, first, 1)))
    book.good("the second version opens", "open-document", read(here, row(here, second, 2)))
    book.good("a notice that is not yet a tombstone is a deletion", "open-document", read(here, row(here, notice, 3)))
    tombstone = row(here, notice, 4, deleted_at=NOON + 4)
    book.good("a tombstone over a notice is a deletion", "open-document", read(here, tombstone))
    book.good("so is one that carries nothing", "open-document", read(here, row(here, empty, 4, deleted_at=NOON)))
    purged = tombstone | {"data": ""}
    book.good("a tombstone whose data is gone is still proven", "open-document", read(here, purged))
    book.good("a larger document opens", "open-document", read(here, row(here, large, 1, uid=OTHER_UID)))
    book.good("an empty document opens", "open-document", read(here, row(here, nothing, 1, uid=OTHER_UID)))
    book.good("the largest version opens", "open-document", read(here, row(here, far, 2**63 - 1)))
    there = place(collection="Bücher/日本")
    book.good("a collection of any letters opens", "open-document", read(there, row(there, accents, 1)))

    live = row(here, first, 1)
    _altered(book, "a document", here, live)
    _altered(book, "a tombstone", here, tombstone)
    _moved(book, "a document", here, live)
    _moved(book, "a tombstone", here, tombstone)
    _moved(book, "a tombstone without data", here, purged)
    for name, other in spellings(live["data"]).items():
        book.bad(f"data is spelled {name}", "open-document", read(here, live | {"data": other}))

    def refuse(name: str, answered: Given) -> None:
        book.bad(name, "open-document", read(here, answered))

    refuse("a document is declared deleted without a notice", live | {"deletedAt": NOON, "version": 2})
    refuse("a document is declared deleted at its own version", live | {"deletedAt": NOON})
    refuse(
        "a document is declared deleted and its data thrown away", live | {"deletedAt": NOON, "version": 2, "data": ""}
    )
    refuse("a tombstone stands at its notice's version", tombstone | {"version": 3})
    refuse("a tombstone stands two versions after its notice", tombstone | {"version": 5})
    refuse("a tombstone without data stands two versions after its notice", purged | {"version": 5})
    refuse("a tombstone is shown as live", tombstone | {"deletedAt": None})
    refuse("a tombstone without data is shown as live", purged | {"deletedAt": None})
    refuse("a tombstone stands at version 0", tombstone | {"version": 0})
    refuse("a tombstone stands at version 1", tombstone | {"version": 1})
    refuse("a tombstone carries an older document's data", tombstone | {"data": first["data"]})
    refuse("a tombstone carries an older document's row", tombstone | {"data": first["data"], "hmac": first["hmac"]})
    refuse("a tombstone carries another notice's proof", purged | {"hmac": second["hmac"]})
    refuse("a document carries the proof of another version", live | {"hmac": second["hmac"]})
    refuse("a document carries the data of another version", live | {"data": second["data"]})
    refuse("a document shows an older version as the newest", row(here, first, 2))
    refuse("a document carries a notice's data with its own proof", row(here, second, 3) | {"data": notice["data"]})
    refuse("a document has no proof", live | {"hmac": None})
    refuse("a document has an empty proof", live | {"hmac": ""})
    refuse("a document has no data", live | {"data": ""})
    refuse("a document's data is prose", live | {"data": "bm90IHNlYWxlZA=="})
    refuse("a document's version is 0", live | {"version": 0})
    refuse("a document's version is negative", live | {"version": -1})
    refuse("a document's version is beyond the largest", live | {"version": 2**63})
    refuse("a document's uid is spelled in capitals", live | {"uid": UID.upper()})
    for name, proof in _proofs(first["hmac"]).items():
        refuse(f"the proof is {name}", live | {"hmac": proof})
    _insider(book, here)
    return book


def _altered(book: Book, what: str, here: Given, answered: Given) -> None:
    """Every part of a row, with a bit turned over at its beginning, in its middle and at its end."""
    size = len(encoding.from_base64(answered["data"]))
    bounds = [start % size for start in PARTS.values()] + [size]
    for part, start, end in zip(PARTS, bounds, bounds[1:], strict=False):
        for at, bit in sorted({(start, 0), ((start + end) // 2, 3), (end - 1, 7)}):
            name = f"{what}: bit {bit} of byte {at} is turned over ({part})"
            book.bad(
                name, "open-document", {**here, "row": answered | {"data": flipped_text(answered["data"], at, bit)}}
            )
    raw = encoding.from_base64(answered["data"])
    for name, cut in {
        "loses its last byte": raw[:-1],
        "loses its tag": raw[:-16],
        "loses its first byte": raw[1:],
        "is only a head": raw[:2],
        "is a head and a salt": raw[:34],
        "is cut before its ciphertext": raw[:66],
        "gains a byte": raw + b"\0",
        "gains a block": raw + bytes(16),
        "is repeated": raw + raw[2:],
        "has its salt and commitment exchanged": raw[:2] + raw[34:66] + raw[2:34] + raw[66:],
        "has a salt of zeros": raw[:2] + bytes(32) + raw[34:],
        "has a commitment of zeros": raw[:34] + bytes(32) + raw[66:],
    }.items():
        book.bad(f"{what} {name}", "open-document", {**here, "row": answered | {"data": encoding.to_base64(cut)}})


def _moved(book: Book, what: str, here: Given, answered: Given) -> None:
    """A row that is whole, in another place."""
    version = answered["version"]
    for name, change in {
        "under another uid": {"uid": OTHER_UID},
        "as an earlier version": {"version": version - 1},
        "as a later version": {"version": version + 1},
        "as a version that differs in a high byte": {"version": version + 2**32},
        "in another vault, by the row": {"vaultUid": OTHER_VAULT},
        "in another collection, by the row": {"collection": "letters"},
        "in a collection of another case": {"collection": "Notes"},
    }.items():
        book.bad(f"{what} is shown {name}", "open-document", {**here, "row": answered | change})
    for name, there in {
        "in another vault": place(vault=OTHER_VAULT),
        "in another collection": place(collection="letters"),
        "in another account": place(OTHER_ACCOUNT_KEY),
    }.items():
        change = {"vaultUid": there["vault"], "collection": there["collection"]}
        book.bad(f"{what} is shown {name}", "open-document", {**there, "row": answered | change})
    mixed = {
        "under another account's id": {"account": place(OTHER_ACCOUNT_KEY)["account"]},
        "to a holder of another collection's key": {"collectionKey": place(collection="letters")["collectionKey"]},
    }
    for name, other in mixed.items():
        book.bad(f"{what} is shown {name}", "open-document", {**here, **other, "row": answered})


def _proofs(proof: str) -> dict[str, str]:
    body = proof.removeprefix("sr1.")
    changed = [f"{'B' if body[at] == 'A' else 'A'}" for at in (0, 21, 41)]
    return {
        "without its prefix": body,
        "of another format": "sr2." + body,
        "prefixed in capitals": "SR1." + body,
        "padded": proof + "=",
        "cut": proof[:-1],
        "followed by a space": proof + " ",
        "changed at its first sign": "sr1." + changed[0] + body[1:],
        "changed in its middle": "sr1." + body[:21] + changed[1] + body[22:],
        "changed near its end": "sr1." + body[:41] + changed[2] + body[42:],
        "of zeros": "sr1." + "A" * 43,
        "from outside ASCII": proof[:-1] + "é",
        "a lone prefix": "sr1.",
    }


def _insider(book: Book, here: Given) -> None:
    """Rows that somebody with the key made, against the format."""
    keys = collection_key(here)
    salts = Stream("insider")
    good = padding.pad(Content(padding.JSON, _TITLE))
    where = seal._row(keys, UID, 1)
    kinds = {
        "padding that is not zero": good[:-1] + b"\1",
        "padding that is too long": good + bytes(32),
        "padding that is too short": good[:-1],
        "no padding at all": good[:22],
        "an unknown kind of content": b"\3" + good[1:],
        "content of no kind": b"\0" + good[1:],
        "no content where there must be some": bytes(256),
        "a length beyond its end": good[:1] + (252).to_bytes(4, "big") + good[5:],
        "a length beyond anything": good[:1] + b"\xff\xff\xff\xff" + good[5:],
        "a length that leaves content in the padding": good[:1] + (16).to_bytes(4, "big") + good[5:],
        "nothing inside": b"",
    }
    for name, padded in kinds.items():
        sealed = box.seal(keys.sealing, salts(32), padded, encoding.items(encoding.label("document")) + where)
        data = encoding.to_base64(b"\1\1" + sealed)
        made = {"data": data, "hmac": seal._proof(keys, seal.DOCUMENT, where, data)}
        book.bad(f"a key holder sealed {name}", "open-document", {**here, "row": row(here, made, 1)})
    for name, head, label in [
        ("format 0", b"\0\1", "document"),
        ("format 2", b"\2\1", "document"),
        ("kind 0", b"\1\0", "document"),
        ("kind 3, a blob", b"\1\3", "blob"),
        ("kind 5", b"\1\5", "document"),
        ("a document called a deletion", b"\1\2", "document"),
        ("a deletion called a document", b"\1\1", "deletion"),
    ]:
        sealed = box.seal(keys.sealing, salts(32), good, encoding.items(encoding.label(label)) + where)
        data = encoding.to_base64(head + sealed)
        made = {"data": data, "hmac": seal._proof(keys, head[1], where, data)}
        book.bad(f"a key holder sealed {name}", "open-document", {**here, "row": row(here, made, 1)})
    other = box.seal(keys.proving, salts(32), good, encoding.items(encoding.label("document")) + where)
    data = encoding.to_base64(b"\1\1" + other)
    made = {"data": data, "hmac": seal._proof(keys, seal.DOCUMENT, where, data)}
    book.bad("a key holder sealed under the wrong key", "open-document", {**here, "row": row(here, made, 1)})


def blobs() -> Book:
    """A vault's blob, good and bad."""
    book = Book("Blobs: a vault's data and salt, bound to the vault, its name and its version.")
    account = AccountKey.of(bytes.fromhex(ACCOUNT_KEY))
    keys = account.vault(VAULT)
    here = {"account": keys.account.hex(), "vault": VAULT, "vaultKey": keys.key.hex()}
    salts = Stream("blobs")
    made = seal.seal_blob(keys, "personal", 2, {"title": "Hello"}, salts)
    earlier = seal.seal_blob(keys, "personal", 1, {"title": "Hello"}, salts)
    answered = {
        "uid": VAULT,
        "name": "personal",
        "version": 2,
        "updatedAt": NOON,
        "data": made.data,
        "salt": made.salt,
    }
    book.good("a blob opens", "open-blob", {**here, "row": answered})
    before = answered | {"version": 1, "data": earlier.data, "salt": earlier.salt}
    book.good("so does the one before it", "open-blob", {**here, "row": before})
    size = len(encoding.from_base64(made.data))
    for part, at in {"format": 0, "kind": 1, "commitment": 2, "ciphertext": 34, "tag": size - 1}.items():
        change = {"data": flipped_text(made.data, at, at % 8)}
        book.bad(f"bit {at % 8} of byte {at} is turned over ({part})", "open-blob", {**here, "row": answered | change})
    for at in (0, 15, 31):
        change = {"salt": flipped_text(made.salt, at, 1)}
        book.bad(f"bit 1 of byte {at} of the salt is turned over", "open-blob", {**here, "row": answered | change})
    changes: dict[str, Given] = {
        "its salt is cut": {"salt": encoding.to_base64(encoding.from_base64(made.salt)[:31])},
        "its salt has a byte more": {"salt": encoding.to_base64(encoding.from_base64(made.salt) + b"\0")},
        "its salt is empty": {"salt": ""},
        "its salt is missing": {"salt": None},
        "its data is missing": {"data": None},
        "its data is empty": {"data": ""},
        "its data is prose": {"data": "not sealed"},
        "it has another blob's salt": {"salt": earlier.salt},
        "an older blob is shown at this version": {"data": earlier.data, "salt": earlier.salt},
        "it is shown at an earlier version": {"version": 1},
        "it is shown at a later version": {"version": 3},
        "it is shown at version 0": {"version": 0},
        "it is shown under another name": {"name": "work"},
        "it is shown in another vault, by the row": {"uid": OTHER_VAULT},
        "its data is in the other alphabet": {"data": made.data.replace("+", "-").replace("/", "_")},
        "its data has a line feed": {"data": made.data + "\n"},
    }
    for name, change in changes.items():
        book.bad(name, "open-blob", {**here, "row": answered | change})
    for name, other in {
        "in another vault": account.vault(OTHER_VAULT),
        "in another account": AccountKey.of(bytes.fromhex(OTHER_ACCOUNT_KEY)).vault(VAULT),
    }.items():
        there = {"account": other.account.hex(), "vault": other.vault, "vaultKey": other.key.hex()}
        book.bad(f"it is shown {name}", "open-blob", {**there, "row": answered | {"uid": other.vault}})
    return book


def memories() -> Book:
    """What a device remembers of rows."""
    book = Book("Memory of rows: what was true once, shown to a device that has seen more.")
    here = place()
    keys = collection_key(here)
    salts = Stream("memory")
    made = [seal.seal_document(keys, UID, version, {"n": version}, salts) for version in (1, 2, 3)]
    rows = [row(here, {"data": each.data, "hmac": each.hmac}, at) for at, each in enumerate(made, 1)]
    fork = seal.seal_document(keys, UID, 2, {"n": "other"}, salts)
    seen = [2, made[1].hmac]
    book.good("the same row again", "remember-row", {"seen": seen, "row": rows[1]})
    book.good("a newer row", "remember-row", {"seen": seen, "row": rows[2]})
    book.bad("an older row", "remember-row", {"seen": seen, "row": rows[0]}, "rolled_back")
    other = row(here, {"data": fork.data, "hmac": fork.hmac}, 2)
    book.bad("another content of the same version", "remember-row", {"seen": seen, "row": other})
    return book
