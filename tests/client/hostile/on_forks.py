"""Lies about the past: forked documents, blobs and keyrings, withheld history, keys of another generation."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client.format import derive, keyring, seal
from strongroom.client.format.encoding import short, to_url
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import CollectionKeys
from strongroom.client.format.primitives import random, sha256
from tests.client.forged_keyrings import after
from tests.client.hostile.attack import CANARY, CONFLICT, GAP, Locked, RolledBack, Tampered, attack, read
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_accounts import BODY, KEYRING, SLOTS, login, reload, shown
from tests.client.hostile.scenario import Row, Stage, about, about_row, about_vault, newest_row, together, with_
from tests.kit.people.credentials import PASSWORD

both: dict[str, Any] = {"client": Tampered, "replica": Tampered}


def truth(_talk: Talk) -> None:
    """No lie any more: the lie was told before."""


# Documents


def swallowed(stage: Stage, write: Callable[[], Any]) -> Any:
    """A write that the server says it has stored, and has not."""

    def stored(asked: Row, uid: str) -> Row:
        row = stage.raw(uid)
        later = {"version": row["version"] + 1, "updatedAt": row["updatedAt"] + 1}
        return row | {"data": asked["data"], "hmac": asked["hmac"]} | later

    def lie(talk: Talk) -> None:
        if talk.path == f"/vaults/{stage.uid}/batch":
            talk.say({"results": [stored(one, one["uid"]) for one in talk.asked["operations"]]}, 200)
        elif talk.method == "PUT" and f"/vaults/{stage.uid}/" in talk.path:
            talk.say(stored(talk.asked, talk.path.rpartition("/")[2]), 200)

    stage.lies(lie)
    made = write()
    stage.liar.lie = None
    return made


def elsewhere(stage: Stage, times: int) -> None:
    """The other device changes the note."""
    theirs = stage.theirs()
    for number in range(times):
        theirs.replace(theirs.get(stage.note.uid), f"{CANARY} elsewhere {number}")


def written(stage: Stage) -> None:
    """The note is changed by the device that is lied to."""
    if stage.replica is None:
        stage.notes.replace(stage.note, f"{CANARY} written here")
    else:
        mine = stage.mine()
        mine.replace(mine.get(stage.note.uid), f"{CANARY} written here")
        stage.replica.sync()


def history(stage: Stage, change: Callable[[list[Row]], list[Row]]) -> Lie:
    """Another history than the server's."""
    path = f"/vaults/{stage.uid}/documents/history"
    return about("GET", path, lambda talk: talk.say(talk.told | {"versions": change(talk.told["versions"])}))


def none(_versions: list[Row]) -> list[Row]:
    return []


def forged_entries(versions: list[Row]) -> list[Row]:
    """Each with a proof of the server's own, which names what the device has seen."""
    for one in versions:
        raw = base64.urlsafe_b64decode(one["hmac"][4:] + "==")
        one["hmac"] = "sr2." + to_url(raw[:20] + random(32))
    return versions


def forked(change: Callable[[list[Row]], list[Row]] | None = None, times: int = 2) -> Callable[[Stage], Lie]:
    """What was written here went nowhere, and the other device has gone on from what was there before."""

    def prepare(stage: Stage) -> Lie:
        swallowed(stage, lambda: written(stage))
        elsewhere(stage, times)
        return truth if change is None else history(stage, change)

    return prepare


def unread(change: Callable[[list[Row]], list[Row]], *, mine: bool) -> Callable[[Stage], Lie]:
    """The other device has gone on, knowing of what is here; the history says otherwise."""

    def prepare(stage: Stage) -> Lie:
        if mine:
            written(stage)
        else:
            elsewhere(stage, 1)
            read(stage) if stage.replica is None else stage.replica.sync()
        elsewhere(stage, 3)
        return history(stage, change)

    return prepare


def fork(name: str, lie: Callable[[Stage], Lie], **outcomes: Any) -> None:
    attack(name, lie, act=read, sync=lie, **outcomes)


aside: dict[str, Any] = {"client": Tampered, "replica": CONFLICT}
told: dict[str, Any] = {"client": GAP, "replica": GAP}
unknown: dict[str, Any] = {"client": GAP, "replica": CONFLICT}
fork("a write that is withheld, and another branch", forked(), **aside)
fork("a write that is withheld, and a longer branch", forked(times=4), **aside)
fork("a write that is withheld, and a branch without its history", forked(none, times=4), **unknown)
fork("a write that is withheld, and a branch with a forged history", forked(forged_entries, times=4), **unknown)
fork("another branch of one version", forked(times=1), again=False, **both)
fork("the history of a row that was written here, withheld", unread(none, mine=True), **unknown)
fork("the history of a row that was written here, forged", unread(forged_entries, mine=True), **unknown)
fork("the history of a row that was written elsewhere, withheld", unread(none, mine=False), **told)
fork("the history of a row that was written elsewhere, forged", unread(forged_entries, mine=False), **told)


def claimed(stage: Stage) -> Lie:
    """A change that was refused as out of date stands in the history, as if the other device had known of it."""
    sent: list[Row] = []
    mine = stage.mine()
    mine.replace(mine.get(stage.note.uid), f"{CANARY} written here")
    clock = stage.raw_vault()["updatedAt"]
    elsewhere(stage, 2)
    refused = {"uid": stage.note.uid, "code": "document_conflict", "version": stage.note.version + 1, "index": 0}

    def lie(talk: Talk) -> None:
        if talk.path == f"/vaults/{stage.uid}/documents" and not sent:
            told = [row for row in talk.told["documents"] if row["uid"] != stage.note.uid]
            since = next(int(part[6:]) for part in talk.query.split("&") if part.startswith("since="))
            talk.say(talk.told | {"documents": told, "next": told[-1]["updatedAt"] if told else since})
        elif talk.path == f"/vaults/{stage.uid}/batch":
            sent.extend(talk.asked["operations"])
            talk.refuse(409, "batch_conflict", {"operations": [refused]})
        elif talk.path == f"/vaults/{stage.uid}/documents/{stage.note.uid}/versions/3":
            talk.say(
                stage.raw(stage.note.uid) | {"version": 3} | {name: sent[0][name] for name in ("data", "hmac")}, 200
            )

    return together(lie, about_vault(stage, lambda row: row if sent else row | {"updatedAt": clock}))


attack(
    "a change that was refused, in the history",
    claimed,
    sync=claimed,
    replica=CONFLICT,
    writes=("POST /vaults/",),
)


def endless(stage: Stage) -> Lie:
    written(stage)
    elsewhere(stage, 2)
    path = f"/vaults/{stage.uid}/documents/history"
    return about("GET", path, lambda talk: talk.say(talk.told | {"versions": [], "hasMore": True}))


fork("a history without an end", endless, **both)


# Generations


def number(at: int) -> Callable[[str], str]:
    """Another generation in what is stored as base64, at this place."""

    def change(text: str) -> str:
        raw = bytearray(base64.b64decode(text))
        raw[at + 3] ^= 2
        return base64.b64encode(raw).decode()

    return change


def in_proof(hmac: str) -> str:
    raw = bytearray(base64.urlsafe_b64decode(hmac[4:] + "=="))
    raw[3] ^= 2
    return "sr2." + to_url(bytes(raw))


def note(change: Callable[[Row], Row]) -> Callable[[Stage], Lie]:
    return lambda stage: about_row(stage, stage.note.uid, change)


attack("another generation before the box", note(with_(data=number(2))), act=read, **both)
attack("another generation in the proof", note(with_(hmac=in_proof)), act=read, **both)
attack(
    "a generation that nobody has made",
    note(with_(data=number(2), hmac=in_proof)),
    act=read,
    client=Locked,
    replica=Locked,
)


def rotated(stage: Stage) -> tuple[CollectionKeys, CollectionKeys]:
    """The vault has a new key, and everything is sealed anew; the keys of before and of now."""
    before = stage.keys()
    stage.vault.rotate()
    if stage.replica is not None:
        stage.replica.sync()
    return before, stage.keys()


def of_former_holder(stage: Stage) -> Lie:
    """A row by somebody who has the keys of before a rotation, after what is there now."""
    before, _ = rotated(stage)
    now = stage.raw(stage.note.uid)
    made = seal.seal_document(
        before,
        stage.note.uid,
        now["version"] + 1,
        f"{CANARY} forged",
        parent=short(now["hmac"]),
        wire=now["collection"],
    )
    change = {"data": made.data, "hmac": made.hmac, "version": now["version"] + 1}
    return newest_row(stage, stage.note.uid, lambda row: row | change)


def renamed(stage: Stage) -> Lie:
    """A row under the collection's name of another generation."""
    _, keys = rotated(stage)
    change = with_(collection=keys.wires[0], version=lambda version: version + 1)
    return newest_row(stage, stage.note.uid, change)


fork("a row under a key of before a rotation", of_former_holder, **both)
fork("a collection's name of another generation", renamed, **both)


# Blobs


def get_blob(stage: Stage) -> Any:
    return stage.vault.blob.get()


def theirs_blob(stage: Stage, times: int) -> None:
    for count in range(times):
        blob = stage.owner.vault(stage.vault.name).blob
        blob.put(f"{CANARY} blob elsewhere {count}", after=blob.get())


def blob_branch(stage: Stage, *, kept: bool = False) -> Lie:
    """A blob that was written here went nowhere, and the other device has gone on from the one before."""
    row: Row = {}

    def lie(talk: Talk) -> None:
        if talk.method == "PUT" and talk.path == f"/vault/{stage.uid}":
            now, asked = stage.raw_vault(), talk.asked
            later = {"version": now["version"] + 1, "updatedAt": now["updatedAt"] + 1}
            row.update(now | {"data": asked["data"], "salt": asked["salt"]} | later)
            talk.say(row, 200)

    stage.lies(lie)
    stage.vault.blob.put(f"{CANARY} blob from here")
    if stage.replica is not None:
        stage.lies(about_vault(stage, lambda _row: row))
        stage.replica.sync()
    stage.liar.lie = None
    theirs_blob(stage, 3)
    return about("GET", f"/vault/{stage.uid}/versions", lambda talk: talk.say({"versions": []})) if kept else truth


attack("a blob that is withheld, and another branch", blob_branch, act=get_blob, sync=blob_branch, again=False, **both)
attack(
    "a blob that is withheld, and a branch without its history",
    lambda stage: blob_branch(stage, kept=True),
    act=get_blob,
    client=GAP,
)


def made_up(stage: Stage) -> Lie:
    """A blob of the server's own, which names what is there as its parent."""
    row = stage.raw_vault()
    parent = short(row["data"])
    data = base64.b64encode(b"\2\3\0\0\0\1" + parent + random(304)).decode()
    change = {"data": data, "version": row["version"] + 1, "updatedAt": row["updatedAt"] + 1}
    return about_vault(stage, lambda row: row | change)


def put_blob(stage: Stage) -> Any:
    return stage.vault.blob.put(f"{CANARY} blob three")


attack("a blob of the server's own making", made_up, act=get_blob, sync=made_up, **both)
attack("a blob of the server's own making, to be replaced", made_up, act=put_blob, client=Tampered)
attack(
    "a blob of another generation", lambda stage: about_vault(stage, with_(data=number(2))), act=get_blob, client=Locked
)


def rename(stage: Stage) -> Any:
    return stage.vault.rename(f"{stage.vault.name} renamed")


attack(
    "an older vault, to be renamed",
    lambda stage: about_vault(stage, lambda _row: stage.old_vault),
    act=rename,
    client=RolledBack,
    writes=("PUT /auth/keyring",),
)


def before_a_rename(stage: Stage) -> Lie:
    """The vault under the name of before it was renamed, with the blob of that time."""
    then = stage.raw_vault()
    stage.owner.vault(stage.vault.name).rename(f"{stage.vault.name} renamed")
    stage.vault = stage.owner.vault(f"{stage.vault.name} renamed")
    stage.replica.sync()
    return about_vault(stage, lambda _row: then)


attack("a vault of before it was renamed", before_a_rename, sync=before_a_rename, replica=RolledBack)


# Keyrings


def newest(stage: Stage) -> Keyring:
    return keyring.reopen(stage.raw_keyring()["keyring"], stage.core.keyring().key)


def spliced(stage: Stage) -> Row:
    """The slots of another keyring of the same account, which the password opens."""
    ring = newest(stage)
    descriptor = stage.core.descriptor
    assert descriptor is not None
    keys = derive.password_keys(stage.people.email, PASSWORD, descriptor)
    other, _ = keyring.seal(msgspec.structs.replace(ring, sealed_slots=b""), password=keys)
    now, then = base64.b64decode(stage.raw_keyring()["keyring"]), base64.b64decode(other)
    return {"keyring": base64.b64encode(now[:SLOTS] + then[SLOTS:BODY] + now[BODY:]).decode()}


def exchanged(stage: Stage) -> Row:
    """Slots that are not used, in each other's place."""
    raw = base64.b64decode(stage.raw_keyring()["keyring"])
    slots = [raw[at : at + 148] for at in range(SLOTS, BODY, 148)]
    used = {slot.slot for slot in newest(stage).slots}
    one, two = [place for place in range(8) if place not in used][:2]
    slots[one], slots[two] = slots[two], slots[one]
    return {"keyring": base64.b64encode(raw[:SLOTS] + b"".join(slots) + raw[BODY:]).decode()}


def generation(stage: Stage) -> Row:
    """Another generation in the head."""
    raw = base64.b64decode(stage.raw_keyring()["keyring"])
    return {"keyring": base64.b64encode(raw[:29] + bytes([raw[29] + 1]) + raw[30:]).decode()}


def lower_generation(stage: Stage) -> Row:
    raw = base64.b64decode(stage.raw_keyring()["keyring"])
    return {"keyring": base64.b64encode(raw[:29] + bytes([raw[29] - 1]) + raw[30:]).decode()}


for name, make in {
    "a keyring with the slots of an earlier one": spliced,
    "a keyring whose unused slots are exchanged": exchanged,
    "a keyring of a lower generation": lower_generation,
}.items():
    attack(f"{name}, at login", shown(make), client=Tampered, act=login)
    attack(name, shown(make), act=reload, **both)
attack("a keyring of a higher generation, at login", shown(generation), client=Tampered, act=login)
attack("a keyring of a higher generation", shown(generation), client=Locked, act=reload, replica=Locked)


def next_ring(change: Callable[[Keyring], Keyring], *since: str) -> Callable[[Stage], Lie]:
    """A keyring of a key holder that says which ones came since the newest; it is one of them where it was known."""

    def prepare(stage: Stage) -> Lie:
        ring = newest(stage)
        digests = [ring.digest if one == KNOWN else sha256(one.encode()) for one in since]
        made = after(change(ring), ring, digests)
        row = {"keyring": keyring.seal(made)[0], "version": made.version}
        return about(*KEYRING, lambda talk: talk.say(talk.told | row))

    return prepare


def same(ring: Keyring) -> Keyring:
    return ring


def without_vaults(ring: Keyring) -> Keyring:
    return msgspec.structs.replace(ring, vaults=())


def with_other_keys(ring: Keyring) -> Keyring:
    entries = (msgspec.structs.replace(entry, keys=((1, random(32)),)) for entry in ring.vaults)
    return msgspec.structs.replace(ring, vaults=tuple(entries))


KNOWN = "the newest"
attack("a newer keyring that follows on another", next_ring(same, "another"), act=reload, **both)
attack("a newer keyring, and another in between", next_ring(same, "another", "its next"), act=reload, **both)
attack("a newer keyring that names the newest in another place", next_ring(same, "another", KNOWN), act=reload, **both)
gap: dict[str, Any] = {"client": RolledBack, "replica": RolledBack}
later = (KNOWN, "its next", "the one after")
attack("a directory that lacks a vault which nobody deleted", next_ring(without_vaults, *later), act=reload, **gap)
attack("a directory with another key of a vault", next_ring(with_other_keys, *later), act=reload, **both)


def fresh_list(stage: Stage) -> Any:
    """A new device of the owner lists the vaults."""
    client = stage.clients.client(stage.liar.url, retries=1, patience=0.5)
    client.login(stage.people.email, PASSWORD)
    return client.vaults()


attack(
    "a vault that is hidden from a new device",
    lambda stage: about_vault(stage, lambda _row: None),
    act=fresh_list,
    client=RolledBack,
    fresh=True,
    replica=RolledBack,
)
