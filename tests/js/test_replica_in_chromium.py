"""The replica in a real browser: IndexedDB, two tabs, what is stored, and storage that is deleted."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from strongroom.client import Client
from tests.client.both_clients import PASSWORD, unique_email
from tests.contract.harness import Server
from tests.support.chromium import Page, chromium
from tests.support.javascript import served

CANARY = "KANARIENVOGEL"


class Tab:
    """A page of the browser in which a replica is open."""

    def __init__(self, page: Page, url: str) -> None:
        self._page, self._url = page, url
        page.open(f"{url}/empty.html")
        self._session = page._session

    def call(self, name: str, *args: Any) -> Any:
        """Call a function of js/test/replica.page.ts."""
        self._page._session = self._session
        told = ", ".join(json.dumps(arg) for arg in args)
        return self._page.run(f'import("{self._url}/replica.page.js").then((it) => it.{name}({told}))')


def test_two_tabs_share_a_replica(server: Server, tmp_path: Path) -> None:
    """One tab syncs, the other follows; what either writes is sent; a third device has it; nothing is readable."""
    (tmp_path / "browser").mkdir()
    email = unique_email()
    address = f"http://localhost:{server.port}"
    with served() as url, chromium(tmp_path / "browser") as page:
        one, other = Tab(page, url), Tab(page, url)
        assert one.call("begin", address, email, PASSWORD, "new") == {"isNew": True}
        one.call("write", f"{CANARY} written on a train")
        assert one.call("sync") == [0, 1]
        assert other.call("begin", address, email, PASSWORD, "") == {"isNew": False}
        other.call("live")
        assert other.call("shown", 1) == [f"{CANARY} written on a train"]
        one.call("watch")
        other.call("watch")
        other.call("write", "Écrit in the other tab")
        assert other.call("sent") == 0
        one.call("write", "and here")
        assert len(other.call("shown", 3)) == 3
        assert one.call("found", "ecrit TAB") == ["Écrit in the other tab"]
        with Client(address) as client:
            client.login(email, PASSWORD)
            assert {note.value for note in client.vault("v")} >= {"Écrit in the other tab"}
            keys = [key for entry in client._core.keyring().vaults for _, key in entry.keys]
            client.vault("v").collection("notes").create("from another device")
        assert len(one.call("shown", 0)) == 0  # nobody follows there
        assert len(other.call("shown", 4)) == 4
        stored = one.call("stored")
        for secret in (CANARY, "Écrit", "notes", email, PASSWORD):
            assert secret not in stored
        assert len(stored) > 2_000
        assert not any(base64.b64encode(bytes(key)).decode() in stored for key in keys)
        assert "is gone" in one.call("lose") or "Another tab" in one.call("lose")
        assert "is not there" in one.call("missing")
