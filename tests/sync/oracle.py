"""What the server must do with each request, computed beside it: the contract as a program."""

from __future__ import annotations

from typing import Any

from tests.kit.clock import Clock
from tests.kit.servers.restartable_server import HISTORY_DAYS, HISTORY_VERSIONS, TRASH_DAYS
from tests.sync.device import Json, Op, purged

DAY = 86_400_000
State = tuple[int, dict[str, Json], dict[str, list[Json]]]


class Oracle:
    """The state that the server must be in, and what it must say next."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.moment = self._next = 0  # the account's clock
        self.documents: dict[str, Json] = {}
        self.versions: dict[str, list[Json]] = {}  # what was replaced and is kept, newest first

    def draw(self, count: int = 1) -> None:
        """Draw the moments for so many changes."""
        self._next = max(self._clock.now, self.moment + 1)
        self.moment = self._next + count - 1

    def _take(self) -> int:
        """The next of the moments that were drawn."""
        self._next += 1
        return self._next - 1

    def vault(self) -> int:
        """A vault is made: its moment."""
        self.draw()
        return self.moment

    def expect(self, op: Op) -> tuple[int, Any]:
        """Do a write; the status and the document, or the code of the refusal and its details."""
        moment, documents = self.moment, dict(self.documents)
        self.draw()
        outcome = self._done(op)
        if self.documents == documents:
            self.moment = moment
        return outcome

    def expect_batch(self, ops: list[Op]) -> tuple[int, Any]:
        """Do several writes, or none of them; the documents, or what each of those that fail meets."""
        before = self.state()
        documents = before[1]
        self.draw(len(ops))
        outcomes = [self._done(op) for op in ops]
        failed = [n for n, (status, _) in enumerate(outcomes) if status >= 400]
        if failed or self.documents == documents:
            self.go_back(before)
        if not failed:
            return 200, [_bare(document) for _, document in outcomes]
        none = {"version": None, "updatedAt": None}
        return 409, [
            {
                "index": n,
                "op": ops[n].kind,
                "uid": ops[n].uid,
                "code": outcomes[n][1][0],
                **(_details(documents[ops[n].uid]) if ops[n].uid in documents else none),
            }
            for n in failed
        ]

    def _done(self, op: Op) -> tuple[int, Any]:
        return {"create": self._create, "put": self._put, "delete": self._delete}[op.kind](op)

    def _create(self, op: Op) -> tuple[int, Any]:
        wanted = {
            "uid": op.uid,
            "vaultUid": op.vault,
            "collection": op.body["collection"],
            "data": op.body["data"],
            "hmac": op.body["hmac"],
        }
        stored, moment = self.documents.get(op.uid), self._take()
        if stored is None:
            return 201, self._store(
                {**wanted, "version": 1, "createdAt": moment, "updatedAt": moment, "deletedAt": None}
            )
        if stored["version"] == 1 and wanted.items() <= stored.items():
            return 200, stored
        return 409, ("uid_taken", None)

    def _put(self, op: Op) -> tuple[int, Any]:
        stored, version = self.documents.get(op.uid), op.body["version"]
        if stored is None or purged(stored):
            return 404, ("document_not_found", None)
        content = {"data": op.body["data"], "hmac": op.body["hmac"]}
        if version == stored["version"]:
            change = {**content, "version": version + 1, "updatedAt": self._take(), "deletedAt": None}
            return 200, self._replace(stored, {**stored, **change})
        if version + 1 == stored["version"] and stored["deletedAt"] is None and content.items() <= stored.items():
            return 200, stored
        return 409, ("document_conflict", _details(stored))

    def _delete(self, op: Op) -> tuple[int, Any]:
        stored = self.documents.get(op.uid)
        if stored is None or stored["deletedAt"] is not None:
            return 404, ("document_not_found", None)
        if op.body["version"] != stored["version"]:
            return 409, ("document_conflict", _details(stored))
        moment = self._take()
        tombstone = {**stored, "version": stored["version"] + 1, "updatedAt": moment, "deletedAt": moment}
        return 200, {"success": True, **self._replace(stored, tombstone)}

    def _store(self, document: Json) -> Json:
        self.documents[document["uid"]] = document
        return document

    def _replace(self, old: Json, new: Json) -> Json:
        """Keep what is replaced, and no more than the newest few."""
        kept = {**old, "replacedAt": new["updatedAt"]}
        self.versions[old["uid"]] = [kept, *self.versions.get(old["uid"], [])][:HISTORY_VERSIONS]
        return self._store(new)

    def throw_away(self) -> None:
        """The server throws away what was kept for long enough."""
        now = self._clock.now
        for uid, document in self.documents.items():
            due = document["deletedAt"] is not None and document["deletedAt"] <= now - TRASH_DAYS * DAY
            if due and document["data"]:
                self.documents[uid] = {**document, "data": ""}
                self.versions.pop(uid, None)
        for uid, kept in self.versions.items():
            self.versions[uid] = [one for one in kept if one["replacedAt"] > now - HISTORY_DAYS * DAY]

    def history(self, uid: str) -> list[Json]:
        """What the list of a document's versions must show."""
        names = ("version", "updatedAt", "deletedAt", "replacedAt")
        return [
            {**{name: kept[name] for name in names}, "bytes": len(kept["data"]) + len(kept["hmac"])}
            for kept in self.versions.get(uid, [])
        ]

    def state(self) -> State:
        """All of it, to go back to."""
        return self.moment, dict(self.documents), {uid: list(kept) for uid, kept in self.versions.items()}

    def go_back(self, state: State) -> None:
        """Go back to what was."""
        self.moment, documents, versions = state
        self.documents, self.versions = dict(documents), {uid: list(kept) for uid, kept in versions.items()}

    def listed(
        self, vault: str, *, since: int | None, limit: int | None, collection: str | None, deleted: str | None
    ) -> Json:
        """What a list must answer. `deleted` "only": the trash."""
        found = sorted(
            (
                document
                for document in self.documents.values()
                if document["vaultUid"] == vault
                and document["updatedAt"] > (since or 0)
                and collection in {None, document["collection"]}
                and _shows(document, deleted or ("false" if since is None else "true"))
            ),
            key=lambda document: document["updatedAt"],
        )
        shown = found if limit is None else found[:limit]
        last = shown[-1]["updatedAt"] if shown else since or 0
        return {"documents": shown, "hasMore": len(shown) < len(found), "next": last}

    def usage(self, *vaults: str) -> Json:
        """What lives in these vaults and what trash and history take, counted by looking at all of it."""
        inside = [held for held in self.documents.values() if held["vaultUid"] in vaults]
        live = [held for held in inside if held["deletedAt"] is None]
        kept = [held for held in inside if held["deletedAt"] is not None and not purged(held)]
        kept += [version for held in inside for version in self.versions.get(held["uid"], [])]
        return {"documents": len(live), "bytes": _bytes(live), "kept": _bytes(kept) + 256 * len(kept)}


def _bytes(held: list[Json]) -> int:
    return sum(len(one["data"]) + len(one["hmac"]) for one in held)


def _shows(document: Json, deleted: str) -> bool:
    if deleted == "only":
        return document["deletedAt"] is not None and not purged(document)
    return document["deletedAt"] is None or deleted == "true"


def _bare(document: Json) -> Json:
    """A document as a batch answers it: a tombstone without its ciphertext."""
    if document["deletedAt"] is None:
        return document
    return {**{name: value for name, value in document.items() if name != "success"}, "data": "", "hmac": None}


def _details(stored: Json) -> Json:
    return {"version": stored["version"], "updatedAt": stored["updatedAt"]}
