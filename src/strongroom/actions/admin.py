"""Administration of accounts by an operator. Each action is recorded in the account's log, for its owner to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, rules, store
from strongroom.actions import deletions, events, login_throttle, second_factors
from strongroom.model import EventType, Origin

if TYPE_CHECKING:
    from strongroom.model import Account
    from strongroom.store import Tx

OPERATOR = Origin("operator", "command line")


async def find(tx: Tx, email_or_id: str) -> Account | None:
    """The account with this email or id."""
    return await store.accounts.show(tx, identifiers.canonical(email_or_id) or rules.normalise_email(email_or_id))


async def disable(tx: Tx, user_id: str) -> bool:
    """Disable an account: its sessions and keys are refused from now on. False if it was disabled already."""
    changed = await store.accounts.disable(tx, user_id)
    if changed:
        await events.record(tx, user_id, EventType.DISABLED, OPERATOR)
    return changed


async def enable(tx: Tx, user_id: str) -> bool:
    """Enable an account again, with the sessions and keys that it had. False if it was not disabled."""
    changed = await store.accounts.enable(tx, user_id)
    if changed:
        await events.record(tx, user_id, EventType.ENABLED, OPERATOR)
    return changed


async def delete(tx: Tx, user_id: str) -> None:
    """Delete an account for good: at once for everybody, its rows in steps."""
    await store.ledgers.lock(tx, [user_id])  # waits for writes under way; one lock order prevents deadlocks
    await store.accounts.delete(tx, user_id)
    await deletions.add_account(tx, user_id)


async def sign_out(tx: Tx, user_id: str) -> int:
    """End every session of an account; the number of sessions ended."""
    ended = await store.sessions.end_all(tx, user_id)
    if ended:
        await events.record(tx, user_id, EventType.SESSION_ENDED, OPERATOR)
    return ended


async def reset_throttle(tx: Tx, email: str | None, address: str | None) -> int:
    """Delete the recorded failures of an email, with an account or not, and of an address; the number deleted."""
    deleted = 0
    if email is not None:
        deleted += await store.failures.clear_account(tx, login_throttle.account_label(email))
        login = await store.accounts.by_email(tx, email)
        deleted += 0 if login is None else await login_throttle.clear_failed_codes(tx, login.id)
    if address is not None:
        deleted += await store.failures.clear_address(tx, address)
    return deleted


async def reset_second_factor(tx: Tx, user_id: str) -> bool:
    """Delete the second factors of an account: its password is enough again. False if it has none."""
    return await second_factors.reset(tx, user_id, OPERATOR)


async def revoke(tx: Tx, user_id: str, uid: str) -> bool:
    """Revoke a key: it is refused from now on. False if there is none."""
    revoked = await store.keys.delete(tx, user_id, uid)
    if revoked:
        await events.record(tx, user_id, EventType.KEY_REVOKED, OPERATOR)
    return revoked
