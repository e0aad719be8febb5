"""Guessing is slow, signing up is bounded, and nobody talks their way out of it with a header."""

from __future__ import annotations

from typing import Any

import pytest

from strongroom.rules import HOUR, MINUTE
from tests.kit.asynchronous import async_test
from tests.security.asgi_request import Answer, fresh_address
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage

HERE = "192.0.2.66"
WRONG = "wrong horse"
Method = tuple[str, str, dict[str, Any]]


def change(password: str) -> Method:
    return "PUT", "/auth/password", {"currentPassword": password, "newPassword": PASSWORD}


def leave(password: str) -> Method:
    return "DELETE", "/auth/me", {"password": password}


def log_in(password: str, email: str = "") -> Method:
    return "POST", "/auth/email/login", {"email": email, "password": password}


async def tried(stage: Stage, ann: Account, what: Method, address: str = HERE) -> Answer:
    """One try at the password, with Ann's token where one is needed."""
    method, path, body = what
    bearer = None if path.endswith("login") else ann.access
    return await stage.send(method, path, bearer, {**body, "email": ann.email}, address=address)


@pytest.mark.parametrize("way", [change, leave, log_in])
@async_test
async def test_the_eleventh_wrong_password_is_refused_on_every_road(nodes: Nodes, way: Any) -> None:
    """Then the right one is refused as well, from there; the owner elsewhere is not held up, and time heals."""
    async with nodes({"jwt_access_expiry": "1d"}) as (stage,):
        ann = await stage.register("ann")
        for _ in range(10):
            answer = await tried(stage, ann, way(WRONG))
            assert (answer.status, answer.code) == (401, "invalid_credentials")
        for password in (WRONG, PASSWORD):
            answer = await tried(stage, ann, way(password))
            assert (answer.status, answer.code) == (429, "rate_limited")
            assert answer.header("retry-after") == "900"
        for other in (change, log_in):
            assert (await tried(stage, ann, other(PASSWORD))).status == 429
            assert (await tried(stage, ann, other(PASSWORD), fresh_address())).status == 200
        stage.clock.pass_(15 * MINUTE)
        assert (await tried(stage, ann, way(PASSWORD))).status == 200


@async_test
async def test_all_roads_and_all_nodes_count_together(nodes: Nodes) -> None:
    """Ten wrong ones, some here and some there, some at login and some at a change."""
    async with nodes({}, {}) as (one, two):
        ann = await one.register("ann")
        for stage, way in ((one, log_in), (two, change), (one, leave), (two, log_in), (one, change)) * 2:
            assert (await tried(stage, ann, way(WRONG))).status == 401
        for stage in (one, two):
            for way in (log_in, change, leave):
                assert (await tried(stage, ann, way(PASSWORD))).status == 429


@async_test
async def test_who_goes_on_guessing_waits_longer_and_longer(nodes: Nodes) -> None:
    """A quarter of an hour, then twice that, up to four hours; never for ever."""
    async with nodes({"jwt_access_expiry": "10d"}) as (stage,):
        ann = await stage.register("ann")
        waits = []
        for _ in range(6):
            while (answer := await tried(stage, ann, log_in(WRONG))).status == 401:
                pass
            waits.append(int(answer.header("retry-after")))
            stage.clock.pass_(waits[-1] * 1000 - 1)
            assert (await tried(stage, ann, log_in(PASSWORD))).status == 429
            stage.clock.pass_(1)
        assert waits == [900, 1_800, 3_600, 7_200, 14_400, 14_400]
        assert (await tried(stage, ann, log_in(PASSWORD))).status == 200
        assert [(await tried(stage, ann, log_in(WRONG))).status for _ in range(10)] == [401] * 10


async def signed_up(stage: Stage, name: str, address: str) -> Answer:
    body = {"email": f"{name}@example.com", "password": PASSWORD}
    return await stage.send("POST", "/auth/email/register", None, body, address=address)


@async_test
async def test_closed_signups_are_closed(nodes: Nodes) -> None:
    """For known and unknown emails alike, to the byte; who has an account goes on."""
    async with nodes({}, {"signups": "closed"}) as (one, closed):
        ann = await one.register("ann")
        (answer,) = {await signed_up(closed, name, HERE) for name in (ann.email.removesuffix("@example.com"), "new")}
        assert (answer.status, answer.code) == (403, "signups_closed")
        assert (await tried(closed, ann, log_in(PASSWORD))).status == 200


@async_test
async def test_registrations_of_one_address_are_bounded(nodes: Nodes) -> None:
    """In an hour, on all nodes together; an IPv6 customer's /64 is one address."""
    async with nodes({"signup_limit": 3}, {"signup_limit": 3}) as (one, two):
        for number, stage in enumerate((one, two, one)):
            assert (await signed_up(stage, f"p{number}", f"2001:db8::{number}")).status == 201
            stage.clock.pass_(MINUTE)
        answer = await signed_up(two, "p4", "2001:db8::ffff:1")
        assert (answer.status, answer.code, answer.header("retry-after")) == (429, "rate_limited", str(57 * 60))
        assert (await signed_up(two, "p4", "2001:db8:0:1::1")).status == 201
        one.clock.pass_(HOUR - 3 * MINUTE)
        assert (await signed_up(one, "p5", "2001:db8::1")).status == 201
        assert (await signed_up(one, "p6", "2001:db8::1")).status == 429


@async_test
async def test_who_signed_up_too_often_learns_nothing_of_who_has_an_account(nodes: Nodes) -> None:
    """Beyond the limit a known email is answered as an unknown one: else the bound would bound nothing."""
    async with nodes({"signup_limit": 2}) as (stage,):
        for name in ("p1", "p2"):
            assert (await signed_up(stage, name, HERE)).status == 201
        answers = {await signed_up(stage, name, HERE) for name in ("p1", "p2", "p3")}
        assert {(answer.status, answer.code) for answer in answers} == {(429, "rate_limited")}
        assert len(answers) == 1


@async_test
async def test_registrations_need_not_be_bounded(nodes: Nodes) -> None:
    """A limit of 0 is none, and leaves no trace of addresses."""
    async with nodes({"signup_limit": 0}, {"signup_limit": 1}) as (free, bounded):
        assert [(await signed_up(free, f"p{n}", HERE)).status for n in range(4)] == [201] * 4
        assert (await signed_up(bounded, "p9", HERE)).status == 201


@async_test
async def test_requests_of_an_account_can_be_bounded(nodes: Nodes) -> None:
    """A minute's share for the account, by whatever session or key; nobody else's."""
    async with nodes({"rate_limit": 4}) as (stage,):
        ann, bob = await stage.register("ann"), await stage.register("bob")
        stage.clock.pass_(MINUTE - stage.clock.now % MINUTE + 20_000)
        key = (await stage.key(ann))["key"]
        there = await stage.log_in(ann)
        for bearer in (ann.access, key, there.access):
            assert (await stage.send("GET", "/vault", bearer)).status == 200
        for bearer in (ann.access, key, there.access):
            answer = await stage.send("GET", "/vault", bearer)
            assert (answer.status, answer.code, answer.header("retry-after")) == (429, "rate_limited", "40")
        assert (await stage.send("GET", "/vault", bob.access)).status == 200
        assert (await stage.send("GET", "/vault", "nonsense")).status == 401
        stage.clock.pass_(40_000)
        assert (await stage.send("GET", "/vault", ann.access)).status == 200


@async_test
async def test_ordinary_use_is_not_bounded_by_default(nodes: Nodes) -> None:
    """Three hundred requests in one moment."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        assert {(await stage.send("GET", "/vault", ann.access)).status for _ in range(300)} == {200}


PROXY, CHAIN = "10.1.1.1", "192.168.7.7"
FORWARDED = [
    # whom the operator trusts, who connects, what X-Forwarded-For says, whose address counts
    ("", PROXY, "1.2.3.4", PROXY),
    ("", "127.0.0.1", "1.2.3.4", "127.0.0.1"),
    ("10.1.1.1", "198.51.100.9", "1.2.3.4", "198.51.100.9"),
    ("10.1.1.1", "198.51.100.9", "10.1.1.1", "198.51.100.9"),
    ("10.1.1.1", "198.51.100.9", "1.2.3.4, 10.1.1.1", "198.51.100.9"),
    ("10.1.1.1", "10.1.1.2", "1.2.3.4", "10.1.1.2"),
    ("10.1.1.1", PROXY, "", PROXY),
    ("10.1.1.1", PROXY, "1.2.3.4", "1.2.3.4"),
    ("10.1.1.1", PROXY, " 1.2.3.4 ", "1.2.3.4"),
    ("10.1.1.1", PROXY, "1.2.3.4:5678", "1.2.3.4"),
    ("10.1.1.1", PROXY, "2001:db8::7", "2001:db8::7"),
    ("10.1.1.1", PROXY, "[2001:db8::7]", "2001:db8::7"),
    ("10.1.1.1", PROXY, "[2001:db8::7]:5678", "2001:db8::7"),
    ("10.1.1.1", PROXY, "6.6.6.6, 1.2.3.4", "1.2.3.4"),
    ("10.1.1.1", PROXY, "127.0.0.1, 10.1.1.1, 1.2.3.4", "1.2.3.4"),
    ("10.1.1.1", PROXY, "6.6.6.6, 1.2.3.4, 10.1.1.1", "1.2.3.4"),
    ("10.1.1.1", "::ffff:10.1.1.1", "1.2.3.4", "1.2.3.4"),
    ("10.1.1.1, 192.168.0.0/16", PROXY, "6.6.6.6, 1.2.3.4, 192.168.7.7", "1.2.3.4"),
    ("10.1.1.1, 192.168.0.0/16", CHAIN, "1.2.3.4", "1.2.3.4"),
    ("2001:db8:f::/48", "2001:db8:f::1", "1.2.3.4", "1.2.3.4"),
]  # fmt: skip


@pytest.mark.parametrize(("trusted", "peer", "header", "counts"), FORWARDED)
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_whose_word_about_addresses_counts(
    nodes: Nodes, trusted: str, peer: str, header: str, counts: str
) -> None:
    """Only a named proxy's, and of its list only the last that is not a proxy of ours."""
    async with nodes({"trusted_proxies": trusted}) as (stage,):
        body = {"email": "ann@example.com", "password": PASSWORD}
        told = (("x-forwarded-for", header), ("x-real-ip", "6.6.6.6"), ("forwarded", "for=6.6.6.6")) if header else ()
        made = await stage.send("POST", "/auth/email/register", None, body, headers=told, address=peer)
        listed = (await stage.send("GET", "/auth/sessions", made.json()["accessToken"])).json()["sessions"]
        assert listed[0]["address"] == counts


@async_test
async def test_a_guesser_behind_a_proxy_gets_no_more_tries_by_lying(nodes: Nodes) -> None:
    """What he writes himself stands left of what the proxy writes; several headers are one list."""
    async with nodes({"trusted_proxies": PROXY}) as (stage,):
        ann = await stage.register("ann")
        body = {"email": ann.email, "password": WRONG}
        statuses = []
        for number in range(12):
            told = (("x-forwarded-for", f"6.6.6.{number}"), ("x-forwarded-for", "1.2.3.4"))
            answer = await stage.send("POST", "/auth/email/login", None, body, headers=told, address=PROXY)
            statuses.append(answer.status)
        assert statuses == [401] * 10 + [429] * 2
        body["password"] = PASSWORD
        right = await stage.send(
            "POST", "/auth/email/login", None, body, headers=(("x-forwarded-for", "1.2.3.5"),), address=PROXY
        )
        assert right.status == 200
