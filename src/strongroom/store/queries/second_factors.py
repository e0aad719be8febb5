"""Second factors: the sealed secrets of one-time codes, and the hashes of recovery codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from strongroom.model import OneTimeCode
from strongroom.store.statement import Sql, columns, delete_earliest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strongroom.store.database import Tx


class SealedCode(Struct, frozen=True):
    """A sealed secret with its owner."""

    user_id: str
    confirmed: int
    sealed: str

    def __repr__(self) -> str:
        return f"SealedCode(user_id={self.user_id!r})"


_GET = Sql(f"""
    SELECT {columns(OneTimeCode)} FROM one_time_codes
     WHERE user_id = :user_id AND confirmed = :confirmed AND created_at > :after
""")
_BEGIN = Sql("""
    INSERT INTO one_time_codes (user_id, confirmed, key_id, sealed, last_step, created_at)
    VALUES (:user_id, 0, :key_id, :sealed, 0, :now)
    ON CONFLICT (user_id, confirmed)
    DO UPDATE SET key_id = excluded.key_id, sealed = excluded.sealed, created_at = excluded.created_at
""")
_CONFIRM = Sql("""
    UPDATE one_time_codes SET confirmed = 1, last_step = :step, created_at = :now
     WHERE user_id = :user_id AND confirmed = 0 AND created_at = :created_at
""")
# Each step counts once, on all nodes: of two requests with one code, the second finds the step used.
_USE_STEP = Sql("""
    UPDATE one_time_codes SET last_step = :step
     WHERE user_id = :user_id AND confirmed = 1 AND created_at = :created_at AND last_step < :step
""")
_NEXT_KEY = Sql("SELECT min(key_id) FROM one_time_codes WHERE key_id > :after")
_COUNT_UNDER = Sql("SELECT count(*) FROM one_time_codes WHERE key_id = :key_id")
_SEALED_UNDER = Sql(f"""
    SELECT {columns(SealedCode)} FROM one_time_codes
     WHERE key_id = :key_id AND (user_id, confirmed) > (:user_id, :confirmed) ORDER BY user_id, confirmed LIMIT :limit
""")
_RESEAL = Sql("""
    UPDATE one_time_codes SET key_id = :key_id, sealed = :sealed
     WHERE user_id = :user_id AND confirmed = :confirmed AND sealed = :before
""")
_DELETE = Sql("DELETE FROM one_time_codes WHERE user_id = :user_id AND confirmed = :confirmed")
_PURGE = delete_earliest("one_time_codes", "created_at", "confirmed = 0")
_ADD_RECOVERY = Sql("INSERT INTO recovery_codes (user_id, code_hash) VALUES (:user_id, :code_hash)")
_HAS_RECOVERY = Sql("SELECT 1 FROM recovery_codes WHERE user_id = :user_id AND code_hash = :code_hash")
_COUNT_RECOVERY = Sql("SELECT count(*) FROM recovery_codes WHERE user_id = :user_id")
_USE_RECOVERY = Sql("DELETE FROM recovery_codes WHERE user_id = :user_id AND code_hash = :code_hash")
_CLEAR_RECOVERY = Sql("DELETE FROM recovery_codes WHERE user_id = :user_id")


async def get(tx: Tx, user_id: str, *, confirmed: bool, after: int = 0) -> OneTimeCode | None:
    """The one-time codes of an account that count; or the ones whose enrolment began after a time."""
    return await tx.one(OneTimeCode, _GET, user_id=user_id, confirmed=int(confirmed), after=after)


async def begin(tx: Tx, user_id: str, key_id: str, sealed: str) -> None:
    """Begin an enrolment, in the place of one that was begun before."""
    await tx.run(_BEGIN, user_id=user_id, key_id=key_id, sealed=sealed, now=tx.now)


async def confirm(tx: Tx, user_id: str, step: int, created_at: int) -> bool:
    """Let the enrolment that was begun at this time count, in the place of the codes before; False if there is none."""
    await delete(tx, user_id, confirmed=True)
    return await tx.run(_CONFIRM, user_id=user_id, step=step, created_at=created_at, now=tx.now) > 0


async def use_step(tx: Tx, user_id: str, step: int, created_at: int) -> bool:
    """Use up a step; False if it, or a later one, was used before."""
    return await tx.run(_USE_STEP, user_id=user_id, step=step, created_at=created_at) > 0


async def keys(tx: Tx) -> list[str]:
    """The ids of the keys under which secrets are sealed, each found by one search."""
    found: list[str] = []
    while (key_id := await tx.value(_NEXT_KEY, after=found[-1] if found else "")) is not None:
        found.append(key_id)
    return found


async def count_under(tx: Tx, key_id: str) -> int:
    """How many secrets are sealed under this key."""
    count: int = await tx.value(_COUNT_UNDER, key_id=key_id)
    return count


async def sealed_under(tx: Tx, key_id: str, after: tuple[str, int], limit: int) -> list[SealedCode]:
    """Some of the secrets that are sealed under this key, after this account and this state."""
    user_id, confirmed = after
    return await tx.all(SealedCode, _SEALED_UNDER, key_id=key_id, user_id=user_id, confirmed=confirmed, limit=limit)


async def reseal(tx: Tx, code: SealedCode, key_id: str, sealed: str) -> None:
    """Replace a sealed secret, unless it has changed meanwhile."""
    await tx.run(
        _RESEAL, user_id=code.user_id, confirmed=code.confirmed, before=code.sealed, key_id=key_id, sealed=sealed
    )


async def delete(tx: Tx, user_id: str, *, confirmed: bool) -> bool:
    """Delete the one-time codes that count, or the ones whose enrolment has begun; False if there are none."""
    return await tx.run(_DELETE, user_id=user_id, confirmed=int(confirmed)) > 0


async def replace_recovery_codes(tx: Tx, user_id: str, hashes: Iterable[str]) -> None:
    """Replace the recovery codes of an account."""
    await tx.run(_CLEAR_RECOVERY, user_id=user_id)
    for code_hash in hashes:
        await tx.run(_ADD_RECOVERY, user_id=user_id, code_hash=code_hash)


async def has_recovery_code(tx: Tx, user_id: str, code_hash: str) -> bool:
    """Whether this is a recovery code that was not used yet."""
    return await tx.value(_HAS_RECOVERY, user_id=user_id, code_hash=code_hash) is not None


async def count_recovery_codes(tx: Tx, user_id: str) -> int:
    """How many recovery codes are left."""
    count: int = await tx.value(_COUNT_RECOVERY, user_id=user_id)
    return count


async def use_recovery_code(tx: Tx, user_id: str, code_hash: str) -> bool:
    """Use up a recovery code; False if it was used before."""
    return await tx.run(_USE_RECOVERY, user_id=user_id, code_hash=code_hash) > 0


async def purge(tx: Tx, reached: int, before: int, limit: int) -> list[int]:
    """Delete some enrolments that began from `reached` to this timestamp and were never confirmed; when."""
    return await tx.all(int, _PURGE, reached=reached, before=before, limit=limit)
