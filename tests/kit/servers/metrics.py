"""The samples of a server's metrics, in the format of Prometheus."""

from __future__ import annotations

import re

_LINE = re.compile(r'([a-z_]+)((?:\{[a-z_]+="[^"]*"(?:,[a-z_]+="[^"]*")*\})?) (\S+)')


def figures(text: str) -> dict[str, float]:
    """Every sample by its name and labels; the format is checked: a family has its type, once, before its samples."""
    found: dict[str, float] = {}
    family = ""
    seen: set[str] = set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, family, kind = line.split()
            assert family not in seen
            assert kind in {"counter", "gauge", "histogram"}
            seen.add(family)
        elif not line.startswith("# HELP "):
            match = _LINE.fullmatch(line)
            assert match is not None, line
            assert match[1] in {family, f"{family}_bucket", f"{family}_sum", f"{family}_count"}
            assert match[1] + match[2] not in found
            found[match[1] + match[2]] = float(match[3])
    assert text.endswith("\n")
    return found
