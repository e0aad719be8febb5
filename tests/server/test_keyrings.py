"""What clients keep on the server for themselves: the descriptor of the password, and the keyring."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from strongroom import rules, store, wire
from strongroom.actions import keyrings
from strongroom.errors import InvalidCredentials
from strongroom.model import Actor, Expected, Origin
from strongroom.store import Database
from tests.conftest import House, Open, Person, runs

PASSWORD, NEW = "an auth key in base64url", "another auth key in base64url"
KDF = {
    "format": 1,
    "kdf": "argon2id",
    "memory": 65_536,
    "passes": 3,
    "lanes": 1,
    "salt": "c2FsdA==",
    "recovery": "AA==",
}
OTHER: dict[str, Any] = {**KDF, "salt": "b3RoZXI="}
PATH = "/auth/keyring"


async def registered(home: House, **body: Any) -> httpx2.Response:
    email = body.pop("email", "ann@example.com")
    return await home.http.post("/auth/email/register", json={"email": email, "password": PASSWORD, **body})


async def ann_of(home: House, **body: Any) -> Person:
    """Somebody whose client keeps a descriptor and a keyring here, from the beginning."""
    made = await registered(home, **{"kdf": KDF, "keyring": "Rmlyc3Q=", **body})
    assert made.status_code == 201, made.text
    return Person(home.http, "ann@example.com", made.json())


async def asked(home: House, email: str = "ann@example.com") -> Any:
    answer = await home.http.post("/auth/email/prelogin", json={"email": email})
    assert answer.status_code == 200, answer.text
    return answer.json()["kdf"]


def refused(answer: httpx2.Response, status: int, code: str) -> Any:
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code), answer.text
    return answer.json()["error"].get("details")


def change(**body: Any) -> dict[str, Any]:
    return {"currentPassword": PASSWORD, "newPassword": NEW, **body}


@runs
async def test_a_registration_brings_both(house: Open) -> None:
    """Descriptor and keyring are there with the account; the descriptor shows before the login, the keyring after."""
    async with house() as home:
        ann = await ann_of(home)
        assert await asked(home) == KDF
        assert await asked(home, " Ann@Example.COM\t") == KDF
        answer = await ann("GET", PATH)
        assert answer.json() == {"keyring": "Rmlyc3Q=", "version": 1, "updatedAt": home.clock.now, "kdf": KDF}
        assert answer.headers["etag"] == '"1"'
        assert (await ann("GET", PATH, headers={"if-none-match": '"1"'})).status_code == 304


@runs
async def test_a_registration_that_is_refused_leaves_neither(house: Open) -> None:
    """Who registers a taken email does not change what its owner keeps."""
    async with house() as home:
        ann = await ann_of(home)
        refused(await registered(home, kdf=OTHER, keyring="VGhpZWY="), 409, "email_already_exists")
        assert (await ann("GET", PATH)).json()["keyring"] == "Rmlyc3Q="
        assert await asked(home) == KDF


@runs
async def test_a_client_of_the_bare_specification_needs_none_of_it(house: Open) -> None:
    """It registers, logs in and changes its password as ever, and there is no keyring."""
    async with house() as home:
        bob = await home.person()
        refused(await bob("GET", PATH), 404, "keyring_not_found")
        body = {"currentPassword": "correct horse", "newPassword": NEW}
        assert (await bob("PUT", "/auth/password", body)).status_code == 200
        assert (await home.login(bob.email, NEW)).status_code == 200


@runs
async def test_a_keyring_is_replaced_at_the_version_that_was_seen(house: Open) -> None:
    """Version by version; what is stale learns what is stored, by 409 or by 412, and changes nothing."""
    async with house() as home:
        ann = await ann_of(home)
        home.clock.pass_(1_000)
        answer = await ann("PUT", PATH, {"keyring": "U2Vjb25k", "version": 1})
        stored = {"keyring": "U2Vjb25k", "version": 2, "updatedAt": home.clock.now, "kdf": KDF}
        assert (answer.status_code, answer.json(), answer.headers["etag"]) == (200, stored, '"2"')
        for version in (-1, 0, 1, 3, rules.MAX_INTEGER):
            details = refused(
                await ann("PUT", PATH, {"keyring": "TGF0ZQ==", "version": version}), 409, "keyring_conflict"
            )
            assert details == {"version": 2, "updatedAt": stored["updatedAt"]}
        late = await ann("PUT", PATH, {"keyring": "TGF0ZQ=="}, headers={"if-match": '"1"'})
        assert refused(late, 412, "keyring_conflict") == {"version": 2, "updatedAt": stored["updatedAt"]}
        assert (await ann("GET", PATH)).json() == stored
        good = await ann("PUT", PATH, {"keyring": "VGhpcmQ="}, headers={"if-match": '"2"'})
        assert (good.status_code, good.json()["version"]) == (200, 3)
        assert await asked(home) == KDF


@runs
async def test_a_put_that_is_sent_again_is_answered_as_stored(house: Open) -> None:
    """The same content at the next version is no conflict, and writes nothing; another content is one."""
    async with house() as home:
        ann = await ann_of(home)
        body = {"keyring": "U2Vjb25k", "version": 1, "kdf": OTHER, "currentPassword": PASSWORD}
        first = (await ann("PUT", PATH, body)).json()
        home.clock.pass_(1_000)
        for again in (body, {"keyring": "U2Vjb25k", "version": 1}):
            answer = await ann("PUT", PATH, again)
            assert (answer.status_code, answer.json()) == (200, first)
        refused(await ann("PUT", PATH, {**body, "kdf": KDF}), 409, "keyring_conflict")
        refused(await ann("PUT", PATH, {**body, "keyring": "T3RoZXI="}), 409, "keyring_conflict")
        assert await asked(home) == OTHER
        log = (await ann("GET", "/auth/events")).json()["events"]
        assert [line["type"] for line in log].count("kdf_changed") == 1


@runs
async def test_the_first_keyring_replaces_version_0(house: Open) -> None:
    """Where there is none, nothing else is accepted: not any version, and not If-Match with a star."""
    async with house() as home:
        bob = await home.person()
        details = refused(await bob("PUT", PATH, {"keyring": "QQ==", "version": 1}), 409, "keyring_conflict")
        assert details == {"version": 0, "updatedAt": 0}
        refused(await bob("PUT", PATH, {"keyring": "QQ=="}, headers={"if-match": "*"}), 412, "keyring_conflict")
        first = await bob("PUT", PATH, {"keyring": "QQ==", "version": 0})
        assert (first.status_code, first.json()["version"], first.json()["kdf"]) == (200, 1, None)
        assert (await bob("PUT", PATH, {"keyring": "QQ==", "version": 0})).json() == first.json()
        starred = await bob("PUT", PATH, {"keyring": "Qg=="}, headers={"if-match": "*"})
        assert (starred.status_code, starred.json()["version"]) == (200, 2)


@pytest.mark.parametrize("version", [0, 1])
@runs
async def test_of_many_at_once_one_wins(house: Open, version: int) -> None:
    """Twenty devices replace one version at the same time, or put the first: one is accepted, the others learn it."""
    async with house() as home:
        ann = await ann_of(home, keyring=None if version == 0 else "Rmlyc3Q=")
        bodies = [{"keyring": f"device{number:02}", "version": version} for number in range(20)]
        answers = await asyncio.gather(*(ann("PUT", PATH, body) for body in bodies))
        won = [answer.json()["keyring"] for answer in answers if answer.status_code == 200]
        assert len(won) == 1
        lost = [answer.json()["error"]["details"]["version"] for answer in answers if answer.status_code == 409]
        assert lost == [version + 1] * 19
        stored = (await ann("GET", PATH)).json()
        assert (stored["keyring"], stored["version"]) == (won[0], version + 1)


@runs
async def test_a_descriptor_is_changed_only_with_the_password(house: Open) -> None:
    """A stolen token cannot make the owner derive something else; a wrong password changes nothing and is counted."""
    async with house() as home:
        ann = await ann_of(home)
        body = {"keyring": "U2Vjb25k", "version": 1, "kdf": OTHER}
        assert set(refused(await ann("PUT", PATH, body), 400, "validation_error")["fields"]) == {"currentPassword"}
        refused(await ann("PUT", PATH, {**body, "currentPassword": "wrong horse"}), 401, "invalid_credentials")
        stored = (await ann("GET", PATH)).json()
        assert (stored["keyring"], stored["kdf"]) == ("Rmlyc3Q=", KDF)
        changed = await ann("PUT", PATH, {**body, "currentPassword": PASSWORD})
        assert (changed.status_code, changed.json()["kdf"], changed.json()["version"]) == (200, OTHER, 2)
        assert await asked(home) == OTHER
        assert (await home.login(ann.email, PASSWORD)).status_code == 200
        log = [line["type"] for line in (await ann("GET", "/auth/events")).json()["events"]]
        assert sorted(log) == ["kdf_changed", "login", "login_failed", "registered"]
        stale = await ann("PUT", PATH, {**body, "kdf": KDF, "currentPassword": PASSWORD})
        refused(stale, 409, "keyring_conflict")
        assert await asked(home) == OTHER


@runs
async def test_a_descriptor_cannot_outrun_a_change_of_password(open_db: Callable[[], Database]) -> None:
    """The password that was checked must still be the stored one when the descriptor is written."""
    db, origin = open_db(), Origin("192.0.2.1", "tests")
    try:
        await db.write(store.accounts.insert, "u", "e@x", "new hash")
        wanted = wire.requests.PutKeyring(keyring="QQ==", version=0, kdf={"salt": "x"}, current_password=PASSWORD)
        for checked in ("old hash", None):
            with pytest.raises(InvalidCredentials):
                await db.write(keyrings.put, Actor("u"), wanted, Expected((0,)), checked, origin)
        assert await db.read(store.keyrings.get, "u") is None
        assert (await db.write(keyrings.put, Actor("u"), wanted, Expected((0,)), "new hash", origin)).version == 1
    finally:
        await db.close()


@runs
async def test_a_new_password_brings_its_own_keyring_in_one_step(house: Open) -> None:
    """All of it or nothing: password, descriptor, keyring, and the end of the other sessions."""
    async with house() as home:
        ann = await ann_of(home)
        other = (await home.login(ann.email, PASSWORD)).json()["accessToken"]
        stale = change(kdf=OTHER, keyring="TmV3", keyringVersion=7)
        details = refused(await ann("PUT", "/auth/password", stale), 409, "keyring_conflict")
        assert details["version"] == 1
        assert await asked(home) == KDF
        assert (await ann("GET", PATH, bearer=other)).json()["keyring"] == "Rmlyc3Q="
        assert (await home.login(ann.email, NEW)).status_code == 401
        home.clock.pass_(1_000)
        done = await ann("PUT", "/auth/password", change(kdf=OTHER, keyring="TmV3", keyringVersion=1))
        assert (done.status_code, done.json()) == (200, {"success": True})
        assert (await ann("GET", PATH)).json() == {
            "keyring": "TmV3",
            "version": 2,
            "updatedAt": home.clock.now,
            "kdf": OTHER,
        }
        assert await asked(home) == OTHER
        assert (await ann("GET", PATH, bearer=other)).status_code == 401
        assert [(await home.login(ann.email, word)).status_code for word in (PASSWORD, NEW)] == [401, 200]


@runs
async def test_a_new_password_without_its_keyring_is_refused_where_there_is_one(house: Open) -> None:
    """A program that does not know of keyrings cannot lock the owner out of the keys by changing the password."""
    async with house() as home:
        ann = await ann_of(home)
        for body, missing in (
            (change(), {"kdf", "keyring"}),
            (change(kdf=OTHER), {"keyring"}),
            (change(keyring="TmV3", keyringVersion=1), {"kdf"}),
            (change(kdf=OTHER, keyring="TmV3"), {"keyringVersion"}),
        ):
            details = refused(await ann("PUT", "/auth/password", body), 400, "validation_error")
            assert set(details["fields"]) == missing
        assert (await home.login(ann.email, PASSWORD)).status_code == 200
        assert (await ann("GET", PATH)).json()["version"] == 1
        assert await asked(home) == KDF


@runs
async def test_an_account_of_the_bare_specification_can_take_a_keyring(house: Open) -> None:
    """With the change of its password to a derived one, at version 0."""
    async with house() as home:
        bob = await home.person(password=PASSWORD)
        before = await asked(home, bob.email)
        done = await bob("PUT", "/auth/password", change(kdf=KDF, keyring="TmV3", keyringVersion=0))
        assert done.status_code == 200, done.text
        assert before != KDF
        assert await asked(home, bob.email) == KDF
        assert (await bob("GET", PATH)).json()["version"] == 1


@runs
async def test_a_keyring_and_a_change_of_password_at_once(house: Open) -> None:
    """Whichever comes second is refused: no keyring of the old password lies beside the new one."""
    async with house() as home:
        ann = await ann_of(home)
        moves = [ann("PUT", PATH, {"keyring": f"old{number}", "version": 1}) for number in range(5)]
        password = ann("PUT", "/auth/password", change(kdf=OTHER, keyring="TmV3", keyringVersion=1))
        *puts, changed = await asyncio.gather(*moves, password)
        assert sum(answer.status_code == 200 for answer in (*puts, changed)) == 1
        stored = (await ann("GET", PATH)).json()
        assert stored["version"] == 2
        assert (stored["keyring"] == "TmV3", stored["kdf"] == OTHER) == (changed.status_code == 200,) * 2


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
    {"memory": True},
    {"memory": None},
    {"deep": {"memory": 1}},
    {"memory": 2**63},
    {"salt": "A" * rules.MAX_KDF},
    {"\N{GRINNING FACE}" * 500: 1, "salt": "A" * 100},
    {f"field{number}": number for number in range(17)},
]


@runs
async def test_what_is_too_large_or_no_keyring_is_refused_on_every_road(house: Open) -> None:
    """Each bad field is named, and nothing is stored."""
    async with house(signup_limit=0) as home:
        ann = await ann_of(home)
        cases = [("keyring", bad) for bad in BAD_KEYRINGS] + [("kdf", bad) for bad in BAD_KDFS]
        for field, bad in cases:
            full = {"kdf": KDF, "keyring": "QQ==", field: bad}
            for answer in (
                await registered(home, email="new@example.com", **full),
                await ann("PUT", PATH, {**full, "version": 1, "currentPassword": PASSWORD}),
                await ann("PUT", "/auth/password", change(**full, keyringVersion=1)),
            ):
                assert set(refused(answer, 400, "validation_error")["fields"]) == {field}, bad
        for version in ("1", 1.0, None, 2**63):
            answer = await ann("PUT", PATH, {"keyring": "QQ==", "version": version})
            assert set(refused(answer, 400, "validation_error")["fields"]) == {"version"}
        assert (await ann("GET", PATH)).json()["version"] == 1


@runs
async def test_the_largest_of_both_are_kept_letter_for_letter(house: Open) -> None:
    """Up to the limit, in any letters that JSON can hold."""
    async with house() as home:
        kdf = {"odd \0 \N{GRINNING FACE}": 'text "\\', "least": -(2**63), "largest": 2**63 - 1, "long": "A" * 1_900}
        ann = await ann_of(home, kdf=kdf, keyring="A" * rules.MAX_KEYRING)
        answer = (await ann("GET", PATH)).json()
        assert (answer["kdf"], answer["keyring"]) == (kdf, "A" * rules.MAX_KEYRING)
        assert await asked(home) == kdf


@runs
async def test_a_keyring_counts_for_no_quota_and_no_clock(house: Open) -> None:
    """It is bounded by itself, and no vault has changed."""
    async with house(quota_bytes=1_000) as home:
        ann = await ann_of(home, keyring="A" * 5_000)
        vault = await ann.vault()
        assert (await ann("PUT", PATH, {"keyring": "B" * 6_000, "version": 1})).status_code == 200
        assert (await ann("GET", "/auth/me")).json()["usage"]["bytes"] == 0
        assert (await ann("GET", f"/vault/{vault['uid']}")).json()["updatedAt"] == vault["updatedAt"]


@runs
async def test_a_keyring_goes_with_its_account(house: Open) -> None:
    """Whoever registers the email again begins without one, and strangers see what they saw before there was one."""
    async with house() as home:
        decoy = await asked(home)
        ann = await ann_of(home)
        assert (await ann("DELETE", "/auth/me", {"password": PASSWORD})).status_code == 200
        assert await asked(home) == decoy
        again = Person(home.http, "ann@example.com", (await registered(home)).json())
        refused(await again("GET", PATH), 404, "keyring_not_found")
        assert await asked(home) == decoy
