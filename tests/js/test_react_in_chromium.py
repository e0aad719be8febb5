"""The hooks for React in a real browser."""

from __future__ import annotations

from typing import Any

from strongroom.client import Client
from tests.js.tab import Tab
from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import served
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server


def _network(*, offline: bool) -> dict[str, Any]:
    """Of the page: none, or as it is."""
    return {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}


def test_a_page_in_react(server: Server) -> None:
    """It shows what is there, what is written, here and elsewhere, finds words, and lets a person decide a conflict."""
    email = unique_email()
    with Client(f"http://127.0.0.1:{server.port}") as client:
        client.register(email, PASSWORD)
        notes = client.vault("v", create=True).collection("notes")
        notes.create("a first note")
        client.vault("v").collection("elsewhere").create("in another collection")
        with served() as url, private_window() as page:
            tab = Tab(page, url, "react")
            tab.call("begin", f"http://localhost:{server.port}", email, PASSWORD)
            assert tab.call("listed", 1) == ["a first note"]
            assert "0 to send, 0 to decide" in tab.call("shows", "a first note")
            tab.call("click", "#write")
            assert tab.call("listed", 2) == ["a first note", "written here 1"]
            assert "0 to send" in tab.call("shows", "0 to send")
            assert {note.value for note in notes} == {"a first note", "written here 1"}
            notes.create("b Écrit elsewhere")
            assert len(tab.call("listed", 3)) == 3
            tab.call("search", "ecrit")
            assert tab.call("listed", 1) == ["b Écrit elsewhere"]
            assert tab.call("first", "b Écrit elsewhere")  # another uid, another document
            tab.call("search", "")
            assert len(tab.call("listed", 3)) == 3
            before = tab.call("rendered")
            page.send("Network.enable")
            page.send("Network.emulateNetworkConditions", **_network(offline=True))
            [first] = [note for note in notes if note.value == "a first note"]
            notes.replace(first, "a theirs")
            tab.call("replace", "a first note", "a mine")
            tab.call("shows", "1 to send")
            page.send("Network.emulateNetworkConditions", **_network(offline=False))
            tab.call("click", "#sync")
            assert "a first note, a mine, a theirs" in tab.call("shows", "1 to decide")
            tab.call("click", ".mine")
            assert "a mine" in tab.call("shows", "0 to send, 0 to decide")
            assert "a mine" in {note.value for note in notes}
            assert tab.call("rendered") - before < 60  # it follows changes, and nothing else
            tab.call("click", "#elsewhere")
            assert tab.call("listed", 1) == ["in another collection"]
            assert not [one for one in page.reported if "Error" in str(one) or "act(" in str(one)]
