"""A real browser as the authenticator of the Python client: its PRF opens the account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import CeremonyFailed, Client, SecondFactorRequired
from tests.kit.browsers.authenticator import AUTHENTICATOR
from tests.kit.browsers.chromium import Page, private_window
from tests.kit.network.ports import free_port
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

# Chromium's `toJSON` leaves the output of the PRF out; a program that wants it has to add it.
SPELLED = """(made) => {
  const spelled = made.toJSON();
  const output = made.getClientExtensionResults().prf?.results?.first;
  if (output) {
    const first = btoa(String.fromCharCode(...new Uint8Array(output)));
    spelled.clientExtensionResults.prf.results = {
      first: first.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""),
    };
  }
  return spelled;
}"""
CREATE = "navigator.credentials.create({publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(%s)})"
GET = "navigator.credentials.get({publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(%s)})"


class Browser:
    """An authenticator of a program's own: the options go to the browser as they are."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.ceremonies = 0

    def create(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Make a passkey."""
        return self._run(CREATE, origin, options)

    def get(self, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        """Use a passkey."""
        return self._run(GET, origin, options)

    def _run(self, ceremony: str, origin: str, options: dict[str, Any]) -> dict[str, Any]:
        self.ceremonies += 1
        assert self._page.run("location.origin") == origin
        done: dict[str, Any] = self._page.run(f"{ceremony % json.dumps(options)}.then({SPELLED})")
        return done


@pytest.mark.parametrize("has_prf", [True, False])
def test_a_browser_unlocks_the_account(tmp_path: Path, *, has_prf: bool) -> None:
    """Registered, enabled, and then one ceremony logs in and opens the vaults; without PRF it is a second factor."""
    port = str(free_port())
    url = f"http://localhost:{port}"
    server = Server(tmp_path / "data", PORT=port, PUBLIC_URL=url)
    try:
        server.start()
        with private_window() as page, Client(url) as client, Client(url) as other:
            page.open(f"{url}/health")
            page.add_authenticator(hasPrf=has_prf, **AUTHENTICATOR)
            browser, email = Browser(page), unique_email()
            client.register(email, PASSWORD)
            client.vault("v", create=True).collection("notes").create("sealed")
            added = client.passkeys.add("this browser", PASSWORD, browser)
            assert added.has_prf == has_prf
            if not has_prf:
                with pytest.raises(CeremonyFailed, match="PRF"):
                    client.passkeys.enable_unlock(added.passkey, PASSWORD, browser)
                with pytest.raises(SecondFactorRequired):
                    other.login(email, PASSWORD)
                other.login(email, PASSWORD, code=browser)
            else:
                client.passkeys.enable_unlock(added.passkey, PASSWORD, browser)
                [dropped] = client.rotate_keys(PASSWORD, code=browser).passkeys
                client.passkeys.enable_unlock(dropped, PASSWORD, browser)
                before = browser.ceremonies
                other.login_with_passkey(browser)
                assert browser.ceremonies == before + 1
            assert [note.value for note in other.vault("v").collection("notes")] == ["sealed"]
    finally:
        server.abandon()
