"""The server is blind: of 200 marks in plaintexts, names and passwords, it receives, stores and logs none."""

from __future__ import annotations

import base64
import itertools
import json
import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from strongroom.client import Client, keep_both
from strongroom.errors import VaultNotFound
from tests.client.hostile.lying_proxy import Liar
from tests.kit.people.credentials import unique_email
from tests.kit.servers.process import Server

PEOPLE = 3
WANTED = 200
WINDOW = 8  # bytes; every spelling of a mark is longer


class Marks:
    """Texts that nobody else uses. `é` and `ß` make the spellings differ."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def new(self, what: str) -> str:
        self.made.append(f"{what}é{len(self.made):03}ß{secrets.token_hex(8)}")
        return self.made[-1]


def in_base64(raw: bytes, shift: int, alphabet: bytes) -> bytes:
    """What stays the same of base64, whatever stands before and after, at one of three offsets."""
    whole = base64.b64encode(bytes(shift) + raw, altchars=alphabet).rstrip(b"=")
    return whole[(0, 2, 3)[shift] : len(whole) - (0 if (shift + len(raw)) % 3 == 0 else 1)]


def spellings(mark: str) -> dict[str, bytes]:
    """A mark in every encoding in which it might be found."""
    raw = mark.encode()
    found = {
        "UTF-8": raw,
        "UTF-16, little end first": mark.encode("utf-16-le"),
        "UTF-16, big end first": mark.encode("utf-16-be"),
        "Latin-1": mark.encode("latin-1"),
        "hexadecimal": raw.hex().encode(),
        "hexadecimal, capitals": raw.hex().upper().encode(),
        "percent encoding": quote(mark, safe="").encode(),
        "percent encoding of every byte": "".join(f"%{byte:02X}" for byte in raw).encode(),
        "JSON escapes": json.dumps(mark)[1:-1].encode(),
        "JSON escapes of every character": "".join(f"\\u{ord(sign):04x}" for sign in mark).encode(),
        "backwards": raw[::-1],
    }
    for shift in range(3):
        found[f"base64, {shift}"] = in_base64(raw, shift, b"+/")
        found[f"base64url, {shift}"] = in_base64(raw, shift, b"-_")
    return found


def sightings(marks: list[str], places: dict[str, bytes]) -> Iterator[str]:
    """Where a mark is, and in which spelling."""
    spelled = [(mark, name, raw) for mark in marks for name, raw in spellings(mark).items()]
    # Thousands of spellings in megabytes: each place is read once, in windows so close that one of them lies within any
    # spelling, and only what has a window in common with a place is looked for there.
    close = min(len(raw) for _, _, raw in spelled) - WINDOW + 1
    having: dict[bytes, set[int]] = {}
    for number, (_, _, raw) in enumerate(spelled):
        for at in range(len(raw) - WINDOW + 1):
            having.setdefault(raw[at : at + WINDOW], set()).add(number)
    for place, content in places.items():
        windows = {content[at : at + WINDOW] for at in range(0, len(content), close)}
        for number in sorted(set().union(*(having[window] for window in windows & having.keys()))):
            mark, name, raw = spelled[number]
            if raw in content:
                yield f"{mark} in {place}, {name}"


def everything(marks: Marks, client: Client, url: str, home: Path, number: int) -> None:
    """All that a client does, with marks wherever there is room for one."""
    email, password = unique_email(), marks.new("password")
    client.register(email, password)
    key = client.make_recovery_key(password)
    fresh = marks.new("password")
    client.change_password(password, fresh)
    names = [marks.new("vault") for _ in range(4)]
    for name in names:
        vault = client.vault(name, create=True)
        vault.blob.put({marks.new("blob"): marks.new("blob")})
        for _ in range(3):
            collection = vault.collection(marks.new("collection"))
            note = collection.create({marks.new("key"): [marks.new("text")]})
            note = collection.replace(note, marks.new("text").encode())
            collection.replace(collection.delete(note), marks.new("revived"))
    vault = client.vault(names[0])
    collection = vault.collection(marks.new("collection"))
    collection.create(marks.new("x" * 3000))
    with Client.with_token(url, collection.token("agent")) as agent:
        agent.collection().create(marks.new("agent"))
    with Client.with_token(url, vault.token("agent")) as agent:
        agent.vault().collection(marks.new("collection")).create(marks.new("agent"))
    with client.open_replica(home / f"replica-{number}") as replica:
        replica.sync()
        here = replica.vault(names[1]).collection(marks.new("collection"))
        page = here.create(marks.new("offline"))
        replica.sync()
        there = client.vault(names[1]).collection(here.name)
        there.replace(there.get(page.uid), marks.new("there"))
        here.replace(here.get(page.uid), marks.new("here"))
        replica.sync(keep_both)
    client.export_plaintext(home / f"export-{number}")
    client.logout()
    client.recover(email, key, marks.new("password"))
    with pytest.raises(VaultNotFound):
        client.vault(marks.new("no vault"))
    client.vault(names[2]).delete()


def test_the_server_is_blind(own_server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """No byte that it was sent, no byte of its files and no line of its log, or of the client's, holds a mark."""
    caplog.set_level(logging.INFO)
    marks = Marks()
    liar = Liar(own_server.start().port)
    try:
        for number in range(PEOPLE):
            with Client(liar.url) as client:
                everything(marks, client, liar.url, tmp_path, number)
        places = files(own_server)
        assert own_server.end() == 0
        places["the log at the end"] = own_server.log().encode()
        places["what it was sent"] = liar.received
        places["the client's log"] = caplog.text.encode()
        for path in tmp_path.glob("replica-*"):
            places[path.name] = path.read_bytes()
    finally:
        liar.close()
    assert len(marks.made) >= WANTED
    assert {"vault.db", "stderr"} <= set(places)
    assert list(itertools.islice(sightings(marks.made, places), 5)) == []
    exported = b"".join(path.read_bytes() for path in tmp_path.glob("export-*"))
    assert any(mark.encode() in exported for mark in marks.made)  # they are what people wrote


def files(server: Server) -> dict[str, bytes]:
    """Everything that the server has written."""
    return {path.name: path.read_bytes() for path in server.home.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", spellings(Marks().new("x")))
def test_the_search_finds(name: str) -> None:
    """Each spelling, in the middle of something, at each offset."""
    mark = Marks().new("text")
    raw = mark.encode()
    around: dict[str, Any] = {}
    for shift in range(3):
        around[f"base64, {shift}"] = base64.b64encode(b"abc" + b"x" * shift + raw + b"yz")
        around[f"base64url, {shift}"] = base64.urlsafe_b64encode(b"abc" + b"x" * shift + raw + b"yz")
    hidden = around.get(name, b"before " + spellings(mark)[name] + b" after")
    for before in range(len(raw)):
        found = sightings([mark], {"the place": b"." * before + hidden})
        assert f"{mark} in the place, {name}" in set(found)
    assert list(sightings([mark], {"the place": b"nothing of that kind"})) == []
