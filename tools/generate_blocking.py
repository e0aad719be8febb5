"""Generates the blocking client and replica from the asynchronous ones: `python -m tools.generate_blocking`.

Part of `make generate`. tests/test_generated.py fails where a generated file is out of date.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
CLIENT: Final = ROOT / "src" / "strongroom" / "client"
# Source, and the file that is generated from it.
FILES: Final = {
    CLIENT / "async_client.py": CLIENT / "client.py",
    CLIENT / "async_factors.py": CLIENT / "factors.py",
    CLIENT / "async_iterators.py": CLIENT / "iterators.py",
    CLIENT / "async_vaults.py": CLIENT / "vaults.py",
    CLIENT / "replica" / "async_replica.py": CLIENT / "replica" / "replica.py",
}
_REPLACEMENTS: Final = (
    (r"\basync (?=def |for |with )", ""),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit|iter)__", r"__\1__"),
    (r"\baiter\(", "iter("),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\basync_(?=client|factors|iterators|vaults|replica|driver)", ""),
    (r"\bAn asynchronous\b", "A blocking"),
    (r"\basynchronous\b", "blocking"),
    (r"\bSeveral tasks\b", "Several threads"),
    (r"  # noqa: ASYNC\d+ - .*", ""),
)
# What the replacements leave behind: the order of imports, a loop that only yields, and one that only makes a list.
_FIXES: Final = "C416,I,UP028"


def blocking(source: Path) -> str:
    """The blocking counterpart of an asynchronous module."""
    text = source.read_text("utf-8")
    for pattern, replacement in _REPLACEMENTS:
        text = re.sub(pattern, replacement, text)
    text = f"# Generated from {source.name} by `make generate`. Do not edit.\n{text}"
    text = _ruff(text, source, "check", "--fix-only", "--unsafe-fixes", "--select", _FIXES)
    return _ruff(text, source, "format")


def _ruff(text: str, source: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "ruff", *arguments, "--quiet", "--stdin-filename", str(source), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout  # noqa: S603


def main() -> None:
    """Write every generated file."""
    for source, target in FILES.items():
        target.write_text(blocking(source), "utf-8")


if __name__ == "__main__":
    main()
