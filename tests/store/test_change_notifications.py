"""Change notifications: a process learns of its own commits at once, and of those of other processes by the engine."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import asyncpg
import pytest

from strongroom.store import ChangeHint, Database, Tx, open_database
from strongroom.store.postgres import notify
from strongroom.store.queries import accounts, sessions
from strongroom.store.sqlite import change_watch
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.servers.postgres import postgres
from tests.kit.waiting import until_async

_numbers = itertools.count(1)


class Ear:
    """What one process hears."""

    def __init__(self, where: str, clock: Clock) -> None:
        self.db: Database = open_database(where, clock)
        self.heard: list[ChangeHint] = []
        self.invalidations = 0
        self.db.notifications.listen(self.heard.extend, self._invalidate)

    def _invalidate(self) -> None:
        self.invalidations += 1

    async def write(self, *, ends: str | None = None) -> None:
        """Change something; if a session ends, its account is notified."""
        await self.db.write(_change, ends)


async def _change(tx: Tx, ends: str | None) -> None:
    name = str(next(_numbers))
    await accounts.insert(tx, name, name, "x")
    if ends is not None:
        await sessions.end(tx, ends, "s")


@async_test
async def test_a_process_is_notified_of_its_own_commits_at_once(where: str, clock: Clock) -> None:
    """Before the writer goes on; a rollback, or a change without followers, gives no hint."""
    ear = Ear(where, clock)
    await ear.write(ends="ann")
    assert ear.heard == [("ann", None)]
    await ear.write()

    async def refuse(tx: Tx) -> None:
        tx.notify("bob", "vault")
        raise LookupError

    with pytest.raises(LookupError):
        await ear.db.write(refuse)
    assert [nudge for nudge in ear.heard if nudge.user_id != "ann"] in ([], [("bob", "vault")])
    await ear.db.close()


@async_test
async def test_what_another_process_commits_is_noticed(where: str, clock: Clock) -> None:
    """On a file as an invalidation, on PostgreSQL by name; its own commits invalidate nothing."""
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)  # nobody knows what happened before
    await here.write(ends="ann")
    await here.write(ends="ann")
    await there.write(ends="bob")
    if "://" in where:
        await until_async(lambda: ("bob", None) in here.heard)
        assert here.invalidations == 1
    else:
        await until_async(lambda: here.invalidations == 2)
    assert there.heard == [("bob", None)]
    for ear in (here, there):
        await ear.db.close()


@async_test
async def test_another_process_is_noticed_under_a_stream_of_own_writes(where: str, clock: Clock) -> None:
    """The connection that writes is busy all the time, and is asked all the same."""
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)
    stop = False

    async def busy() -> None:
        while not stop:
            await here.write(ends="ann")

    work = [asyncio.create_task(busy()) for _ in range(4)]
    await there.write(ends="bob")
    await until_async(lambda: here.invalidations > 1 or ("bob", None) in here.heard)
    stop = True
    await asyncio.gather(*work)
    for ear in (here, there):
        await ear.db.close()


@async_test
async def test_a_process_that_does_not_watch_does_not_poll(where: str, clock: Clock) -> None:
    """No timer, no listening."""
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)
    here.db.notifications.watch(wanted=False)
    await there.write(ends="bob")
    await here.write(ends="ann")
    await there.write(ends="bob")
    assert here.invalidations == 1
    assert here.heard == [("ann", None)] or "://" in where
    for ear in (here, there):
        await ear.db.close()


@async_test
async def test_a_failing_listener_fails_no_write(where: str, clock: Clock) -> None:
    """What is committed is committed."""
    ear = Ear(where, clock)
    seen: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: seen.append(context["exception"]))

    def fail(_: Any) -> None:
        raise LookupError

    ear.db.notifications.listen(fail, ear._invalidate)
    await ear.write(ends="ann")
    assert [type(error) for error in seen] == [LookupError]
    await ear.db.close()


@async_test
async def test_a_listener_that_lost_its_connection_comes_back(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """It invalidates everything, because what was sent meanwhile is unknown, and listens again."""
    monkeypatch.setattr(notify, "RETRY_SECONDS", 0.05)
    where = postgres().fresh()
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)
    operator = await asyncpg.connect(where)
    listening = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query ILIKE 'listen%'"
    assert await operator.fetchval(listening)
    await operator.close()
    await until_async(lambda: here.invalidations == 2)
    await there.write(ends="bob")
    await until_async(lambda: ("bob", None) in here.heard)
    for ear in (here, there):
        await ear.db.close()


@async_test
async def test_many_hints_go_in_one_notification(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of commits is a few notifications, however many accounts it names; none of them is lost."""
    where = postgres().fresh()
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)
    sent = 0
    send = notify.PostgresNotifications._send

    async def counted(self: Any, connection: Any) -> None:
        nonlocal sent
        sent += 1
        await send(self, connection)

    monkeypatch.setattr(notify.PostgresNotifications, "_send", counted)
    names = {f"0192f0c1-2b3c-7d4e-8f90-{n:012}" for n in range(400)}
    vault = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
    there.db.notifications.committed({ChangeHint(name, vault) for name in names})
    await until_async(lambda: set(here.heard) == {(name, vault) for name in names})
    assert sent == 4
    assert notify.MAX_HINTS * 74 + 20 < 8_000  # what PostgreSQL takes
    for ear in (here, there):
        await ear.db.close()


@async_test
async def test_a_last_hint_is_sent_before_the_connection_is_closed(clock: Clock) -> None:
    """A node that stops right after a commit still tells the others."""
    where = postgres().fresh()
    here, there = Ear(where, clock), Ear(where, clock)
    here.db.notifications.watch(wanted=True)
    await until_async(lambda: here.invalidations == 1)
    await there.write(ends="ann")
    await until_async(lambda: here.heard)
    await there.write(ends="bob")
    await there.db.close()
    await until_async(lambda: ("bob", None) in here.heard)
    await here.db.close()


def test_a_file_is_polled_often() -> None:
    """Fifty times a second: an event of another process is not late."""
    assert change_watch.POLL_SECONDS <= 0.02
