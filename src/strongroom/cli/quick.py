"""`strongroom get`, the short way: asks the agent, and loads nothing else. Whatever is unusual goes the long way."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def get(words: Sequence[str]) -> int | None:
    """Print a field of an item; the exit code, or None where the long way has to be taken."""
    if not 1 <= len(words) <= 2 or any(word.startswith("-") for word in words) or None in (sys.stdout, sys.stderr):
        return None
    if os.environ.get("STRONGROOM_TOKEN") or os.environ.get("STRONGROOM_TOKEN_FILE"):
        return None
    from strongroom.agent.connection import ask
    from strongroom.agent.protocol import Failed

    try:
        value = ask("get", waiting=_protect, item=words[0], field=words[1] if len(words) == 2 else "")
    except Failed as failed:
        if failed.code in {"locked", "agent_ended", "not_text"}:
            return None
        from strongroom.cli.exit_codes import exit_code

        plain = "".join(sign if sign.isprintable() else "\ufffd" for sign in failed.message)
        sys.stderr.write(f"strongroom: {plain}\n")
        return exit_code(failed.code)
    try:
        sys.stdout.buffer.write(value.encode() + b"\n")
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
        if isinstance(error, BrokenPipeError):
            return 141
        sys.stderr.write(f"strongroom: The output cannot be written: {error.strerror}.\n")
        return 1
    return 0


def _protect() -> None:
    """Protect the memory before the value comes, while the agent looks for it: this time is waited for anyway."""
    from strongroom.agent.protection import protect_memory

    protect_memory()
