"""The scenario of an attack: an owner whose device has a history, an honest second device, and Mallory."""

from __future__ import annotations

import base64
import copy
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from strongroom.client import Client
from strongroom.client.format import names
from strongroom.client.format.keys import CollectionKeys
from strongroom.client.net.session import Session
from strongroom.client.operations.core import Core
from strongroom.client.operations.device import Device
from strongroom.client.operations.documents import Document
from strongroom.client.operations.vaults import OpenVault
from tests.client.hostile.lying_proxy import Liar, Lie, Talk
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

CANARY = "KANARIENVOGEL"
MALLORYS = "the password of Mallory"
Row = dict[str, Any]
_numbers = itertools.count(1)


class People:
    """Ada, whose account is attacked, and Mallory, who has one on the same server. Registered once."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.url = f"http://127.0.0.1:{server.port}"
        self.ada = Client(self.url)
        self.email = unique_email()
        self.ada.register(self.email, PASSWORD)
        self.mallory = Client(self.url)
        self._mallorys = unique_email()
        self.mallory.register(self._mallorys, MALLORYS)
        self.http = server.connect()
        self.room: Room | None = None  # the next shared stage takes it
        self._since = time.monotonic()

    def stay(self) -> None:
        """Log in again before the access tokens, which every stage borrows, run out."""
        if time.monotonic() - self._since > 300:
            self.ada.login(self.email, PASSWORD)
            self.mallory.login(self._mallorys, MALLORYS)
            self._since = time.monotonic()

    def leave(self) -> None:
        """Delete the room that waits for the next shared stage."""
        room, self.room = self.room, None
        uids = set() if room is None else {vault.uid for vault in room.vaults}
        for vault in self.ada.vaults() if uids else ():
            if vault.uid in uids:
                vault.delete()

    def close(self) -> None:
        self.http.close()
        self.ada.close()
        self.mallory.close()


def core_of(client: Any) -> Core:
    """What is inside a client, of either kind."""
    core: Core = client._core
    return core


def twin(clients: PythonClientFactory, url: str, model: Client) -> Any:
    """Another device of somebody who has logged in there a moment ago: it has the keys, and has seen the keyring."""
    made = clients.client(url, retries=1, patience=0.5, timeout=20.0)
    core, source = core_of(made), model._core
    assert source.ring is not None
    assert source.sealed is not None
    assert source.descriptor is not None
    assert source.email is not None
    core.email, core.ring = source.email, source.ring
    core.sealed, core.descriptor = source.sealed, source.descriptor
    core.device.record_account(source.email, source.ring, source.descriptor)
    core.session._access, core.session._refresh = source.session._access, source.session._refresh
    return made


def _copied(source: Core, to: Core) -> Core:
    """What a device has seen and knows of its account, on another one; not its session."""
    to.email, to.ring = source.email, source.ring
    to.sealed, to.descriptor = source.sealed, source.descriptor
    to.device = copy.deepcopy(source.device)
    return to


FURNITURE = ("first", "old", "note", "other", "task", "brief", "alive", "gone", "old_vault", "before", "last")


class Room(NamedTuple):
    """What a stage is furnished with, as the victim's device has seen it."""

    core: Core  # the victim's, when all was there
    vaults: tuple[OpenVault, OpenVault]
    first: Document
    old: Row
    note: Document
    other: Document
    task: Document
    brief: Document
    alive: Row
    gone: Document
    old_vault: Row
    before: Row
    last: Document
    stored: Any  # what the server has of it


class Stage:
    """One attack's world. `victim` talks to the liar, `owner` to the server itself; both are devices of one account.

    `shared`: the room is that of an attack before, if that has changed nothing in it.
    """

    def __init__(
        self,
        clients: PythonClientFactory,
        liar: Liar,
        people: People,
        home: Path,
        *,
        fresh: bool = False,
        shared: bool = False,
    ) -> None:
        self.clients = clients
        self.liar = liar
        self.people = people
        self.home = home
        people.stay()
        self.victim = twin(clients, liar.url, people.ada)
        self._direct = PythonClientFactory("blocking", people.url)
        self.owner = twin(self._direct, people.url, people.ada)
        self.replica: Any = None
        self.thieves: list[Liar] = []
        self.fresh = fresh
        self._shared = shared
        if shared and people.room is not None:
            self._enter(people.room)
            people.room = None
        else:
            self._furnish()

    def _furnish(self) -> None:
        """Make vaults, documents and blobs, through the liar."""
        number = next(_numbers)
        self.vault = self.victim.vault(f"{CANARY} {number}", create=True)
        self.second = self.victim.vault(f"{CANARY} second {number}", create=True)
        self.notes, self.tasks = self.vault.collection(f"{CANARY} notes"), self.vault.collection(f"{CANARY} tasks")
        self.first = self.notes.create(f"{CANARY} first")
        self.old = self.raw(self.first.uid)
        self.note = self.notes.replace(self.first, f"{CANARY} note")
        self.other = self.notes.create(f"{CANARY} other")
        self.task = self.tasks.create({CANARY: "task"})
        self.brief = self.notes.create(f"{CANARY} brief")
        self.alive = self.raw(self.brief.uid)
        self.gone = self.notes.delete(self.brief)
        self.vault.blob.put(f"{CANARY} blob one")
        self.old_vault = self.raw_vault()
        self.vault.blob.put(f"{CANARY} blob two")
        self.before = self.raw_keyring()
        self.last = self.notes.create(f"{CANARY} last")
        self._room = self._furnished()

    def _furnished(self) -> Room:
        """The room as it is now."""
        return Room(
            core=_copied(self.core, Core(Session(), Device())),
            vaults=(self.vault._opened, self.second._opened),
            stored=self._stored() if self._shared else None,
            **{name: getattr(self, name) for name in FURNITURE},
        )

    def _enter(self, room: Room) -> None:
        """Be the device that has furnished this room, as it was then."""
        self._room = room
        _copied(room.core, self.core)
        self.vault, self.second = (self.clients.reopened(self.victim, opened) for opened in room.vaults)
        self.notes, self.tasks = self.vault.collection(f"{CANARY} notes"), self.vault.collection(f"{CANARY} tasks")
        for name in FURNITURE:
            setattr(self, name, getattr(room, name))

    def _stored(self) -> Any:
        """What the server has of the room: any write to it changes this."""
        return [self.raw_vault(), self._get(f"/vault/{self.second.uid}"), self.raw_keyring()]

    @property
    def uid(self) -> str:
        uid: str = self.vault.uid
        return uid

    @property
    def core(self) -> Core:
        return core_of(self.victim)

    def keys(self, vault: Any = None, name: str | None = None) -> CollectionKeys:
        """The keys of a collection, as a key holder has them; of the notes, unless another is named."""
        opened = (vault or self.vault)._opened
        return names.collection_keys(opened.keys, name or self.notes.name, sealed=opened.sealed)

    def close(self) -> None:
        if self.replica is not None:
            self.replica.close()
        if self._shared and self._stored() == self._room.stored:
            self.people.room = self._room
        else:
            for vault in self.owner.vaults():  # or every replica of a later stage would hold them all
                if vault.uid in {self.vault.uid, self.second.uid}:
                    vault.delete()
        self._direct.close()
        for thief in self.thieves:
            thief.close()

    # What the server really has

    def _get(self, path: str, bearer: str | None = None) -> Any:
        bearer = bearer or self.people.ada._core.session._access
        found = self.people.http.get(path, headers={"authorization": f"Bearer {bearer}"})
        assert found.status_code == 200, found.text
        return found.json()

    def raw(self, uid: str, vault: str | None = None) -> Row:
        """A row as it is stored."""
        row: Row = self._get(f"/vaults/{vault or self.uid}/documents/{uid}")
        return row

    def raw_vault(self) -> Row:
        row: Row = self._get(f"/vault/{self.uid}")
        return row

    def raw_keyring(self) -> Row:
        row: Row = self._get("/auth/keyring")
        return row

    def raw_of_mallory(self, path: str) -> Any:
        """What Mallory's own account has."""
        return self._get(path, self.people.mallory._core.session._access)

    # Devices

    def open_replica(self) -> None:
        """The victim's replica; in step with the server, unless a first sync is what is attacked."""
        self.replica = self.victim.open_replica(self.home / "replica")
        if not self.fresh:
            self.replica.sync()

    def mine(self) -> Any:
        """The collection in the replica."""
        return self.replica.vault(self.vault.name).collection(self.notes.name)

    def theirs(self) -> Any:
        """The collection as the honest device of the same owner sees it."""
        return self.owner.vault(self.vault.name).collection(self.notes.name)

    def login(self) -> None:
        """A new device of the owner logs in through the liar."""
        client = self.clients.client(self.liar.url, retries=1, patience=0.5)
        client.login(self.people.email, PASSWORD)

    def lies(self, lie: Lie) -> None:
        self.liar.lie = lie

    def kept(self) -> Any:
        """What the replica's file holds of the vault that is attacked."""
        assert self.replica is not None
        file: Any = self.replica._local.file
        statements = {
            "documents": "SELECT p.collection, d.* FROM documents AS d JOIN places AS p ON p.id = d.collection"
            " WHERE p.vault = ? ORDER BY d.uid",
            "vaults": "SELECT uid, wire, version, data, salt FROM vaults WHERE uid = ?",
            "outbox": "SELECT uid, kind FROM outbox WHERE vault = ? ORDER BY uid",
        }
        connection: apsw.Connection = file._db
        return {name: list(connection.execute(statement, (self.uid,))) for name, statement in statements.items()}

    def texts(self) -> set[str]:
        """Everything sealed that the replica's file holds: what may be sent again."""
        connection: apsw.Connection = self.replica._local.file._db
        statements = ("SELECT data, hmac FROM documents", "SELECT data, hmac FROM outbox", "SELECT value FROM facts")
        rows = [row for statement in statements for row in connection.execute(statement)]
        rows += connection.execute("SELECT data, salt, wire FROM vaults")
        return {text for row in rows for text in row if text}

    def shown(self) -> Any:
        """What the replica shows of the notes, and of the vault's blob."""
        if self.fresh:
            return None
        vault = self.replica.vault(self.vault.name)
        return {note.uid: note.value for note in self.mine()}, vault.blob()

    def stored(self) -> Any:
        """What the server has of the vault, and of the account."""
        rows = self._get(f"/vaults/{self.uid}/documents?since=0&limit=1000&includeDeleted=true")["documents"]
        return rows, self.raw_vault(), self.raw_keyring()

    def secrets(self) -> dict[str, bytes]:
        """What must not be among the bytes that the liar was sent, in any of these spellings."""
        ring = self._room.core.keyring()
        collection = self.keys().newest
        found = {"a canary": CANARY.encode(), "the password": PASSWORD.encode()}
        for name, key in {
            "the account key": ring.key,
            "the identity's signing key": ring.identity[0].sign,
            "the identity's other key": ring.identity[0].agree,
            "a vault key": self.vault._opened.keys.newest.key,
            "a collection key": collection.key,
            "a seal key": collection.sealing,
            "a proof key": collection.proving,
        }.items():
            found |= {name: key, f"{name} in hex": key.hex().encode(), f"{name} in base64": base64.b64encode(key)[:42]}
            found[f"{name} in base64url"] = base64.urlsafe_b64encode(key)[:42]
        for name, words in {"a canary": CANARY, "the password": PASSWORD}.items():
            for shift in range(3):
                spelled = base64.b64encode(bytes(shift) + words.encode())[4:-4]
                found[f"{name} in base64, {shift}"] = spelled
            found[f"{name} in hex"] = words.encode().hex().encode()
            found[f"{name} in UTF-16"] = words.encode("utf-16-le")
        return found


# Lies about rows


def rows_of(talk: Talk) -> list[Row]:
    """The documents in an answer."""
    if talk.status >= 300 or ("/documents" not in talk.path and not talk.path.endswith("/batch")):
        return []
    told = talk.told
    found: list[Row] = told.get("documents", told.get("results", [told] if "vaultUid" in told else []))
    return found


def about_rows(stage: Stage, change: Callable[[list[Row]], list[Row]], *, next_: bool = True) -> Lie:
    """Other rows than the server's, with whatever else follows from that."""

    def lie(talk: Talk) -> None:
        if f"/vaults/{stage.uid}/" not in talk.path or talk.status >= 300:
            return
        was = rows_of(talk)
        now = change([dict(row) for row in was])
        if now == was:
            return
        told = talk.told
        if "documents" in told:
            told |= {"documents": now}
            if next_ and now:
                told["next"] = now[-1]["updatedAt"]
            elif next_:
                told["next"] = next((int(part[6:]) for part in talk.query.split("&") if part.startswith("since=")), 0)
        elif "results" in told:
            told["results"] = now
        elif now:
            told = now[0]
        else:
            return  # it is left out of lists only
        talk.say(told)

    return lie


def about_row(stage: Stage, uid: str, change: Callable[[Row], Row | None]) -> Lie:
    """Another row in the place of one; None leaves it out."""

    def changed(rows: list[Row]) -> list[Row]:
        found = [change(row) if row["uid"] == uid else row for row in rows]
        return [row for row in found if row is not None]

    return about_rows(stage, changed)


def about_vault(stage: Stage, change: Callable[[Row], Row | None]) -> Lie:
    """Another vault, wherever it is shown."""

    def lie(talk: Talk) -> None:
        if talk.path not in {"/vault", f"/vault/{stage.uid}"} or talk.status >= 300:
            return
        told = talk.told
        if "vaults" not in told:
            if told["uid"] == stage.uid:
                now = change(dict(told))
                if now is None:
                    talk.refuse(404, "vault_not_found")
                elif now != told:
                    talk.say(now)
            return
        found = [change(dict(row)) if row["uid"] == stage.uid else row for row in told["vaults"]]
        now_all = [row for row in found if row is not None]
        if now_all != told["vaults"]:
            talk.say({"vaults": now_all})

    return lie


def later(stage: Stage) -> int:
    """A time after the last change of the vault."""
    clock: int = stage.raw_vault()["updatedAt"]
    return clock + 10


def newest_row(stage: Stage, uid: str, change: Callable[[Row], Row]) -> Lie:
    """A document's row changed, as the newest of its vault, whose clock follows it."""
    at = later(stage)

    def lie(talk: Talk) -> None:
        if talk.path == f"/vaults/{stage.uid}/documents/{uid}" and talk.status < 300:
            talk.say(change(talk.told | {"updatedAt": at}))
        elif talk.path == f"/vaults/{stage.uid}/documents" and talk.method == "GET":
            row = change(stage.raw(uid) | {"updatedAt": at})
            others = [one for one in talk.told["documents"] if one["uid"] != uid]
            talk.say(talk.told | {"documents": [*others, row], "next": row["updatedAt"]})

    return together(lie, about_vault(stage, with_(updatedAt=at)))


def about(method: str, path: str, change: Callable[[Talk], None]) -> Lie:
    """Another answer to one kind of request."""
    return lambda talk: change(talk) if (talk.method, talk.path) == (method, path) else None


def together(*lies: Lie) -> Lie:
    """Several lies, each about what the one before has left."""

    def lie(talk: Talk) -> None:
        for one in lies:
            one(talk)

    return lie


def with_(**changes: Any) -> Callable[[Row], Row]:
    """A row with other fields; a function makes a field from what it was."""

    def change(row: Row) -> Row:
        return row | {name: made(row[name]) if callable(made) else made for name, made in changes.items()}

    return change
