"""Collections with a type: values are decoded and checked, and one that does not fit is told apart from tampering."""

from __future__ import annotations

import datetime as dt
import enum
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from strongroom.client import Conflict, Resolution, TypeMismatch, merged
from strongroom.client.errors import Tampered
from strongroom.errors import Invalid
from tests.kit.clients.devices import Devices
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email

CANARY = "kumquat"
WHEN = dt.datetime(2026, 2, 3, 4, 5, 6, tzinfo=dt.UTC)


class Colour(enum.Enum):
    RED = "red"


class Note(msgspec.Struct):
    title: str
    lines: tuple[str, ...] = ()
    made_at: dt.datetime = WHEN
    colour: Colour = Colour.RED
    counts: dict[int, int] = {}

    def __post_init__(self) -> None:
        if str(self.title).startswith("bad"):
            raise ValueError(f"Expected `title`, got {self.title}")


@dataclass
class Task:
    title: str
    note: Note | None = None
    tags: list[str] = field(default_factory=list)
    state: Literal["open", "done"] = "open"


class Contact(pydantic.BaseModel):
    title: str
    born: dt.date = dt.date(1815, 12, 10)
    size: Annotated[float, pydantic.Field(gt=0)] = 1.0
    scores: dict[str, int] = {}
    secret: bytes = b""
    kind: Literal["a", "b"] = pydantic.Field(default="a", alias="type")

    @pydantic.field_validator("title")
    @classmethod
    def checked(cls, title: str) -> str:
        if title.startswith("bad"):
            raise ValueError(f"{title} is not a title")
        return title


class Left(msgspec.Struct, tag=True):
    title: str


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    title: str


VALUES: list[tuple[Any, Any, Any]] = [
    (Note, Note("one", ("a", "b"), counts={1: 2}), Note("two")),
    (Task, Task("one", Note("inner"), ["x"], "done"), Task("two")),
    (Contact, Contact(title="one", size=2, scores={"x": 1}, type="b"), Contact(title="two")),
    (list[Note], [Note("one")], []),
    (list[Contact], [Contact(title="one")], []),
    (dict[str, int], {"one": 1}, {}),
    (bytes, b"one", b""),
    (str, "one", "two"),
]


def opened(clients: ClientFactory) -> tuple[Any, Any]:
    """A client of somebody new, and a vault."""
    client = clients.person()
    return client, client.vault("v", create=True)


def test_values_come_back_as_their_type(clients: ClientFactory, tmp_path: Path) -> None:
    """From every method that gives a document, online, in a replica and with a token."""
    client, vault = opened(clients)
    for number, (kind, first, second) in enumerate(VALUES):
        check_type(clients, client, vault, f"things {number}", kind, first, second, tmp_path / str(number))


def check_type(
    clients: ClientFactory, client: Any, vault: Any, name: str, kind: Any, first: Any, second: Any, place: Path
) -> None:
    """A value and another one, through everything that a collection can do."""
    things = vault.collection(name, type=kind)
    made = things.create(first)
    assert made.value == first
    assert type(made.value) is type(first)
    assert made.value is made.value  # a change of it in place is not lost
    assert things.get(made.uid).value == first
    changed = things.replace(made, second)
    assert (changed.value, things.get(made.uid).value) == (second, second)
    assert [one.value for one in things] == [one.value for one in things.since(0)] == [second]
    agent = clients.with_token(things.token("agent"))
    assert [one.value for one in agent.collection(type=kind)] == [second]
    replica = client.open_replica(place)
    replica.sync()
    local = replica.vault("v").collection(name, type=kind)
    assert local.get(made.uid).value == second
    again = local.replace(local.get(made.uid), first)
    other = local.create(second)
    assert (again.value, other.value) == (first, second)
    replica.sync()
    assert {one.uid: one.value for one in things} == {made.uid: first, other.uid: second}
    assert {one.uid: one.value for one in local} == {made.uid: first, other.uid: second}
    assert local.delete(other).value == second
    assert things.delete(things.get(made.uid)).value == first
    assert things.get(made.uid, deleted=True).value == first
    assert isinstance(made.raw, (dict, list, str, bytes))
    plain = vault.collection(name).get(made.uid, deleted=True)
    assert plain.value is plain.raw
    replica.close()


def test_a_value_that_does_not_fit_is_not_tampering(clients: ClientFactory, tmp_path: Path) -> None:
    """The document is given, its value raises TypeMismatch, `raw` has it; it can be replaced and deleted."""
    client, vault = opened(clients)
    plain, typed = vault.collection("notes"), vault.collection("notes", type=Note)
    good, bad, worse = plain.create({"title": "t"}), plain.create({"title": 7}), plain.create(b"bytes")
    found = {one.uid: one for one in typed}
    assert found[good.uid].value.title == "t"
    for uid, raw, problem in [
        (bad.uid, {"title": 7}, "Expected `str`, got `int` - at `$.title`"),
        (worse.uid, b"bytes", "Expected `object`, got `bytes`"),
    ]:
        with pytest.raises(TypeMismatch) as raised:
            _ = found[uid].value
        assert not isinstance(raised.value, Tampered)
        assert (raised.value.uid, raised.value.problem, raised.value.code) == (uid, problem, "type_mismatch")
        assert str(raised.value).startswith(f"The document {uid} is genuine, but its value does not fit the type Note")
        assert raised.value.details == {"uid": uid, "type": "Note", "problem": problem}
        assert found[uid].raw == typed.get(uid).raw == raw
    replica = client.open_replica(tmp_path / "replica")
    replica.sync()
    local = replica.vault("v").collection("notes", type=Note)
    with pytest.raises(TypeMismatch):
        _ = local.get(bad.uid).value
    assert len(list(local)) == 3
    assert typed.replace(found[bad.uid], Note("mended")).value.title == "mended"
    gone = typed.delete(found[worse.uid])
    assert (gone.deleted, gone.raw) == (True, b"bytes")
    replica.close()


WRONG: list[tuple[Any, Any]] = [
    (Note, Note(7)),  # type: ignore[arg-type]
    (Note, {"title": 7}),
    (Note, object()),
    (Note, Note("t", made_at="now")),  # type: ignore[arg-type]
    (Task, Task("t", state="lost")),  # type: ignore[arg-type]
    (Contact, Contact.model_construct(title=7)),
    (bytes, "text"),
    (str, float("nan")),
    (dict[str, float], {"x": float("nan")}),
]


def test_what_would_not_be_read_again_is_not_written(clients: ClientFactory) -> None:
    """Refused as the caller's mistake, with what does not fit, before anything is sent."""
    _, vault = opened(clients)
    for kind, wrong in WRONG:
        with pytest.raises(Invalid):
            vault.collection("things", type=kind).create(wrong)
    assert list(vault) == []


SECRETS: list[tuple[Any, Any]] = [
    (Note, {"title": "t", "colour": CANARY}),
    (Note, {"title": f"bad {CANARY}"}),
    (Note, {"title": "t", "counts": {CANARY: 1}}),
    (Note, {"title": "t", "made_at": CANARY}),
    (Task, {"title": "t", "state": CANARY}),
    (Task, {"title": "t", "state": f"{CANARY}' - at `$.{CANARY}`"}),
    (Task, {"title": "t", "note": {"title": f"bad {CANARY}"}}),
    (Left, {"type": CANARY, "title": "t"}),
    (Closed, {"title": "t", CANARY: 1}),
    (bytes, CANARY),
    (list[int], CANARY),
    (Contact, {"title": f"bad {CANARY}"}),
    (Contact, {"title": "t", "type": CANARY}),
    (Contact, {"title": "t", "born": CANARY}),
    (Contact, {"title": "t", "scores": {CANARY: CANARY}}),
    (dict[str, Contact], {CANARY: {"title": 1}}),
]


def test_no_sentence_shows_a_part_of_a_value(clients: ClientFactory) -> None:
    """What does not fit is told by the type's own words alone: errors go into logs."""
    _, vault = opened(clients)
    for kind, stored in SECRETS:
        made, typed = vault.collection("things").create(stored), vault.collection("things", type=kind)
        found = typed.get(made.uid)
        with pytest.raises(TypeMismatch) as raised:
            _ = found.value
        error = raised.value
        assert CANARY not in f"{error} {error!r} {error.details} {vars(error)} {found!r}"
        assert (error.__cause__, error.__context__) == (None, None)
        with pytest.raises(Invalid) as refused:
            typed.create(stored)
        assert CANARY not in f"{refused.value} {refused.value.details}"
        assert (refused.value.__cause__, refused.value.__context__) == (None, None)


def test_a_blob_can_have_a_type(clients: ClientFactory) -> None:
    """It is written from a value of the type, and read as one; what does not fit is told as of a document."""
    _, vault = opened(clients)
    put = vault.blob.put(Note("t"))
    assert put.value == Note("t")
    found = vault.blob.get()
    assert found.typed(Note).value == Note("t")
    assert found.value["title"] == found.raw["title"] == "t"
    vault.blob.put({"title": f"bad {CANARY}"}, after=found)
    with pytest.raises(TypeMismatch, match=f"The blob of the vault {vault.uid} is genuine") as raised:
        _ = vault.blob.get().typed(Note).value
    assert CANARY not in str(raised.value)
    with pytest.raises(Invalid):
        vault.blob.put(Note(7))  # type: ignore[arg-type]


def test_a_document_can_be_read_as_another_type(clients: ClientFactory) -> None:
    """For documents of a vault, whose collections have types of their own."""
    _, vault = opened(clients)
    vault.collection("notes").create({"title": "t"})
    [document] = vault
    assert document.typed(Note).value == Note("t")
    assert document.typed(Task).value == Task("t")
    assert document.value == {"title": "t"}
    with pytest.raises(TypeMismatch):
        _ = document.typed(int).value


def test_a_type_lives_through_a_rotation(clients: ClientFactory, tmp_path: Path) -> None:
    """A collection that was opened before another device rotated the keys still gives its type."""
    email = unique_email()
    here, there = clients.client(), clients.client()
    here.register(email, PASSWORD)
    notes = here.vault("v", create=True).collection("notes", type=Note)
    made = notes.create(Note("t"))
    there.login(email, PASSWORD)
    replica = there.open_replica(tmp_path / "replica")
    replica.sync()
    local, remote = (place.vault("v").collection("notes", type=Note) for place in (replica, there))
    here.vault("v").rotate()
    assert [one.value for one in remote] == [Note("t")]
    assert remote.replace(remote.get(made.uid), Note("u")).value == Note("u")
    replica.sync()
    assert local.get(made.uid).value == Note("u")
    assert local.create(Note("w")).value == Note("w")
    replica.close()


def test_conflicts_are_resolved_with_typed_values(clients: ClientFactory, tmp_path: Path) -> None:
    """A resolver reads both sides as the type, and gives a value of it to `merged`."""
    email = unique_email()
    owners = [clients.client(), clients.client()]
    owners[0].register(email, PASSWORD)
    made = owners[0].vault("v", create=True).collection("notes", type=Note).create(Note("t"))
    owners[1].login(email, PASSWORD)
    replicas = [client.open_replica(tmp_path / str(number)) for number, client in enumerate(owners)]
    for number, replica in enumerate(replicas):
        replica.sync()
        notes = replica.vault("v").collection("notes", type=Note)
        notes.replace(notes.get(made.uid), Note("t", (str(number),)))

    def both(conflict: Conflict) -> Resolution:
        sides = conflict.theirs.typed(Note).value, conflict.mine.typed(Note).value
        return merged(Note("t", sides[0].lines + sides[1].lines))

    replicas[0].sync()
    replicas[1].sync(both)
    assert replicas[1].vault("v").collection("notes", type=Note).get(made.uid).value.lines == ("0", "1")
    for replica in replicas:
        replica.close()


def test_a_deletion_without_its_value_has_no_value_of_the_type(clients: ClientFactory) -> None:
    """None is not a note: reading it as one is refused like any other value that does not fit."""
    _, vault = opened(clients)
    made = vault.collection("notes").create(None)
    with pytest.raises(TypeMismatch):
        _ = vault.collection("notes", type=Note).get(made.uid).value


def test_what_is_revived_after_the_trash_was_emptied_has_its_type(devices: Devices) -> None:
    """A replica makes a new document of it, and of the same type; the purged one has no value."""
    notes = devices.here.replica.vault("v").collection("notes", type=Note)
    made = notes.create(Note("t"))
    devices.sync()
    devices.delete_there(made.uid)
    devices.empty_trash()
    devices.here.replica.sync()
    gone = notes.get(made.uid, deleted=True)
    assert gone.purged
    values: list[Any] = [gone.value, gone.raw]
    assert values == [None, None]
    assert notes.replace(gone, Note("u")).value == Note("u")


def test_a_type_that_cannot_be_stored_is_refused_at_once(clients: ClientFactory) -> None:
    """When the collection is opened, and not at the first document."""
    _, vault = opened(clients)
    with pytest.raises(TypeError, match="union"):
        vault.collection("notes", type=Note | Closed)


def test_pydantic_is_loaded_by_nobody_else() -> None:
    """Neither the import nor a collection of another type loads it."""
    code = (
        "import sys, dataclasses, msgspec; from strongroom.client import *\n"
        "from strongroom.client.operations.value_types import value_type\n"
        "class Note(msgspec.Struct): title: str\n"
        "Task = dataclasses.make_dataclass('Task', [('title', str)])\n"
        "[value_type(kind).encode(kind('t')) for kind in (Note, Task)]\n"
        "print([name for name in sys.modules if name.startswith('pydantic')])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
