"""The secret that encrypts one-time codes changes in a running server, is lost, and is found again."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit.people.api_user import PASSWORD, ApiUser
from tests.kit.people.one_time_codes import code
from tests.kit.programs.command_line import place_of
from tests.kit.servers.process import Server
from tests.kit.waiting import until

OLD, NEW, LATER = (f"the {name} secret, of 32 bytes or more" for name in ("old", "new", "later"))


class Service(Server):
    """A server whose secrets are in files."""

    def __init__(self, home: Path, where: str) -> None:
        super().__init__(home, **place_of(where))
        del self.settings["JWT_SECRET"]
        for variable in ("JWT_SECRET", "SECOND_FACTOR_SECRET_PREVIOUS"):
            self.settings[f"{variable}_FILE"] = str(home / variable)

    def put(self, secret: str, previous: str = "") -> None:
        """Write the secrets into their files."""
        (self.home / "JWT_SECRET").write_text(secret)
        (self.home / "SECOND_FACTOR_SECRET_PREVIOUS").write_text(previous)

    def finished(self, person: ApiUser, secret: str) -> Any:
        """The response to a login with the code that comes after the one of the enrolment."""
        http, login = self.connect(), {"email": person.email, "password": PASSWORD}
        ticket = http.post("/auth/email/login", json=login).json()["error"]["details"]["ticket"]
        now = int(http.get("/health").json()["timestamp"])
        body = {"ticket": ticket, "secondFactor": {"code": code(secret, now, 1)}}
        return http.post("/auth/email/login/second", json=body)


@pytest.fixture
def service(tmp_path: Path, where: str) -> Iterator[Service]:
    made = Service(tmp_path / "home", where)
    yield made
    made.abandon()


def test_a_secret_changes_is_lost_and_is_found_again(service: Service) -> None:
    """After SIGHUP what the old one encrypted is under the new one. Without a previous one, log and response tell."""
    service.put(OLD)
    person = ApiUser.register(service.start())
    secret = person.http.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}).json()["secret"]
    first = {"code": code(secret, int(person.http.get("/health").json()["timestamp"]))}
    assert person.http.post("/auth/second-factor/totp/confirm", json=first).status_code == 201
    service.put(NEW, OLD)
    service.process.send_signal(signal.SIGHUP)
    until(lambda: "1 secrets of one-time codes were encrypted anew" in service.log(), "the change in the log")
    assert "Changed: JWT_SECRET, SECOND_FACTOR_SECRET_PREVIOUS." in service.log()
    service.put(NEW)
    assert service.end() == 0
    service.start()
    service.put(LATER)
    service.process.send_signal(signal.SIGHUP)
    until(lambda: "1 secrets of one-time codes cannot be opened" in service.log(), "the loss in the log")
    refused = service.finished(person, secret)
    assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
    service.put(LATER, NEW)
    assert service.end() == 0
    service.start()
    until(lambda: "were encrypted anew" in service.log(), "the change at start in the log")
    assert service.finished(person, secret).status_code == 200
    assert not [text for text in (OLD, NEW, LATER, secret) if text in service.log()]
