"""What clients keep on the server for themselves: the descriptor of the password, and the keyring."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from strongroom import keyring_head, rules, store, wire
from strongroom.actions import keyrings
from strongroom.errors import Invalid, InvalidCredentials
from strongroom.model import Actor, Expected, Origin, Proof
from strongroom.rules import DAY, HOUR
from strongroom.store import Database
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import refused
from tests.kit.people.keyrings import keyring
from tests.kit.people.person import Person
from tests.kit.servers.database_files import raw_bytes
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import database_of
from tests.server.keyring_owner import KDF, NEW, PASSWORD, PATH, PROOF, VERSIONS, ann_of, registered

OTHER: dict[str, Any] = {**KDF, "salt": "b3RoZXI="}
PATIENT = {"jwt_access_expiry": "20000d", "jwt_refresh_expiry": "20000d"}  # who is away for days stays logged in


async def asked(server: InProcessServer, email: str = "ann@example.com") -> Any:
    answer = await server.http.post("/auth/email/prelogin", json={"email": email})
    assert answer.status_code == 200, answer.text
    return answer.json()["kdf"]


def change(**body: Any) -> dict[str, Any]:
    return {"currentPassword": PASSWORD, "newPassword": NEW, **body}


@async_test
async def test_a_registration_brings_both(open_server: OpenServer) -> None:
    """Descriptor and keyring are there with the account; the descriptor shows before the login, the keyring after."""
    async with open_server() as server:
        ann = await ann_of(server)
        assert await asked(server) == KDF
        assert await asked(server, " Ann@Example.COM\t") == KDF
        answer = await ann("GET", PATH)
        assert answer.json() == {"keyring": "Rmlyc3Q=", "version": 1, "updatedAt": server.clock.now, "kdf": KDF}
        assert answer.headers["etag"] == '"1"'
        assert (await ann("GET", PATH, headers={"if-none-match": '"1"'})).status_code == 304


@async_test
async def test_a_registration_that_is_refused_leaves_neither(open_server: OpenServer) -> None:
    """Who registers a taken email does not change what its owner keeps."""
    async with open_server() as server:
        ann = await ann_of(server)
        refused(await registered(server, kdf=OTHER, keyring="VGhpZWY="), 409, "email_already_exists")
        assert (await ann("GET", PATH)).json()["keyring"] == "Rmlyc3Q="
        assert await asked(server) == KDF


@async_test
async def test_a_client_of_the_bare_specification_needs_none_of_it(open_server: OpenServer) -> None:
    """It registers, logs in and changes its password as ever, and there is no keyring."""
    async with open_server() as server:
        bob = await server.person()
        refused(await bob("GET", PATH), 404, "keyring_not_found")
        body = {"currentPassword": "correct horse", "newPassword": NEW}
        assert (await bob("PUT", "/auth/password", body)).status_code == 200
        assert (await server.login(bob.email, NEW)).status_code == 200


@async_test
async def test_a_keyring_is_replaced_at_the_version_that_was_seen(open_server: OpenServer) -> None:
    """Version by version; what is stale learns what is stored, by 409 or by 412, and changes nothing."""
    async with open_server() as server:
        ann = await ann_of(server)
        server.clock.pass_(1_000)
        answer = await ann("PUT", PATH, {"keyring": "U2Vjb25k", "version": 1, **PROOF})
        stored = {"keyring": "U2Vjb25k", "version": 2, "updatedAt": server.clock.now, "kdf": KDF}
        assert (answer.status_code, answer.json(), answer.headers["etag"]) == (200, stored, '"2"')
        for version in (-1, 0, 1, 3, rules.MAX_INTEGER):
            details = refused(
                await ann("PUT", PATH, {"keyring": "TGF0ZQ==", "version": version, **PROOF}), 409, "keyring_conflict"
            )["details"]
            assert details == {"version": 2, "updatedAt": stored["updatedAt"]}
        late = await ann("PUT", PATH, {"keyring": "TGF0ZQ==", **PROOF}, headers={"if-match": '"1"'})
        assert refused(late, 412, "keyring_conflict")["details"] == {"version": 2, "updatedAt": stored["updatedAt"]}
        assert (await ann("GET", PATH)).json() == stored
        good = await ann("PUT", PATH, {"keyring": "VGhpcmQ=", **PROOF}, headers={"if-match": '"2"'})
        assert (good.status_code, good.json()["version"]) == (200, 3)
        assert await asked(server) == KDF


@async_test
async def test_a_put_that_is_sent_again_is_answered_as_stored(open_server: OpenServer) -> None:
    """The same content at the next version is no conflict, and writes nothing; another content is one."""
    async with open_server() as server:
        ann = await ann_of(server)
        body = {"keyring": "U2Vjb25k", "version": 1, "kdf": OTHER, "currentPassword": PASSWORD}
        first = (await ann("PUT", PATH, body)).json()
        server.clock.pass_(1_000)
        for again in (body, {"keyring": "U2Vjb25k", "version": 1}):
            answer = await ann("PUT", PATH, again)
            assert (answer.status_code, answer.json()) == (200, first)
        refused(await ann("PUT", PATH, {**body, "kdf": KDF}), 409, "keyring_conflict")
        refused(await ann("PUT", PATH, {**body, "keyring": "T3RoZXI="}), 409, "keyring_conflict")
        assert await asked(server) == OTHER
        log = (await ann("GET", "/auth/events")).json()["events"]
        assert [line["type"] for line in log].count("kdf_changed") == 1


@async_test
async def test_the_first_keyring_replaces_version_0(open_server: OpenServer) -> None:
    """Where there is none, nothing else is accepted: not any version, and not If-Match with a star."""
    async with open_server() as server:
        bob = await server.person(password=PASSWORD)
        details = refused(await bob("PUT", PATH, {"keyring": "QQ==", "version": 1, **PROOF}), 409, "keyring_conflict")[
            "details"
        ]
        assert details == {"version": 0, "updatedAt": 0}
        starred = await bob("PUT", PATH, {"keyring": "QQ==", **PROOF}, headers={"if-match": "*"})
        refused(starred, 412, "keyring_conflict")
        first = await bob("PUT", PATH, {"keyring": "QQ==", "version": 0, **PROOF})
        assert (first.status_code, first.json()["version"], first.json()["kdf"]) == (200, 1, None)
        assert (await bob("PUT", PATH, {"keyring": "QQ==", "version": 0})).json() == first.json()
        starred = await bob("PUT", PATH, {"keyring": "Qg==", **PROOF}, headers={"if-match": "*"})
        assert (starred.status_code, starred.json()["version"]) == (200, 2)


@pytest.mark.parametrize("version", [0, 1])
@async_test
async def test_of_many_at_once_one_wins(open_server: OpenServer, version: int) -> None:
    """Twenty devices replace one version at the same time, or put the first: one is accepted, the others learn it."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=None if version == 0 else keyring())
        proof = PROOF if version == 0 else {}
        bodies = [{"keyring": keyring(body=f"{number}"), "version": version, **proof} for number in range(20)]
        answers = await asyncio.gather(*(ann("PUT", PATH, body) for body in bodies))
        won = [answer.json()["keyring"] for answer in answers if answer.status_code == 200]
        assert len(won) == 1
        lost = [answer.json()["error"]["details"]["version"] for answer in answers if answer.status_code == 409]
        assert lost == [version + 1] * 19
        stored = (await ann("GET", PATH)).json()
        assert (stored["keyring"], stored["version"]) == (won[0], version + 1)


@async_test
async def test_a_descriptor_is_changed_only_with_the_password(open_server: OpenServer) -> None:
    """A stolen token cannot make the owner derive something else; a wrong password changes nothing and is counted."""
    async with open_server() as server:
        ann = await ann_of(server)
        body = {"keyring": "U2Vjb25k", "version": 1, "kdf": OTHER}
        assert set(refused(await ann("PUT", PATH, body), 400, "validation_error")["details"]["fields"]) == {
            "currentPassword"
        }
        refused(await ann("PUT", PATH, {**body, "currentPassword": "wrong horse"}), 401, "invalid_credentials")
        stored = (await ann("GET", PATH)).json()
        assert (stored["keyring"], stored["kdf"]) == ("Rmlyc3Q=", KDF)
        changed = await ann("PUT", PATH, {**body, "currentPassword": PASSWORD})
        assert (changed.status_code, changed.json()["kdf"], changed.json()["version"]) == (200, OTHER, 2)
        assert await asked(server) == OTHER
        assert (await server.login(ann.email, PASSWORD)).status_code == 200
        log = [line["type"] for line in (await ann("GET", "/auth/events")).json()["events"]]
        assert sorted(log) == ["kdf_changed", "login", "login_failed", "registered"]
        stale = await ann("PUT", PATH, {**body, "kdf": KDF, "currentPassword": PASSWORD})
        refused(stale, 409, "keyring_conflict")
        assert await asked(server) == OTHER


@async_test
async def test_a_descriptor_cannot_outrun_a_change_of_password(open_db: Callable[[], Database]) -> None:
    """The password that was checked must still be the stored one when the descriptor is written."""
    db, origin = open_db(), Origin("192.0.2.1", "tests")
    try:
        await db.write(store.accounts.insert, "u", "e@x", "new hash")
        wanted = wire.requests.PutKeyring(keyring="QQ==", version=0, kdf={"salt": "x"}, current_password=PASSWORD)
        for proof, refusal in ((Proof("old hash", None), InvalidCredentials), (None, Invalid)):
            with pytest.raises(refusal):
                await db.write(keyrings.put, Actor("u"), wanted, Expected((0,)), proof, origin)
        assert await db.read(store.keyrings.get, "u") is None
        proof = Proof("new hash", None)
        assert (await db.write(keyrings.put, Actor("u"), wanted, Expected((0,)), proof, origin)).version == 1
    finally:
        await db.close()


@async_test
async def test_a_new_password_brings_its_own_keyring_in_one_step(open_server: OpenServer) -> None:
    """All of it or nothing: password, descriptor, keyring, and the end of the other sessions."""
    async with open_server() as server:
        ann = await ann_of(server)
        other = (await server.login(ann.email, PASSWORD)).json()["accessToken"]
        stale = change(kdf=OTHER, keyring="TmV3", keyringVersion=7)
        details = refused(await ann("PUT", "/auth/password", stale), 409, "keyring_conflict")["details"]
        assert details["version"] == 1
        assert await asked(server) == KDF
        assert (await ann("GET", PATH, bearer=other)).json()["keyring"] == "Rmlyc3Q="
        assert (await server.login(ann.email, NEW)).status_code == 401
        server.clock.pass_(1_000)
        done = await ann("PUT", "/auth/password", change(kdf=OTHER, keyring="TmV3", keyringVersion=1))
        assert (done.status_code, done.json()) == (200, {"success": True})
        assert (await ann("GET", PATH)).json() == {
            "keyring": "TmV3",
            "version": 2,
            "updatedAt": server.clock.now,
            "kdf": OTHER,
        }
        assert await asked(server) == OTHER
        assert (await ann("GET", PATH, bearer=other)).status_code == 401
        assert [(await server.login(ann.email, word)).status_code for word in (PASSWORD, NEW)] == [401, 200]


@async_test
async def test_a_new_password_without_its_keyring_is_refused_where_there_is_one(open_server: OpenServer) -> None:
    """A program that does not know of keyrings cannot lock the owner out of the keys by changing the password."""
    async with open_server() as server:
        ann = await ann_of(server)
        for body, missing in (
            (change(), {"kdf", "keyring"}),
            (change(kdf=OTHER), {"keyring"}),
            (change(keyring="TmV3", keyringVersion=1), {"kdf"}),
            (change(kdf=OTHER, keyring="TmV3"), {"keyringVersion"}),
        ):
            details = refused(await ann("PUT", "/auth/password", body), 400, "validation_error")["details"]
            assert set(details["fields"]) == missing
        assert (await server.login(ann.email, PASSWORD)).status_code == 200
        assert (await ann("GET", PATH)).json()["version"] == 1
        assert await asked(server) == KDF


@async_test
async def test_an_account_of_the_bare_specification_can_take_a_keyring(open_server: OpenServer) -> None:
    """With the change of its password to a derived one, at version 0."""
    async with open_server() as server:
        bob = await server.person(password=PASSWORD)
        before = await asked(server, bob.email)
        done = await bob("PUT", "/auth/password", change(kdf=KDF, keyring="TmV3", keyringVersion=0))
        assert done.status_code == 200, done.text
        assert before != KDF
        assert await asked(server, bob.email) == KDF
        assert (await bob("GET", PATH)).json()["version"] == 1


@async_test
async def test_a_keyring_and_a_change_of_password_at_once(open_server: OpenServer) -> None:
    """Whichever comes second is refused: no keyring of the old password lies beside the new one."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring())
        moves = [ann("PUT", PATH, {"keyring": keyring(body=f"{number}"), "version": 1}) for number in range(5)]
        new = keyring(slots="of the new password")
        password = ann("PUT", "/auth/password", change(kdf=OTHER, keyring=new, keyringVersion=1))
        *puts, changed = await asyncio.gather(*moves, password)
        assert sum(answer.status_code == 200 for answer in (*puts, changed)) == 1
        stored = (await ann("GET", PATH)).json()
        assert stored["version"] == 2
        assert (stored["keyring"] == new, stored["kdf"] == OTHER) == (changed.status_code == 200,) * 2


BAD_KEYRINGS = [
    "",
    "a keyring in plain text",
    "QUJD\n",
    "é",
    "=",
    5,
    ["QQ=="],
    {"a": "b"},
    "A" * (rules.MAX_KEYRING + 1),
]
BAD_KDFS = [
    {},
    [],
    "argon2id",
    5,
    {"memory": 1.5},
    {"memory": [True]},
    {"memory": None},
    {"deep": {"memory": 1}},
    {"memory": 2**63},
    {"salt": "A" * rules.MAX_KDF},
    {"\N{GRINNING FACE}" * 500: 1, "salt": "A" * 100},
    {f"field{number}": number for number in range(17)},
]


@async_test
async def test_what_is_too_large_or_no_keyring_is_refused_on_every_road(open_server: OpenServer) -> None:
    """Each bad field is named, and nothing is stored."""
    async with open_server(signup_limit=0) as server:
        ann = await ann_of(server)
        cases = [("keyring", bad) for bad in BAD_KEYRINGS] + [("kdf", bad) for bad in BAD_KDFS]
        for field, bad in cases:
            full = {"kdf": KDF, "keyring": "QQ==", field: bad}
            for answer in (
                await registered(server, email="new@example.com", **full),
                await ann("PUT", PATH, {**full, "version": 1, "currentPassword": PASSWORD}),
                await ann("PUT", "/auth/password", change(**full, keyringVersion=1)),
            ):
                assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {field}, bad
        for version in ("1", 1.0, None, 2**63):
            answer = await ann("PUT", PATH, {"keyring": "QQ==", "version": version, **PROOF})
            assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"version"}
        assert (await ann("GET", PATH)).json()["version"] == 1


@async_test
async def test_the_largest_of_both_are_kept_letter_for_letter(open_server: OpenServer) -> None:
    """Up to the limit, in any letters that JSON can hold."""
    async with open_server() as server:
        kdf = {"odd \0 \N{GRINNING FACE}": 'text "\\', "least": -(2**63), "largest": 2**63 - 1, "long": "A" * 1_880}
        kdf |= {"yes": True, "no": False}
        ann = await ann_of(server, kdf=kdf, keyring="A" * rules.MAX_KEYRING)
        answer = (await ann("GET", PATH)).json()
        assert (answer["kdf"], answer["keyring"]) == (kdf, "A" * rules.MAX_KEYRING)
        assert await asked(server) == kdf


@async_test
async def test_a_keyring_counts_for_no_quota_and_no_clock(open_server: OpenServer) -> None:
    """It is bounded by itself, and no vault has changed."""
    async with open_server(quota_bytes=1_000) as server:
        ann = await ann_of(server, keyring="A" * 5_000)
        vault = await ann.vault()
        assert (await ann("PUT", PATH, {"keyring": "B" * 6_000, "version": 1, **PROOF})).status_code == 200
        assert (await ann("GET", "/auth/me")).json()["usage"]["bytes"] == 0
        assert (await ann("GET", f"/vault/{vault['uid']}")).json()["updatedAt"] == vault["updatedAt"]


@async_test
async def test_a_keyring_goes_with_its_account(open_server: OpenServer) -> None:
    """Whoever registers the email again begins without one, and strangers see what they saw before there was one."""
    async with open_server() as server:
        decoy = await asked(server)
        ann = await ann_of(server)
        assert (await ann("DELETE", "/auth/me", {"password": PASSWORD})).status_code == 200
        assert await asked(server) == decoy
        again = Person(server.http, "ann@example.com", (await registered(server)).json())
        refused(await again("GET", PATH), 404, "keyring_not_found")
        assert await asked(server) == decoy


def test_the_head_of_a_keyring() -> None:
    """The server reads account id, generation and slots of format 2, and of anything else it says that it cannot."""
    text = keyring("ann", slots="one", generation=7, version=5, body="x")
    head = keyring_head.read(text)
    assert head is not None
    assert head == keyring_head.read(keyring("ann", slots="one", generation=7, version=6, body="y"))
    raw = base64.b64decode(text)
    assert (head.account, head.slots) == (raw[2:18], raw[26:30] + raw[62:1249])
    for account, slots, generation in (("bob", "one", 7), ("ann", "two", 7), ("ann", "one", 8)):
        assert keyring_head.read(keyring(account, slots=slots, generation=generation)) != head
    for byte in range(1_249):  # every byte of the head that is not the version or the digest of the one before
        changed = bytearray(raw)
        changed[byte] ^= 1
        same = keyring_head.read(base64.b64encode(changed).decode()) == head
        assert same == (18 <= byte < 26 or 30 <= byte < 62), byte
    unknown = [
        base64.b64encode(bytes((1, 4)) + raw[2:]).decode(),
        base64.b64encode(bytes((2, 5)) + raw[2:]).decode(),
        base64.b64encode(raw[:1248]).decode(),
        base64.b64encode(raw[:64]).decode(),
        base64.b64encode(raw[:62] + b"\xff\xff\xff" + raw[65:]).decode(),
        base64.urlsafe_b64encode(b"\x02\x04" + b"\xff" * 1_300).decode(),
        text[:1_667],
        text[:100] + "=" + text[101:],
        "Rmlyc3Q=",
    ]
    assert [keyring_head.read(one) for one in unknown] == [None] * len(unknown)


def test_the_head_of_a_keyring_with_larger_slots() -> None:
    """Number and size stand before the slots: the server knows where these end, whatever later clients put there."""
    text = keyring("ann", slots="one", size=1_236)
    head = keyring_head.read(text)
    assert head is not None
    assert head == keyring_head.read(keyring("ann", slots="one", size=1_236, version=6, body="y"))
    raw = base64.b64decode(text)
    assert (head.account, head.slots) == (raw[2:18], raw[26:30] + raw[62 : 65 + 8 * 1_236])
    for byte in (62, 63, 64, 65, 1_249, 65 + 8 * 1_236 - 1):
        changed = bytearray(raw)
        changed[byte] ^= 1
        assert keyring_head.read(base64.b64encode(changed).decode()) != head, byte
    assert keyring_head.read(base64.b64encode(raw[: 65 + 8 * 1_236 - 1]).decode()) is None


@async_test
async def test_slots_change_only_with_the_password(open_server: OpenServer) -> None:
    """A stolen access token replaces the body of a keyring, and neither its slots nor its generation."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring())
        for other in (
            keyring(slots="of a thief"),
            keyring(size=1_236),
            keyring(generation=2),
            "Rmlyc3Q=",  # of no format that the server knows: nobody can tell what opens it
            base64.urlsafe_b64encode(b"\x02\x04" + b"\xff" * 1_300).decode(),
        ):
            for body, headers in (({"version": 1}, {}), ({}, {"if-match": "*"})):
                answer = await ann("PUT", PATH, {"keyring": other, **body}, headers=headers)
                assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"currentPassword"}
            stale = await ann("PUT", PATH, {"keyring": other, "version": 9})
            refused(stale, 409, "keyring_conflict")  # perhaps it is the client that has the slots of before
            wrong = {"keyring": other, "version": 1, "currentPassword": "wrong horse"}
            refused(await ann("PUT", PATH, wrong), 401, "invalid_credentials")
        assert (await ann("GET", PATH)).json()["version"] == 1
        free = await ann("PUT", PATH, {"keyring": keyring(version=2, body="another vault"), "version": 1})
        assert (free.status_code, free.json()["version"]) == (200, 2)
        log = (await ann("GET", "/auth/events")).json()["events"]
        assert [line["type"] for line in log].count("keyring_changed") == 1  # so that its owner learns of it
        new = keyring(slots="of a new recovery key", version=3)
        done = await ann("PUT", PATH, {"keyring": new, "version": 2, **PROOF})
        assert (done.status_code, done.json()["keyring"], done.json()["version"]) == (200, new, 3)


@async_test
async def test_a_keyring_of_an_unknown_format_changes_only_with_the_password(open_server: OpenServer) -> None:
    """And so does the first one: whoever has only a token plants none that the owner could not replace."""
    async with open_server() as server:
        ann = await ann_of(server)
        for other in ("U2Vjb25k", keyring()):
            answer = await ann("PUT", PATH, {"keyring": other, "version": 1})
            assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"currentPassword"}
        assert (await ann("PUT", PATH, {"keyring": keyring(), "version": 1, **PROOF})).status_code == 200
        bob = await server.person(password=PASSWORD)
        answer = await bob("PUT", PATH, {"keyring": keyring("a thief"), "version": 0})
        assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"currentPassword"}
        refused(await bob("GET", PATH), 404, "keyring_not_found")


@async_test
async def test_the_account_id_never_changes(open_server: OpenServer) -> None:
    """Not even with the password, on neither road, and not by way of a keyring of another format."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring("ann"))
        for other in (keyring("bob"), keyring("bob", slots="others"), "Rmlyc3Q="):
            put = await ann("PUT", PATH, {"keyring": other, "version": 1, **PROOF})
            assert set(refused(put, 400, "validation_error")["details"]["fields"]) == {"keyring"}
            changed = await ann("PUT", "/auth/password", change(kdf=OTHER, keyring=other, keyringVersion=1))
            assert set(refused(changed, 400, "validation_error")["details"]["fields"]) == {"keyring"}
        assert (await ann("GET", PATH)).json()["version"] == 1
        assert await asked(server) == KDF
        assert (await server.login(ann.email, PASSWORD)).status_code == 200
        done = change(kdf=OTHER, keyring=keyring("ann", slots="others"), keyringVersion=1)
        assert (await ann("PUT", "/auth/password", done)).status_code == 200


@async_test
async def test_slots_cannot_outrun_a_change_of_password(open_db: Callable[[], Database]) -> None:
    """The password that was checked must still be the stored one when the slots are written, whatever If-Match says."""
    db, origin = open_db(), Origin("192.0.2.1", "tests")
    try:
        await db.write(store.accounts.insert, "u", "e@x", "new hash")
        await db.write(store.keyrings.insert, "u", keyring(), 1)
        wanted = wire.requests.PutKeyring(keyring=keyring(slots="of the old password"), current_password=PASSWORD)
        with pytest.raises(InvalidCredentials):
            await db.write(keyrings.put, Actor("u"), wanted, Expected(None), Proof("old hash", None), origin)
        stored = await db.read(store.keyrings.get, "u")
        assert stored is not None
        assert (stored.keyring, stored.version) == (keyring(), 1)
        proof = Proof("new hash", None)
        assert (await db.write(keyrings.put, Actor("u"), wanted, Expected(None), proof, origin)).version == 2
    finally:
        await db.close()


async def retained(person: Person) -> list[int]:
    """The versions of the keyrings that were replaced, as they are listed."""
    answer = await person("GET", VERSIONS)
    assert answer.status_code == 200, answer.text
    return [one["version"] for one in answer.json()["versions"]]


async def replace(person: Person, version: int, **more: Any) -> None:
    """The keyring of the next version."""
    body = {"keyring": keyring(version=version + 1), "version": version, **more}
    done = await person("PUT", PATH, body)
    assert done.status_code == 200, done.text


@async_test
async def test_a_replaced_keyring_is_retained_with_its_descriptor(open_server: OpenServer) -> None:
    """By a put and by a change of password; it is read letter for letter, and put back with the password."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring())
        assert await retained(ann) == []
        began = server.clock.now
        server.clock.pass_(1_000)
        await replace(ann, 1)
        server.clock.pass_(1_000)
        new = {"kdf": OTHER, "keyring": keyring(slots="second", version=3), "keyringVersion": 2}
        assert (await ann("PUT", "/auth/password", change(**new))).status_code == 200
        size = len(keyring())
        assert (await ann("GET", VERSIONS)).json() == {
            "versions": [
                {"version": 2, "updatedAt": began + 1_000, "replacedAt": began + 2_000, "bytes": size},
                {"version": 1, "updatedAt": began, "replacedAt": began + 1_000, "bytes": size},
            ]
        }
        first = await ann("GET", f"{VERSIONS}/1")
        assert first.json() == {"keyring": keyring(), "version": 1, "updatedAt": began, "kdf": KDF}
        assert first.headers["etag"] == '"1"'
        second = (await ann("GET", f"{VERSIONS}/2")).json()
        assert (second["keyring"], second["kdf"]) == (keyring(version=2), KDF)
        for unknown in ("0", "3", "4", "x", "-1", "1.0", str(2**63), "9" * 400):
            refused(await ann("GET", f"{VERSIONS}/{unknown}"), 404, "version_not_found")
        back = {"keyring": second["keyring"], "version": 3}
        refused(await ann("PUT", PATH, back), 400, "validation_error")
        done = await ann("PUT", PATH, {**back, "currentPassword": NEW})
        assert (done.status_code, done.json()["keyring"], done.json()["version"]) == (200, keyring(version=2), 4)
        assert await retained(ann) == [3, 2, 1]


@async_test
async def test_the_last_ten_are_retained_and_the_first_of_each_day(open_server: OpenServer) -> None:
    """However often a thief of a token replaces the keyring, what the owner had is there for 90 days."""
    async with open_server(**PATIENT) as server:
        ann = await ann_of(server, keyring=keyring())
        server.clock.pass_(DAY - server.clock.now % DAY)
        for version in range(1, 4):
            await replace(ann, version)
        server.clock.pass_(DAY)
        for version in range(4, 30):
            await replace(ann, version)
        assert await retained(ann) == [*range(29, 19, -1), 4, 1]
        assert (await ann("GET", f"{VERSIONS}/4")).json()["keyring"] == keyring(version=4)
        for version in range(30, 34):
            server.clock.pass_(DAY)
            await replace(ann, version)
        assert await retained(ann) == [*range(33, 23, -1), 4, 1]
        bob = Person(server.http, "bob@example.com", (await registered(server, email="bob@example.com")).json())
        assert await retained(bob) == []
        refused(await bob("GET", f"{VERSIONS}/4"), 404, "version_not_found")


@async_test
async def test_a_replaced_keyring_goes_after_90_days(open_server: OpenServer) -> None:
    """Counted from when it was replaced; the one in place stays for ever."""
    async with open_server(**PATIENT) as server:
        ann = await ann_of(server, keyring=keyring())
        server.clock.pass_(200 * DAY)
        await server.purge_expired()
        assert (await ann("GET", PATH)).status_code == 200
        await replace(ann, 1)
        server.clock.pass_(DAY)
        await replace(ann, 2)
        server.clock.pass_(89 * DAY - HOUR)
        await server.purge_expired()
        assert await retained(ann) == [2, 1]
        server.clock.pass_(HOUR)
        await server.purge_expired()
        assert await retained(ann) == [2]
        refused(await ann("GET", f"{VERSIONS}/1"), 404, "version_not_found")
        server.clock.pass_(DAY)
        await server.purge_expired()
        assert await retained(ann) == []
        assert (await ann("GET", PATH)).json()["version"] == 3


@async_test
async def test_a_keyring_is_put_again_at_its_own_version(open_server: OpenServer) -> None:
    """After a restore: only above what is stored, once, and a retry is answered as stored."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring())
        again = {"keyring": keyring(version=7), "version": 1, "newVersion": 7}
        for wanted, newer in ((1, 1), (7, 7), (7, 1)):
            answer = await ann("PUT", PATH, {**again, "version": wanted, "newVersion": newer})
            refused(answer, 409, "keyring_conflict")
        done = await ann("PUT", PATH, again)
        assert (done.status_code, done.json()["version"], done.headers["etag"]) == (200, 7, '"7"')
        server.clock.pass_(1_000)
        assert (await ann("PUT", PATH, again)).json() == done.json()
        for other in ({**again, "newVersion": 8}, {**again, "keyring": keyring(version=7, body="other")}):
            assert refused(await ann("PUT", PATH, other), 409, "keyring_conflict")["details"]["version"] == 7
        starred = await ann("PUT", PATH, {"keyring": keyring(), "newVersion": 7}, headers={"if-match": "*"})
        refused(starred, 412, "keyring_conflict")
        assert await retained(ann) == [1]
        new = change(kdf=OTHER, keyring=keyring(slots="new"), keyringVersion=7)
        refused(await ann("PUT", "/auth/password", {**new, "keyringNewVersion": 7}), 409, "keyring_conflict")
        assert (await ann("PUT", "/auth/password", {**new, "keyringNewVersion": 20})).status_code == 200
        assert (await ann("GET", PATH)).json()["version"] == 20
        bob = await server.person(password=PASSWORD)
        first = await bob("PUT", PATH, {"keyring": keyring("bob"), "version": 0, "newVersion": 5, **PROOF})
        assert (first.status_code, first.json()["version"]) == (200, 5)


@async_test
async def test_no_keyring_is_lifted_to_where_it_cannot_be_changed(open_server: OpenServer) -> None:
    """A chosen version leaves room for all that follow: the password can be changed whatever a thief has put."""
    async with open_server() as server:
        ann = await ann_of(server, keyring=keyring())
        for bad in (0, -1, rules.MAX_NEW_VERSION + 1, 2**53, 2**63, 1.5, "2", True):
            answer = await ann("PUT", PATH, {"keyring": keyring(version=2), "version": 1, "newVersion": bad})
            assert set(refused(answer, 400, "validation_error")["details"]["fields"]) == {"newVersion"}, bad
        top = {"keyring": keyring(version=2), "version": 1, "newVersion": rules.MAX_NEW_VERSION}
        assert (await ann("PUT", PATH, top)).status_code == 200
        new = change(kdf=OTHER, keyring=keyring(slots="new"), keyringVersion=rules.MAX_NEW_VERSION)
        assert (await ann("PUT", "/auth/password", new)).status_code == 200
        assert (await ann("GET", PATH)).json()["version"] == rules.MAX_NEW_VERSION + 1 < 2**53


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@async_test
async def test_an_expired_keyring_leaves_no_byte(open_server: OpenServer, where: str) -> None:
    """What was retained is overwritten in the files of SQLite, descriptor and all."""
    marks = [f"canary{uuid.uuid4().hex}" for _ in range(2)]
    async with open_server(**PATIENT) as server:
        ann = await ann_of(server, keyring=marks[0] * 30, kdf={"salt": marks[1]})
        body = {"keyring": keyring(), "version": 1, "kdf": KDF, **PROOF}
        assert (await ann("PUT", PATH, body)).status_code == 200
        await server.purge_expired()
        assert [mark.encode() in raw_bytes(where) for mark in marks] == [True, True]
        server.clock.pass_(90 * DAY)
        await server.purge_expired()
        assert await retained(ann) == []
        assert await database_of(server.app).truncate_log()
        assert [mark.encode() in raw_bytes(where) for mark in marks] == [False, False]
