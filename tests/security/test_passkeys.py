"""Passkeys: a challenge counts once, for its purpose and its account; the rest of a ceremony is verified in every part.

What an authenticator may get wrong is in tests/test_webauthn.py; here it is what the server stores and compares.
"""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import httpx2
import pytest

from strongroom import store
from strongroom.actions import passkeys, sessions
from strongroom.actions.retention import Sweep
from strongroom.rules import (
    CHALLENGE_LIFETIME,
    CHALLENGES_PER_ACCOUNT,
    FAILURES_PER_ADDRESS,
    PASSKEYS_PER_ACCOUNT,
)
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import PASSWORD as CONTRACT_PASSWORD
from tests.kit.people.api_user import ApiUser as ContractPerson
from tests.kit.people.passkeys import (
    BY_PASSWORD,
    ORIGIN,
    PASSWORD,
    RP_ID,
    add_passkey,
    creation_options,
    log_in,
    login_options,
    newest_events,
    proof_by,
    register,
    second_factor,
)
from tests.kit.people.person import Person
from tests.kit.people.soft_authenticator import EDDSA, ES256, RS256, USER_PRESENT, SoftPasskey, b64, unb64
from tests.kit.servers.in_process import OpenServer
from tests.kit.servers.internals import database_of
from tests.kit.servers.populated_database import rows_of
from tests.kit.servers.process import Server

SETTINGS = {"public_url": ORIGIN}


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = good(await person("GET", "/auth/passkeys"))["passkeys"]
    return found


@pytest.mark.parametrize("algorithm", [ES256, EDDSA, RS256])
@async_test
async def test_registered_and_logged_in_with(open_server: OpenServer, algorithm: int) -> None:
    """A passkey opens a session of the account that it was made for, by itself; the list shows when it was used."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        server.clock.pass_(1_000)
        passkey, added = await add_passkey(person, algorithm=algorithm, name="my phone")
        assert await newest_events(person) == {"passkey_added", "second_factor_enabled"}
        [shown] = await listed(person)
        assert shown == added["passkey"]
        assert {name: shown[name] for name in ("name", "prf", "credentialId", "lastUsedAt", "createdAt")} == {
            "name": "my phone",
            "prf": True,
            "credentialId": passkey.credential_id,
            "lastUsedAt": None,
            "createdAt": server.clock.now,
        }
        server.clock.pass_(1_000)
        signed_in = good(await log_in(server.http, passkey))
        assert signed_in["user"] == {"id": person.id, "email": person.email}
        me = good(await person("GET", "/auth/me", bearer=signed_in["accessToken"]))
        assert me["user"]["id"] == person.id
        assert [one["lastUsedAt"] for one in await listed(person)] == [server.clock.now]
        assert await newest_events(person) == {"login"}


@async_test
async def test_the_options_are_those_of_webauthn(open_server: OpenServer) -> None:
    """User verification is required; a login names nobody, a registration excludes what is registered."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        proof = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        made = await creation_options(person, proof)
        challenge = made.pop("challenge")
        assert len(unb64(challenge)) == 32
        assert made == {
            "rp": {"id": RP_ID, "name": RP_ID},
            "user": {"id": made["user"]["id"], "name": person.email, "displayName": person.email},
            "pubKeyCredParams": [{"alg": number, "type": "public-key"} for number in (-8, -7, -257)],
            "timeout": CHALLENGE_LIFETIME,
            "excludeCredentials": [{"id": passkey.credential_id, "type": "public-key"}],
            "authenticatorSelection": {
                "residentKey": "preferred",
                "requireResidentKey": False,
                "userVerification": "required",
            },
            "attestation": "none",
        }
        asked = await login_options(server.http)
        assert asked.pop("challenge") != challenge
        assert asked == {
            "rpId": RP_ID,
            "timeout": CHALLENGE_LIFETIME,
            "allowCredentials": [],
            "userVerification": "required",
        }


@async_test
async def test_a_challenge_counts_once(open_server: OpenServer, where: str) -> None:
    """Used again it is refused, also after a wrong assertion; of many at once one passes. Only its hash was stored."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        options = await creation_options(person)
        assert options["challenge"] not in repr(await rows_of(where))
        passkey = SoftPasskey(RP_ID, unb64(options["user"]["id"]))
        refused(await register(person, options, passkey, rp_id="example.com"), 401, "invalid_passkey")
        refused(await register(person, options, passkey), 401, "invalid_passkey")
        options = await creation_options(person)
        good(await register(person, options, passkey), 201)
        again = SoftPasskey(RP_ID, passkey.user_handle)
        refused(await register(person, options, again), 401, "invalid_passkey")
        asked = await login_options(server.http)
        wrong = passkey.assertion(asked, ORIGIN, signature=b"no")
        refused(await server.http.post("/auth/passkeys/login", json={"credential": wrong}), 401, "invalid_passkey")
        right = {"credential": passkey.assertion(asked, ORIGIN)}
        refused(await server.http.post("/auth/passkeys/login", json=right), 401, "invalid_passkey")
        asked = await login_options(server.http)
        attempts = [{"credential": passkey.assertion(asked, ORIGIN)} for _ in range(5)]
        answers = await asyncio.gather(*(server.http.post("/auth/passkeys/login", json=each) for each in attempts))
        assert sorted(answer.status_code for answer in answers) == [200, 401, 401, 401, 401]


@async_test
async def test_a_challenge_lives_for_five_minutes(open_server: OpenServer) -> None:
    """To the millisecond; then it is purged."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        for late in (0, 1):
            asked = await login_options(server.http)
            server.clock.pass_(CHALLENGE_LIFETIME - 1 + late)
            credential = passkey.assertion(asked, ORIGIN)
            answer = await server.http.post("/auth/passkeys/login", json={"credential": credential})
            assert answer.status_code == (401 if late else 200)


@async_test
async def test_a_challenge_is_bound_to_its_purpose_and_its_account(open_server: OpenServer) -> None:
    """One of a login proves nothing in a session, one of a proof logs nobody in, and nobody uses another's."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        (of_ann, _), (of_bob, _) = await add_passkey(ann), await add_passkey(bob)
        of_login = of_ann.assertion(await login_options(server.http), ORIGIN)
        refused(await ann("POST", "/auth/passkeys/registration/options", {"passkey": of_login}), 401, "invalid_passkey")
        of_proof = await proof_by(ann, of_ann)
        refused(await server.http.post("/auth/passkeys/login", json={"credential": of_proof}), 401, "invalid_passkey")
        for who, passkey in ((ann, of_bob), (bob, of_ann)):
            proof = await proof_by(bob, passkey)  # a challenge of Bob's; only his own passkey would answer it
            refused(
                await who("POST", "/auth/passkeys/registration/options", {"passkey": proof}), 401, "invalid_passkey"
            )
        factor = await second_factor(bob, of_bob)
        options = await creation_options(bob, {**BY_PASSWORD, "secondFactor": factor})
        made = SoftPasskey(RP_ID, of_ann.user_handle)
        refused(await register(ann, options, made), 401, "invalid_passkey")
        assert [len(await listed(one)) for one in (ann, bob)] == [1, 1]


@async_test
async def test_the_sign_counter_must_rise(open_server: OpenServer) -> None:
    """One that falls or stays has a copy somewhere: refused, and the owner's log says so. Always 0 is good."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        good(await log_in(server.http, passkey, counter=7))
        for counter in (7, 6, 0):
            server.clock.pass_(1_000)
            refused(await log_in(server.http, passkey, counter=counter), 401, "invalid_passkey")
            assert await newest_events(person) == {"passkey_counter_fell"}
        passkey.counter = 7
        proof = {"passkey": await proof_by(person, passkey, counter=7)}
        refused(await person("POST", "/auth/passkeys/registration/options", proof), 401, "invalid_passkey")
        good(await log_in(server.http, passkey, counter=8))
        synced, _ = await add_passkey(person, {"passkey": await proof_by(person, passkey, counter=9)}, counts=False)
        for _ in range(3):
            good(await log_in(server.http, synced))


@async_test
async def test_the_authenticator_names_the_account(open_server: OpenServer) -> None:
    """With the handle of somebody else, or with none, nobody is logged in."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        (of_ann, _), (of_bob, _) = await add_passkey(ann), await add_passkey(bob)
        server.clock.pass_(1_000)
        refused(await log_in(server.http, of_ann, user_handle=of_bob.user_handle), 401, "invalid_passkey")
        credential = of_ann.assertion(await login_options(server.http), ORIGIN)
        del credential["response"]["userHandle"]
        refused(await server.http.post("/auth/passkeys/login", json={"credential": credential}), 401, "invalid_passkey")
        refused(await log_in(server.http, of_ann, id=of_bob.id), 401, "invalid_passkey")
        refused(await log_in(server.http, of_ann, flags=USER_PRESENT), 401, "invalid_passkey")
        assert await newest_events(ann) == {"login_failed"}
        credential = await proof_by(ann, of_ann)
        del credential["response"]["userHandle"]  # here the account is known
        await creation_options(ann, {"passkey": credential})


@async_test
async def test_every_refusal_is_the_same(open_server: OpenServer) -> None:
    """An unknown passkey, a wrong one, one without a challenge: to the byte alike."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        wrong: list[dict[str, Any]] = [
            {"signature": b"no"},
            {"challenge": b64(bytes(32))},
            {"origin": "https://evil.example.com"},
            {"client_data": b"no"},
        ]
        answers = [await log_in(server.http, passkey, **one) for one in wrong]
        answers.append(await log_in(server.http, SoftPasskey(RP_ID, passkey.user_handle)))
        told = [refused(answer, 401, "invalid_passkey")["message"] for answer in answers]
        assert len(set(told)) == 1


@async_test
async def test_a_throttled_address_still_logs_in(open_server: OpenServer) -> None:
    """Wrong passkeys count like wrong API keys, and a right one passes all the same: nobody guesses a signature."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        for _ in range(FAILURES_PER_ADDRESS):
            refused(await log_in(server.http, passkey, signature=b"no"), 401, "invalid_passkey")
        refused(await log_in(server.http, passkey, signature=b"no"), 429, "rate_limited")
        good(await log_in(server.http, passkey))


@async_test
async def test_a_passkey_proves_both_factors(open_server: OpenServer) -> None:
    """An assertion is enough to register a further passkey, and to delete one; it is used up with that."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, first = await add_passkey(person)
        proof = {"passkey": await proof_by(person, passkey)}
        other, second = await add_passkey(person, proof)
        assert second["recoveryCodes"] is None
        refused(await person("POST", "/auth/passkeys/registration/options", proof), 401, "invalid_passkey")
        path = f"/auth/passkeys/{first['passkey']['uid']}"
        refused(await person("DELETE", path, proof), 401, "invalid_passkey")
        good(await person("DELETE", path, {"passkey": await proof_by(person, other)}))
        assert [one["uid"] for one in await listed(person)] == [second["passkey"]["uid"]]
        refused(await log_in(server.http, passkey), 401, "invalid_passkey")
        good(await log_in(server.http, other))


@async_test
async def test_a_proof_is_required(open_server: OpenServer) -> None:
    """Without password and passkey, or with both, nothing begins; a wrong password is a failed login."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, added = await add_passkey(person)
        both = {**BY_PASSWORD, "passkey": await proof_by(person, passkey)}
        for method, path in (
            ("POST", "/auth/passkeys/registration/options"),
            ("DELETE", f"/auth/passkeys/{added['passkey']['uid']}"),
        ):
            fields = refused(await person(method, path, {}), 400, "validation_error")["details"]["fields"]
            assert list(fields) == ["currentPassword"]
            fields = refused(await person(method, path, both), 400, "validation_error")["details"]["fields"]
            assert list(fields) == ["passkey"]
            refused(await person(method, path, {"currentPassword": "wrong horse"}), 401, "invalid_credentials")
            refused(await person(method, path, BY_PASSWORD), 401, "second_factor_required")
        assert len(await listed(person)) == 1


@async_test
async def test_the_last_passkey_goes_only_with_the_password(open_server: OpenServer) -> None:
    """Who logs in with it alone may not know the password: the proof that another way in works is asked for."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, added = await add_passkey(person)
        path = f"/auth/passkeys/{added['passkey']['uid']}"
        error = refused(
            await person("DELETE", path, {"passkey": await proof_by(person, passkey)}), 400, "validation_error"
        )
        assert "last passkey" in error["details"]["fields"]["currentPassword"]
        good(await log_in(server.http, passkey))
        both = {**BY_PASSWORD, "secondFactor": await second_factor(person, passkey)}
        server.clock.pass_(1_000)
        good(await person("DELETE", path, both))
        assert await listed(person) == []
        assert await newest_events(person) == {"second_factor_disabled", "passkey_deleted"}
        good(await server.login(person.email))


@async_test
async def test_a_passkey_of_others_cannot_be_touched(open_server: OpenServer) -> None:
    """Renamed, deleted or registered again: not by another account, and not under a uid that is nobody's."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        (of_ann, added), (of_bob, _) = await add_passkey(ann), await add_passkey(bob)
        for uid in (added["passkey"]["uid"], "01890000-0000-7000-8000-00000000dead", "x"):
            path = f"/auth/passkeys/{uid}"
            refused(await bob("PUT", path, {"name": "mine"}), 404, "passkey_not_found")
            refused(await bob("DELETE", path, {"passkey": await proof_by(bob, of_bob)}), 404, "passkey_not_found")
        options = await creation_options(bob, {"passkey": await proof_by(bob, of_bob)})
        refused(await register(bob, options, of_ann), 409, "passkey_taken")
        server.clock.pass_(1_000)
        good(await ann("PUT", f"/auth/passkeys/{added['passkey']['uid']}", {"name": "a better name"}))
        assert [one["name"] for one in await listed(ann)] == ["a better name"]
        assert await newest_events(ann) == {"passkey_renamed"}


@async_test
async def test_limits(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many passkeys for an account; of too many open challenges its oldest goes, and an address has to wait."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        for _ in range(PASSKEYS_PER_ACCOUNT - 2):
            await add_passkey(person, {"passkey": await proof_by(person, passkey)})
        options = [await creation_options(person, {"passkey": await proof_by(person, passkey)}) for _ in range(2)]
        made = [SoftPasskey(RP_ID, passkey.user_handle) for _ in range(2)]
        good(await register(person, options[0], made[0]), 201)
        refused(await register(person, options[1], made[1]), 409, "too_many_passkeys")
        proof = {"passkey": await proof_by(person, passkey)}
        refused(await person("POST", "/auth/passkeys/registration/options", proof), 409, "too_many_passkeys")
        old = await proof_by(person, passkey)
        server.clock.pass_(1)
        for _ in range(CHALLENGES_PER_ACCOUNT):
            await proof_by(person, passkey)
        path = f"/auth/passkeys/{(await listed(person))[0]['uid']}"
        refused(await person("DELETE", path, {"passkey": old}), 401, "invalid_passkey")
        for _ in range(2 * CHALLENGES_PER_ACCOUNT):  # of all that begin in the same millisecond, the newest is good
            proof = {"passkey": await proof_by(person, passkey)}
        good(await person("DELETE", path, proof))
        monkeypatch.setattr(passkeys, "CHALLENGES_PER_ADDRESS", 10)  # a thousand take long
        for _ in range(10):
            await login_options(server.http)
        full = await server.http.post("/auth/passkeys/login/options", json={})
        assert refused(full, 429, "rate_limited")
        assert full.headers["retry-after"] == str(CHALLENGE_LIFETIME // 1_000)
        server.clock.pass_(CHALLENGE_LIFETIME)
        await login_options(server.http)


@async_test
async def test_a_change_of_password_voids_what_has_begun(open_server: OpenServer) -> None:
    """Whoever knew the old password and has begun a registration cannot finish it."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        options = await creation_options(person)
        changed = {"currentPassword": PASSWORD, "newPassword": "another horse"}
        good(await person("PUT", "/auth/password", changed))
        made = SoftPasskey(RP_ID, unb64(options["user"]["id"]))
        refused(await register(person, options, made), 401, "invalid_passkey")


def in_one_packet(server: Server, token: str, proof: Any) -> bytes:
    """The response to a request whose body comes with its headers: its session is checked with the first query."""
    body = json.dumps(proof).encode()
    head = f"POST /auth/passkeys/registration/options HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(head.encode() + body)
        with connection.makefile("rb") as answer:
            return answer.read()


def test_a_session_that_has_ended_uses_nothing_up(tmp_path: Path) -> None:
    """Its token is refused before the challenge of a proof is taken: the owner can still use it."""
    server = Server(tmp_path / "home", PUBLIC_URL=ORIGIN)
    try:
        person = ContractPerson.register(server.start())

        def post(path: str, body: Any = None, http: httpx2.Client = person.http, status: int = 200) -> Any:
            return good(http.post(path, json={} if body is None else body), status)

        begun = post("/auth/passkeys/registration/options", {"currentPassword": CONTRACT_PASSWORD})["publicKey"]
        passkey = SoftPasskey(RP_ID, unb64(begun["user"]["id"]), counts=False)
        post("/auth/passkeys", {"name": "a key", "credential": passkey.register(begun, ORIGIN)}, status=201)
        asked = post("/auth/passkeys/login/options")["publicKey"]
        session = post("/auth/passkeys/login", {"credential": passkey.assertion(asked, ORIGIN)})
        ended = server.connect(session["accessToken"])
        post("/auth/logout", http=ended)
        asked = post("/auth/passkeys/proof/options")["publicKey"]
        proof = {"passkey": passkey.assertion(asked, ORIGIN)}
        assert b'"unauthorized"' in in_one_packet(server, session["accessToken"], proof)
        post("/auth/passkeys/registration/options", proof)
    finally:
        server.abandon()


@async_test
async def test_a_disabled_account_is_not_opened(open_server: OpenServer) -> None:
    """An operator's word is above a passkey."""
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        passkey, _ = await add_passkey(person)
        await database_of(server.app).write(store.accounts.disable, person.id)
        refused(await log_in(server.http, passkey), 403, "account_disabled")


@async_test
async def test_all_goes_with_the_account(open_server: OpenServer, where: str) -> None:
    """A deleted account leaves no passkey and no challenge; what has expired is purged."""
    async with open_server(**SETTINGS) as server:
        ann, bob = await server.person(), await server.person()
        of_ann, _ = await add_passkey(ann)
        await add_passkey(bob)
        await login_options(server.http)
        proof = {"password": PASSWORD, "secondFactor": await second_factor(ann, of_ann)}
        await proof_by(ann, of_ann)
        good(await ann("DELETE", "/auth/me", proof))
        refused(await log_in(server.http, of_ann), 401, "invalid_passkey")
        server.clock.pass_(CHALLENGE_LIFETIME)
        await database_of(server.app).write_long(sessions.purge_some, 90, Sweep())
        rows = await rows_of(where)
        assert rows["challenges"] == []
        assert [row[0] for row in rows["passkeys"]] == [bob.id]


@pytest.mark.parametrize("url", ["", "http://vault.example.com", "https://192.0.2.7"])
@async_test
async def test_without_an_address_for_passkeys_the_server_says_so(open_server: OpenServer, url: str) -> None:
    """One sentence that names the setting, before anything else is looked at."""
    async with open_server(public_url=url) as server:
        person = await server.person()
        asked: tuple[tuple[str, Any], ...] = (
            ("/auth/passkeys/registration/options", BY_PASSWORD),
            ("/auth/passkeys/proof/options", None),
            ("/auth/passkeys/login/options", {}),
        )
        for path, sent in asked:
            error = refused(await person("POST", path, sent), 409, "passkeys_unavailable")
            assert "PUBLIC_URL" in error["message"]
        passkey = SoftPasskey(RP_ID, bytes(16))
        body: dict[str, Any] = {"name": "a key"}
        body["credential"] = passkey.register({"challenge": b64(bytes(32))}, ORIGIN)
        refused(await person("POST", "/auth/passkeys", body), 409, "passkeys_unavailable")
        credential = passkey.assertion({"challenge": b64(bytes(32))}, ORIGIN)
        refused(
            await server.http.post("/auth/passkeys/login", json={"credential": credential}), 409, "passkeys_unavailable"
        )
        assert await listed(person) == []


@async_test
async def test_a_key_of_the_users_is_not_taken(open_server: OpenServer, where: str) -> None:
    """A client that sends the output of PRF is told at once, and nothing of it is stored or said."""
    output = {"prf": {"enabled": True, "results": {"first": "c2VjcmV0LW9mLXRoZS11c2Vy"}}}
    async with open_server(**SETTINGS) as server:
        person = await server.person()
        options = await creation_options(person)
        passkey = SoftPasskey(RP_ID, unb64(options["user"]["id"]))
        body: dict[str, Any] = {"name": "a key", "credential": passkey.register(options, ORIGIN)}
        body["credential"]["clientExtensionResults"] = output
        answer = await person("POST", "/auth/passkeys", body)
        assert "prf" in refused(answer, 400, "validation_error")["details"]["fields"]["credential"]
        assert "c2VjcmV0" not in answer.text
        body["credential"]["clientExtensionResults"] = {"prf": {"enabled": True}}
        good(await person("POST", "/auth/passkeys", body), 201)
        credential = passkey.assertion(await login_options(server.http), ORIGIN)
        credential["clientExtensionResults"] = output
        answer = await server.http.post("/auth/passkeys/login", json={"credential": credential})
        assert "prf" in refused(answer, 400, "validation_error")["details"]["fields"]["credential"]
        assert "c2VjcmV0" not in repr(await rows_of(where))
