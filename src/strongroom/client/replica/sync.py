"""One sync: pull what is new, let conflicts be decided, push what waits, until there is nothing left to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.format.keys import VaultKey
from strongroom.client.net import effects, requests
from strongroom.client.operations import accounts, documents, listing, memory, vaults
from strongroom.client.operations.sessions_and_keys import token_vault
from strongroom.client.replica import incoming, outgoing, unlocking
from strongroom.client.replica.after_restore import Reconciling
from strongroom.client.replica.conflicts import Conflict, Resolver, start_anew, undecided_conflicts
from strongroom.client.replica.file import KeptVault
from strongroom.client.replica.outgoing import Pushed
from strongroom.errors import DocumentNotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.client.operations.documents import Place
    from strongroom.client.replica.file import Entry
    from strongroom.client.replica.local import Local
    from strongroom.errors import Refusal
    from strongroom.model import Document
    from strongroom.wire import responses

ROUNDS: Final = 20
_HIDDEN: Final = "Your directory has a vault that this device has seen, and the server says that there is none."
_OLDER: Final = "The server shows a vault as it was before this device saw it last."
_MISSING: Final = "The server counts other documents in a vault than it shows."
_STUCK: Final = "The server refuses a change as out of date, and shows nothing newer."


class Progress(Struct, frozen=True):
    """How far a sync is. `total` is what the server says there is, where it says it."""

    phase: str
    done: int
    total: int | None


class Report(Struct, kw_only=True):
    """What a sync did. `conflicts` wait to be decided; `refused` are changes that the server does not take."""

    pulled: int = 0
    pushed: int = 0
    conflicts: list[Conflict] = msgspec.field(default_factory=list)
    refused: list[tuple[Entry, Refusal]] = msgspec.field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether anything here is other than before."""
        return bool(self.pulled or self.pushed or self.conflicts)


class Syncing:
    """One run of a sync."""

    def __init__(self, local: Local, resolver: Resolver | None, progress: Callable[[Progress], None] | None) -> None:
        self.local = local
        self.core: Core = local.core
        self.file = local.file
        self.report = Report()
        self._resolver = resolver
        self._progress = progress
        self._places: dict[str, Place] = {}
        self._done = 0
        self._total: int | None = None

    def run(self) -> Effects[Report]:
        """Until nothing waits that could be sent."""
        stuck: set[str] = set()
        for _ in range(ROUNDS):
            yield from self._pull()
            self._decide()
            pushed = Pushed()
            for at in self._places.values():
                yield from self._push(at, pushed)
            self.report.pushed += pushed.done
            self.report.refused = pushed.refused
            if not pushed.stale:
                break
            if stuck == pushed.stale and not pushed.done:
                raise Tampered(_STUCK)
            stuck = pushed.stale
        self.report.conflicts = undecided_conflicts(self.local, self._places)
        return self.report

    # Pulling

    def _pull(self) -> Effects[None]:
        rows = yield from self._vaults()
        changed = [row for row in rows.values() if self._is_new(row)]
        counts = [row.documents for row in changed]
        self._total = None if None in counts else sum(count or 0 for count in counts)
        for row in changed:
            yield from self._pull_vault(self._places[row.uid], row)
        self.local.moment = max((row.updated_at for row in rows.values()), default=0)

    def _vaults(self) -> Effects[dict[str, responses.Vault]]:
        """Every vault of this replica, as the server shows it now."""
        token = self.core.token
        if token is not None:
            at = documents.place(token.vault, token.keys, name=token.name)
            row = yield from self.core.session.send(requests.get_vault(token.vault))
            if row.uid != token.vault:
                raise Tampered
            if isinstance(token.keys, VaultKey):
                token_vault(token, token.keys, row.name)
            self._places = {token.vault: at}
            return {row.uid: row}
        try:
            opened = yield from vaults.list_with_rows(self.core)
        except RolledBack:
            if not (yield from self._is_restored()):
                raise
            yield from accounts.bring_back(self.core)
            opened = yield from vaults.list_with_rows(self.core)
        unlocking.keep_keys(self.core, self.file)
        self._places = {vault.uid: documents.place(vault.uid, vault.keys) for vault, _ in opened}
        found = {row.uid: row for _, row in opened}
        yield from self._miss(found)
        return found

    def _miss(self, found: dict[str, responses.Vault]) -> Effects[None]:
        """Vaults that are here and not there: deleted by a key holder, lost in a restore, or hidden."""
        directory = set() if self.core.ring is None else {entry.uid for entry in self.core.ring.vaults}
        for kept in self.file.vaults():
            if kept.uid in found:
                continue
            if kept.uid not in directory:
                if not self.file.entries(kept.uid):
                    self.file.drop_vault(kept.uid)
                continue
            if not (yield from self._is_restored()):
                raise RolledBack(_HIDDEN)
            vault = yield from vaults.make_again(self.core, kept.uid)
            self._places[kept.uid] = documents.place(kept.uid, vault[0].keys)
            found[kept.uid] = vault[1]

    def _is_restored(self) -> Effects[bool]:
        """Whether the server says that its database is another than it was."""
        epoch = (yield from self.core.session.send(requests.health())).epoch
        return bool(epoch) and any(kept.epoch not in {"", epoch} for kept in self.file.vaults())

    def _is_new(self, row: responses.Vault) -> bool:
        """Whether a vault has something that is not here yet; one that has gone back is refused."""
        kept = self.file.vault(row.uid)
        if kept is None or row.epoch != kept.epoch:
            return True
        if row.updated_at < kept.clock or row.version < kept.version:
            raise RolledBack(_OLDER)
        return kept.start is not None or row.updated_at > kept.cursor

    def _pull_vault(self, at: Place, row: responses.Vault) -> Effects[None]:
        was = self.file.vault(at.vault)
        try:
            yield from self._pull_on(at, row, was)
        except (Tampered, RolledBack):
            self._go_back(at.vault, was)
            raise

    def _go_back(self, uid: str, was: KeptVault | None) -> None:
        """Ask for all of it again next time: what a server that lies has left out must not be passed over."""
        if was is None:
            self.file.drop_vault(uid)
        else:
            self.file.put_vault(was)

    def _pull_on(self, at: Place, row: responses.Vault, kept: KeptVault | None) -> Effects[None]:
        _check_blob(at, kept, row)
        if kept is not None and kept.epoch != row.epoch:
            came = yield from Reconciling(self.local, at, _kept(row, 0, None)).run()
            self._show("pull", came)
            return
        kept = _kept(row, 0 if kept is None else kept.cursor, row.updated_at if kept is None else kept.start)
        if kept.start is not None:
            kept = yield from self._pages(at, kept, deleted=False, expected={})
            kept = msgspec.structs.replace(kept, cursor=kept.start, start=None)
            expected: dict[str, int] = {}
        else:
            expected = self.file.later(at.vault, kept.cursor)
        kept = yield from self._pages(at, kept, deleted=True, expected=expected)
        self.file.put_vault(msgspec.structs.replace(kept, cursor=max(kept.cursor, row.updated_at)))
        self._count(at, row)

    def _pages(self, at: Place, kept: KeptVault, *, deleted: bool, expected: dict[str, int]) -> Effects[KeptVault]:
        """All pages from the cursor on; while one is under way, the one before is opened and kept.

        `expected` are documents that must be among them, in this version or a later one.
        """
        limit = listing.FIRST
        page = yield from self.core.session.send(incoming.list_call(at, kept.cursor, limit, deleted=deleted))
        while True:
            cursor = listing.check_page(page, at, kept.cursor, limit, deleted=deleted)
            for found in page.documents:
                expected.pop(found.uid, None)
            if expected and not page.has_more:
                raise RolledBack(documents.WITHHELD)
            kept = msgspec.structs.replace(kept, cursor=cursor)
            stored = yield from incoming.stored_before(self.core, self.file, at, page.documents)
            store = _store(self.local, at, kept, page, stored)
            limit = listing.next_limit(page, limit)
            if not page.has_more:
                new = yield from effects.compute(store)
                self._show("pull", new)
                return kept
            call = incoming.list_call(at, cursor, limit, deleted=deleted)
            page, new = yield from self.core.session.send_and_compute(call, store)
            self._show("pull", new)

    def _count(self, at: Place, row: responses.Vault) -> None:
        """Compare what is here with what the server counts, if nobody has written since it counted."""
        count, last = self.file.live(at.vault)
        if at.one is None and row.documents is not None and last <= row.updated_at and count != row.documents:
            raise Tampered(_MISSING)

    def _show(self, phase: str, new: int) -> None:
        self._done += new
        if phase == "pull":
            self.report.pulled += new
        if self._progress is not None:
            self._progress(Progress(phase, self._done, self._total))

    # Deciding and pushing

    def _decide(self) -> None:
        if self._resolver is not None:
            for conflict in undecided_conflicts(self.local, self._places):
                conflict.resolve(self._resolver)

    def _push(self, at: Place, pushed: Pushed) -> Effects[None]:
        self._done, self._total = 0, self.file.queued()
        after = 0
        while parcels := outgoing.bundle(self.local, at, after):
            after = parcels[-1].entry.seq
            before = pushed.done
            yield from outgoing.push(self.core, self.local, at, parcels, pushed)
            self._show("push", pushed.done - before)
        for uid in pushed.lacking:
            yield from self._lacking(at, uid)

    def _lacking(self, at: Place, uid: str) -> Effects[None]:
        """The server has nothing that a change could follow on: its trash was emptied. It becomes a new document."""
        entry = self.file.entry(at.vault, uid)
        if entry is None:
            return
        try:
            row = yield from self.core.session.send(requests.get_document(at.vault, uid))
        except DocumentNotFound:
            raise RolledBack from None
        made = seal.open_document(at.key(row.collection)[0], row)
        if row.uid != uid:
            raise Tampered(documents.OTHER)
        incoming.is_new(self.file.heads(at.vault, [uid]).get(uid), row)
        if not made.purged or row.version != entry.base:
            return  # a deletion that is not known here yet: it is pulled, and met as any other
        with self.file.change():
            self.file.put_rows([(row, True)])
            start_anew(self.local, at, entry)


def _check_blob(at: Place, kept: KeptVault | None, row: responses.Vault) -> None:
    """Refuse a blob that no key holder made for this vault, name and version, or one that has changed or gone."""
    if at.whole is None:
        return
    if row.data is not None:
        seal.open_blob(at.whole, row)
    if kept is not None and kept.epoch == row.epoch:
        memory.check_blob(kept.version, memory.digest(kept.data), row.version, memory.digest(row.data))


def _store(
    local: Local, at: Place, kept: KeptVault, page: responses.Documents, stored: dict[str, Document]
) -> Callable[[], int]:
    return lambda: incoming.take(local.file, at, kept, page.documents, stored)


def _kept(row: responses.Vault, cursor: int, start: int | None) -> KeptVault:
    return KeptVault(
        uid=row.uid,
        wire=row.name,
        version=row.version,
        clock=row.updated_at,
        epoch=row.epoch,
        cursor=cursor,
        start=start,
        data=row.data,
        salt=row.salt,
    )
