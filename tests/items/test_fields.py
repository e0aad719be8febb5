"""Fields of items by name, references, and how an item is found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from strongroom import items
from strongroom.items import Field, FileContent, Item, Login, Reference
from strongroom.items.types import Address, PersonName

VECTORS = json.loads((Path(__file__).parent / "vectors" / "references.json").read_text())


class Stored(NamedTuple):
    uid: str
    value: Item


LOGIN = Login(
    title="GitHub",
    username="ada",
    password="hunter2",
    notes="a note",
    urls=["https://github.com/", "https://gist.github.com/"],
    totp=items.OneTimeCode(secret="GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"),
    fields=[
        Field(label="PIN", value="1234", type="concealed-string"),
        Field(label="answer", value="blue", section="First"),
        Field(label="answer", value="red", section="Second"),
        Field(label="twice", value="1"),
        Field(label="twice", value="2"),
        Field(label="username", value="custom"),
        Field(label="future", value="x", type="retina-scan"),
        Field(label="empty", value=""),
    ],
    files=[FileContent(name="key.bin", content=b"\xff\xfe"), FileContent(name="a.txt", content="ü".encode())],
    credentials=[{"type": "passkey", "rpId": "github.com", "key": "c2VjcmV0"}],
)


@pytest.mark.parametrize(
    ("name", "section", "value"),
    [
        ("", "", "hunter2"),
        ("username", "", "ada"),
        ("User Name", "", "ada"),
        ("PASSWORD", "", "hunter2"),
        ("url", "", "https://github.com/"),
        ("url2", "", "https://gist.github.com/"),
        ("pin", "", "1234"),
        ("answer", "First", "blue"),
        ("answer", "second", "red"),
        ("code", "", "287082"),
        ("a.txt", "", "ü"),
        ("rpId", "", "github.com"),
        ("key", "passkey", "c2VjcmV0"),
    ],
)
def test_a_field_by_its_name(name: str, section: str, value: str) -> None:
    """Members first, then fields that a person has added, then those of kept credentials; spelling is forgiven."""
    assert items.field(LOGIN, name, section, now=59).value == value


@pytest.mark.parametrize(
    ("kind", "main", "member"),
    [
        (items.Note, "notes", "notes"),
        (items.Card, "number", "number"),
        (items.Secret, "value", "value"),
        (items.SshKey, "privateKey", "private_key"),
        (items.ApiCredential, "key", "key"),
    ],
)
def test_the_main_field(kind: Callable[..., Item], main: str, member: str) -> None:
    """Without a name, each type gives the field that people want of it."""
    found = items.field(kind(**{member: "v"}))
    assert (found.name, found.value) == (main, "v")


def test_parts_of_an_identity() -> None:
    """Members of a part are found by their own name, and by part and name where that is needed."""
    person = items.Identity(name=PersonName(given="Ada", title="Dr."), address=Address(city="London"))
    assert items.field(person, "city").value == "London"
    assert items.field(person, "given", "name").value == "Ada"
    with pytest.raises(items.FieldNotFound, match="Say which field"):
        items.field(person)


def test_a_file_is_given_as_bytes() -> None:
    """A file need not be text; who asks for text is told."""
    found = items.field(LOGIN, "key.bin")
    assert found.data == b"\xff\xfe"
    with pytest.raises(items.FieldNotFound, match=r"files/key\.bin is not text"):
        _ = found.value
    file = items.File(files=[FileContent(name="x", content=b"abc")])
    assert items.field(file).data == b"abc"


def test_ambiguous_fields_are_told() -> None:
    """The sentence names the candidates, and no value."""
    with pytest.raises(items.AmbiguousName, match="First/answer, Second/answer") as told:
        items.field(LOGIN, "answer")
    assert told.value.candidates == ["First/answer", "Second/answer"]
    with pytest.raises(items.AmbiguousName, match="different names"):
        items.field(LOGIN, "twice")


@pytest.mark.parametrize("name", ["empty", "nothing", "title"])
def test_a_field_that_is_not_there(name: str) -> None:
    """An empty field is no field: a program never runs with an empty secret by mistake."""
    with pytest.raises(items.FieldNotFound, match=name):
        items.field(LOGIN, name)


def test_which_fields_are_secret() -> None:
    """Secrets are marked, and what this version does not know counts as one."""
    secret = {one.path for one in items.fields_of(LOGIN, 59) if one.concealed}
    assert secret == {"password", "totp", "code", "PIN", "future", "passkey/key", "files/key.bin", "files/a.txt"}


def test_codes_that_cannot_be_made() -> None:
    """Bad settings of one-time codes are a sentence, and the other fields can be read."""
    broken = Login(password="p", totp=items.OneTimeCode(secret="!!"))
    assert items.field(broken, "password", now=1).value == "p"
    with pytest.raises(items.FieldNotFound, match="cannot be made"):
        items.field(broken, "code", now=1)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["text"][:40])
def test_references(case: dict[str, Any]) -> None:
    """The vectors: what is a reference and what is not, and how each is printed."""
    if "refused" in case:
        with pytest.raises(items.InvalidReference):
            items.parse_reference(case["text"])
        return
    found = items.parse_reference(case["text"])
    assert found == Reference(case["vault"], case["item"], case.get("field", ""), case.get("section", ""))
    assert str(found) == case["printed"]
    assert items.parse_reference(str(found)) == found


def test_finding_an_item() -> None:
    """By uid, then by title, then without regard to capitals; several are told with their uids."""
    rows = [Stored("u1", Login(title="GitHub")), Stored("u2", Login(title="github")), Stored("u3", Login(title="u1"))]
    assert items.find_item("u1", rows).uid == "u1"
    assert items.find_item("github", rows).uid == "u2"
    with pytest.raises(items.AmbiguousName, match=r"2 items are named 'GITHUB'.*\(u1\).*\(u2\)") as told:
        items.find_item("GITHUB", rows)
    assert told.value.candidates == ["u1", "u2"]
    with pytest.raises(items.ItemNotFound, match="'nothing'"):
        items.find_item("nothing", rows)
    many = [Stored(f"u{number}", Login(title="x")) for number in range(1000)]
    with pytest.raises(items.AmbiguousName) as long:
        items.find_item("x", many)
    assert len(str(long.value)) < 500
