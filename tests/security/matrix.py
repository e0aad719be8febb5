"""Plays the table: every row, every principal, every target; tells what came out otherwise than it says."""

from __future__ import annotations

import base64
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from strongroom import create_server
from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.request import Endpoint
from tests.kit.clock import Clock
from tests.kit.people.passkeys import ORIGIN
from tests.kit.samples import some
from tests.kit.servers.secret import SECRET
from tests.security.asgi_request import Answer, ask
from tests.security.fixtures import Account, Stage
from tests.security.table import (
    EVERYBODY,
    HOMES,
    MALFORMED,
    MALFORMED_NAMES,
    PRINCIPALS,
    ROWS,
    VAULTS,
    Principal,
    Row,
    Spot,
    missing,
)

_MANY = 16  # targets of a row


class Target(NamedTuple):
    """What a path names: a vault and perhaps a thing in it, by the names of the table; else how it is spelled."""

    vault: str = ""
    thing: str = ""

    @property
    def own_vault(self) -> str:
        """The vault's name in the table; capitals are only another spelling of its uid."""
        return "inside" if self.vault == "INSIDE" else self.vault

    def __str__(self) -> str:
        return "/".join(part[:40] for part in self if part) or "-"


class Way(NamedTuple):
    """One spelling of a route."""

    method: str
    path: str


def ways(endpoint: Endpoint, *, brief: bool) -> list[Way]:
    """The spellings of an endpoint: its other paths, and HEAD beside GET."""
    found = [Way(endpoint.method, path) for path in (endpoint.path, *endpoint.aliases)]
    if endpoint.method == "GET":
        found.append(Way("HEAD", endpoint.path))
    return found[:1] if brief else found


def targets(row: Row, bad: tuple[str, ...], *, brief: bool) -> Iterator[Target]:
    """Everything that a row's path may name: own, foreign, random, malformed, and children under other parents."""
    if not row.family:
        yield Target()
    elif row.family in {"key", "session", "passkey"}:
        yield from (Target("", thing) for thing in ("own", "foreign", "random", *bad))
    elif row.family in {"vault", "name"}:
        bad = bad if row.family == "vault" else MALFORMED_NAMES
        yield from (Target(vault) for vault in (*VAULTS, "foreign", "random", *bad))
        if row.family == "vault" and not brief:
            yield Target("INSIDE")
    else:
        for vault in (*VAULTS, "foreign", "random", bad[0]):
            for thing in (*HOMES, "foreign", "random", "its vault", bad[0]):
                yield Target(vault, thing)
        yield from (Target("inside", thing) for thing in bad[1:])
        yield from (Target(vault, "in1") for vault in bad[1:])


@asynccontextmanager
async def staged(place: dict[str, Any], clock: Clock, variant: str = "both") -> AsyncIterator[Stage]:
    """A stage on a new database; another variant is a second server over the same one."""
    server, other = (create_server(jwt_secret=SECRET, clock=clock, public_url=ORIGIN, **place) for _ in range(2))
    try:
        stage = Stage(server, clock)
        stage.other_node = other
        await stage.set_up()
        if variant == "both":
            yield stage
            return
        settings: dict[str, Any] = {"variant": variant, "jwt_issuer": "strongroom", "public_url": ORIGIN}
        narrowed = create_server(jwt_secret=SECRET, clock=clock, **settings, **place)
        try:
            stage.app = narrowed
            yield stage
        finally:
            await narrowed.release()
    finally:
        await other.release()
        await server.release()


def rowless(variant: str) -> set[str]:
    """Routes that the table does not know, and rows for routes that are not there."""
    served = {f"{endpoint.method} {endpoint.path}" for endpoint in routes.router(Variant(variant)).endpoints}
    return served ^ {row.route for row in ROWS if variant in row.only}


class Matrix:
    """One playing of the table."""

    def __init__(self, stage: Stage, variant: str = "both", *, brief: bool = False, sampled: bool = False) -> None:
        self.stage = stage
        self.variant = variant
        self.brief = brief
        self.sampled = sampled
        self.cells = 0
        table = routes.router(Variant.BOTH)
        self._endpoints = {f"{endpoint.method} {endpoint.path}": endpoint for endpoint in table.endpoints}
        self._hidden: dict[str, set[str]] = {}

    async def failures(self) -> AsyncIterator[str]:
        """What is not as the table says, one sentence each."""
        for route in sorted(rowless(self.variant)):
            yield f"{route}: a route without a row, or a row without a route"
        self._hidden = {name: self.stage.hidden(principal) for name, principal in PRINCIPALS.items()}
        before = await self.stage.inventory()
        for at, row in enumerate(self._rows()):
            for number, (name, principal) in self._principals(row, at):
                async for failure in self._play(row, name, principal, number):
                    yield f"{row.name}, {name}: {failure}"
        if await self.stage.inventory() != before:
            yield "things that nobody had leave to touch have changed"

    def _rows(self) -> Iterator[Row]:
        """The rows of this variant, and those of routes that it must not have."""
        served = {f"{endpoint.method} {endpoint.path}" for endpoint in routes.router(Variant(self.variant)).endpoints}
        return (row for row in ROWS if self.variant in row.only or row.route not in served)

    def _principals(self, row: Row, at: int) -> list[tuple[int, tuple[str, Principal]]]:
        """All. `sampled`: a quarter where somebody with a second factor is made for each, others in the next row."""
        every = list(enumerate(PRINCIPALS.items()))
        return some("callers of the matrix", every, at) if self.sampled and row.enrolled else every

    def _targets(self, row: Row, principal: Principal, number: int) -> list[Target]:
        """The targets of a caller: all but a sample of the malformed ones, or a sample of all if it is let in nowhere.

        Another caller has another sample: each target is requested in every row. `sampled`: so for all,
        where there are many; of a few, those who are let in would leave out some.
        """
        bad: tuple[str, ...] = MALFORMED[:1] if self.brief else MALFORMED
        if principal.column:
            bad = (bad[0], *some("malformed ids of the matrix", bad[1:], number))
        found = list(targets(row, bad, brief=self.brief))
        whole = not row.family or (principal.column and not (self.sampled and len(found) > _MANY))
        return found if whole else some("targets of the matrix", found, number)

    async def _play(self, row: Row, name: str, principal: Principal, number: int) -> AsyncIterator[str]:
        hidden = self._hidden[name]
        for way in ways(self._endpoints[row.route], brief=self.brief):
            alike: dict[tuple[int, str], Answer] = {}
            for target in self._targets(row, principal, number):
                expected = self._expected(row, principal, target)
                answer = await self._asked(row, way, name, principal, target, good=expected == row.good)
                self.cells += 1
                got = answer.status, answer.code
                if got != expected:
                    yield f"{way.method} {target}: {got} instead of {expected}"
                if expected[0] in {401, 403, 404} and alike.setdefault(expected, answer) != answer:
                    yield f"{way.method} {target}: differs from another {expected[1]}: {answer.body!r}"
                text = answer.body.decode()
                if shown := [canary for canary in hidden if canary in text]:
                    yield f"{way.method} {target}: shows {shown}"
                whole = way.method != "HEAD" or row.shows != "all"  # an export is not made for its headers
                if (
                    whole
                    and got == expected == (200, "")
                    and (
                        lacks := [
                            canary for canary in self._wanted(row, principal, target) - hidden if canary not in text
                        ]
                    )
                ):
                    yield f"{way.method} {target}: does not show {lacks}"

    def _expected(self, row: Row, principal: Principal, target: Target) -> tuple[int, str]:
        if self.variant not in row.only:
            return 404, "not_found"
        if row.may == EVERYBODY:
            return row.good
        if not principal.column or (principal.is_key and self.variant == "blob"):
            return 401, "unauthorized"
        if not row.lets_in(principal):
            return 403, "insufficient_scope"
        if row.good[0] == 400:  # which comes before its target is looked for
            return row.good
        code = missing(principal, row.family, target.own_vault, target.thing) if row.family else ""
        return (404, code) if code else row.good

    def _wanted(self, row: Row, principal: Principal, target: Target) -> set[str]:
        """The canaries that a good answer must show, but for those that are hidden from the caller.

        A matrix in which nobody sees anything would pass too easily.
        """
        own = self.stage.accounts[principal.account]
        vault = target.own_vault
        wanted: set[str] = set()
        if row.shows == "agent":
            wanted = {own.agent}
        elif row.shows == "keyring":
            wanted = {own.keyring}
        elif row.shows == "keys":
            wanted = {own.key_uid}
        elif row.shows == "passkeys":
            wanted = {own.passkey_uid}
        elif row.shows == "vaults":
            wanted = {thing.canary for thing in own.vaults.values()}
        elif row.shows == "documents":
            wanted = {own.documents[which].canary for which, (home, _) in HOMES.items() if home == vault}
        elif row.shows == "all":
            wanted = {thing.canary for thing in (*own.vaults.values(), *own.documents.values())}
        elif row.shows == "itself":
            wanted = {(own.documents[target.thing] if target.thing else own.vaults[vault]).canary}
        if self.variant == "document":
            wanted -= {thing.canary for thing in own.vaults.values()}
        return wanted

    async def _asked(
        self, row: Row, way: Way, name: str, principal: Principal, target: Target, *, good: bool
    ) -> Answer:
        own = self.stage.accounts[principal.account]
        bearer = self.stage.bearers[name]
        if row.bearer and principal.column == "user":
            fresh = await (self.stage.log_in(own) if row.bearer == "session" else self.stage.register("passing"))
            bearer = fresh.access
        spot = Spot(self.stage, own, target.own_vault)
        if row.enrolled and (row.may == EVERYBODY or principal.column == "user"):
            spot = spot._replace(account=await self.stage.enrolled(row.enrolled))
            bearer = spot.account.access if principal.column == "user" else bearer
        if row.how == "foreign uid" and good:
            await self.stage.lend()
        vault, thing = self._spelled(own, row, target)
        if good and row.destroys:
            vault, thing = await self._fresh(own, row, target, vault)
        path = way.path.replace("{vaultUid}", vault).replace("{name*}", vault).replace("{sid}", thing)
        path = path.replace("{version}", row.version)
        path = path.replace("{uid}", vault if row.family == "vault" else thing) + row.query
        headers: tuple[tuple[str, str], ...] = (("if-match", "*"),) if row.if_match else ()
        if row.content_type:
            headers += (("content-type", row.content_type),)
        if principal.carried == "query":
            path += f"{'&' if '?' in path else '?'}access_token={own.access}&token={own.access}&authorization=Bearer+x"
        elif principal.carried == "cookie":
            headers += (
                ("cookie", f"token={own.access}; access_token={own.access}; authorization=Bearer {own.access}"),
            )
        elif principal.carried == "basic":
            pair = base64.b64encode(f"{own.email}:correct horse".encode()).decode()
            headers += (("authorization", f"Basic {pair}"), ("x-api-key", own.access), ("x-access-token", own.access))
        body = None if row.body is None else row.body(spot)
        return await ask(self.stage.app, way.method, path, bearer, body, headers=headers, agent=own.agent)

    def _spelled(self, own: Account, row: Row, target: Target) -> tuple[str, str]:
        """The two ids of a path, as they are written there."""
        foreign = self.stage.named("foreign", own)
        vault = target.vault
        if found := foreign.vaults["inside"] if vault == "foreign" else own.vaults.get(target.own_vault):
            spelled = found.uid.upper() if vault == "INSIDE" else found.uid
            vault = quote(found.name, safe="") if row.family == "name" else spelled
        elif vault == "random":
            vault = str(uuid.uuid4())
        thing = target.thing
        if thing == "random":
            thing = str(uuid.uuid4())
        elif thing == "its vault":
            thing = vault
        elif thing in {"own", "foreign"}:
            whose = own if thing == "own" else foreign
            if row.family == "document":
                thing = whose.documents["in1"].uid
            else:
                owned = {"key": whose.key_uid, "session": whose.session, "passkey": whose.passkey_uid}
                thing = owned[row.family]
        elif thing in own.documents:
            thing = own.documents[thing].uid
        return vault, thing

    async def _fresh(self, own: Account, row: Row, target: Target, vault: str) -> tuple[str, str]:
        """A target that may be lost."""
        if row.family == "vault":
            return await self.stage.vault(own), ""
        if row.family == "document":
            return vault, await self.stage.document(own, vault, HOMES[target.thing][1], "AAAA")
        if row.family == "key":
            return "", str((await self.stage.key(own))["uid"])
        return "", (await self.stage.log_in(own)).session
