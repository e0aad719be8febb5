"""Hundreds of ceremonies with passkeys, right and damaged: none that is wrong is accepted, and none is a fault."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from tests.kit.asynchronous import async_test
from tests.kit.people.passkeys import ORIGIN, RP_ID
from tests.kit.people.soft_authenticator import EDDSA, ES256, RS256, SoftPasskey, b64, unb64
from tests.kit.people.wrong_ceremonies import ASSERTION, BOTH, REGISTRATION
from tests.kit.samples import SEED, rounds
from tests.security.conftest import Nodes
from tests.security.fixtures import PASSWORD, Account, Stage

ROUNDS = rounds(400, 5_000, "CEREMONIES")
JUNK: tuple[Any, ...] = (None, 0, -1, True, "", "AA", "=", "ä", "A" * 20_000, [], {}, [[]], {"a": 1}, 1e300, "\x00")


class Ceremonies:
    """Accounts with one passkey each, and ceremonies of all kinds with them."""

    def __init__(self, stage: Stage, chance: random.Random) -> None:
        self.stage = stage
        self.chance = chance
        self.owners: list[tuple[Account, SoftPasskey]] = []
        self.seen: list[dict[str, Any]] = []  # assertions that were sent before

    async def set_up(self) -> None:
        """Three accounts, each with a passkey of another algorithm."""
        for algorithm in (ES256, EDDSA, RS256):
            account = await self.stage.register("owner")
            body = {"currentPassword": PASSWORD}
            options = await self._options("/auth/passkeys/registration/options", account.access, body)
            passkey = SoftPasskey(RP_ID, unb64(options["user"]["id"]), algorithm)
            answer = await self._register(account, passkey.register(options, ORIGIN))
            assert answer[0] == 201, answer
            self.owners.append((account, passkey))

    async def _options(self, path: str, bearer: str | None, body: Any = None) -> dict[str, Any]:
        answer = await self.stage.send("POST", path, bearer, body)
        assert answer.status == 200, answer
        found: dict[str, Any] = answer.json()["publicKey"]
        return found

    async def _register(self, account: Account, credential: Any) -> tuple[int, Any]:
        body = {"name": "a key", "credential": credential}
        answer = await self.stage.send("POST", "/auth/passkeys", account.access, body)
        return answer.status, answer.json()

    async def play(self) -> tuple[str, bool, int]:
        """One ceremony: what was done, whether it was right, the status of the response."""
        account, passkey = self.chance.choice(self.owners)
        ceremony = self.chance.choice(("login", "login", "proof", "registration"))
        if ceremony == "registration":
            return await self._play_registration(account, passkey)
        if ceremony == "login":
            options = await self._options("/auth/passkeys/login/options", None, {})
            how, credential = self._assertion(passkey, options)
            answer = await self.stage.send("POST", "/auth/passkeys/login", None, {"credential": credential})
            if answer.status == 200:  # an account has a hundred sessions at most, and the first is still needed
                access = answer.json()["accessToken"]
                assert (await self.stage.send("POST", "/auth/logout", access)).status == 200
        else:
            options = await self._options("/auth/passkeys/proof/options", account.access)
            how, credential = self._assertion(passkey, options)
            path = "/auth/passkeys/registration/options"
            answer = await self.stage.send("POST", path, account.access, {"passkey": credential})
        is_right = how == "right" or (how == "no userHandle" and ceremony == "proof")  # there the account is known
        return f"{ceremony}: {how}", is_right, answer.status

    def _assertion(self, passkey: SoftPasskey, options: dict[str, Any]) -> tuple[str, Any]:
        """An assertion, with something wrong in two of three."""
        fault = self.chance.randrange(9)
        if fault < 3:
            made = passkey.assertion(options, ORIGIN)
            self.seen.append(json.loads(json.dumps(made)))
            return "right", made
        if fault < 5:
            how, wrong = self.chance.choice(sorted((BOTH | ASSERTION).items()))
            return how, passkey.assertion(options, ORIGIN, **wrong)
        if fault == 5 and self.seen:
            return "sent before", self.chance.choice(self.seen)
        if fault == 6:
            other = self.chance.choice([one for _, one in self.owners if one is not passkey])
            mixed = passkey.assertion(options, ORIGIN, user_handle=other.user_handle)
            if self.chance.random() < 0.5:
                mixed = {**other.assertion(options, ORIGIN), "id": passkey.credential_id}
            return "of another account", mixed
        made = passkey.assertion(options, ORIGIN)
        return self._damaged(made, ["id", "clientDataJSON", "authenticatorData", "signature", "userHandle"])

    def _damaged(self, made: dict[str, Any], names: list[str]) -> tuple[str, Any]:
        """A response in which one field is cut, longer, flipped, or something else entirely."""
        name = self.chance.choice(names)
        place = made if name == "id" else made["response"]
        data = bytearray(unb64(place[name]))
        how = self.chance.choice(("flipped", "cut", "longer", "junk"))
        if how == "flipped":
            data[self.chance.randrange(len(data))] ^= 1 << self.chance.randrange(8)
        elif how == "cut":
            del data[self.chance.randrange(len(data)) :]
        elif how == "longer":
            data += self.chance.randbytes(self.chance.randint(1, 300))
        place[name] = self.chance.choice(JUNK) if how == "junk" else b64(bytes(data))
        if name == "userHandle" and place[name] is None:
            return "no userHandle", made
        return f"{name} {how}", made

    async def _play_registration(self, account: Account, passkey: SoftPasskey) -> tuple[str, bool, int]:
        """A registration. Nothing signs it, so a damaged one may be as good as another: it only must be no fault."""
        asked = await self._options("/auth/passkeys/proof/options", account.access)
        proof = {"passkey": passkey.assertion(asked, ORIGIN)}
        options = await self._options("/auth/passkeys/registration/options", account.access, proof)
        made = SoftPasskey(RP_ID, unb64(options["user"]["id"]), self.chance.choice((ES256, EDDSA)))
        is_right, how = True, "right"
        if self.chance.random() < 0.5:
            how, wrong = self.chance.choice(sorted((BOTH | REGISTRATION).items()))
            credential, is_right = made.register(options, ORIGIN, **wrong), False
        elif self.chance.random() < 0.5:
            how, credential = self._damaged(
                made.register(options, ORIGIN), ["id", "clientDataJSON", "attestationObject"]
            )
        else:
            credential = made.register(options, ORIGIN)
        status, body = await self._register(account, credential)
        if status == 201:
            asked = await self._options("/auth/passkeys/proof/options", account.access)
            proof = {"passkey": passkey.assertion(asked, ORIGIN)}
            path = f"/auth/passkeys/{body['passkey']['uid']}"
            assert (await self.stage.send("DELETE", path, account.access, proof)).status == 200
        assert how != "right" or status == 201, body
        return f"registration: {how}", is_right if how == "right" else status == 201 and is_right, status


@async_test
async def test_random_ceremonies(nodes: Nodes) -> None:
    """Right, wrong in one part, damaged anywhere, sent again, mixed with another account's; the seed is fixed."""
    chance = random.Random(f"{SEED} {ROUNDS}")  # noqa: S311
    async with nodes({"public_url": ORIGIN}) as (stage,):
        ceremonies = Ceremonies(stage, chance)
        await ceremonies.set_up()
        accepted = 0
        for number in range(ROUNDS):
            how, is_right, status = await ceremonies.play()
            told = f"ceremony {number} of {SEED}, {how}: {status}"
            assert status in ({200, 201} if is_right else {400, 401, 409}), told
            accepted += is_right
    assert 0.2 * ROUNDS < accepted < 0.6 * ROUNDS, accepted


@pytest.mark.parametrize("junk", JUNK, ids=repr)
@async_test
async def test_junk_is_no_fault(nodes: Nodes, junk: Any) -> None:
    """In the place of each field that the routes of passkeys read, and of the fields within."""
    async with nodes({"public_url": ORIGIN}) as (stage,):
        account = await stage.register("owner")
        whole = SoftPasskey(RP_ID, bytes(16)).assertion({"challenge": b64(bytes(32))}, ORIGIN)
        bodies = [junk, *({name: junk} for name in ("ticket", "credential", "passkey", "name", "secondFactor", "prf"))]
        bodies += [{"credential": {**whole, name: junk}} for name in (*whole, "clientExtensionResults")]
        bodies += [
            {"credential": {**whole, "response": {**whole["response"], name: junk}}} for name in whole["response"]
        ]
        bodies += [{"passkey": body["credential"]} for body in bodies[7:]]
        for body in bodies:
            for method, path in (
                ("POST", "/auth/passkeys/registration/options"),
                ("POST", "/auth/passkeys"),
                ("PUT", "/auth/passkeys/x"),
                ("DELETE", "/auth/passkeys/x"),
                ("POST", "/auth/passkeys/login/options"),
                ("POST", "/auth/passkeys/login"),
                ("POST", "/auth/passkeys/proof/options"),
            ):
                answer = await stage.send(method, path, account.access, body)
                assert answer.status < 500, (method, path, body, answer)
