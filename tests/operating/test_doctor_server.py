"""The doctor says whether a server runs on the database now, and whether strangers may register."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET


def finding(done: subprocess.CompletedProcess[str], check: str) -> tuple[str, str]:
    """The verdict and the sentence of a check that is made once."""
    assert done.returncode in {0, 1}, done.stderr
    [told] = [one for one in msgspec.json.decode(done.stdout)["findings"] if one["check"] == check]
    return told["verdict"], told["says"]


@pytest.fixture
def server(where: str, tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path / "home")
    made.settings.pop("DATABASE_URL", None)
    made.settings |= place_of(where)
    yield made
    made.abandon()


def test_whether_a_server_runs_now(server: Server) -> None:
    """Before it is started, while it runs, also on its first day without a request, and after it has ended."""
    server.start()
    assert server.end() == 0
    for _ in range(2):
        told = strongroom(server.home, "doctor", "--json", **server.settings)
        assert finding(told, "server") == ("ok", "No server runs on this database now.")
        server.start()
        verdict, says = finding(strongroom(server.home, "doctor", "--json", **server.settings), "server")
        assert (verdict, says.startswith("A server runs on this database now")) == ("ok", True)
        assert server.end() == 0


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({}, "ok"),
        ({"HOST": "::1"}, "ok"),
        ({"HOST": "unix:/run/x.sock"}, "ok"),
        ({"HOST": "0.0.0.0"}, "warning"),
        ({"HOST": "192.0.2.7"}, "warning"),
        ({"HOST": "vault.example.com"}, "warning"),
        ({"PUBLIC_URL": "https://vault.example.com"}, "warning"),
        ({"HOST": "unix:/run/x.sock", "PUBLIC_URL": "https://vault.example.com"}, "warning"),
        ({"HOST": "0.0.0.0", "SIGNUPS": "closed"}, "ok"),
        ({"PUBLIC_URL": "https://vault.example.com", "SIGNUPS": "closed"}, "ok"),
    ],
)
def test_open_sign_ups_where_others_can_reach_the_server(
    tmp_path: Path, settings: dict[str, str], verdict: str
) -> None:
    """A warning, for some want that; none where only this machine's users come."""
    told = strongroom(tmp_path, "doctor", "--json", JWT_SECRET=SECRET, **settings)
    found, says = finding(told, "signups")
    assert found == verdict, says
    assert ("closed" in says) == (settings.get("SIGNUPS") == "closed")
