"""Somebody whose account has one-time codes as its second factor."""

from __future__ import annotations

from collections import Counter
from typing import Any

from tests.kit.people.one_time_codes import code, wrong_code
from tests.security.asgi_request import Answer
from tests.security.fixtures import PASSWORD, Account, Stage

STEP = 30_000
TOTP, CONFIRM = "/auth/second-factor/totp", "/auth/second-factor/totp/confirm"
PROOF = {"currentPassword": PASSWORD}


class Owner:
    """Somebody with one-time codes, and the device that shows them."""

    def __init__(self, stage: Stage, account: Account, secret: str, recovery_codes: list[str]) -> None:
        self.stage = stage
        self.account = account
        self.secret = secret
        self.recovery_codes = recovery_codes

    def code(self, steps: int = 0) -> dict[str, str]:
        """The code that the device shows now."""
        return {"code": code(self.secret, self.stage.clock.now, steps)}

    def next_code(self) -> dict[str, str]:
        """The code that the device shows 30 seconds later: none of before counts again."""
        self.stage.clock.pass_(STEP)
        return self.code()

    def wrong(self) -> dict[str, str]:
        """A code that is not right."""
        return {"code": wrong_code(self.secret, self.stage.clock.now)}

    async def log_in(self, **more: Any) -> Answer:
        """The first half of a login."""
        body = {"email": self.account.email, "password": PASSWORD, **more}
        return await self.stage.send("POST", "/auth/email/login", None, body)

    async def ticket(self) -> str:
        """The ticket that the first half gives."""
        answer = await self.log_in()
        assert (answer.status, answer.code) == (401, "second_factor_required"), answer
        return str(answer.json()["error"]["details"]["ticket"])

    async def finish(self, ticket: str, factor: Any, stage: Stage | None = None, **more: Any) -> Answer:
        """The second half of a login."""
        body = {"ticket": ticket, "secondFactor": factor}
        return await (stage or self.stage).send("POST", "/auth/email/login/second", None, body, **more)

    async def send(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """A request in the owner's session."""
        return await self.stage.send(method, path, self.account.access, body, **more)


async def enrolled(stage: Stage, name: str = "ann", **more: Any) -> Owner:
    """A new account with a second factor."""
    account = await stage.register(name, **more)
    begun = await stage.send("POST", TOTP, account.access, PROOF)
    assert begun.status == 201, begun
    secret = begun.json()["secret"]
    done = await stage.send("POST", CONFIRM, account.access, {"code": code(secret, stage.clock.now)})
    assert done.status == 201, done
    return Owner(stage, account, secret, done.json()["recoveryCodes"])


def assert_refused(answer: Answer, code: str, status: int = 401) -> dict[str, Any]:
    """The details of a refusal."""
    assert (answer.status, answer.code) == (status, code), answer
    details: dict[str, Any] = answer.json()["error"].get("details") or {}
    return details


async def log_of(owner: Owner) -> Counter[str]:
    """How often each type of event is in the account's log."""
    return Counter(line["type"] for line in (await owner.send("GET", "/auth/events")).json()["events"])
