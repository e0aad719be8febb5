"""The thread pool that hashes passwords, and its health check."""

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

MOST_WAITING: Final = 128  # more are refused
WORKING_SECONDS: Final = 30.0  # after a finished hash the pool counts as working
_TIMEOUT_SECONDS: Final = 2.0  # of the health check


class PasswordPool:
    """A pool of low-priority threads for password hashes, with a bounded queue."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._pool = credentials.hashing_pool(self._log_priority)
        self._priority_logged = self._failing = False
        self._finished_at = self._started_at = float("-inf")
        self.waiting = 0

    async def run(self, work: Callable[..., Any], *args: str) -> Any:
        """Run a function on a thread of the pool; refused when too many wait."""
        if self.waiting >= MOST_WAITING:
            raise Unavailable(2, "Too many people are logging in at the moment; try again shortly.")
        self.waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._work, work, args)
        except Exception:
            self._finished_at = float("-inf")  # the next health check runs a probe
            raise
        finally:
            self.waiting -= 1

    def _work(self, work: Callable[..., Any], args: tuple[str, ...]) -> Any:
        """Run on the thread, and record that it finished, even if the caller was cancelled."""
        self._started_at = time.monotonic()
        result = work(*args)
        self._finished_at = time.monotonic()
        return result

    async def works(self) -> bool:
        """Health check: whether a password was hashed recently, or can be hashed now.

        On a busy machine a hash can take seconds, because the threads have a low priority: one that was started is
        enough. If threads hang, all of them are soon taken, and none starts.
        """
        began = time.monotonic()
        if began - self._finished_at < WORKING_SECONDS:
            return True
        try:
            async with await timeout(_TIMEOUT_SECONDS):
                await self.run(credentials.hash_password, "a probe")
        except (Unavailable, TimeoutError):
            return max(self._started_at, self._finished_at) >= began
        except Exception as error:  # noqa: BLE001 - whatever it is, no login can succeed
            if not self._failing:
                self._log.fault(error, "ready")
            self._failing = True
            return False
        self._failing = False
        return True

    def _log_priority(self, error: OSError) -> None:
        if not self._priority_logged:
            self._priority_logged = True
            self._log.say(
                "info",
                f"The threads that hash passwords keep their normal priority: the system refuses a lower one "
                f"({error.strerror}). Many logins at once may slow other requests.",
            )

    def close(self) -> None:
        """Shut the pool down, without waiting."""
        self._pool.shutdown(wait=False, cancel_futures=True)
