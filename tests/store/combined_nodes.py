"""Two nodes that write in one account, and what their database must hold afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from strongroom import store, wire
from strongroom.actions import documents, vaults
from strongroom.errors import (
    Unauthorized,
)
from strongroom.model import RETAINED_ROW_BYTES, AccountLimits, Actor, Expected
from strongroom.rules import octets, row_bytes
from strongroom.store import open_database
from strongroom.store.postgres.engine import PostgresDatabase
from strongroom.store.session_check import SessionCheck
from strongroom.store.sqlite.engine import SqliteDatabase
from strongroom.store.statement import Sql
from tests.kit.clock import Clock
from tests.kit.servers.populated_database import rows_of

ANN = Actor("ann")
LIMITS = AccountLimits(versions=3)
OPEN = Sql("SELECT email FROM users WHERE id = :id")


def session(*, ended: bool) -> SessionCheck:
    """The check of a session that has ended, or has not."""

    def validate(found: Any) -> Any:
        if found is None:
            raise Unauthorized
        return found

    return SessionCheck(OPEN, validate, id="bob" if ended else ANN.user_id)


class Node:
    """A node, and how many of its writes were combined, or not."""

    def __init__(self, where: str, clock: Clock) -> None:
        self.db = open_database(where, clock)
        self.combined: Counter[bool] = Counter()
        if isinstance(self.db, PostgresDatabase):
            run = self.db._combine

            async def combine(owner: str, forms: list[Any]) -> Any:
                results = await run(owner, forms)
                self.combined[results is not None] += len(forms)
                return results

            self.db._combine = combine  # type: ignore[method-assign]
        elif isinstance(self.db, SqliteDatabase):
            execute = self.db._writer._run_combined

            def combine_now(owner: str, writes: list[Any], tx: Any) -> bool:
                done = execute(owner, writes, tx)
                self.combined[done] += len(writes)
                return done

            self.db._writer._run_combined = combine_now  # type: ignore[method-assign]

    async def create(self, uid: str | None, vault: str = "v", actor: Actor = ANN, **how: Any) -> Any:
        limits = how.pop("limits", LIMITS)
        check = how.pop("check", None)
        body = wire.requests.CreateDocument(**{"collection": "c", "data": "AAAA", "uid": uid, **how})
        return await self.db.write_for(actor.user_id, check, documents.create, actor, limits, vault, body)

    async def put(self, uid: str, version: int, vault: str = "v", actor: Actor = ANN, **how: Any) -> Any:
        limits = how.pop("limits", LIMITS)
        check = how.pop("check", None)
        body = wire.requests.PutDocument(**{"data": "BBBBBBBB", **how})
        expected = Expected((version,))
        return await self.db.write_for(actor.user_id, check, documents.put, actor, limits, vault, uid, body, expected)

    async def vault(self, uid: str) -> Any:
        body = wire.requests.CreateVault(name=f"name of {uid}", uid=uid)
        return await self.db.write_for(ANN.user_id, None, vaults.create, ANN, LIMITS, body)


@asynccontextmanager
async def nodes(where: str, clock: Clock, *uids: str) -> AsyncIterator[tuple[Node, Node]]:
    """Two nodes of an account with these vaults."""
    one, two = Node(where, clock), Node(where, clock)
    try:
        await one.db.write(store.accounts.insert, ANN.user_id, "ann@example.com", "hash")
        for uid in uids:
            await one.vault(uid)
        yield one, two
    finally:
        await one.db.close()
        await two.db.close()


async def require_booked(where: str) -> None:
    """What is booked is what is there, and every timestamp of the account is there once."""
    tables = await rows_of(where)
    sizes: Counter[str] = Counter()
    live: Counter[str] = Counter()
    kept: Counter[str] = Counter()
    last: dict[str, int] = {}
    rows: Counter[str] = Counter()
    for _, _, vault, collection, data, hmac, _, _, updated_at, deleted_at, _ in tables["documents"]:
        assert deleted_at is None
        sizes[vault] += octets(data, hmac)
        live[vault] += 1
        rows[vault] += row_bytes(collection)
        last[vault] = max(updated_at, last.get(vault, 0))
    for _, _, _, vault, _, data, hmac, *_ in tables["versions"]:
        kept[vault] += octets(data, hmac) + RETAINED_ROW_BYTES
    for _, uid, _, _, _, _, created_at, updated_at, count, size, retained, in_rows in tables["vaults"]:
        assert (count, size, retained, in_rows) == (live[uid], sizes[uid], kept[uid], rows[uid]), uid
        assert updated_at == last.get(uid, created_at), uid
    [(_, clock, count, size, _, in_rows)] = tables["ledgers"]
    assert (count, size, in_rows) == (sum(live.values()), sum(sizes.values()), sum(rows.values()))
    times = [row[8] for row in tables["documents"]]
    assert len(set(times)) == len(times)
    assert clock >= max(times, default=0)
