"""A real browser with a virtual authenticator: it registers a passkey, logs in with it, and gets a key from it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.kit.browsers.authenticator import AUTHENTICATOR
from tests.kit.browsers.chromium import Page, private_window
from tests.kit.servers.process import Server

# What a web app does: the options of the server go to the browser as they are, and what it gives goes back without what
# extensions say.
SCRIPT = """
async function call(method, path, body, token) {
  const headers = {"content-type": "application/json"};
  if (token) headers.authorization = "Bearer " + token;
  const answer = await fetch(API + path, {method, headers, body: body && JSON.stringify(body)});
  return {status: answer.status, body: await answer.json()};
}
function sent(credential) {
  const {id, response} = credential.toJSON();
  return {id, response};
}
const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
async function make(options, name, token) {
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options.publicKey);
  publicKey.extensions = {prf: {}};
  const made = await navigator.credentials.create({publicKey});
  const prf = made.getClientExtensionResults().prf?.enabled === true;
  return call("POST", "/auth/passkeys", {name, prf, credential: sent(made)}, token);
}
async function prove(options, input) {
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options.publicKey);
  publicKey.extensions = {prf: {eval: {first: new TextEncoder().encode(input)}}};
  const got = await navigator.credentials.get({publicKey});
  const first = got.getClientExtensionResults().prf?.results?.first;
  return {credential: sent(got), output: first ? hex(first) : null};
}
"""


@contextmanager
def bare_page() -> Iterator[str]:
    """A page with nothing on it; its origin."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!doctype html><title>bare</title>")

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@contextmanager
def serving(home: Path, origin: str) -> Iterator[str]:
    """A server for web apps of this origin; its address."""
    server = Server(home, PUBLIC_URL=origin)
    try:
        yield f"http://127.0.0.1:{server.start().port}"
    finally:
        server.abandon()


class App:
    """A web app in a browser, at work with a server."""

    def __init__(self, page: Page, api: str) -> None:
        self._page = page
        self._page.run(f"const API = {json.dumps(api)}; {SCRIPT}; globalThis.app = {{call, make, prove}}; null")

    def call(self, method: str, path: str, body: Any = None, token: str | None = None) -> dict[str, Any]:
        """A request of the page to the server."""
        return self._do("call", method, path, body, token)

    def make(self, options: Any, name: str, token: str) -> dict[str, Any]:
        """Let the authenticator make a passkey, and register it."""
        return self._do("make", options, name, token)

    def prove(self, options: Any, text: str) -> dict[str, Any]:
        """Let the authenticator prove a passkey: what is sent, and the output of PRF for this text."""
        return self._do("prove", options, text)

    def _do(self, name: str, *given: Any) -> dict[str, Any]:
        done: dict[str, Any] = self._page.run(f"app.{name}(...{json.dumps(given)})")
        return done


@pytest.mark.parametrize("has_prf", [True, False])
def test_a_browser_registers_logs_in_and_gets_a_key(tmp_path: Path, has_prf: bool) -> None:  # noqa: FBT001
    """Registered, then logged in with it alone and as second factor; with PRF, one text gives one key each time."""
    account = {"email": "ann@example.com", "password": "correct horse"}
    with (
        bare_page() as origin,
        serving(tmp_path / "data", origin) as api,
        private_window() as page,
    ):
        page.open(f"{origin}/")
        page.add_authenticator(hasPrf=has_prf, **AUTHENTICATOR)
        app = App(page, api)
        token = app.call("POST", "/auth/email/register", account)["body"]["accessToken"]
        proof = {"currentPassword": account["password"]}
        options = app.call("POST", "/auth/passkeys/registration/options", proof, token)
        assert options["status"] == 200, options
        added = app.make(options["body"], "this browser", token)
        assert (added["status"], added["body"]["passkey"]["prf"]) == (201, has_prf), added
        outputs = []
        for _ in range(2):
            options = app.call("POST", "/auth/passkeys/login/options", {})
            made = app.prove(options["body"], "a constant text")
            signed_in = app.call("POST", "/auth/passkeys/login", {"credential": made["credential"]})
            assert (signed_in["status"], signed_in["body"]["user"]["email"]) == (200, "ann@example.com"), signed_in
            outputs.append(made["output"])
        assert outputs[0] == outputs[1]
        assert len(outputs[0] or "") == (64 if has_prf else 0)
        again = app.call("POST", "/auth/passkeys/login", {"credential": made["credential"]})
        assert (again["status"], again["body"]["error"]["code"]) == (401, "invalid_passkey")
        begun = app.call("POST", "/auth/email/login", account)
        assert begun["body"]["error"]["code"] == "second_factor_required"
        ticket = begun["body"]["error"]["details"]["ticket"]
        options = app.call("POST", "/auth/passkeys/login/options", {"ticket": ticket})
        made = app.prove(options["body"], "a constant text")
        factor = {"ticket": ticket, "secondFactor": {"passkey": made["credential"]}}
        assert app.call("POST", "/auth/email/login/second", factor)["status"] == 200
