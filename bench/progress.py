"""Progress, on stderr: stdout holds the results alone."""

from __future__ import annotations

import sys


def show_progress(sentence: str) -> None:
    """Say where we are; on a terminal each sentence replaces the one before."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r{sentence:<100}")
    elif sentence:
        sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()
