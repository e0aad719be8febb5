"""Invitations at the time of a test's clock."""

from __future__ import annotations

from strongroom import credentials
from strongroom.actions import invitations
from strongroom.rules import DAY
from strongroom.store import Database


async def invite(db: Database, email: str | None = None, lifetime: int = 7 * DAY) -> str:
    """Create an invitation, as the operator's command does; its code."""
    code, code_hash = credentials.new_invitation()
    await db.write(invitations.create, code_hash, email, None, lifetime)
    return code
