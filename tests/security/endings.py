"""The ways in which a session or an API key ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from strongroom.rules import REUSE_GRACE
from tests.security.fixtures import PASSWORD, Account, Stage

Step = Callable[[Stage, "Cast"], Awaitable[Any]]


class Cast(NamedTuple):
    """Two sessions of one account, a key of it, and a session of somebody else."""

    here: Account
    there: Account
    key: Any
    other: Account


class Ending(NamedTuple):
    """What is done, by the session `here` on the first node, and who is out after it."""

    act: Step
    out: str


async def reuse(stage: Stage, cast: Cast) -> Any:
    """A refresh token that was superseded comes back late."""
    token = cast.there.refresh
    for _ in range(2):
        token = (await stage.send("POST", "/auth/refresh", None, {"refreshToken": token})).json()["refreshToken"]
    stage.clock.pass_(REUSE_GRACE + 1)
    return await stage.send("POST", "/auth/refresh", None, {"refreshToken": cast.there.refresh})


def by_here(method: str, path: str, body: Any = None) -> Step:
    """A request of the session `here`."""
    return lambda stage, cast: stage.send(method, path.format(cast=cast), cast.here.access, body)


PASSWORDS = {"currentPassword": PASSWORD, "newPassword": "another horse"}
ENDINGS = {
    "logout": Ending(by_here("POST", "/auth/logout"), "here"),
    "logout everywhere": Ending(by_here("POST", "/auth/logout", {"everywhere": True}), "here there"),
    "session deletion": Ending(by_here("DELETE", "/auth/sessions/{cast.there.session}"), "there"),
    "deletion of one's own session": Ending(by_here("DELETE", "/auth/sessions/{cast.here.session}"), "here"),
    "password change": Ending(by_here("PUT", "/auth/password", PASSWORDS), "there"),
    "account deletion": Ending(by_here("DELETE", "/auth/me", {"password": PASSWORD}), "here there key"),
    "key revocation": Ending(by_here("DELETE", "/auth/api-keys/{cast.key[uid]}"), "key"),
    "theft of a refresh token": Ending(reuse, "there"),
}
