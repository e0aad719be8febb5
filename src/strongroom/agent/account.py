"""The account that the agent holds: its client, its replica, and the items in it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from strongroom.agent import paths
from strongroom.agent.catalog import Catalog, Shelf
from strongroom.agent.conversation import Conversation
from strongroom.agent.log import Log
from strongroom.client import Client, Progress, Refusal, Replica, Report, Unavailable
from strongroom.client.errors import Locked
from strongroom.errors import InvalidRefreshToken

EVERY: Final = 60.0  # seconds between two syncs that nobody asked for


class Account:
    """An account whose keys are in memory. A thread keeps its replica in step with the server."""

    def __init__(self, client: Client, replica: Replica, log: Log, person: Person) -> None:
        self.client = client
        self.replica = replica
        self.person = person
        self.catalog = Catalog(self._shelves)
        self.synced_at: float | None = None
        self.problem: str | None = None  # why the newest sync failed
        self._log = log
        self._nudged = threading.Event()
        self._closed = False
        self._saved = False
        self._doubt = False  # whether a sync that failed may have fetched something

    def start(self) -> None:
        """Sync from time to time, and soon after a change."""
        threading.Thread(target=self._keep_in_step, daemon=True, name="sync").start()

    def _shelves(self) -> list[Shelf]:
        return [Shelf(one.name, one.uid, one.items()) for one in self.replica.vaults()]

    def changed(self) -> None:
        """Something was written here: it is sent soon."""
        self._nudged.set()

    def sync(self, progress: Callable[[Progress], None] | None = None) -> Report:
        """Sync now."""
        try:
            report = self._sync(progress)
        except Refusal as refusal:
            self.problem = refusal.message
            self._doubt = True
            raise
        if self._doubt or report.pulled or report.renamed_vaults or report.conflicts:
            self._doubt = False
            self.catalog.refresh()
        self.problem, self.synced_at = None, time.time()
        return report

    def _sync(self, progress: Callable[[Progress], None] | None) -> Report:
        """Sync; a session that has ended is replaced by one with the password, which is saved in its place."""
        try:
            report = self.replica.sync(progress=progress)
        except InvalidRefreshToken:
            self._saved = False
            report = self.replica.sync(progress=progress)
        if not self._saved:
            self.client.save_session(paths.session(), needs_password=True)
            self._saved = True
        return report

    def flush(self, seconds: float) -> bool:
        """Wait until everything that was written here is sent, for some time at the most; whether it is."""
        self._nudged.set()
        deadline = time.monotonic() + seconds
        while self.replica.pending and time.monotonic() < deadline:
            time.sleep(0.02)
        return not self.replica.pending

    def _keep_in_step(self) -> None:
        while not self._closed:
            self._nudged.clear()
            try:
                self.sync()
            except Unavailable:
                pass  # without a server everything works, and is sent later
            except Locked:
                return
            except Refusal as refusal:
                self._log.write(f"sync: {refusal.code}")
            except Exception as error:  # noqa: BLE001 - a fault of a sync must not end the agent
                self._log.write(f"sync: {type(error).__name__}")
            self._nudged.wait(EVERY)

    def close(self) -> None:
        """Forget all keys."""
        self._closed = True
        self._nudged.set()
        with contextlib.suppress(Refusal):
            self.client.close()


class Person:
    """The person who is asked for a second factor: the one whose request runs on this thread, if any."""

    def __init__(self) -> None:
        self._local = threading.local()

    @contextlib.contextmanager
    def at(self, conversation: Conversation) -> Any:
        """Ask the person of this request, while it runs."""
        self._local.conversation = conversation
        try:
            yield
        finally:
            self._local.conversation = None

    def code(self, refusal: Refusal) -> str:
        """A one-time code or a recovery code; where nobody can be asked, the refusal stands."""
        conversation: Conversation | None = getattr(self._local, "conversation", None)
        said = None if conversation is None else conversation.ask("code", refusal.message)
        if not said:
            raise refusal
        return said
