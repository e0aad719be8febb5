"""The browser's own passkeys: a page registers one, and its PRF opens the account."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.kit.browsers.authenticator import AUTHENTICATOR
from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import served
from tests.kit.network.ports import free_port
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

BEGIN = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = new it.Client("%(url)s");
  await client.register("%(email)s", "%(password)s");
  await (await client.vault("v", { create: true })).collection("notes").create("sealed");
  const { passkey, hasPrf, recoveryCodes } =
    await client.passkeys.add("this browser", "%(password)s", it.browserAuthenticator);
  const enabled = await client.passkeys.enableUnlock(passkey, "%(password)s", it.browserAuthenticator)
    .then(() => "enabled", (error) => error.name);
  return { hasPrf, codes: recoveryCodes.length, enabled, unlocks: (await client.passkeys.list())[0].unlocks };
})()"""
ENTER = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const sent = [];
  const watched = (request) => { sent.push(request.clone().text()); return fetch(request); };
  const client = new it.Client("%(url)s", { fetch: watched });
  try {
    await client.loginWithPasskey(it.browserAuthenticator);
  } catch (error) {
    return error.name;
  }
  const found = [];
  for await (const note of (await client.vault("v")).collection("notes")) found.push(note.value);
  const asserted = (await Promise.all(sent)).filter((body) => body.includes("authenticatorData"));
  return { found, told: asserted.map((body) => body.includes("prf")) };
})()"""
SECOND = """(async () => {
  const it = await import("%(pages)s/browser.page.js");
  const client = new it.Client("%(url)s");
  await client.login("%(email)s", "%(password)s", { code: it.browserAuthenticator });
  return (await client.vaults()).map(({ name }) => name);
})()"""


@pytest.mark.parametrize("has_prf", [True, False])
def test_a_page_unlocks_the_account(tmp_path: Path, *, has_prf: bool) -> None:
    """One ceremony logs in and unlocks, and tells the server nothing of the PRF; without PRF it is a second factor.

    Where nobody answers the browser, that is a CeremonyFailed.
    """
    port = str(free_port())
    url = f"http://localhost:{port}"
    server = Server(tmp_path / "data", PORT=port, PUBLIC_URL=url)
    email = unique_email()
    try:
        server.start()
        with served() as pages, private_window() as page:
            told = {"pages": pages, "url": url, "email": email, "password": PASSWORD}

            def run(script: str) -> Any:
                return page.run(script % told)

            page.open(f"{url}/health", any_script=True)  # of the server's own origin, to which its passkeys belong
            authenticator = page.add_authenticator(hasPrf=has_prf, **AUTHENTICATOR)
            enabled = "enabled" if has_prf else "CeremonyFailed"
            assert run(BEGIN) == {"hasPrf": has_prf, "codes": 10, "enabled": enabled, "unlocks": has_prf}
            assert run(ENTER) == ({"found": ["sealed"], "told": [False]} if has_prf else "Locked")
            assert run(SECOND) == ["v"]
            page.send("WebAuthn.setUserVerified", authenticatorId=authenticator, isUserVerified=False)
            assert run(ENTER) == "CeremonyFailed"
    finally:
        server.abandon()
