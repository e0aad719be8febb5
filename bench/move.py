"""What moving an account to another database costs: an export from one server, an import into another."""

from __future__ import annotations

import time

import httpx2

from bench.direct_inserts import COLUMNS, owner, put_in, rows, run_sql
from bench.progress import show_progress
from bench.streams import Place, furnished, settle


async def move(place: Place, other: Place, count: int) -> dict[str, float]:
    """Documents of 1 KB a second, out of one database and into the other, as docs/export.md does it with curl."""
    [person], [newcomer] = await settle(place.where, 1), await settle(other.where, 1)
    with place.serving() as (_, port):
        await furnished(port, [person])
    first = time.time_ns() // 1_000_000 - count - 60_000
    await put_in(place.where, "documents", COLUMNS, rows(owner(person), person.vault, count, first, 1_024, None))
    times = f"created_at = {first}, updated_at = {first + count}"
    await run_sql(place.where, f"UPDATE vaults SET {times} WHERE uid = '{person.vault}'")
    await run_sql(place.where, f"UPDATE ledgers SET clock = {first + count} WHERE user_id = '{owner(person)}'")
    show_progress(f"{place.engine}: move an account of {count:,} documents")
    with place.serving() as (_, port), other.serving() as (_, target), httpx2.Client(timeout=600) as http:
        began = time.perf_counter()
        file = http.get(f"http://127.0.0.1:{port}/auth/export", headers={"authorization": f"Bearer {person.token}"})
        exported = time.perf_counter()
        assert file.status_code == 200, file.text[:300]
        headers = {"authorization": f"Bearer {newcomer.token}", "content-type": "application/x-ndjson"}
        answer = http.post(f"http://127.0.0.1:{target}/auth/import", content=file.content, headers=headers)
        imported = time.perf_counter()
        assert answer.status_code == 200, answer.text[:300]
        assert answer.json()["documents"] == count, answer.text
    return {"export_per_s": count / (exported - began), "import_per_s": count / (imported - exported)}
