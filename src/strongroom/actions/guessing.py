"""Guessing is slow: failures are counted by address, and by account and address together."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from strongroom import store
from strongroom.errors import RateLimited
from strongroom.rules import GUESS_WINDOW, GUESSES_PER_ACCOUNT, GUESSES_PER_ADDRESS

if TYPE_CHECKING:
    from strongroom.store import Tx


def account_label(email: str) -> str:
    """How an account is named in the count, known or not: the count need not hold the emails of strangers."""
    return hashlib.sha256(email.encode()).hexdigest()[:32]


async def admit_address(tx: Tx, address: str) -> None:
    """Refuse an address that has failed too often, whatever it asks for now."""
    full = await store.failures.nth_of_address(tx, address, tx.now - GUESS_WINDOW, GUESSES_PER_ADDRESS)
    if full is not None:
        raise RateLimited(_wait(tx, full))


async def room_for(tx: Tx, address: str, account: str) -> int:
    """How many more failures this account may have from this address; refuses when there is room for none."""
    await admit_address(tx, address)
    after = tx.now - GUESS_WINDOW
    full = await store.failures.nth_of_account(tx, address, account, after, GUESSES_PER_ACCOUNT)
    if full is not None:
        raise RateLimited(_wait(tx, full))
    return GUESSES_PER_ACCOUNT - await store.failures.count_of_account(tx, address, account, after)


async def failed(tx: Tx, address: str, account: str) -> None:
    """Note a wrong password. Refuses in other words if others, on other nodes, have used up the tries meanwhile."""
    await store.failures.take_turns(tx, address)
    await room_for(tx, address, account)
    await _add(tx, address, account)


async def failed_secret(tx: Tx, address: str) -> None:
    """Note that a token or key was wrong; refuses in other words once the address has failed too often."""
    await store.failures.take_turns(tx, address)
    await admit_address(tx, address)
    await _add(tx, address, "")


async def _add(tx: Tx, address: str, account: str) -> None:
    """Count it, and forget those that are too old to count."""
    await store.failures.add(tx, address, account)
    await store.failures.purge(tx, tx.now - GUESS_WINDOW)


def _wait(tx: Tx, full: int) -> int:
    """Whole seconds until the failure that fills the count is too old to count."""
    return max(1, -(-(full + GUESS_WINDOW - tx.now) // 1000))
