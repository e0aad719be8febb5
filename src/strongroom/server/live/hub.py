"""The hub: the subscriptions of this process, and what wakes them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from strongroom import store
from strongroom.actions import change_feed
from strongroom.errors import Refusal
from strongroom.server.live import sse
from strongroom.server.live.change_source import AccountChanges, VaultChanges
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
    from strongroom.server.live.follower import TokenCheck
    from strongroom.server.monitoring.log import Log
    from strongroom.server.turns import Turns
    from strongroom.store import ChangeHint, Database
    from strongroom.store.queries.access_status import Credential

SAFETY_SECONDS: Final = 3.0  # between two comparisons of all clocks: by then a lost change hint is made up for
PAUSE_FACTOR: Final = 19  # times as long as a comparison took: at most a twentieth of the time goes into it
IDLE_COMPARISONS: Final = 20  # without a subscriber, before this process stops watching

ChannelKey = tuple[str, int] | None  # a vault and when it was created, or the whole account


class _Account:
    """The subscriptions of one account in this process."""

    def __init__(self) -> None:
        self.channels: dict[ChannelKey, Channel] = {}
        self.waiters: set[Waiter] = set()
        self.seen = 0  # its clock at the last comparison

    def notify(self, vault_uid: str | None = None) -> None:
        """Wake subscribers: this vault may have changed, or any."""
        for channel_key, channel in self.channels.items():
            if vault_uid is None or channel_key is None or channel_key[0] == vault_uid:
                channel.notify()
        for waiter in self.waiters:
            if vault_uid is None or waiter.vault_uid == vault_uid:
                waiter.wake()

    def invalidate(self) -> None:
        """Check the access of all subscribers: a session or a key may have been revoked."""
        for channel in self.channels.values():
            channel.invalidate()
        for waiter in self.waiters:
            waiter.wake()

    @property
    def actors(self) -> Iterator[Actor]:
        """The callers of all subscriptions."""
        yield from (follower.actor for channel in self.channels.values() for follower in channel.followers)
        yield from (waiter.actor for waiter in self.waiters)


class Hub:
    """All subscriptions of this process."""

    def __init__(self, db: Database, clock: Callable[[], int], log: Log, epoch: str, turns: Turns) -> None:
        self._db = db
        self._turns = turns
        self._epoch = epoch
        self._clock = clock
        self._log = log
        self._accounts: dict[str, _Account] = {}
        self._stopping = False
        self._comparison_wanted = False
        self._comparing = False
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._empty_for = 0
        db.notifications.listen(self._notified, self._request_comparison)

    @property
    def streams(self) -> int:
        """How many streams are open."""
        return sum(
            len(channel.followers) for account in self._accounts.values() for channel in account.channels.values()
        )

    # For the routes

    async def vault(self, actor: Actor, token_is_valid: TokenCheck, vault_uid: str, since: int | None) -> Stream:
        """An event stream of a vault's documents, from a timestamp on or from now."""
        vault = await self._db.read(change_feed.open_vault, actor, vault_uid)
        cursor = vault.updated_at if since is None else since
        return self._stream(actor, token_is_valid, (vault_uid, vault.created_at), cursor, documents=True)

    async def account(self, actor: Actor, token_is_valid: TokenCheck, since: int | None, *, documents: bool) -> Stream:
        """An event stream of all vaults that the caller may read, from a timestamp on or from now."""
        cursor = await self._db.read(store.ledgers.clock, actor.user_id) if since is None else since
        return self._stream(actor, token_is_valid, None, cursor, documents=documents)

    def _stream(
        self, actor: Actor, token_is_valid: TokenCheck, channel_key: ChannelKey, cursor: int, *, documents: bool
    ) -> Stream:
        view = change_feed.view(actor, documents=documents)

        def enter() -> Follower:
            channel = self._channel(actor.user_id, channel_key)
            follower = Follower(channel, actor, token_is_valid, view, cursor, self._clock, self._turns)
            follower.enter()
            follower.check_token()
            if self._stopping:
                follower.end(Ending.SERVER_STOPPING)
            return follower

        def leave(follower: Follower) -> None:
            follower.leave()
            self._remove_unused(actor.user_id)

        return Stream(sse.ready(cursor, self._epoch), enter, leave)

    async def wait(
        self,
        actor: Actor,
        vault_uid: str,
        seconds: float,
        has_changes: Callable[[], Awaitable[bool]],
        disconnected: asyncio.Future[None],
    ) -> None:
        """Wait until there are changes, until the timeout, or until the client has disconnected."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        waiter = Waiter(actor, vault_uid)
        account = self._account(actor.user_id)
        account.waiters.add(waiter)
        disconnected.add_done_callback(lambda _: waiter.wake())
        try:
            while not (disconnected.done() or await has_changes() or self._stopping or loop.time() >= deadline):
                await waiter.sleep(deadline)
        finally:
            account.waiters.discard(waiter)
            self._remove_unused(actor.user_id)

    def check_tokens(self) -> None:
        """End streams whose token was signed with a secret that is no longer accepted."""
        for account in self._accounts.values():
            for channel in account.channels.values():
                for follower in list(channel.followers):
                    follower.check_token()
            for waiter in account.waiters:
                waiter.wake()  # it authenticates again before it goes on

    def stop(self) -> None:
        """End all subscriptions, because the server stops; does not wait."""
        self._stopping = True
        for account in self._accounts.values():
            for channel in account.channels.values():
                for follower in list(channel.followers):
                    follower.end(Ending.SERVER_STOPPING)
            for waiter in account.waiters:
                waiter.wake()
        self._watch(wanted=False)

    async def close(self) -> None:
        """Cancel everything that uses the database."""
        self.stop()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task, and hold it until it is done."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _fault(self, error: BaseException) -> None:
        self._log.fault(error, "live")

    # Subscriptions

    def _account(self, user_id: str) -> _Account:
        account = self._accounts.get(user_id)
        if account is None:
            account = self._accounts[user_id] = _Account()
            self._watch(wanted=not self._stopping)
        return account

    def _channel(self, user_id: str, channel_key: ChannelKey) -> Channel:
        channels = self._account(user_id).channels
        channel = channels.get(channel_key)
        if channel is None:
            source: Source = (
                partial(AccountChanges, self._db, user_id)
                if channel_key is None
                else partial(VaultChanges, self._db, user_id, *channel_key)
            )
            channel = channels[channel_key] = Channel(self._db, user_id, source, self._spawn, self._fault)
        return channel

    def _remove_unused(self, user_id: str) -> None:
        """Remove channels without followers, and the account if nothing is left of it."""
        account = self._accounts.get(user_id)
        if account is None:
            return
        for channel_key in [channel_key for channel_key, channel in account.channels.items() if not channel.followers]:
            del account.channels[channel_key]
        if not account.channels and not account.waiters:
            del self._accounts[user_id]

    # Notifications

    def _notified(self, notifications: AbstractSet[ChangeHint]) -> None:
        """Handle change hints: something was committed, by this process or another."""
        for user_id, vault_uid in notifications:
            account = self._accounts.get(user_id)
            if account is None:
                continue
            if vault_uid is None:
                account.invalidate()
            else:
                account.notify(vault_uid)

    def _watch(self, *, wanted: bool) -> None:
        """Start or stop watching for commits of other processes."""
        if wanted and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAFETY_SECONDS, self._tick)
            self._db.notifications.watch(wanted=True)
        elif not wanted and self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._db.notifications.watch(wanted=False)

    def _tick(self) -> None:
        self._empty_for = 0 if self._accounts else self._empty_for + 1
        if self._empty_for > IDLE_COMPARISONS:
            self._watch(wanted=False)
            return
        self._timer = asyncio.get_running_loop().call_later(SAFETY_SECONDS, self._tick)
        self._request_comparison()

    def _request_comparison(self) -> None:
        """Compare soon: anything may have changed in other processes."""
        self._comparison_wanted = True
        if not self._comparing and self._accounts:
            self._comparing = True
            self._spawn(self._compare())

    async def _compare(self) -> None:
        """Compare all clocks and credentials with the database: two statements, however many there are."""
        try:
            while self._comparison_wanted and self._accounts:
                self._comparison_wanted = False
                began = time.monotonic()
                await self._compare_once()
                await asyncio.sleep(PAUSE_FACTOR * (time.monotonic() - began))
        except Refusal:
            pass  # the database is unavailable; the next comparison is soon
        except Exception as error:  # noqa: BLE001 - the next comparison is soon
            self._fault(error)
        finally:
            self._comparing = False

    async def _compare_once(self) -> None:
        seen = {user_id: account.seen for user_id, account in self._accounts.items()}
        for user_id, clock in await self._db.read(store.access_status.advanced, seen):
            if account := self._accounts.get(user_id):
                account.seen = clock
                account.notify()
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
                account.invalidate()
