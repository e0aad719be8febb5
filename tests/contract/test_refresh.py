"""The generations of a session's refresh tokens."""

import asyncio
import time

import apsw
import asyncpg
import httpx2
import pytest

from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser, at_once
from tests.kit.servers.process import Server, fresh_address

from .checks import clean
from .jwt import claims


def refresh(http: httpx2.Client, token: str) -> httpx2.Response:
    """Present a refresh token."""
    return http.post("/auth/refresh", json={"refreshToken": token})


def renewed(http: httpx2.Client, token: str) -> str:
    """The refresh token that a good one is exchanged for."""
    fresh: str = good(refresh(http, token))["refreshToken"]
    return fresh


def dead(http: httpx2.Client, token: str) -> None:
    """This refresh token is refused."""
    refused(refresh(http, token), 401, "invalid_refresh_token")


def test_answer(newcomer: ApiUser, both: Server) -> None:
    """A refresh hands out two new tokens of the same session, and the access token opens the door."""
    body = good(refresh(both.connect(), newcomer.refresh))
    access, again = claims(body["accessToken"]), claims(body["refreshToken"])
    assert access["sid"] == again["sid"] == claims(newcomer.access)["sid"]
    assert access["jti"] != claims(newcomer.access)["jti"]
    assert again["jti"] != claims(newcomer.refresh)["jti"]
    me = good(both.connect(body["accessToken"]).get("/auth/me"))
    assert me["user"]["id"] == newcomer.id


def test_needs_no_bearer(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """The refresh token alone is enough: an expired or silly bearer beside it does not matter."""
    good(refresh(stranger, newcomer.refresh))
    stranger.headers["Authorization"] = "Bearer junk"
    good(refresh(stranger, newcomer.refresh))


def test_client_that_never_rotates(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Whoever always presents the first token, and only uses the access tokens, is never logged out."""
    for _ in range(6):
        body = good(refresh(stranger, newcomer.refresh))
        http = newcomer.server.connect(body["accessToken"])
        assert http.get("/auth/me").status_code == 200


def test_client_that_rotates(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Whoever always presents the newest token walks through the generations, each killing those below it."""
    tokens = [newcomer.refresh]
    for _ in range(5):
        tokens.append(renewed(stranger, tokens[-1]))
    for token in tokens[:-2]:
        dead(stranger, token)
    good(refresh(stranger, tokens[-1]))


def test_old_token_lives_until_the_new_one_is_used(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """A token dies when its successor is first presented, not when the successor is made."""
    first = newcomer.refresh
    second = renewed(stranger, first)
    good(refresh(stranger, first))
    good(refresh(stranger, second))
    dead(stranger, first)


def test_access_tokens_do_not_count_as_use(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Using the new access token does not kill the old refresh token."""
    body = good(refresh(stranger, newcomer.refresh))
    assert newcomer.server.connect(body["accessToken"]).get("/vault").status_code == 200
    good(refresh(stranger, newcomer.refresh))


def test_siblings(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Two tabs that refresh the same token get siblings, and both live on."""
    one, other = renewed(stranger, newcomer.refresh), renewed(stranger, newcomer.refresh)
    good(refresh(stranger, one))
    good(refresh(stranger, other))
    good(refresh(stranger, one))


def test_siblings_die_together(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """A token of the third generation kills every token of the first, siblings included."""
    one, other = renewed(stranger, newcomer.refresh), renewed(stranger, newcomer.refresh)
    third = renewed(stranger, one)
    good(refresh(stranger, third))
    for token in (newcomer.refresh, one, other):
        dead(stranger, token)
    good(refresh(stranger, third))


def test_tabs_at_once(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Eight tabs that refresh at the same moment all succeed, and all eight tokens are good."""
    answers: list[httpx2.Response] = at_once(8, lambda _: refresh(stranger, newcomer.refresh))
    tokens = {good(answer)["refreshToken"] for answer in answers}
    assert len(tokens) == 8
    for token in tokens:
        good(refresh(stranger, token))


def test_early_reuse_is_only_refused(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """Within 30 seconds a dead token is refused, and its session goes on."""
    second = renewed(stranger, newcomer.refresh)
    third: Json = good(refresh(stranger, second))
    dead(stranger, newcomer.refresh)
    dead(stranger, newcomer.refresh)
    assert newcomer.http.get("/auth/me").status_code == 200
    assert newcomer.server.connect(third["accessToken"]).get("/auth/me").status_code == 200
    good(refresh(stranger, third["refreshToken"]))


def aged(person: ApiUser, seconds: int) -> None:
    """Let the refresh tokens of somebody have died so many seconds earlier than they did."""
    change = "UPDATE refresh_tokens SET superseded_at = superseded_at - %d WHERE user_id = '%s'"
    statement = change % (seconds * 1_000, person.id)
    place = person.server.settings

    async def on_postgres() -> None:
        connection = await asyncpg.connect(place["DATABASE_URL"])
        await connection.execute(statement)
        await connection.close()

    if "DATABASE_URL" in place:
        asyncio.run(on_postgres())
        return
    connection = apsw.Connection(place["DB_PATH"])
    connection.set_busy_timeout(20_000)
    connection.execute(statement)
    connection.close()


def test_late_reuse_ends_the_session(newcomer: ApiUser, stranger: httpx2.Client) -> None:
    """After 30 seconds a dead token betrays a thief, and the whole session ends; a little earlier it goes on."""
    live = good(refresh(stranger, renewed(stranger, newcomer.refresh)))
    http = newcomer.server.connect(live["accessToken"], fresh_address())
    died = time.monotonic()
    aged(newcomer, 15)
    dead(stranger, newcomer.refresh)
    alive = http.get("/auth/me").status_code == 200
    assert alive or time.monotonic() > died + 14, "ended too early"
    aged(newcomer, 16)
    other = newcomer.login()
    dead(stranger, newcomer.refresh)
    dead(stranger, live["refreshToken"])
    refused(http.get("/auth/me"), 401, "unauthorized")
    assert other.http.get("/auth/me").status_code == 200


@pytest.mark.parametrize("token", ["", " ", "\0", "é", "x" * 10_000, "srk_x"], ids=range(6))
def test_nonsense_token(stranger: httpx2.Client, token: str) -> None:
    """A refresh token that cannot be one is refused cleanly."""
    answer = refresh(stranger, token)
    clean(answer)
    assert answer.status_code in (400, 401)
