"""Salvage keeps accounts apart that have vaults and documents of the same uids."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import apsw
import pytest

from strongroom.store.maintenance.salvage import salvage
from tests.kit.asynchronous import async_test
from tests.kit.clock import START
from tests.kit.faults.damaged_files import flip
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import rows_of
from tests.kit.servers.twin_accounts import KEEPING, VAULTS, furnish, good

COUNTED = (
    "documents",
    "versions",
    "vaults",
    "blob_versions",
    "ledgers",
    "keyrings",
    "keyring_versions",
    "api_keys",
    "vault_changes",
    "invitations",
)


async def _furnished(open_server: OpenServer) -> tuple[str, str]:
    """Two accounts with the same uids; the vault of the first has another name. Their ids."""
    async with open_server(**KEEPING) as server:
        ann = await furnish(server, "ann@example.com")
        await good(ann, "PUT", f"/vault/{VAULTS[0]}", {"name": "ann's", "version": 2})
        await good(ann, "POST", f"/vaults/{VAULTS[0]}/documents", {"collection": "c", "data": "AAAA"})
        server.clock.pass_(1_000)
        bob = await furnish(server, "bob@example.com")
    return ann.id, bob.id


async def _salvaged(where: str, target: Path) -> dict[str, list[tuple[Any, ...]]]:
    salvage(Path(where), target, None, str(uuid.uuid4()), START)
    return await rows_of(str(target))


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_what_is_counted_anew_is_counted_for_each(open_server: OpenServer, where: str, tmp_path: Path) -> None:
    """A whole file comes out as it was: documents, bytes and what trash and history take."""
    await _furnished(open_server)
    before = await rows_of(where)
    after = await _salvaged(where, tmp_path / "new.db")
    assert {name: after[name] for name in COUNTED} == {name: before[name] for name in COUNTED}


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_a_lost_vault_gets_its_own_name_back(open_server: OpenServer, where: str, tmp_path: Path) -> None:
    """From the account's own history of vaults, where the table and its indexes are lost."""
    ann, bob = await _furnished(open_server)
    connection = apsw.Connection(where)
    pages = connection.execute("SELECT pageno FROM dbstat WHERE name LIKE '%vaults%'").fetchall()
    connection.close()
    for (page,) in pages:
        flip(Path(where), (int(str(page)) - 1) * 4096, 4096)
    after = await _salvaged(where, tmp_path / "new.db")
    connection = apsw.Connection(str(tmp_path / "new.db"))
    names = connection.execute("SELECT user_id, name FROM vaults WHERE uid = ?", (VAULTS[0],)).fetchall()
    connection.close()
    assert after["vaults"]
    assert dict(names) == {ann: "ann's", bob: "vault 0"}  # type: ignore[arg-type]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_a_retained_keyring_brings_its_account_back(open_server: OpenServer, where: str, tmp_path: Path) -> None:
    """Where the account's row and its keyring are lost, and nothing else refers to it."""
    async with open_server() as server:
        ann = await server.person()
        for version in (0, 1):
            body = {"keyring": f"S0VZ{version}", "version": version, "currentPassword": "correct horse"}
            await good(ann, "PUT", "/auth/keyring", body)
    connection = apsw.Connection(where)
    lost = "SELECT pageno FROM dbstat WHERE name IN ('users', 'keyrings') OR name LIKE 'sqlite_autoindex_users%'"
    pages = connection.execute(lost).fetchall()
    connection.close()
    for (page,) in pages:
        flip(Path(where), (int(str(page)) - 1) * 4096, 4096)
    after = await _salvaged(where, tmp_path / "new.db")
    assert [row[0] for row in after["users"]] == [ann.id]
    assert [(row[0], row[1]) for row in after["keyring_versions"]] == [(ann.id, 1)]
