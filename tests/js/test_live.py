"""The TypeScript client on a real server, as an app uses it."""

from __future__ import annotations

from tests.kit.clients.javascript import run_test
from tests.kit.servers.process import Server


def test_an_app_works(server: Server) -> None:
    """Five lines, types, tasks at the same time, and nothing to see in a console: js/test/live.test.ts."""
    run_test("live", URL=f"http://127.0.0.1:{server.port}")


def test_a_replica_works(server: Server) -> None:
    """What follows a replica: faults of listeners, the end of a session, events, conflicts: js/test/replica.test.ts."""
    run_test("replica", URL=f"http://127.0.0.1:{server.port}")
