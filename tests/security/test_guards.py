"""Guards that nothing else would notice the lack of; each was found by `make mutation`."""

from __future__ import annotations

import pytest

from strongroom.actions import accounts
from strongroom.errors import Refusal
from strongroom.model import Actor
from strongroom.rules import GUESS_WINDOW, GUESSES_PER_ACCOUNT
from tests.conftest import Open, runs


@runs
async def test_failures_at_other_accounts_do_not_lengthen_the_wait_for_one(house: Open) -> None:
    """Who goes on guessing at one account waits longer for that one, and not for another."""
    async with house() as home:
        own = await home.person()
        others = [await home.person() for _ in range(3)]
        for person in (*others, own):
            for _ in range(GUESSES_PER_ACCOUNT):
                assert (await home.login(person.email, "wrong")).status_code == 401
        assert (await home.login(own.email)).status_code == 429
        home.clock.pass_(GUESS_WINDOW + 1)
        assert (await home.login(own.email)).status_code == 200


@runs
async def test_a_password_that_was_replaced_meanwhile_does_not_delete_the_account(house: Open) -> None:
    """The hash that was checked must still be the stored one, as at a login."""
    async with house() as home:
        person = await home.person()
        db = home.server._room.db
        checked = (await db.read(accounts.for_proof, Actor(person.id))).password_hash
        passwords = {"currentPassword": "correct horse", "newPassword": "correct horses"}
        assert (await person("PUT", "/auth/password", passwords)).status_code == 200
        with pytest.raises(Refusal):
            await db.write(accounts.delete, Actor(person.id), checked)
        assert (await home.login(person.email, "correct horses")).status_code == 200
