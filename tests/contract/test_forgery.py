"""Tokens that nobody issued: each is refused, and none upsets the server."""

import base64
from collections.abc import Callable
from functools import partial

import httpx2
import pytest

from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row
from tests.kit.servers.process import Server, fresh_address

from .checks import UNKNOWN
from .jwt import HEADER, claims, resigned, seal, signed, spell, stripped

CLAIMS = ["iss", "sub", "sid", "jti", "iat", "exp", "typ"]


def _with(changes: Json) -> Callable[[str], str]:
    """A forger who changes these claims."""
    return lambda token: resigned(token, **changes)


def _typed_wrongly() -> dict[str, Callable[[str], str]]:
    """Each claim in turn with values of types that it cannot have."""
    rows: dict[str, Callable[[str], str]] = {}
    for name in CLAIMS:
        swapped = "99999999999" if name in ("iat", "exp") else 7
        values: Json = {"null": None, "list": [], "object": {}, "true": True, "swapped": swapped}
        for kind, value in values.items():
            rows[f"{name} is {kind}"] = _with({name: value})
    return rows


FORGED: dict[str, Callable[[str], str]] = {
    "wrong secret": lambda t: signed(claims(t), secret="not the secret of this server at all"),
    "empty secret": lambda t: signed(claims(t), secret=""),
    "no algorithm": lambda t: ".".join([spell(b'{"alg":"none"}'), t.split(".")[1], ""]),
    "no algorithm, signed": lambda t: signed(claims(t), {"alg": "none", "typ": "JWT"}),
    "no algorithm in capitals": lambda t: signed(claims(t), {"alg": "None", "typ": "JWT"}),
    "HS384": lambda t: signed(claims(t), {"alg": "HS384", "typ": "JWT"}, digest="sha384"),
    "HS512": lambda t: signed(claims(t), {"alg": "HS512", "typ": "JWT"}, digest="sha512"),
    "RS256 with the secret": lambda t: signed(claims(t), {"alg": "RS256", "typ": "JWT"}),
    "header without algorithm": lambda t: signed(claims(t), {"typ": "JWT"}),
    "header is a list": lambda t: seal(spell(b"[]"), t.split(".")[1]),
    "header is no JSON": lambda t: seal(spell(b"{"), t.split(".")[1]),
    "critical extension": lambda t: signed(claims(t), HEADER | {"crit": ["x"], "x": 1}),
    "expired": lambda t: resigned(t, exp=claims(t)["iat"] - 1, iat=claims(t)["iat"] - 1000),
    "expired for ever": lambda t: resigned(t, exp=0),
    "wrong issuer": lambda t: resigned(t, iss="strongbox"),
    "unknown session": lambda t: resigned(t, sid=UNKNOWN),
    "unknown user": lambda t: resigned(t, sub=UNKNOWN),
    "unknown kind": lambda t: resigned(t, typ="admin"),
    "NUL in the session": lambda t: resigned(t, sid="\0"),
    "lone surrogate in the session": lambda t: resigned(t, sid="\ud800"),
    "expiry is not a number": lambda _: signed(b'{"exp":NaN}'),
    "expiry is infinite": lambda t: resigned(t, exp=float("inf")),
    "expiry is minus infinite": lambda t: resigned(t, exp=float("-inf")),
    "payload is a list": lambda t: signed([claims(t)]),
    "payload is a number": lambda _: signed(b"7"),
    "payload is empty": lambda _: signed(b""),
    "payload is deep": lambda _: signed(b"[" * 5000),
    "payload is no UTF-8": lambda _: signed(b'{"sub":"\xff"}'),
    "payload changed": lambda t: ".".join([t.split(".")[0], t.split(".")[1][:-2] + "Q0", t.split(".")[2]]),
    "signature missing": lambda t: t.rsplit(".", 1)[0],
    "signature empty": lambda t: t.rsplit(".", 1)[0] + ".",
    "signature shortened": lambda t: t[:-1],
    "signature padded": lambda t: t + "=",
    "signature of another token": lambda t: t.rsplit(".", 1)[0] + "." + signed({}).rsplit(".", 1)[1],
    "signature in plain base64": lambda t: (
        t.rsplit(".", 1)[0] + "." + base64.b64encode(b"\xff" * 32).decode().rstrip("=")
    ),
    "fourth segment": lambda t: f"{t}.e30",
    "dots": lambda _: "..",
    "one word": lambda _: "junk",
    "five segments": lambda _: "a.b.c.d.e",
}
FORGED |= {f"without {name}": partial(stripped, name=name) for name in CLAIMS}
FORGED |= _typed_wrongly()


@pytest.fixture(scope="module")
def victim(both: Server) -> ApiUser:
    """Somebody whose tokens are imitated."""
    return ApiUser.register(both)


def test_the_forger_can_sign(victim: ApiUser, both: Server) -> None:
    """Signed by hand with the same claims both tokens are good: what is refused below is what was changed."""
    assert both.connect(resigned(victim.access)).get("/auth/me").status_code == 200
    good(both.connect().post("/auth/refresh", json={"refreshToken": resigned(victim.refresh)}))


@each_row("forge", FORGED.values(), ids=FORGED.keys())
def test_forged_access_token(victim: ApiUser, both: Server, forge: Callable[[str], str]) -> None:
    """A forged access token gets a 401, and the honest one stays good."""
    http = both.connect(forge(victim.access), fresh_address())
    refused(http.get("/auth/me"), 401, "unauthorized")
    assert victim.http.get("/auth/me").status_code == 200


@each_row("forge", FORGED.values(), ids=FORGED.keys())
def test_forged_refresh_token(victim: ApiUser, stranger: httpx2.Client, forge: Callable[[str], str]) -> None:
    """A forged refresh token gets a 401, and the honest one stays good."""
    body = {"refreshToken": forge(victim.refresh)}
    refused(stranger.post("/auth/refresh", json=body), 401, "invalid_refresh_token")
    good(stranger.post("/auth/refresh", json={"refreshToken": victim.refresh}))


def test_somebody_elses_session(victim: ApiUser, bob: ApiUser, both: Server) -> None:
    """A token that names one user and the session of another is refused, though its signature fits."""
    token = resigned(victim.access, sub=bob.id)
    refused(both.connect(token, fresh_address()).get("/auth/me"), 401, "unauthorized")
