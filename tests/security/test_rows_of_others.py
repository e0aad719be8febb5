"""What is done to one thing changes no row of another, though the other has the same uids, names and versions."""

from __future__ import annotations

from typing import Any

from strongroom import store
from strongroom.rules import DAY
from tests.kit.asynchronous import async_test
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.populated_database import alter, rows_of
from tests.kit.servers.twin_accounts import (
    CHANGED,
    DOCUMENTS,
    KEEPING,
    VAULTS,
    at,
    document,
    furnish,
    good,
    vault,
)

READ = [
    "/auth/me",
    "/auth/events",
    "/auth/sessions",
    "/auth/api-keys",
    "/auth/keyring",
    "/auth/keyring/versions",
    "/auth/keyring/versions/1",
    "/auth/export",
    "/vault",
    "/vault/by-name/vault 0",
    *(f"/vault/{uid}{what}" for uid in VAULTS[:2] for what in ("", "/versions", "/versions/1", "/versions/2")),
    *(f"/vaults/{uid}/documents?since={since}" for uid in VAULTS[:2] for since in (0, 1)),
    f"/vaults/{VAULTS[0]}/documents",
    f"/vaults/{VAULTS[0]}/documents?collection=c",
    f"/vaults/{VAULTS[0]}/documents?deleted=only",
    *(f"{at(uid)}{what}" for uid in DOCUMENTS for what in ("", "/versions", "/versions/1", "/versions/2")),
]


@async_test
async def test_what_an_account_reads_is_its_own(open_server: OpenServer) -> None:
    """Another account that has the same uids and more versions of everything changes no answer."""
    async with open_server(**KEEPING) as server:
        ann = await furnish(server, "ann@example.com")

        async def read() -> dict[str, Any]:
            answers = {path: await ann("GET", path) for path in READ}
            told: dict[str, Any] = {path: one.is_success and one.text for path, one in answers.items()}
            told["/auth/export"] = told["/auth/export"].splitlines()[1:-1]  # first and last have an id of their own
            events = answers["/auth/events"].json()["events"]  # of which each export is one
            told["/auth/events"] = [one for one in events if "export" not in one["type"]]
            told["what an operator sees"] = await server.app._context.db.read(store.accounts.show, ann.id)
            return told

        before = await read()
        assert sum(bool(text) for text in before.values()) > 25
        server.clock.pass_(1_000)
        bob = await furnish(server, "bob@example.com")
        await document(bob, DOCUMENTS[3])
        await document(bob, DOCUMENTS[4], deleted=True)
        await good(bob, "PUT", at(CHANGED), {"data": "FFFF", "version": 3})
        await good(bob, "PUT", f"/vault/{VAULTS[0]}", {"data": "QkI=", "salt": "", "version": 2})
        assert await read() == before


async def rows_but(where: str, *mine: str) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that have nothing of this in them."""
    found = await rows_of(where)
    for table in ("failures", "signups"):  # these belong to an address
        found.pop(table)
    return {name: [row for row in rows if not set(mine) & set(row)] for name, rows in found.items()}


@async_test
async def test_no_row_of_another_account(open_server: OpenServer, where: str) -> None:
    """Everything that an account can do, and what is thrown away of it when its time has come."""
    async with open_server(**KEEPING) as server:
        ann = await furnish(server, "ann@example.com")
        server.clock.pass_(3 * DAY)
        await furnish(server, "bob@example.com")
        others = await rows_but(where, ann.id)
        owned = (
            "versions",
            "blob_versions",
            "vault_changes",
            "sessions",
            "keyrings",
            "keyring_versions",
            "invitations",
        )
        assert all(others[name] for name in owned)

        async def unchanged(what: str) -> None:
            after = await rows_but(where, ann.id)
            assert after == others, what

        await server.purge_expired()
        await unchanged("nothing is due")
        server.clock.pass_(2 * DAY)
        await server.purge_expired()
        await unchanged("history and trash")
        mine = await rows_of(where)
        assert [row for row in mine["versions"] if ann.id in row] == []
        assert [row for row in mine["blob_versions"] if ann.id in row] == []
        await good(
            ann, "POST", f"/vaults/{VAULTS[0]}/documents", {"uid": DOCUMENTS[3], "collection": "c", "data": "AA"}
        )
        await unchanged("a document is made")
        for version in (3, 4, 5, 6):
            await good(ann, "PUT", at(CHANGED), {"data": "DDDD", "hmac": f"{version}", "version": version})
        await unchanged("a document is changed, and its oldest versions go")
        await good(ann, "DELETE", at(CHANGED))
        await unchanged("a document is deleted")
        await good(ann, "PUT", at(CHANGED), {"data": "EEEE", "version": 8})
        await unchanged("a document is revived")
        operations = [
            {"op": "put", "uid": CHANGED, "data": "FFFF", "version": 9},
            {"op": "delete", "uid": DOCUMENTS[3], "version": 1},
            {"op": "create", "uid": DOCUMENTS[4], "collection": "c", "data": "AAAA"},
        ]
        await good(ann, "POST", f"/vaults/{VAULTS[0]}/batch", {"operations": operations})
        await unchanged("a batch")
        for version in (2, 3, 4, 5):
            body = {"data": "QkxPQg==", "salt": "c2FsdA==", "version": version}
            await good(ann, "PUT", f"/vault/{VAULTS[1]}", body)
        await unchanged("a blob is changed, and its oldest versions go")
        await good(ann, "PUT", f"/vault/{VAULTS[1]}", {"name": "another", "version": 6})
        await unchanged("a vault is renamed")
        await vault(ann, 2)
        await unchanged("a vault is made")
        await good(ann, "DELETE", f"/vault/{VAULTS[1]}")
        await unchanged("a vault is deleted")
        for version in range(2, 15):
            body = {"keyring": "S0VZUklORw==", "version": version, "currentPassword": "correct horse"}
            await good(ann, "PUT", "/auth/keyring", body)
        await unchanged("a keyring is replaced")
        [key] = (await good(ann, "GET", "/auth/api-keys"))["keys"]
        await good(ann, "DELETE", f"/auth/api-keys/{key['uid']}")
        await unchanged("a key is revoked")
        refreshed = await good(ann, "POST", "/auth/refresh", {"refreshToken": ann.refresh})
        await good(ann, "POST", "/auth/refresh", {"refreshToken": refreshed["refreshToken"]})
        await unchanged("a token is refreshed, and the one before it ends")
        sessions = (await good(ann, "GET", "/auth/sessions"))["sessions"]
        await good(ann, "DELETE", f"/auth/sessions/{next(one['id'] for one in sessions if not one['current'])}")
        await unchanged("a session is ended")
        passwords = {"currentPassword": "correct horse", "newPassword": "correct horses"}
        await good(ann, "PUT", "/auth/password", {**passwords, "keyring": "S0VZ", "keyringVersion": 15})
        await unchanged("a password is changed")
        await good(ann, "DELETE", "/auth/me", {"password": "correct horses"})
        await unchanged("an account is deleted")
        await server.finish_deletions()
        assert not [row for rows in (await rows_of(where)).values() for row in rows if ann.id in row]


@async_test
async def test_no_row_of_another_document_or_vault(open_server: OpenServer, where: str) -> None:
    """Two of one account, with the same versions; one was made days before the other."""
    async with open_server(**KEEPING) as server:
        ann = await server.person()
        await vault(ann, 0)
        await document(ann, DOCUMENTS[0])
        await document(ann, DOCUMENTS[1], deleted=True)
        server.clock.pass_(3 * DAY)
        await vault(ann, 1)
        await document(ann, DOCUMENTS[2], vault=VAULTS[1])
        await document(ann, DOCUMENTS[3], vault=VAULTS[1], deleted=True)

        async def others() -> dict[str, list[tuple[Any, ...]]]:
            found = await rows_but(where, DOCUMENTS[0], DOCUMENTS[1], VAULTS[0])
            return {name: found[name] for name in ("documents", "versions", "vaults", "blob_versions")}

        before = await others()
        assert {name: len(rows) for name, rows in before.items()} == {
            "documents": 2,
            "versions": 4,
            "vaults": 1,
            "blob_versions": 1,
        }
        server.clock.pass_(2 * DAY)
        await server.purge_expired()
        assert await others() == before, "history and trash"
        for version in (3, 4, 5, 6):
            await good(ann, "PUT", at(DOCUMENTS[0]), {"data": "DDDD", "version": version})
        assert await others() == before, "a document is changed, and its oldest versions go"
        for version in (2, 3, 4, 5):
            await good(ann, "PUT", f"/vault/{VAULTS[0]}", {"data": "QUFB", "salt": "", "version": version})
        assert await others() == before, "a blob is changed, and its oldest versions go"
        await good(ann, "DELETE", at(DOCUMENTS[0]))
        assert await others() == before, "a document is deleted"
        await good(ann, "DELETE", f"/vault/{VAULTS[0]}")
        assert await others() == before, "a vault is deleted"


@async_test
async def test_a_row_of_another_that_is_changed_is_seen(open_server: OpenServer, where: str) -> None:
    """The comparison above can fail."""
    async with open_server(**KEEPING) as server:
        ann = await server.person()
        await furnish(server, "bob@example.com")
        before = await rows_but(where, ann.id)
        await alter(where, "DELETE FROM versions WHERE version = 2")
        assert await rows_but(where, ann.id) != before
