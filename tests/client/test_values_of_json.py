"""Values in JSON that every client can store and read, and those that none can, with a real server between."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from strongroom.errors import Invalid
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email


def nested(levels: int) -> Any:
    """A number in so many lists."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.fixture
def _room_to_convert() -> Iterator[None]:
    """The bridge to Node.js converts values in Python, with two calls for each level."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("_room_to_convert")
@pytest.mark.both_languages
def test_the_deepest_value_is_read_elsewhere(clients: ClientFactory) -> None:
    """Five hundred lists, one in the other; and one more is refused before anything is sent."""
    email = unique_email()
    laptop, phone = clients.client(), clients.client()
    laptop.register(email, PASSWORD)
    phone.login(email, PASSWORD)
    notes = laptop.vault("v", create=True).collection("c")
    note = notes.create(nested(500))
    assert phone.vault("v").collection("c").get(note.uid).value == nested(500)
    for value in (nested(501), 1e20, [2**53], {"a": -1e20}):
        with pytest.raises(Invalid):
            notes.create(value)
    large = notes.create([1e300, -1e21, 2**53 - 1])
    assert phone.vault("v").collection("c").get(large.uid).value == [1e300, -1e21, 2**53 - 1]
    assert len(list(notes)) == 2
