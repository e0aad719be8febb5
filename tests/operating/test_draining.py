"""How a server ends: it says so first, finishes what is in hand, and resets no connection."""

from __future__ import annotations

import signal
import socket
import ssl
import time
from pathlib import Path

import httpx2
import pytest

from tests.kit.network.raw_http import Response, connected, request, responses, until_closed
from tests.kit.servers.certificate import certificate
from tests.kit.servers.server_process import running
from tests.kit.waiting import until

SECRET = {"JWT_SECRET": "x" * 32}
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])
UNDER_WAY = 30.0  # seconds that a server that stops waits for requests under way


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def get(port: int, path: str) -> Response:
    """The answer to a request on a connection of its own."""
    with connected(port) as wire:
        wire.sendall(request("GET", path))
        return responses(wire, 1)[0]


@WORKERS
def test_a_server_that_drains_says_so_and_goes_on_answering(tmp_path: Path, workers: str) -> None:
    """/ready is 503 while the listener is open; every answer tells keep-alive clients to go; then it ends."""
    with running(tmp_path, DRAIN_SECONDS="60", WORKERS=workers, **SECRET) as (process, url):
        port = port_of(url)
        with connected(port) as kept:
            kept.sendall(request("GET", "/health"))
            assert not responses(kept, 1)[0].closes
            assert get(port, "/ready").status == 200
            process.send_signal(signal.SIGTERM)
            until(lambda: all(get(port, "/ready").status == 503 for _ in range(20)), "every process to say it stops")
            told = get(port, "/ready")
            assert (told.status, told.json()["status"]) == (503, "stopping")
            assert set(told.json()["checks"].values()) == {"ok"}
            health = get(port, "/health")
            assert (health.status, health.closes) == (200, True)
            kept.sendall(request("GET", "/health"))
            [last] = until_closed(kept)
            assert (last.status, last.closes) == (200, True)
        process.send_signal(signal.SIGTERM)  # which ends the drain
        assert process.wait(20) == 0
        with pytest.raises(ConnectionRefusedError):
            get(port, "/health")


@WORKERS
def test_a_request_on_an_idle_connection_is_answered_while_the_server_ends(tmp_path: Path, workers: str) -> None:
    """A proxy may send on a connection that it has kept, at the moment at which the server is told to stop."""
    with running(tmp_path, WORKERS=workers, **SECRET) as (process, url):
        wires = [socket.create_connection(("127.0.0.1", port_of(url)), timeout=10) for _ in range(40)]
        for wire in wires:
            wire.sendall(request("GET", "/health"))
            assert not responses(wire, 1)[0].closes
        process.send_signal(signal.SIGTERM)
        until(lambda: not listens(port_of(url)), "the listener to close")
        for wire in wires:
            wire.sendall(request("GET", "/health"))
        answers = [until_closed(wire) for wire in wires]
        for wire in wires:
            wire.close()
        assert [[(one.status, one.closes) for one in each] for each in answers] == [[(200, True)]] * 40
        assert process.wait(20) == 0


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def test_a_request_that_has_begun_to_arrive_is_answered(tmp_path: Path) -> None:
    """Half of its headers are here when the server is told to stop."""
    with running(tmp_path, **SECRET) as (process, url), connected(port_of(url)) as wire:
        whole = request("GET", "/health")
        wire.sendall(whole[:20])
        assert get(port_of(url), "/health").status == 200  # by now those bytes have been read
        process.send_signal(signal.SIGTERM)
        until(lambda: not listens(port_of(url)), "the listener to close")
        time.sleep(0.4)  # longer than an idle connection is kept
        wire.sendall(whole[20:])
        [answer] = until_closed(wire)
        assert (answer.status, answer.closes) == (200, True)
        assert process.wait(20) == 0


@WORKERS
def test_a_drain_ends_after_its_seconds(tmp_path: Path, workers: str) -> None:
    """By itself, and not before."""
    with running(tmp_path, DRAIN_SECONDS="2", WORKERS=workers, **SECRET) as (process, _):
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        assert time.monotonic() - began >= 2


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    """However long the server would drain."""
    with running(tmp_path, DRAIN_SECONDS="600", **SECRET) as (process, url):
        process.send_signal(signal.SIGTERM)
        until(lambda: get(port_of(url), "/ready").status == 503, "the drain")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def seconds_to_stop(home: Path, **settings: str) -> float:
    """How long a server takes to end that has one idle connection."""
    with running(home, **SECRET, **settings) as (process, url):
        secure = url.startswith("https")
        wire = socket.create_connection(("127.0.0.1", port_of(url)), timeout=10)
        if secure:
            context = ssl.create_default_context(cafile=str(home / "cert.pem"))
            wire = context.wrap_socket(wire, server_hostname="localhost")
        wire.sendall(request("GET", "/health"))
        responses(wire, 1)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        taken = time.monotonic() - began
        wire.close()
        return taken


def test_an_idle_connection_does_not_hold_the_end_up(tmp_path: Path) -> None:
    """Neither one in plain HTTP nor one whose client never answers the end of TLS, which is waited for otherwise."""
    assert seconds_to_stop(tmp_path) < UNDER_WAY
    certificate(tmp_path, "one")
    files = {"TLS_CERT_FILE": str(tmp_path / "cert.pem"), "TLS_KEY_FILE": str(tmp_path / "key.pem")}
    assert seconds_to_stop(tmp_path, **files) < UNDER_WAY


def test_the_figures_say_that_it_stops(tmp_path: Path) -> None:
    """Whoever watches by the figures alone learns it too."""
    token = "a-token-for-the-figures"
    with running(tmp_path, DRAIN_SECONDS="600", METRICS_TOKEN=token, **SECRET) as (process, url):
        process.send_signal(signal.SIGTERM)
        until(lambda: get(port_of(url), "/ready").status == 503, "the drain")
        with httpx2.Client(base_url=url, headers={"authorization": f"Bearer {token}"}) as http:
            assert "\nstrongroom_ready 0\n" in http.get("/metrics").text
