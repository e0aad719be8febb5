"""What an operator does about second factors, beside a running server, on both engines."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.people.api_user import PASSWORD, ApiUser
from tests.kit.people.one_time_codes import code
from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET

Run = Callable[..., "subprocess.CompletedProcess[str]"]
OTHER = "another secret of the tests, of 32 bytes or more"


@pytest.fixture
def server(tmp_path: Path, where: str) -> Iterator[Server]:
    running = Server(tmp_path / "home", **place_of(where))
    try:
        yield running.start()
    finally:
        running.abandon()


@pytest.fixture
def run(tmp_path: Path, where: str) -> Run:
    """Run a command where the server's data is."""
    return lambda *arguments, **more: strongroom(tmp_path, *arguments, **place_of(where), **more)


def enrol(person: ApiUser) -> None:
    begun = person.http.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}).json()
    now = int(person.http.get("/health").json()["timestamp"])
    first = {"code": code(begun["secret"], now)}
    assert person.http.post("/auth/second-factor/totp/confirm", json=first).status_code == 201


def login(server: Server, person: ApiUser) -> Any:
    return server.connect().post("/auth/email/login", json={"email": person.email, "password": PASSWORD})


def test_an_operator_resets_a_second_factor(server: Server, run: Run) -> None:
    """It asks first; then the password is enough, the owner's log says who did it, and codes can be enrolled again."""
    ada = ApiUser.register(server)
    enrol(ada)
    ticket = login(server, ada).json()["error"]["details"]["ticket"]
    asked = run("users", "reset-second-factor", ada.email, input="no\n")
    assert asked.returncode != 0
    assert login(server, ada).json()["error"]["code"] == "second_factor_required"
    done = run("users", "reset-second-factor", ada.email, "--yes", "--json")
    assert (done.returncode, json.loads(done.stdout)["changed"]) == (0, True)
    assert login(server, ada).status_code == 200
    finish = {"ticket": ticket, "secondFactor": {"code": "123456"}}
    late = server.connect().post("/auth/email/login/second", json=finish)
    assert late.json()["error"]["code"] == "invalid_ticket"
    [entry] = [one for one in ada.http.get("/auth/events").json()["events"] if one["type"] == "second_factor_reset"]
    assert entry["address"] == "operator"
    assert ada.http.get("/auth/second-factor").json() == {"totpSince": None, "passkeys": 0, "recoveryCodes": 0}
    again = run("users", "reset-second-factor", ada.email, "--yes", "--json")
    assert (again.returncode, json.loads(again.stdout)["changed"]) == (0, False)
    assert run("users", "reset-second-factor", "nobody@example.com", "--yes").returncode == 3
    enrol(ada)


def test_the_doctor_tells_of_a_lost_secret(server: Server, run: Run) -> None:
    """Which secret opens the one-time codes, and what to set where none does; nothing is said where nobody has any."""

    def found(**settings: str) -> tuple[str, str]:
        told = json.loads(run("doctor", "--json", **settings).stdout)["findings"]
        return next(
            ((one["verdict"], one.get("todo", "")) for one in told if one["check"] == "second factor"), ("", "")
        )

    assert found(JWT_SECRET=SECRET) == ("", "")
    enrol(ApiUser.register(server))
    assert found(JWT_SECRET=SECRET)[0] == "ok"
    verdict, todo = found(JWT_SECRET=OTHER)
    assert verdict == "fault"
    assert "SECOND_FACTOR_SECRET_PREVIOUS" in todo
    assert found(JWT_SECRET=OTHER, JWT_SECRET_PREVIOUS=SECRET)[0] == "ok"
    assert found(JWT_SECRET=OTHER, SECOND_FACTOR_SECRET_PREVIOUS=SECRET)[0] == "ok"
    assert found(JWT_SECRET=OTHER, SECOND_FACTOR_SECRET=SECRET)[0] == "ok"
    assert found(JWT_SECRET=SECRET, SECOND_FACTOR_SECRET_PREVIOUS=OTHER)[0] == "warning"
    assert found(JWT_SECRET=SECRET, SECOND_FACTOR_SECRET="short")[0] == "warning"
