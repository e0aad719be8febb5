"""No body costs more than its size allows: length and depth are judged before anything is built or explained."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from strongroom import wire
from strongroom.errors import Invalid
from strongroom.wire import export_lines
from tests.kit.asynchronous import async_test
from tests.kit.calibration import ATTEMPTS, assert_within, measured, processor_time, reference_time
from tests.kit.samples import LONG, some
from tests.kit.servers.in_process import OpenServer
from tests.security import hostile_bodies

MIB = 1024 * 1024
LARGEST = 6 * MIB  # the default of MAX_BODY_BYTES
RATIO = 1.0  # at most as long as Python's own JSON decoder takes for numbers of the same size; today it is half of that
FAULTS = 100
LARGE = LARGEST if LONG else LARGEST // 3
on_one_engine = pytest.mark.parametrize("where", ["sqlite"], indirect=True)  # bodies that no engine gets to see
SMALLER = 8  # every kind is tried with bodies of this part of the size


def faults_of(kind: type[wire.requests.Body], body: bytes) -> int:
    """Read a body or refuse it; how many faults are reported."""
    try:
        wire.decode(kind, body)
    except Invalid as refused:
        return len((refused.details or {})["fields"])
    return 0


Hostile = Iterator[tuple[str, hostile_bodies.Made]]


def within(kind: type[wire.requests.Body], hostile: Hostile, size: int, shift: int = 0) -> None:
    """Every body is read or refused in the time that this size allows.

    In `make test` it is a quarter of the bodies; another kind has another quarter.
    """
    for name, made in some("hostile bodies", hostile, hostile_bodies.BODIES.index(kind) + shift):
        body = made()
        what = (kind.__name__, name)
        assert assert_within(RATIO, size, partial(faults_of, kind, body), what) <= FAULTS, what


@pytest.mark.parametrize("kind", hostile_bodies.BODIES, ids=lambda kind: kind.__name__)
def test_no_kind_of_body_takes_long(kind: type[wire.requests.Body]) -> None:
    """For every kind of body and every field of it, the costliest nonsense is read or refused quickly."""
    within(kind, hostile_bodies.bodies(kind, LARGEST // SMALLER), LARGEST // SMALLER)


@pytest.mark.parametrize("kind", [wire.requests.Batch, wire.requests.CreateApiKey], ids=lambda kind: kind.__name__)
def test_no_body_of_the_largest_size_takes_long(kind: type[wire.requests.Body]) -> None:
    """The kinds that hold lists, at the size that is taken by default; in `make test`, a third of both."""
    other = 2  # bodies than those of the test above, on the same day
    within(kind, hostile_bodies.bodies(kind, LARGE), LARGE, other)


def test_no_batch_of_a_thousand_takes_long() -> None:
    """As many operations as there may be, each with nonsense in it."""
    within(wire.requests.Batch, hostile_bodies.batches(LARGE), LARGE)


def test_the_time_grows_with_the_size_and_no_faster() -> None:
    """Whoever sets MAX_BODY_BYTES higher gets a cost in proportion: four times the size, not more than eight times."""
    for name in ("operations: list of creates", "operations: deep lists", "unknown: deep lists", "unknown: digits"):
        field, piece = name.encode().split(b": ")
        small, large = (
            b'{"%s":%s}' % (field, hostile_bodies.value(piece.decode(), size)) for size in (2 * MIB, 8 * MIB)
        )
        slack = reference_time(256 * 1024)  # of what is so short that a measure says nothing
        short, long = [], []
        for _ in range(ATTEMPTS):
            short.append(processor_time(partial(faults_of, wire.requests.Batch, small)))
            long.append(processor_time(partial(faults_of, wire.requests.Batch, large)))
            if min(long) <= 8 * min(short) + slack:
                break
        assert min(long) <= 8 * min(short) + slack, (name, short, long)


@pytest.mark.parametrize("piece", ["digits", "escapes", "deep lists", "list of numbers", "text with commas"])
def test_no_line_of_an_import_takes_long(piece: str) -> None:
    """A line is as long as a body, and costs no more; in `make test`, a third of both."""
    for field in ("kind", "uid", "data", "createdAt", "unknown"):
        raw = b'{"kind":"document","%s":%s}\n' % (field.encode(), hostile_bodies.value(piece, LARGE))
        assert_within(RATIO, LARGE, partial(refused_line, raw), (piece, field))


def refused_line(raw: bytes) -> None:
    """Read a line of an import, which is refused."""
    with pytest.raises(Invalid):
        export_lines.read_line(raw)


@on_one_engine
@async_test
async def test_a_batch_is_refused_by_its_length_before_its_items(open_server: OpenServer) -> None:
    """350,000 bad operations once kept the server for minutes, and the answer had 132 MB."""
    async with open_server() as server:
        person = await server.person()
        path = f"/vaults/{(await person.vault())['uid']}/batch"
        headers = {"content-type": "application/json"}
        for item, number in ((b'{"op":"create"}', 20_000), (b'{"op":"create"}', 350_000), (b"{}", 1_900_000)):
            allowed = 3 * RATIO * reference_time(LARGEST)  # the client's own work is in it
            with measured() as measure:
                body = b'{"operations":[' + b",".join([item] * number) + b"]}"
                refused = await person("POST", path, content=body, headers=headers)
            assert measure.seconds < allowed
            assert refused.status_code == 400
            details = refused.json()["error"]["details"]
            assert details == {"fields": {"operations": "must be a list of 1 to 1000 operations"}}


@on_one_engine
@async_test
async def test_at_most_a_hundred_faults_are_explained(open_server: OpenServer) -> None:
    """The answer tells the first hundred, and that there are more."""
    async with open_server() as server:
        person = await server.person()
        path = f"/vaults/{(await person.vault())['uid']}/batch"
        for bad, more in ((50, False), (51, True), (1_000, True)):
            refused = await person("POST", path, {"operations": [{"op": "create"}] * bad})
            error = refused.json()["error"]
            told = {f"operations[{at}].{name}" for at in range(50) for name in ("collection", "data")}
            assert set(error["details"]["fields"]) == told
            assert error["details"].get("more", False) is more
            assert ("first 100" in error["message"]) is more
            assert len(refused.content) < 64 * 1024


@on_one_engine
@async_test
async def test_lists_of_a_key_are_refused_by_their_length(open_server: OpenServer) -> None:
    """A million and a half collections once took seconds."""
    async with open_server() as server:
        person = await server.person()
        for field in ("collections", "vaultUids", "permissions"):
            body = b'{"name":"k","%s":[%s]}' % (field.encode(), b",".join([b'"c"'] * 1_500_000))
            refused = await person("POST", "/auth/api-keys", content=body, headers={"content-type": "application/json"})
            assert refused.status_code == 400
            assert list(refused.json()["error"]["details"]["fields"]) == [field]


def test_a_text_may_hold_anything() -> None:
    """Commas, brackets and escapes within a text are no structure: a blob of them is taken."""
    for piece in ("text with commas", "escaped quotes", "escapes", "mixed widths"):
        data = hostile_bodies.value(piece, LARGEST)
        vault = wire.decode(wire.requests.CreateVault, b'{"name":"v","salt":"","data":%s}' % data)
        assert vault.data
    hmacs = b",".join([b'{"op":"create","collection":"c","data":"AAAA","hmac":"%s"}' % (b"," * 1_000)] * 1_000)
    batch = wire.decode(wire.requests.Batch, b'{"operations":[%s]}' % hmacs)
    assert len(batch.operations) == 1_000
    assert {type(operation) for operation in batch.operations} == {wire.requests.CreateOperation}


def test_of_a_key_given_twice_the_last_counts_wherever_it_is() -> None:
    """In the items of a list and in a large body as well."""
    filler = b'"unknown":[' + b"0," * 50_000 + b"0]"
    for more in (b"", b"," + filler):
        body = (
            b'{"operations":7,"operations":[{"op":"put","op":"create","collection":1,"collection":"c","data":"AAAA"}]'
            + more
            + b"}"
        )
        (operation,) = wire.decode(wire.requests.Batch, body).operations
        assert operation == wire.requests.CreateOperation("c", "AAAA")
