"""Several hosts in one URL: the one that takes writes is found, and one that does not respond delays nothing."""

from __future__ import annotations

import socket
import time
from urllib.parse import parse_qs, urlsplit

import pytest

from strongroom import store
from strongroom.store import open_database
from strongroom.store.postgres import connection, hosts
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("postgresql://u:p%2Fw@a/d", ["postgresql://u:p%2Fw@a/d"]),
        ("postgresql:///d?host=/run/pg", ["postgresql:///d?host=/run/pg"]),
        ("postgresql://u:p%40w@a:1,b:2/d?x=y", ["postgresql://u:p%40w@a:1/d?x=y", "postgresql://u:p%40w@b:2/d?x=y"]),
        ("postgresql://a,[::1]:2,c/d", ["postgresql://a/d", "postgresql://[::1]:2/d", "postgresql://c/d"]),
        ("postgresql:///d?host=a,b&port=1,2", ["postgresql:///d?host=a&port=1", "postgresql:///d?host=b&port=2"]),
        ("postgresql:///d?host=a,b&port=1", ["postgresql:///d?host=a&port=1", "postgresql:///d?host=b&port=1"]),
        ("postgresql:///d?host=a,b", ["postgresql:///d?host=a", "postgresql:///d?host=b"]),
    ],
)
def test_every_host_gets_an_address_of_its_own(url: str, addresses: list[str]) -> None:
    """With user, password, database and all the rest as they were."""
    assert hosts.split(url) == addresses


def beside(where: str, *ports: int) -> str:
    """The address of this database, with hosts before it."""
    parts = urlsplit(where)
    folder = parse_qs(parts.query)["host"][0]
    named = ",".join([*("127.0.0.1" for _ in ports), folder])
    numbers = ",".join([*(str(port) for port in ports), "5432"])
    return f"postgresql://postgres@/{parts.path.strip('/')}?host={named}&port={numbers}"


@async_test
async def test_a_host_that_does_not_respond_delays_no_connection(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """One takes connections and is silent, as a machine that hangs; one refuses them; the third serves."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 300.0)
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        where = beside(postgres().fresh(), silent.getsockname()[1], closed.getsockname()[1])
        began = time.monotonic()
        db = open_database(where, clock)
        await db.write(store.accounts.insert, "u", "e@x", "hash")
        assert time.monotonic() - began < connection.CONNECT_SECONDS
        await db.close()


def test_hosts_that_take_no_writes_are_refused_with_a_reason(clock: Clock) -> None:
    """A database that only reads is none to serve from, as long as there could be another."""
    where = postgres().fresh()
    name = urlsplit(where).path.strip("/")
    postgres().sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        two = beside(where, closed.getsockname()[1])
        with pytest.raises(store.CannotOpen, match="Cannot reach PostgreSQL"):
            open_database(two, clock)
    folder = parse_qs(urlsplit(where).query)["host"][0]
    with pytest.raises(store.CannotOpen, match="none of the hosts takes writes"):
        open_database(f"postgresql://postgres@/{name}?host={folder},{folder}", clock)
