"""What an attack is, and how it is played: the refusal that is due, nothing leaked, nothing written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from strongroom.client import Locked, RolledBack, Tampered, UndecidedConflicts, Unsupported, WeakParameters, keep_mine
from strongroom.client.replica.report import Report
from strongroom.errors import Refusal
from tests.client.hostile.lying_proxy import Lie
from tests.client.hostile.scenario import CANARY, Stage

NONE = "—"  # does not apply
HARMLESS = "no effect"
CONFLICT = "a conflict"  # told to a person; both sides are kept
GAP = "taken, and told"  # what lies between is not known
REPEATED = "sent again"  # what a restored server has forgotten: the identical text, and nothing else


class Broken(AssertionError):  # noqa: N818
    """An attack has succeeded, or came to another end than the table says."""


class Attack(NamedTuple):
    """`lie` prepares the stage and gives the lie; `act` is what the victim then does; `sync` is `lie` for a replica."""

    name: str
    client: str
    replica: str
    lie: Callable[[Stage], Lie]
    act: Callable[[Stage], Any]
    sync: Callable[[Stage], Lie]
    fresh: bool
    writes: tuple[str, ...]
    partly: bool
    resolver: Callable[[Any], Any] | None
    again: bool


ATTACKS: dict[str, Attack] = {}


def stir(stage: Stage) -> None:
    """Somebody else has been at work, so that there is something to pull."""
    theirs = stage.theirs()
    theirs.replace(theirs.get(stage.note.uid), f"{CANARY} changed")
    theirs.create(f"{CANARY} from elsewhere")


def read(stage: Stage) -> Any:
    """One document, asked for."""
    return stage.notes.get(stage.note.uid)


def walk(stage: Stage) -> Any:
    """All documents of a collection."""
    return list(stage.notes)


def nothing(_stage: Stage) -> None:
    """No act."""


def attack(
    name: str,
    lie: Callable[[Stage], Lie],
    *,
    client: type[Refusal] | str = NONE,
    act: Callable[[Stage], Any] = nothing,
    replica: type[Refusal] | str = NONE,
    sync: Callable[[Stage], Lie] | None = None,
    fresh: bool = False,
    writes: tuple[str, ...] = (),
    partly: bool = False,
    resolver: Callable[[Any], Any] | None = None,
    again: bool = True,
) -> None:
    """Enter an attack. `writes`: what may be written after the lie, because the lie is what asks for it.

    `partly`: of what came with the lie, a replica may keep the rows that a key holder made, and nothing else.
    `resolver`: a replica syncs with it. `again`: a sync with an honest server mends it; what was written on two
    branches of one version stays refused.
    """

    def stirred(stage: Stage) -> Lie:
        if not fresh:
            stir(stage)
        return lie(stage)

    assert name not in ATTACKS
    ATTACKS[name] = Attack(
        name, _word(client), _word(replica), lie, act, sync or stirred, fresh, writes, partly, resolver, again
    )


def _word(outcome: type[Refusal] | str) -> str:
    return outcome if isinstance(outcome, str) else outcome.__name__


def play(stage: Stage, wanted: Attack, *, on: str) -> None:
    """Play an attack on a client or on its replica."""
    before: Any = None
    if on == "replica":
        stage.open_replica()
        stage.lies(wanted.sync(stage))
        before = stage.kept()
        shown, stored, texts = stage.shown(), stage.stored(), stage.texts()
        found = met(lambda: stage.replica.sync(wanted.resolver))
        due = wanted.replica
        _judge_writes(stage, wanted, texts)
    else:
        stage.lies(wanted.lie(stage))
        found = met(lambda: wanted.act(stage))
        due = wanted.client
    told = stage.liar.lies
    _judge(stage, wanted, found, due, told)
    if on == "replica" and not isinstance(found, Refusal):
        if due != GAP and stage.shown() != shown:
            raise Broken(f"{wanted.name}: the replica shows something else than before")
        if stage.stored() != stored:
            raise Broken(f"{wanted.name}: the server has something else than before")
        _sync_again(stage, wanted)
    elif on == "replica":
        after = stage.kept()
        if wanted.partly:
            before.pop("documents"), after.pop("documents")
        if after != before:
            raise Broken(f"{wanted.name}: the replica is not as it was")
        _sync_again(stage, wanted)


def _sync_again(stage: Stage, wanted: Attack) -> None:
    """When the server tells the truth again, everything is there."""
    stage.liar.lie = None
    if stage.core.session._access is None or not wanted.again:
        return
    synced: Any = met(stage.replica.sync)
    if isinstance(synced, UndecidedConflicts):  # the honest epoch is another one again
        _keep_mine(stage)
        synced = met(stage.replica.sync)
    if isinstance(synced, Refusal):
        raise Broken(f"{wanted.name}: when the server is honest again, the replica says {synced!r}")
    _keep_mine(stage)
    stage.replica.sync()
    theirs = {note.uid: note.value for note in stage.theirs()}
    mine = {note.uid: note.value for note in stage.mine()}
    if mine != theirs:
        raise Broken(f"{wanted.name}: when the server is honest again, the replica is not in step")


def _keep_mine(stage: Stage) -> None:
    for conflict in stage.replica.conflicts():
        conflict.resolve(keep_mine)


def met(act: Callable[[], Any]) -> Any:
    """What an act gives, or the refusal that it met."""
    try:
        return act()
    except Refusal as refused:
        return refused


def _outcome(found: Any) -> str:
    if isinstance(found, Refusal):
        return type(found).__name__
    if not isinstance(found, Report):
        return GAP if getattr(found, "gap", False) else HARMLESS
    return CONFLICT if found.conflicts or found.blob_conflicts else GAP if found.gaps else HARMLESS


def _judge_writes(stage: Stage, wanted: Attack, texts: set[str]) -> None:
    """Nothing that was sealed because of the lie has come to the server: what was sent is what was here before."""
    if wanted.writes:
        return
    for sent in stage.liar.sent:
        if sent.late and sent.writes and (anew := [text for text in sent.texts() if text not in texts]):
            raise Broken(f"{wanted.name}: sealed anew after the lie: {sent.method} {sent.path} {anew}")


def _judge(stage: Stage, wanted: Attack, found: Any, due: str, told: int) -> None:
    if not told:
        raise Broken(f"{wanted.name}: the lie was never told")
    word = _outcome(found)
    if word == HARMLESS and due == REPEATED and stage.liar.late_writes():
        word = REPEATED
    if word != due:
        raise Broken(f"{wanted.name}: {due} is due, and it was {word}: {found!r}")
    written = [write for write in stage.liar.late_writes() if not write.startswith(wanted.writes or "-")]
    if written and due != REPEATED:
        raise Broken(f"{wanted.name}: written after the lie: {written}")
    if any(thief.sent for thief in stage.thieves):
        raise Broken(f"{wanted.name}: another host was called")
    secrets = stage.secrets()
    leaked = [name for name, secret in secrets.items() if secret in stage.liar.received]
    if isinstance(found, Refusal):
        said = repr((str(found), found.args, found.details)).encode()
        leaked += [f"{name} in the error" for name, secret in secrets.items() if secret in said]
    if leaked:
        raise Broken(f"{wanted.name}: leaked: {leaked}")


__all__ = [
    "ATTACKS",
    "CANARY",
    "CONFLICT",
    "GAP",
    "HARMLESS",
    "NONE",
    "REPEATED",
    "Attack",
    "Broken",
    "Locked",
    "RolledBack",
    "Tampered",
    "Unsupported",
    "WeakParameters",
    "attack",
    "met",
    "play",
    "read",
    "stir",
    "walk",
]
