"""Logging out ends one session, and all of it."""

import httpx2

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import ApiUser, at_once
from tests.kit.servers.process import fresh_address


def test_logout_kills_both_tokens(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """After a logout neither the access token nor the refresh token is accepted."""
    http = newcomer.server.connect(newcomer.access, fresh_address())
    assert good(http.post("/auth/logout")) == {"success": True}
    refused(http.get("/auth/me"), 401, "unauthorized")
    refused(http.get("/vault"), 401, "unauthorized")
    refused(http.post("/auth/logout"), 401, "unauthorized")
    body = {"refreshToken": newcomer.refresh}
    refused(stranger.post("/auth/refresh", json=body), 401, "invalid_refresh_token")


def test_logout_kills_every_generation(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """A logout reaches all tokens of the session, the older and the newer ones."""
    one = good(stranger.post("/auth/refresh", json={"refreshToken": newcomer.refresh}))
    two = good(stranger.post("/auth/refresh", json={"refreshToken": one["refreshToken"]}))
    good(newcomer.server.connect(one["accessToken"]).post("/auth/logout"))
    for access in (newcomer.access, one["accessToken"], two["accessToken"]):
        refused(newcomer.server.connect(access, fresh_address()).get("/auth/me"), 401, "unauthorized")
    for token in (newcomer.refresh, one["refreshToken"], two["refreshToken"]):
        answer = stranger.post("/auth/refresh", json={"refreshToken": token})
        refused(answer, 401, "invalid_refresh_token")


def test_logout_amid_refreshes(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """No token that was handed out while the session ended outlives it."""
    body = {"refreshToken": newcomer.refresh}
    answers: list[httpx2.Response] = at_once(
        9,
        lambda n: newcomer.http.post("/auth/logout") if n == 4 else stranger.post("/auth/refresh", json=body),
    )
    good(answers.pop(4))
    for answer in answers:
        if answer.status_code == 200:
            late = {"refreshToken": answer.json()["refreshToken"]}
            refused(stranger.post("/auth/refresh", json=late), 401, "invalid_refresh_token")
            access = newcomer.server.connect(answer.json()["accessToken"], fresh_address())
            refused(access.get("/auth/me"), 401, "unauthorized")
        else:
            refused(answer, 401, "invalid_refresh_token")


def test_logout_leaves_other_sessions_alone(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """The same user's other session goes on, and so does an API key."""
    other, key = newcomer.login(), newcomer.with_key()
    good(newcomer.http.post("/auth/logout"))
    assert other.http.get("/auth/me").status_code == 200
    good(stranger.post("/auth/refresh", json={"refreshToken": other.refresh}))
    assert key.get("/vault").status_code == 200


def test_logout_in_every_variant(resident: ApiUser) -> None:
    """Each kind of server ends a session in the same way."""
    session = resident.login()
    good(session.http.post("/auth/logout"))
    answer = session.http.post("/auth/refresh", json={"refreshToken": session.refresh})
    refused(answer, 401, "invalid_refresh_token")
    assert resident.http.get("/auth/me").status_code == 200
