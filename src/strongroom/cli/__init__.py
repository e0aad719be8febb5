"""The command line `strongroom`. Each command imports only what it needs: `get` asks the agent and little else."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if words[:1] == ["get"]:
        from strongroom.cli import quick

        code = quick.get(words[1:])
        if code is not None:
            return code
    from strongroom.cli import commands

    return commands.main(words)
