"""A channel: what one vault or one account is followed through. It reads once for all who follow."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol

from strongroom import store
from strongroom.errors import Refusal
from strongroom.server.live.change_source import TooFar
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

# To follow costs each wake so much, and it is not to take more than a part of the time: what is committed meanwhile
# goes along with the next wake. The first after a silence waits for nothing.
SPACING: Final = 0.0002  # seconds for each follower
REST: Final = 1  # times as long as the reading took
LONGEST: Final = 1.0
AGAIN: Final = 0.5  # seconds, when the database is away


class FollowerProtocol(Protocol):
    """One follower, as its channel sees it."""

    actor: Actor
    view: View

    def examine_token(self) -> None:
        """End if the secret that signed the token is not accepted any more."""

    def check_access(self, access_status: AccessStatus) -> None:
        """End if the session or the key is there no more."""

    def offer(self, shown: Sequence[Frame], reached: int) -> None:
        """Make these ready to be sent."""

    def rouse(self) -> None:
        """Look again at what there is."""

    def end(self, reason: Ending) -> None:
        """Show nothing more, and say why."""


class Channel:
    """Followers of one source."""

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
        self.present: set[FollowerProtocol] = set()  # all of them, those who are behind too
        self.pokes = 0  # how often something may have changed
        self.doubts = 0  # how often it became doubtful who may follow
        self.held = False  # nothing is handed out until that is known
        self._joined: set[FollowerProtocol] = set()
        self._cursor = 0  # those who have joined have all up to here
        self._db = db
        self._user_id = user_id
        self._spawn = spawn
        self._dirty = False
        self._working = False
        self._rest_until = 0.0
        self._hurry = asyncio.Event()

    def poke(self) -> None:
        """Something may have changed."""
        self.pokes += 1
        self._dirty = True
        if self._joined and not self._working:
            self._working = True
            self._spawn(self._run())

    def doubt(self) -> None:
        """Somebody's right to follow may have ended: hold everything back until it is looked at."""
        self.doubts += 1
        self.held = True
        self._hurry.set()
        self.poke()

    def join(self, follower: FollowerProtocol, reached: int, pokes: int) -> bool:
        """Take in a follower who has all up to `reached`, as of so many pokes; False if it is behind the others.

        It has just proven that it may follow, so the first one to join has nothing to be held back.
        """
        if not self._joined:
            self._cursor, self.held = reached, False
        elif reached < self._cursor:
            return False
        self._joined.add(follower)
        if self.pokes != pokes:
            self.poke()
        return True

    def part(self, follower: FollowerProtocol) -> None:
        """Let a follower go on by itself."""
        self._joined.discard(follower)

    async def access_status(self) -> AccessStatus:
        """Who may follow. To be asked after the changes were read that are to be shown."""
        return await self._db.read(store.access_status.of_account, self._user_id)

    async def _run(self) -> None:
        """Read and hand out until nothing is new."""
        try:
            while self._dirty and self._joined:
                await self._rest()
                self._dirty = False
                began = time.monotonic()
                await self._pass_on()
                took = time.monotonic() - began
                self._rest_until = began + took + min(LONGEST, max(SPACING * len(self._joined), REST * took))
        except Refusal:  # the database is away: nothing was handed out
            self._dirty = True
            self._rest_until = time.monotonic() + AGAIN
        except TooFar:
            self._end_all(Ending.TOO_FAR_BEHIND)
        except Exception as error:  # noqa: BLE001 - they come again, and begin anew
            self.fault(error)
            self._end_all(Ending.SERVER_FAULT)
        self._working = False
        if self._dirty:
            self.poke()

    async def _rest(self) -> None:
        """Let others have their share of the time, unless somebody has to go."""
        left = self._rest_until - time.monotonic()
        if left > 0:
            with suppress(TimeoutError):
                async with await timeout(left):
                    await self._hurry.wait()
        self._hurry.clear()

    async def _pass_on(self) -> None:
        """Read what is new, see who may still know of it, and only then hand it out."""
        since = self._cursor
        reading, more = self.source(since), True
        while more:
            doubts = self.doubts
            page = await reading.page()
            if page is None or page.changes or self.held:
                self._check_access(await self.access_status())
            if page is None:
                self._end_all(Ending.VAULT_DELETED)  # those whose account is gone as a whole know that already
                return
            if self.doubts != doubts or self._cursor != since:
                self._dirty = True  # it is doubtful again, or others are here: what was read is not good any more
                return
            self._hand_out(page)
            since = self._cursor = max(since, page.reached)
            more = page.more
            await asyncio.sleep(0)

    def _check_access(self, access_status: AccessStatus) -> None:
        for follower in list(self._joined):
            follower.check_access(access_status)

    def _hand_out(self, page: ChangePage) -> None:
        released, self.held = self.held, False
        made: dict[int, bytes] = {}
        for_view: dict[View, list[Frame]] = {}
        for follower in list(self._joined):
            shown = for_view.get(follower.view)
            if shown is None:
                shown = for_view[follower.view] = framed(page.changes, follower.view, made)
            follower.offer(shown, page.reached)
            if released:
                follower.rouse()

    def _end_all(self, reason: Ending) -> None:
        for follower in list(self._joined):
            follower.end(reason)
