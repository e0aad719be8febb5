"""How long a login takes does not tell whether the account exists, and neither does a prelogin."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.contract.checks import without_id
from tests.kit.people.api_user import ApiUser, unique_email
from tests.kit.samples import LONG, rounds
from tests.kit.servers.process import STRONGROOM, Server, fresh_address
from tests.security.request_times import ATTEMPTS, MARGIN, PAIRS, quick

pytestmark = pytest.mark.alone


def apart(server: Server, known: str, attempt: int) -> float:
    """Log in wrongly with a known and an unknown email in turn; how far the quickest tenths are from each other."""
    ids: dict[str, list[str]] = {"known": [], "unknown": []}
    texts = set()
    for number in range(PAIRS):
        turns = [("known", known), ("unknown", unique_email())]
        for kind, email in turns if number % 2 else reversed(turns):
            name = f"{kind}-{attempt}-{number}"
            with server.connect(address=fresh_address()) as http:
                body = {"email": email, "password": "a wrong guess"}
                answer = http.post("/auth/email/login", json=body, headers={"x-request-id": name})
            assert answer.status_code == 401
            texts.add(json.dumps([without_id(answer), sorted(answer.headers.keys())]))
            ids[kind].append(name)
    assert len(texts) == 1
    one, other = (quick(server, ids[kind]) for kind in ("known", "unknown"))
    assert min(one, other) > 5, "a password check takes its time"
    return abs(one - other) / max(one, other)


def test_known_and_unknown_emails_take_the_same_time(tmp_path: Path) -> None:
    """The quickest tenths of interleaved logins lie within a few per cent, and the answers are the same."""
    server = Server(tmp_path, LOG_LEVEL="debug")
    server.program = STRONGROOM  # at the cost of production
    try:
        known = ApiUser.register(server.start()).email
        apart_by = []
        for attempt in range(ATTEMPTS):
            apart_by.append(apart(server, known, attempt))
            if apart_by[-1] <= MARGIN:
                return
        assert min(apart_by) <= MARGIN
    finally:
        server.abandon()


# strongroom, with a delay for unknown emails: a share of the time that the check of the password took.
SLOWER_FOR_UNKNOWN = """
import asyncio, runpy, time
from strongroom.server.context import AppContext
check = AppContext.password_matches
async def slower(context, password, phc, place):
    began = time.monotonic()
    matches = await check(context, password, phc, place)
    if phc is None:
        await asyncio.sleep((time.monotonic() - began) * SHARE)
    return matches
AppContext.password_matches = slower
runpy.run_module("strongroom", run_name="__main__", alter_sys=True)
"""


def test_a_planted_delay_is_noticed(tmp_path: Path) -> None:
    """Four times the margin more time for unknown emails is outside of the margin, whatever else the machine does."""
    server = Server(tmp_path, LOG_LEVEL="debug")
    server.program = ("-c", SLOWER_FOR_UNKNOWN.replace("SHARE", str(4 * MARGIN / (1 - MARGIN))))
    try:
        assert apart(server, ApiUser.register(server.start()).email, 0) > MARGIN
    finally:
        server.abandon()


QUESTIONS = rounds(80, 300)
NEAR = 0.10 if LONG else 0.20
KDF = {
    "format": 2,
    "kdf": "argon2id",
    "memory": 65_536,
    "passes": 3,
    "lanes": 1,
    "secretKey": False,
    "salt": "A" * 24,
    "recovery": "A" * 192,
}


def spread(server: Server, emails: dict[str, str], attempt: int) -> float:
    """Ask about emails in turn, each time from another address; how far the quick ones of each kind are apart.

    A question takes a millisecond, most of it for the disk, and what others do on the machine takes several.
    """
    ids: dict[str, list[str]] = {kind: [] for kind in [*emails, "unknown"]}
    lengths = set()
    for number in range(QUESTIONS):
        turns = [*emails.items(), ("unknown", unique_email())]
        for kind, email in turns[number % 3 :] + turns[: number % 3]:
            name = f"asked-{kind}-{attempt}-{number}"
            with server.connect(address=fresh_address()) as http:
                answer = http.post("/auth/email/prelogin", json={"email": email}, headers={"x-request-id": name})
            assert answer.status_code == 200
            lengths.add((len(answer.content), tuple(answer.json()["kdf"]), tuple(sorted(answer.headers.keys()))))
            ids[kind].append(name)
    assert len(lengths) == 1
    times = [quick(server, names) for names in ids.values()]
    return (max(times) - min(times)) / max(times)


def test_prelogins_take_the_same_time(tmp_path: Path) -> None:
    """For an account with a descriptor, for one without, for an email without an account: one length, one time."""
    server = Server(tmp_path, LOG_LEVEL="debug")
    server.program = STRONGROOM  # at the cost of production
    try:
        bare, derived = ApiUser.register(server.start()).email, unique_email()
        body = {"email": derived, "password": "an auth key", "kdf": KDF, "keyring": "A" * 200_000}
        with server.connect(address=fresh_address()) as http:
            assert http.post("/auth/email/register", json=body).status_code == 201
        apart_by = []
        for attempt in range(ATTEMPTS):
            apart_by.append(spread(server, {"derived": derived, "bare": bare}, attempt))
            if apart_by[-1] <= NEAR:
                return
        assert min(apart_by) <= NEAR
    finally:
        server.abandon()
