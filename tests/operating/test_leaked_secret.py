"""The secret has leaked, and another is put in its place: what was opened with the old one ends."""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from strongroom.credentials import Claims, TokenSigner
from strongroom.identifiers import new_uid
from tests.kit.network.raw_http import connected, request, responses, rest
from tests.kit.servers.server_process import PASSWORD, logged, running
from tests.kit.waiting import until

OLD, NEW = "the secret that leaked, of 32 bytes or more", "the secret that nobody else knows, yet"
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


def claims_of(token: str) -> dict[str, Any]:
    claims = TokenSigner(OLD.encode(), "strongroom").claims(token, "access", time.time_ns() // 1_000_000)
    assert claims is not None
    return {name: getattr(claims, name) for name in ("sub", "sid")}


def forged(token: str) -> str:
    """A token that somebody signed who knows the secret, for a session that he has seen."""
    now = int(time.time())
    told = Claims("strongroom", jti=new_uid(now * 1000), iat=now, exp=now + 86_400, typ="access", **claims_of(token))
    return TokenSigner(OLD.encode(), "strongroom").sign(told)


class Service:
    """A server whose secrets are in files, one person and one vault."""

    def __init__(self, home: Path, process: Any, url: str, workers: int) -> None:
        self.home, self.process, self.workers = home, process, workers
        self.port = int(url.rpartition(":")[2])
        self.http = httpx2.Client(base_url=url, trust_env=False, timeout=30)
        body = {"email": "ada@example.com", "password": PASSWORD}
        self.token = self.http.post("/auth/email/register", json=body).json()["accessToken"]
        self.vault = self.ask("POST", "/vault", {"name": "v"}).json()["uid"]
        self.key = self.ask("POST", "/auth/api-keys", {"name": "k"}).json()["key"]

    def ask(self, method: str, path: str, body: Any = None, token: str = "") -> httpx2.Response:
        head = {"authorization": f"Bearer {token or self.token}"}
        return self.http.request(method, path, json=body, headers=head)

    def write(self) -> None:
        body = {"collection": "c", "data": "AAAA"}
        assert self.ask("POST", f"/vaults/{self.vault}/documents", body, self.key).status_code == 201

    def change_secret(self, *, keep: bool) -> None:
        (self.home / "secret").write_text(NEW)
        (self.home / "previous").write_text(OLD if keep else "")
        before = len(logged(self.home))
        self.process.send_signal(signal.SIGHUP)
        until(lambda: len(logged(self.home)) >= before + self.workers, "the reload in the log")


@contextmanager
def service(home: Path, workers: str) -> Iterator[Service]:
    (home / "secret").write_text(OLD)
    (home / "previous").write_text("")
    files = ("--jwt-secret-file", str(home / "secret"), "--jwt-secret-previous-file", str(home / "previous"))
    with running(home, *files, WORKERS=workers) as (process, url):
        made = Service(home, process, url, int(workers))
        try:
            yield made
        finally:
            made.http.close()


@contextmanager
def stream(port: int, path: str, token: str) -> Iterator[socket.socket]:
    """A stream of events that has begun."""
    with connected(port) as wire:
        wire.sendall(request("GET", path, token=token))
        said = b""
        while b"event: ready" not in said:
            more = wire.recv(65_536)
            assert more, said
            said += more
        yield wire


def next_event(wire: socket.socket) -> str:
    said = b""
    while b"event: " not in said:
        more = wire.recv(65_536)
        assert more, said
        said += more
    return said.partition(b"event: ")[2].decode()


@WORKERS
def test_streams_and_long_polls_end_with_the_secret_that_opened_them(tmp_path: Path, workers: str) -> None:
    """Also the honest ones, who log in again; those of API keys go on."""
    with service(tmp_path, workers) as it:
        bad = forged(it.token)
        paths = ("/events", f"/vaults/{it.vault}/events")
        with (
            stream(it.port, paths[0], bad) as of_account,
            stream(it.port, paths[1], bad) as of_vault,
            stream(it.port, paths[0], it.token) as honest,
            stream(it.port, paths[0], it.key) as by_key,
            connected(it.port) as poll,
        ):
            poll.settimeout(20)
            now = it.ask("GET", f"/vaults/{it.vault}/documents").json()["next"]
            poll.sendall(request("GET", f"/vaults/{it.vault}/documents?since={now}&wait=60", token=bad))
            it.change_secret(keep=False)
            for wire in (of_account, of_vault, honest):
                said = next_event(wire)
                assert said.startswith("end\n"), said
                assert '{"reason":"token_revoked"}' in said
            it.write()
            assert next_event(by_key).startswith("document\n")
            for wire in (of_account, of_vault):
                assert b"event: document" not in rest_soon(wire)
            poll.shutdown(socket.SHUT_WR)
            assert responses(poll, 1)[0].status == 401
        for path in paths:
            assert it.ask("GET", path, token=bad).status_code == 401


def rest_soon(wire: socket.socket) -> bytes:
    """What else comes within a moment; the connection itself may be kept."""
    wire.settimeout(0.5)
    try:
        return wire.recv(65_536)
    except TimeoutError:
        return b""


@WORKERS
def test_streams_go_on_while_the_secret_before_is_kept(tmp_path: Path, workers: str) -> None:
    """A change of the secret without a leak cuts nobody off."""
    with service(tmp_path, workers) as it, stream(it.port, "/events", it.token) as honest:
        it.change_secret(keep=True)
        it.write()
        assert next_event(honest).startswith("document\n")


def test_an_export_under_way_breaks_off(tmp_path: Path) -> None:
    """Whoever reads slowly does not get the rest: the file lacks its end, and the connection is cut."""
    with service(tmp_path, "1") as it:
        path = f"/vaults/{it.vault}/documents"
        for _ in range(8):
            assert it.ask("POST", path, {"collection": "c", "data": "A" * 4_000_000}).status_code == 201
        with connected(it.port, receive_buffer=4096) as wire:
            wire.sendall(request("GET", "/auth/export", "Connection: close", token=forged(it.token)))
            assert b"200 OK" in wire.recv(4096)
            it.change_secret(keep=False)
            time.sleep(1.1)  # a caller who reads an export is looked at once a second
            assert b"sha256" not in rest(wire)[-2000:]


def test_the_log_has_no_secret(tmp_path: Path) -> None:
    """Neither of the two, whatever was said of them."""
    with service(tmp_path, "1") as it:
        it.change_secret(keep=False)
        assert it.ask("GET", "/vault").status_code == 401
        said = (tmp_path / "stderr").read_text()
        assert OLD not in said
        assert NEW not in said
        assert json.loads(said.splitlines()[0])
