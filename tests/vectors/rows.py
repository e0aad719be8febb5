"""The chapters of sealed rows: documents, deletions, parents, blobs, and what a device remembers of them."""

from __future__ import annotations

import re
from typing import Any

from strongroom.client.format import box, encoding, names, padding, seal
from strongroom.client.format.padding import Content
from strongroom.client.format.primitives import hmac_sha256, sha256
from tests.vectors.book import (
    ACCOUNT,
    NOON,
    OTHER_ACCOUNT,
    OTHER_KEYS,
    OTHER_UID,
    OTHER_VAULT,
    UID,
    VAULT,
    VAULT_KEYS,
    Book,
    Stream,
    damaged,
    flipped,
    refusal_of,
    spellings,
)
from tests.vectors.operations import OPERATIONS, Given, collection_keys, vault_key, vault_keys

_TITLE = b'{"title":"Hello"}'
_NONE = "00" * 16
_PARTS = {"format": 0, "kind": 1, "generation": 2, "salt": 6, "commitment": 38, "ciphertext": 70}


def place(
    name: str = "notes",
    *,
    account: str = ACCOUNT,
    vault: str = VAULT,
    keys: list[list[Any]] = VAULT_KEYS[:1],
    wires: list[str] | None = None,
) -> Given:
    """The keys of a collection, and where it lies."""
    derived = [[generation, vault_key(key).collection(name).key.hex()] for generation, key in keys]
    return {"account": account, "vault": vault, "wires": wires or [name], "collectionKeys": derived}


def row(where: Given, sealed: Given, version: int, uid: str = UID, deleted_at: int | None = None) -> Given:
    """A row as an honest server answers it."""
    return {
        "uid": uid,
        "vaultUid": where["vault"],
        "collection": where["wires"][0],
        "data": sealed["data"],
        "hmac": sealed["hmac"],
        "version": version,
        "createdAt": NOON,
        "updatedAt": NOON + version,
        "deletedAt": deleted_at,
    }


def written(where: Given, version: int, content: Content, parent: str = _NONE, **more: Any) -> Given:
    """What a writer of a row is given."""
    return {
        **where,
        "uid": UID,
        "version": version,
        "deletion": False,
        "kind": content.kind,
        "content": content.data.hex(),
        "parent": parent,
    } | more


def sealing() -> Book:
    """Sealed rows, good and bad."""
    book = Book(
        "Documents, deletions and tombstones: sealed, opened, and refused where anything is not as it was made."
    )
    here = place()

    def write(name: str, given: Given) -> Given:
        return book.write(name, "seal-document", given)

    def read(name: str, where: Given, answered: Given) -> None:
        book.good(name, "open-document", {**where, "row": answered})

    def after(sealed: Given) -> str:
        return encoding.short(sealed["hmac"]).hex()

    first = write("a document is sealed as version 1", written(here, 1, Content(padding.JSON, _TITLE)))
    raw = Content(padding.BYTES, b"\x00\xff")
    second = write("its replacement follows on it", written(here, 2, raw, after(first)))
    notice = write("a deletion is sealed", written(here, 3, raw, after(second), deletion=True))
    nothing = Content(padding.NOTHING, b"")
    empty = write("a deletion may carry nothing", written(here, 3, nothing, after(second), deletion=True))
    assert empty["hmac"] == notice["hmac"]
    back = write("a deleted document comes back", written(here, 5, raw, after(notice)))
    large = Content(padding.BYTES, bytes(range(256)) * 17)
    big = write("a larger document is padded by Padmé", written(here, 1, large, uid=OTHER_UID))
    none = write("a document may be empty", written(here, 1, Content(padding.BYTES, b""), uid=OTHER_UID))
    far = write("a version may be 2^53 - 1", written(here, 2**53 - 1, Content(padding.JSON, b"null")))
    there = place("Bücher/日本")
    accents = write("a collection may have any letters", written(there, 1, Content(padding.JSON, b"[]")))
    plain = write("a uid may be no UUID", written(here, 1, Content(padding.JSON, b"{}"), uid="Notiz №1"))
    shouted = written(here, 1, Content(padding.JSON, _TITLE), uid=UID.upper())
    loud = write("a UUID in capitals is sealed in lower case", shouted)
    wires = list(names.collection_keys(_vault(), "notes", sealed=True).wires)
    sealed_place = place(keys=VAULT_KEYS, wires=wires)
    rotated = write("a writer takes the newest key", written(sealed_place, 1, Content(padding.JSON, _TITLE)))

    read("the first version opens", here, row(here, first, 1))
    read("the second version opens", here, row(here, second, 2))
    read("a notice that is not yet a tombstone is a deletion", here, row(here, notice, 3))
    tombstone = row(here, notice, 4, deleted_at=NOON + 4)
    read("a tombstone over a notice is a deletion", here, tombstone)
    read("so is one that carries nothing", here, row(here, empty, 4, deleted_at=NOON))
    purged = tombstone | {"data": ""}
    read("a tombstone whose data is gone is still proven", here, purged)
    read("the document that came back opens", here, row(here, back, 5))
    read("a larger document opens", here, row(here, big, 1, uid=OTHER_UID))
    read("an empty document opens", here, row(here, none, 1, uid=OTHER_UID))
    read("the largest version opens", here, row(here, far, 2**53 - 1))
    read("a collection of any letters opens", there, row(there, accents, 1))
    read("a uid that is no UUID opens", here, row(here, plain, 1, uid="Notiz №1"))
    read("a UUID that was given in capitals opens in lower case", here, row(here, loud, 1))
    read("a row under a sealed collection's name opens", sealed_place, row(sealed_place, rotated, 1))
    older = place(wires=[wires[2]])
    before = write("a row of before the rotations", written(older, 1, Content(padding.JSON, _TITLE)))
    under_old = row(sealed_place, before, 1) | {"collection": wires[2]}
    read("it opens after them, under its old name", sealed_place, under_old)
    read("and a tombstone of before the rotations", place(keys=VAULT_KEYS), tombstone)

    _below(book, sealed_place, under_old)
    live = row(here, first, 1)
    _altered(book, "a document", here, live)
    _altered(book, "a tombstone", here, tombstone)
    _moved(book, "a document", here, live)
    _moved(book, "a tombstone", here, tombstone)
    _moved(book, "a tombstone without data", here, purged)
    for name, other in spellings(live["data"]).items():
        book.bad(f"data is spelled {name}", "open-document", {**here, "row": live | {"data": other}})
    _told(book, here, [live, row(here, second, 2), row(here, notice, 3), tombstone, purged])
    for what, answered in {"a document": live, "a tombstone without data": purged}.items():
        for name, proof in _proofs(answered["hmac"]).items():
            error = "unsupported" if re.match(r"sr(?!2)[1-9][0-9]{0,3}\.", proof) else "tampered"
            given = {**here, "row": answered | {"hmac": proof}}
            book.bad(f"{what}: the proof is {name}", "open-document", given, error)
    _generations(book, here, live, purged)
    wrong = under_old | {"collection": wires[0]}
    book.bad("a row under another name of its collection", "open-document", {**sealed_place, "row": wrong})
    _insider(book, here)
    return book


def _below(book: Book, where: Given, old: Given) -> None:
    """Rows of before rotations that were finished: the first of three generations."""
    newest = VAULT_KEYS[-1][0]
    for name, generation in {"its own generation": VAULT_KEYS[0][0], "no other": 1}.items():
        book.good(f"a row opens above a floor of {name}", "open-document", {**where, "floor": generation, "row": old})
    raised = {**where, "floor": VAULT_KEYS[1][0]}
    book.bad("a row below the floor is not current", "open-document", {**raised, "row": old})
    book.bad("nor below a floor of the newest", "open-document", {**where, "floor": newest, "row": old})
    book.good("it opens as a version that was replaced", "open-past-document", {**raised, "row": old})
    older = where | {"collectionKeys": where["collectionKeys"][:1], "wires": [old["collection"]]}
    raw, parent = Content(padding.JSON, _TITLE), encoding.short(old["hmac"]).hex()
    notice = book.write(
        "a notice of before the rotations", "seal-document", written(older, 2, raw, parent, deletion=True)
    )
    live = row(older, notice, 2)
    book.bad("a notice below the floor that is not yet a tombstone", "open-document", {**raised, "row": live})
    tombstone = row(older, notice, 3, deleted_at=NOON)
    book.good("a tombstone below the floor is a deletion", "open-document", {**raised, "row": tombstone})
    purged = tombstone | {"data": ""}
    book.good("so is one whose data is gone", "open-document", {**raised, "row": purged})
    changed = old | {"version": 2}
    book.bad("a replaced version is bound as every row", "open-past-document", {**raised, "row": changed})


def _vault() -> Any:
    return vault_keys({"account": ACCOUNT, "vault": VAULT, "vaultKeys": VAULT_KEYS})


def _told(book: Book, here: Given, rows: list[Given]) -> None:
    """What a server says of rows that are whole."""
    live, second, notice, tombstone, purged = rows
    for name, answered in {
        "a document is declared deleted without a notice": live | {"deletedAt": NOON, "version": 2},
        "a document is declared deleted at its own version": live | {"deletedAt": NOON},
        "a document is declared deleted, its data gone": live | {"deletedAt": NOON, "version": 2, "data": ""},
        "a tombstone stands at its notice's version": tombstone | {"version": 3},
        "a tombstone stands two versions after its notice": tombstone | {"version": 5},
        "a tombstone without data, two versions after its notice": purged | {"version": 5},
        "a tombstone is shown as live": tombstone | {"deletedAt": None},
        "a tombstone without data is shown as live": purged | {"deletedAt": None},
        "a notice without data is shown as live": notice | {"data": ""},
        "a tombstone stands at version 0": tombstone | {"version": 0},
        "a tombstone stands at version 1": tombstone | {"version": 1},
        "a tombstone carries an older document's data": tombstone | {"data": live["data"]},
        "a tombstone carries an older document's row": tombstone | {"data": live["data"], "hmac": live["hmac"]},
        "a tombstone carries another row's proof": purged | {"hmac": second["hmac"]},
        "a tombstone has no proof": purged | {"hmac": None},
        "a tombstone has an empty proof": purged | {"hmac": ""},
        "a document carries the proof of another version": live | {"hmac": second["hmac"]},
        "a document carries the data of another version": live | {"data": second["data"]},
        "an older version is shown as the newest": live | {"version": 2},
        "a notice's data with a document's proof": second | {"version": 3, "data": notice["data"]},
        "a document's data with a notice's proof": notice | {"data": second["data"]},
        "a document has no proof": live | {"hmac": None},
        "a document has an empty proof": live | {"hmac": ""},
        "a document has no data": live | {"data": ""},
        "a document's data is prose": live | {"data": "bm90IHNlYWxlZA=="},
        "a document's data is three bytes": live | {"data": "AgEA"},
        "a document's version is 0": live | {"version": 0},
        "a document's version is negative": live | {"version": -1},
        "a document's version is 2^53": live | {"version": 2**53},
        "a document's uid is spelled in capitals": live | {"uid": UID.upper()},
        "a document's vault is spelled in capitals": live | {"vaultUid": VAULT.upper()},
        "a document's uid is empty": live | {"uid": ""},
        "a document's uid has half of a surrogate pair": live | {"uid": f"{UID}\ud800"},
        "a document's collection is empty": live | {"collection": ""},
    }.items():
        error = "unsupported" if "prose" in name else "tampered"  # its first byte is that of no format yet
        book.bad(name, "open-document", {**here, "row": answered}, error)


def _altered(book: Book, what: str, here: Given, answered: Given) -> None:
    """The bytes of a row's data, spoilt."""
    raw = encoding.from_base64(answered["data"])
    for name, other in damaged(raw, _PARTS | {"tag": len(raw) - 16}):
        if other:  # a tombstone without data is another case
            change = {"data": encoding.to_base64(other)}
            book.bad(f"{what}: {name}", "open-document", {**here, "row": answered | change}, refusal_of(other))
    mixed = raw[:6] + raw[38:70] + raw[6:38] + raw[70:]
    change = {"data": encoding.to_base64(mixed)}
    book.bad(f"{what}: salt and commitment exchanged", "open-document", {**here, "row": answered | change})


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
        "in another vault": place(vault=OTHER_VAULT, keys=OTHER_KEYS),
        "in another vault of the same key": place(vault=OTHER_VAULT),
        "in another collection": place("letters"),
        "in a collection of another name with the same key": here | {"wires": ["letters"]},
        "in another account": place(account=OTHER_ACCOUNT, keys=OTHER_KEYS),
        "under another account's id": here | {"account": OTHER_ACCOUNT},
        "to a holder of another collection's key": place("letters", wires=["notes"]),
    }.items():
        change = {"vaultUid": there["vault"], "collection": there["wires"][0]}
        book.bad(f"{what} is shown {name}", "open-document", {**there, "row": answered | change})


def _proofs(proof: str) -> dict[str, str]:
    body = proof.removeprefix("sr2.")
    raw = encoding.from_url(body)

    def spelled(changed: bytes) -> str:
        return "sr2." + encoding.to_url(changed)

    return {
        "without its prefix": body,
        "of the format before": "sr1." + body,
        "of the format before, in its length": "sr1." + encoding.to_url(raw[20:]),
        "of a later format": "sr3." + body,
        "of a later format, and longer": "sr3." + body + body,
        "of format 10": "sr10." + body,
        "of format 9999": "sr9999.",
        "of format 10000": "sr10000." + body,
        "of format 0": "sr0." + body,
        "of a format with a zero before it": "sr02." + body,
        "prefixed in capitals": "SR2." + body,
        "padded": proof + "==",
        "cut": proof[:-1],
        "cut by a byte": spelled(raw[:-1]),
        "a byte longer": spelled(raw + b"\0"),
        "followed by a space": proof + " ",
        "with another parent": spelled(raw[:4] + bytes(15) + b"\1" + raw[20:]),
        "with a bit of its parent turned over": spelled(flipped(raw, 19, 7)),
        "changed at its first byte": spelled(flipped(raw, 20, 0)),
        "changed in its middle": spelled(flipped(raw, 36, 4)),
        "changed at its end": spelled(flipped(raw, 51, 7)),
        "of zeros": spelled(raw[:20] + bytes(32)),
        "from outside ASCII": proof[:-1] + "é",
        "with bits that mean nothing": proof[:-1] + ("B" if proof[-1] != "B" else "C"),
        "a lone prefix": "sr2.",
    }


def _generations(book: Book, here: Given, live: Given, purged: Given) -> None:
    """Generations that a server makes up."""
    proof = encoding.from_url(live["hmac"].removeprefix("sr2."))
    raw = encoding.from_base64(live["data"])
    both = place(keys=VAULT_KEYS)
    for generation, error in {0: "tampered", 2: "locked", 2**32 - 1: "locked"}.items():
        number = generation.to_bytes(4, "big")
        hmac = "sr2." + encoding.to_url(number + proof[4:])
        data = encoding.to_base64(raw[:2] + number + raw[6:])
        changed = {"hmac": hmac, "data": data}
        name = f"generation {generation}"
        book.bad(f"a row of {name}", "open-document", {**here, "row": live | changed}, error)
        book.bad(f"a proof of {name} over data of 1", "open-document", {**here, "row": live | {"hmac": hmac}})
        book.bad(f"data of {name} under a proof of 1", "open-document", {**here, "row": live | {"data": data}})
        if generation == 2:
            book.bad("a row of another generation than it says", "open-document", {**both, "row": live | changed})
            gone = encoding.from_url(purged["hmac"].removeprefix("sr2."))
            other = purged | {"hmac": "sr2." + encoding.to_url(number + gone[4:])}
            book.bad("a tombstone of another generation than it says", "open-document", {**both, "row": other})
            book.bad("a tombstone of a generation without a key", "open-document", {**here, "row": other}, "locked")


def _insider(book: Book, here: Given) -> None:
    """Rows that somebody with the key made, against the format."""
    keys = collection_keys(here)
    key = keys.newest
    salts = Stream("insider")
    good = padding.pad(Content(padding.JSON, _TITLE))
    where = seal._row(keys, key, "notes", UID, 1, bytes(16))

    def refuse(name: str, head: bytes, sealed: bytes, *, kind: int = 1) -> None:
        data = encoding.to_base64(head + bytes([0, 0, 0, 1]) + sealed)
        mac = seal._mac(key, kind, where, data)
        made = {"data": data, "hmac": "sr2." + encoding.to_url(bytes([0, 0, 0, 1]) + bytes(16) + mac)}
        given = {**here, "row": row(here, made, 1)}
        book.bad(f"a key holder sealed {name}", "open-document", given, refusal_of(head))

    for name, padded in {
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
    }.items():
        refuse(name, b"\2\1", box.seal(key.sealing, salts(32), padded, seal._LABEL[1] + where))
    for name, head, label in [
        ("format 0", b"\0\1", "document"),
        ("format 1", b"\1\1", "document"),
        ("format 3", b"\3\1", "document"),
        ("kind 0", b"\2\0", "document"),
        ("kind 3, a blob", b"\2\3", "blob"),
        ("kind 4, a keyring", b"\2\4", "keyring"),
        ("kind 5", b"\2\5", "document"),
        ("a document called a deletion", b"\2\2", "document"),
        ("a deletion called a document", b"\2\1", "deletion"),
    ]:
        associated = encoding.items(encoding.label(label)) + where
        refuse(name, head, box.seal(key.sealing, salts(32), good, associated), kind=head[1])
    for name, kind, version, shown in [
        ("version 0", 1, 0, 0),
        ("version 2^53", 1, 2**53, 2**53),
        ("a deletion of version 0", 2, 0, 1),
        ("a deletion of the last version", 2, 2**53 - 1, 2**53),
    ]:
        at = seal._row(keys, key, "notes", UID, version, bytes(16))
        sealed = box.seal(key.sealing, salts(32), good, seal._LABEL[kind] + at)
        data = encoding.to_base64(bytes([2, kind, 0, 0, 0, 1]) + sealed)
        proof = bytes([0, 0, 0, 1]) + bytes(16) + seal._mac(key, kind, at, data)
        made = {"data": data, "hmac": "sr2." + encoding.to_url(proof)}
        answered = row(here, made, shown, deleted_at=NOON if kind == 2 else None)
        book.bad(f"a key holder sealed {name}", "open-document", {**here, "row": answered})
    refuse("under the proof key", b"\2\1", box.seal(key.proving, salts(32), good, seal._LABEL[1] + where))
    refuse("under the collection key", b"\2\1", box.seal(key.key, salts(32), good, seal._LABEL[1] + where))
    for name, other in {
        "another parent": seal._row(keys, key, "notes", UID, 1, b"\1" * 16),
        "another generation": encoding.items(
            keys.account, VAULT.encode(), b"notes", UID.encode(), encoding.number(1), encoding.number(2), bytes(16)
        ),
        "its generation in four bytes": encoding.items(
            keys.account, VAULT.encode(), b"notes", UID.encode(), encoding.number(1), bytes([0, 0, 0, 1]), bytes(16)
        ),
    }.items():
        refuse(f"for {name}", b"\2\1", box.seal(key.sealing, salts(32), good, seal._LABEL[1] + other))
    elsewhere = here | {"wires": ["letters"]}
    made = OPERATIONS["seal-document"](
        {**written(elsewhere, 1, Content(padding.JSON, _TITLE)), "random": Stream("elsewhere")}
    )
    moved = row(elsewhere, made, 1)
    book.good("a key holder wrote to another collection", "open-document", {**elsewhere, "row": moved})
    book.bad("what a key holder wrote to another collection", "open-document", {**here, "row": moved})
    data = encoding.to_base64(b"\2\1\0\0\0\1" + box.seal(key.sealing, salts(32), good, seal._LABEL[1] + where))
    digest = encoding.items(b"\1", sha256(data.encode()))
    for name, mac in {
        "whose kind has eight bytes": hmac_sha256(
            key.proving, seal._PROOF + where + encoding.items(encoding.number(1), digest[9:])
        ),
        "without a digest": hmac_sha256(key.proving, seal._PROOF + where + encoding.items(b"\1", b"")),
        "under the seal key": hmac_sha256(key.sealing, seal._PROOF + where + digest),
    }.items():
        made = {"data": data, "hmac": "sr2." + encoding.to_url(bytes([0, 0, 0, 1]) + bytes(16) + mac)}
        book.bad(f"a key holder made a proof {name}", "open-document", {**here, "row": row(here, made, 1)})


def lineage() -> Book:
    """Parents: what a newer row follows on."""
    book = Book("Parents: whether a newer row follows on what was seen, has forked, or leaves a gap.")
    here = place()
    content = Content(padding.JSON, b"{}")

    def chain(name: str, start: int, last: str, count: int, **more: Any) -> list[Given]:
        made: list[Given] = []
        for version in range(start, start + count):
            parent = encoding.short(made[-1]["hmac"] if made else last).hex() if made or last else _NONE
            given = written(here, version, content, parent, **more)
            made.append(book.write(f"{name}, version {version}", "seal-document", given))
        return made

    main = chain("a document's past", 1, "", 6)
    fork = chain("another past from version 3", 3, main[1]["hmac"], 4)
    anew = chain("a past of its own", 1, "", 4)
    links = [[at, one["hmac"]] for at, one in enumerate(main, 1)]
    other = [[at, one["hmac"]] for at, one in enumerate(fork, 3)]
    own = [[at, one["hmac"]] for at, one in enumerate(anew, 1)]

    def trace(name: str, newest: list[Any], seen: list[Any], history: list[Any], descent: str) -> None:
        given = {"of": "document", "newest": newest, "seen": seen, "history": history}
        assert book.good(name, "trace", given)["descent"] == descent, name

    trace("the next version", links[3], links[2], [], "follows")
    trace("three versions later", links[5], links[2], links, "follows")
    trace("three versions later, in any order", links[5], links[2], links[::-1], "follows")
    trace("from the first", links[5], links[0], links[1:5], "follows")
    trace("the next version of another past", other[1], links[2], [], "forked")
    trace("another past", other[3], links[3], [*links, *other], "forked")
    trace("another past, seen at the fork", other[3], links[1], other, "follows")
    trace("a past of its own", own[3], links[1], own, "forked")
    trace("a past of its own that begins late", own[3], links[0], own[1:], "forked")
    trace("no history", links[5], links[2], [], "gap")
    trace("a history that ends too soon", links[5], links[1], links[3:5], "gap")
    trace("a history with a hole", links[5], links[1], [*links[1:3], links[4]], "gap")
    trace("a history of something else", links[5], links[1], own, "gap")
    trace("a history whose versions are too high", links[5], links[2], [[9, one] for _, one in links], "follows")
    trace("a history whose versions are too low", other[3], links[3], [[1, one] for _, one in other], "forked")
    late = [[at, one["hmac"]] for at, one in enumerate(chain("a past that begins late", 5, "", 3), 5)]
    trace("a past that begins after what was seen", late[2], links[0], late, "forked")
    after = [encoding.short(one["hmac"]).hex() for one in main]
    newer = place(keys=VAULT_KEYS[:2])
    turned = book.write("a version under the next key", "seal-document", written(newer, 7, content, after[5]))
    seen, parent = [7, turned["hmac"]], encoding.short(turned["hmac"]).hex()
    stale = book.write("one that follows under the key of before", "seal-document", written(here, 8, content, parent))
    trace("a version under the next key", seen, links[4], links, "follows")
    trace("a version under an older key than was seen", [8, stale["hmac"]], seen, [], "forked")
    trace("the same, with its history", [8, stale["hmac"]], seen, [*links, seen], "forked")
    jumped = book.write(
        "a version after a restore may be far on",
        "seal-document",
        written(here, 40, content, encoding.short(main[5]["hmac"]).hex()),
    )
    trace("a version far on", [40, jumped["hmac"]], links[5], [], "follows")
    notice = book.write(
        "a notice at version 7",
        "seal-document",
        written(here, 7, content, encoding.short(main[5]["hmac"]).hex(), deletion=True),
    )
    tombstone = row(here, notice, 8, deleted_at=NOON)
    told = book.good("a tombstone counts as its notice", "link", {"row": tombstone})
    book.good("a live row counts as itself", "link", {"row": row(here, main[5], 6)})
    assert told["link"] == [7, notice["hmac"]]
    again = written(here, 9, content, told["parentAfter"])
    back = book.write("the document comes back on a tombstone", "seal-document", again)
    trace("the document that came back", [9, back["hmac"]], told["link"], [], "follows")
    trace("a deletion of what was seen", told["link"], links[5], [], "follows")
    trace("the tombstone of a notice that was seen", told["link"], [7, notice["hmac"]], [], "follows")
    trace("the same with its history", [8, notice["hmac"]], told["link"], links, "follows")
    trace("a deletion of another past", told["link"], other[3], links, "forked")
    for name, text in {"prose": "x", "of the format before": "sr1." + "A" * 43, "empty": "", "cut": "sr2.AAAA"}.items():
        given = {"of": "document", "newest": [6, text], "seen": links[2], "history": links}
        book.bad(f"a newer proof that is {name}", "trace", given, "unsupported" if "before" in name else "tampered")
    cut = "sr2." + encoding.to_url(encoding.from_url(main[5]["hmac"].removeprefix("sr2."))[:-1])
    given = {"of": "document", "newest": [6, cut], "seen": links[4], "history": []}
    book.bad("a newer proof that has lost a byte", "trace", given)
    spoilt = [[5, main[4]["hmac"]], [4, "x"]]
    trace("a history with prose that nobody names", links[5], links[2], [*spoilt, links[3]], "follows")
    _blob_lineage(book)
    return book


def _blob_lineage(book: Book) -> None:
    datas: list[str] = []
    for version in (1, 2, 3, 4):
        parent = encoding.short(datas[-1]).hex() if datas else _NONE
        given = _blob_given(version, Content(padding.JSON, b"{}"), parent)
        datas.append(book.write(f"a blob at version {version}", "seal-blob", given)["data"])
    links = [[at, data] for at, data in enumerate(datas, 1)]
    for name, history, descent in [("with its history", links, "follows"), ("without", [], "gap")]:
        given = {"of": "blob", "newest": links[3], "seen": links[0], "history": history}
        assert book.good(f"a blob {name}", "trace", given)["descent"] == descent
    rotated = _blob_given(5, Content(padding.JSON, b"{}"), encoding.short(datas[3]).hex(), vaultKeys=VAULT_KEYS[:2])
    turned = book.write("a blob under the next key", "seal-blob", rotated)["data"]
    back = _blob_given(6, Content(padding.JSON, b"{}"), encoding.short(turned).hex())
    stale = book.write("a blob that follows under the key of before", "seal-blob", back)["data"]
    given = {"of": "blob", "newest": [6, stale], "seen": [5, turned], "history": []}
    assert book.good("a blob under an older key than was seen", "trace", given)["descent"] == "forked"
    apart = {"of": "blob", "newest": links[3], "seen": [3, datas[0]], "history": links}
    assert book.good("a blob of another past", "trace", apart)["descent"] == "forked"
    book.bad("a blob that is a document", "trace", apart | {"newest": [4, "AgEAAAAB"]})


def _blob_given(version: int, content: Content, parent: str = _NONE, **more: Any) -> Given:
    return {
        "account": ACCOUNT,
        "vault": VAULT,
        "vaultKeys": VAULT_KEYS[:1],
        "name": "personal",
        "version": version,
        "kind": content.kind,
        "content": content.data.hex(),
        "parent": parent,
    } | more


def blobs() -> Book:
    """A vault's blob, good and bad."""
    book = Book("Blobs: a vault's data and salt, bound to the vault, its name, its version and its parent.")
    here: Given = {"account": ACCOUNT, "vault": VAULT, "vaultKeys": VAULT_KEYS[:1]}
    json = Content(padding.JSON, _TITLE)
    earlier = book.write("a first blob", "seal-blob", _blob_given(1, json))
    follows = encoding.short(earlier["data"]).hex()
    made = book.write("a blob that follows on it", "seal-blob", _blob_given(2, json, follows))
    rotated = book.write(
        "a blob under the newest key", "seal-blob", _blob_given(3, json, follows, vaultKeys=VAULT_KEYS)
    )
    renamed = _blob_given(2, Content(padding.BYTES, bytes(3000)), follows, name="Bücher")
    other_name = book.write("a blob of bytes under another name", "seal-blob", renamed)
    answered = {"uid": VAULT, "name": "personal", "version": 2, "updatedAt": NOON} | made

    def refuse(name: str, change: Given, error: str = "tampered", where: Given = here) -> None:
        book.bad(name, "open-blob", {**where, "row": answered | change}, error)

    book.good("a blob opens", "open-blob", {**here, "row": answered})
    book.good("so does the one before it", "open-blob", {**here, "row": answered | earlier | {"version": 1}})
    later = here | {"vaultKeys": VAULT_KEYS}
    book.good("and one of another generation", "open-blob", {**later, "row": answered | rotated | {"version": 3}})
    book.good("and an old one, with newer keys", "open-blob", {**later, "row": answered})
    newest = VAULT_KEYS[-1][0]
    at_floor = {**later, "floor": newest, "row": answered | rotated | {"version": 3}}
    book.good("and one of the floor's generation", "open-blob", at_floor)
    book.bad("a blob below the floor", "open-blob", {**later, "floor": VAULT_KEYS[1][0], "row": answered})
    book.good("and one of bytes", "open-blob", {**here, "row": answered | other_name | {"name": "Bücher"}})
    raw = encoding.from_base64(made["data"])
    parts = {"format": 0, "kind": 1, "parent": 6, "commitment": 22, "ciphertext": 54, "tag": len(raw) - 16}
    for name, other in damaged(raw, parts):
        if other[:2] != raw[:2] or other[2:6] == raw[2:6]:  # generations are below
            refuse(f"a blob: {name}", {"data": encoding.to_base64(other)}, refusal_of(other))
    salt = encoding.from_base64(made["salt"])
    for at in (0, 15, 31):
        refuse(f"bit 1 of byte {at} of the salt", {"salt": encoding.to_base64(flipped(salt, at, 1))})
    changes: dict[str, Given] = {
        "its salt is cut": {"salt": encoding.to_base64(salt[:31])},
        "its salt has a byte more": {"salt": encoding.to_base64(salt + b"\0")},
        "its salt is empty": {"salt": ""},
        "its salt is missing": {"salt": None},
        "its salt has a line feed": {"salt": made["salt"] + "\n"},
        "its salt moves a byte into its data": {
            "salt": encoding.to_base64(salt[:31]),
            "data": encoding.to_base64(raw[:22] + salt[31:] + raw[22:]),
        },
        "its data is missing": {"data": None},
        "its data is empty": {"data": ""},
        "its data is prose": {"data": "not sealed"},
        "it has another blob's salt": {"salt": earlier["salt"]},
        "an older blob is shown at this version": earlier,
        "it is shown at an earlier version": {"version": 1},
        "it is shown at a later version": {"version": 3},
        "it is shown at version 0": {"version": 0},
        "it is shown at version 2^53": {"version": 2**53},
        "it is shown under another name": {"name": "work"},
        "it is shown under a name with half of a surrogate pair": {"name": "personal\udbff"},
        "it is shown in another vault, by the row": {"uid": OTHER_VAULT},
        "a blob of another name is shown": other_name,
    }
    for name, change in changes.items():
        refuse(name, change)
    for name, text in spellings(made["data"]).items():
        refuse(f"its data is spelled {name}", {"data": text})
    for generation, error in {0: "tampered", 2: "locked", 2**32 - 1: "locked"}.items():
        data = encoding.to_base64(raw[:2] + generation.to_bytes(4, "big") + raw[6:])
        refuse(f"a blob of generation {generation}", {"data": data}, error)
    data = encoding.to_base64(raw[:2] + (2).to_bytes(4, "big") + raw[6:])
    refuse("a blob of another generation than it says", {"data": data}, where=later)
    refuse("it is shown in another vault", {"uid": OTHER_VAULT}, where=here | {"vault": OTHER_VAULT})
    refuse("it is shown in another account", {}, where=here | {"account": OTHER_ACCOUNT})
    refuse("it is shown to another key", {}, where=here | {"vaultKeys": OTHER_KEYS})
    _blob_insider(book, here, answered)
    return book


def _blob_insider(book: Book, here: Given, answered: Given) -> None:
    """Blobs that somebody with the key made, against the format."""
    key = vault_keys(here).newest
    salts = Stream("blob insider")
    good = padding.pad(Content(padding.JSON, _TITLE))
    bound = seal._blob(key, "personal", 2, bytes(16))
    for name, head, under, padded, associated in [
        ("nothing", b"\2\3", key.blob(), bytes(256), bound),
        ("padding that is not zero", b"\2\3", key.blob(), good[:-1] + b"\1", bound),
        ("an unknown kind of content", b"\2\3", key.blob(), b"\3" + good[1:], bound),
        ("too little padding", b"\2\3", key.blob(), good[:-1], bound),
        ("format 1", b"\1\3", key.blob(), good, bound),
        ("format 3", b"\3\3", key.blob(), good, bound),
        ("a document's kind", b"\2\1", key.blob(), good, bound),
        ("a chunk's kind", b"\2\6", key.blob(), good, bound),
        ("under the names key", b"\2\3", key.names(), good, bound),
        ("under the vault key", b"\2\3", key.key, good, bound),
        ("for another parent", b"\2\3", key.blob(), good, seal._blob(key, "personal", 2, b"\1" * 16)),
        ("for no parent at all", b"\2\3", key.blob(), good, bound[:-20]),
    ]:
        sealed = box.seal(under, salts(32), padded, associated)
        data = encoding.to_base64(head + bytes([0, 0, 0, 1]) + bytes(16) + sealed[32:])
        change = {"data": data, "salt": encoding.to_base64(sealed[:32])}
        book.bad(f"a key holder sealed {name}", "open-blob", {**here, "row": answered | change}, refusal_of(head))
    for version in (0, 2**53):
        sealed = box.seal(key.blob(), salts(32), good, seal._blob(key, "personal", version, bytes(16)))
        data = encoding.to_base64(b"\2\3\0\0\0\1" + bytes(16) + sealed[32:])
        told: Given = {"version": version, "data": data, "salt": encoding.to_base64(sealed[:32])}
        book.bad(f"a key holder sealed version {version}", "open-blob", {**here, "row": answered | told})


def memories() -> Book:
    """What a device remembers of rows and blobs."""
    book = Book("Memory of rows and blobs: what was true once, shown to a device that has seen more.")
    here, newer = place(), place(keys=VAULT_KEYS[:2])
    content = Content(padding.JSON, b"{}")

    def sealed(where: Given, version: int, parent: str = _NONE, **more: Any) -> Given:
        name = f"version {version}"
        return book.write(name, "seal-document", written(where, version, content, parent, **more))

    made = [sealed(here, version) for version in (1, 2, 3)]
    rows = [row(here, one, at) for at, one in enumerate(made, 1)]
    wire = here["wires"][0]
    seen = [2, made[1]["hmac"], wire]
    book.good("a first row", "remember-row", {"seen": None, "row": rows[1]})
    book.good("the same row again", "remember-row", {"seen": seen, "row": rows[1]})
    book.good("a newer row", "remember-row", {"seen": seen, "row": rows[2]})
    book.bad("an older row", "remember-row", {"seen": seen, "row": rows[0]}, "rolled_back")
    other = row(here, sealed(here, 2, "11" * 16), 2)
    book.bad("another content of the same version", "remember-row", {"seen": seen, "row": other})
    notice = row(here, sealed(here, 3, deletion=True), 3)
    book.good("a notice", "remember-row", {"seen": seen, "row": notice})
    dead = notice | {"version": 4, "deletedAt": NOON}
    book.good("its tombstone", "remember-row", {"seen": [3, notice["hmac"], wire], "row": dead})
    buried = [4, dead["hmac"], wire]
    book.good("a tombstone whose data is gone", "remember-row", {"seen": buried, "row": dead | {"data": ""}})
    book.bad("a notice after its tombstone", "remember-row", {"seen": buried, "row": notice}, "rolled_back")
    fourth = row(newer, sealed(newer, 4), 4)
    book.good("a row of the next generation", "remember-row", {"seen": seen, "row": fourth})
    given = {"seen": [4, fourth["hmac"], wire], "row": rows[2]}
    book.bad("an older row under an older key", "remember-row", given, "rolled_back")
    there = place("tasks")
    parent = encoding.short(made[1]["hmac"]).hex()
    for name, version, deletion in [
        ("a newer row of another collection, which follows on it", 3, False),
        ("a deletion of another collection, which follows on it", 3, True),
        ("another collection at the same version", 2, False),
        ("an older row of another collection", 1, False),
    ]:
        moved = row(there, sealed(there, version, parent, deletion=deletion), version)
        book.bad(name, "remember-row", {"seen": seen, "row": moved})
    first, second = (
        book.write(f"a blob at version {version}", "seal-blob", _blob_given(version, content))["data"]
        for version in (1, 2)
    )
    for name, before, shown in [
        ("the same blob again", [1, first], [1, first]),
        ("a newer blob", [1, first], [2, second]),
        ("a first blob", [1, None], [2, second]),
        ("no blob, as before", [1, None], [2, None]),
    ]:
        book.good(name, "remember-blob", {"seen": before, "shown": shown})
    for name, before, shown in [
        ("another blob of the same version", [1, first], [1, second]),
        ("a vault that has lost its blob", [1, first], [2, None]),
        ("a vault that has lost its blob at the same version", [1, first], [1, None]),
        ("a blob where there was none at this version", [1, None], [1, first]),
    ]:
        book.bad(name, "remember-blob", {"seen": before, "shown": shown})
    return book
