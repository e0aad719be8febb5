"""The stage of the hostile chapter (tests/client/hostile) with a TypeScript client as the victim."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from strongroom.client import Client
from strongroom.client.format import names
from strongroom.client.format.keys import CollectionKeys
from strongroom.client.operations.rollback import SeenAccount
from strongroom.client.operations.vaults import OpenVault
from strongroom.errors import VaultNotFound
from tests.client.hostile.lying_proxy import Liar
from tests.client.hostile.scenario import CANARY, FURNITURE, People, Stage, twin
from tests.kit.clients.factory import PythonClientFactory
from tests.kit.clients.typescript import Thing, TypeScriptClientFactory
from tests.kit.people.credentials import PASSWORD


class Model(NamedTuple):
    """A victim as it was when its room was furnished, and the room."""

    client: Thing
    names: tuple[str, str]
    opened: tuple[OpenVault, OpenVault]  # as the owner's other device has them
    furniture: dict[str, Any]
    stored: Any


class _Keys:
    """What is inside the victim, as the attacks look at it: keys are those of the same account's Python client."""

    def __init__(self, stage: TypeScriptStage) -> None:
        self._stage = stage
        self.descriptor = stage.people.ada._core.descriptor
        self.session = _Session(stage.victim)
        self.device = _SeenAccounts(stage)

    def keyring(self) -> Any:
        return self._stage.people.ada._core.keyring()


class _Session:
    """The victim's tokens."""

    _victim: Thing

    def __init__(self, victim: Thing) -> None:
        self.__dict__["_victim"] = victim

    def __getattr__(self, name: str) -> str | None:
        tokens: list[str] = self._victim.inside("tokensHeld")
        return tokens[("_access", "_refresh").index(name)] if tokens else None

    def __setattr__(self, name: str, value: str) -> None:
        tokens = self._victim.inside("tokens")
        tokens[("_access", "_refresh").index(name)] = value
        self._victim.inside("useTokens", *tokens)


class _SeenAccounts:
    """What the victim has seen of its account."""

    def __init__(self, stage: TypeScriptStage) -> None:
        self._stage = stage
        self._accounts = self

    def account(self, email: str) -> SeenAccount | None:
        return self._stage.people.ada._core.device.account(email)

    def __setitem__(self, email: str, seen: SeenAccount) -> None:
        self._stage.victim.inside("remember", {"memory": seen.memory, "passes": seen.passes})


class TypeScriptStage(Stage):
    """One attack's world. The victim is a TypeScript client; the owner's other device, and Mallory, are Python ones."""

    clients: Any
    _model: Model
    model: Model | None = None  # shared by all stages of a session, as `People.room` is

    def __init__(
        self, clients: TypeScriptClientFactory, liar: Liar, people: People, home: Path, *, fresh: bool = False
    ) -> None:
        self.clients = clients
        self.liar = liar
        self.people = people
        self.home = home
        people.stay()
        self.victim = clients.client(liar.url, retries=1, patience=0.5, timeout=20.0)
        self._direct: Any = PythonClientFactory("blocking", people.url)
        self.owner = twin(self._direct, people.url, people.ada)
        self.replica = None
        self.thieves = []
        self.fresh = fresh
        self._shared = False
        model, TypeScriptStage.model = TypeScriptStage.model, None
        if model is None:
            self.victim.login(people.email, PASSWORD)
            self._furnish()
            model = self._model
        else:
            model.client.inside("twin", self.victim)
            self._open(*model.names)
            for name, thing in model.furniture.items():
                setattr(self, name, thing)
        self._model = model
        self.vault._opened, self.second._opened = model.opened
        liar.sent.clear()

    def _furnished(self) -> Any:
        """What the next stages begin with."""
        client = self.clients.client(self.people.url)
        self.victim.inside("twin", client)
        furniture = {name: getattr(self, name) for name in FURNITURE}
        names = self.vault.name, self.second.name
        opened = self.owner.vault(names[0])._opened, self.owner.vault(names[1])._opened
        self._model = Model(client, names, opened, furniture, self._stored())
        return _Room(self.people.ada)

    def _open(self, name: str, second: str) -> None:
        """The vaults, as this client opens them."""
        self.vault, self.second = self.victim.vault(name), self.victim.vault(second)
        self.notes, self.tasks = self.vault.collection(f"{CANARY} notes"), self.vault.collection(f"{CANARY} tasks")

    @property
    def core(self) -> Any:
        return _Keys(self)

    def keys(self, vault: Any = None, name: str | None = None) -> CollectionKeys:
        """The keys of a collection, as the owner's other device has them."""
        place = vault or self.vault
        try:
            opened = self.owner.vault(place.name)._opened
        except VaultNotFound:  # it was renamed meanwhile
            opened = place._opened
        return names.collection_keys(opened.keys, name or self.notes.name, sealed=opened.sealed)

    def secrets(self) -> dict[str, bytes]:
        self._room: Any = _Room(self.people.ada)
        return super().secrets()

    def _table(self, name: str) -> list[Any]:
        found: list[Any] = self.clients.node.ask("replica", self.replica._number, "list", (name,))
        return found

    def kept(self) -> Any:
        """What the replica's file holds of the vault that is attacked."""
        mine = {name: [row for row in self._table(name) if row["vault"] == self.uid] for name in ("heads", "outbox")}
        vaults = [row for row in self._table("vaults") if row["uid"] == self.uid]
        return {
            "documents": [mine["heads"], self._table("data")],
            "vaults": [[row[name] for name in ("uid", "wire", "version", "data", "salt")] for row in vaults],
            "outbox": [(row["uid"], row["kind"]) for row in mine["outbox"]],
        }

    def texts(self) -> set[str]:
        """Everything sealed that the replica's file holds: what may be sent again."""
        rows = [row.values() for name in ("heads", "outbox", "vaults") for row in self._table(name)]
        rows += [self._table("data"), self._table("facts")]
        return {text for row in rows for text in row if isinstance(text, str) and text}

    def close(self) -> None:
        """Keep the room for the next stage, if nothing has changed in it."""
        self.liar.lie = None
        if self.replica is not None:
            self.replica.close()
        if self._stored() == self._model.stored:
            TypeScriptStage.model = self._model
        else:
            for vault in self.owner.vaults():
                if vault.uid in {self.vault.uid, self.second.uid}:
                    vault.delete()
        self._direct.close()
        for thief in self.thieves:
            thief.close()


class _Room:
    """What `Stage.secrets` takes from a room: the keyring of the account."""

    def __init__(self, ada: Client) -> None:
        self.core = ada._core
