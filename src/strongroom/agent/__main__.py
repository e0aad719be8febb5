"""`python -m strongroom.agent` starts the agent in the background, and ends when it listens."""

from __future__ import annotations

import os
import sys

from strongroom.agent.process import serve
from strongroom.agent.protocol import Failed


def main() -> int:
    """Start the agent; the exit code. An agent that runs already is as good."""
    ready, tell = os.pipe()
    if os.fork():
        os.close(tell)
        with os.fdopen(ready, "rb") as told:
            said = told.read()
        if said in {b"listening", b"running"}:
            return 0
        sys.stderr.write(said.decode() or "The agent has ended at once.")
        return 1
    os.close(ready)
    os.setsid()
    try:
        serve(lambda: _tell(tell, b"listening"))
    except Failed as failed:
        _tell(tell, b"running" if failed.code == "running" else failed.message.encode())
    return 0


def _tell(pipe: int, what: bytes) -> None:
    os.write(pipe, what)
    os.close(pipe)


if __name__ == "__main__":
    sys.exit(main())
