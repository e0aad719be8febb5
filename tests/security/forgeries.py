"""Tokens that nobody issued, each made from a good one.

Almost all are signed with the server's own secret, so that what refuses them is the one thing that is wrong with them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.contract.jwt import HEADER, claims, resigned, seal, signed, spell, stripped, unspell
from tests.kit.servers.secret import SECRET

Forged = Iterator[tuple[str, str]]
CLAIMS = ("iss", "sub", "sid", "jti", "iat", "exp", "typ")
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_ODD = {
    "space": " ",
    "line feed": "\n",
    "tab": "\t",
    "NUL": "\0",
    "padding": "=",
    "plus": "+",
    "slash": "/",
    "percent": "%41",
    "dot": ".",
    "comma": ",",
    "not ASCII": "é",
    "full-width A": "\uff21",
    "soft hyphen": "\u00ad",
    "surrogate": "\ud800",
}


def corpus(token: str, other: str) -> dict[str, str]:
    """All forgeries of a token, by what was done; `other` is the token of the other kind, of the same session."""
    made: dict[str, str] = {}
    for part in (headers, types, absent, payloads, spellings, signatures, shapes, sizes):
        for name, forged in part(token):
            assert name not in made, name
            made[name] = forged
    made["the other kind"] = other
    made["the other kind's payload"] = f"{token.split('.', maxsplit=1)[0]}.{other.split('.')[1]}.{token.split('.')[2]}"
    made["two kinds joined"] = f"{token}.{other}"
    assert token not in made.values()
    return made


def headers(token: str) -> Forged:
    """Other algorithms, injected keys, extensions."""
    payload = token.split(".")[1]
    algorithms: list[Any] = ["none", "None", "NONE", "nOnE", "", "hs256", "HS256 ", "HS384", "HS512", "HS1", "RS256"]
    algorithms += ["ES256", "PS256", "EdDSA", "dir", "A128KW", "HMAC", None, 256, True, ["HS256"], {"alg": "HS256"}]
    for algorithm in algorithms:
        top = spell(json.dumps({"alg": algorithm, "typ": "JWT"}).encode())
        yield f"algorithm {algorithm!r}, signed", seal(top, payload)
        yield f"algorithm {algorithm!r}, unsigned", f"{top}.{payload}."
        yield f"algorithm {algorithm!r}, old signature", f"{top}.{payload}.{token.split('.')[2]}"
    for digest in ("sha384", "sha512", "sha1", "md5"):
        yield f"signed with {digest}", signed(claims(token), digest=digest)
    for name in ("HS384", "HS512"):
        honest = {**HEADER, "alg": name}
        yield f"truly {name}", signed(claims(token), honest, digest=name.replace("HS", "sha"))
    key = {"kty": "oct", "k": spell(SECRET.encode())}
    extra: list[dict[str, Any]] = [
        {"jku": "https://evil.example/keys"},
        {"jwk": key},
        {"jwk": None},
        {"x5u": "file:///etc/passwd"},
        {"x5c": ["MIIB"]},
        {"x5t": "AAAA"},
        {"kid": "1"},
        {"kid": ""},
        {"kid": None},
        {"kid": "../../../../dev/null"},
        {"kid": "' UNION SELECT 'secret' --"},
        {"kid": ["1"]},
        {"crit": ["exp"]},
        {"crit": []},
        {"crit": ["b64"]},
        {"b64": False},
        {"b64": False, "crit": ["b64"]},
        {"zip": "DEF"},
        {"enc": "A128GCM"},
        {"cty": "JWT"},
        {"epk": key},
        {"iss": "strongroom"},
        {"p2c": 2**31},
        {"exp": 1},
        {"nonce": "x"},
        {"Alg": "none"},
        {"": ""},
        {"typ": "jwt"},
        {"typ": "at+jwt"},
        {"typ": "JWE"},
        {"typ": None},
        {"typ": 7},
        {"typ": ["JWT"]},
        {"typ": ""},
    ]
    for fields in extra:
        yield f"header with {fields}", signed(claims(token), HEADER | fields)
    raw = [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"7",
        b'"HS256"',
        b"{",
        b'{"alg":"HS256"}',
        b'{"typ":"JWT"}',
        b"\xff\xfe",
        b'\xef\xbb\xbf{"alg":"HS256","typ":"JWT"}',
        b'{"alg":"HS256","typ":"JWT"}}',
        b'{"alg":"HS256","typ":"JWT",}',
        b"{'alg':'HS256','typ':'JWT'}",
        b'{"alg":"HS256","alg":"none","typ":"JWT"}',
        b'{"ALG":"HS256","typ":"JWT"}',
        '{"alg":"HS256","typ":"JWT"}'.encode("utf-16"),
        b'[{"alg":"HS256","typ":"JWT"}]',
        b"[" * 300,
        b'{"alg":"HS256","typ":"JWT"}\0',
        b'{"alg":"HS256\0","typ":"JWT"}',
    ]
    for text in raw:
        yield f"header {text[:60]!r}", seal(spell(text), payload)


def types(token: str) -> Forged:
    """Each claim with values that it cannot have."""
    wrong: list[Any] = [None, True, False, [], {}, ["x"], {"a": 1}, [[]], {"": None}]
    texts: list[Any] = ["", " ", "x", "null", "\0", "*", "%", "' OR 1=1 --", "\ud800", "x" * 2_000, "é"]
    numbers: list[Any] = [0, 7, -1, 1.5, 2**63, 2**64, -(2**63), 10**30]
    values: dict[str, list[Any]] = {}
    for name in ("iss", "sub", "sid", "typ"):
        values[name] = [*wrong, *texts, *numbers]
    values["jti"] = wrong + numbers
    values["iat"] = wrong + texts + ["1", "1e3", "0x10", str(claims(token)["iat"])]
    values["exp"] = wrong + texts + [0, 7, 1.5, claims(token)["iat"] - 1, "99999999999", "1e99", "inf"]
    beyond: list[Any] = [1e308, -1e308, 1e17, 9_223_372_036_854_776, 2**63, 2**64, -(2**63), 10**30, 10**400, -1]
    values["exp"] += beyond  # more than any clock holds
    values["iat"] += beyond
    values["nbf"] = [*beyond, *wrong, *texts, str(claims(token)["iat"]), claims(token)["exp"], claims(token)["exp"] - 1]
    values["typ"] += ["Access", "ACCESS", "access ", " access", "refresh ", "Refresh", "access,refresh", "api", "id"]
    values["iss"] += ["Strongroom", "strongroom ", "strongbox", "strongroom\0", "https://strongroom", "strongroo"]
    own = claims(token)
    for name in ("sub", "sid"):
        values[name] += [
            own[name].upper(),
            own[name] + " ",
            own[name][:-1],
            own[name].replace("-", ""),
            f"{own[name]}\0",
        ]
    values["sub"].append(own["sid"])
    values["sid"].append(own["sub"])
    for name, rows in values.items():
        for value in rows:
            yield f"{name} is {value!r:.60}", resigned(token, **{name: value})


def absent(token: str) -> Forged:
    """Claims that are missing, or called otherwise."""
    all_of = claims(token)
    for name in CLAIMS:
        yield f"without {name}", stripped(token, name)
        yield f"only {name}", signed({name: all_of[name]})
        yield f"{name} in capitals", signed({(key.upper() if key == name else key): all_of[key] for key in all_of})
        yield (
            f"{name} one level down",
            signed({**{key: all_of[key] for key in all_of if key != name}, "claims": all_of}),
        )
        again = json.dumps(all_of)[:-1] + f', "{name}": null}}'
        yield f"{name} twice, then null", signed(again.encode())
    for pair in itertools.combinations(CLAIMS, 2):
        yield f"without {pair}", signed({key: all_of[key] for key in all_of if key not in pair})


def payloads(token: str) -> Forged:
    """Payloads that are no claims."""
    text = json.dumps(claims(token))
    raw: dict[str, bytes] = {
        "nothing": b"",
        "an empty object": b"{}",
        "null": b"null",
        "a number": b"7",
        "a text": b'"x"',
        "a list": b"[]",
        "a list of claims": f"[{text}]".encode(),
        "a text of claims": json.dumps(text).encode(),
        "cut": text[:-1].encode(),
        "comma at the end": f"{text[:-1]},}}".encode(),
        "more at the end": f"{text}x".encode(),
        "two": f"{text}{text}".encode(),
        "byte order mark": b"\xef\xbb\xbf" + text.encode(),
        "UTF-16": text.encode("utf-16"),
        "UTF-32": text.encode("utf-32"),
        "no UTF-8": text.encode() + b"\xff",
        "single quotes": text.replace('"', "'").encode(),
        "NUL after": f"{text}\0".encode(),
        "NUL before": f"\0{text}".encode(),
        "comment": f"/* */{text}".encode(),
        "deep": b"[" * 3_000,
        "deep object": b'{"a":' * 500,
    }
    for name in ("exp", "iat", "nbf"):
        for value in ("NaN", "Infinity", "-Infinity", "1e400", "0x7fffffff", "01", "+1", "1_000", "."):
            own = json.dumps({key: item for key, item in claims(token).items() if key != name})
            raw[f"{name} is {value}"] = f'{own[:-1]}, "{name}": {value}}}'.encode()
    for name, payload in raw.items():
        yield f"payload: {name}", signed(payload)


def spellings(token: str) -> Forged:
    """The same bytes spelled otherwise, with a signature that fits and with the one that was."""
    parts = token.split(".")
    for at, part in enumerate(parts):
        where = ("header", "payload", "signature")[at]
        odd = {
            f"{name} {place}": part[:cut] + sign + part[cut:]
            for name, sign in _ODD.items()
            for place, cut in (("first", 0), ("inside", len(part) // 2), ("last", len(part)))
        }
        odd |= {
            "padded": part + "=" * (-len(part) % 4 or 4),
            "padded too much": part + "====",
            "plain base64": base64.b64encode(b"\xff\xfe\xfd" + unspell(part)).decode().rstrip("="),
            "base32": base64.b32encode(unspell(part)).decode(),
            "hexadecimal": unspell(part).hex(),
            "reversed": part[::-1],
            "in capitals": part.upper(),
            "empty": "",
            "spelled twice": spell(part.encode()),
        }
        if len(part) % 4:
            value = _LETTERS.index(part[-1])
            odd |= {f"spare bits {bits}": part[:-1] + _LETTERS[value | bits] for bits in (1, 2, 3) if not value & 3}
        for name, spelled in odd.items():
            if at < 2 and "surrogate" not in name:
                both = (spelled, parts[1]) if at == 0 else (parts[0], spelled)
                yield f"{where} {name}, signed", seal(*both)
            if spelled != part:
                yield f"{where} {name}", ".".join((*parts[:at], spelled, *parts[at + 1 :]))


def signatures(token: str) -> Forged:
    """Signatures that do not fit."""
    body, _, signature = token.rpartition(".")
    header, payload = body.split(".")
    for length in range(1, len(signature)):
        yield f"signature of {length} characters", f"{body}.{signature[:length]}"
    for more in ("A", "AA", "-", "_", signature):
        yield f"signature and {more}", f"{token}{more}"
    for at, letter in enumerate(signature):
        yield (
            f"signature changed at {at}",
            f"{body}.{signature[:at]}{_LETTERS[_LETTERS.index(letter) ^ 32]}{signature[at + 1 :]}",
        )
    for letter in "A_-0":
        yield f"signature of {letter}", f"{body}.{letter * 43}"
    secrets = [
        "",
        "secret",
        "changeme",
        SECRET[:-1],
        f"{SECRET} ",
        SECRET.upper(),
        SECRET[::-1],
        "strongroom",
        "\0",
        "null",
    ]
    for secret in secrets:
        yield f"secret {secret[:12]!r}{len(secret)}", signed(claims(token), secret=secret)
    for name, covered in (
        ("payload", payload),
        ("header", header),
        ("joined", header + payload),
        ("colon", f"{header}:{payload}"),
    ):
        digest = hmac.digest(SECRET.encode(), covered.encode(), "sha256")
        yield f"signature of {name}", f"{body}.{spell(digest)}"
    yield "plain hash", f"{body}.{spell(hashlib.sha256(SECRET.encode() + body.encode()).digest())}"
    yield "hash the other way", f"{body}.{spell(hashlib.sha256(body.encode() + SECRET.encode()).digest())}"
    yield "signature of another token", f"{body}.{resigned(token, jti='x').rpartition('.')[2]}"
    yield "payload of another token", f"{header}.{resigned(token, jti='x').split('.')[1]}.{signature}"


def shapes(token: str) -> Forged:
    """Not three parts, or not only they."""
    header, payload, signature = token.split(".")
    made = [
        "",
        ".",
        "..",
        "...",
        "junk",
        "null",
        "undefined",
        "true",
        "[object Object]",
        "{}",
        "a.b",
        "a.b.c",
        "a.b.c.d.e",
        header,
        f"{header}.",
        f"{header}.{payload}",
        f".{payload}.{signature}",
        f"{header}..{signature}",
        f"{token}.",
        f".{token}",
        f"{token}.e30",
        f"{token}.{signature}",
        f"{token}{token}",
        f"{token}.{token}",
        f"{token},{token}",
        f"{token} {token}",
        f"{token};{token}",
        f"{token}\n{token}",
        f"Bearer {token}",
        f'"{token}"',
        f"'{token}'",
        f"<{token}>",
        f"{{{token}}}",
        token.replace(".", "%2E"),
        token.replace(".", ":"),
        token.replace(".", "\u3002"),
        token.replace(".", "\u2024"),
        token[::-1],
        token.upper(),
        token.lower(),
        token.swapcase(),
        spell(token.encode()),
        json.dumps({"payload": payload, "protected": header, "signature": signature}),
        f"{payload}.{header}.{signature}",
        f"{signature}.{payload}.{header}",
        "\0",
        "\u00a0",
        "é" * 40,
        "\ud800",
        "🔑",
        f"srk_{token}",
        "srk_",
        "srk_" + "A" * 48,
        f"{token}#",
        f"{token}?",
        f"{token}&a=b",
        f"{token}%00",
        f"{token}\\",
        f"\u00a0{token}",
        f"{token}\u0085",
    ]
    for number, forged in enumerate(made):
        yield f"shape {number}: {forged[:12]!r}", forged


def sizes(token: str) -> Forged:
    """Too long."""
    header, payload, signature = token.split(".")
    yield "a large claim", resigned(token, more="x" * 20_000)
    yield "a large header", signed(claims(token), HEADER | {"x": "x" * 20_000})
    yield "a megabyte", "a" * 2**20
    yield "a megabyte of dots", "." * 2**20
    yield "a long signature", f"{header}.{payload}.{signature * 1_000}"
    yield "a thousand claims", resigned(token, **{f"c{n}": n for n in range(1_000)})
