"""Passwords, tokens, API keys."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest

from strongroom import credentials
from strongroom.credentials import CLOCK_LEEWAY, Claims, Lifetime, TokenIssuer, TokenSigner
from tests.kit.rows import each_row

SECRET = b"0123456789abcdef0123456789abcdef"
NOW = 1_731_600_000_000
GOOD: dict[str, Any] = {
    "iss": "strongroom",
    "sub": "user",
    "sid": "session",
    "jti": "token",
    "iat": NOW // 1000,
    "exp": NOW // 1000 + 900,
    "typ": "access",
}


def tokens() -> TokenSigner:
    return TokenSigner(SECRET, "strongroom")


def signed(claims: dict[str, Any], **more: Any) -> str:
    """A token as another library makes it."""
    return jwt.encode(claims, more.pop("key", SECRET), algorithm=more.pop("algorithm", "HS256"), headers=more or None)


@pytest.mark.production_hashing
def test_a_password_matches_its_own_hash_only() -> None:
    """Any characters, NUL included."""
    phc = credentials.hash_password("pass\x00word")
    assert phc.startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert credentials.password_matches("pass\x00word", phc)
    assert not credentials.password_matches("pass", phc)


@pytest.mark.production_hashing
def test_nobody_has_the_password_of_nobody() -> None:
    """The hash for unknown emails is a real one, with the parameters of a real one, that nothing matches."""
    assert credentials.DUMMY_HASH.split("$")[:4] == credentials.hash_password("x").split("$")[:4]
    assert not credentials.password_matches("", credentials.DUMMY_HASH)


def test_other_libraries_read_our_tokens_and_we_read_theirs() -> None:
    """It is a JWT like any other."""
    ours = tokens().sign(Claims(**GOOD))
    read = jwt.decode(ours, SECRET, algorithms=["HS256"], issuer="strongroom", options={"verify_exp": False})
    assert read == GOOD
    assert tokens().claims(signed(GOOD), "access", NOW) == Claims(**GOOD)


def _without(name: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != name}


REFUSED = {
    "other secret": signed(GOOD, key=b"x" * 32),
    "no algorithm": signed(GOOD, algorithm="none", key=None),
    "other algorithm": signed(GOOD, algorithm="HS512", key=SECRET * 2),
    "more in the header": signed(GOOD, kid="1"),
    "other type in the header": signed(GOOD, typ="at+jwt"),
    "other issuer": signed({**GOOD, "iss": "elsewhere"}),
    "other kind": signed({**GOOD, "typ": "refresh"}),
    "unknown kind": signed({**GOOD, "typ": "admin"}),
    "expired": signed({**GOOD, "exp": NOW // 1000}),
    "without an id": signed({**GOOD, "jti": ""}),
    "issued in the future": signed({**GOOD, "iat": NOW // 1000 + CLOCK_LEEWAY // 1000 + 1}),
    "expiry as text": signed({**GOOD, "sub": "u"}).replace(".", ".") + "x",
    "boolean expiry": signed({**GOOD, "exp": True}),
    "numeric subject": None,
    "empty": "",
    "two parts": "a.b",
    "not ascii": "é.é.é",
    **{f"without {name}": signed(_without(name)) for name in GOOD},
}


def _raw(claims: Any) -> str:
    """Signed by hand, because libraries refuse to sign nonsense."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=")
    text = head + b"." + base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=")
    return (text + b"." + credentials._signature(SECRET, text)).decode()


REFUSED["numeric subject"] = _raw({**GOOD, "sub": 5})
REFUSED["expiry as text"] = _raw({**GOOD, "exp": str(GOOD["exp"])})
REFUSED["claims that are a list"] = _raw([GOOD])


@each_row("name", REFUSED)
def test_forged_and_malformed_tokens_are_refused(name: str) -> None:
    """None is good, whatever the way it is bad."""
    token = REFUSED[name]
    assert token is not None
    assert tokens().claims(token, "access", NOW) is None


def test_every_other_spelling_of_a_token_is_refused() -> None:
    """One token, one text: no padding, no other last character, no space."""
    good = signed(GOOD)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    others = [good[:-1] + other for other in alphabet if other != good[-1]]
    others += [good + "=", " " + good, good + "\n", good.replace(".", "..", 1), good.swapcase()]
    assert [text for text in others if tokens().claims(text, "access", NOW) is not None] == []


def test_a_remembered_token_expires_all_the_same() -> None:
    """The memory of good tokens never outlives them."""
    checker, token = tokens(), signed(GOOD)
    assert checker.claims(token, "access", NOW) is not None
    assert checker.claims(token, "refresh", NOW) is None
    assert checker.claims(token, "access", NOW + 899_999) is not None
    assert checker.claims(token, "access", NOW + 900_000) is None


def test_the_memory_of_good_tokens_is_bounded() -> None:
    """However many good tokens come, only the latest are remembered."""
    checker = tokens()
    claims = checker.claims(signed(GOOD), "access", NOW)
    assert claims is not None
    headers = [b"Bearer %d" % number for number in range(50_000)]
    for header in headers:
        checker.cache(header, claims)
    remembered = [header for header in headers if checker.cached(header, NOW) is not None]
    assert remembered == headers[-len(remembered) :]
    assert 1_000 <= len(remembered) <= 20_000


@pytest.mark.parametrize(
    ("life", "wanted"),
    [
        (Lifetime(900_000), (NOW // 1000, NOW // 1000 + 900)),
        (Lifetime(1_500, exact=True), (NOW / 1000 + 0.123, NOW / 1000 + 1.623)),
    ],
)
def test_claims_are_seconds_with_a_fraction_where_it_matters(life: Lifetime, wanted: tuple[float, float]) -> None:
    """Whole seconds for long lives; a life of a second and a half is exactly that."""
    assert life.validity(NOW + 123) == pytest.approx(wanted)


def test_a_session_outlives_both_of_its_tokens() -> None:
    """An access token that lives longer than the refresh token must not lose its session."""
    pair = TokenIssuer(tokens(), "strongroom", Lifetime(900_000), Lifetime(1_000, exact=True)).pair("u", "s", NOW)
    assert pair.session_expires_at == NOW + 900_000
    assert pair.refresh_expires_at == NOW + 1_000
    assert "eyJ" not in repr(pair)


def test_an_api_key_has_its_form_and_a_typo_is_known_without_a_look() -> None:
    """Prefix, 48 characters, a checksum that every single changed character breaks."""
    key = credentials.new_api_key()
    assert len(key) == 52
    assert credentials.api_key_hash(key) is not None
    assert credentials.new_api_key() != key
    for at in range(4, 52):
        other = key[:at] + ("A" if key[at] != "A" else "B") + key[at + 1 :]
        assert credentials.api_key_hash(other) is None
    for bad in (key + "=", key[:-1], " " + key, key.upper(), "srk_", ""):
        assert credentials.api_key_hash(bad) is None


def test_a_token_counts_from_its_beginning_to_its_end() -> None:
    """`nbf` is honoured where it is given, also by a token that is remembered when the clock goes back."""
    begun = {**GOOD, "nbf": NOW // 1000 + 10}
    keeper, token = tokens(), signed(begun)
    assert keeper.claims(token, "access", NOW + 9_999) is None
    good = keeper.claims(token, "access", NOW + 10_000)
    assert good is not None
    keeper.cache(b"header", good)
    assert keeper.cached(b"header", NOW + 10_000) == good
    assert keeper.cached(b"header", NOW + 9_999) is None
    assert tokens().claims(signed({**GOOD, "nbf": 0}), "access", NOW) is not None


def test_clocks_may_differ_a_little() -> None:
    """A token of a node whose clock is ahead is good; a remembered one is refused when the clock goes far back."""
    ahead = {**GOOD, "iat": NOW // 1000 + CLOCK_LEEWAY // 1000, "exp": NOW // 1000 + 2 * CLOCK_LEEWAY // 1000}
    keeper = tokens()
    good = keeper.claims(signed(ahead), "access", NOW)
    assert good is not None
    keeper.cache(b"header", good)
    assert keeper.cached(b"header", NOW) == good
    assert keeper.cached(b"header", NOW - 1) is None


@pytest.mark.parametrize("name", ["iat", "exp", "nbf"])
@each_row("value", [2**63, 2**63 // 1000 + 1, 1e308, 1e16, -1, -0.5, 10**400, True, None, "1"])
def test_no_clock_holds_such_a_moment(name: str, value: Any) -> None:
    """What cannot be a moment is no claim."""
    assert tokens().claims(signed({**GOOD, name: value}), "access", NOW) is None
