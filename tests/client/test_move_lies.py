"""A server that lies while an account moves: the old one in its export, the new one about what it has kept."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2
import pytest

from strongroom.client import Client, Locked, Tampered
from strongroom.errors import Invalid, Unavailable
from tests.client.moving_accounts import (
    Change,
    Json,
    contents,
    furnish,
    lines,
    spelled,
    url_of,
)
from tests.client.moving_lies import NOT_KEPT, SEEN_NEWER
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server


class Lying(httpx2.HTTPTransport):
    """Alters what the server's export says, on its way to the client."""

    def __init__(self, change: Change, *, cut: int | None = None) -> None:
        super().__init__()
        self._change, self._cut = change, cut

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        if request.url.path != "/auth/export":
            return response
        rows = [json.loads(line) for line in response.read().splitlines()]
        response.close()
        content = spelled(self._change(rows[:-1]))
        kind = {"content-type": response.headers["content-type"]}
        body = httpx2.ByteStream(content if self._cut is None else content[: self._cut])
        return httpx2.Response(200, headers=kind, stream=body)


def test_a_new_server_that_did_not_keep_all_is_found_out(
    moving: tuple[Client, str, Path], other_server: Server
) -> None:
    """Whatever the new server lacks or shows otherwise, the move does not say that it is done; with it, it does."""
    client, email, path = moving
    url = url_of(other_server)
    for fault, (change, error) in NOT_KEPT.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        with pytest.raises(error):
            Client.import_account(url, path, email, PASSWORD, transport=Lying(change))
    with pytest.raises((Invalid, Unavailable)):
        Client.import_account(url, path, email, PASSWORD, transport=Lying(lambda rows: rows, cut=5_000))
    with Client.import_account(url, path, email, PASSWORD, transport=Lying(lambda rows: rows)) as new:
        assert contents(new) == contents(client)


class OldDerivation(httpx2.HTTPTransport):
    """A new server that says that the email is taken, and hands out the key derivation of the old server."""

    def __init__(self, kdf: Json) -> None:
        super().__init__()
        self._kdf = kdf
        self.sent: list[str] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(request.url.path)
        if request.url.path == "/auth/email/register":
            content, status = b'{"error":{"code":"email_already_exists","message":""}}', 409
        else:
            content, status = json.dumps({"kdf": self._kdf}).encode(), 200
        kind = {"content-type": "application/json"}
        return httpx2.Response(status, headers=kind, stream=httpx2.ByteStream(content))


def test_a_new_server_does_not_learn_what_logs_in_at_the_old_one(moving: tuple[Client, str, Path]) -> None:
    """It asks for the auth key of the old server by the old server's descriptor, and gets nothing."""
    _, email, path = moving
    transport = OldDerivation(lines(path)[0]["kdf"])
    with pytest.raises(Tampered, match="If it is another server, do not trust it: with that key derivation"):
        Client.import_account("http://127.0.0.1:1", path, email, PASSWORD, transport=transport)
    assert transport.sent == ["/auth/email/register", "/auth/email/prelogin"]


def test_an_export_that_lies_leaves_no_file(moving: tuple[Client, str, Path], server: Server, tmp_path: Path) -> None:
    """What is older than this device has seen, altered, left out or cut off is refused, and no file is there."""
    _, email, _ = moving
    url = url_of(server)
    for fault, (change, error) in SEEN_NEWER.items():
        print(fault)  # noqa: T201 - the last one is the one that failed
        with Client(url, transport=Lying(change)) as told:
            told.login(email, PASSWORD)
            contents(told)
            with pytest.raises(error):
                told.export_account(tmp_path / "lie")
    with Client(url, transport=Lying(lambda rows: rows, cut=5_000)) as told:
        told.login(email, PASSWORD)
        with pytest.raises(Invalid, match="cut off"):
            told.export_account(tmp_path / "lie")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["account"]


def test_a_token_exports_no_account(server: Server, tmp_path: Path) -> None:
    """Neither a token nor a client that nobody has logged in with writes a file."""
    with Client(url_of(server)) as client:
        furnish(client)
        token = client.vault("open").token("agent")
    with Client.with_token(url_of(server), token) as agent, pytest.raises(Locked):
        agent.export_account(tmp_path / "account")
    with Client(url_of(server)) as nobody, pytest.raises(Locked):
        nobody.export_account(tmp_path / "account")
    assert list(tmp_path.iterdir()) == []
