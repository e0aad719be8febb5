"""The server as a Python developer meets it: embedded, or listening in a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

import strongroom
from strongroom.server.settings import BadSetting
from strongroom.store import CannotOpen
from tests.conftest import SECRET, Open, runs
from tests.support.internals import context_of, is_started


def test_it_listens_where_it_is_told_and_stops_when_it_is_asked(tmp_path: Path) -> None:
    """`create_server(...).listen(port)` runs it."""
    server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "x.db", variant="document")
    thread = threading.Thread(target=server.listen, args=(0,))
    thread.start()
    deadline = threading.Event()
    while not is_started(server):
        assert not deadline.wait(0.01) or thread.is_alive()
    with httpx2.Client(base_url=server.url or "") as http:
        assert http.get("/health").json()["status"] == "ok"
    server.close()
    thread.join(10)
    assert not thread.is_alive()


@runs
async def test_it_can_be_mounted_below_a_path(house: Open) -> None:
    """As an ASGI application inside another one."""
    async with house() as h:
        app = h.http._transport.app

        async def mounted(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, "root_path": "/inner"}, receive, send)

        transport = httpx2.ASGITransport(app=mounted)
        async with httpx2.AsyncClient(transport=transport, base_url="http://house") as http:
            assert (await http.get("/inner/health")).status_code == 200


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"jwt_secret": ""}, "JWT_SECRET is not set"),
        ({"variant": "neither"}, "VAULT_VARIANT must be one of both, document and blob, not 'neither'"),
        ({"jwt_access_expiry": "soon"}, "JWT_ACCESS_EXPIRY must be a number and ms, s, m, h, d or w"),
        ({"jwt_refresh_expiry": "0d"}, "JWT_REFRESH_EXPIRY must be"),
        ({"jwt_refresh_expiry": "1.5h"}, "JWT_REFRESH_EXPIRY must be"),
        ({"port": 70_000}, "PORT must be a whole number from 0 to 65535"),
        ({"cors_origins": "example.com"}, "CORS_ORIGINS must be"),
        ({"max_body_bytes": "lots"}, "MAX_BODY_BYTES must be"),
    ],
)
def test_bad_settings_are_named(tmp_path: Path, settings: dict[str, Any], says: str) -> None:
    """The sentence names the variable and what it takes."""
    given: dict[str, Any] = {"jwt_secret": SECRET, "db_path": tmp_path / "x.db", **settings}
    with pytest.raises(BadSetting, match=says):
        strongroom.create_server(**given)


def test_an_unwritable_path_is_a_sentence(tmp_path: Path) -> None:
    """Not a traceback."""
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotOpen, match="Cannot open the database"):
        strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "file" / "x.db")


def test_nothing_shows_the_secret(tmp_path: Path) -> None:
    """A repr ends in logs."""
    server = strongroom.create_server(jwt_secret=SECRET, db_path=tmp_path / "x.db")
    for thing in (
        server,
        server.settings,
        context_of(server),
        context_of(server).token_signer,
        context_of(server).token_issuer,
    ):
        assert SECRET not in repr(thing)


@runs
async def test_an_api_key_is_noted_at_most_once_a_minute(house: Open) -> None:
    """`lastUsedAt` is exact to the minute and costs no write a request."""
    async with house() as h:
        person = await h.person()
        key = await person.key()
        start = h.clock.now

        async def last() -> int:
            moment: int = (await person("GET", "/auth/api-keys")).json()["keys"][0]["lastUsedAt"]
            return moment

        for wanted, passes in ((start, 0), (start, 59_999), (start + 60_000, 1), (start + 60_000, 100)):
            h.clock.pass_(passes)
            assert (await person("GET", "/vault", bearer=key)).status_code == 200
            assert await last() == wanted


@runs
async def test_a_key_expires_when_it_says(house: Open) -> None:
    """To the millisecond."""
    async with house() as h:
        person = await h.person()
        key = await person.key(expiresAt=h.clock.now + 1_000)
        h.clock.pass_(999)
        assert (await person("GET", "/vault", bearer=key)).status_code == 200
        h.clock.pass_(1)
        assert (await person("GET", "/vault", bearer=key)).status_code == 401


@runs
async def test_a_key_of_some_collections_does_not_reach_the_blob(house: Open) -> None:
    """The blob lies in no collection."""
    async with house() as h:
        person = await h.person()
        vault = await person.vault(data="sealed", salt="")
        key = await person.key(collections=["notes"])
        for path in (f"/vault/{vault['uid']}", f"/vault/by-name/{vault['name']}"):
            assert "data" not in (await person("GET", path, bearer=key)).json()
        assert "data" not in (await person("GET", "/vault", bearer=key)).json()["vaults"][0]
        put = await person("PUT", f"/vault/{vault['uid']}", {"data": "x", "salt": ""}, bearer=key)
        assert put.status_code == 403
        narrow = await person.key(vaultUids=[vault["uid"]])
        assert (await person("GET", f"/vault/{vault['uid']}", bearer=narrow)).json()["data"] == "sealed"
        put = await person("PUT", f"/vault/{vault['uid']}", {"data": "x", "salt": ""}, bearer=narrow)
        assert put.status_code == 200
