"""One who follows: where it is, what is ready for it, and why it has to go."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strongroom.errors import Refusal
from strongroom.server.live import sse
from strongroom.server.live.change_source import TooFar
from strongroom.wire.events import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.actions.change_feed import ChangePage, View
    from strongroom.model import Actor
    from strongroom.server.live.change_source import Reading
    from strongroom.server.live.channel import Channel
    from strongroom.server.live.sse import Frame
    from strongroom.store.queries.access_status import AccessStatus

MOST_BYTES: Final = 256 * 1024  # that may wait for one follower
COMMENT_SECONDS: Final = 15.0  # no longer without a word
AGAIN: Final = 0.5  # seconds, when the database is away
_DAY: Final = 86_400.0

Signed = Callable[[], bool]  # whether the token's secret is accepted still


class Follower:
    """A place in the order of changes. It is behind at first, catches up by itself, and then joins its channel."""

    __slots__ = (
        "_behind",
        "_bytes",
        "_channel",
        "_clock",
        "_cursor",
        "_left",
        "_pokes",
        "_reached",
        "_reading",
        "_ready",
        "_sent",
        "_signed",
        "_stuck",
        "_timer",
        "_wake",
        "actor",
        "ended",
        "view",
    )

    def __init__(
        self, channel: Channel, actor: Actor, signed: Signed, view: View, cursor: int, clock: Callable[[], int]
    ) -> None:
        self.view = view
        self.actor = actor
        self.ended: Ending | None = None
        self._signed = signed
        self._channel = channel
        self._clock = clock
        self._cursor = self._sent = cursor  # all up to here is ready; all up to there was taken
        self._ready: list[Frame] = []
        self._bytes = 0
        self._behind = True
        self._stuck = False
        self._reached = -1
        self._reading: Reading | None = None
        self._pokes = 0
        self._wake: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._left = False

    # Its life

    def enter(self) -> None:
        """Begin."""
        self._channel.present.add(self)
        self._keep_time()

    def leave(self) -> None:
        """Go, for whatever reason."""
        self._left = True
        self._channel.part(self)
        self._channel.present.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.rouse()

    def end(self, reason: Ending) -> None:
        """Show nothing more, not even what is ready, and say why."""
        if self.ended is None:
            self.ended = reason
            self._channel.part(self)
            self._ready.clear()
            self.rouse()

    def examine_token(self) -> None:
        """End if the secret that signed the token is not accepted any more."""
        if not self._signed():
            self.end(Ending.TOKEN_REVOKED)

    def check_access(self, access_status: AccessStatus) -> None:
        """End if the session or the key is there no more."""
        key = self.actor.key
        if not access_status.account:
            self.end(Ending.ACCOUNT_DELETED)
        elif access_status.disabled:
            self.end(Ending.ACCOUNT_DISABLED)
        elif key is not None and key.uid not in access_status.keys:
            self.end(Ending.KEY_REVOKED)
        elif key is None and self.actor.session_id not in access_status.sessions:
            self.end(Ending.SESSION_REVOKED)

    def _keep_time(self) -> None:
        """End at the very moment at which the token or the key does, by the server's clock."""
        if self.actor.until is None:
            return
        left = (self.actor.until - self._clock()) / 1000
        if left <= 0:
            self.end(Ending.TOKEN_EXPIRED if self.actor.key is None else Ending.KEY_EXPIRED)
        else:
            self._timer = asyncio.get_running_loop().call_later(min(left, _DAY), self._keep_time)

    # What the channel does with it

    def offer(self, shown: Sequence[Frame], reached: int) -> None:
        """Make these ready. Who does not take what is ready falls behind, and reads by itself when it takes again."""
        if shown and shown[0][0] <= self._cursor:
            shown = [frame for frame in shown if frame[0] > self._cursor]
        self._cursor = max(self._cursor, reached)
        if not shown:
            return
        self._ready += shown
        self._bytes += sum(len(frame) for _, frame in shown)
        if self._bytes > MOST_BYTES:
            self._channel.part(self)
            self._ready.clear()
            self._bytes, self._cursor, self._behind = 0, self._sent, True
        self.rouse()

    def rouse(self) -> None:
        """Look again at what there is."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # What the one who sends does with it

    async def next(self) -> bytes:
        """What is to be sent next; nothing after the last."""
        loop = asyncio.get_running_loop()
        silent_until = loop.time() + COMMENT_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - not all of them at once
        while not self._left:
            if self.actor.until is not None and self._clock() >= self.actor.until:
                self._keep_time()
            if self.ended is not None:
                self.leave()
                return sse.end(self.ended)
            if self._ready and not self._channel.held:
                return self._take()
            if loop.time() >= silent_until:
                return sse.COMMENT
            if not self._behind:
                await self._sleep(silent_until)
            elif piece := await self._catch_up():
                return piece
        return b""

    def _take(self) -> bytes:
        self._sent = self._ready[-1][0]
        piece = b"".join([frame for _, frame in self._ready])
        self._ready, self._bytes = [], 0
        return piece

    async def _sleep(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        self._wake = loop.create_future()
        timer = loop.call_at(until, self.rouse)
        try:
            await self._wake
        finally:
            timer.cancel()
            self._wake = None

    async def _catch_up(self) -> bytes:
        """Read on from where it is; when there is no more, join the others."""
        await asyncio.sleep(AGAIN if self._stuck else 0)  # others get their turn
        channel, doubts = self._channel, self._channel.doubts
        if self._reading is None:
            self._reading, self._pokes = channel.source(self._cursor), channel.pokes
        try:
            page = await self._reading.page()
            self.check_access(await channel.access_status())
        except TooFar:
            self.end(Ending.TOO_FAR_BEHIND)
        except Refusal:
            self._reading = None
            await asyncio.sleep(AGAIN)
        except Exception as error:  # noqa: BLE001 - it comes again, and begins anew
            channel.fault(error)
            self.end(Ending.SERVER_FAULT)
        else:
            if page is None:
                self.end(Ending.VAULT_DELETED)
            elif channel.doubts == doubts and self.ended is None:
                return self._passed(page)
            self._reading = None
        return b""

    def _passed(self, page: ChangePage) -> bytes:
        """What this page shows. Nothing is awaited between the look at who may see it and its way out."""
        shown = sse.framed(page.changes, self.view, {})
        if shown and shown[0][0] <= self._cursor:
            shown = [frame for frame in shown if frame[0] > self._cursor]
        self._cursor = self._sent = max(self._cursor, page.reached)
        if not page.more:
            self._reading = None
            self._behind = not self._channel.join(self, page.reached, self._pokes)
            if self._behind:  # no further than before: the others have more than the database, which was set back
                self._stuck, self._reached = page.reached == self._reached, page.reached
        return b"".join([frame for _, frame in shown])
