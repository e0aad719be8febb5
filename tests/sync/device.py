"""A client written from docs/sync.md alone. One step is one request, so that others can come between any two.

What a document says is a set of marks; merging two of them is joining the sets. So "nothing is lost" can be checked.
"""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Callable, Coroutine, Iterable
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from tests.kit.servers.reply import Reply

P = ParamSpec("P")
R = TypeVar("R")
Json = dict[str, Any]
Marks = frozenset[str]
_nonces = itertools.count(1)


class Lost(Exception):  # noqa: N818 - what happens to a network
    """No answer came: the request may have been done, or not."""


class Op(NamedTuple):
    """One write, as it is sent: again and again in the same words, until an answer comes."""

    kind: str
    vault: str
    uid: str
    body: Json

    @property
    def marks(self) -> Marks | None:
        """What it says; None for a deletion."""
        return None if self.kind == "delete" else opened(self.body["data"])


class Network(Protocol):
    """The way to the server."""

    async def write(self, op: Op) -> Reply:
        """Send one write."""

    async def batch(self, vault: str, ops: list[Op]) -> Reply:
        """Send several writes, of which all are done or none."""

    async def get(self, path: str, **query: Any) -> Reply:
        """Send one question."""


def sealed(marks: Iterable[str]) -> str:
    """Ciphertext. The same content never looks the same twice, as it is with real encryption."""
    plain = json.dumps({"marks": sorted(marks), "nonce": next(_nonces)})
    return base64.urlsafe_b64encode(plain.encode()).decode()


def opened(data: str) -> Marks:
    """What ciphertext says; nothing where it was thrown away."""
    return frozenset(json.loads(base64.urlsafe_b64decode(data))["marks"]) if data else frozenset()


def purged(document: Json) -> bool:
    """Whether it is a tombstone whose ciphertext was thrown away."""
    return document["deletedAt"] is not None and not document["data"]


class Entry:
    """One document on one device."""

    def __init__(self, vault: str, collection: str) -> None:
        self.vault = vault
        self.collection = collection
        self.base: Json | None = None  # as the server last showed it
        self.sent: Op | None = None  # sent, and not yet answered: never changed
        self.pending: Marks | None = None  # what it shall say
        self.unwanted = False  # it shall be deleted
        self.doubt = False  # what was sent met something unexpected: look before anything else
        self.gone: Marks | None = None  # what it said when it was deleted, in a lineage that is no more

    @property
    def busy(self) -> bool:
        """Whether there is something to push."""
        return self.sent is not None or self.pending is not None or self.unwanted

    @property
    def view(self) -> Marks | None:
        """What the user sees; None if the document is deleted."""
        if self.unwanted or (self.sent is not None and self.sent.kind == "delete" and self.pending is None):
            return None
        parts = [marks for marks in (self.pending, None if self.sent is None else self.sent.marks) if marks is not None]
        if self.base is not None and (parts or self.base["deletedAt"] is None):
            parts.append(opened(self.base["data"]))
        return frozenset().union(*parts) if parts else None

    @property
    def held(self) -> Marks:
        """Everything that the device has of it, whether the user sees it or not."""
        parts = [marks for marks in (self.pending, None if self.sent is None else self.sent.marks) if marks is not None]
        return frozenset().union(*parts, opened(self.base["data"]) if self.base is not None else ())

    def learn(self, current: Json) -> None:
        """Take over what the server shows. An older state than the known one is never believed."""
        if self.base is not None and current["version"] <= self.base["version"]:
            return
        self.base = current
        if self.sent is None:
            self._rebase(current)
        gone, self.gone = self.gone, None
        if gone is not None and current["deletedAt"] is None and opened(current["data"]) <= gone:
            self.unwanted = True  # a restore brought it back, as it was when it was deleted

    def demote(self) -> None:
        """The epoch is another: what was believed to be stored is only pending now."""
        view = self.view
        if view is None and self.base is not None and not purged(self.base):
            self.gone = opened(self.base["data"])
        self.base, self.sent, self.pending = None, None, view
        self.unwanted = self.doubt = False

    def confirm(self, stored: Json) -> None:
        """What was sent is stored. A tombstone may come without what it says, which the one who deleted it knows."""
        self.sent = None
        if self.base is not None and stored["deletedAt"] is not None:
            stored = {**stored, "data": self.base["data"], "hmac": self.base["hmac"]}
        if self.base is None or stored["version"] >= self.base["version"]:
            self.base = stored
        if self.pending is not None:
            self.pending |= opened(self.base["data"])

    def resolve(self, current: Json) -> None:
        """What was sent met this: find out what is left to say."""
        assert self.sent is not None
        sent, self.sent, self.doubt = self.sent, None, False
        if self.base is None or current["version"] >= self.base["version"]:
            self.base = current
        own = purged(self.base) and sent.body.get("hmac") == self.base["hmac"]  # what was sent is what was deleted
        if self.unwanted:  # the user deleted what was sent
            self._rebase(self.base)
        elif sent.marks is not None and not own:
            self.pending = sent.marks | (self.pending or frozenset())
            self._rebase(self.base)

    def _rebase(self, current: Json) -> None:
        """Put the user's change upon a state that the user had not seen."""
        self.unwanted = False  # gone already, or changed by somebody who did not know: the change stays
        if self.pending is not None:
            there = opened(current["data"])
            self.pending = None if self.pending <= there else self.pending | there

    def next_op(self, uid: str) -> Op | None:
        """What is to be sent now; from here on it is frozen."""
        if self.sent is None and self.unwanted:
            self.unwanted = False
            if self.base is not None and self.base["deletedAt"] is None:
                self.sent = Op("delete", self.vault, uid, {"version": self.base["version"]})
        elif self.sent is None and self.pending is not None:
            data, self.pending = sealed(self.pending), None
            body = {"data": data, "hmac": f"mac of {data[-12:]}"}
            if self.base is None:
                self.sent = Op("create", self.vault, uid, {**body, "uid": uid, "collection": self.collection})
            else:
                self.sent = Op("put", self.vault, uid, {**body, "version": self.base["version"]})
        return self.sent


class Following:
    """How far a device has followed a vault: not at all, in the middle of the first download, or up to `since`."""

    def __init__(self) -> None:
        self.begun: int | None = None  # the vault's clock before the first page
        self.page: int | None = None  # the last page's `next`, during the first download
        self.since: int | None = None


def _watched(
    step: Callable[Concatenate[ReferenceDevice, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[ReferenceDevice, P], Coroutine[Any, Any, R]]:
    """A step after which, if its connection is lost, the device looks first whether the server is the same."""

    @wraps(step)
    async def watched(device: ReferenceDevice, /, *args: P.args, **keywords: P.kwargs) -> R:
        try:
            return await step(device, *args, **keywords)
        except Lost:
            device.sure = False
            raise

    return watched


class ReferenceDevice:
    """One device of the account. It follows all documents of its vaults, or those of one collection."""

    def __init__(
        self,
        name: str,
        network: Network,
        vaults: Iterable[str],
        collection: str | None,
        fresh: Callable[[str, Marks], str],
    ) -> None:
        self.name = name
        self.fresh = fresh  # a new uid, for this content that cannot go on under its old one
        self.network = network
        self.collection = collection
        self.vaults = {vault: Following() for vault in vaults}
        self.entries: dict[str, Entry] = {}
        self.epoch: str | None = None
        self.sure = False  # whether the epoch was looked at since a connection was last lost

    # What the user does, online or not

    def write(self, vault: str, collection: str, uid: str, mark: str) -> None:
        """Begin a document."""
        entry = self.entries[uid] = Entry(vault, collection)
        entry.pending = frozenset({mark})

    def edit(self, uid: str, mark: str) -> None:
        """Add to a document."""
        entry = self.entries[uid]
        assert entry.view is not None
        entry.pending = entry.view | {mark}

    def delete(self, uid: str) -> Marks:
        """Delete a document; what it said to the user who deletes it."""
        entry = self.entries[uid]
        seen = entry.view
        assert seen is not None
        entry.pending, entry.unwanted = None, True
        if entry.base is None and entry.sent is None:
            del self.entries[uid]  # nobody else ever heard of it
        return seen

    # What the device does, one request at a time

    @property
    def busy(self) -> list[str]:
        """The documents with something to push."""
        return sorted(uid for uid, entry in self.entries.items() if entry.busy)

    def _moved(self, uid: str) -> str:
        """The uid under which a document goes on; another one, if its own has only an empty tombstone."""
        entry = self.entries[uid]
        if entry.pending is None or entry.sent is not None or entry.base is None or not purged(entry.base):
            return uid
        new = self.fresh(uid, entry.pending)
        self.entries[new] = Entry(entry.vault, entry.collection)
        self.entries[new].pending, entry.pending = entry.pending, None
        return new

    @_watched
    async def push(self, uid: str) -> None:
        """Send a change, or look at what it met."""
        uid = self._moved(uid)
        entry = self.entries[uid]
        if not await self._ready(entry.vault):
            return
        if entry.doubt:
            found = await self.network.get(f"/vaults/{entry.vault}/documents/{uid}")
            assert found.status == 200, found
            entry.resolve(found.body)
            return
        op = entry.next_op(uid)
        if op is None:
            return
        reply = await self.network.write(op)
        if reply.status in {200, 201}:
            entry.confirm({name: value for name, value in reply.body.items() if name != "success"})
        else:
            assert reply.code in {"document_conflict", "document_not_found", "uid_taken"}, reply
            entry.doubt = True

    @_watched
    async def push_all(self, vault: str) -> None:
        """Send all changes in a vault at once, but for those that must be looked at first."""
        if not await self._ready(vault):
            return
        waiting = [uid for uid in self.busy if self.entries[uid].vault == vault and not self.entries[uid].doubt]
        able = [self._moved(uid) for uid in waiting]
        ops = [op for op in (self.entries[uid].next_op(uid) for uid in able) if op is not None]
        if not ops:
            return
        reply = await self.network.batch(vault, ops)
        if reply.status == 200:
            for op, document in zip(ops, reply.body["results"], strict=True):
                self.entries[op.uid].confirm(document)
            return
        assert reply.code == "batch_conflict", reply
        for failed in reply.body["error"]["details"]["operations"]:
            self.entries[failed["uid"]].doubt = True  # the others were not written either, and are sent again

    @_watched
    async def pull(self, vault: str, limit: int | None) -> bool:
        """Ask for the next page; whether there is more at once."""
        if not await self._ready(vault):
            return True
        following = self.vaults[vault]
        first = following.since is None
        query = {
            "since": following.page if first else following.since,
            "limit": limit,
            "collection": self.collection,
            "includeDeleted": "false" if first else None,
        }
        page = (await self.network.get(f"/vaults/{vault}/documents", **query)).body
        for document in page["documents"]:
            entry = self.entries.setdefault(document["uid"], Entry(vault, document["collection"]))
            entry.learn(document)
        if not first:
            following.since = page["next"]
        elif page["hasMore"]:
            following.page = page["next"]
        else:
            following.since = following.begun  # what was deleted since the first page is still to come
        return bool(first or page["hasMore"])

    async def _ready(self, vault: str) -> bool:
        """Whether the epoch is known to be the same; if not, this step is for looking at the vault.

        Its clock is noted before the first push or pull: nothing that this device will learn of is older.
        """
        if self.sure and self.vaults[vault].begun is not None:
            return True
        shown = (await self.network.get(f"/vault/{vault}")).body
        if self.epoch not in {None, shown["epoch"]}:
            self._reconcile()
        self.epoch, self.sure = shown["epoch"], True
        if self.vaults[vault].begun is None:
            self.vaults[vault].begun = shown["updatedAt"]
        return False

    def _reconcile(self) -> None:
        """Start again with all local content pending, and list every document, deleted ones included."""
        for entry in self.entries.values():
            entry.demote()
        for following in self.vaults.values():
            following.begun, following.page, following.since = 0, None, 0

    def __repr__(self) -> str:
        return f"ReferenceDevice({self.name!r}, {self.collection!r})"

    def shown(self) -> dict[str, Marks]:
        """The documents that the user sees."""
        return {uid: entry.view for uid, entry in self.entries.items() if entry.view is not None}
