"""A channel: reads the changes of one vault or account once, and publishes them to all followers."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from strongroom import store
from strongroom.errors import Refusal
from strongroom.server.live.change_source import TooManyChanges
from strongroom.server.live.sse import framed
from strongroom.server.timeouts import timeout
from strongroom.wire.events import Ending

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from strongroom.actions.change_feed import ChangePage, View
    from strongroom.model import Actor
    from strongroom.server.live.change_source import Source
    from strongroom.server.live.sse import Frame
    from strongroom.store import Database
    from strongroom.store.queries.access_status import AccessStatus

# Each wake costs time for each follower, so wakes are throttled: what is committed meanwhile goes along with the next
# wake. The first wake after a pause is immediate.
SECONDS_PER_FOLLOWER: Final = 0.0002  # of pause after a wake
PAUSE_FACTOR: Final = 1  # times as long as the wake took
MAX_PAUSE_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 0.5  # when the database is unavailable


class FollowerProtocol(Protocol):
    """A follower, as its channel uses it."""

    actor: Actor
    view: View

    def check_token(self) -> None:
        """End the stream if the secret that signed the token is no longer accepted."""

    def check_access(self, access_status: AccessStatus) -> None:
        """End the stream if the session or the key was revoked."""

    def enqueue(self, shown: Sequence[Frame], reached: int) -> None:
        """Queue these frames to be sent."""

    def wake(self) -> None:
        """Wake the stream, if it sleeps."""

    def end(self, reason: Ending) -> None:
        """End the stream with a reason; queued frames are dropped."""


class Channel:
    """The followers of one vault or account."""

    def __init__(
        self,
        db: Database,
        user_id: str,
        source: Source,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        fault: Callable[[BaseException], None],
    ) -> None:
        self.source = source
        self.fault = fault
        self.followers: set[FollowerProtocol] = set()  # all of them, also those that are behind
        self.notifications = 0  # a counter: something may have changed
        self.invalidations = 0  # a counter: the access of some follower may have ended
        self.held = False  # nothing is sent until access was checked again
        self._joined: set[FollowerProtocol] = set()
        self._cursor = 0  # followers that have joined have everything up to here
        self._db = db
        self._user_id = user_id
        self._spawn = spawn
        self._dirty = False
        self._working = False
        self._pause_until = 0.0
        self._urgent = asyncio.Event()

    def notify(self) -> None:
        """Wake the channel: something may have changed."""
        self.notifications += 1
        self._dirty = True
        if self._joined and not self._working:
            self._working = True
            self._spawn(self._run())

    def invalidate(self) -> None:
        """Send nothing until access was checked again: a session or a key may have been revoked."""
        self.invalidations += 1
        self.held = True
        self._urgent.set()
        self.notify()

    def join(self, follower: FollowerProtocol, reached: int, notifications: int) -> bool:
        """Add a follower that has everything up to `reached`, as of so many notifications; False if it is behind.

        Its access was checked just now, so the first one to join need not wait for a check.
        """
        if not self._joined:
            self._cursor, self.held = reached, False
        elif reached < self._cursor:
            return False
        self._joined.add(follower)
        if self.notifications != notifications:
            self.notify()
        return True

    def detach(self, follower: FollowerProtocol) -> None:
        """Remove a follower from those that are published to: it ended, or reads by itself."""
        self._joined.discard(follower)

    async def access_status(self) -> AccessStatus:
        """Which sessions and keys are valid. Query this after the changes that are to be sent, never before."""
        return await self._db.read(store.access_status.of_account, self._user_id)

    async def _run(self) -> None:
        """Read and publish until nothing is new."""
        try:
            while self._dirty and self._joined:
                await self._pause()
                self._dirty = False
                began = time.monotonic()
                await self._deliver()
                took = time.monotonic() - began
                self._pause_until = (
                    began
                    + took
                    + min(MAX_PAUSE_SECONDS, max(SECONDS_PER_FOLLOWER * len(self._joined), PAUSE_FACTOR * took))
                )
        except Refusal:  # the database is unavailable: nothing was sent
            self._dirty = True
            self._pause_until = time.monotonic() + RETRY_SECONDS
        except TooManyChanges:
            self._end_all(Ending.TOO_FAR_BEHIND)
        except Exception as error:  # noqa: BLE001 - clients reconnect, and start again
            self.fault(error)
            self._end_all(Ending.SERVER_FAULT)
        self._working = False
        if self._dirty:
            self.notify()

    async def _pause(self) -> None:
        """Pause between two wakes, unless access must be checked."""
        left = self._pause_until - time.monotonic()
        if left > 0:
            with suppress(TimeoutError):
                async with await timeout(left):
                    await self._urgent.wait()
        self._urgent.clear()

    async def _deliver(self) -> None:
        """Read new changes, then check access, and only then publish them."""
        since = self._cursor
        reader, more = self.source(since), True
        while more:
            invalidations = self.invalidations
            page = await reader.page()
            if page is None or page.changes or self.held:
                self._check_access(await self.access_status())
            if page is None:
                self._end_all(Ending.VAULT_DELETED)  # followers whose account was deleted have ended already
                return
            if self.invalidations != invalidations or self._cursor != since:
                self._dirty = True  # access is uncertain again, or the cursor was reset: read again
                return
            self._publish(page)
            since = self._cursor = max(since, page.reached)
            more = page.more
            await asyncio.sleep(0)

    def _check_access(self, access_status: AccessStatus) -> None:
        for follower in list(self._joined):
            follower.check_access(access_status)

    def _publish(self, page: ChangePage) -> None:
        released, self.held = self.held, False
        shared_frames: dict[int, bytes] = {}
        for_view: dict[View, list[Frame]] = {}
        for follower in list(self._joined):
            shown = for_view.get(follower.view)
            if shown is None:
                shown = for_view[follower.view] = framed(page.changes, follower.view, shared_frames)
            follower.enqueue(shown, page.reached)
            if released:
                follower.wake()

    def _end_all(self, reason: Ending) -> None:
        for follower in list(self._joined):
            follower.end(reason)
