"""Access status: which sessions and API keys behind event streams are still valid, of one account or of many."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from strongroom.store.queries.accounts import IS_THERE
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from strongroom.store.database import Tx

_ACCOUNT = Sql(f"SELECT COALESCE(disabled_at, 0) FROM users WHERE id = :user_id AND {IS_THERE}")
_SESSIONS = Sql("SELECT id FROM sessions WHERE user_id = :user_id")
_KEYS = Sql("SELECT uid FROM api_keys WHERE user_id = :user_id")
# The parameter is a JSON list of pairs: one prepared statement serves any number of them.
_ADVANCED = Sql(
    sqlite="""
        SELECT l.user_id, l.clock FROM json_each(:pairs) AS a CROSS JOIN ledgers AS l
         WHERE l.user_id = a.value ->> 0 AND l.clock > a.value ->> 1
    """,
    postgres="""
        SELECT l.user_id, l.clock FROM jsonb_array_elements(:pairs::jsonb) AS a (value)
          JOIN ledgers AS l ON l.user_id = a.value ->> 0
         WHERE l.clock > (a.value ->> 1)::bigint
    """,
)


def _missing_or_disabled(table: str, column: str) -> Sql:
    missing = (
        f"NOT EXISTS (SELECT 1 FROM {table} WHERE user_id = a.value ->> 0 AND {column} = a.value ->> 1)"
        " OR EXISTS (SELECT 1 FROM users WHERE id = a.value ->> 0 AND disabled_at IS NOT NULL)"
    )
    return Sql(
        sqlite=f"SELECT DISTINCT a.value ->> 0 FROM json_each(:pairs) AS a WHERE {missing}",
        postgres=f"SELECT DISTINCT a.value ->> 0 FROM jsonb_array_elements(:pairs::jsonb) AS a (value) WHERE {missing}",
    )


_ENDED, _REVOKED = _missing_or_disabled("sessions", "id"), _missing_or_disabled("api_keys", "uid")
Credential = tuple[str, str]  # an account, and one of its sessions or keys


class AccessStatus(NamedTuple):
    """Whether an account is there, whether it is disabled, and which sessions and keys it has."""

    account: bool
    disabled: bool
    sessions: frozenset[str]
    keys: frozenset[str]


class Clock(NamedTuple):
    """An account and its clock."""

    user_id: str
    clock: int


async def of_account(tx: Tx, user_id: str) -> AccessStatus:
    """The access status of one account."""
    disabled_at = await tx.value(_ACCOUNT, user_id=user_id)
    sessions = await tx.all(str, _SESSIONS, user_id=user_id)
    keys = await tx.all(str, _KEYS, user_id=user_id)
    return AccessStatus(disabled_at is not None, bool(disabled_at), frozenset(sessions), frozenset(keys))


async def advanced(tx: Tx, seen: Mapping[str, int]) -> list[Clock]:
    """The accounts of these whose clock is beyond what was seen of it."""
    return await tx.all(Clock, _ADVANCED, pairs=_json(seen.items()))


async def revoked(tx: Tx, sessions: Collection[Credential], keys: Collection[Credential]) -> set[str]:
    """The accounts of these of which a session or a key is gone, or which are disabled."""
    ended = await tx.all(str, _ENDED, pairs=_json(sessions)) if sessions else []
    revoked = await tx.all(str, _REVOKED, pairs=_json(keys)) if keys else []
    return {*ended, *revoked}


def _json(pairs: Collection[tuple[str, str | int]]) -> str:
    return msgspec.json.encode(list(pairs)).decode()
