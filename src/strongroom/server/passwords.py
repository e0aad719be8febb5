"""The thread pool that hashes passwords, with a queue in which addresses take turns, and its health check."""

from __future__ import annotations

import asyncio
import functools
import time
from typing import TYPE_CHECKING, Any, Final, NoReturn

from strongroom import credentials
from strongroom.errors import Unavailable
from strongroom.server.fair_queue import FairQueue, Place
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.server.monitoring.log import Log

MOST_WAITING: Final = 128  # more are refused; those of the address that has the most first
WAITING_PER_ADDRESS: Final = 64
WAITING_PER_ACCOUNT: Final = 16  # from all addresses together, the first of each address not counted
REFUSAL_SECONDS: Final = 1.0  # until a refusal is sent
WORKING_SECONDS: Final = 30.0  # after a finished hash the pool counts as working
_TIMEOUT_SECONDS: Final = 2.0  # of the health check
_PROBE: Final = Place("this server", "a probe")


class _Turn:
    """Password work that waits for its turn, and what becomes of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def refuse(self) -> None:
        if not self.result.done():
            self.result.set_exception(_too_many())


def _too_many() -> Unavailable:
    return Unavailable(2, "Too many people are logging in at the moment; try again shortly.")


class PasswordPool:
    """A pool of low-priority threads for password hashes, with a bounded queue that is fair to addresses."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._pool = credentials.hashing_pool(self._log_priority)
        self._queue: FairQueue[_Turn] = FairQueue(WAITING_PER_ACCOUNT)
        self._running = 0
        self._priority_logged = self._failing = False
        self._finished_at = self._started_at = float("-inf")

    @property
    def waiting(self) -> int:
        """How much work waits or is being done."""
        return len(self._queue) + self._running

    async def check_room(self, address: str) -> None:
        """Refuse an address that has no place left, before any work for it."""
        if not self._has_room(address):
            await self._refuse()

    async def run(self, place: Place, work: Callable[..., Any], *args: str) -> Any:
        """Run a function on a thread of the pool, in its turn; refused when too many wait."""
        if not (self._has_room(place.address) and self._queue.admits(place)):
            await self._refuse()
        if self.waiting >= MOST_WAITING:
            self._queue.remove_longest().refuse()
        turn = _Turn(functools.partial(work, *args))
        self._queue.add(place, turn)
        self._start()
        try:
            return await turn.result
        finally:
            self._queue.discard(place, turn)

    def _has_room(self, address: str) -> bool:
        """Whether the address has a place left, and there is one, or one that an address with more of them loses."""
        own = self._queue.count(address)
        return own < WAITING_PER_ADDRESS and (self.waiting < MOST_WAITING or own + 1 < self._queue.longest)

    async def _refuse(self) -> NoReturn:
        """Refuse, after a while: who asks again at once must not keep the event loop busy with refusals."""
        await asyncio.sleep(REFUSAL_SECONDS)
        raise _too_many()

    def _start(self) -> None:
        """Give free threads the work whose turn it is. Only what runs is with the threads: the rest keeps its order."""
        while self._running < credentials.HASHING_THREADS and (turn := self._queue.next()) is not None:
            self._running += 1
            done = asyncio.get_running_loop().run_in_executor(self._pool, self._work, turn.work)
            done.add_done_callback(functools.partial(self._finish, turn))

    def _finish(self, turn: _Turn, done: asyncio.Future[Any]) -> None:
        """Hand over a result, and start what is next; the caller may be gone."""
        self._running -= 1
        if done.cancelled():
            turn.result.cancel()
            return
        error = done.exception()
        if error is not None:
            self._finished_at = float("-inf")  # the next health check runs a probe
        if not turn.result.done():
            turn.result.set_result(done.result()) if error is None else turn.result.set_exception(error)
        self._start()

    def _work(self, work: Callable[[], Any]) -> Any:
        """Run on the thread, and record that it finished, even if the caller was cancelled."""
        self._started_at = time.monotonic()
        result = work()
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
                await self.run(_PROBE, credentials.hash_password, "a probe")
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
        while (turn := self._queue.next()) is not None:
            turn.result.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)
