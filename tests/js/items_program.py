"""The program that tests of items run in Node.js: js/test/items.program.ts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.kit.clients.javascript import bundles, run


def asked(name: str, given: Any) -> Any:
    """What the program for items answers: js/test/items.program.ts."""
    told = str(given) if isinstance(given, Path) else json.dumps(given)
    return json.loads(run("node", str(bundles() / "items.program.js"), name, told))
