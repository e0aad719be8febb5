"""A follower: one event stream, its cursor, its queue of frames, and why it ends."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from strongroom.errors import Refusal
from strongroom.server.live import sse
from strongroom.server.live.change_source import TooManyChanges
from strongroom.wire.events import Ending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strongroom.actions.change_feed import ChangePage, View
    from strongroom.model import Actor
    from strongroom.server.live.change_source import ChangeReader
    from strongroom.server.live.channel import Channel
    from strongroom.server.live.sse import Frame
    from strongroom.server.turns import Turns
    from strongroom.store.queries.access_status import AccessStatus

MAX_BYTES: Final = 256 * 1024  # that may be queued for one follower
COMMENT_SECONDS: Final = 15.0  # between two events at most; then a comment is sent
RETRY_SECONDS: Final = 0.5  # when the database is unavailable
_DAY: Final = 86_400.0

TokenCheck = Callable[[], bool]  # whether the secret that signed the token is still accepted


class Follower:
    """One event stream. It is behind at first, catches up by itself, and then joins its channel."""

    __slots__ = (
        "_behind",
        "_bytes",
        "_channel",
        "_clock",
        "_cursor",
        "_has_left",
        "_notifications",
        "_reached",
        "_reader",
        "_ready",
        "_sent",
        "_sleeping",
        "_stalled",
        "_timer",
        "_token_is_valid",
        "_turns",
        "actor",
        "ended",
        "view",
    )

    def __init__(
        self,
        channel: Channel,
        actor: Actor,
        token_is_valid: TokenCheck,
        view: View,
        cursor: int,
        clock: Callable[[], int],
        turns: Turns,
    ) -> None:
        self.view = view
        self.actor = actor
        self.ended: Ending | None = None
        self._token_is_valid = token_is_valid
        self._channel = channel
        self._clock = clock
        self._turns = turns
        self._cursor = self._sent = cursor  # everything up to here is queued; everything up to there was sent
        self._ready: list[Frame] = []
        self._bytes = 0
        self._behind = True
        self._stalled = False
        self._reached = -1
        self._reader: ChangeReader | None = None
        self._notifications = 0
        self._sleeping: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._has_left = False

    # Lifetime

    def enter(self) -> None:
        """Add it to its channel."""
        self._channel.followers.add(self)
        self._check_expiry()

    def leave(self) -> None:
        """Remove it from its channel."""
        self._has_left = True
        self._channel.detach(self)
        self._channel.followers.discard(self)
        if self._timer is not None:
            self._timer.cancel()
        self.wake()

    def end(self, reason: Ending) -> None:
        """End the stream with a reason; queued frames are dropped."""
        if self.ended is None:
            self.ended = reason
            self._channel.detach(self)
            self._ready.clear()
            self.wake()

    def check_token(self) -> None:
        """End the stream if the secret that signed the token is no longer accepted."""
        if not self._token_is_valid():
            self.end(Ending.TOKEN_REVOKED)

    def check_access(self, access_status: AccessStatus) -> None:
        """End the stream if the session or the key was revoked."""
        key = self.actor.key
        if not access_status.account:
            self.end(Ending.ACCOUNT_DELETED)
        elif access_status.disabled:
            self.end(Ending.ACCOUNT_DISABLED)
        elif key is not None and key.uid not in access_status.keys:
            self.end(Ending.KEY_REVOKED)
        elif key is None and self.actor.session_id not in access_status.sessions:
            self.end(Ending.SESSION_REVOKED)

    def _check_expiry(self) -> None:
        """End the stream when the token or the key expires, by the server's clock."""
        if self.actor.until is None:
            return
        left = (self.actor.until - self._clock()) / 1000
        if left <= 0:
            self.end(Ending.TOKEN_EXPIRED if self.actor.key is None else Ending.KEY_EXPIRED)
        else:
            self._timer = asyncio.get_running_loop().call_later(min(left, _DAY), self._check_expiry)

    # For the channel

    def enqueue(self, shown: Sequence[Frame], reached: int) -> None:
        """Queue these frames. A client that does not read falls behind, and catches up when it reads again."""
        if shown and shown[0][0] <= self._cursor:
            shown = [frame for frame in shown if frame[0] > self._cursor]
        self._cursor = max(self._cursor, reached)
        if not shown:
            return
        self._ready += shown
        self._bytes += sum(len(frame) for _, frame in shown)
        if self._bytes > MAX_BYTES:
            self._channel.detach(self)
            self._ready.clear()
            self._bytes, self._cursor, self._behind = 0, self._sent, True
        self.wake()

    def wake(self) -> None:
        """Wake the stream, if it sleeps."""
        if self._sleeping is not None and not self._sleeping.done():
            self._sleeping.set_result(None)

    # For the response

    async def next(self) -> bytes:
        """The bytes to send next; empty after the last."""
        loop = asyncio.get_running_loop()
        silent_until = loop.time() + COMMENT_SECONDS * random.uniform(0.8, 1.0)  # noqa: S311 - not all of them at once
        while not self._has_left:
            if self.actor.until is not None and self._clock() >= self.actor.until:
                self._check_expiry()
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
        self._sleeping = loop.create_future()
        timer = loop.call_at(until, self.wake)
        try:
            await self._sleeping
        finally:
            timer.cancel()
            self._sleeping = None

    async def _catch_up(self) -> bytes:
        """Read the next page after its cursor; after the last page, join the channel."""
        if self._stalled:
            await asyncio.sleep(RETRY_SECONDS)
        await self._turns.wait(self.actor.user_id)  # a page for each round of the event loop, whoever catches up
        channel, invalidations = self._channel, self._channel.invalidations
        if self._reader is None:
            self._reader, self._notifications = channel.source(self._cursor), channel.notifications
        try:
            page = await self._reader.page()
            self.check_access(await channel.access_status())
        except TooManyChanges:
            self.end(Ending.TOO_FAR_BEHIND)
        except Refusal:
            self._reader = None
            await asyncio.sleep(RETRY_SECONDS)
        except Exception as error:  # noqa: BLE001 - the client reconnects, and starts again
            channel.fault(error)
            self.end(Ending.SERVER_FAULT)
        else:
            if page is None:
                self.end(Ending.VAULT_DELETED)
            elif channel.invalidations == invalidations and self.ended is None:
                return self._frames_of(page)
            self._reader = None
        return b""

    def _frames_of(self, page: ChangePage) -> bytes:
        """The frames of this page. Nothing is awaited between the access check and the frames' way out."""
        shown = sse.framed(page.changes, self.view, {})
        if shown and shown[0][0] <= self._cursor:
            shown = [frame for frame in shown if frame[0] > self._cursor]
        self._cursor = self._sent = max(self._cursor, page.reached)
        if not page.more:
            self._reader = None
            self._behind = not self._channel.join(self, page.reached, self._notifications)
            if self._behind:  # no progress: the channel is ahead of the database, which was restored
                self._stalled, self._reached = page.reached == self._reached, page.reached
        return b"".join([frame for _, frame in shown])
