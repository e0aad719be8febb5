"""Both readers of the format, in Python and in TypeScript, say the same of whatever is made of the vectors."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from random import Random
from typing import Any, Final

import pytest

from strongroom.errors import Refusal
from tests.kit.clients.javascript import VECTORS, bundles, started
from tests.kit.samples import SEED, rounds
from tests.vectors.mutations import mutated
from tests.vectors.operations import OPERATIONS, Given

CASES: Final = [
    case for path in sorted(VECTORS.glob("*.json")) for case in json.loads(path.read_text("utf-8"))["cases"]
]


def _python(does: str, given: Given) -> Any:
    try:
        return {"gives": OPERATIONS[does](given)}
    except Refusal as refusal:
        return {"error": refusal.code}
    except Exception as fault:  # noqa: BLE001 - a reader that fails in another way than by a refusal is a finding
        return {"error": repr(fault)}


@pytest.mark.production_hashing
def test_two_readers_say_the_same_of_changed_vectors() -> None:
    """The same verdict, the same value and the same code of a refusal; neither fails in another way."""
    count, seed = rounds(3_000, 100_000, "READINGS"), int(os.environ.get("READINGS_SEED", SEED))
    asked = list(mutated(CASES, Random(seed), count))  # noqa: S311
    program = str(bundles() / "readers.program.js")
    different = []
    with started("node", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as node:
        assert node.stdin is not None
        assert node.stdout is not None
        lines = node.stdin

        def write() -> None:
            for does, given in asked:
                lines.write(json.dumps({"does": does, "given": given}).encode() + b"\n")
            lines.close()

        writing = threading.Thread(target=write, daemon=True)
        writing.start()
        for does, given in asked:
            theirs, mine = json.loads(node.stdout.readline()), _python(does, given)
            if mine != theirs:
                found = (
                    f"{does} {json.dumps(given)}"[:2_000],
                    f"  Python {mine}"[:300],
                    f"  TypeScript {theirs}"[:300],
                )
                different.append("\n".join(found))
        writing.join()
    assert not different, f"seed {seed}, {len(different)} of {count} differ:\n" + "\n".join(different[:40])
