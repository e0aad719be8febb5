"""Lies about documents: moved, old, deleted, revived, left out, not kept."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from strongroom.client.format import seal, tokens
from strongroom.client.format.content import to_content
from strongroom.client.format.encoding import short
from strongroom.client.format.keys import CollectionKeys
from tests.client.hostile.attack import CANARY, RolledBack, Tampered, Unsupported, attack, read, stir, walk
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.scenario import Row, Stage, about, about_row, about_rows, newest_row, with_

FAR = 10**9  # a moment's worth of milliseconds: later than anything that the stage has seen


def note(change: Callable[[Row], Row | None]) -> Callable[[Stage], Lie]:
    """Another row in the place of the note's."""
    return lambda stage: about_row(stage, stage.note.uid, change)


def borrowed(find: Callable[[Stage], Row]) -> Callable[[Stage], Lie]:
    """Ciphertext and proof of another row, under the note's name and version."""

    def prepare(stage: Stage) -> Lie:
        found = find(stage)
        return about_row(stage, stage.note.uid, with_(data=found["data"], hmac=found["hmac"]))

    return prepare


# Moved


def from_second(stage: Stage) -> Row:
    """What the owner would have sealed for the same uid, version and collection name in another vault."""
    keys = stage.keys(stage.second)
    made = seal.seal_document(
        keys, stage.note.uid, stage.note.version, f"{CANARY} elsewhere", parent=short(stage.first.proof)
    )
    return {"data": made.data, "hmac": made.hmac}


def from_mallory(stage: Stage) -> Row:
    """A document of the same uid and version in an account of the server's friend."""
    vault = stage.people.mallory.vault("mine", create=True)
    there = vault.collection("notes")
    there.replace(there.create("planted", uid=stage.note.uid), "planted again")
    found: Row = stage.raw_of_mallory(f"/vaults/{vault.uid}/documents/{stage.note.uid}")
    return found


def task_moved(stage: Stage) -> Lie:
    """For a replica: there is a task to pull."""
    theirs = stage.owner.vault(stage.vault.name).collection(stage.tasks.name)
    theirs.replace(theirs.get(stage.task.uid), "changed")
    return about_row(stage, stage.task.uid, with_(collection=stage.note.wire))


both: dict[str, Any] = {"client": Tampered, "replica": Tampered}
attack("ciphertext of another document", borrowed(lambda stage: stage.raw(stage.other.uid)), act=read, **both)
attack("ciphertext of another collection", borrowed(lambda stage: stage.raw(stage.task.uid)), act=read, **both)
attack("ciphertext of another vault", borrowed(from_second), act=read, **both)
attack("ciphertext of another account", borrowed(from_mallory), act=read, **both)
attack("ciphertext of an older version", borrowed(lambda stage: stage.old), act=read, **both)
attack(
    "a document in another collection",
    lambda stage: about_row(stage, stage.task.uid, with_(collection=stage.note.wire)),
    act=lambda stage: stage.notes.get(stage.task.uid),
    client=Tampered,
    sync=task_moved,
    replica=Tampered,
)
attack("a document in another vault", note(with_(vaultUid="0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6")), act=read, **both)


# By somebody who has a token for another collection


def tokens_keys(stage: Stage) -> CollectionKeys:
    """What is in a token for the tasks alone, which may only read."""
    tasks = stage.owner.vault(stage.vault.name).collection(stage.tasks.name)
    keys = tokens.read(tasks.token("agent", permissions=["read"])).keys
    assert isinstance(keys, CollectionKeys)
    return keys


def of_token(
    version: Callable[[int], int] = lambda version: version + 1, *, deletion: bool = False, buried: bool = False
) -> Callable[[Stage], Lie]:
    """A row of the tasks that the token's key proves, with the note's uid, after what this device has seen of it."""

    def prepare(stage: Stage) -> Lie:
        keys, now = tokens_keys(stage), stage.raw(stage.note.uid)
        number, parent, content = version(now["version"]), short(now["hmac"]), to_content(f"{CANARY} by the token")
        sort = seal.DELETION if deletion else seal.DOCUMENT
        made = seal.seal_content(keys, sort, stage.note.uid, number, content, parent=parent)
        change = {"collection": keys.wire, "data": made.data, "hmac": made.hmac, "version": number}

        def changed(row: Row) -> Row:
            dead = {"version": number + 1, "deletedAt": row["updatedAt"]} if buried else {}
            return row | change | dead

        return newest_row(stage, stage.note.uid, changed)

    return prepare


def anything(stage: Stage) -> Any:
    """All documents of the vault: none is left out because of its collection."""
    return list(stage.vault)


for called, planted in {
    "a document overwritten by a token for another collection": of_token(),
    "a document deleted by a token for another collection": of_token(deletion=True),
    "a document deleted and buried by a token for another collection": of_token(deletion=True, buried=True),
    "a document overwritten far above its version by a token for another collection": of_token(lambda at: at + 40),
    "a document of this version by a token for another collection": of_token(lambda at: at),
    "a document of an older version by a token for another collection": of_token(lambda at: at - 1),
}.items():
    attack(called, planted, act=read, sync=planted, **both)
    attack(f"{called}, among all", planted, act=anything, client=Tampered)


def queued(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """A change of the note waits to be sent; then the lie."""

    def prepare(stage: Stage) -> Lie:
        mine = stage.mine()
        mine.replace(mine.get(stage.note.uid), f"{CANARY} waits here")
        return lie(stage)

    return prepare


waiting = queued(of_token())
attack("a document that waits to be sent, by a token for another collection", waiting, sync=waiting, replica=Tampered)


def swapped(stage: Stage) -> Lie:
    """Two rows, each under the other's uid."""
    names = {stage.note.uid: stage.other.uid, stage.other.uid: stage.note.uid}
    return about_rows(stage, lambda rows: [row | {"uid": names.get(row["uid"], row["uid"])} for row in rows])


attack("two documents under each other's uid", swapped, act=walk, **both)
attack(
    "another document than the one that was asked for",
    lambda stage: about("GET", f"/vaults/{stage.uid}/documents/{stage.note.uid}", _answers(stage.raw(stage.other.uid))),
    act=read,
    client=Tampered,
)


def _answers(row: Row) -> Callable[[Talk], None]:
    return lambda talk: talk.say(row)


def flipped(at: int) -> Callable[[str], str]:
    def change(text: str) -> str:
        raw = bytearray(base64.b64decode(text))
        raw[at] ^= 3
        return base64.b64encode(raw).decode()

    return change


other_format: dict[str, Any] = {"client": Unsupported, "replica": Unsupported}
attack("a document of an older format", note(with_(data=flipped(0))), act=read, **other_format)
attack(
    "a proof of a later format",
    note(with_(hmac=lambda text: f"sr3.{text[4:]}AAAA")),
    act=read,
    **other_format,
)
attack("a proof of an older format", note(with_(hmac=lambda text: f"sr1.{text[-43:]}")), act=read, **other_format)
attack("a document of an unknown kind", note(with_(data=flipped(1))), act=read, **both)
attack("ciphertext with one bit turned over", note(with_(data=flipped(-20))), act=read, **both)
attack("a document without a proof", note(with_(hmac=None)), act=read, **both)
attack("base64 in another spelling", note(with_(data=lambda text: text + "\n")), act=read, **both)
attack(
    "a collection whose name is none",
    note(with_(collection="\u0000")),
    act=lambda stage: list(stage.vault),
    client=Tampered,
    replica=Tampered,
)
attack(
    "a collection whose name was not sealed here",
    note(with_(collection=lambda wire: wire[:-6] + "AAAAAA")),
    act=lambda stage: list(stage.vault),
    client=Tampered,
    replica=Tampered,
)
attack("a version beyond all numbers", note(with_(version=2**63)), act=read, **both)
attack("a moment before all time", note(with_(createdAt=-1)), act=read, **both)
attack("a version of nothing", note(with_(version=0)), act=read, **both)


# Old


def older(stage: Stage) -> Lie:
    """The note as it was, with times that look new."""
    return about_row(stage, stage.note.uid, lambda row: stage.old | {"updatedAt": row["updatedAt"]})


def split(stage: Stage) -> Lie:
    """Another content of the version that this device has seen: one that was 'refused' and kept."""
    parent = short(stage.first.proof)
    made = seal.seal_document(
        stage.keys(), stage.note.uid, stage.note.version, f"{CANARY} the other branch", parent=parent
    )
    return about_row(
        stage, stage.note.uid, lambda row: row | {"version": stage.note.version, "data": made.data, "hmac": made.hmac}
    )


def set_back(stage: Stage) -> Lie:
    """The whole list as it was before the last changes."""
    keep = {stage.first.uid: stage.old}
    return about_rows(stage, lambda rows: [keep[row["uid"]] for row in rows if row["uid"] in keep])


attack("a document that is set back", older, act=read, client=RolledBack, replica=RolledBack)
attack("a document that is set back, in a list", older, act=walk, client=RolledBack)
attack("an older version called by a newer number", note(with_(version=lambda v: v + 1)), act=read, **both)
attack("two contents of one version", split, act=read, **both)
attack("a list as it was before", set_back, act=walk, client=RolledBack)


# Deleted and revived


def tombstone(row: Row) -> Row:
    return row | {
        "deletedAt": row["updatedAt"] + FAR,
        "updatedAt": row["updatedAt"] + FAR,
        "version": row["version"] + 1,
    }


def changes(stage: Stage) -> Any:
    return list(stage.notes.since(0))


def last_in_order(stage: Stage, uid: str, change: Callable[[Row], Row]) -> Lie:
    """A row that is changed and, being the newest, stands last."""

    def changed(rows: list[Row]) -> list[Row]:
        found = [change(row) if row["uid"] == uid else row for row in rows]
        return sorted(found, key=lambda row: row["updatedAt"])

    return about_rows(stage, changed)


attack("a forged tombstone", lambda stage: last_in_order(stage, stage.note.uid, tombstone), act=changes, **both)
attack(
    "a forged tombstone, emptied",
    lambda stage: last_in_order(stage, stage.note.uid, lambda row: tombstone(row) | {"data": ""}),
    act=changes,
    **both,
)


def others_notice(stage: Stage) -> Lie:
    """The notice of another deletion, under the note's name."""
    gone = stage.raw(stage.gone.uid)
    return last_in_order(
        stage,
        stage.note.uid,
        lambda row: tombstone(row) | {"data": gone["data"], "hmac": gone["hmac"], "version": gone["version"]},
    )


def early_notice(stage: Stage) -> Lie:
    """A true notice, and a tombstone of another version than the one that follows it."""
    return last_in_order(stage, stage.gone.uid, lambda row: tombstone(row) | {"version": row["version"] + 1})


def revived(stage: Stage) -> Lie:
    """What is deleted, alive as it was before."""

    def changed(rows: list[Row]) -> list[Row]:
        found = [row for row in rows if row["uid"] != stage.gone.uid]
        moment = max([row["updatedAt"] for row in found], default=0) + FAR
        return [*found, stage.alive | {"updatedAt": moment}]

    return about_rows(stage, changed)


def revived_here(stage: Stage) -> Lie:
    """For a replica: what it has seen deleted, alive as it was before."""
    alive = stage.raw(stage.other.uid)
    theirs = stage.theirs()
    theirs.delete(theirs.get(stage.other.uid))
    stage.replica.sync()
    stir(stage)
    return about_rows(stage, lambda rows: [*rows, alive | {"updatedAt": rows[-1]["updatedAt"] + FAR}])


def undeleted(stage: Stage) -> Lie:
    """The tombstone, without saying that it is one."""
    return last_in_order(
        stage, stage.gone.uid, lambda row: row | {"deletedAt": None, "updatedAt": row["updatedAt"] + FAR}
    )


def gone_elsewhere(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """For a replica: the deletion is among what there is to pull."""

    def prepare(stage: Stage) -> Lie:
        theirs = stage.theirs()
        back = theirs.replace(theirs.get(stage.gone.uid, deleted=True), f"{CANARY} back")
        theirs.delete(back)
        return lie(stage)

    return prepare


def other_data(stage: Stage) -> Lie:
    """A true notice, and other bytes than were sealed with it: its proof does not cover them."""
    return last_in_order(stage, stage.gone.uid, lambda row: row | {"data": flipped(-20)(row["data"])})


attack("a deletion with other data", other_data, act=changes, sync=gone_elsewhere(other_data), **both)
attack("the notice of another deletion", others_notice, act=changes, **both)
attack(
    "a tombstone of another version than its notice's",
    early_notice,
    act=changes,
    sync=gone_elsewhere(early_notice),
    **both,
)
attack("a deletion that is undone", revived, act=walk, client=RolledBack, sync=revived_here, replica=RolledBack)
attack("a tombstone that hides that it is one", undeleted, act=changes, sync=gone_elsewhere(undeleted), **both)


# Left out, doubled, out of order


def without(uid: Callable[[Stage], str]) -> Callable[[Stage], Lie]:
    return lambda stage: about_row(stage, uid(stage), lambda _row: None)


def own_push(stage: Stage) -> Lie:
    """What this replica has sent is left out of what it pulls."""
    made = stage.mine().create(f"{CANARY} sent from here")
    stage.replica.sync()
    stir(stage)
    return about_row(stage, made.uid, lambda _row: None)


attack(
    "a row is left out of a page",
    without(lambda stage: stage.other.uid),
    act=walk,
    client=RolledBack,
    fresh=True,
    replica=Tampered,
)
attack(
    "a row is left out of what has changed",
    without(lambda stage: stage.note.uid),
    act=changes,
    client=RolledBack,
    sync=own_push,
    replica=RolledBack,
)
attack(
    "a deletion is left out of what has changed", without(lambda stage: stage.gone.uid), act=changes, client=RolledBack
)


def cut_off(stage: Stage) -> Lie:
    """The list ends after its first row."""
    return _list(stage, lambda told: told | {"documents": told["documents"][:1], "hasMore": False}, next_=True)


def _list(stage: Stage, change: Callable[[Row], Row], *, next_: bool = False) -> Lie:
    def lie(talk: Talk) -> None:
        told = change(talk.told)
        if next_ and told["documents"]:
            told["next"] = told["documents"][-1]["updatedAt"]
        talk.say(told)

    return about("GET", f"/vaults/{stage.uid}/documents", lie)


attack("a list that is cut off", cut_off, act=walk, client=RolledBack, fresh=True, replica=Tampered)
attack(
    "an empty list",
    lambda stage: _list(stage, lambda _told: {"documents": [], "hasMore": False, "next": 0}),
    act=walk,
    client=RolledBack,
    fresh=True,
    replica=Tampered,
)
attack(
    "a list without an end and without rows",
    lambda stage: _list(stage, lambda told: told | {"documents": [], "hasMore": True}),
    act=walk,
    **both,
)
attack(
    "a list that goes on further than it has shown",
    lambda stage: _list(stage, lambda told: told | {"next": told["next"] + FAR}),
    act=walk,
    **both,
)
attack(
    "a row twice",
    lambda stage: _list(
        stage,
        lambda told: told | {"documents": [*told["documents"], told["documents"][-1] | {"updatedAt": 10**15}]},
        next_=True,
    ),
    act=walk,
    **both,
)
attack(
    "rows out of order",
    lambda stage: _list(stage, lambda told: told | {"documents": told["documents"][::-1]}, next_=True),
    act=walk,
    **both,
)
attack(
    "a tombstone among the living",
    lambda stage: _list(
        stage,
        lambda told: told | {"documents": [*told["documents"], stage.raw(stage.gone.uid) | {"updatedAt": 10**15}]},
        next_=True,
    ),
    act=walk,
    fresh=True,
    **both,
)
attack(
    "more rows than were asked for",
    lambda stage: _list(
        stage,
        lambda told: (
            told
            | {"documents": [told["documents"][0] | {"uid": f"x{n}", "updatedAt": 10**15 + n} for n in range(2001)]}
        ),
        next_=True,
    ),
    act=walk,
    **both,
)
attack(
    "a document that is denied",
    lambda stage: about(
        "GET",
        f"/vaults/{stage.uid}/documents/{stage.note.uid}",
        lambda talk: talk.refuse(404, "document_not_found"),
    ),
    act=read,
    client=RolledBack,
)


# Times


attack("another time of the last change", note(with_(updatedAt=lambda at: at + FAR)), act=read, client=Tampered)
attack("another time of making", note(with_(createdAt=lambda at: at - 1)), act=read, **both)
attack("a time of making that is left at zero", note(with_(createdAt=0)), act=read, **both)


def earlier(stage: Stage) -> Lie:
    stir(stage)
    return about_row(stage, stage.note.uid, with_(updatedAt=stage.note.updated_at - 1))


attack("a newer version from an earlier time", earlier, act=read, client=Tampered)
