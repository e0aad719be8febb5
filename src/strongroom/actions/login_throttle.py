"""Login throttle: failures are counted by address, and by account and address together; wrong codes also by account."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

from strongroom import store
from strongroom.actions import events
from strongroom.errors import RateLimited
from strongroom.model import EventType
from strongroom.rules import DAY, FAILURE_WINDOW, FAILURES_PER_ACCOUNT, FAILURES_PER_ADDRESS, HOUR

if TYPE_CHECKING:
    from strongroom.actions.retention import Sweep
    from strongroom.model import Origin
    from strongroom.store import Tx

_NOBODY: Final = "00000000-0000-0000-0000-000000000000"  # the id of no account


def account_label(email: str) -> str:
    """The label of an email in the failure count: a hash, so that emails without an account are not stored."""
    return hashlib.sha256(email.encode()).hexdigest()[:32]


def prelogin_label(account: str) -> str:
    """The label of prelogin requests in the failure count: they count for the address, not for the account."""
    return f"asked {account}"


def code_label(user_id: str) -> str:
    """The label of an account's wrong one-time codes in the failure count.

    They count for their address, and once more with the label in the place of it: from all addresses together.
    """
    return f"code {account_label(user_id)}"


async def check_address(tx: Tx, address: str) -> None:
    """Refuse an address that has failed too often."""
    lately = await store.failures.count_of_address(tx, address, tx.now - DAY)
    window = _window(lately, FAILURES_PER_ADDRESS)
    full = await store.failures.nth_of_address(tx, address, tx.now - window, FAILURES_PER_ADDRESS)
    if full is not None:
        raise RateLimited(_wait(tx, full + window))


async def remaining_attempts(tx: Tx, address: str, account: str) -> int:
    """How many more failures this account may have from this address; refuses if none."""
    await check_address(tx, address)
    lately = await store.failures.count_of_account(tx, address, account, tx.now - DAY)
    window = _window(lately, FAILURES_PER_ACCOUNT)
    full = await store.failures.nth_of_account(tx, address, account, tx.now - window, FAILURES_PER_ACCOUNT)
    if full is not None:
        raise RateLimited(_wait(tx, full + window))
    return FAILURES_PER_ACCOUNT - await store.failures.count_of_account(tx, address, account, tx.now - window)


async def check_again(tx: Tx, address: str, account: str) -> None:
    """Check under the address's lock: concurrent attempts may have used up what was left. For correct passwords too."""
    await store.failures.lock_address(tx, address)
    await remaining_attempts(tx, address, account)


async def record_failed_login(tx: Tx, address: str, account: str, user_id: str | None, origin: Origin) -> None:
    """Record a wrong password; refuses with RateLimited if concurrent attempts have used up what was left.

    Without an account the statements are the same, and those for its log find nothing.
    """
    await check_again(tx, address, account)
    await store.failures.add(tx, address, account)
    await events.record(tx, user_id or _NOBODY, EventType.LOGIN_FAILED, origin)


async def check_codes(tx: Tx, address: str, user_id: str) -> None:
    """Refuse a one-time code from an address that has failed too often, or for an account with too many wrong codes.

    It locks both until commit: a wrong code is counted before the next is checked. A code has few digits, so wrong ones
    count from all addresses together, and a correct password does not clear them.
    """
    label = code_label(user_id)
    await store.failures.lock_address(tx, address)
    await store.failures.lock_address(tx, label)
    await check_address(tx, address)
    await remaining_attempts(tx, label, label)


async def record_failed_code(tx: Tx, address: str, user_id: str) -> None:
    """Record a wrong one-time code, after `check_codes`."""
    label = code_label(user_id)
    await store.failures.add(tx, address, label)
    await store.failures.add(tx, label, label)


async def clear_failed_codes(tx: Tx, user_id: str) -> int:
    """Delete the recorded wrong codes of an account, after a right one; how many codes there were."""
    return await store.failures.clear_account(tx, code_label(user_id)) // 2


async def record_failed_secret(tx: Tx, address: str) -> None:
    """Record an invalid token or API key; refuses with RateLimited once the address has failed too often."""
    await store.failures.lock_address(tx, address)
    await check_address(tx, address)
    await store.failures.add(tx, address, "")


async def record_prelogin(tx: Tx, address: str, account: str) -> None:
    """Count a prelogin request as a failure of the address, until a correct password clears it."""
    await store.failures.lock_address(tx, address)
    await check_address(tx, address)
    await store.failures.add(tx, address, prelogin_label(account))


async def clear_failures(tx: Tx, address: str, account: str) -> None:
    """Delete the failures and prelogin requests of an account from this address, after a correct password."""
    await store.failures.clear(tx, address, account)
    await store.failures.clear(tx, address, prelogin_label(account))


async def record_signup(tx: Tx, address: str, limit: int) -> None:
    """Count a registration attempt, successful or not; refuses after too many in an hour. 0 does not limit."""
    if not limit:
        return
    await store.failures.lock_address(tx, address)
    full = await store.signups.nth(tx, address, tx.now - HOUR, limit)
    if full is not None:
        raise RateLimited(_wait(tx, full + HOUR), "Too many registrations from this address; try again later.")
    await store.signups.add(tx, address)


async def purge_some(tx: Tx, sweep: Sweep) -> bool:
    """Delete some failures and registrations that are too old to count; whether there may be more."""
    return await sweep.delete(tx, store.failures.purge, tx.now - DAY) or await sweep.delete(
        tx, store.signups.purge, tx.now - HOUR
    )


def _window(lately: int, limit: int) -> int:
    """How long failures count: 15 minutes, doubled with repeated failures, up to four hours."""
    return FAILURE_WINDOW << min(4, max(0, lately // limit - 1))


def _wait(tx: Tx, until: int) -> int:
    """Whole seconds until this time, at least one."""
    return max(1, -(-(until - tx.now) // 1000))
