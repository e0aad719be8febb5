"""Copying a whole database into another: nothing is lost on the way."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from strongroom.store import CannotOpen, migrations, open_database
from strongroom.store.maintenance import copy_endpoints, endpoint_protocol
from strongroom.store.maintenance.copy import LEFT_OUT, CannotCopy, Tally, copy, tables
from strongroom.store.maintenance.postgres_endpoint import PostgresEndpoint
from strongroom.store.maintenance.sqlite_endpoint import SqliteEndpoint
from strongroom.store.migrations import Migration
from strongroom.store.postgres.connection import connect
from strongroom.store.sqlite.migrate import migrate
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.samples import rounds
from tests.kit.servers.populated_database import (
    LARGE,
    ODD,
    PAIRS,
    USERS,
    Belongings,
    Served,
    alter,
    copied_rows_of,
    fill,
    live_in,
    rows_of,
)
from tests.kit.servers.postgres import postgres

FULL = {"users", "sessions", "refresh_tokens", "api_keys", "vaults", "documents", "failures"}


class Listener:
    """Hears how a copy goes, and may do something about it at each step."""

    def __init__(self, then: Callable[[str, int, int], None] = lambda *_: None) -> None:
        self.sentences: list[str] = []
        self.counts: dict[str, tuple[int, int]] = {}
        self.steps: list[tuple[str, int, int]] = []
        self._then = then

    def moved(self, doing: str, done: int, total: int) -> None:
        self.steps.append((doing, done, total))
        self._then(doing, done, total)

    def said(self, sentence: str) -> None:
        self.sentences.append(sentence)

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        self.counts = counts


class Killed(BaseException):
    """Ends a copy as a kill would: nothing more is said to the target."""


def with_each_pair(rows: dict[str, tuple[str, ...]]) -> list[Any]:
    """Each row of a table with each pair of engines."""
    return [pytest.param(pair, *row, id=f"{' to '.join(pair)}-{name}") for name, row in rows.items() for pair in PAIRS]


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages of three rows, so that a small service has many."""
    monkeypatch.setattr(endpoint_protocol, "PAGE_ROWS", 3)


def dies_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[str]:
    """Let the target die before its statement of this number; the statements before it."""
    heard: list[str] = []

    def mortal(kind: Any, name: str) -> None:
        real = getattr(kind, name)

        async def method(self: Any, first: Any, *rest: Any) -> Any:
            if self.role == "target":
                if len(heard) >= number:
                    raise Killed
                heard.append(str(first))
            return await real(self, first, *rest)

        monkeypatch.setattr(kind, name, method)

    for kind in map(kind_of, ("x.db", "postgresql://")):
        mortal(kind, "query")
        mortal(kind, "add")
    return heard


async def half_copy(source: str, target: str, clock: Clock) -> None:
    """A copy that was killed when the first page of documents was there."""
    pages = itertools.count()
    kind = kind_of(target)
    real = kind.add

    async def add(self: Any, table: Any, page: Any) -> None:
        if table.name == "documents" and next(pages):
            raise Killed
        await real(self, table, page)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "add", add)
        with pytest.raises(Killed):
            await copy(source, target, clock, Listener())
    assert 1 <= len((await rows_of(target))["documents"]) <= 3  # the large one ends its page


def kind_of(where: str) -> Any:
    """What stands for a database of this engine in a copy."""
    return PostgresEndpoint if "://" in where else SqliteEndpoint


# What arrives


@async_test
async def test_every_row_arrives(pair: tuple[str, str], clock: Clock) -> None:
    """Of every table but the one that is left out, value by value; and the helper table is gone."""
    source, target = pair
    await live_in(source, clock)
    before = await rows_of(source)
    assert before.keys() >= FULL
    assert all(before[name] for name in FULL)
    listener = Listener()
    await copy(source, target, clock, listener)
    after = await rows_of(target)
    assert after.keys() == before.keys()
    assert not any(after[name] for name in LEFT_OUT.keys() & after.keys())
    assert await copied_rows_of(target) == await copied_rows_of(source)
    assert listener.counts == {table.name: (len(after[table.name]),) * 2 for table in tables()}


@async_test
async def test_there_and_back_again(new_location: Callable[[str], str], clock: Clock) -> None:
    """From SQLite to PostgreSQL and back, it is row for row what it was, NUL characters and large texts included."""
    here, there, back = new_location("sqlite"), new_location("postgres"), new_location("sqlite")
    await live_in(here, clock)
    await copy(here, there, clock, Listener())
    await copy(there, back, clock, Listener())
    assert await copied_rows_of(back) == await copied_rows_of(here)
    texts = [value for rows in (await rows_of(back)).values() for row in rows for value in row]
    assert texts.count(ODD) == 3
    assert LARGE in texts


@async_test
async def test_the_copy_serves(pair: tuple[str, str], clock: Clock) -> None:
    """Old tokens, keys with their scopes, passwords and sync cursors work as if nothing had happened."""
    source, target = pair
    held = await live_in(source, clock)
    await copy(source, target, clock, Listener())
    async with Served(target, clock) as server:

        async def get(path: str, bearer: str) -> Any:
            return await server.http.get(path, headers={"authorization": f"Bearer {bearer}"})

        listed = f"/vaults/{held.plain['uid']}/documents?since=0"
        for bearer in (held.access, held.key):
            assert (await get(listed, bearer)).json()["documents"] == held.documents
            assert (await get(f"/vault/{held.blob['uid']}", bearer)).json() == held.blob
        within = [document for document in held.documents if document["collection"] == "c"]
        assert (await get(listed, held.reader)).json()["documents"] == within
        assert (await get(f"/vault/{held.blob['uid']}", held.reader)).status_code == 404
        assert (await server.http.post("/auth/refresh", json={"refreshToken": held.refresh})).status_code == 200
        assert (await server.login(held.email)).status_code == 200
        await _goes_on(held, server.http)


async def _goes_on(held: Belongings, http: Any) -> None:
    """The vault's clock goes on from where it was."""
    made = await http.post(
        f"/vaults/{held.plain['uid']}/documents",
        json={"collection": "c", "data": "AAAA"},
        headers={"authorization": f"Bearer {held.access}"},
    )
    assert made.status_code == 201
    assert made.json()["updatedAt"] > held.documents[-1]["updatedAt"]


@async_test
async def test_an_empty_service_can_be_copied_and_copied_onto(pair: tuple[str, str], clock: Clock) -> None:
    """A database on which a server was started, but never used, counts as empty."""
    source, target = pair
    for where in pair:
        await open_database(where, clock).close()
    listener = Listener()
    await copy(source, target, clock, listener)
    assert set(listener.counts.values()) == {(0, 0)}
    await open_database(target, clock).close()


# What is copied


def test_every_table_is_copied_or_left_out_with_a_reason() -> None:
    """And every column has a type whose values are the same on both engines."""
    scratch = apsw.Connection(":memory:")
    migrate(scratch, 0)
    every = {str(name) for (name,) in scratch.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    wanted = tables()
    assert {table.name for table in wanted} == every - LEFT_OUT.keys() - {"schema_migrations"}
    assert all(LEFT_OUT.values())
    for table in wanted:
        kinds = {kind for (kind,) in scratch.execute("SELECT type FROM pragma_table_info(?)", (table.name,))}
        assert kinds <= {"TEXT", "INTEGER"}


def test_a_table_comes_after_those_that_it_refers_to() -> None:
    """Foreign keys hold after every page."""
    order = [table.name for table in tables()]
    for child, parent in [
        ("sessions", "users"),
        ("refresh_tokens", "sessions"),
        ("api_keys", "users"),
        ("documents", "vaults"),
    ]:
        assert order.index(parent) < order.index(child)


def planted(monkeypatch: pytest.MonkeyPatch, sql: str) -> None:
    """A migration of some later release."""
    steps = [*migrations.load(), Migration(migrations.load()[-1].number + 1, "later", sql)]
    monkeypatch.setattr(migrations, "load", lambda: steps)


@async_test
async def test_a_later_migration_needs_no_change_here(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New tables, and new columns of old ones, are found in the schema; words that SQL keeps for itself are no harm."""
    planted(
        monkeypatch,
        'CREATE TABLE attics ("order" {bigint} NOT NULL, owner TEXT NOT NULL REFERENCES users (id), "user" {text},'
        ' PRIMARY KEY (owner, "order")){strict};'
        "ALTER TABLE users ADD COLUMN shoe_size {bigint};",
    )
    source, target = pair
    await open_database(source, clock).close()
    await alter(source, f"{USERS} ('u', 'e@x', 1, 1), ('w', 'f@x', 1, 1)")
    await alter(source, "UPDATE users SET shoe_size = 43 WHERE id = 'u'")
    await alter(source, "INSERT INTO attics VALUES (-1, 'u', NULL), (5, 'w', NULL), (5, 'u', NULL), (10, 'u', NULL)")
    monkeypatch.setattr(endpoint_protocol, "PAGE_ROWS", 2)
    await copy(source, target, clock, Listener())
    after = await copied_rows_of(target)
    assert len(after["attics"]) == 4
    assert after == await copied_rows_of(source)


def test_a_table_without_a_key_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new table must be copied or left out on purpose; it is never forgotten in silence."""
    planted(monkeypatch, "CREATE TABLE loose (word TEXT){strict}")
    with pytest.raises(LookupError, match="loose has no primary key"):
        tables()


def test_a_tally_knows_every_value_but_not_the_order() -> None:
    """Two databases may sort differently; what they hold must be the same to the letter."""
    rows = [("a", 1, None), ("b", 2, ""), ("ab", -(2**63), "\x00"), ("a", 2**63 - 1, "\U0001f600")]
    whole = Tally().plus(rows)
    assert Tally().plus(reversed(rows)) == Tally().plus(rows[:2]).plus(rows[2:]) == whole
    for other in (("a", 1, ""), ("a", "1", None), ("a", 1), ("a", None, 1), ("A", 1, None)):
        assert Tally().plus([other, *rows[1:]]) != whole
    assert Tally().plus([*rows, rows[0]]) != whole


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
@async_test
async def test_pages_are_bounded_by_bytes_and_by_rows(
    engine: str, new_location: Callable[[str], str], clock: Clock
) -> None:
    """However large the documents are, few of them are in memory; and no page is empty."""
    here, where = new_location("sqlite"), new_location(engine)
    await open_database(here, clock).close()
    fill(Path(here), 1_200, 10)
    connection = apsw.Connection(here)
    connection.execute("UPDATE documents SET data = ? WHERE uid >= '001190'", ("A" * 700_000,))
    connection.close()
    await copy(here, where, clock, Listener())
    side = copy_endpoints.endpoint("source", where)
    async with copy_endpoints.opened(side):
        [documents] = [table for table in tables() if table.name == "documents"]
        pages = [len(page) async for page in side.pages(documents)]
    assert sum(pages) == 1_200
    assert max(pages) <= endpoint_protocol.PAGE_ROWS
    assert pages[-4:] == [2, 2, 2, 2]
    assert len(pages) <= 8


@async_test
async def test_postgres_reads_a_page_by_the_index_of_the_key(new_location: Callable[[str], str], clock: Clock) -> None:
    """Also where nothing is known yet of a table: or a copy would take the square of its time."""
    where = new_location("postgres")
    await open_database(where, clock).close()
    asked: list[tuple[str, tuple[Any, ...]]] = []

    class Asked(PostgresEndpoint):
        async def query(self, sql: str, *parameters: Any) -> list[endpoint_protocol.Row]:
            asked.append((sql, parameters))
            return await super().query(sql, *parameters)

    side = Asked("source", where)
    await alter(where, USERS.replace("VALUES", "SELECT n::text, n::text, 1, 1 FROM generate_series(1, 20000) AS n"))
    async with copy_endpoints.opened(side):
        [users] = [table for table in tables() if table.name == "users"]
        assert sum([len(page) async for page in side.pages(users)]) == 20_000
        sql, parameters = asked[-2]
        assert parameters
        plan = "\n".join(line for (line,) in await side.query(f"EXPLAIN {sql}", *parameters))
    assert "using users_pkey" in plan
    assert "Sort" not in plan


# What is refused


async def refusal_of_copy(source: str, target: str, clock: Clock) -> str:
    with pytest.raises((CannotCopy, CannotOpen)) as caught:
        await copy(source, target, clock, Listener())
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@async_test
async def test_a_target_that_is_not_empty_is_refused_and_left_alone(pair: tuple[str, str], clock: Clock) -> None:
    """One account is enough. Not even its schema is touched."""
    source, target = pair
    for where in pair:
        await open_database(where, clock).close()
        await alter(where, f"{USERS} ('u', 'e@x', 1, 1)")
    await alter(target, "DROP TABLE failures")
    before = await rows_of(target)
    assert "is not empty" in await refusal_of_copy(source, target, clock)
    assert await rows_of(target) == before


@async_test
async def test_a_target_of_another_program_is_refused(pair: tuple[str, str], clock: Clock) -> None:
    """Even an empty table of ours by name is not ours if there is no record of its making."""
    source, target = pair
    await open_database(source, clock).close()
    if "://" not in target:
        apsw.Connection(target).close()
    await alter(target, "CREATE TABLE users (shoe_size INTEGER)")
    assert "is not empty" in await refusal_of_copy(source, target, clock)
    assert set(await rows_of(target)) == {"users"}


@async_test
async def test_an_older_source_is_refused_and_not_migrated(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence says what to do; no target is made."""
    source, target = pair
    await open_database(source, clock).close()
    before = await rows_of(source)
    planted(monkeypatch, "CREATE TABLE later (id TEXT PRIMARY KEY){strict};")
    newest = migrations.load()[-1].number
    sentence = await refusal_of_copy(source, target, clock)
    assert f"has schema {newest - 1}, this program has {newest}; start the server on it once" in sentence
    assert await rows_of(source) == before
    if "://" not in target:
        assert not Path(target).exists()


@async_test
async def test_a_newer_source_is_refused(pair: tuple[str, str], clock: Clock) -> None:
    """This program would not know what to copy."""
    source, target = pair
    await open_database(source, clock).close()
    await alter(source, "INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)")
    sentence = await refusal_of_copy(source, target, clock)
    assert sentence.startswith("The source (")
    assert "9999" in sentence
    assert "install a newer strongroom" in sentence


@async_test
async def test_a_newer_target_is_refused(pair: tuple[str, str], clock: Clock) -> None:
    """As when a server is started on it."""
    source, target = pair
    for where in pair:
        await open_database(where, clock).close()
    await alter(target, "INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)")
    assert "install a newer strongroom" in await refusal_of_copy(source, target, clock)


@async_test
async def test_a_source_that_is_no_service_is_refused(tmp_path: Path, clock: Clock) -> None:
    """Nothing there, something else there, a folder there; and no target is made for it."""
    (tmp_path / "text").write_text("this is not a database, but long enough to be read as one" * 20)
    apsw.Connection(str(tmp_path / "empty")).execute("CREATE TABLE other (x)").close()
    target = tmp_path / "target.db"
    for name, says in [
        ("nothing", "does not exist"),
        ("text", "is not a database of strongroom"),
        ("empty", "is not a database of strongroom"),
        (".", "does not exist"),
    ]:
        assert says in await refusal_of_copy(str(tmp_path / name), str(target), clock)
    assert "is not a database of strongroom" in await refusal_of_copy(postgres().fresh(), str(target), clock)
    assert not target.exists()
    assert not (tmp_path / "nothing").exists()


@async_test
async def test_a_database_is_not_copied_onto_itself(tmp_path: Path, clock: Clock) -> None:
    """By whatever name it is called."""
    path, url = tmp_path / "a.db", postgres().fresh()
    for where in (str(path), url):
        await open_database(where, clock).close()
    (tmp_path / "soft.db").symlink_to(path)
    (tmp_path / "hard.db").hardlink_to(path)
    for other in ("a.db", "soft.db", "hard.db", "./x/../a.db"):
        assert "are the same database" in await refusal_of_copy(str(path), str(tmp_path / other), clock)
    assert "are the same database" in await refusal_of_copy(url, url.replace("postgres:@", "other:secret@"), clock)


@async_test
async def test_a_database_that_hides_under_two_names_is_not_copied_onto_itself(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own locks stand in the way."""
    url = postgres().fresh()
    await open_database(url, clock).close()
    monkeypatch.setattr(endpoint_protocol, "LOCK_MS", 50)
    assert "is in use" in await refusal_of_copy(url, f"{url}&port=5432", clock)
    assert "copy_progress" not in await rows_of(url)


@async_test
async def test_a_text_that_postgres_cannot_hold_is_a_sentence(new_location: Callable[[str], str], clock: Clock) -> None:
    """A NUL where the service itself would never let one in; the sentence says in which table."""
    source = new_location("sqlite")
    await open_database(source, clock).close()
    connection = apsw.Connection(source)
    connection.execute(f"{USERS} (?, 'e@x', 1, 1)", ("a\x00b",))
    connection.close()
    assert "does not take the rows of users" in await refusal_of_copy(source, new_location("postgres"), clock)


@async_test
async def test_a_text_that_is_not_utf8_is_a_sentence(new_location: Callable[[str], str], clock: Clock) -> None:
    """Such a file was not written by us alone."""
    source = new_location("sqlite")
    await open_database(source, clock).close()
    await alter(source, f"{USERS} ('u', CAST(x'ff' AS TEXT), 1, 1)")
    assert "text that is not UTF-8" in await refusal_of_copy(source, new_location("sqlite"), clock)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://ada:hunter2@127.0.0.1:1/db",
        "postgres://ada:hunter2@127.0.0.1:1/db",
        "postgresql://ada:hunt%20er2@127.0.0.1:1/db?password=hunter2",
        "postgresql://ada:hunter2/x@127.0.0.1:1/db",
        "postgresql://ada:hunter2#x@127.0.0.1:1/db",
        "postgresql://ada:hunter2?x@127.0.0.1:1/db",
        "postgresql://ada:hunter2?x=y@127.0.0.1:1/db",
        "postgresql://ada:1234/hunter2@127.0.0.1:1/db",
        "postgresql://ada:x@hunter2@127.0.0.1:1/db",
        "postgresql://ada:[hunter2@127.0.0.1:1/db",
        "postgresql://ada:hunter2",
        "postgresql://127.0.0.1:1/db?sslmode=hunter2",
        "mysql://ada:hunter2@127.0.0.1/db",
        "Postgresql://ada:hunter2@127.0.0.1/db",
    ],
)
@async_test
async def test_a_password_is_never_said(address: str, new_location: Callable[[str], str], clock: Clock) -> None:
    """Whatever is wrong with an address, on whichever side, no part of it that may be the password is shown."""
    source = new_location("sqlite")
    await open_database(source, clock).close()
    for ends in ((address, source), (source, address)):
        assert "hunter2" not in await refusal_of_copy(*ends, clock)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (apsw.FullError("database or disk is full"), "failed at documents: database or disk is full; run the same"),
        (asyncpg.DiskFullError("could not extend file"), "failed at documents: could not extend file; run the same"),
        (asyncpg.ConnectionDoesNotExistError("gone\nfor good."), "failed at documents: gone; run the same"),
        (TimeoutError(), "failed at documents: no answer; run the same"),
        (apsw.ReadOnlyError("attempt to write"), "may not be written to; run this as its owner"),
        (apsw.CorruptError("malformed"), "is damaged; stop the server and run 'strongroom restore FILE'"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_failure_is_a_sentence(error: Exception, says: str) -> None:
    """Which endpoint, what happened, and what to do."""
    at_postgres = isinstance(error, (asyncpg.PostgresError, TimeoutError))
    target = PostgresEndpoint("target", "postgresql://h/d") if at_postgres else SqliteEndpoint("target", "x.db")
    with pytest.raises(CannotCopy) as caught, target.translate_errors("documents"):
        raise error
    sentence = str(caught.value)
    assert sentence.startswith("The target (")
    assert says in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence


# Interrupted


@pytest.mark.usefixtures("small_pages")
@async_test
async def test_killed_before_any_statement_it_goes_on(
    new_location: Callable[[str], str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each statement that is said to a target: die right before it, run again, and all is as it should be.

    `make test` takes every fourth statement.
    """
    source = new_location("sqlite")
    await live_in(source, clock)
    wanted = await copied_rows_of(source)
    ended = False
    for number in range(0, 1_000, rounds(4, 1)):
        target = new_location("sqlite")
        with monkeypatch.context() as patch:
            dies_at(patch, number)
            try:
                await copy(source, target, clock, Listener())
                ended = True
            except Killed:
                if "copy_progress" in await rows_of(target):
                    with pytest.raises(CannotOpen, match="half of a copy"):
                        open_database(target, clock)
        listener = Listener()
        if not ended:
            await copy(source, target, clock, listener)
            assert listener.counts
        assert listener.sentences == []
        assert await copied_rows_of(target) == wanted
        if ended:
            break
    assert ended
    assert number > 50


@pytest.mark.usefixtures("small_pages")
@async_test
async def test_killed_again_and_again_it_gets_there(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each run goes a little further than the one before; none starts over, and no row comes twice."""
    source, target = pair
    await live_in(source, clock)
    listener = Listener()
    deaths = 0
    for number in range(12, 400, 3):
        with monkeypatch.context() as patch:
            dies_at(patch, number)
            try:
                await copy(source, target, clock, listener)
                break
            except Killed:
                deaths += 1
    assert deaths > 3
    assert listener.sentences == []
    assert listener.counts
    assert await copied_rows_of(target) == await copied_rows_of(source)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize(
    ("pair", "change"),
    with_each_pair(
        {
            "changed": ("UPDATE users SET password_hash = 'other'",),
            "deleted": ("DELETE FROM api_keys",),
            "added": (f"{USERS} ('!', 'new@x', 1, 1)",),
            "emptied": ("DELETE FROM users",),
        }
    ),
    indirect=["pair"],
)
@async_test
async def test_a_source_that_has_changed_is_copied_anew(pair: tuple[str, str], clock: Clock, change: str) -> None:
    """A server ran on it between the two runs: what was copied before is true no more, and is thrown away."""
    source, target = pair
    await live_in(source, clock)
    await half_copy(source, target, clock)
    await alter(source, change)
    listener = Listener()
    await copy(source, target, clock, listener)
    assert listener.sentences == ["The source has changed since the copy was begun; starting over."]
    assert await copied_rows_of(target) == await copied_rows_of(source)


@pytest.mark.usefixtures("small_pages")
@async_test
async def test_a_change_of_what_was_not_copied_yet_costs_nothing(pair: tuple[str, str], clock: Clock) -> None:
    """It is simply copied as it is now."""
    source, target = pair
    await live_in(source, clock)
    await half_copy(source, target, clock)
    last = "SELECT user_id, uid FROM documents ORDER BY user_id DESC, uid DESC LIMIT 1"
    await alter(source, f"UPDATE documents SET collection = 'z' WHERE (user_id, uid) IN ({last})")
    listener = Listener()
    await copy(source, target, clock, listener)
    assert listener.sentences == []
    assert await copied_rows_of(target) == await copied_rows_of(source)


@pytest.mark.usefixtures("small_pages")
@async_test
async def test_half_a_copy_is_neither_served_nor_copied_nor_filled_from_elsewhere(
    pair: tuple[str, str], new_location: Callable[[str], str], clock: Clock
) -> None:
    """Clients would take what is missing for deleted. Only the same command makes it whole."""
    source, target = pair
    await live_in(source, clock)
    await half_copy(source, target, clock)
    before = await rows_of(target)
    with pytest.raises(CannotOpen, match="half of a copy; run the same 'strongroom db copy' again"):
        open_database(target, clock)
    assert "half of a copy" in await refusal_of_copy(target, new_location("sqlite"), clock)
    other = new_location("sqlite")
    await open_database(other, clock).close()
    assert "holds half of a copy from " in await refusal_of_copy(other, target, clock)
    assert await rows_of(target) == before
    await copy(source, target, clock, Listener())
    await open_database(target, clock).close()


@pytest.mark.usefixtures("small_pages")
@async_test
async def test_half_a_copy_of_another_release_is_refused(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tables are not those of this one."""
    source, target = pair
    await live_in(source, clock)
    await half_copy(source, target, clock)
    planted(monkeypatch, "CREATE TABLE later (id TEXT PRIMARY KEY){strict};")
    await open_database(source, clock).close()
    assert "another release of strongroom began" in await refusal_of_copy(source, target, clock)


# Others at work


async def blocked(where: str) -> bool:
    """Whether no connection can write, while every one can read."""
    statement = "UPDATE users SET email = email"
    if "://" in where:
        connection = await connect(where)
        await connection.execute("SET lock_timeout = 20")
        assert await connection.fetchval("SELECT count(*) FROM users") > 0
        try:
            await connection.execute(statement)
        except asyncpg.LockNotAvailableError:
            return True
        finally:
            await connection.close()
        return False
    file = apsw.Connection(where)
    try:
        assert file.execute("SELECT count(*) FROM users").get > 0
        file.execute(statement)
    except apsw.BusyError:
        return True
    finally:
        file.close()
    return False


@async_test
async def test_the_source_is_locked_against_writes_meanwhile(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the first page to the last word; a server is told that the database is busy, and may go on reading."""
    source, target = pair
    await live_in(source, clock)
    found: list[bool] = []
    real = kind_of(target).add

    async def add(self: Any, table: Any, page: Any) -> None:
        found.append(await blocked(source))
        await real(self, table, page)

    monkeypatch.setattr(kind_of(target), "add", add)
    await copy(source, target, clock, Listener())
    assert len(found) >= 6
    assert all(found)
    assert not await blocked(source)


@async_test
async def test_a_source_that_is_being_written_to_is_refused(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy waits for a writer, but not for ever."""
    source, target = pair
    await open_database(source, clock).close()
    await alter(source, f"{USERS} ('u', 'e@x', 1, 1)")
    monkeypatch.setattr(endpoint_protocol, "LOCK_MS", 50)
    writer: Any
    if "://" in source:
        writer = await connect(source)
        await writer.execute("BEGIN")
        await writer.execute("UPDATE users SET email = email")
    else:
        writer = apsw.Connection(source)
        writer.execute("BEGIN IMMEDIATE")
    assert "is in use; stop the server that writes to it" in await refusal_of_copy(source, target, clock)
    if "://" in source:
        await writer.close()
    else:
        writer.close()
    await copy(source, target, clock, Listener())


@pytest.mark.parametrize(
    ("pair", "meddling", "says"),
    with_each_pair(
        {
            "a row more": (f"{USERS} ('!', 'new@x', 1, 1)", "users (3 rows in the source, 4 in the target)"),
            "other letters": ("UPDATE vaults SET name = name || '!'", "vaults (4 rows in the source, 4 in the target)"),
            "rows less": ("DELETE FROM refresh_tokens", "refresh_tokens (5 rows in the source, 0 in the target)"),
        }
    ),
    indirect=["pair"],
)
@async_test
async def test_a_target_that_another_process_has_changed_is_no_copy(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch, meddling: str, says: str
) -> None:
    """Not by one row, not by one letter; and it stays half a copy, which no server opens."""
    source, target = pair
    await live_in(source, clock)
    kind = kind_of(target)

    async def update_statistics(_self: Any, _tables: Any) -> None:
        await alter(target, meddling)

    monkeypatch.setattr(kind, "update_statistics", update_statistics)
    assert says in await refusal_of_copy(source, target, clock)
    with pytest.raises(CannotOpen, match="half of a copy"):
        open_database(target, clock)


@async_test
async def test_two_copies_into_one_target_do_not_mix(
    pair: tuple[str, str], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mark is moved from where it must be; the one that finds it elsewhere stops, and has written nothing."""
    source, target = pair
    await live_in(source, clock)
    kind = kind_of(target)
    real = kind.add

    async def add(self: Any, table: Any, page: Any) -> None:
        await real(self, table, page)
        await self.query("UPDATE copy_progress SET copied = 1 WHERE name = 'documents'")

    monkeypatch.setattr(kind, "add", add)
    assert "is being filled by another copy" in await refusal_of_copy(source, target, clock)
    assert (await rows_of(target))["documents"] == []


@async_test
async def test_progress_runs_from_nothing_to_everything_twice(pair: tuple[str, str], clock: Clock) -> None:
    """Once for the copy, once for the look at it."""
    source, target = pair
    await live_in(source, clock)
    listener = Listener()
    await copy(source, target, clock, listener)
    total = sum(count for count, _ in listener.counts.values())
    for doing in ("copying", "verifying"):
        steps = [(done, of) for what, done, of in listener.steps if what == doing]
        assert steps == sorted(steps)
        assert steps[-1] == (total, total)
