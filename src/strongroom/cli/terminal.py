"""The only file that prints."""

from __future__ import annotations

import sys


class Stop(Exception):  # noqa: N818 - ends the command, said in one sentence
    """The command cannot go on; the message is one sentence for the person at the terminal."""


def say(text: str) -> None:
    """Tell."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def complain(text: str) -> None:
    """Say what is wrong, on standard error."""
    sys.stderr.write(f"strongroom: {text}\n")
    sys.stderr.flush()
