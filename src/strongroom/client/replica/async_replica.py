"""The asynchronous replica: a copy of an account on this device."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Self, overload

from strongroom.client.net import effects
from strongroom.client.operations.sessions_and_keys import token_items, token_scope
from strongroom.client.operations.value_types import T
from strongroom.client.replica import unlock
from strongroom.client.replica.conflicts import BlobConflict, Conflict, Resolver, undecided_blobs, undecided_conflicts
from strongroom.client.replica.refused import RefusedChange, refused_changes
from strongroom.client.replica.report import Progress, Report
from strongroom.client.replica.sync import Sync
from strongroom.client.replica.vaults import ReplicaCollection, ReplicaItems, ReplicaVault
from strongroom.client.replica.watch import Watch
from strongroom.errors import Unavailable

if TYPE_CHECKING:
    from strongroom.client.net.async_driver import AsyncDriver
    from strongroom.client.replica.local import Local


class AsyncReplica:
    """A copy of an account, or of what a token opens, on this device. Only `sync` and `watch` need the server."""

    def __init__(self, local: Local, driver: AsyncDriver) -> None:
        self._local = local
        self._driver = driver

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Replica(...)"

    def close(self) -> None:
        """Close the file. Queued changes stay in it."""
        self._local.close()

    async def sync(
        self, resolver: Resolver | None = None, *, progress: Callable[[Progress], None] | None = None
    ) -> Report:
        """Pull new rows and push queued changes. Without a resolver, conflicts are left for you to decide."""
        run = Sync(self._local, resolver, progress).run()
        return await self._driver.run(effects.with_lock("sync", run))

    async def watch(self, resolver: Resolver | None = None, *, every: float = 15.0) -> AsyncIterator[Report]:
        """Sync whenever something changes, as long as you take the reports; each is of a sync that changed something.

        It follows the server's events. Where there are none it asks again, at the latest after `every` seconds, and it
        outlives a server that is away.
        """
        watching = Watch(self._local, every)
        try:
            while True:
                try:
                    report = await self.sync(resolver)
                except Unavailable:
                    await self._driver.run(watching.back_off())
                    continue
                if report.changed:
                    yield report
                await self._driver.run(watching.wait())
        finally:
            stream = watching.detach()
            if stream is not None:
                await stream.close()

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write what this replica holds to a file that `Client.import_account` takes; it needs no server.

        The file is encrypted as the replica is. It has the keyring, the vaults, their documents and blobs, and the
        changes that are not sent yet as if they were stored; where a conflict waits, the side of this device. It has no
        history. Only its owner can read it, and it is there only when it is whole. It replaces an earlier file of
        `export_account` or of this, and no other file.
        """
        from strongroom.client.operations.new_files import ACCOUNT, new_file
        from strongroom.client.replica.export import export

        with new_file(path, ACCOUNT) as write:
            export(self._local, write)

    def conflicts(self) -> list[Conflict]:
        """The unresolved conflicts."""
        return undecided_conflicts(self._local, unlock.scopes(self._local))

    def blob_conflicts(self) -> list[BlobConflict]:
        """The blobs of this device that a restored server has gone on without."""
        return undecided_blobs(self._local, unlock.scopes(self._local))

    def refused(self) -> list[RefusedChange]:
        """The changes that the server has refused, as they were when this device last synced."""
        return refused_changes(self._local, unlock.places(self._local))

    @property
    def read_only(self) -> bool:
        """Whether this process only reads. If another one writes, and ends, the next write here succeeds."""
        return not self._local.file.is_writer

    @property
    def pending(self) -> int:
        """The number of queued changes, refused ones included."""
        return self._local.file.outbox.length()

    def vault(self, name: str | None = None, *, create: bool = False, sealed: bool = True) -> ReplicaVault:
        """The vault of this name, as it was when this device last saw it. With a token, the name may be left out.

        With `create`, a vault that is not there is made on this device, and sent with the next sync. A new one shows
        the server its name only if `sealed` is False.
        """
        return ReplicaVault(self._local, unlock.vault(self._local, name, create=create, sealed=sealed))

    def vaults(self) -> list[ReplicaVault]:
        """All vaults."""
        return [ReplicaVault(self._local, opened) for opened in unlock.vaults(self._local)]

    @overload
    def collection(self) -> ReplicaCollection: ...
    @overload
    def collection(self, *, type: type[T]) -> ReplicaCollection[T]: ...
    def collection(self, *, type: Any = None) -> ReplicaCollection[Any]:  # noqa: A002
        """The collection that this client's token opens. `type` is that of its values."""
        return ReplicaCollection(self._local, token_scope(self._local.core, type))

    def items(self, vault: str | None = None, *, create: bool = False) -> ReplicaItems:
        """The items of the vault of this name, in its collection `items`; `create` is as for `vault`.

        With a token, the name may be left out, and the token may be one for that collection.
        """
        if vault is None and (scope := token_items(self._local.core)) is not None:
            return ReplicaItems(self._local, scope)
        return self.vault(vault, create=create).items()
