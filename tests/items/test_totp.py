"""One-time codes by the vectors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strongroom.items import InvalidTotp, totp

VECTORS = json.loads((Path(__file__).parent / "vectors" / "totp.json").read_text())


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: f"{case['text'][-30:]}-{case.get('now')}")
def test_one_time_codes(case: dict[str, Any]) -> None:
    """Every vector, those of RFC 6238 included; and each is read again from the URI that is made of it."""
    if "refused" in case:
        with pytest.raises(InvalidTotp):
            totp.parse(case["text"])
        return
    found = totp.parse(case["text"])
    assert totp.code(found, case["now"]) == case["code"]
    assert (found.issuer, found.username) == (case.get("issuer", found.issuer), case.get("username", found.username))
    assert totp.parse(totp.uri(found)) == found
    left = totp.seconds_left(found, case["now"])
    assert totp.code(found, case["now"] + left - 1) == case["code"] != totp.code(found, case["now"] + left)
