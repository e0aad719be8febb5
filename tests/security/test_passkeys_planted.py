"""Attacks on passkeys are refused; and each guard that is taken out is noticed, because one of them succeeds then."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from fido2.webauthn import CollectedClientData

from strongroom import store, webauthn
from strongroom.actions import passkeys
from strongroom.rules import CHALLENGE_LIFETIME
from strongroom.server import ceremonies
from strongroom.store.statement import Sql
from tests.kit.asynchronous import async_test
from tests.kit.faults.planted_faults import no_stale_names
from tests.kit.network.responses import good
from tests.kit.people.passkeys import (
    BY_PASSWORD,
    ORIGIN,
    RP_ID,
    add_passkey,
    creation_options,
    log_in,
    login_options,
    proof_by,
    register,
    second_factor,
)
from tests.kit.people.person import Person
from tests.kit.people.soft_authenticator import USER_PRESENT, SoftPasskey
from tests.kit.samples import some
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of
from tests.security.planted import nothing, yes

PAGE = Path(__file__).parents[2] / "docs" / "testing.md"
REGISTRATION = "/auth/passkeys/registration/options"


class Scene:
    """Ann, who has a passkey that counts and one that does not; and Bob, who has one."""

    def __init__(self, server: InProcessServer, ann: Person, bob: Person) -> None:
        self.server, self.ann, self.bob = server, ann, bob
        self.counting: SoftPasskey
        self.synced: SoftPasskey
        self.of_bob: SoftPasskey
        self.uid_of_bob = ""

    async def set_up(self) -> None:
        self.counting, _ = await add_passkey(self.ann)
        proof = {"passkey": await proof_by(self.ann, self.counting)}
        self.synced, _ = await add_passkey(self.ann, proof, counts=False)
        self.of_bob, added = await add_passkey(self.bob)
        self.uid_of_bob = added["passkey"]["uid"]

    async def logs_in(self, credential: Any) -> bool:
        answer = await self.server.http.post("/auth/passkeys/login", json={"credential": credential})
        return answer.status_code == 200

    async def proves(self, person: Person, credential: Any) -> bool:
        return (await person("POST", REGISTRATION, {"passkey": credential})).status_code == 200


Attack = Callable[[Scene], Awaitable[bool]]  # whether it succeeds


async def sent_again(at: Scene) -> bool:
    """An assertion that was overheard, without a counter that would give it away."""
    credential = at.synced.assertion(await login_options(at.server.http), ORIGIN)
    assert await at.logs_in(credential)
    return await at.logs_in(credential)


async def after_a_wrong_one(at: Scene) -> bool:
    """The challenge of an assertion that was refused."""
    options = await login_options(at.server.http)
    assert not await at.logs_in(at.synced.assertion(options, ORIGIN, signature=b"no"))
    return await at.logs_in(at.synced.assertion(options, ORIGIN))


def wrong(**parts: Any) -> Attack:
    """A login with something wrong in what the authenticator or the browser made."""

    async def attack(at: Scene) -> bool:
        return (await log_in(at.server.http, at.synced, **parts)).status_code == 200

    return attack


async def copied(at: Scene) -> bool:
    """A copy of a passkey, whose counter stands where the last one stood."""
    count = at.counting.counter + 1
    good(await log_in(at.server.http, at.counting, counter=count))
    return (await log_in(at.server.http, at.counting, counter=count)).status_code == 200


async def for_another_account(at: Scene) -> bool:
    """Ann's passkey, signed for a challenge that was made for Bob."""
    return await at.proves(at.ann, await proof_by(at.bob, at.synced))


async def of_another_account(at: Scene) -> bool:
    """Bob's passkey in Ann's session, which somebody has stolen."""
    return await at.proves(at.ann, await proof_by(at.ann, at.of_bob))


async def for_another_purpose(at: Scene) -> bool:
    """A challenge that was made for a registration."""
    options = await creation_options(at.ann, {"passkey": await proof_by(at.ann, at.synced)})
    return await at.proves(at.ann, at.synced.assertion(options, ORIGIN))


async def too_late(at: Scene) -> bool:
    """An assertion of yesterday."""
    credential = await proof_by(at.ann, at.synced)
    at.server.clock.pass_(CHALLENGE_LIFETIME)
    return await at.proves(at.ann, credential)


async def with_another_handle(at: Scene) -> bool:
    """An authenticator that means Bob, with Ann's passkey."""
    return (await log_in(at.server.http, at.synced, user_handle=at.of_bob.user_handle)).status_code == 200


async def the_last_one(at: Scene) -> bool:
    """Bob's only passkey, deleted by itself."""
    proof = {"passkey": await proof_by(at.bob, at.of_bob)}
    return (await at.bob("DELETE", f"/auth/passkeys/{at.uid_of_bob}", proof)).status_code == 200


async def begun_before(at: Scene) -> bool:
    """A registration that was begun with the password of before."""
    options = await creation_options(at.bob, {"passkey": await proof_by(at.bob, at.of_bob)})
    factor = await second_factor(at.bob, at.of_bob)
    body = {**BY_PASSWORD, "newPassword": "another horse", "secondFactor": factor}
    good(await at.bob("PUT", "/auth/password", body))
    made = SoftPasskey(RP_ID, at.of_bob.user_handle)
    return (await register(at.bob, options, made)).status_code == 201


ATTACKS: dict[str, Attack] = {
    "sent again": sent_again,
    "after a wrong one": after_a_wrong_one,
    "on a page of somebody else": wrong(origin="https://vault.example.com.evil.example"),
    "in a frame of somebody else": wrong(cross_origin=True),
    "for another rp id": wrong(rp_id="evil.example"),
    "with another key": wrong(signed_by=SoftPasskey(RP_ID, b"")),
    "without its user": wrong(flags=USER_PRESENT),
    "a copy": copied,
    "for another account": for_another_account,
    "of another account": of_another_account,
    "for another purpose": for_another_purpose,
    "too late": too_late,
    "with another handle": with_another_handle,
    "the last one": the_last_one,
    "begun before a change of password": begun_before,
}

Plant = Callable[[pytest.MonkeyPatch, InProcessServer], None]


def replaced(module: Any, name: str, planted: Any) -> Plant:
    """Another function in the place of this one."""
    return lambda patch, _: patch.setattr(module, name, planted)


def shorter(module: Any, name: str, without: str) -> Plant:
    """A statement that lost a condition."""

    def plant(patch: pytest.MonkeyPatch, _: InProcessServer) -> None:
        text: str = getattr(module, name).sqlite
        assert without in text, f"{name} does not say {without!r}: {text}"
        patch.setattr(module, name, Sql(text.replace(without, "")))

    return plant


def all_of(*plants: Plant) -> Plant:
    """Bugs of which each alone would be caught by another guard."""

    def plant_all(patch: pytest.MonkeyPatch, server: InProcessServer) -> None:
        for plant in plants:
            plant(patch, server)

    return plant_all


def any_origin(patch: pytest.MonkeyPatch, server: InProcessServer) -> None:
    """Take a ceremony on any page."""
    patch.setattr(context_of(server.app).relying_party._server, "_verify", yes)


async def not_used_up(tx: Any, challenge_hash: str, purpose: Any, user_id: str | None) -> bool:
    """Look whether the challenge is there, and leave it."""
    there = Sql(
        "SELECT 1 FROM challenges WHERE challenge_hash = :hash AND purpose = :purpose "
        "AND coalesce(user_id, '') = :user_id AND expires_at > :now"
    )
    given = {"hash": challenge_hash, "purpose": purpose.value, "user_id": user_id or "", "now": tx.now}
    return await tx.value(there, **given) is not None


async def of_anybody(tx: Any, challenge_hash: str, purpose: Any, user_id: str | None, credential_id: str) -> Any:
    """Find the passkey, and do not look whose it is."""
    taken = await store.challenges.take(tx, challenge_hash, purpose, user_id)
    return await store.passkeys.by_credential(tx, credential_id) if taken else None


def in_any_frame(text: str, _challenge_hash: str) -> Any:
    """Do not look at where a page was shown."""
    data = CollectedClientData(webauthn._decode(text))
    return data, data.challenge


def user_present_only(challenge: bytes) -> dict[str, Any]:
    """Ask for a touch, not for a fingerprint or a PIN."""
    return {"challenge": webauthn._encode(challenge), "user_verification": "discouraged"}


async def _two(_tx: Any, _user_id: str) -> int:
    """Count two passkeys, however many there are."""
    return 2


async def _clear_nothing(_tx: Any, _user_id: str) -> None:
    """Leave all challenges where they are."""


class _Alike:
    """Compares bytes, and finds them equal."""

    bytes_eq = staticmethod(yes)


_RISES = "(sign_count < :sign_count OR (sign_count = 0 AND :sign_count = 0))"

FAULTS: dict[str, Plant] = {
    "a challenge is not used up": replaced(store.challenges, "take", not_used_up),
    "the origin is not compared": any_origin,
    "a frame of another site is accepted": replaced(webauthn, "_client_data", in_any_frame),
    "the rp id is not compared": lambda patch, _: patch.setattr("fido2.server.constant_time", _Alike),
    "the signature is not checked": lambda patch, _: patch.setattr("fido2.cose.ES256.verify", nothing),
    "user verification is not asked for": replaced(webauthn, "_state", user_present_only),
    "the sign counter is not checked": all_of(
        replaced(passkeys, "has_risen", yes), shorter(store.passkeys, "_USE", f" AND {_RISES}")
    ),
    "a challenge of another account is accepted": shorter(
        store.challenges, "_TAKE", " AND coalesce(user_id, '') = :user_id"
    ),
    "a passkey of another account is accepted": all_of(
        replaced(passkeys, "take", of_anybody),
        shorter(store.passkeys, "_USE", "user_id = :user_id AND "),
    ),
    "a challenge of another purpose is accepted": shorter(store.challenges, "_TAKE", " AND purpose = :purpose"),
    "a challenge does not expire": shorter(store.challenges, "_TAKE", " AND expires_at > :now"),
    "the account that the authenticator names is not compared": replaced(ceremonies, "_is_owner", yes),
    "the last passkey is deleted without the password": replaced(store.passkeys, "count", _two),
    "a registration outlives the password": replaced(store.challenges, "clear", _clear_nothing),
}


async def first_success(server: InProcessServer, plant: Plant, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """The first attack that succeeds with this fault; what it needs is made before, on a server without it."""
    for name, attack in ATTACKS.items():
        at = Scene(server, await server.person(), await server.person())
        await at.set_up()
        with no_stale_names(), monkeypatch.context() as patch:
            plant(patch, server)
            try:
                if await attack(at):
                    return name
            except AssertionError:  # the fault stops what comes before the attack
                continue
    return None


@async_test
async def test_no_attack_succeeds(open_server: OpenServer) -> None:
    """On a server as it is."""
    async with open_server(public_url=ORIGIN) as server:
        for name, attack in ATTACKS.items():
            at = Scene(server, await server.person(), await server.person())
            await at.set_up()
            assert not await attack(at), name


@pytest.mark.parametrize("fault", some("faults of passkey logins", FAULTS))
@async_test
async def test_a_planted_fault_is_caught(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """With one guard taken out, one of the attacks succeeds."""
    async with open_server(public_url=ORIGIN) as server:
        caught = await first_success(server, FAULTS[fault], monkeypatch)
    assert caught, "not noticed"
    print(f"{fault}: {caught}")  # noqa: T201 - what caught it, for who writes the page


def test_the_faults_are_listed() -> None:
    """Whoever reads the page learns which faults were planted."""
    text = PAGE.read_text("utf-8")
    assert [fault for fault in FAULTS if f"| {fault} |" not in text] == []
