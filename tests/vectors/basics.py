"""The chapters of everything below a row: derivation, keys, padding, encodings, names, recovery keys, tokens."""

from __future__ import annotations

from typing import Any

from strongroom.client.format import box, encoding, names, padding, primitives, tokens
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.keys import AccountKey
from strongroom.client.format.padding import Content
from strongroom.client.format.recovery import RecoveryKey
from tests.vectors.book import (
    ACCOUNT_KEY,
    EMAIL,
    OTHER_ACCOUNT_KEY,
    OTHER_VAULT,
    PASSWORD,
    VAULT,
    Book,
    Stream,
    flipped,
    spellings,
)
from tests.vectors.rings import MASTER

API_KEY = "srk_" + "Ab0_-" * 9 + "xyz"


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
    more = given | {"descriptor": Descriptor.new(random, memory=131_072, passes=4).spelled()}
    book.good("with more work", "password-keys", more)
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
        "another format": {"format": 2},
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
        "a short sealed key": {"recovery": encoding.to_base64(bytes(111))},
        "no sealed key": {"recovery": ""},
        "null as salt": {"salt": None},
    }
    for name, change in changes.items():
        book.bad(f"a descriptor with {name}", "read-descriptor", {"descriptor": spelled | change})
    for member in spelled:
        without = {name: value for name, value in spelled.items() if name != member}
        book.bad(f"a descriptor without {member}", "read-descriptor", {"descriptor": without})
    odd: dict[str, Any] = {"a list": [], "null": None, "text that is no JSON": "{", "a number": 1}
    for name, other in odd.items():
        book.bad(f"{name} instead of a descriptor", "read-descriptor", {"descriptor": other})
    for text in ["Ada@Example.COM", "\tada@example.com \n", "ÀDA@example.com", "ΑΣ@example.com"]:
        book.good(f"the email {text!r}", "normal-email", {"email": text})
    for text in ["", "ada", "@example.com", "ada@", "a@b@c", "a\u0007@b", "\u00a0ada@example.com", "a@" + "b" * 253]:
        book.bad(f"the email {text[:20]!r}", "normal-email", {"email": text}, "validation_error")
    for text in ["12345678", "pa\u0308sswo\u0308rd"]:
        book.good(f"the new password {text!r}", "new-password", {"password": text})
    for text in ["", "1234567", "a\u0308" * 7, "x" * 1025]:
        book.bad(f"a new password of {len(text)} characters", "new-password", {"password": text}, "validation_error")
    return book


def keys() -> Book:
    """The hierarchy."""
    book = Book("The hierarchy below the account key.")
    seen: set[str] = set()
    for account in (ACCOUNT_KEY, OTHER_ACCOUNT_KEY):
        seen |= set(book.good("an account", "account-keys", {"accountKey": account}).values())
        for vault in (VAULT, OTHER_VAULT):
            given = {"accountKey": account, "vault": vault}
            seen |= set(book.good(f"vault {vault}", "vault-keys", given).values())
            for collection in ("notes", "Notes", "letters", "Bücher/日本"):
                deeper = given | {"collection": collection}
                seen |= set(book.good(f"collection {collection}", "collection-keys", deeper).values())
    assert len(seen) == 2 * (3 + 2 * (3 + 4 * 3)), "two keys are the same"
    upper = book.good(
        "a uid in capitals is the same vault", "vault-keys", {"accountKey": ACCOUNT_KEY, "vault": VAULT.upper()}
    )
    assert upper["key"] in seen
    for name, collection in {"empty": "", "too long": "x" * 256, "with a control character": "a\nb"}.items():
        given = {"accountKey": ACCOUNT_KEY, "vault": VAULT, "collection": collection}
        book.bad(f"a collection's name that is {name}", "collection-keys", given, "validation_error")
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


def encodings() -> Book:
    """Boxes and spellings."""
    book = Book("Boxes, base64 and base64url: one spelling each.")
    random = Stream("encodings")
    key, salt, associated = random(32), random(32), encoding.items(encoding.label("example"), b"here")
    made = box.seal(key, salt, b"attack at dawn", associated)
    given = {"key": key.hex(), "box": made.hex(), "associated": associated.hex()}
    book.good("a box opens", "open-box", given)
    for part, at in {
        "salt": 0,
        "commitment": 32,
        "commitment's end": 63,
        "ciphertext": 64,
        "tag": 78,
        "end": 93,
    }.items():
        book.bad(f"a bit of its {part} is turned over", "open-box", given | {"box": flipped(made, at, 5).hex()})
    for size in (0, 32, 64, 79, 93):
        book.bad(f"only its first {size} bytes are left", "open-box", given | {"box": made[:size].hex()})
    book.bad("another key", "open-box", given | {"key": random(32).hex()})
    book.bad("other associated data", "open-box", given | {"associated": associated[:-1].hex()})
    # Zero bytes on purpose: whoever commits to nothing accepts what any key made.
    stripped = made[:32] + bytes(32) + made[64:]
    book.bad("a commitment to nothing", "open-box", given | {"box": stripped.hex()})
    for data in (b"", b"\0", b"\xfb\xff", b"\xfb\xff\xbf", bytes(range(40, 72))):
        book.good(f"base64 of {len(data)} bytes", "base64", {"text": encoding.to_base64(data)})
        book.good(f"base64url of {len(data)} bytes", "base64url", {"text": encoding.to_url(data)})
    for name, text in spellings(encoding.to_base64(b"\xfb\xff\xbf" * 10 + b"\0")).items():
        book.bad(f"base64 {name}", "base64", {"text": text})
    for name, text in spellings(encoding.to_url(b"\xfb\xff\xbf" * 10 + b"\0") + "==").items():
        if not name.startswith(("without", "in the")):
            book.bad(f"base64url with padding, {name}", "base64url", {"text": text})
    for text in ["A", "AB", "AA==", "AA=", "A+", "+w", "-x", "AAA AAA", "\n"]:
        book.bad(f"base64url {text!r}", "base64url", {"text": text})
    return book


def sealed_names() -> Book:
    """Names of vaults and collections."""
    book = Book("Sealed names: deterministic, bound to the account, and for collections to the vault.")
    in_account = {"accountKey": ACCOUNT_KEY}
    in_vault = {"accountKey": ACCOUNT_KEY, "vault": VAULT}
    for place in (in_account, in_vault, in_vault | {"vault": OTHER_VAULT}, {"accountKey": OTHER_ACCOUNT_KEY}):
        for name in ("personal", "Bücher/日本", "x" * 127, "x" * 31, "x" * 32):
            sealed = book.good("a name is sealed", "seal-name", {**place, "name": name})["sealed"]
            assert len(sealed) <= 255
            book.good("and opens", "open-name", {**place, "sealed": sealed})
    for name, text in {
        "empty": "",
        "too long to be sealed": "x" * 128,
        "too many bytes": "日" * 43,
        "sealed already": "sr1.AAAA",
        "with a control character": "a\tb",
    }.items():
        book.bad(f"a name that is {name}", "seal-name", {**in_account, "name": text}, "validation_error")
    keys_ = AccountKey.of(bytes.fromhex(ACCOUNT_KEY))
    sealed = names.seal_vault_name(keys_, "personal")
    raw = encoding.from_url(sealed.removeprefix(names.PREFIX))
    for at in (0, 16, 31, 32, 48, 63, 64, 79):
        changed = names.PREFIX + encoding.to_url(flipped(raw, at, at % 8))
        book.bad(f"bit {at % 8} of byte {at} is turned over", "open-name", {**in_account, "sealed": changed})
    for name, text in {
        "without its prefix": sealed.removeprefix(names.PREFIX),
        "of another format": "sr2." + sealed.removeprefix(names.PREFIX),
        "in the clear": "personal",
        "cut": sealed[:-1],
        "a lone prefix": names.PREFIX,
        "padded": sealed + "=",
        "with a space": sealed + " ",
        "twice as long": sealed + sealed.removeprefix(names.PREFIX),
    }.items():
        book.bad(f"a sealed name {name}", "open-name", {**in_account, "sealed": text})
    here, key = names._vault(keys_), keys_.vault_names()
    good = b"\x08personal".ljust(32, b"\0")
    for name, digest, padded in [
        ("under a digest of nothing", bytes(32), good),
        ("that has text in its padding", None, good[:-1] + b"x"),
        ("that is longer than its padding", None, b"\x20" + good[1:]),
        ("with more padding than it needs", None, good + bytes(32)),
        ("that is empty", None, bytes(32)),
        ("that looks sealed", None, b"\x08sr1.AAAA".ljust(32, b"\0")),
        ("that is no text", None, b"\x02\xff\xfe".ljust(32, b"\0")),
    ]:
        salt = names._keys(key, here, padded)[0] if digest is None else digest
        fresh = primitives.hkdf(key, salt, encoding.items(encoding.label("name-box")))
        made = names.PREFIX + encoding.to_url(salt + primitives.encrypt(fresh, padded, here))
        book.bad(f"a key holder sealed a name {name}", "open-name", {**in_account, "sealed": made})
    book.bad("another account's", "open-name", {"accountKey": OTHER_ACCOUNT_KEY, "sealed": sealed})
    book.bad("a vault's name as a collection's", "open-name", {**in_vault, "sealed": sealed})
    inner = names.seal_collection_name(keys_.vault(VAULT), "notes")
    book.bad("a collection's name as a vault's", "open-name", {**in_account, "sealed": inner})
    book.bad("a collection's name of another vault", "open-name", {**in_vault, "vault": OTHER_VAULT, "sealed": inner})
    return book


def recovery_keys() -> Book:
    """Printed recovery keys."""
    book = Book("Recovery keys: printed, typed, mistyped.")
    random = Stream("recovery")
    for secret in (bytes(20), b"\xff" * 20, random(20), random(20)):
        printed = RecoveryKey(secret).printed()
        book.good("a recovery key", "read-recovery-key", {"printed": printed})
    printed = RecoveryKey(random(20)).printed()
    body = printed.removeprefix("SR1-")
    easy = body.replace("0", "O").replace("1", "l").lower()
    for name, text in {
        "in small letters": printed.lower(),
        "without hyphens": printed.replace("-", ""),
        "with spaces": "  " + printed.replace("-", " ") + "\n",
        "with O for 0 and l for 1": "sr1-" + easy,
    }.items():
        assert book.good(f"it is typed {name}", "read-recovery-key", {"printed": text})["printed"] == printed
    for at in range(0, len(body), 4):
        if body[at] != "-":
            slip = "SR1-" + body[:at] + ("Z" if body[at] != "Z" else "Y") + body[at + 1 :]
            book.bad(f"a slip at sign {at}", "read-recovery-key", {"printed": slip}, "validation_error")
    swapped = "SR1-" + body[5:9] + "-" + body[:4] + body[9:]
    for name, text in {
        "with two groups exchanged": swapped,
        "without its last sign": printed[:-1],
        "with a sign more": printed + "0",
        "without its prefix": body,
        "of another format": "SR2-" + body,
        "with a U": "SR1-U" + body[1:],
        "empty": "",
        "a lone prefix": "SR1-",
    }.items():
        book.bad(f"a recovery key {name}", "read-recovery-key", {"printed": text}, "validation_error")
    return book


def bundles() -> Book:
    """Tokens."""
    book = Book("Tokens: an API key with the key of a vault or of a collection.")
    keys_ = AccountKey.of(bytes.fromhex(ACCOUNT_KEY)).vault(VAULT)
    whole = tokens.Token(api_key=API_KEY, keys=keys_, name="personal").spelled()
    part = tokens.Token(api_key=API_KEY, keys=keys_.collection("notes")).spelled()
    book.good("a token of a vault", "read-token", {"token": whole})
    book.good("a token of a collection", "read-token", {"token": part})
    plain = tokens.Token(api_key=API_KEY, keys=keys_, name="personal", sealed=False).spelled()
    book.good("a token of a vault whose names are not sealed", "read-token", {"token": plain})
    raw = encoding.from_url(whole.removeprefix("srv_"))
    for at in (0, 1, 2, 17, 18, 49, 50, 52, 102, 140, len(raw) - 4, len(raw) - 1):
        changed = "srv_" + encoding.to_url(flipped(raw, at, 2))
        book.bad(f"bit 2 of byte {at} is turned over", "read-token", {"token": changed}, "validation_error")
    for name, text in {
        "without its prefix": whole.removeprefix("srv_"),
        "with an API key's prefix": "srk_" + whole.removeprefix("srv_"),
        "cut": whole[:-1],
        "padded": whole + "=",
        "with a line feed": whole + "\n",
        "empty": "",
        "a lone prefix": "srv_",
        "too long": "srv_" + "A" * 8192,
    }.items():
        book.bad(f"a token {name}", "read-token", {"token": text}, "validation_error")
    for name, body in {
        "of format 2": b"\2" + raw[1:-4],
        "of an unknown scope": b"\1\4" + raw[2:-4],
        "of a collection that is not named": b"\1\2" + raw[2:-4],
        "without an API key": raw[:50] + bytes(2) + raw[104:-4],
        "with text after its parts": raw[:-4] + b"x",
        "with a part that is cut": raw[:-5],
        "with a key that is cut": raw[:40],
        "of an API key with a line feed": raw[:60] + b"\n" + raw[61:-4],
    }.items():
        checked = "srv_" + encoding.to_url(body + tokens._check(body))
        book.bad(f"a token {name}, its checksum right", "read-token", {"token": checked}, "validation_error")
    return book
