"""Everything that is stored has a bound in number and in bytes, which the settings page names and nobody passes."""

from __future__ import annotations

import re

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.project import ROOT
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import Rows, rows_of
from tests.server.bounds import BOUNDS, Greed

_TITLE = "\n## What is stored, and its bounds\n"
_TABLE = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|(.*)\|$", re.MULTILINE)


def stated() -> dict[str, str]:
    """The tables that the settings page has a row for, each with that row."""
    section = (ROOT / "docs/settings.md").read_text("utf-8").partition(_TITLE)[2].partition("\n## ")[0]
    return {name.strip("`"): row for names, row in _TABLE.findall(section) for name in names.split(", ")}


def unbounded(tables: Rows) -> set[str]:
    """Tables of a schema that have no bound here, or no row in the settings page."""
    return {name for name in tables if not name.startswith("sqlite_") and not (name in BOUNDS and name in stated())}


@async_test
async def test_every_table_of_the_schema_has_a_bound(open_server: OpenServer, where: str) -> None:
    """Here and in the settings page, and neither names one that is not there; one without a bound would be seen."""
    async with open_server() as server:
        await server.person()
        tables = await rows_of(where)
        assert unbounded(tables) == set()
        assert set(BOUNDS) == stated().keys() == {name for name in tables if not name.startswith("sqlite_")}
        assert unbounded({**tables, "diaries": []}) == {"diaries"}


@pytest.mark.parametrize("table", [name for name, bound in BOUNDS.items() if bound.fill is not None])
@async_test
async def test_nobody_passes_a_bound(open_server: OpenServer, where: str, table: str) -> None:
    """Somebody who sends as much as they can has no more rows of a table than this, and none with more bytes."""
    bound = BOUNDS[table]
    assert bound.fill is not None
    async with open_server(**bound.settings) as server:
        greed = Greed(server, await server.person(), where)
        await bound.fill(greed)
        rows = (await rows_of(where))[table]
        assert rows
        assert len(rows) <= bound.rows
        assert max(sum(len(str(value).encode()) for value in row) for row in rows) <= bound.bytes
