"""Invitations to register, where sign-ups are closed: made by the operator, used by one registration each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import identifiers, store
from strongroom.errors import EmailAlreadyExists, InvalidInvitation
from strongroom.model import Invitation
from strongroom.rules import DAY, INVITATION_DAYS, TAKEN_EMAILS

if TYPE_CHECKING:
    from strongroom.actions.retention import Sweep
    from strongroom.store import Tx


async def create(tx: Tx, code_hash: str, email: str | None, note: str | None, lifetime: int) -> Invitation:
    """Create an invitation; one for an email that has an account would be of no use."""
    if email is not None and await store.accounts.by_email(tx, email) is not None:
        raise EmailAlreadyExists
    made = Invitation(identifiers.new_uid(tx.now), email, note, tx.now, tx.now + lifetime, 0, None, None, None)
    await store.invitations.insert(tx, made, code_hash)
    return made


async def is_usable(tx: Tx, code_hash: str, email: str) -> bool:
    """Whether this email may register with the code."""
    return await store.invitations.is_usable(tx, code_hash, email, TAKEN_EMAILS)


async def count_taken_email(tx: Tx, code_hash: str, email: str) -> None:
    """Count an attempt with an email that has an account.

    After so many the code is refused: it does not tell its holder who else has an account.
    """
    if not await store.invitations.count_taken(tx, code_hash, email, TAKEN_EMAILS):
        raise InvalidInvitation


async def use(tx: Tx, code_hash: str, email: str, user_id: str) -> None:
    """Use the code up for an account that is created in the same transaction; of two at once, one is refused."""
    if not await store.invitations.use(tx, code_hash, email, TAKEN_EMAILS, user_id):
        raise InvalidInvitation


async def purge_some(tx: Tx, sweep: Sweep) -> bool:
    """Delete some invitations that were used, or have expired, some time ago; whether there may be more."""
    return await sweep.delete(tx, store.invitations.purge, tx.now - INVITATION_DAYS * DAY)
