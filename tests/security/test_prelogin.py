"""Asking how a password is derived does not tell who has an account, and is no way around the limits."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from strongroom import create_server, store
from strongroom.descriptors import Decoys
from strongroom.rules import FAILURES_PER_ADDRESS, MINUTE
from strongroom.store import open_database
from strongroom.store.maintenance.copy import copy
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import context_of, database_of
from tests.kit.servers.populated_database import rows_of
from tests.kit.servers.postgres import postgres
from tests.kit.servers.secret import SECRET
from tests.kit.servers.silent_watcher import SilentWatcher
from tests.security.asgi_request import Answer, fresh_address
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Stage

HERE = "192.0.2.77"
LENGTHS = {"salt": 16, "recovery": 144}


async def asked(stage: Stage, email: str, address: str | None = None) -> Answer:
    return await stage.send("POST", "/auth/email/prelogin", None, {"email": email}, address=address)


async def kept_by(stage: Stage, email: str, kdf: Any) -> None:
    """An account whose client keeps a descriptor."""
    body = {"email": email, "password": PASSWORD, "kdf": kdf, "keyring": "QQ=="}
    assert (await stage.send("POST", "/auth/email/register", None, body)).status == 201


def shape(answer: Answer) -> Any:
    """Everything of an answer but the random bytes in it."""
    kdf = answer.json()["kdf"]
    random = {name: len(base64.b64decode(kdf.pop(name), validate=True)) for name in LENGTHS}
    headers = [(name, value) for name, value in answer.headers if name != b"date"]
    return answer.status, headers, len(answer.body), list(answer.json()["kdf"]), kdf, random


@async_test
async def test_an_account_with_a_descriptor_one_without_and_none_at_all_look_alike(nodes: Nodes) -> None:
    """In status, headers, length, the order of the fields, figures, and the length of what is random."""
    async with nodes() as (stage,):
        bare = await stage.register("bare")
        body = Decoys("ab" * 32).of("somebody else")  # what a client of ours sends, with random bytes of its own
        kdf = dict(reversed(json.loads(body).items()))
        await kept_by(stage, "known@example.com", kdf)
        answers = [await asked(stage, email) for email in ("known@example.com", bare.email, "nobody@example.com")]
        assert answers[0].json()["kdf"] == kdf
        assert shape(answers[0]) == shape(answers[1]) == shape(answers[2])
        assert shape(answers[0])[-1] == LENGTHS
        assert len({answer.body for answer in answers}) == 3


@async_test
async def test_a_decoy_is_the_same_for_ever(nodes: Nodes) -> None:
    """On every node, however the email is spelled, under a rotated secret, after a restart; for each email its own."""
    rotated = {"jwt_secret": "another secret of the tests, 32 bytes long", "jwt_secret_previous": SECRET}
    bodies = []
    for _ in range(2):
        async with nodes({}, rotated, {"jwt_issuer": "other"}) as stages:
            for stage in stages:
                bodies += [(await asked(stage, email)).body for email in ("who@example.com", "\tWHO@Example.com ")]
            stages[0].clock.pass_(90 * 24 * 60 * MINUTE)
            assert (await asked(stages[0], "other@example.com")).body not in bodies
    assert len(bodies) == 12
    assert len(set(bodies)) == 1


@async_test
async def test_decoys_of_other_databases_are_others(clock: Clock, tmp_path: Path) -> None:
    """The secret is random: nobody computes a decoy who has not seen the database."""
    found = set()
    for number in range(4):
        server = create_server(jwt_secret=SECRET, clock=clock, db_path=tmp_path / f"{number}.db")
        found.add((await asked(Stage(server, clock), "who@example.com")).body)
        await server.release()
    assert len(found) == 4


def test_decoys_look_random() -> None:
    """No two share a salt, and their bytes are spread as random ones are."""
    decoys = Decoys("cd" * 32)
    texts = [decoys.of(f"person{number}@example.com") for number in range(2_000)]
    assert len(set(texts)) == 2_000
    kdfs = [json.loads(text) for text in texts]
    assert len({kdf["salt"] for kdf in kdfs}) == 2_000
    for place in (slice(0, 31), slice(32, 144)):  # the last byte of a public key has seven bits
        assert len({base64.b64decode(kdf["recovery"])[place] for kdf in kdfs}) == 2_000
    raw = b"".join(
        base64.b64decode(kdf["salt"]) + base64.b64decode(kdf["recovery"])[place]
        for kdf in kdfs
        for place in (slice(0, 31), slice(32, 144))
    )
    counts = Counter(raw)
    expected = len(raw) / 256
    chi = sum((counts[value] - expected) ** 2 / expected for value in range(256))
    assert abs(chi - 255) < 6 * math.sqrt(2 * 255)
    assert "cd" * 4 not in repr(decoys)


def test_a_decoy_has_the_form_of_todays_client() -> None:
    """What our own client sends for a new account, field by field; it takes a decoy for a descriptor."""
    derive = pytest.importorskip("strongroom.client.format.derive")
    real = derive.Descriptor.new().spelled()
    decoy = json.loads(Decoys("ab" * 32).of("who@example.com"))
    derive.Descriptor.read(decoy)
    random = dict.fromkeys(LENGTHS, "")
    assert {**decoy, **random} == {**real, **random}
    assert [len(decoy[name]) for name in LENGTHS] == [len(real[name]) for name in LENGTHS]


P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493  # of the prime-order subgroup


def is_sealed(recovery: str) -> bool:
    """Whether bytes could be sealed to a public key: they begin with a point of the prime-order subgroup, reduced.

    Half of all texts of 32 bytes lie on the twist of the curve, and of the others seven in eight are outside the
    subgroup: random bytes are told from a key at once.
    """
    raw = base64.b64decode(recovery, validate=True)
    u = int.from_bytes(raw[:32], "little")
    on_curve = pow(u * u * u + 486662 * u * u + u, (P - 1) // 2, P) == 1
    return len(raw) == LENGTHS["recovery"] and u < P and on_curve and _times(ORDER, u) is None


def _times(scalar: int, u: int) -> int | None:
    """A multiple of the point with this u-coordinate, by Montgomery's ladder (RFC 7748); None is the neutral one."""
    x2, z2, x3, z3 = 1, 0, u, 1
    for bit in f"{scalar:b}":
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a, c * b, a * a, b * b
        x3, z3 = (da + cb) ** 2 % P, u * (da - cb) ** 2 % P
        e = aa - bb
        x2, z2 = aa * bb % P, e * (aa + 121665 * e) % P
        if bit == "1":
            x2, z2, x3, z3 = x3, z3, x2, z2
    return x2 * pow(z2, -1, P) % P if z2 else None


def test_nobody_can_tell_a_decoy_by_its_public_key() -> None:
    """A decoy's sealed key begins with a point of the curve, as those of clients do, with a recovery key or without."""
    decoys = Decoys("ef" * 32)
    shown = [json.loads(decoys.of(f"person{number}@example.com"))["recovery"] for number in range(50)]
    assert len({one[:40] for one in shown}) == 50
    assert [one for one in shown if not is_sealed(one)] == []
    public_box = pytest.importorskip("strongroom.client.format.public_box")
    derive = pytest.importorskip("strongroom.client.format.derive")
    assert is_sealed(derive.Descriptor.new().spelled()["recovery"])
    sealed = public_box.seal(public_box.KeyPair.of(bytes(32)).public, bytes(32), b"", os.urandom)
    assert is_sealed(base64.b64encode(sealed).decode())
    random = [base64.b64encode(os.urandom(144)).decode() for _ in range(50)]
    assert sum(map(is_sealed, random)) < 20, "the check tells random bytes"


@async_test
async def test_nodes_that_start_at_once_have_one_secret(where: str) -> None:
    """Eight servers open a new database at the same time: one row, one decoy."""
    await open_database(where, lambda: 1).close()
    place: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}

    def start(_: int) -> Any:
        return create_server(jwt_secret=SECRET, **place)

    with ThreadPoolExecutor(8) as threads:
        servers = list(threads.map(start, range(8)))
    try:
        assert len({context_of(server).decoys.of("who@example.com") for server in servers}) == 1
        assert len((await rows_of(where))["secrets"]) == 1
    finally:
        for server in servers:
            await server.release()


@async_test
async def test_a_copied_service_shows_the_same_decoys(tmp_path: Path, clock: Clock) -> None:
    """Even into a target on which a server was started before, which had a secret of its own."""
    source, target = str(tmp_path / "vault.db"), postgres().fresh()

    async def shown(**place: Any) -> bytes:
        server = create_server(jwt_secret=SECRET, clock=clock, **place)
        try:
            return (await asked(Stage(server, clock), "who@example.com")).body
        finally:
            await server.release()

    before = await shown(db_path=source)
    assert await shown(database_url=target) != before
    await copy(source, target, clock, SilentWatcher())
    assert await shown(database_url=target) == before


@async_test
async def test_the_hundred_and_first_question_is_refused(nodes: Nodes) -> None:
    """On all nodes together, for known and unknown emails alike, and only for that address; time heals."""
    async with nodes({}, {}) as (one, two):
        await kept_by(one, "known@example.com", {"salt": "QQ=="})
        for number in range(FAILURES_PER_ADDRESS):
            email = "known@example.com" if number % 3 == 0 else f"p{number}@example.com"
            assert (await asked((one, two)[number % 2], email, HERE)).status == 200
        for email in ("known@example.com", "new@example.com", "no email"):
            answer = await asked(two, email, HERE)
            assert (answer.status, answer.code, answer.header("retry-after")) == (429, "rate_limited", "900")
        login = {"email": "known@example.com", "password": "wrong horse"}
        assert (await one.send("POST", "/auth/email/login", None, login, address=HERE)).status == 429
        assert (await asked(one, "known@example.com")).status == 200
        one.clock.pass_(15 * MINUTE)
        assert (await asked(one, "known@example.com", HERE)).status == 200


@async_test
async def test_failures_close_this_door_too(nodes: Nodes) -> None:
    """An address that has failed a hundred times with tokens learns nothing here."""
    async with nodes() as (stage,):
        for _ in range(FAILURES_PER_ADDRESS):
            wrong = await stage.send("POST", "/auth/refresh", None, {"refreshToken": "a.b.c"}, address=HERE)
            assert wrong.status == 401
        assert (await asked(stage, "who@example.com", HERE)).status == 429


@async_test
async def test_who_logs_in_is_not_held_up(nodes: Nodes) -> None:
    """A right password takes the questions about its account back, so an office of many people can log in all day."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        login = {"email": ann.email, "password": PASSWORD}
        for _ in range(8):
            for _ in range(FAILURES_PER_ADDRESS // 4):
                assert (await asked(stage, ann.email, HERE)).status == 200
            answer = await stage.send("POST", "/auth/email/login", None, login, address=HERE)
            assert answer.status == 200


@async_test
async def test_questions_are_no_guesses_at_an_account(nodes: Nodes) -> None:
    """Ten wrong passwords are ten, however often the client asked before each."""
    async with nodes() as (stage,):
        ann, address = await stage.register("ann"), fresh_address()
        for word, status in [("wrong horse", 401)] * 10 + [(PASSWORD, 429)]:
            assert (await asked(stage, ann.email, address)).status == 200
            body = {"email": ann.email, "password": word}
            assert (await stage.send("POST", "/auth/email/login", None, body, address=address)).status == status


@pytest.mark.parametrize("email", ["", "nobody", "a@b@c", "a\0@b", 5, None, "@", "a" * 300 + "@b"])
@async_test
async def test_what_is_no_email_is_refused_and_not_counted(nodes: Nodes, email: Any) -> None:
    """Its form is judged before any account is looked for."""
    async with nodes() as (stage,):
        for _ in range(3):
            answer = await asked(stage, email, HERE)
            assert (answer.status, answer.code) == (400, "validation_error")
        assert (await database_of(stage.app).read(_failures)) == 0


async def _failures(tx: Any) -> int:
    return await store.failures.count_of_address(tx, HERE, 0)


@async_test
async def test_a_burst_of_questions_is_counted_one_by_one(open_server: OpenServer) -> None:
    """Those that come at once were all let in when none was counted yet; each is judged again when it is."""
    async with open_server() as server:
        questions = [f"person{number}@example.com" for number in range(FAILURES_PER_ADDRESS + 30)]
        asked = [server.http.post("/auth/email/prelogin", json={"email": email}) for email in questions]
        statuses = Counter(answer.status_code for answer in await asyncio.gather(*asked))
        assert statuses == {200: FAILURES_PER_ADDRESS, 429: 30}
