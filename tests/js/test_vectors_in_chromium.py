"""Every vector of the format holds in a real browser too, on a page under a strict policy."""

from __future__ import annotations

import json

from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import VECTORS, served


def test_the_vectors_hold_in_a_browser() -> None:
    """Readers and writers, with the browser's WebCrypto and Argon2id in a worker."""
    with served() as url, private_window() as page:
        page.open(f"{url}/empty.html")
        for path in sorted(VECTORS.glob("*.json")):
            cases = json.loads(path.read_text("utf-8"))["cases"]
            for start in range(0, len(cases), 40):
                told = json.dumps(json.dumps(cases[start : start + 40]))  # a literal would take `__proto__` otherwise
                found = page.run(f'import("{url}/vectors.page.js").then((it) => it.differences(JSON.parse({told})))')
                assert found == [], path.name
