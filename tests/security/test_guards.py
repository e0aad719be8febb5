"""Guards that nothing else would notice the lack of; each was found by `make mutation`."""

from __future__ import annotations

import msgspec
import pytest

from strongroom import store
from strongroom.actions import accounts, sessions
from strongroom.errors import Refusal, Unauthorized
from strongroom.identifiers import new_uid
from strongroom.model import Actor, ApiKey, Origin, Proof
from strongroom.rules import DAY, FAILURE_WINDOW, FAILURES_PER_ACCOUNT
from strongroom.server.response import Response
from strongroom.server.settings import BadSetting, resolve
from tests.kit.asynchronous import async_test
from tests.kit.servers.in_process import OpenServer


@async_test
async def test_failures_at_other_accounts_do_not_lengthen_the_wait_for_one(open_server: OpenServer) -> None:
    """Who goes on guessing at one account waits longer for that one, and not for another."""
    async with open_server() as server:
        own = await server.person()
        others = [await server.person() for _ in range(3)]
        for person in (*others, own):
            for _ in range(FAILURES_PER_ACCOUNT):
                assert (await server.login(person.email, "wrong")).status_code == 401
        assert (await server.login(own.email)).status_code == 429
        server.clock.pass_(FAILURE_WINDOW + 1)
        assert (await server.login(own.email)).status_code == 200


@async_test
async def test_a_right_password_clears_the_failures_at_its_own_account_alone(open_server: OpenServer) -> None:
    """Else whoever has an account could guess at another one for ever."""
    async with open_server() as server:
        own, other = await server.person(), await server.person()
        for _ in range(FAILURES_PER_ACCOUNT):
            assert (await server.login(other.email, "wrong")).status_code == 401
        assert (await server.login(own.email)).status_code == 200
        assert (await server.login(other.email)).status_code == 429


@async_test
async def test_a_right_password_clears_the_failures_of_its_own_address_alone(open_server: OpenServer) -> None:
    """Else every login of the owner would give whoever guesses elsewhere ten tries more."""
    async with open_server("192.0.2.1") as server, open_server("192.0.2.2") as elsewhere:
        owner = await server.person()
        for _ in range(FAILURES_PER_ACCOUNT):
            assert (await elsewhere.login(owner.email, "wrong")).status_code == 401
        assert (await server.login(owner.email)).status_code == 200
        assert (await elsewhere.login(owner.email)).status_code == 429


@async_test
async def test_an_account_that_is_shut_shuts_no_other(open_server: OpenServer) -> None:
    """Neither its sessions nor its keys."""
    async with open_server(jwt_access_expiry="9d") as server:
        own, other = await server.person(), await server.person()
        key = await own.key()
        await server.app._context.db.write(store.accounts.disable, other.id)
        server.clock.pass_(DAY)  # whatever is remembered for a while is asked again
        assert (await own("GET", "/vault")).status_code == 200
        assert (await own("GET", "/vault", bearer=key)).status_code == 200
        assert (await server.login(own.email)).status_code == 200
        assert (await other("GET", "/vault")).status_code == 403


@async_test
async def test_a_log_full_of_one_kind_keeps_the_lines_of_others(open_server: OpenServer) -> None:
    """Whoever guesses at an account cannot push out of its log what happened before."""
    async with open_server() as server:
        person = await server.person()
        db = server.app._context.db
        kept = 5

        async def note(kind: str) -> None:
            server.clock.pass_(1)
            origin = Origin("192.0.2.1", "")
            await db.write(store.events.add, person.id, new_uid(server.clock.now), kind, origin, kept)

        for kind in ("password_changed", *["login_failed"] * 20, *["session_ended"] * 4, "login_failed"):
            await note(kind)
        told = [one["type"] for one in (await person("GET", "/auth/events")).json()["events"]]
        wanted = ["login_failed", *["session_ended"] * 4, *["login_failed"] * 4, "password_changed"]
        assert told[: len(wanted)] == wanted


@async_test
async def test_who_has_no_account_any_more_is_nobody(open_server: OpenServer) -> None:
    """An account may be deleted between the check of a token and what it was for."""
    async with open_server() as server:
        for action in (accounts.me, accounts.for_reauthentication):
            with pytest.raises(Unauthorized):
                await server.app._context.db.read(action, Actor("gone"))


@async_test
async def test_a_key_goes_on_until_it_expires(open_server: OpenServer) -> None:
    """What it began is continued up to the last millisecond before; a key without an end goes on."""
    async with open_server() as server:
        person = await server.person()
        db, end = server.app._context.db, server.clock.now + 1_000
        await person.key(expiresAt=end)
        await person.key()
        keys = (await person("GET", "/auth/api-keys")).json()["keys"]
        brief, lasting = sorted((msgspec.convert(key, ApiKey) for key in keys), key=lambda key: key.expires_at is None)
        server.clock.now = end - 1
        for key in (brief, lasting):
            await db.read(sessions.require_open, Actor(person.id, key=key))
        server.clock.now = end
        await db.read(sessions.require_open, Actor(person.id, key=lasting))
        with pytest.raises(Unauthorized):
            await db.read(sessions.require_open, Actor(person.id, key=brief))


@async_test
async def test_what_is_not_text_in_a_query_is_refused(open_server: OpenServer) -> None:
    """In a name or in a value."""
    async with open_server() as server:
        person = await server.person()
        vault = await person.vault()
        for query in ("%ff=1", "since=%ff", "%ff=%ff"):
            answer = await person("GET", f"/vaults/{vault['uid']}/documents?{query}")
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "validation_error")


@pytest.mark.parametrize("value", ["a\nb: c", "a\r\nb: c", "a\rb\nc"])
def test_no_header_of_an_answer_breaks_its_line(value: str) -> None:
    """Whatever it is made of: a line feed alone, or a whole line more."""
    made = Response(headers=[(b"x", value.encode())])
    with pytest.raises(ValueError, match="contains a line break"):
        made.head()


@async_test
async def test_a_password_that_was_replaced_meanwhile_does_not_delete_the_account(open_server: OpenServer) -> None:
    """The hash that was checked must still be the stored one, as at a login."""
    async with open_server() as server:
        person = await server.person()
        db = server.app._context.db
        stored = (await db.read(accounts.for_reauthentication, Actor(person.id))).password_hash
        assert stored is not None
        proof = Proof(stored, None)
        passwords = {"currentPassword": "correct horse", "newPassword": "correct horses"}
        assert (await person("PUT", "/auth/password", passwords)).status_code == 200
        with pytest.raises(Refusal):
            await db.write(accounts.delete, Actor(person.id), proof, Origin("192.0.2.1", "tests"))
        assert (await server.login(person.email, "correct horses")).status_code == 200


_LONGEST = "unix:/" + "s" * 99


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"TLS_KEY_FILE": "key.pem"}, "TLS_CERT_FILE is not"),
        ({"HOST": _LONGEST + "s"}, "at most 100 bytes"),
        ({"HOST": "unix:"}, "at most 100 bytes"),
        ({"BACKUP_EVERY": "999ms"}, "at least a second"),
        ({"JWT_REFRESH_EXPIRY": "36601d"}, "a hundred years"),
    ],
)
def test_a_setting_beyond_its_bound_stops_the_start(given: dict[str, str], says: str) -> None:
    """With a sentence."""
    with pytest.raises(BadSetting, match=says):
        resolve({"JWT_SECRET": "x" * 32, **given})


@pytest.mark.parametrize(
    "given",
    [
        {"TLS_KEY_FILE": "key.pem", "TLS_CERT_FILE": "cert.pem"},
        {"HOST": _LONGEST},
        {"HOST": "a" * 200},
        {"BACKUP_EVERY": "1s"},
        {"JWT_REFRESH_EXPIRY": "36600d"},
    ],
)
def test_a_setting_at_its_bound_is_taken(given: dict[str, str]) -> None:
    """The bound is the last value that is good."""
    assert resolve({"JWT_SECRET": "x" * 32, **given}) is not None
