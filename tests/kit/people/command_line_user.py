"""A person at a computer: a home of their own, the command `strongroom` in it, and a master password."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.programs.process_state import alive
from tests.kit.waiting import until

PASSWORD = "a master password of persons in tests"  # in no other test: the canaries look at all processes
_numbers = itertools.count(1)


class CommandLineUser:
    """A person with one device. Commands run as processes; the agent is the real one.

    It hashes at the least cost, unless another process must get the same key: one that a test does not start by `run`.
    """

    def __init__(self, home: Path, url: str, email: str | None = None, *, production_hashing: bool = False) -> None:
        home.parent.mkdir(parents=True, exist_ok=True)
        self.home = home
        self.url = url
        self._hashing = {} if production_hashing else processes.CHEAP_AGENT
        self.email = email or f"person{next(_numbers)}-{os.getpid()}@example.com"

    def environment(self, **more: str) -> dict[str, str]:
        """The variables of the person's commands."""
        hidden = ("STRONGROOM", "XDG_", "EDITOR", "VISUAL", "DISPLAY", "WAYLAND_DISPLAY")
        clean = {name: value for name, value in clean_environment().items() if not name.startswith(hidden)}
        return clean | {"STRONGROOM_HOME": str(self.home), "HOME": str(self.home.parent)} | self._hashing | more

    def run(self, *words: str, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        """Run a command without a terminal."""
        return processes.run(
            [*STRONGROOM, *words],
            cwd=self.home.parent,
            env=self.environment(**more),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            start_new_session=True,
        )

    def said(self, *words: str, stdin: str = "", **more: str) -> str:
        """What a command prints; it must succeed."""
        done = self.run(*words, stdin=stdin, **more)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def json(self, *words: str, stdin: str = "", **more: str) -> Any:
        """The JSON that a command prints; it must succeed."""
        return json.loads(self.said(*words, "--json", stdin=stdin, **more))

    def register(self) -> None:
        """Make the account, and log in."""
        words = ("login", self.email, "--server", self.url, "--register", "--password", "-")
        self.said(*words, stdin=f"{PASSWORD}\n")

    def login(self, *words: str) -> None:
        """Log in on this device."""
        self.said("login", self.email, "--server", self.url, "--password", "-", *words, stdin=f"{PASSWORD}\n")

    def unlock(self, *words: str) -> None:
        """Unlock with the password."""
        self.said("unlock", "--password", "-", *words, stdin=f"{PASSWORD}\n")

    def add(self, title: str, secret: str, *fields: str) -> str:
        """Add a login; its id."""
        made: str = self.json("add", "login", title, "password=-", *fields, stdin=secret)["id"]
        return made

    @property
    def pid(self) -> int:
        """The process id of the agent."""
        found: int = self.json("status")["pid"]
        return found

    @property
    def running(self) -> bool:
        """Whether an agent runs."""
        return bool(self.json("agent")["running"])

    def lock(self) -> None:
        """Lock, and wait until the agent has ended."""
        if self.running:
            pid = self.pid
            self.said("lock")
            until(lambda: not alive(pid), "the end of the agent")

    def close(self) -> None:
        """Leave no agent behind."""
        with suppress(AssertionError, KeyError):
            self.lock()
        with suppress(AssertionError, KeyError, ProcessLookupError):
            if self.running:
                os.kill(self.pid, signal.SIGKILL)
