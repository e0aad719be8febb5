"""What a token says, how long it lives, and what it is good for."""

import time

import httpx2
import pytest

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import Server, fresh_address
from tests.kit.waiting import until

from .jwt import claims, head, resigned, verifies

CLAIMS = {"iss", "sub", "sid", "jti", "iat", "exp", "typ"}


def test_header_and_signature(ann: ApiUser) -> None:
    """Both tokens are signed by HS256 with the bytes of JWT_SECRET."""
    for token in (ann.access, ann.refresh):
        assert head(token)["alg"] == "HS256"
        assert verifies(token)


def test_claims(ann: ApiUser) -> None:
    """Both tokens carry the seven claims, name one session and say which kind they are."""
    access, refresh = claims(ann.access), claims(ann.refresh)
    assert set(access) >= CLAIMS <= set(refresh)
    assert access["typ"] == "access"
    assert refresh["typ"] == "refresh"
    assert access["sub"] == refresh["sub"] == ann.id
    assert access["sid"] == refresh["sid"]
    assert access["jti"] != refresh["jti"]


def test_default_lifetimes(ann: ApiUser) -> None:
    """An access token lives 15 minutes and a refresh token 7 days, counted in seconds."""
    access, refresh = claims(ann.access), claims(ann.refresh)
    assert access["exp"] - access["iat"] == pytest.approx(15 * 60, abs=0.01)
    assert refresh["exp"] - refresh["iat"] == pytest.approx(7 * 86400, abs=0.01)


def test_configured_lifetimes(tess: ApiUser) -> None:
    """The lifetimes are those of the settings."""
    access, refresh = claims(tess.access), claims(tess.refresh)
    assert access["exp"] - access["iat"] == pytest.approx(12 * 3600, abs=0.01)
    assert refresh["exp"] - refresh["iat"] == pytest.approx(14 * 86400, abs=0.01)


@pytest.mark.parametrize(
    ("person", "issuer"),
    [("ann", "strongroom"), ("dora", "strongroom"), ("bill", "strongbox"), ("tess", "acme")],
)
@pytest.mark.usefixtures("engine")
def test_issuer(request: pytest.FixtureRequest, person: str, issuer: str) -> None:
    """The issuer is the variant's own word, unless JWT_ISSUER says otherwise."""
    somebody: ApiUser = request.getfixturevalue(person)
    assert claims(somebody.access)["iss"] == claims(somebody.refresh)["iss"] == issuer


def test_sessions_are_told_apart(ann: ApiUser) -> None:
    """Each login opens a session with tokens of its own."""
    again = claims(ann.login().access)
    assert again["sid"] != claims(ann.access)["sid"]
    assert again["sub"] == ann.id


def test_access_token_expires(brief: Server) -> None:
    """An access token of 900 ms is good for that long, and there is no leeway."""
    person = ApiUser.register(brief)
    lifetime = claims(person.access)
    assert lifetime["exp"] - lifetime["iat"] == pytest.approx(0.9, abs=0.002)
    token = good(brief.connect().post("/auth/refresh", json={"refreshToken": person.refresh}))["accessToken"]
    http = brief.connect(token, fresh_address())
    accepted = []

    def expired() -> bool:
        sent, answer = time.time(), http.get("/auth/me")
        if answer.status_code == 200:
            accepted.append(sent)
        return answer.status_code == 401

    until(expired, "the access token to expire")
    refused(http.get("/auth/me"), 401, "unauthorized")
    assert accepted
    assert accepted[-1] <= claims(token)["exp"]


def test_refresh_token_expires(brief: Server) -> None:
    """A refresh token that is used all the time still ends when its time has come."""
    person = ApiUser.register(brief)
    http = brief.connect(address=fresh_address())

    def answer() -> httpx2.Response:
        return http.post("/auth/refresh", json={"refreshToken": person.refresh})

    assert answer().status_code == 200
    until(lambda: answer().status_code == 401, "the refresh token to expire")
    refused(answer(), 401, "invalid_refresh_token")


def test_relabelled_access_token(newcomer: ApiUser, both: Server) -> None:
    """Even with a valid signature, an access token relabelled as a refresh token is not accepted."""
    http = both.connect(address=fresh_address())
    body = {"refreshToken": resigned(newcomer.access, typ="refresh")}
    refused(http.post("/auth/refresh", json=body), 401, "invalid_refresh_token")
