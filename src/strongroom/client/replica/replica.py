"""The replica that waits: Replica, and the vaults and collections in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from strongroom.client.net import effects
from strongroom.client.operations import documents
from strongroom.client.replica import unlocking
from strongroom.client.replica.conflicts import Conflict, Resolver, undecided_conflicts
from strongroom.client.replica.sync import Progress, Report, Syncing
from strongroom.client.replica.watch import Watching
from strongroom.errors import Unavailable

if TYPE_CHECKING:
    from strongroom.client.net.drivers import Driver
    from strongroom.client.operations.documents import Document, Place
    from strongroom.client.operations.vaults import OpenVault
    from strongroom.client.replica.local import Local


class Replica:
    """A copy of an account, or of what a token opens, on this device. Only `sync` and `watch` need the server."""

    def __init__(self, local: Local, driver: Driver) -> None:
        self._local = local
        self._driver = driver

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "Replica(...)"

    def close(self) -> None:
        """Let go of the file. What waits to be sent stays in it."""
        self._local.file.close()

    def sync(self, resolver: Resolver | None = None, *, progress: Callable[[Progress], None] | None = None) -> Report:
        """Pull what is new and push what waits. Without a resolver, conflicts are left for you to decide."""
        run = Syncing(self._local, resolver, progress).run()
        return self._driver.run(effects.under("sync", run))

    def watch(self, resolver: Resolver | None = None, *, every: float = 15.0) -> Iterator[Report]:
        """Sync whenever something changes, as long as you take the reports; each is of a sync that changed something.

        It follows the server's events. Where there are none it asks again, at the latest after `every` seconds, and it
        outlives a server that is away.
        """
        watching = Watching(self._local, every)
        try:
            while True:
                try:
                    report = self.sync(resolver)
                except Unavailable:
                    self._driver.run(watching.away())
                    continue
                if report.changed:
                    yield report
                self._driver.run(watching.wait())
        finally:
            stream = watching.leave()
            if stream is not None:
                stream.close()

    def conflicts(self) -> list[Conflict]:
        """What was changed here and there, and is not decided."""
        return undecided_conflicts(self._local, unlocking.places(self._local))

    @property
    def pending(self) -> int:
        """How many changes wait to be sent."""
        return self._local.file.queued()

    def vault(self, name: str | None = None) -> ReplicaVault:
        """The vault of this name, as it was when this device last saw it. With a token, the name may be left out."""
        return ReplicaVault(self._local, unlocking.vault(self._local, name))

    def vaults(self) -> list[ReplicaVault]:
        """All vaults."""
        return [ReplicaVault(self._local, opened) for opened in unlocking.vaults(self._local)]

    def collection(self) -> ReplicaCollection:
        """The collection that this client's token opens."""
        return ReplicaCollection(self._local, unlocking.collection(self._local))


class ReplicaVault:
    """A vault on this device."""

    def __init__(self, local: Local, opened: OpenVault) -> None:
        self._local = local
        self._opened = opened
        self._place = documents.place(opened.uid, opened.keys)

    def __repr__(self) -> str:
        return f"ReplicaVault(uid={self.uid!r})"

    @property
    def uid(self) -> str:
        """The vault's uid."""
        return self._opened.uid

    @property
    def name(self) -> str:
        """What people call it."""
        return self._opened.name

    def collection(self, name: str) -> ReplicaCollection:
        """A collection of documents."""
        wire = self._opened.collection_wire(name)
        return ReplicaCollection(self._local, documents.place(self.uid, self._opened.keys, wire, name))

    def blob(self) -> Any:
        """The vault's blob, as it was when this device last saw it; None where there is none."""
        return unlocking.blob(self._local, self._opened)

    def __iter__(self) -> Iterator[Document]:
        """Every living document of every collection."""
        return self._local.walk(self._place)


class ReplicaCollection:
    """Documents of one kind, on this device. What is written here is sent with the next sync."""

    def __init__(self, local: Local, at: Place) -> None:
        self._local = local
        self._place = at

    def __repr__(self) -> str:
        return f"ReplicaCollection(vault={self._place.vault!r})"

    @property
    def name(self) -> str:
        """What people call it."""
        return self._place.name

    def create(self, value: Any, *, uid: str | None = None) -> Document:
        """A new document."""
        return self._local.create(self._place, value, uid)

    def get(self, uid: str, *, deleted: bool = False) -> Document:
        """One document; a deleted one only if `deleted` is True."""
        return self._local.get(self._place, uid, deleted=deleted)

    def replace(self, document: Document, value: Any) -> Document:
        """Another value. If the document has changed since you read it, that is a DocumentConflict."""
        return self._local.replace(self._place, document, value)

    def delete(self, document: Document) -> Document:
        """Delete a document, if it has not changed since you read it."""
        return self._local.delete(self._place, document)

    def __iter__(self) -> Iterator[Document]:
        """Every living document."""
        return self._local.walk(self._place)
