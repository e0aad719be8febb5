"""A bare ASGI application on uvicorn with strongroom's statements, schema and SQLite settings, and nothing else.

It has the memory of verified tokens and group commit in its simplest form. It has no session look-up, no request ids,
no log, no metrics, no routing table, no undoing of one write among many, no streaming, and it checks no more of a body
than its JSON types.
"""
# ruff: noqa: SLF001 - the very statements that strongroom runs

from __future__ import annotations

import asyncio
import os
import queue
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import apsw
import msgspec
import uvicorn
import uvloop

from strongroom import credentials
from strongroom.credentials import Claims, Lifetime, TokenIssuer, TokenSigner
from strongroom.identifiers import new_uid
from strongroom.model import Document
from strongroom.store.queries import accounts, documents, ledgers, sessions, vaults
from strongroom.store.sqlite.database_file import connect
from strongroom.store.sqlite.migrate import migrate
from strongroom.store.statement import Sql

encode = msgspec.json.Encoder().encode
GET, INSERT, REPLACE = documents._GET, documents._ADD, documents._REPLACE
LIST = documents._list(0, documents.Show.LIVE)
SINCE = documents._list(0, documents.Show.ALL)
CLOCK, ADVANCE, BEGIN, ADD_USAGE = vaults._CLOCK, ledgers._ADVANCE, ledgers._BEGIN, vaults._ADD_USAGE
ALL = 2**63 - 1
JSON = (b"content-type", b"application/json")


class Create(msgspec.Struct):
    collection: str
    data: str
    hmac: str | None = None


class Put(msgspec.Struct):
    data: str
    version: int
    hmac: str | None = None


class Account(msgspec.Struct):
    email: str
    password: str


class NewVault(msgspec.Struct):
    name: str


read_create = msgspec.json.Decoder(Create).decode
read_put = msgspec.json.Decoder(Put).decode
read_account = msgspec.json.Decoder(Account).decode
read_vault = msgspec.json.Decoder(NewVault).decode


def run(connection: apsw.Connection, sql: Sql, parameters: dict[str, Any]) -> Any:
    return connection.execute(sql.numbered, sql.values(parameters))


async def whole(receive: Any) -> bytes:
    message = await receive()
    if not message["more_body"]:
        return message["body"]  # type: ignore[no-any-return]
    parts = [message["body"]]
    while message["more_body"]:
        message = await receive()
        parts.append(message["body"])
    return b"".join(parts)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Writer:
    """Group commit: what arrives while a commit is under way shares the next one."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self._connection = connect(path)
        migrate(self._connection, now_ms())
        self._waiting: list[tuple[asyncio.Future[Any], Callable[..., Any], tuple[Any, ...]]] = []
        self._busy = False
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        threading.Thread(target=self._commit, daemon=True).start()

    def run(self, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        self._waiting.append((future, work, args))
        if not self._busy:
            self._busy = True
            loop.call_soon(self._round, loop)
        return future

    def _round(self, loop: asyncio.AbstractEventLoop) -> None:
        batch, self._waiting = self._waiting, []
        if not batch:
            self._busy = False
            return
        self._connection.execute("BEGIN IMMEDIATE")
        done = []
        for future, work, args in batch:
            try:
                done.append((future, work(self._connection, *args)))
            except apsw.Error as error:
                future.set_exception(error)
        self._inbox.put((loop, done))

    def _commit(self) -> None:
        while True:
            loop, done = self._inbox.get()
            self._connection.execute("COMMIT")
            loop.call_soon_threadsafe(self._settle, loop, done)

    def _settle(self, loop: asyncio.AbstractEventLoop, done: list[tuple[asyncio.Future[Any], Any]]) -> None:
        for future, result in done:
            if not future.done():
                future.set_result(result)
        self._round(loop)


def advance(connection: apsw.Connection, owner: str, now: int, documents: int, size: int) -> Any:
    parameters = {"user_id": owner, "now": now, "last": now, "timestamps": 1, "documents": documents, "bytes": size}
    found: Any = run(connection, ADVANCE, parameters).fetchall() or run(connection, BEGIN, parameters).fetchall()
    return found[0][0]


def add_usage(connection: apsw.Connection, owner: str, vault: str, moment: int, documents: int, size: int) -> None:
    parameters = {"user_id": owner, "uid": vault, "timestamp": moment, "documents": documents, "bytes": size, "kept": 0}
    run(connection, ADD_USAGE, parameters)


def insert(connection: apsw.Connection, owner: str, vault: str, body: Create) -> Document | None:
    now, size = now_ms(), len(body.data)
    moment = advance(connection, owner, now, 1, size)
    uid = new_uid(now)
    parameters = {
        "user_id": owner,
        "uid": uid,
        "vault_uid": vault,
        "collection": body.collection,
        "data": body.data,
        "hmac": body.hmac,
        "version": 1,
        "timestamp": moment,
    }
    try:
        run(connection, INSERT, parameters)
    except apsw.ConstraintError:  # no such vault of this owner
        return None
    add_usage(connection, owner, vault, moment, 1, size)
    return Document(uid, vault, body.collection, body.data, body.hmac, 1, moment, moment, None)


def replace(connection: apsw.Connection, owner: str, vault: str, uid: str, body: Put) -> Document | int:
    """The new document, or the status that says why there is none."""
    moment = advance(connection, owner, now_ms(), 0, 0)
    rows: Any = run(connection, GET, {"user_id": owner, "uid": uid, "vault_uid": vault}).fetchall()
    if not rows:
        return 404
    parameters = {
        "user_id": owner,
        "uid": uid,
        "vault_uid": vault,
        "data": body.data,
        "hmac": body.hmac,
        "version": body.version,
        "new_version": body.version + 1,
        "timestamp": moment,
    }
    run(connection, REPLACE, parameters)
    if not connection.changes():
        return 409
    add_usage(connection, owner, vault, moment, 0, 0)
    old = Document(*rows[0])
    version = old.version + 1
    return Document(uid, vault, old.collection, body.data, body.hmac, version, old.created_at, moment, None)


def open_session(connection: apsw.Connection, user_id: str, phc: str, pair: credentials.TokenPair) -> None:
    now = now_ms()
    session = {"user_id": user_id, "id": pair.session_id, "now": now, "expires_at": pair.session_expires_at}
    origin = {"address": "127.0.0.1", "user_agent": "bench", "device_name": None}
    run(connection, sessions._OPEN, {**session, **origin, "password_hash": phc}).fetchall()
    token = {"user_id": user_id, "jti": pair.jti, "session_id": pair.session_id, "generation": 0, "now": now}
    run(connection, sessions._ADD_TOKEN, {**token, "expires_at": pair.refresh_expires_at})


def add_user(connection: apsw.Connection, user_id: str, email: str, phc: str, pair: credentials.TokenPair) -> None:
    now = now_ms()
    parameters = {"id": user_id, "email": email, "password_hash": phc, "now": now}
    run(connection, accounts._INSERT, parameters).fetchall()
    open_session(connection, user_id, phc, pair)


def add_vault(connection: apsw.Connection, owner: str, uid: str, name: str) -> None:
    parameters = {"user_id": owner, "uid": uid, "name": name, "timestamp": now_ms(), "bytes": 0}
    run(connection, vaults._INSERT, {**parameters, "data": None, "salt": None}).fetchall()


class App:
    def __init__(self, path: Path, secret: bytes) -> None:
        self._writer = Writer(path)
        self._reader = connect(path)
        self._good: dict[bytes, Claims] = {}
        self._tokens = TokenSigner(secret, "floor")
        lifetime = Lifetime(6 * 3_600_000)
        self._mint = TokenIssuer(self._tokens, "floor", lifetime, lifetime)
        self._hashing = credentials.hashing_pool()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        status, body = await self._answer(scope, receive)
        headers = [JSON, (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Any, receive: Any) -> tuple[int, bytes]:
        path = scope["path"].split("/")
        method = scope["method"]
        if path[1] == "auth":
            return await self._account(path[3], read_account(await whole(receive)))
        bearer = b""
        for name, value in scope["headers"]:
            if name == b"authorization":
                bearer = value
                break
        claims = self._good.get(bearer)
        if claims is None:
            claims = self._tokens.claims(bearer[7:].decode(), "access", now_ms())
            if claims is None:
                return 401, b"{}"
            self._good[bearer] = claims
        if claims.exp < time.time():
            return 401, b"{}"
        if path[1] == "vault":
            uid = new_uid(now_ms())
            await self._writer.run(add_vault, claims.sub, uid, read_vault(await whole(receive)).name)
            return 201, encode({"uid": uid})
        if len(path) == 5:
            if method == "GET":
                rows = run(self._reader, GET, {"user_id": claims.sub, "uid": path[4], "vault_uid": path[2]}).fetchall()
                return (200, encode(Document(*rows[0]))) if rows else (404, b"{}")
            new = await self._writer.run(replace, claims.sub, path[2], path[4], read_put(await whole(receive)))
            return (new, b"{}") if isinstance(new, int) else (200, encode(new))
        if method == "POST":
            new = await self._writer.run(insert, claims.sub, path[2], read_create(await whole(receive)))
            return (201, encode(new)) if new else (404, b"{}")
        return self._list(claims.sub, path[2], scope["query_string"])

    def _list(self, owner: str, vault: str, query: bytes) -> tuple[int, bytes]:
        if not run(self._reader, CLOCK, {"user_id": owner, "uid": vault}).fetchall():
            return 404, b"{}"
        after, _, limit = query[6:].partition(b"&limit=")
        since = int(after) if query.startswith(b"since=") else None
        parameters = {"user_id": owner, "vault_uid": vault, "since": since or 0, "limit": int(limit or ALL)}
        rows = run(self._reader, LIST if since is None else SINCE, parameters).fetchall()
        last = rows[-1][7] if rows else since or 0
        return 200, encode({"documents": [Document(*row) for row in rows], "hasMore": False, "next": last})

    async def _account(self, what: str, given: Account) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        if what == "register":
            user_id = new_uid(now_ms())
            phc = await loop.run_in_executor(self._hashing, credentials.hash_password, given.password)
            pair = self._mint.pair(user_id, new_uid(now_ms()), now_ms())
            await self._writer.run(add_user, user_id, given.email, phc, pair)
            return 201, _signed_in(user_id, given.email, pair)
        rows = run(self._reader, accounts._BY_EMAIL, {"email": given.email}).fetchall()
        if not rows:
            return 401, b"{}"
        user_id, _, phc = rows[0]
        if not await loop.run_in_executor(self._hashing, credentials.password_matches, given.password, phc):
            return 401, b"{}"
        pair = self._mint.pair(user_id, new_uid(now_ms()), now_ms())
        await self._writer.run(open_session, user_id, phc, pair)
        return 200, _signed_in(user_id, given.email, pair)


def _signed_in(user_id: str, email: str, pair: credentials.TokenPair) -> bytes:
    user = {"id": user_id, "email": email}
    return encode({"accessToken": pair.access_token, "refreshToken": pair.refresh_token, "user": user})


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"floor listens on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    app = App(Path(os.environ["DB_PATH"]), os.environ["JWT_SECRET"].encode())
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,  # a request may wait unread for longer than the five seconds of the default
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(uvicorn.Server(config).serve(sockets=[listener]))


if __name__ == "__main__":
    main()
