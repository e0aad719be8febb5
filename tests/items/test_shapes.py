"""The shapes of items: what is stored is read again, unknown members included, and a bad document hides no other."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from strongroom import items
from strongroom.items import Field, Item, Login, Other, Source
from strongroom.items.formats import READERS, WRITERS
from tests.items.full_items import fulls

CANARY = "quince-4711"
VECTORS = json.loads((Path(__file__).parent / "vectors" / "items.json").read_text())


@pytest.mark.parametrize("item", fulls(), ids=lambda item: item.type)
def test_every_member_comes_back(item: Item) -> None:
    """Each type with every member set is stored, and read as an equal item."""
    raw = msgspec.json.decode(msgspec.json.encode(item.to_stored()))
    assert raw["type"] == item.type
    assert Item.from_stored(raw) == item
    assert Item.from_stored(raw).to_stored() == raw


@pytest.mark.parametrize("kind", list(items.TYPES.values()), ids=lambda kind: kind.TYPE)
def test_an_empty_item_is_small(kind: type[Item]) -> None:
    """Members that are empty are left out."""
    assert kind().to_stored() == {"type": kind.TYPE}
    assert Item.from_stored({"type": kind.TYPE}) == kind()


def test_unknown_members_are_kept() -> None:
    """What a later version writes, at any depth, is still there after an edit by this one."""
    raw = {
        "type": "login",
        "title": "GitHub",
        "password": "old",
        "extra": {"a": 1},
        "novel": [1, {"b": None}],
        "totp": {"secret": "GE", "novel": 1},
        "fields": [{"label": "x", "value": "y", "novel": True}],
        "source": {"format": "f", "id": "1", "novel": 2.5},
    }
    item = Item.from_stored(raw)
    assert isinstance(item, Login)
    item.password = "new"
    assert item.to_stored() == {**raw, "password": "new"}


def test_a_type_of_tomorrow_is_kept() -> None:
    """An item of an unknown type has its title and tags, and is written as it was."""
    raw = {"type": "starship", "title": "Enterprise", "tags": ["x"], "warp": 9}
    item = Item.from_stored(raw)
    assert isinstance(item, Other)
    assert (item.type, item.title, item.tags, item.problem) == ("starship", "Enterprise", ["x"], "")
    assert item.to_stored() == raw


@pytest.mark.parametrize(
    "raw",
    [
        {"type": "login", "title": "T", "password": 5},
        {"type": "login", "title": "T", "fields": [{"label": 4}]},
        {"type": "login", "title": "T", "fields": {"label": CANARY}},
        {"type": "login", "title": "T", "totp": CANARY},
        {"type": "file", "title": "T", "files": [{"name": "x", "content": f"!{CANARY}"}]},
        {"type": "login", "title": 5, "tags": CANARY},
        {"type": 5, "title": "T"},
        {"title": "T"},
        {"type": None, "title": "T"},
        {},
    ],
)
def test_what_does_not_fit_is_kept_whole(raw: dict[str, Any]) -> None:
    """A document that does not fit is told, without its values, and is written again as it was."""
    item = Item.from_stored(raw)
    assert isinstance(item, Other)
    assert item.problem
    assert CANARY not in item.problem
    assert item.to_stored() == raw
    if isinstance(raw.get("title"), str):
        assert item.title == "T"


@pytest.mark.parametrize("raw", [b"\0", [1], "text", None, 3])
def test_a_document_that_is_no_object(raw: Any) -> None:
    """Whatever lies in the collection, reading it is no error."""
    item = Item.from_stored(raw)
    assert isinstance(item, Other)
    assert "no item" in item.problem


def test_null_is_no_member() -> None:
    """A program in another language may write null for what is empty."""
    assert Item.from_stored({"type": "login", "title": None, "totp": None, "fields": None}) == Login()


def test_a_wrong_type_is_refused_when_it_is_written() -> None:
    """A mistake of a program is told when it writes, not to whoever reads."""
    wrong: Any = 5
    with pytest.raises(msgspec.ValidationError):
        Login(password=wrong).to_stored()
    with pytest.raises(msgspec.ValidationError):
        Login(fields=[Field(value=wrong)]).to_stored()


def test_no_repr_shows_a_secret() -> None:
    """Neither an item nor a part of it shows its values in a traceback."""
    item = Login(
        title=CANARY,
        password=CANARY,
        totp=items.OneTimeCode(secret=CANARY),
        fields=[Field(label=CANARY, value=CANARY)],
        source=Source(rest={"x": CANARY}),
        extra={"x": CANARY},
    )
    shown = [
        repr(item),
        repr(item.fields),
        repr(item.totp),
        repr(item.source),
        repr(items.fields_of(Login(password="x"))),
    ]
    assert not any(CANARY in one for one in shown)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["item"]["title"])
def test_the_vectors_of_items(case: dict[str, Any]) -> None:
    """Each item is read, has the fields that are told, and is the CXF that stands beside it."""
    item = Item.from_stored(case["item"])
    assert not isinstance(item, Other)
    assert item.to_stored() == case["item"]
    assert {one.path: one.value for one in items.fields_of(item)} == case["fields"]
    assert [one.path for one in items.fields_of(item) if one.concealed] == case["secret"]
    written = msgspec.json.decode(WRITERS["cxf"]([("0198c0de-0000-7000-8000-000000000000", item)], 0))
    [made] = written["accounts"][0]["items"]
    assert {name: value for name, value in made.items() if name not in {"id", "extensions"}} == {
        name: value for name, value in case["cxf"].items() if name != "id"
    }
    if item.type != "file":
        again = next(READERS["cxf"](io.BytesIO(msgspec.json.encode({"items": [case["cxf"]]})), None))
        assert isinstance(again, Item)
        again.source = None
        assert again == item
