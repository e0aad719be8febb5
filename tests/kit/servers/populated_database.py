"""A database with rows in every table, for tests of copies, backups and imports; and readers of all its rows."""

from __future__ import annotations

import itertools
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import httpx2

from strongroom import create_server
from strongroom.store.maintenance.copy import LEFT_OUT
from strongroom.store.postgres.connection import connect
from tests.kit.people import one_time_codes, passkeys
from tests.kit.people.invitations import invite
from tests.kit.programs import processes
from tests.kit.servers.in_process import InProcessServer
from tests.kit.servers.internals import database_of
from tests.kit.servers.postgres import postgres
from tests.kit.servers.secret import SECRET

Rows = dict[str, list[tuple[Any, ...]]]
ODD = "any\x00text \N{GRINNING FACE} \N{LATIN SMALL LETTER E WITH ACUTE}"
LARGE = "QUJD" * 262_144
USERS = "INSERT INTO users (id, email, created_at, updated_at) VALUES"
_LONG_TEXT = 200
NOT_COPIED = {"schema_migrations", *LEFT_OUT}
PAIRS = list(itertools.product(("sqlite", "postgres"), repeat=2))  # from one engine, to the other or to the same


class Belongings(NamedTuple):
    """What somebody holds who has used the service before it moved."""

    email: str
    access: str
    refresh: str
    key: str
    reader: str
    plain: dict[str, Any]
    blob: dict[str, Any]
    documents: list[dict[str, Any]]


class Served:
    """A server on a database, for as long as the block lasts."""

    def __init__(self, where: str, clock: Callable[[], int], address: str = "127.0.0.1") -> None:
        location: dict[str, Any] = {"database_url" if "://" in where else "db_path": where}
        self._app = create_server(jwt_secret=SECRET, clock=clock, public_url=passkeys.ORIGIN, **location)
        transport = httpx2.ASGITransport(app=self._app, client=(address, 5))
        self._http = httpx2.AsyncClient(transport=transport, base_url="http://server")
        self._clock: Any = clock

    async def __aenter__(self) -> InProcessServer:
        return InProcessServer(self._http, self._clock, self._app)

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()
        await self._app._context.close()


class _Kept(NamedTuple):
    """A service as `live_in` left it, to be copied: the files of SQLite, or the name of a database of PostgreSQL."""

    belongings: Belongings
    files: dict[str, bytes]
    database: str


_kept: dict[tuple[bool, int], _Kept] = {}


async def live_in(where: str, clock: Callable[[], int]) -> Belongings:
    """Use a service in a new place until every table has rows; from the second time on, it is a copy of the first."""
    key = "://" in where, clock()
    if key not in _kept:
        belongings = await _use(where, clock)
        files = {} if "://" in where else {suffix: Path(where + suffix).read_bytes() for suffix in ("", "-lock")}
        _kept[key] = _Kept(belongings, files, postgres().copy_of(where) if "://" in where else "")
    elif "://" in where:
        postgres().replace(where, _kept[key].database)
    else:
        Path(where).parent.mkdir(0o700, parents=True, exist_ok=True)
        for suffix, content in _kept[key].files.items():
            Path(where + suffix).touch(0o600, exist_ok=False)
            Path(where + suffix).write_bytes(content)
    return _kept[key].belongings


async def _use(where: str, clock: Callable[[], int]) -> Belongings:
    """Be a user: odd texts, tombstones, a large document, keys with scopes, a blob."""
    async with Served(where, clock) as server:
        person = await server.person()
        other = await server.person()
        for version in (0, 1):
            keyring = {"keyring": "QUJD", "version": version, "kdf": {"odd": ODD}, "currentPassword": "correct horse"}
            assert (await person("PUT", "/auth/keyring", keyring)).status_code == 200
        await server.login(person.email)
        renewed = (await server.http.post("/auth/refresh", json={"refreshToken": person.refresh})).json()
        person.access, person.refresh = renewed["accessToken"], renewed["refreshToken"]
        assert (await server.login(person.email, "wrong horse")).status_code == 401
        plain = await person.vault(name="pläin \N{GRINNING FACE}")
        blob = await person.vault(data=ODD, salt="c2FsdA==")
        await person.document(plain, data=LARGE)
        await person.document(plain, hmac=ODD, collection="b\N{GRINNING FACE}")
        dead = await person.document(plain)
        gone = await person("DELETE", f"/vaults/{plain['uid']}/documents/{dead['uid']}", {"version": dead["version"]})
        assert gone.status_code == 200, gone.text
        odd = await person.document(plain, hmac=ODD)
        await person("PUT", f"/vaults/{plain['uid']}/documents/{odd['uid']}", {"data": "BBBB", "version": 1})
        await person("PUT", f"/vault/{blob['uid']}", {"data": f"new {ODD}", "salt": ""})
        for n in range(1, 9):
            await person.document(plain, data="A" * 4 * n)
        await other.document(await other.vault())
        passkey, _ = await passkeys.add_passkey(other, name="key \N{GRINNING FACE}")
        proof = {**passkeys.BY_PASSWORD, "secondFactor": await passkeys.second_factor(other, passkey)}
        begun = await other("POST", "/auth/second-factor/totp", proof)
        first = {"code": one_time_codes.code(begun.json()["secret"], clock())}
        assert (await other("POST", "/auth/second-factor/totp/confirm", first)).status_code == 201
        assert (await server.login(other.email)).json()["error"]["code"] == "second_factor_required"
        await passkeys.login_options(server.http)
        await invite(database_of(server.app), "later@example.com")
        moved = await server.person(invitation=await invite(database_of(server.app)))
        lines = {"content-type": "application/x-ndjson"}
        file = (await other("GET", "/auth/export")).content
        assert (await moved("POST", "/auth/import", content=file, headers=lines)).status_code == 200
        key = await person.key()
        reader = await person.key(permissions=["read"], vaultUids=[plain["uid"]], collections=["c"])
        listed = await person("GET", f"/vaults/{plain['uid']}/documents?since=0")
        return Belongings(
            email=person.email,
            access=person.access,
            refresh=person.refresh,
            key=key,
            reader=reader,
            plain=plain,
            blob=(await person("GET", f"/vault/{blob['uid']}")).json(),
            documents=listed.json()["documents"],
        )


def fill(path: Path, count: int, size: int) -> None:
    """One vault with many documents, straight into a file with a schema: what is tested is how they are copied."""
    connection = apsw.Connection(str(path))
    with connection:
        connection.execute(f"{USERS} ('u', 'e@x', 1, 1)")
        connection.execute(
            "INSERT INTO vaults (user_id, uid, name, version, created_at, updated_at) VALUES ('u', 'v', 'n', 1, 1, 1)"
        )
        connection.executemany(
            "INSERT INTO documents (user_id, uid, vault_uid, collection, data, version, created_at, updated_at)"
            " VALUES ('u', ?, 'v', 'c', ?, 1, ?, ?)",
            ((f"{n:06}", f"{n:06}".ljust(size, "A"), n, n) for n in range(count)),
        )
    connection.close()


async def rows_of(where: str) -> Rows:
    """Every row of every table, read without the help of what is tested."""
    found: Rows = {}
    if "://" in where:
        connection = await connect(where)
        for (name,) in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'"):
            found[name] = [tuple(row) for row in await connection.fetch(f"SELECT * FROM {name}")]
        await connection.close()
    else:
        sqlite = apsw.Connection(where)
        for (name,) in sqlite.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            found[str(name)] = sqlite.execute(f"SELECT * FROM {name}").fetchall()
        sqlite.close()
    return {name: sorted(rows, key=_order) for name, rows in found.items()}


def _order(row: tuple[Any, ...]) -> str:
    """What rows are sorted by, for a comparison: a long text by its hash, which is the same in all of a process."""
    return repr([hash(value) if isinstance(value, str) and len(value) > _LONG_TEXT else value for value in row])


async def copied_rows_of(where: str) -> Rows:
    """The rows that a copy is to have."""
    return {name: rows for name, rows in (await rows_of(where)).items() if name not in NOT_COPIED}


async def alter(where: str, statement: str) -> None:
    """Change a database behind everybody's back."""
    if "://" in where:
        connection = await connect(where)
        await connection.execute(statement)
        await connection.close()
    else:
        sqlite = apsw.Connection(where)
        sqlite.set_busy_timeout(5_000)
        sqlite.execute("PRAGMA foreign_keys = ON")
        sqlite.execute(statement)
        sqlite.close()


def drawn_by(command: list[str], home: Path, **more: Any) -> tuple[str, str]:
    """What a command prints where somebody looks on: its standard output, and what it draws on the terminal."""
    ours, theirs = pty.openpty()
    with processes.Popen(command, cwd=home, stdout=subprocess.PIPE, stderr=theirs, **more) as process:
        os.close(theirs)
        drawn = bytearray()
        while piece := _read(ours):
            drawn += piece
        assert process.stdout is not None
        printed = process.stdout.read().decode()
    os.close(ours)
    assert process.returncode == 0
    return printed, drawn.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # whoever drew on it has ended
        return b""


def damage(path: Path) -> None:
    """Write nonsense over an inner page of the documents."""
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    size: Any = connection.pragma("page_size")
    page: Any = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'documents'").fetchall()[0][0]
    connection.close()
    with path.open("rb+") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)


def without_lineage(rows: Rows) -> Rows:
    """These rows, less the one that every copy gives a value of its own."""
    return {name: found for name, found in rows.items() if name != "lineage"}
