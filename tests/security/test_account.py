"""What the owner of an account can see and do: sessions, the log, leaving for good."""

from __future__ import annotations

import uuid
from typing import Any

import apsw
import asyncpg

from strongroom import identifiers
from strongroom.actions import accounts, admin, sessions
from strongroom.actions.retention import Sweep
from strongroom.model import EventType, Origin
from strongroom.rules import DAY, MAX_DEVICE_NAME, MINUTE, REUSE_GRACE, SESSIONS_PER_ACCOUNT
from tests.kit.asynchronous import async_test
from tests.kit.people.invitations import invite
from tests.kit.people.one_time_codes import code, wrong_code
from tests.kit.servers.database_files import raw_bytes
from tests.kit.servers.internals import context_of, database_of, finish_deletions
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage

# tests/security/test_second_factor.py has these.
OF_SECOND_FACTORS = {kind for kind in EventType if kind.startswith(("second_factor_", "recovery_code", "passkey_"))}


async def opened(stage: Stage, account: Account) -> Account:
    """A new session without the work of a password check."""
    room = context_of(stage.app)
    login = await room.db.read(accounts.for_login, account.email)
    pair = room.token_issuer.pair(account.id, identifiers.new_uid(room.clock()), room.clock())
    assert login is not None
    assert login.password_hash is not None
    await room.db.write(sessions.open_, account.id, login.password_hash, pair, Origin("10.9.9.9", "tests"))
    signed_in = {"accessToken": pair.access_token, "refreshToken": pair.refresh_token, "user": {"id": account.id}}
    return Account(account.name, account.email, account.agent, signed_in)


@async_test
async def test_of_a_hundred_and_one_sessions_the_oldest_unused_ends(nodes: Nodes) -> None:
    """The first was used a moment ago and stays; the second, unused since, goes."""
    async with nodes({"jwt_access_expiry": "1d"}) as (stage,):
        first = await stage.register("ann")
        others = []
        for _ in range(SESSIONS_PER_ACCOUNT - 1):
            stage.clock.pass_(MINUTE)
            others.append(await opened(stage, first))
        assert (await stage.send("GET", "/auth/me", first.access)).status == 200
        stage.clock.pass_(MINUTE)
        last = await stage.log_in(first)
        listed = (await stage.send("GET", "/auth/sessions", last.access)).json()["sessions"]
        assert len(listed) == SESSIONS_PER_ACCOUNT
        assert {item["id"] for item in listed} == {account.session for account in (first, *others[1:], last)}
        assert [item["id"] for item in listed if item["current"]] == [last.session]
        assert listed[0]["id"] == last.session
        assert (await stage.send("GET", "/auth/me", others[0].access)).status == 401
        refused = await stage.send("POST", "/auth/refresh", None, {"refreshToken": others[0].refresh})
        assert refused.code == "invalid_refresh_token"
        assert (await stage.send("GET", "/auth/me", others[1].access)).status == 200
        assert (await stage.send("GET", "/auth/me", first.access)).status == 200


@async_test
async def test_a_session_tells_where_it_was_used(nodes: Nodes) -> None:
    """Address and user agent of its last use, to the minute."""
    async with nodes({"jwt_access_expiry": "1d"}) as (stage,):
        body = {"email": "ann@example.com", "password": PASSWORD, "deviceName": "Ann's laptop"}
        made = await stage.send("POST", "/auth/email/register", None, body, address="192.0.2.1", agent="first")
        ann = Account("ann", body["email"], "first", made.json())
        start = stage.clock.now

        async def seen(address: str) -> dict[str, Any]:
            listed = await stage.send("GET", "/auth/sessions", ann.access, address=address, agent="second")
            (only,) = listed.json()["sessions"]
            return dict(only)

        expected = {"id": ann.session, "createdAt": start, "lastUsedAt": start, "current": True}
        expected["deviceName"] = "Ann's laptop"
        assert await seen("192.0.2.2") == {**expected, "address": "192.0.2.1", "userAgent": "first"}
        stage.clock.pass_(MINUTE)
        expected["lastUsedAt"] = stage.clock.now
        assert await seen("192.0.2.3") == {**expected, "address": "192.0.2.3", "userAgent": "second"}


@async_test
async def test_a_session_has_the_name_that_its_client_gave(nodes: Nodes) -> None:
    """At registration and at each login; a session without one has none, and what is no name is refused."""
    async with nodes() as (stage,):
        body = {"email": "ann@example.com", "password": PASSWORD}
        made = await stage.send("POST", "/auth/email/register", None, body)
        for name in ("Ann's \N{MOBILE PHONE}", "x" * MAX_DEVICE_NAME):
            assert (await stage.send("POST", "/auth/email/login", None, {**body, "deviceName": name})).status == 200
        for wrong in ("", "x" * (MAX_DEVICE_NAME + 1), "two\nlines", "\u0000", 7):
            for route in ("login", "register"):
                refused = await stage.send("POST", f"/auth/email/{route}", None, {**body, "deviceName": wrong})
                assert (refused.status, list(refused.json()["error"]["details"]["fields"])) == (400, ["deviceName"])
        listed = (await stage.send("GET", "/auth/sessions", made.json()["accessToken"])).json()["sessions"]
        assert {one["deviceName"] for one in listed} == {None, "Ann's \N{MOBILE PHONE}", "x" * MAX_DEVICE_NAME}


@async_test
async def test_the_log_tells_every_kind_of_event(nodes: Nodes) -> None:
    """With time, address and user agent, newest first, in pages, and only the owner's own."""
    async with nodes({"jwt_access_expiry": "100d", "jwt_refresh_expiry": "100d"}) as (stage,):
        told: list[tuple[str, int, str, str]] = []

        async def does(kind: EventType, method: str, path: str, bearer: str | None = None, body: Any = None) -> Any:
            stage.clock.pass_(MINUTE)
            address, agent = f"192.0.2.{len(told) + 1}", f"agent {len(told)}"
            kinds = {"content_type": "application/x-ndjson"} if isinstance(body, bytes) else {}
            answer = await stage.send(method, path, bearer, body, address=address, agent=agent, **kinds)
            told.insert(0, (kind.value, stage.clock.now, address, agent))
            return answer.body if path == "/auth/export" else answer.json()

        login = {"email": "ann@example.com", "password": PASSWORD}
        ann = await does(EventType.REGISTERED, "POST", "/auth/email/register", None, login)
        token = ann["accessToken"]
        again = await does(EventType.LOGIN, "POST", "/auth/email/login", None, login)
        await does(EventType.LOGIN_FAILED, "POST", "/auth/email/login", None, {**login, "password": "wrong horse"})
        key = await does(EventType.KEY_CREATED, "POST", "/auth/api-keys", token, {"name": "k"})
        await does(EventType.KEY_REVOKED, "DELETE", f"/auth/api-keys/{key['uid']}", token)
        for kind, act in ((EventType.DISABLED, admin.disable), (EventType.ENABLED, admin.enable)):
            stage.clock.pass_(MINUTE)
            assert await database_of(stage.app).write(act, ann["user"]["id"])
            told.insert(0, (kind.value, stage.clock.now, "operator", admin.OPERATOR.user_agent))
        file = await does(EventType.EXPORTED, "GET", "/auth/export", token)
        await does(EventType.IMPORTED, "POST", "/auth/import", token, file)
        old = {"refreshToken": again["refreshToken"]}
        newer = (await stage.send("POST", "/auth/refresh", None, old)).json()
        await stage.send("POST", "/auth/refresh", None, {"refreshToken": newer["refreshToken"]})
        stage.clock.pass_(REUSE_GRACE + 1)
        await does(EventType.REFRESH_REUSE, "POST", "/auth/refresh", None, old)
        passwords = {"currentPassword": PASSWORD, "newPassword": PASSWORD}
        await does(EventType.PASSWORD_CHANGED, "PUT", "/auth/password", token, passwords)
        keyring = {"keyring": "QQ==", "version": 0, "kdf": {"salt": "QQ=="}, "currentPassword": PASSWORD}
        await does(EventType.KDF_CHANGED, "PUT", "/auth/keyring", token, keyring)
        changed = {"keyring": "Qg==", "version": 1, "currentPassword": PASSWORD}
        await does(EventType.KEYRING_CHANGED, "PUT", "/auth/keyring", token, changed)
        other = await does(EventType.LOGIN, "POST", "/auth/email/login", None, login)
        await does(EventType.SESSION_ENDED, "POST", "/auth/logout", other["accessToken"])
        elsewhere = {EventType.REGISTERED_BY_INVITATION, *OF_SECOND_FACTORS}
        assert {kind for kind, *_ in told} == {kind.value for kind in EventType} - elsewhere

        async def log(query: str = "") -> Any:
            return (await stage.send("GET", f"/auth/events{query}", token)).json()

        found = await log()
        shown = [(line["type"], line["createdAt"], line["address"], line["userAgent"]) for line in found["events"]]
        assert (shown, found["hasMore"]) == (told, False)
        page = await log("?limit=4")
        rest = await log(f"?before={page['events'][-1]['id']}")
        assert (page["events"] + rest["events"], page["hasMore"], rest["hasMore"]) == (found["events"], True, False)
        stranger = await stage.register("bob")
        theirs = (await stage.send("GET", "/auth/events", stranger.access)).json()["events"]
        assert [line["type"] for line in theirs] == ["registered"]
        stage.clock.pass_(90 * DAY - 5 * MINUTE)
        await database_of(stage.app).write_long(sessions.purge_some, stage.app.settings.event_days, Sweep())
        assert 0 < len((await log())["events"]) < len(told)


async def enrol(stage: Stage, account: Account) -> tuple[str, dict[str, str]]:
    """One-time codes for an account: their secret, and a wrong code later, the next one that counts."""
    begun = await stage.send("POST", "/auth/second-factor/totp", account.access, {"currentPassword": PASSWORD})
    secret = str(begun.json()["secret"])
    first = {"code": code(secret, stage.clock.now)}
    assert (await stage.send("POST", "/auth/second-factor/totp/confirm", account.access, first)).status == 201
    stage.clock.pass_(MINUTE)
    body = {"password": PASSWORD, "secondFactor": {"code": wrong_code(secret, stage.clock.now)}}
    assert (await stage.send("DELETE", "/auth/me", account.access, body)).code == "invalid_second_factor"
    return secret, {"code": code(secret, stage.clock.now)}


async def contents(where: str) -> dict[str, str]:
    """Every table, with all its rows as text."""
    if "://" not in where:
        connection = apsw.Connection(where, flags=apsw.SQLITE_OPEN_READONLY)
        names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: str(list(connection.execute(f"SELECT * FROM {name}"))) for name in names}
        connection.close()
        return found
    wire = await asyncpg.connect(where)
    try:
        tables = await wire.fetch("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return {row[0]: str(await wire.fetch(f"SELECT * FROM {row[0]}")) for row in tables}
    finally:
        await wire.close()


@async_test
async def test_a_deleted_account_leaves_no_row_and_no_byte(nodes: Nodes, where: str) -> None:
    """No row in any table; in the files of SQLite not one of its canaries, small or large, current or replaced."""
    async with nodes() as (stage,):
        database = database_of(stage.app)
        ann, bob = await stage.register("ann", invitation=await invite(database)), await stage.register("bob")
        marks = {
            name: f"canary{name}{uuid.uuid4().hex}"
            for name in ("small", "large", "old", "new", "dead", "blob", "ring", "next")
        }
        body = {"name": f"canaryname{uuid.uuid4().hex}", "data": marks["blob"] * 500, "salt": "AAAA"}
        vault = (await stage.send("POST", "/vault", ann.access, body)).json()["uid"]
        await stage.send("PUT", f"/vault/{vault}", ann.access, {"data": "new", "salt": ""})
        await stage.document(ann, vault, "c", marks["small"])
        await stage.document(ann, vault, "c", marks["large"] * 3_000)
        for mark, method, change in (
            ("old", "PUT", {"data": marks["new"] * 100, "version": 1}),
            ("dead", "DELETE", None),
        ):
            uid = await stage.document(ann, vault, "c", marks[mark] * 100)
            assert (await stage.send(method, f"/vaults/{vault}/documents/{uid}", ann.access, change)).status == 200
        for version, mark in enumerate(("ring", "next")):
            keyring = {"keyring": marks[mark] * 100, "version": version, "currentPassword": PASSWORD}
            assert (await stage.send("PUT", "/auth/keyring", ann.access, keyring)).status == 200
        await stage.key(ann)
        await stage.log_in(ann)
        await stage.send("POST", "/auth/email/login", None, {"email": ann.email, "password": "wrong horse"})
        secret, factor = await enrol(stage, ann)
        await stage.send("POST", "/auth/email/login", None, {"email": ann.email, "password": PASSWORD})
        kept = f"canarykept{uuid.uuid4().hex}"
        await stage.document(bob, await stage.vault(bob), "c", kept)

        before = await contents(where)
        ours = {
            "users",
            "sessions",
            "refresh_tokens",
            "api_keys",
            "vaults",
            "documents",
            "events",
            "ledgers",
            "keyrings",
            "keyring_versions",
            "vault_changes",
            "versions",
            "blob_versions",
            "invitations",
            "one_time_codes",
            "recovery_codes",
            "login_tickets",
        }
        assert {name for name, rows in before.items() if ann.id in rows} == ours
        assert "://" in where or marks["dead"].encode() in raw_bytes(where)
        answer = await stage.send("DELETE", "/auth/me", ann.access, {"password": PASSWORD, "secondFactor": factor})
        assert (answer.status, answer.json()) == (200, {"success": True})
        await finish_deletions(stage.app)
        after = await contents(where)
        traces = [ann.id, ann.email, ann.agent, body["name"], secret, *marks.values()]
        assert [(name, trace) for name, rows in after.items() for trace in traces if trace in rows] == []
        assert kept in after["documents"]
        if "://" not in where:
            raw = raw_bytes(where)
            assert kept.encode() in raw
            assert [trace for trace in traces if trace.encode() in raw] == []


@async_test
async def test_leaving_needs_the_password(nodes: Nodes) -> None:
    """A stolen token is not enough, and a wrong password changes nothing."""
    async with nodes() as (stage,):
        ann = await stage.register("ann")
        for body, status, code in (
            ({"password": "wrong horse"}, 401, "invalid_credentials"),
            ({}, 400, "validation_error"),
            ({"password": None}, 400, "validation_error"),
            (None, 400, "validation_error"),
        ):
            answer = await stage.send("DELETE", "/auth/me", ann.access, body)
            assert (answer.status, answer.code) == (status, code)
        assert (await stage.send("GET", "/auth/me", ann.access)).status == 200
