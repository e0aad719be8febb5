"""Lies about vaults: their names, their clocks, their blobs, whether they are there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client import RolledBack, Tampered
from tests.client.hostile.attack import CANARY, attack, stir
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.scenario import Row, Stage, about, about_vault, with_


def reopen(stage: Stage) -> Any:
    return stage.victim.vault(stage.vault.name)


def list_all(stage: Stage) -> Any:
    return stage.victim.vaults()


def vault(change: Callable[[Row], Row | None]) -> Callable[[Stage], Lie]:
    return lambda stage: about_vault(stage, change)


both: dict[str, Any] = {"client": Tampered, "replica": Tampered}
back: dict[str, Any] = {"client": RolledBack, "replica": RolledBack}


def swapped(stage: Stage) -> Lie:
    """Each of two vaults under the other's name."""
    first, second = (row["name"] for row in (stage.raw_vault(), stage._get(f"/vault/{stage.second.uid}")))
    names = {first: second, second: first}

    def lie(talk: Talk) -> None:
        if talk.path == "/vault":
            talk.say({"vaults": [row | {"name": names.get(row["name"], row["name"])} for row in talk.told["vaults"]]})
        elif talk.path == f"/vault/{stage.uid}":
            talk.say(talk.told | {"name": names[talk.told["name"]]})

    return lie


attack("names swapped between two vaults", swapped, act=reopen, **both)
attack("names swapped between two vaults, in a list", swapped, act=list_all, client=Tampered)
attack("a vault under a name in the clear", vault(with_(name="personal")), act=reopen, **both)


def other_vault(stage: Stage) -> Lie:
    other = stage._get(f"/vault/{stage.second.uid}")
    return about("GET", f"/vault/{stage.uid}", lambda talk: talk.say(other))


attack("another vault than the one that was asked for", other_vault, act=reopen, client=Tampered)
attack(
    "a vault twice",
    lambda _stage: about("GET", "/vault", lambda talk: talk.say({"vaults": talk.told["vaults"] * 2})),
    act=list_all,
    **both,
)
attack("a vault that is hidden", vault(lambda _row: None), act=list_all, **back)
attack("a vault that is denied", vault(lambda _row: None), act=reopen, client=RolledBack)
attack(
    "a whole vault that is set back", lambda stage: about_vault(stage, lambda _row: stage.old_vault), act=reopen, **back
)
attack("a clock that is set back", vault(with_(updatedAt=lambda at: at - 10**6)), act=reopen, **back)
attack("a vault's version that is set back", vault(with_(version=lambda version: version - 1)), act=reopen, **back)
attack("a vault's version beyond all numbers", vault(with_(version=2**63)), act=reopen, **both)
attack(
    "a vault that counts other documents than it shows",
    vault(with_(documents=lambda count: count + 1)),
    replica=Tampered,
    partly=True,
)


# Blobs


def get_blob(stage: Stage) -> Any:
    return stage.vault.blob.get()


def new_blob(lie: Callable[[Stage], Lie]) -> Callable[[Stage], Lie]:
    """For a replica: there is a new blob to pull."""

    def prepare(stage: Stage) -> Lie:
        blob = stage.owner.vault(stage.vault.name).blob
        blob.put(f"{CANARY} blob three", after=blob.get())
        stir(stage)
        return lie(stage)

    return prepare


def others_blob(stage: Stage) -> Lie:
    """The blob of another vault of the same owner, of the same version."""
    stage.second.blob.put(f"{CANARY} one")
    stage.second.blob.put(f"{CANARY} two")
    other = stage._get(f"/vault/{stage.second.uid}")
    return about_vault(stage, with_(data=other["data"], salt=other["salt"]))


def old_blob(stage: Stage) -> Lie:
    return about_vault(stage, with_(data=stage.old_vault["data"], salt=stage.old_vault["salt"]))


def no_blob(stage: Stage) -> Lie:
    return about_vault(stage, lambda row: {k: v for k, v in row.items() if k not in {"data", "salt"}})


def no_newer_blob(stage: Stage) -> Lie:
    return about_vault(
        stage,
        lambda row: {k: v for k, v in row.items() if k not in {"data", "salt"}} | {"version": row["version"] + 1},
    )


attack("the blob of another vault", others_blob, act=get_blob, sync=new_blob(others_blob), **both)
attack("an older blob in the place of the newest", old_blob, act=get_blob, sync=new_blob(old_blob), **both)
attack("a blob that is gone", no_blob, act=get_blob, sync=new_blob(no_blob), **both)
attack("a blob that is gone, in a newer version", no_newer_blob, act=get_blob, **both)
attack(
    "a blob that is not kept",
    lambda stage: about("PUT", f"/vault/{stage.uid}", lambda talk: talk.say(talk.told | {"data": "AAAA"})),
    act=lambda stage: stage.vault.blob.put(f"{CANARY} blob three"),
    client=Tampered,
)


# Tokens


def agent(stage: Stage) -> Any:
    """An agent with a token of the vault asks for a collection by its name."""
    token = stage.owner.vault(stage.vault.name).token("agent")
    client = stage.clients.with_token(token, stage.liar.url)
    return list(client.vault().collection(f"{CANARY} notes"))


attack("an agent is told that names are not sealed", vault(with_(name="personal")), act=agent, client=Tampered)
