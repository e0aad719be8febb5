"""Changes of vectors at random, the same ones for the same seed: bytes, spellings, JSON, prefixes, lengths."""

from __future__ import annotations

import base64
import binascii
import copy
import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from strongroom.client.errors import Tampered
from strongroom.client.format import box, encoding, keyring, padding
from strongroom.client.format.keys import keyring_key
from strongroom.client.format.padding import Content
from tests.vectors.operations import Given

# What a server or a person gives to each reader. Everything else is what the reader has itself.
GIVEN: Final[dict[str, tuple[str, ...]]] = {
    "base64": ("text",),
    "base64url": ("text",),
    "short": ("text",),
    "unpad": ("padded",),
    "read-content": ("json",),
    "open-box": ("box",),
    "open-sealed": ("sealed",),
    "open-slot": ("slot",),
    "normal-email": ("email",),
    "read-descriptor": ("descriptor",),
    "open-auth": ("descriptor", "email", "recoveryKey"),
    "read-recovery-key": ("printed",),
    "open-keyring": ("keyring", "descriptor"),
    "recover-keyring": ("keyring", "recoveryKey"),
    "reopen-keyring": ("keyring",),
    "unlock-keyring": ("keyring",),
    "open-name": ("sealed",),
    "open-document": ("row",),
    "open-past-document": ("row",),
    "open-blob": ("row",),
    "trace": ("newest", "seen", "history"),
    "read-token": ("token",),
}
_HEX: Final = {"padded", "json", "box", "slot"}
_NUMBERS: Final = (
    *("0", "1", "-1", "1.0", "1e0", "-0", "-0.0", "0.5", "1.5", "2e0", "3", "1e20", "1e21", "1e300", "1e400", "1e-400"),
    *("9007199254740991", "9007199254740992", "-9007199254740992", "18446744073709551616", "1" + "0" * 30, "01", "1."),
    *("true", "null", '"1"', "[]", "{}", "4294967295", "4294967296", "65536", "65535", "1048577"),
)
_INSERTED: Final = (
    *(',"x":1', ',"x":1,"x":2', ',"format":3', ',"must":[]', ',"must":["x"]', ',"account":""', ',"__proto__":1'),
    *(r',"x":"\ud800"', r',"\udfff":1', r',"x":"\ud83d\ude00"', ',"x":"\u00e9\u2028"', ',"x":1e20', ',"x":1e400'),
    *(f',"x":{"[" * depth}{"]" * depth}' for depth in (29, 30, 31, 32, 33, 499, 500, 501, 1_500)),
    *("\n", " ", "\ufeff", "\x0c", "\x00", ",", "/**/", "}", "]", '"'),
)
_PREFIXES: Final = (
    "sr1.",
    "sr2.",
    "sr3.",
    "sr10.",
    "sr0.",
    "sr02.",
    "sr99999.",
    "SR2.",
    "",
    "sr2",
    "srv_",
    "srk_",
    "SR3-",
)
_SIGNS: Final = 'AZaz09+/-_=.\n \t\u00e9\u0000\u0131\u017f\ud800\uff10,:{}[]"\\'


def mutated(cases: list[Given], random: Random, count: int) -> Iterator[tuple[str, Given]]:
    """So many changed cases: what is done, and what is given."""
    readers = [case for case in cases if case["does"] in GIVEN]
    by_reader: dict[str, list[Given]] = {}
    for case in readers:
        by_reader.setdefault(case["does"], []).append(case)
    names = sorted(by_reader)
    for _ in range(count):
        does = random.choice(names)
        case = random.choice(by_reader[does])
        given = copy.deepcopy(case["given"])
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            _change(does, given, random, by_reader[does])
        yield does, given


def _change(does: str, given: Given, random: Random, others: list[Given]) -> None:
    field = random.choice(GIVEN[does])
    if field == "row":
        _change_row(given["row"], random, others)
    elif field == "descriptor":
        given[field] = _descriptor(given[field], random)
    elif field == "history":
        links = given["history"]
        if links:
            _change_link(random.choice(links), random)
            if random.random() < 0.3:
                links.pop(random.randrange(len(links)))
    elif field in {"newest", "seen"}:
        _change_link(given[field], random)
    elif field in _HEX or (field == "sealed" and does == "open-sealed"):
        raw = bytes.fromhex(given[field])
        change = _json if field == "json" and random.random() < 0.8 else _bytes
        given[field] = change(raw, random).hex()
    elif field == "keyring" and "accountKey" in given and random.random() < 0.6:
        given[field] = _resealed(given[field], bytes.fromhex(given["accountKey"]), random)
    elif random.random() < 0.1:
        given[field] = random.choice(others)["given"].get(field, given[field])
    elif isinstance(given[field], str):
        given[field] = _text(given[field], random)


def _change_row(row: Given, random: Random, others: list[Given]) -> None:
    name = random.choice(sorted(row))
    value = row[name]
    if random.random() < 0.15:
        row[name] = random.choice(others)["given"]["row"].get(name)
    elif isinstance(value, str):
        row[name] = _text(value, random)
    elif isinstance(value, int):
        row[name] = random.choice((value - 1, value + 1, 0, 1, 2**53 - 1, 2**53, value + 2**32))
    elif name in {"hmac", "data", "salt"}:
        row[name] = random.choice((None, "", "AA=="))


def _change_link(link: list[Any], random: Random) -> None:
    if random.random() < 0.3:
        link[0] = max(1, link[0] + random.choice((-2, -1, 1, 2)))
    else:
        link[1] = _text(link[1], random)


def _descriptor(given: Any, random: Random) -> Any:
    """A descriptor with another member, as plain data or as text; or text that is changed."""
    if isinstance(given, str) or random.random() < 0.5:
        text = given if isinstance(given, str) else json.dumps(given)
        return _json(text.encode("utf-8", "surrogatepass"), random).decode("utf-8", "replace")
    if not isinstance(given, dict) or not given:
        return given
    changed, name = dict(given), random.choice(sorted(given))
    value = changed[name]
    if random.random() < 0.1:
        del changed[name]
    elif isinstance(value, str) and random.random() < 0.7:
        changed[name] = _text(value, random)
    else:
        found = random.choice(_NUMBERS)
        changed[name] = json.loads(found) if found not in {"01", "1.", "1e400"} else 7
    return changed


def _resealed(text: str, key: bytes, random: Random) -> str:
    """A keyring whose body somebody with the account key has changed."""
    try:
        raw = encoding.from_base64(text)
        head, body = raw[: keyring._HEAD], raw[keyring._HEAD :]
        content = padding.unpad(box.open_(keyring_key(key), body, keyring._whole(head)))
    except Tampered:
        return _text(text, random)
    if random.random() < 0.2:
        padded = _bytes(padding.pad(content), random)
    else:
        padded = padding.pad(Content(content.kind, _json(content.data, random)))
    sealed = box.seal(keyring_key(key), random.randbytes(32), padded, keyring._whole(head))
    return encoding.to_base64(head + sealed)


def _json(raw: bytes, random: Random) -> bytes:
    """JSON with another number, a member more or twice, another depth, or other signs."""
    text = raw.decode("utf-8", "replace")
    kind = random.randrange(6)
    if kind == 0 and (numbers := list(re.finditer(r"(?<=[:\[, ])-?[0-9][0-9.eE+-]*", text))):
        found = random.choice(numbers)
        return (text[: found.start()] + random.choice(_NUMBERS) + text[found.end() :]).encode()
    if kind == 1 and "}" in text:
        ends = [found.start() for found in re.finditer("}", text)]
        at = random.choice((ends[-1], random.choice(ends)))
        return (text[:at] + random.choice(_INSERTED) + text[at:]).encode("utf-8", "surrogatepass")
    if kind == 2 and (members := list(re.finditer(r'"[a-z]+": ?("[^"]*"|[0-9]+|true|false|null)', text))):
        found = random.choice(members)
        other = random.choice((found[0] + "," + found[0], found[1], "", found[0].replace('"', "", 1)))
        return (text[: found.start()] + other + text[found.end() :]).encode()
    if kind == 3 and (texts := list(re.finditer(r'"([A-Za-z0-9+/=-]{4,})"', text))):
        found = random.choice(texts)
        return (text[: found.start(1)] + _text(found[1], random) + text[found.end(1) :]).encode(
            "utf-8", "surrogatepass"
        )
    if kind == 4:
        at = random.randrange(len(text) + 1)
        return (text[:at] + random.choice(_INSERTED) + text[at:]).encode("utf-8", "surrogatepass")
    return _bytes(raw, random)


def _text(text: str, random: Random) -> str:
    """A text in another spelling, or one that spells other bytes."""
    found = re.match(r"sr[0-9]+\.|srv_|SR[0-9]-?", text)
    prefix = found[0] if found else ""
    kind = random.randrange(4)
    if kind == 0:
        return random.choice(_PREFIXES) + text[len(prefix) :]
    if kind == 1:
        return text + random.choice(("=", "==", "===", "====", "\n", " ", "A", "AAAA", "\0"))
    if kind == 2:
        at, sign = random.randrange(len(text) + 1), random.choice(_SIGNS)
        change: tuple[Callable[[], str], ...] = (
            lambda: text[:at] + sign + text[at:],
            lambda: text[:at] + sign + text[at + 1 :],
            lambda: text[:at] + text[at + 1 :],
            lambda: text[:at] + text[at : at + 1].swapcase() + text[at + 1 :],
            lambda: text.replace("+", "-").replace("/", "_"),
            lambda: text[at:],
            lambda: text[:at],
        )
        return random.choice(change)()
    body, alphabet = text[len(prefix) :], b"-_" if prefix else b"+/"
    try:
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=alphabet, validate=True)
    except (binascii.Error, ValueError):
        return text[::-1]
    spelled = base64.b64encode(_bytes(raw, random), altchars=alphabet).decode()
    return prefix + (spelled.rstrip("=") if prefix else spelled)


def _bytes(raw: bytes, random: Random) -> bytes:
    """Bytes of which some were turned over, put in, taken out or moved."""
    at, size = random.randrange(len(raw) + 1), random.choice((1, 1, 2, 4, 16, 32))
    change: tuple[Callable[[], bytes], ...] = (
        lambda: (
            raw[:at] + bytes([raw[at] ^ 1 << random.randrange(8)]) + raw[at + 1 :] if at < len(raw) else raw + b"\0"
        ),
        lambda: bytes([random.choice((0, 1, 2, 3, 4, 255))]) + raw[1:],
        lambda: raw[:1] + bytes([random.randrange(8)]) + raw[2:],
        lambda: raw[:2] + random.choice((0, 1, 2, 7, 2**32 - 1)).to_bytes(4, "big") + raw[6:],
        lambda: random.choice((0, 1, 2, 7, 2**32 - 1)).to_bytes(4, "big") + raw[4:],
        lambda: raw[:at] + random.randbytes(size) + raw[at:],
        lambda: raw[:at] + raw[at + size :],
        lambda: raw[:at] + bytes(size) + raw[at + size :],
        lambda: raw[:at],
        lambda: raw + random.choice((b"\0", bytes(16), raw)),
        lambda: raw[at:] + raw[:at],
    )
    return random.choice(change)()
