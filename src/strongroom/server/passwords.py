"""The threads on which passwords are hashed, and whether they do."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Final

from strongroom import credentials
from strongroom.errors import Unavailable
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.server.monitoring.log import Log

MOST_WAITING: Final = 128  # passwords that wait; more would only make everybody wait longer
PROVEN_SECONDS: Final = 30.0  # that a finished hash proves that the threads work
_TIMEOUT_SECONDS: Final = 2.0  # seconds for a probe


class PasswordPool:
    """Hashes on threads of low priority, so many at once and so many waiting."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._pool = credentials.hashing_pool(self._note_priority)
        self._noted = self._failing = False
        self._proven_at = self._begun_at = float("-inf")
        self.waiting = 0

    async def run(self, work: Callable[..., Any], *args: str) -> Any:
        """Run this on one of the threads; refused when too many wait."""
        if self.waiting >= MOST_WAITING:
            raise Unavailable(2, "Too many people are logging in at the moment; try again shortly.")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, work, args)
        except Exception:
            self._proven_at = float("-inf")  # whoever asks next looks anew
            raise
        finally:
            self.waiting -= 1

    def _work(self, work: Callable[..., Any], args: tuple[str, ...]) -> Any:
        """On the thread. It counts as a proof even if nobody waits for it any more."""
        self._begun_at = time.monotonic()
        result = work(*args)
        self._proven_at = time.monotonic()
        return result

    async def works(self) -> bool:
        """Whether a password can be hashed: one was a moment ago, or one is now.

        On a busy machine a hash can take seconds, for the threads have a low priority: one that a thread has begun is
        enough. Threads that never finish are soon all taken, and then none begins.
        """
        began = time.monotonic()
        if began - self._proven_at < PROVEN_SECONDS:
            return True
        try:
            async with await timeout(_TIMEOUT_SECONDS):
                await self.run(credentials.hash_password, "a probe")
        except (Unavailable, TimeoutError):
            return max(self._begun_at, self._proven_at) >= began
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody can log in
            if not self._failing:
                self._log.fault(error, "ready")
            self._failing = True
            return False
        self._failing = False
        return True

    def _note_priority(self, error: OSError) -> None:
        if not self._noted:
            self._noted = True
            self._log.say(
                "info",
                f"Threads that hash passwords keep their normal priority: the system refuses a lower one "
                f"({error.strerror}). Many logins at once may slow other requests.",
            )

    def close(self) -> None:
        """Begin nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
