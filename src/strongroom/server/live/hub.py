"""The hub: who follows what in this process, and how it is woken."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from strongroom import store
from strongroom.actions import change_feed
from strongroom.errors import Refusal
from strongroom.server.live import sse
from strongroom.server.live.change_source import OfAccount, OfVault
from strongroom.server.live.channel import Channel
from strongroom.server.live.follower import Follower
from strongroom.server.live.stream import Stream
from strongroom.server.live.waiter import Waiter
from strongroom.wire.events import Ending

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterator
    from collections.abc import Set as AbstractSet

    from strongroom.model import Actor
    from strongroom.server.live.change_source import Source
    from strongroom.server.live.follower import Signed
    from strongroom.server.monitoring.log import Log
    from strongroom.store import ChangeHint, Database
    from strongroom.store.queries.access_status import Credential

SAFETY_SECONDS: Final = 3.0  # between two comparisons of all clocks: a change hint that was lost is made up for by then
REST: Final = 19  # times as long as a comparison took: at most a twentieth of the time goes into it
LINGER: Final = 20  # comparisons without anybody here, before this process looks out no more

Place = tuple[str, int] | None  # a vault and when it was made, or the whole account


class _Account:
    """An account of which something is followed, or waited for, in this process."""

    def __init__(self) -> None:
        self.channels: dict[Place, Channel] = {}
        self.waiters: set[Waiter] = set()
        self.seen = 0  # how far its clock was at the last comparison

    def poke(self, vault_uid: str | None = None) -> None:
        """This vault may have changed, or any."""
        for place, channel in self.channels.items():
            if vault_uid is None or place is None or place[0] == vault_uid:
                channel.poke()
        for waiter in self.waiters:
            if vault_uid is None or waiter.vault_uid == vault_uid:
                waiter.rouse()

    def doubt(self) -> None:
        """Somebody may have lost the right to be here."""
        for channel in self.channels.values():
            channel.doubt()
        for waiter in self.waiters:
            waiter.rouse()

    @property
    def actors(self) -> Iterator[Actor]:
        """Those who are here."""
        yield from (follower.actor for channel in self.channels.values() for follower in channel.present)
        yield from (waiter.actor for waiter in self.waiters)


class Hub:
    """All that is followed in this process."""

    def __init__(self, db: Database, clock: Callable[[], int], log: Log, epoch: str) -> None:
        self._db = db
        self._epoch = epoch
        self._clock = clock
        self._log = log
        self._accounts: dict[str, _Account] = {}
        self._stopping = False
        self._doubtful = False
        self._comparing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty_for = 0
        db.notifications.listen(self._notified, self._doubt)

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return sum(len(channel.present) for account in self._accounts.values() for channel in account.channels.values())

    # For the routes

    async def vault(self, actor: Actor, signed: Signed, vault_uid: str, since: int | None) -> Stream:
        """Follow a vault's documents, from a moment on or from now."""
        vault = await self._db.read(change_feed.open_vault, actor, vault_uid)
        cursor = vault.updated_at if since is None else since
        return self._stream(actor, signed, (vault_uid, vault.created_at), cursor, documents=True)

    async def account(self, actor: Actor, signed: Signed, since: int | None, *, documents: bool) -> Stream:
        """Follow all vaults within reach, from a moment on or from now."""
        cursor = await self._db.read(store.ledgers.clock, actor.user_id) if since is None else since
        return self._stream(actor, signed, None, cursor, documents=documents)

    def _stream(self, actor: Actor, signed: Signed, place: Place, cursor: int, *, documents: bool) -> Stream:
        view = change_feed.view(actor, documents=documents)

        def enter() -> Follower:
            follower = Follower(self._channel(actor.user_id, place), actor, signed, view, cursor, self._clock)
            follower.enter()
            follower.examine_token()
            if self._stopping:
                follower.end(Ending.SERVER_STOPPING)
            return follower

        def leave(follower: Follower) -> None:
            follower.leave()
            self._tidy(actor.user_id)

        return Stream(sse.ready(cursor, self._epoch), enter, leave)

    async def wait(
        self,
        actor: Actor,
        vault_uid: str,
        seconds: float,
        look: Callable[[], Awaitable[bool]],
        gone: asyncio.Future[None],
    ) -> None:
        """Wait until a look says that there is something new, for so long at most, or until nobody waits for it."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        waiter = Waiter(actor, vault_uid)
        account = self._account(actor.user_id)
        account.waiters.add(waiter)
        gone.add_done_callback(lambda _: waiter.rouse())
        try:
            while not (gone.done() or await look() or self._stopping or loop.time() >= deadline):
                await waiter.sleep(deadline)
        finally:
            account.waiters.discard(waiter)
            self._tidy(actor.user_id)

    def examine_tokens(self) -> None:
        """End what was opened with a token that another secret signed than those that are accepted now."""
        for account in self._accounts.values():
            for channel in account.channels.values():
                for follower in list(channel.present):
                    follower.examine_token()
            for waiter in account.waiters:
                waiter.rouse()  # it proves anew who it is before it goes on

    def stop(self) -> None:
        """Tell everybody that the server stops, and wait for nobody."""
        self._stopping = True
        for account in self._accounts.values():
            for channel in account.channels.values():
                for follower in list(channel.present):
                    follower.end(Ending.SERVER_STOPPING)
            for waiter in account.waiters:
                waiter.rouse()
        self._look_out(wanted=False)

    async def close(self) -> None:
        """Leave nothing under way that uses the database."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do this beside everything else, and know of it until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fault(self, error: BaseException) -> None:
        self._log.fault(error, "live")

    # Who is here

    def _account(self, user_id: str) -> _Account:
        account = self._accounts.get(user_id)
        if account is None:
            account = self._accounts[user_id] = _Account()
            self._look_out(wanted=not self._stopping)
        return account

    def _channel(self, user_id: str, place: Place) -> Channel:
        channels = self._account(user_id).channels
        channel = channels.get(place)
        if channel is None:
            source: Source = (
                partial(OfAccount, self._db, user_id) if place is None else partial(OfVault, self._db, user_id, *place)
            )
            channel = channels[place] = Channel(self._db, user_id, source, self._spawn, self._fault)
        return channel

    def _tidy(self, user_id: str) -> None:
        """Forget what nobody follows any more."""
        account = self._accounts.get(user_id)
        if account is None:
            return
        for place in [place for place, channel in account.channels.items() if not channel.present]:
            del account.channels[place]
        if not account.channels and not account.waiters:
            del self._accounts[user_id]

    # What wakes them

    def _notified(self, notifications: AbstractSet[ChangeHint]) -> None:
        """Something was committed, here or elsewhere."""
        for user_id, vault_uid in notifications:
            account = self._accounts.get(user_id)
            if account is None:
                continue
            if vault_uid is None:
                account.doubt()
            else:
                account.poke(vault_uid)

    def _look_out(self, *, wanted: bool) -> None:
        """Look out for what other processes commit, or do not."""
        if wanted and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAFETY_SECONDS, self._tick)
            self._db.notifications.watch(wanted=True)
        elif not wanted and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._db.notifications.watch(wanted=False)

    def _tick(self) -> None:
        self._empty_for = 0 if self._accounts else self._empty_for + 1
        if self._empty_for > LINGER:
            self._look_out(wanted=False)
            return
        self._timer = asyncio.get_running_loop().call_later(SAFETY_SECONDS, self._tick)
        self._doubt()

    def _doubt(self) -> None:
        """Anything may have changed elsewhere."""
        self._doubtful = True
        if not self._comparing and self._accounts:
            self._comparing = True
            self._spawn(self._compare())

    async def _compare(self) -> None:
        """Compare all clocks and all credentials with what is known here: two statements, however many there are."""
        try:
            while self._doubtful and self._accounts:
                self._doubtful = False
                began = time.monotonic()
                await self._find_out()
                await asyncio.sleep(REST * (time.monotonic() - began))
        except Refusal:
            pass  # the database is away; the next comparison is soon
        except Exception as error:  # noqa: BLE001 - the next comparison is soon
            self._fault(error)
        finally:
            self._comparing = False

    async def _find_out(self) -> None:
        seen = {user_id: account.seen for user_id, account in self._accounts.items()}
        for user_id, clock in await self._db.read(store.access_status.advanced, seen):
            if account := self._accounts.get(user_id):
                account.seen = clock
                account.poke()
        sessions: set[Credential] = set()
        keys: set[Credential] = set()
        for user_id, account in self._accounts.items():
            for actor in account.actors:
                if actor.key is not None:
                    keys.add((user_id, actor.key.uid))
                elif actor.session_id is not None:
                    sessions.add((user_id, actor.session_id))
        for user_id in await self._db.read(store.access_status.revoked, sessions, keys):
            if account := self._accounts.get(user_id):
                account.doubt()
