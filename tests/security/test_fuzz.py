"""Nonsense by the thousand: no fault, no hang, no growth."""

from __future__ import annotations

import http.client
import itertools
import json
import os
import secrets
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.concurrent_clients import SHORT_ANSWER
from tests.kit.people.api_user import ApiUser
from tests.kit.programs import processes
from tests.kit.samples import rounds
from tests.kit.servers.memory import resident
from tests.kit.servers.process import Server, fresh_address
from tests.security.mutator import Mutator, Request

COUNT = rounds(300, 20_000, "REQUESTS")
WARM = rounds(150, 2_000)  # requests after which the server has grown to its size
GROWTH = 48 * 1024 * 1024  # two passwords that are being hashed take 38 MiB of it
SEED = int(os.environ.get("FUZZ_SEED", "0")) or secrets.randbelow(2**32)
TOOL = os.environ.get("SCHEMATHESIS", "")


def answered(wire: http.client.HTTPConnection, request: Request) -> tuple[int, bytes]:
    """Send it as it is; status and body. A request that our own library will not send counts as refused."""
    wire.putrequest(request.method, request.target, skip_accept_encoding=True)
    for name, value in request.headers.items():
        wire.putheader(name, value.encode("utf-8"))
    if request.body is not None:
        wire.putheader("Content-Length", str(len(request.body)))
    wire.endheaders(request.body)
    answer = wire.getresponse()
    if answer.headers.get_content_type() == "text/event-stream" and request.method != "HEAD":
        wire.close()  # it has no end of its own
        return answer.status, b""
    return answer.status, answer.read()


def furnished(server: Server, mutator: Mutator) -> None:
    """Let the mutator know somebody, and things that exist."""
    person = ApiUser.register(server)
    vault = person.vault(data="x", salt="")
    documents = [person.document(vault) for _ in range(3)]
    keys = [person.key(), person.key(permissions=["read"]), person.key(collections=["notes"])]
    mutator.known = [vault["uid"], *(document["uid"] for document in documents), keys[2]["uid"], vault["name"][:5]]
    mutator.bearers = [person.access] * 4 + [key["key"] for key in keys]


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_nonsense_is_refused_and_nothing_more(tmp_path: Path) -> None:
    """Requests that are almost right: never a fault, never a hang, and memory stays flat."""
    server, mutator, seen = Server(tmp_path), Mutator(SEED), Counter[int]()
    wire = http.client.HTTPConnection("127.0.0.1")
    print(f"FUZZ_SEED={SEED}")  # noqa: T201 - to repeat it
    try:
        server.start()
        before = 0
        for number in itertools.count():
            if number == WARM:
                before = resident(server.process.pid, "VmRSS")
            if number == WARM + COUNT:
                break
            if number % 60 == 0:  # nonsense may have ended the session or deleted the vault, and uses up an address
                furnished(server, mutator)
                wire.close()
                wire = http.client.HTTPConnection(
                    "127.0.0.1", server.port, timeout=SHORT_ANSWER, source_address=(fresh_address(), 0)
                )
            request = mutator.request()
            try:
                status, body = answered(wire, request)
            except (http.client.InvalidURL, ValueError):
                wire.close()
                continue
            except (http.client.RemoteDisconnected, ConnectionError):
                wire.close()
                assert server.process.poll() is None, (number, request)
                continue
            seen[status] += 1
            assert status < 500, (number, request, body)
            if status >= 400 and request.method != "HEAD" and b"Invalid HTTP" not in body:
                assert json.loads(body)["error"]["code"], (number, request, body)
        grown = resident(server.process.pid, "VmRSS") - before
        assert {200, 201, 400, 401, 404} <= seen.keys(), seen
        assert sum(seen.values()) > 0.9 * COUNT, seen
        assert grown < GROWTH, f"{grown / 2**20:.0f} MiB"
        assert server.end() == 0
        assert '"event":"fault"' not in server.log()
    finally:
        wire.close()
        server.abandon()


@pytest.mark.soak  # which installs Schemathesis apart from everything else
def test_schemathesis_finds_no_fault(tmp_path: Path) -> None:
    """The description is true enough for a stranger's tool, and no request that follows from it upsets the server."""
    server = Server(tmp_path)
    try:
        person = ApiUser.register(server.start())
        command = [TOOL, "run", f"http://127.0.0.1:{server.port}/openapi.json"]
        command += ["--checks", "not_a_server_error", "--max-examples", "200", "--exclude-path", "/auth/logout"]
        command += ["--exclude-path-regex", "/events$"]  # a stream has no end of its own
        command += ["--exclude-path", "/auth/import"]  # the tool cannot write lines of JSON
        command += ["--header", f"Authorization: Bearer {person.access}"]
        done = processes.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1_800, check=False)
        assert done.returncode == 0, done.stdout[-4_000:] + done.stderr[-2_000:]
        assert '"event":"fault"' not in server.log()
    finally:
        server.abandon()
