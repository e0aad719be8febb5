"""The JavaScript client's own tests pass, in Node.js."""

from __future__ import annotations

import pytest

from tests.kit.clients.javascript import PACKAGE, run_test

# Those that need a server are run by the tests beside this one, which start it.
NEEDS_A_SERVER = {"live", "replica", "sessions"}
ALONE = sorted({path.name.removesuffix(".test.ts") for path in (PACKAGE / "test").glob("*.test.ts")} - NEEDS_A_SERVER)


@pytest.mark.parametrize("name", ALONE)
def test_passes(name: str) -> None:
    """Each file of tests that needs nothing but Node.js."""
    run_test(name)
