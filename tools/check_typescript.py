"""Checks the types, the rules of the linter and the format of js/, web/ and examples/.

`python -m tools.check_typescript`, part of `make check`. With `--fix`, part of `make format`, it mends what the linter
and the formatter can mend. Nothing must have been built before; the packages of js/ and web/ must be installed.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

from tools import node

ROOT: Final = Path(__file__).parent.parent
# Each project, with the folder whose compiler and packages it uses.
PROJECTS: Final = {
    "js/tsconfig.json": "js",
    "web/tsconfig.json": "web",
    "web/tsconfig.worker.json": "web",
    "examples/tsconfig.check.json": "js",
}
_BIOME: Final = "js/node_modules/@biomejs/biome/bin/biome"
_PLACES: Final = ("js", "web", "examples", "biome.jsonc")
_STRICTLY: Final = ("--error-on-warnings", "--max-diagnostics=none")


def checks() -> list[tuple[str, ...]]:
    """The commands of Node.js that must all succeed."""
    types = [(f"{folder}/node_modules/typescript/bin/tsc", "--noEmit", "-p", path) for path, folder in PROJECTS.items()]
    return [*types, (_BIOME, "check", *_STRICTLY, *_PLACES)]


def fixes() -> list[tuple[str, ...]]:
    """The commands of Node.js that mend what can be mended."""
    return [(_BIOME, "check", *_STRICTLY, "--write", *_PLACES)]


def main() -> int:
    """Run all commands, also after one that failed; the exit code."""
    failed = []
    for command in fixes() if "--fix" in sys.argv[1:] else checks():
        sys.stdout.write(f"{' '.join(command)}\n")
        sys.stdout.flush()
        words = node.command("node", *command)
        if subprocess.run(words, cwd=ROOT, env=node.environment(), check=False).returncode:  # noqa: S603
            failed.append(command)
    for command in failed:
        sys.stderr.write(f"Failed: {' '.join(command)}\n")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
