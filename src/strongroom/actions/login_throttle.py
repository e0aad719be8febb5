"""Guessing is slow: failures are counted by address, and by account and address together."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from strongroom import store
from strongroom.actions import events
from strongroom.errors import RateLimited
from strongroom.model import EventType
from strongroom.rules import DAY, FAILURE_WINDOW, FAILURES_PER_ACCOUNT, FAILURES_PER_ADDRESS, HOUR

if TYPE_CHECKING:
    from strongroom.model import Origin
    from strongroom.store import Tx


def account_label(email: str) -> str:
    """How an account is named in the count, known or not: the count need not hold the emails of strangers."""
    return hashlib.sha256(email.encode()).hexdigest()[:32]


def prelogin_label(account: str) -> str:
    """How questions about an account are named in the count: they are no guesses at it, and count for the address."""
    return f"asked {account}"


async def check_address(tx: Tx, address: str) -> None:
    """Refuse an address that has failed too often, whatever it asks for now."""
    lately = await store.failures.count_of_address(tx, address, tx.now - DAY)
    window = _window(lately, FAILURES_PER_ADDRESS)
    full = await store.failures.nth_of_address(tx, address, tx.now - window, FAILURES_PER_ADDRESS)
    if full is not None:
        raise RateLimited(_wait(tx, full + window))


async def remaining_attempts(tx: Tx, address: str, account: str) -> int:
    """How many more failures this account may have from this address; refuses when there is room for none."""
    await check_address(tx, address)
    lately = await store.failures.count_of_account(tx, address, account, tx.now - DAY)
    window = _window(lately, FAILURES_PER_ACCOUNT)
    full = await store.failures.nth_of_account(tx, address, account, tx.now - window, FAILURES_PER_ACCOUNT)
    if full is not None:
        raise RateLimited(_wait(tx, full + window))
    return FAILURES_PER_ACCOUNT - await store.failures.count_of_account(tx, address, account, tx.now - window)


async def check_again(tx: Tx, address: str, account: str) -> None:
    """Refuse a right password too, if it came in a burst of so many guesses that others have used up the tries."""
    await store.failures.lock_address(tx, address)
    await remaining_attempts(tx, address, account)


async def record_failed_login(tx: Tx, address: str, account: str, user_id: str | None, origin: Origin) -> None:
    """Note a wrong password. Refuses in other words if others, on other nodes, have used up the tries meanwhile."""
    await check_again(tx, address, account)
    await _add(tx, address, account)
    if user_id is not None:
        await events.record(tx, user_id, EventType.LOGIN_FAILED, origin)


async def record_failed_secret(tx: Tx, address: str) -> None:
    """Note that a token or key was wrong; refuses in other words once the address has failed too often."""
    await store.failures.lock_address(tx, address)
    await check_address(tx, address)
    await _add(tx, address, "")


async def record_prelogin(tx: Tx, address: str, account: str) -> None:
    """Count a question about an account as a failure of the address, until a right password takes it back."""
    await store.failures.lock_address(tx, address)
    await check_address(tx, address)
    await _add(tx, address, prelogin_label(account))


async def clear_failures(tx: Tx, address: str, account: str) -> None:
    """Forget what an account's owner has failed at and asked for on the way to the right password."""
    await store.failures.clear(tx, address, account)
    await store.failures.clear(tx, address, prelogin_label(account))


async def record_signup(tx: Tx, address: str, most: int) -> None:
    """Count an attempt to register, whatever comes of it; refused after too many in an hour. 0 does not limit."""
    if not most:
        return
    await store.failures.lock_address(tx, address)
    full = await store.signups.nth(tx, address, tx.now - HOUR, most)
    if full is not None:
        raise RateLimited(_wait(tx, full + HOUR), "Too many registrations from this address; try again later.")
    await store.signups.add(tx, address)


async def purge(tx: Tx) -> None:
    """Forget what is too old to count."""
    await store.failures.purge(tx, tx.now - DAY)
    await store.signups.purge(tx, tx.now - HOUR)


async def _add(tx: Tx, address: str, account: str) -> None:
    await store.failures.add(tx, address, account)


def _window(lately: int, limit: int) -> int:
    """How long failures count: a quarter of an hour, and longer for who goes on, up to four hours. Never for ever."""
    return FAILURE_WINDOW << min(4, max(0, lately // limit - 1))


def _wait(tx: Tx, until: int) -> int:
    """Whole seconds until then."""
    return max(1, -(-(until - tx.now) // 1000))
