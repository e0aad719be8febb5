"""The chapters of everything below a row: encodings, boxes, derivation, keys, names, recovery keys, tokens."""

from __future__ import annotations

import json
from typing import Any

from strongroom.client.format import box, encoding, names, padding, primitives, public_box, tokens
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.padding import Content
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from tests.vectors.book import (
    ACCOUNT,
    EMAIL,
    OTHER_ACCOUNT,
    OTHER_KEYS,
    OTHER_VAULT,
    PASSWORD,
    VAULT,
    VAULT_KEYS,
    Book,
    Stream,
    damaged,
    flipped,
    flipped_text,
    refusal_of,
    spellings,
)
from tests.vectors.operations import Given, vault_key, vault_keys

MASTER = bytes(range(64, 96))
OTHER_MASTER = bytes(range(96, 128))
API_KEY = "srk_" + "Ab0_-" * 9 + "xyz"
# Points of the curve whose shared secret is zero, whatever the private key: of orders 1, 2, 4 and 8.
LOW_ORDER = [
    bytes(32),
    (1).to_bytes(32, "little"),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
    (2**255 - 20).to_bytes(32, "little"),
    (2**255 - 19).to_bytes(32, "little"),
    (2**255 - 18).to_bytes(32, "little"),
]


def derivation() -> Book:
    """From a password to keys, and the descriptors that are refused."""
    book = Book("From a password to keys: Argon2id, then HKDF; descriptors within and outside the limits.")
    random = Stream("derivation")
    spelled = Descriptor.new(random).spelled()
    given = {"email": EMAIL, "password": PASSWORD, "descriptor": spelled}
    same = book.good("a password gives a master key, and that two keys", "password-keys", given)
    accents = given | {"password": "pässwörd ☃"}
    composed = book.good("a password of any letters", "password-keys", accents)
    apart = accents | {"password": "pa\u0308sswo\u0308rd ☃"}
    assert book.good("the same, typed with combining marks", "password-keys", apart) == composed
    shouted = given | {"email": "  Ada@EXAMPLE.com\n"}
    assert book.good("however the email is spelled", "password-keys", shouted) == same
    more = given | {"descriptor": Descriptor.new(random, least=Floor(131_072, 4)).spelled()}
    book.good("with more work", "password-keys", more)
    book.bad("an empty password", "password-keys", {**given, "password": ""}, "validation_error")
    book.write("a new descriptor, without a recovery key", "new-descriptor", {})
    as_text = json.dumps(spelled)
    book.good("a descriptor as text", "read-descriptor", {"descriptor": as_text})
    doubled = as_text[:-1] + ', "passes": 4}'
    book.bad("a descriptor with a member twice", "read-descriptor", {"descriptor": doubled})
    book.good("the split of a master key", "split", {"master": MASTER.hex()})
    book.good("the least", "read-descriptor", {"descriptor": spelled})
    most = spelled | {"memory": 1_048_576, "passes": 4}
    book.good("the most memory", "read-descriptor", {"descriptor": most})
    book.good("the most passes", "read-descriptor", {"descriptor": spelled | {"passes": 16}})
    book.good("a member that is not known is not read", "read-descriptor", {"descriptor": spelled | {"more": 1}})
    book.good("as seen before", "read-descriptor", {"descriptor": most, "floor": [1_048_576, 4]})
    for name, change in {
        "less memory": {"memory": 65_535},
        "hardly any memory": {"memory": 8},
        "no memory": {"memory": 0},
        "negative memory": {"memory": -65_536},
        "fewer passes": {"passes": 2},
        "no passes": {"passes": 0},
        "two lanes": {"lanes": 2},
        "no lanes": {"lanes": 0},
        "too much memory": {"memory": 1_048_577},
        "absurd memory": {"memory": 2**53},
        "too many passes": {"passes": 17},
        "too much work in all": {"memory": 1_048_576, "passes": 5},
    }.items():
        book.bad(f"a descriptor with {name}", "read-descriptor", {"descriptor": spelled | change}, "weak_parameters")
    for change in ({"memory": 8}, {"passes": 1}):
        low = {"descriptor": spelled | change, "floor": [8, 1]}
        book.bad("a device that remembers less than the floor", "read-descriptor", low, "weak_parameters")
    for name, floor in {"memory": [131_072, 3], "passes": [65_536, 4]}.items():
        below = {"descriptor": spelled, "floor": floor}
        book.bad(f"a descriptor with less {name} than was seen before", "read-descriptor", below, "weak_parameters")
    changes: dict[str, dict[str, Any]] = {
        "a negative format": {"format": -3},
        "a fraction of a format": {"format": 2.5},
        "format as true": {"format": True},
        "format 0": {"format": 0},
        "another function": {"kdf": "pbkdf2"},
        "Argon2i": {"kdf": "argon2i"},
        "the function in capitals": {"kdf": "Argon2id"},
        "memory as text": {"memory": "65536"},
        "a fraction of passes": {"passes": 3.5},
        "memory as true": {"memory": True},
        "a short salt": {"salt": encoding.to_base64(bytes(15))},
        "a long salt": {"salt": encoding.to_base64(bytes(17))},
        "no salt": {"salt": ""},
        "a salt that is no base64": {"salt": "not base64!"},
        "a salt of 32 bytes": {"salt": encoding.to_base64(bytes(32))},
        "a salt in base64url": {"salt": encoding.to_url(b"\xfb" * 16)},
        "a salt with a line feed": {"salt": spelled["salt"] + "\n"},
        "a salt that is a list": {"salt": [1]},
        "a salt with padding too much": {"salt": spelled["salt"] + "="},
        "a sealed key with padding too much": {"recovery": spelled["recovery"] + "="},
        "a sealed key with a group of padding": {"recovery": spelled["recovery"] + "===="},
        "a short sealed key": {"recovery": encoding.to_base64(bytes(143))},
        "a long sealed key": {"recovery": encoding.to_base64(bytes(145))},
        "the sealed key of format 1": {"recovery": encoding.to_base64(bytes(112))},
        "a sealed key that is no base64": {"recovery": spelled["recovery"][:-1] + "!"},
        "null as sealed key": {"recovery": None},
        "null as memory": {"memory": None},
        "null as kdf": {"kdf": None},
        "format as text": {"format": "2"},
        "lanes as text": {"lanes": "1"},
        "lanes as true": {"lanes": True},
        "passes as a list": {"passes": [3]},
        "secretKey as text": {"secretKey": "false"},
        "secretKey as 0": {"secretKey": 0},
        "secretKey as 1": {"secretKey": 1},
        "null as secretKey": {"secretKey": None},
        "a half in memory": {"memory": 65_536.5},
        "a malformed salt and weak figures": {"salt": "", "memory": 8},
        "no sealed key": {"recovery": ""},
        "null as salt": {"salt": None},
    }
    for name, change in changes.items():
        book.bad(f"a descriptor with {name}", "read-descriptor", {"descriptor": spelled | change})
    members: dict[str, Given] = {"": {}, ", and other members": {"kdf": 7, "salt": None, "memory": 8}}
    for number in (1, 3, 4, 2**40):
        for name, members_ in members.items():
            other = {"descriptor": spelled | members_ | {"format": number}}
            book.bad(f"a descriptor of format {number}{name}", "read-descriptor", other, "unsupported")
    for name, members_ in members.items():
        keyed = {"descriptor": spelled | members_ | {"secretKey": True}}
        book.bad(f"a descriptor with a secret key{name}", "read-descriptor", keyed, "unsupported")
    keyed = {"descriptor": spelled | {"format": 0, "secretKey": True}}
    book.bad("a descriptor with a secret key, of format 0", "read-descriptor", keyed)
    book.bad("a descriptor of format 3 alone", "read-descriptor", {"descriptor": {"format": 3}}, "unsupported")
    whole = as_text.replace("65536", "65536.0").replace('"format": 2', '"format": 2e0')
    book.good("a descriptor whose integers have a fraction of zero", "read-descriptor", {"descriptor": whole})
    deep = as_text[:-1] + f', "x": {"[" * 32 + "]" * 32}}}'
    book.bad("a descriptor that is too deep", "read-descriptor", {"descriptor": deep})
    endless = as_text[:-1] + ', "x": 1e400}'
    book.bad("a descriptor with a number that is not finite", "read-descriptor", {"descriptor": endless})
    for member in spelled:
        without = {name: value for name, value in spelled.items() if name != member}
        book.bad(f"a descriptor without {member}", "read-descriptor", {"descriptor": without})
    odd: dict[str, Any] = {
        "a list": [],
        "null": None,
        "text that is no JSON": "{",
        "a number": 1,
        "a text": '"x"',
        "an empty text": "",
    }
    for name, other in odd.items():
        book.bad(f"{name} instead of a descriptor", "read-descriptor", {"descriptor": other})
    for text in [
        "Ada@Example.COM",
        "\tada@example.com \n",
        "ÀDA@example.com",
        "ΑΣ@example.com",
        "\u212aELVIN@example.com",
        "\u0130@example.com",
        "\ua7cb@example.com",
        "\ufeffada@example.com",
        "a@b",
    ]:
        book.good(f"the email {text!r}", "normal-email", {"email": text})
    for text in [
        "",
        "ada",
        "@example.com",
        "ada@",
        "a@b@c",
        "a\u0007@b",
        "\u00a0ada@example.com",
        "a@" + "b" * 253,
        "ada@example.com\u3000",
        "a@\u0085",
    ]:
        book.bad(f"the email {text[:20]!r}", "normal-email", {"email": text}, "validation_error")
    for text in ["12345678", "pa\u0308sswo\u0308rd"]:
        book.good(f"the new password {text!r}", "new-password", {"password": text})
    for text in ["", "1234567", "a\u0308" * 7, "x" * 1025]:
        book.bad(f"a new password of {len(text)} characters", "new-password", {"password": text}, "validation_error")
    return book


def paddings() -> Book:
    """Lengths and padding."""
    book = Book("Padmé, with 256 bytes as the least; and content with its head.")
    for length in [
        *range(0, 300, 50),
        255,
        256,
        257,
        288,
        289,
        500,
        1000,
        1024,
        1025,
        4096,
        4097,
        10**5,
        10**6,
        2**24 + 1,
    ]:
        book.good(f"{length} bytes", "padded-length", {"length": length})
    for kind, content in [(1, b"{}"), (2, b""), (2, bytes(range(251))), (2, bytes(252)), (0, b"")]:
        made = book.good(f"{len(content)} bytes of kind {kind}", "pad", {"kind": kind, "content": content.hex()})
        book.good("and back", "unpad", {"padded": made["padded"]})
    good = padding.pad(Content(padding.BYTES, b"abc"))
    for name, padded in {
        "nothing": b"",
        "a head alone": good[:5],
        "one byte too few": good[:-1],
        "one byte too many": good + b"\0",
        "padding that is not zero, first": flipped(good, 8),
        "padding that is not zero, last": flipped(good, 255),
        "kind 3": b"\3" + good[1:],
        "kind 255": b"\xff" + good[1:],
        "content without a kind": b"\0" + good[1:],
        "a longer length": good[:4] + b"\xfc" + good[5:],
        "a shorter length": good[:4] + b"\2" + good[5:],
        "a length in the wrong order": good[:1] + b"\3\0\0\0" + good[5:],
    }.items():
        book.bad(name, "unpad", {"padded": padded.hex()})
    return book


def keys() -> Book:
    """The hierarchy."""
    book = Book("The hierarchy below the account key, below a storage seed and below a vault's key of one generation.")
    seen: list[str] = []
    for _, key in (*VAULT_KEYS, *OTHER_KEYS):
        seen += book.good("an account key", "keyring-key", {"accountKey": key}).values()
        seen += book.good("a storage seed", "storage-keys", {"seed": key, "id": "AAECAwQFBgcICQoLDA0ODw"}).values()
        seen += book.good("a vault key", "vault-keys", {"vaultKey": key}).values()
        for collection in ("notes", "Notes", "letters", "Bücher/日本"):
            given = {"vaultKey": key, "collection": collection}
            seen += book.good(f"collection {collection}", "collection-keys", given).values()
    assert len(seen) == len(set(seen)) == 4 * (1 + 5 + 2 + 4 * 3), "two keys are the same"
    for name, collection in {"empty": "", "too long": "x" * 256, "with a control character": "a\nb"}.items():
        given = {"vaultKey": VAULT_KEYS[0][1], "collection": collection}
        book.bad(f"a collection's name that is {name}", "collection-keys", given, "validation_error")
    return book


def encodings() -> Book:
    """Lists and spellings."""
    book = Book("Lists; base64 and base64url: one spelling each.")
    for name, parts in {
        "a label alone": [["label", "seal"]],
        "nothing": [],
        "an empty item": [["text", ""]],
        "each kind of item": [["label", "salt"], ["text", "é"], ["number", 2**53 - 1], ["bytes", "00ff"]],
        "two items": [["text", "ab"], ["text", "c"]],
        "the same letters, cut otherwise": [["text", "a"], ["text", "bc"]],
    }.items():
        book.good(name, "items", {"items": parts})
    empty = book.good("the hash of nothing", "short", {"text": ""})
    assert book.good("the hash of nothing, as a proof", "short", {"text": "sr2."}) == empty
    told = book.good("the hash of bytes in base64", "short", {"text": "+/+/AA=="})
    assert book.good("the hash of the same bytes as a proof", "short", {"text": "sr2.-_-_AA"}) == told
    for text in ("é", "sr2.+/+/AA==", "-_-_AA", "+/+/AA", "AAAA=", "sr2.AAAA=", "sr1.AAAA", "x"):
        book.bad(f"the hash of {text!r}, which spells nothing", "short", {"text": text})
    for data in (b"", b"\0", b"\xfb\xff", b"\xfb\xff\xbf", bytes(range(40, 72))):
        book.good(f"{len(data)} bytes are written", "to-base64", {"bytes": data.hex()})
        book.good(f"base64 of {len(data)} bytes", "base64", {"text": encoding.to_base64(data)})
        book.good(f"base64url of {len(data)} bytes", "base64url", {"text": encoding.to_url(data)})
    for name, text in spellings(encoding.to_base64(b"\xfb\xff\xbf" * 10 + b"\0")).items():
        book.bad(f"base64 {name}", "base64", {"text": text})
    for count in range(1, 5):
        book.bad(f"whole groups and {count} signs of padding", "base64", {"text": "AAAA" + "=" * count})
        book.bad(f"whole groups and {count} signs of padding", "base64url", {"text": "AAAA" + "=" * count})
    for name, text in spellings(encoding.to_url(b"\xfb\xff\xbf" * 10 + b"\0") + "==").items():
        if not name.startswith(("without", "in the")):
            book.bad(f"base64url with padding, {name}", "base64url", {"text": text})
    for text in ["A", "AB", "AA==", "AA=", "A+", "+w", "-x", "AAA AAA", "\n"]:
        book.bad(f"base64url {text!r}", "base64url", {"text": text})
    return book


def boxes() -> Book:
    """Boxes under a key, and to a public key."""
    book = Book(
        "Boxes. `random` is what each draw gives, in order: a box draws its salt; one to a public key, `e` first."
    )
    random = Stream("boxes")
    key, associated = random(32), encoding.items(encoding.label("example"), b"here")
    plain = b"attack at dawn"
    given: Given = {"key": key.hex(), "plaintext": plain.hex(), "associated": associated.hex()}
    made = bytes.fromhex(book.write("a box is sealed", "seal-box", given)["box"])
    empty = book.write("a box of nothing", "seal-box", given | {"plaintext": "", "associated": ""})["box"]
    reading = {"key": key.hex(), "associated": associated.hex()}
    book.good("a box opens", "open-box", {**reading, "box": made.hex()})
    book.good("a box of nothing opens", "open-box", {**reading, "associated": "", "box": empty})
    for name, other in damaged(made, {"salt": 0, "commitment": 32, "ciphertext": 64, "tag": len(made) - 16}):
        book.bad(f"a box: {name}", "open-box", {**reading, "box": other.hex()})
    for size in (1, 16, 31, 33, 48, 63, 65, 79, 80, 81, 90):
        book.bad(f"only its first {size} bytes are left", "open-box", {**reading, "box": made[:size].hex()})
    for at in range(4, len(made), 9):
        book.bad(f"bit 6 of byte {at}", "open-box", {**reading, "box": flipped(made, at, 6).hex()})
    mixed = made[32:64] + made[:32] + made[64:]
    book.bad("salt and commitment exchanged", "open-box", {**reading, "box": mixed.hex()})
    book.bad("another key", "open-box", {**reading, "key": random(32).hex(), "box": made.hex()})
    book.bad("other associated data", "open-box", {**reading, "associated": associated[:-1].hex(), "box": made.hex()})
    _to_public(book, random, plain, associated)
    return book


def _to_public(book: Book, random: Stream, plain: bytes, associated: bytes) -> None:
    secret, other = random(32), random(32)
    public = book.good("a key pair", "key-pair", {"secret": secret.hex()})["public"]
    stranger = book.good("another key pair", "key-pair", {"secret": other.hex()})["public"]
    writing = {"public": public, "plaintext": plain.hex(), "associated": associated.hex()}
    made = bytes.fromhex(book.write("something is sealed to a public key", "seal-to", writing)["sealed"])
    reading = {"secret": secret.hex(), "associated": associated.hex()}
    book.good("its private key opens it", "open-sealed", {**reading, "sealed": made.hex()})
    theirs = book.write("the same for somebody else", "seal-to", writing | {"public": stranger})["sealed"]
    for length in (144, 148):
        noise = book.write(f"a filler of {length} bytes", "filler", {"length": length})["filler"]
        book.bad(f"a filler of {length} bytes opens for nobody", "open-sealed", {**reading, "sealed": noise})
    for at, point in enumerate(LOW_ORDER):
        name = f"low order {at}"
        book.bad(f"a public key of {name}", "seal-to", writing | {"public": point.hex(), "random": ["77" * 32] * 2})
        for high in (0, 0x80):
            spoilt = point[:31] + bytes([point[31] | high]) + made[32:]
            book.bad(f"a point of {name}, high bit {high}", "open-sealed", {**reading, "sealed": spoilt.hex()})
    pair = KeyPair.of(secret)
    for name, key in {  # boxes that a reader opens if it lets a shared secret of zeros pass, or leaves out the points
        "a shared secret of zeros": public_box._box_key(bytes(32), LOW_ORDER[0], pair.public),
        "no points in its key": primitives.hkdf(bytes(32), b"", encoding.items(encoding.label("sealed-key"))),
    }.items():
        spoilt = LOW_ORDER[0] + box.seal(key, random(32), plain, associated)
        book.bad(f"a box under {name}", "open-sealed", {**reading, "sealed": spoilt.hex()})
    shared = primitives.x25519(pair.private, made[:32]) or b""
    for name, salt in {
        "its own point alone": made[:32],
        "the points exchanged": pair.public + made[:32],
        "no points": b"",
    }.items():
        key = primitives.hkdf(shared, salt, encoding.items(encoding.label("sealed-key")))
        spoilt = made[:32] + box.seal(key, random(32), plain, associated)
        book.bad(f"a key that is derived with {name}", "open-sealed", {**reading, "sealed": spoilt.hex()})
    parts = {"point": 0, "salt": 32, "commitment": 64, "ciphertext": 96, "tag": len(made) - 16}
    for name, spoilt in damaged(made, parts):
        book.bad(f"sealed to a public key: {name}", "open-sealed", {**reading, "sealed": spoilt.hex()})
    book.bad("another secret", "open-sealed", {**reading, "secret": other.hex(), "sealed": made.hex()})
    book.bad("somebody else's", "open-sealed", {**reading, "sealed": theirs})
    joined = bytes.fromhex(theirs)[:32] + made[32:]
    book.bad("another's point before it", "open-sealed", {**reading, "sealed": joined.hex()})
    book.bad("other associated data", "open-sealed", {**reading, "associated": "", "sealed": made.hex()})


def sealed_names() -> Book:
    """Names of vaults and collections."""
    book = Book("Sealed names: always the same for a name, an account, a vault and a generation.")
    here: Given = {"account": ACCOUNT, "vault": VAULT, "vaultKeys": VAULT_KEYS[:1], "of": "vault"}
    inside = here | {"of": "collection"}
    rotated = inside | {"vaultKeys": VAULT_KEYS}
    seen = set()
    for place in (
        here,
        inside,
        rotated,
        here | {"account": OTHER_ACCOUNT},
        inside | {"vault": OTHER_VAULT},
        inside | {"vaultKeys": OTHER_KEYS},
    ):
        for name in ("personal", "Bücher/日本", "x" * 127, "x" * 31, "x" * 32):
            sealed = book.good("a name is sealed", "seal-name", {**place, "name": name})["sealed"]
            seen.add(sealed)
            assert len(sealed) <= 255
            book.good("and opens", "open-name", {**place, "sealed": sealed})
    assert len(seen) == 30
    old = book.good("a name of before a rotation", "seal-name", {**inside, "name": "notes"})["sealed"]
    book.good("opens after it", "open-name", {**rotated, "sealed": old})
    book.good(
        "a collection has a name for each generation", "collection-names", {**rotated, "name": "notes", "sealed": True}
    )
    book.good("or one that is not sealed", "collection-names", {**rotated, "name": "notes", "sealed": False})
    for name, open_name in {"of 510 bytes": "é" * 255, "of 512 bytes": "日" * 170 + "zz"}.items():
        given = {**rotated, "name": open_name, "sealed": False}
        book.good(f"a collection {name} that is not sealed", "collection-names", given)
    for name, open_name in {"of 513 bytes": "日" * 171, "of 256 characters": "x" * 256, "without a name": ""}.items():
        given = {**rotated, "name": open_name, "sealed": False}
        book.bad(f"a collection {name} that is not sealed", "collection-names", given, "validation_error")
    for name, text in {
        "empty": "",
        "too long to be sealed": "x" * 128,
        "too many bytes": "日" * 43,
        "sealed already": "sr2.AAAA",
        "with a control character": "a\tb",
    }.items():
        book.bad(f"a name that is {name}", "seal-name", {**here, "name": text}, "validation_error")
    _bad_names(book, here, inside, old)
    return book


def _bad_names(book: Book, here: Given, inside: Given, old: str) -> None:
    key = vault_keys(here).newest
    sealed = names.seal_vault_name(key, "personal")
    raw = encoding.from_url(sealed.removeprefix("sr2."))
    for name, other in damaged(raw[4:], {"digest": 0, "ciphertext": 32, "tag": 64}):
        changed = "sr2." + encoding.to_url(raw[:4] + other)
        book.bad(f"a sealed name: {name}", "open-name", {**here, "sealed": changed})
    for at in range(5, len(raw), 6):
        changed = "sr2." + encoding.to_url(flipped(raw, at, 5))
        book.bad(f"bit 5 of byte {at} is turned over", "open-name", {**here, "sealed": changed})
    for name, text in {
        "without its prefix": sealed.removeprefix("sr2."),
        "prefixed in capitals": "SR2." + sealed.removeprefix("sr2."),
        "in the clear": "personal",
        "that is nothing": "",
        "cut": sealed[:-1],
        "a lone prefix": "sr2.",
        "padded": sealed + "=",
        "with a space": sealed + " ",
        "with a space before": " " + sealed,
        "with a letter from outside ASCII": sealed[:-1] + "é",
        "twice as long": sealed + sealed.removeprefix("sr2."),
    }.items():
        book.bad(f"a sealed name {name}", "open-name", {**here, "sealed": text})
    for number in (1, 3, 10, 9999):
        text = f"sr{number}." + sealed.removeprefix("sr2.")
        book.bad(f"a sealed name of format {number}", "open-name", {**here, "sealed": text}, "unsupported")
    for prefix in ("sr0.", "sr02.", "sr10000.", "sr.", "sr-1.", "sr3", "sr\u0663."):
        text = prefix + sealed.removeprefix("sr2.")
        book.bad(f"a sealed name that begins with {prefix!r}", "open-name", {**here, "sealed": text})
    good = b"\x08personal".ljust(32, b"\0")
    for name, digest, padded in [
        ("under a digest of nothing", bytes(32), good),
        ("that has text in its padding", None, good[:-1] + b"x"),
        ("that is longer than its padding", None, b"\x20" + good[1:]),
        ("with more padding than it needs", None, good + bytes(32)),
        ("with less padding than it needs", None, good[:16]),
        ("without padding", None, good[:9]),
        ("that is empty", None, bytes(32)),
        ("that looks sealed", None, b"\x08sr2.AAAA".ljust(32, b"\0")),
        ("with a control character", None, b"\x03a\nb".ljust(32, b"\0")),
        ("with a control character of Latin-1", None, b"\x02\xc2\x85".ljust(32, b"\0")),
        ("that is no text", None, b"\x02\xff\xfe".ljust(32, b"\0")),
        ("with a lone surrogate", None, b"\x03\xed\xa0\x80".ljust(32, b"\0")),
        ("of 128 bytes", None, (b"\x80" + b"x" * 128).ljust(160, b"\0")),
        ("of 255 bytes", None, b"\xff" + b"x" * 255),
    ]:
        made = _name(key.names(), names._place(key, "vault-name"), padded, digest)
        book.bad(f"a key holder sealed a name {name}", "open-name", {**here, "sealed": made})
    for generation, error in {0: "tampered", 2: "locked", 2**32 - 1: "locked"}.items():
        changed = "sr2." + encoding.to_url(generation.to_bytes(4, "big") + raw[4:])
        book.bad(f"a sealed name of generation {generation}", "open-name", {**here, "sealed": changed}, error)
    later = here | {"vaultKeys": VAULT_KEYS}
    changed = "sr2." + encoding.to_url((2).to_bytes(4, "big") + raw[4:])
    book.bad("a sealed name of another generation than it says", "open-name", {**later, "sealed": changed})
    book.bad("another account's", "open-name", {**here, "account": OTHER_ACCOUNT, "sealed": sealed})
    book.bad("another vault's key", "open-name", {**here, "vaultKeys": OTHER_KEYS, "sealed": sealed})
    book.bad("another vault's", "open-name", {**here, "vault": OTHER_VAULT, "sealed": sealed})
    book.bad("a vault's name as a collection's", "open-name", {**inside, "sealed": sealed})
    book.bad("a collection's name as a vault's", "open-name", {**here, "sealed": old})
    book.bad("a collection's name of another vault", "open-name", {**inside, "vault": OTHER_VAULT, "sealed": old})


def _name(key: bytes, place: bytes, padded: bytes, digest: bytes | None) -> str:
    digest = names._digest(key, place, padded) if digest is None else digest
    sealed = primitives.encrypt(names._cipher_key(key, digest), padded, place)
    return "sr2." + encoding.to_url((1).to_bytes(4, "big") + digest + sealed)


def recovery_keys() -> Book:
    """Recovery keys, printed and typed; and the auth key that is sealed for one."""
    book = Book("Recovery keys: printed, typed, mistyped; and the auth key in the descriptor, sealed for one.")
    random = Stream("recovery")
    for secret in (bytes(20), b"\xff" * 20, random(20), random(20)):
        printed = book.good("a recovery key is printed", "print-recovery-key", {"secret": secret.hex()})["printed"]
        assert book.good("and typed", "read-recovery-key", {"printed": printed})["secret"] == secret.hex()
    key = RecoveryKey(random(20))
    printed = key.printed()
    body = printed.removeprefix("SR2-")
    easy = body.replace("0", "O").replace("1", "l").lower()
    for name, text in {
        "in small letters": printed.lower(),
        "without hyphens": printed.replace("-", ""),
        "with spaces": "  " + printed.replace("-", " ") + "\n",
        "with wide spaces": "\u3000" + printed.replace("-", "\u00a0") + "\u2028",
        "with hyphens everywhere": "-".join(printed),
        "with O for 0 and l for 1": "sr2-" + easy,
    }.items():
        assert book.good(f"it is typed {name}", "read-recovery-key", {"printed": text})["printed"] == printed
    for at in range(len(body)):
        if body[at] != "-":
            slip = "SR2-" + body[:at] + ("Z" if body[at] != "Z" else "Y") + body[at + 1 :]
            book.bad(f"a slip at sign {at}", "read-recovery-key", {"printed": slip}, "validation_error")
    has_s = next(at for at, sign in enumerate(body) if sign == "S") if "S" in body else 0
    for name, text in {
        "with two groups exchanged": "SR2-" + body[5:9] + "-" + body[:4] + body[9:],
        "without its last sign": printed[:-1],
        "with a sign more": printed + "0",
        "without its prefix": body,
        "with its prefix twice": "SR2-" + printed,
        "with a U": "SR2-U" + body[1:],
        "with a long S for an S": "SR2-" + body[:has_s] + "\u017f" + body[has_s + 1 :],
        "with a long S in its prefix": "\u017fR2-" + body,
        "with a dotless i for a 1": "SR2-\u0131" + body[1:],
        "with full-width digits": "SR2-\uff10" + body[1:],
        "with long hyphens": printed.replace("-", "\u2013"),
        "with a zero-width space": printed[:8] + "\u200b" + printed[8:],
        "with a control character": printed[:8] + "\x1c" + printed[8:],
        "with a dot": printed + ".",
        "empty": "",
        "a lone prefix": "SR2-",
        "of zeros": "SR2" + "0" * 36,
    }.items():
        book.bad(f"a recovery key {name}", "read-recovery-key", {"printed": text}, "validation_error")
    for other in ("SR1-" + body, "SR3-" + body, " sr9 " + body, "S-R-4", "SR3-" + body + body):
        name = f"a recovery key of another format: {other[:5]}"
        book.bad(name, "read-recovery-key", {"printed": other}, "unsupported")
    book.bad("a recovery key of format 0", "read-recovery-key", {"printed": "SR0-" + body}, "validation_error")
    _sealed_auth(book, key)
    return book


def _sealed_auth(book: Book, key: RecoveryKey) -> None:
    """The auth key, sealed in the descriptor for the recovery key."""
    random = Stream("sealed auth")
    auth = primitives.sha256(b"auth")
    writing = {
        "authPublic": key.auth().public.hex(),
        "email": EMAIL,
        "auth": auth.hex(),
        "descriptor": Descriptor.new(random).spelled(),
    }
    spelled = book.write("an auth key is sealed for a recovery key", "seal-auth", writing)["descriptor"]
    given: Given = {"recoveryKey": key.printed(), "email": EMAIL, "descriptor": spelled}
    assert book.good("the recovery key opens it", "open-auth", given)["auth"] == auth.hex()
    book.good("however the email is spelled", "open-auth", given | {"email": " Ada@EXAMPLE.com "})
    book.bad("for another email it does not", "open-auth", given | {"email": "eve@example.com"})
    book.bad("for an email of other letters it does not", "open-auth", given | {"email": "ada@examp1e.com"})
    book.bad("for no email it does not", "open-auth", given | {"email": "ada"}, "validation_error")
    book.bad("another recovery key does not", "open-auth", given | {"recoveryKey": RecoveryKey(bytes(20)).printed()})
    for at in [*range(0, 144, 4), 31, 143]:
        changed = spelled | {"recovery": flipped_text(spelled["recovery"], at, at % 8)}
        book.bad(f"bit {at % 8} of byte {at} of it is turned over", "open-auth", given | {"descriptor": changed})
    high = spelled | {"recovery": flipped_text(spelled["recovery"], 31, 7)}
    book.bad("the bit of its point that does not count is turned over", "open-auth", given | {"descriptor": high})
    raw = encoding.from_base64(spelled["recovery"])
    other = encoding.from_base64(book.write("the same again", "seal-auth", writing)["descriptor"]["recovery"])
    wrong = dict(writing, authPublic=KeyPair.of(key.wrap()).public.hex())
    for_wrap = book.write("sealed for the other key pair", "seal-auth", wrong)["descriptor"]
    book.bad("sealed for the key pair of the slot", "open-auth", given | {"descriptor": for_wrap})
    changes: dict[str, Given] = {
        "another salt": {"salt": encoding.to_base64(bytes(16))},
        "more passes": {"passes": 4},
        "more memory": {"memory": 70_000},
        "noise instead": {"recovery": encoding.to_base64(random(144))},
        "a filler instead": {"recovery": encoding.to_base64(public_box.filler(144, random))},
        "zeros instead": {"recovery": encoding.to_base64(bytes(144))},
        "a cut box": {"recovery": encoding.to_base64(raw[:-1])},
        "a longer box": {"recovery": encoding.to_base64(raw + b"\0")},
        "another's point": {"recovery": encoding.to_base64(other[:32] + raw[32:])},
        "another's box": {"recovery": encoding.to_base64(raw[:32] + other[32:])},
        "point and salt exchanged": {"recovery": encoding.to_base64(raw[32:64] + raw[:32] + raw[64:])},
    }
    for at, point in enumerate(LOW_ORDER):
        changes[f"a point of low order {at}"] = {"recovery": encoding.to_base64(point + raw[32:])}
    for name, change in changes.items():
        book.bad(f"the descriptor has {name}", "open-auth", given | {"descriptor": spelled | change})
    for name, change in {"less memory": {"memory": 8}, "one pass": {"passes": 1}}.items():
        weak = given | {"descriptor": spelled | change}
        book.bad(f"the descriptor has {name}", "open-auth", weak, "weak_parameters")


def bundles() -> Book:
    """Tokens."""
    book = Book("Tokens: an API key with the keys of a vault or of a collection, of every generation.")
    base: Given = {"apiKey": API_KEY, "account": ACCOUNT, "vault": VAULT, "name": "personal", "keyring": 9}
    one = base | {"vaultKeys": VAULT_KEYS[:1]}
    collections = [[number, vault_key(key).collection("notes").key.hex()] for number, key in VAULT_KEYS]
    wires = list(names.collection_keys(vault_keys(base | {"vaultKeys": VAULT_KEYS}), "notes", sealed=True).wires)
    older = [[number, vault_key(key).names().hex()] for number, key in VAULT_KEYS[:2]]
    part = base | {"scope": 2, "name": "notes", "collectionKeys": collections, "wires": wires}
    made = {
        "a vault": one | {"scope": 1},
        "a vault with three generations": base | {"scope": 1, "vaultKeys": VAULT_KEYS},
        "a vault without a name": one | {"scope": 1, "name": ""},
        "a vault whose names are not sealed": one | {"scope": 3},
        "a vault that has no UUID": one | {"scope": 1, "vault": "Tresor №1"},
        "a vault whose floor has risen": base | {"scope": 1, "vaultKeys": VAULT_KEYS, "floor": VAULT_KEYS[1][0]},
        "a vault without the keys of before its floor": base
        | {"scope": 1, "vaultKeys": VAULT_KEYS[2:], "namesKeys": older, "floor": VAULT_KEYS[2][0]},
        "a vault of the highest keyring": one | {"scope": 1, "keyring": 2**53 - 1},
        "a collection with three generations": part,
        "a collection whose floor has risen": part | {"floor": VAULT_KEYS[2][0]},
        "a collection": part | {"collectionKeys": collections[:1], "wires": wires[2:]},
        "a collection whose name is not sealed": part | {"wires": ["notes"]},
    }
    texts = {}
    for name, given in made.items():
        texts[name] = book.good(f"a token of {name} is made", "make-token", given)["token"]
        book.good(f"a token of {name} is read", "read-token", {"token": texts[name]})
    for name, change in {"is empty": "", "has a space": "a b", "is too long": "x" * 1025, "is no ASCII": "é"}.items():
        book.bad(f"an API key that {name}", "make-token", one | {"scope": 1, "apiKey": change}, "validation_error")
    _bad_tokens(book, texts["a vault"], texts["a collection with three generations"])
    return book


def _bad_tokens(book: Book, whole: str, part: str) -> None:
    def refuse(name: str, text: str, error: str = "validation_error") -> None:
        book.bad(f"a token {name}", "read-token", {"token": text}, error)

    def insider(name: str, body: bytes) -> None:
        whole = body + tokens._check(body)
        refuse(f"{name}, its checksum right", "srv_" + encoding.to_url(whole), refusal_of(whole, "validation_error"))

    raw = encoding.from_url(whole.removeprefix("srv_"))
    ends = {"API key": 18, "uid": 72, "name": 110, "keys": 120, "names keys": 157}
    ends |= {"collections": 158, "floor": 159, "keyring": 163, "checksum": 171}
    assert len(raw) == 175, len(raw)
    for name, other in damaged(raw, {"format": 0, "scope": 1, "account id": 2} | ends):
        refuse(f"is changed: {name}", "srv_" + encoding.to_url(other), refusal_of(other, "validation_error"))
    for name, text in {
        "without its prefix": whole.removeprefix("srv_"),
        "with an API key's prefix": "srk_" + whole.removeprefix("srv_"),
        "with its prefix in capitals": "SRV_" + whole.removeprefix("srv_"),
        "cut": whole[:-1],
        "padded": whole + "=",
        "with a line feed": whole + "\n",
        "with a space before": " " + whole,
        "empty": "",
        "a lone prefix": "srv_",
        "too long": "srv_" + "A" * 8192,
    }.items():
        refuse(name, text)
    body = raw[:-4]
    uid, key, lowest = body[74:110], body[121:157], body[159:171]
    second = b"\1\0\0\0\2" + key[4:]
    plain = b"\2\3" + body[2:120] + second + b"\1" + key + body[158:]
    for name, other in {
        "of the format before": b"\1" + body[1:],
        "of a later format": b"\3" + body[1:],
        "of scope 0": b"\2\0" + body[2:],
        "of an unknown scope": b"\2\4" + body[2:],
        "of a collection that is not named": b"\2\2" + body[2:],
        "without an API key": body[:18] + bytes(2) + body[72:],
        "with text after its parts": body + b"x",
        "with a part that is cut": body[:-1],
        "with a key that is cut": body[:140],
        "of an API key with a line feed": body[:30] + b"\n" + body[31:],
        "of an API key with a space": body[:30] + b" " + body[31:],
        "of an API key from outside ASCII": body[:30] + b"\xc3\xa9" + body[32:],
        "of an API key that is no text": body[:30] + b"\xff" + body[31:],
        "with a length beyond its end": body[:72] + b"\xff\xff" + body[74:],
        "of a uid in capitals": body[:74] + uid.upper() + body[110:],
        "of an empty uid": body[:72] + bytes(2) + body[110:],
        "of a uid with a control character": body[:74] + b"\n" + uid[1:] + body[110:],
        "of a name with a control character": body[:112] + b"\n" + body[113:],
        "of a name that is no text": body[:112] + b"\xff" + body[113:],
        "with a floor of 0": body[:159] + bytes(4) + body[163:],
        "with a floor above its newest key": body[:159] + (VAULT_KEYS[0][0] + 1).to_bytes(4, "big") + body[163:],
        "without a floor": body[:159] + body[163:],
        "of keyring 0": body[:163] + bytes(8),
        "of keyring 2^53": body[:163] + (2**53).to_bytes(8, "big"),
        "without a keyring": body[:163],
        "with a names key of the generation of a key": body[:157] + b"\1" + key + body[158:],
        "with a names key of a later generation": body[:157] + b"\1\0\0\0\2" + key[4:] + body[158:],
        "with a names key of generation 0": body[:157] + b"\1\0\0\0\0" + key[4:] + body[158:],
        "of a plain vault with a names key": plain,
        "without keys": body[:120] + b"\0" + body[157:],
        "with two keys of one generation": body[:120] + b"\2" + key + key + body[157:],
        "with keys out of order": body[:120] + b"\2\0\0\0\2" + key[4:] + key + body[157:],
        "with a key of generation 0": body[:121] + bytes(4) + body[125:],
        "with fewer keys than it says": body[:120] + b"\2" + body[121:],
        "of a vault with a collection": body[:158] + b"\1\0\1x" + lowest,
        "of a plain vault with a collection": b"\2\3" + body[2:158] + b"\1\0\1x" + lowest,
        "of nothing": b"",
        "of a format alone": b"\2",
        "of format and scope alone": b"\2\1",
    }.items():
        insider(name, other)
    many = b"".join(number.to_bytes(4, "big") + key[4:] for number in range(1, 256))
    insider("of more than 8,192 characters", body[:120] + b"\xff" + many + body[157:])
    inner = encoding.from_url(part.removeprefix("srv_"))[:-4]
    start = 72 + 38 + 2
    listed = start + 5 + 1 + 3 * 36 + 1
    assert inner[listed] == 3, inner[listed]
    for name, other in {
        "of a collection without a name": inner[: start - 2] + bytes(2) + inner[start + 5 :],
        "of a collection with a names key": inner[: listed - 1] + b"\1\0\0\0\1" + key[4:] + inner[listed:],
        "of a collection without collections": inner[:listed] + b"\0" + lowest,
        "of a collection with a collection twice": inner[:listed] + b"\2\0\1x\0\1x" + lowest,
        "of a collection with an empty collection": inner[:listed] + b"\1\0\0" + lowest,
        "of a collection with a control character": inner[:listed] + b"\1\0\1\n" + lowest,
        "of a collection, called a vault": b"\2\1" + inner[2:],
        "of a collection, cut in its collections": inner[:-1],
        "of a collection that is too long": inner[:listed] + b"\1\1\0" + b"x" * 256 + lowest,
    }.items():
        insider(name, other)
