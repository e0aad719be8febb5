"""A real terminal in which a test types: tmux where it is installed, else a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.kit.people.command_line_user import CommandLineUser
from tests.kit.waiting import PATIENCE, until

PROMPT = "ready> "


class ShellTerminal(Protocol):
    """A shell in a terminal."""

    def type(self, line: str) -> None:
        """Type a line, and Enter."""

    def shows(self, text: str) -> str:
        """Wait until the terminal shows a text since the last line was typed; all that it shows since."""

    def close(self) -> None:
        """Close the terminal."""


def open_terminal(folder: Path, environment: Mapping[str, str]) -> ShellTerminal:
    """A terminal with a shell in a folder."""
    kind = TmuxTerminal if shutil.which("tmux") else PseudoTerminal
    (folder / "bashrc").write_text(f"PS1='{PROMPT}'\nunset PROMPT_COMMAND HISTFILE\n")
    return kind(folder, dict(environment) | {"TERM": "xterm"})


class TmuxTerminal:
    """A window of tmux."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._socket = str(folder / "tmux.sock")
        self._environment = environment
        self._call(
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "250",
            "-y",
            "500",
            "-c",
            str(folder),
            "bash --noprofile --rcfile bashrc",
        )
        self._seen = ""
        try:
            self.shows(PROMPT)
        except AssertionError:
            self.close()
            raise

    def _call(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", self._socket, *words], env=self._environment, capture_output=True, text=True, check=True
        )
        return done.stdout

    def screen(self) -> str:
        """All that the terminal shows."""
        return self._call("capture-pane", "-p", "-J").rstrip()

    def type(self, line: str) -> None:
        self._seen = self.screen()
        self._call("send-keys", "-l", line)
        self._call("send-keys", "Enter")

    def shows(self, text: str) -> str:
        def new() -> str:
            screen = self.screen()
            since = screen.removeprefix(self._seen)
            return since if text.strip() in since else ""

        try:
            return until(new, f"the text {text!r}", pause=0.1)  # each look starts a process
        except AssertionError:
            raise AssertionError(f"{text!r} is not shown: {self.screen()[-2000:]}") from None

    def close(self) -> None:
        self._call("kill-server")


class PseudoTerminal:
    """A pseudo-terminal of the standard library."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        self._pid, self._master = pty.fork()
        if not self._pid:
            os.chdir(folder)
            os.execvpe("bash", ["bash", "--noprofile", "--rcfile", "bashrc"], environment)  # noqa: S606
        self._seen = ""
        self.shows(PROMPT)

    def type(self, line: str) -> None:
        self._seen = ""
        os.write(self._master, f"{line}\n".encode())

    def shows(self, text: str) -> str:
        deadline = time.monotonic() + PATIENCE
        while text.strip() not in self._seen:
            assert time.monotonic() < deadline, f"{text!r} is not shown: {self._seen[-2000:]}"
            if select.select([self._master], [], [], 0.1)[0]:
                told = os.read(self._master, 1 << 16).decode(errors="replace")
                self._seen += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|\r", "", told)
        return self._seen

    def close(self) -> None:
        os.write(self._master, b"exit\n")
        os.close(self._master)
        os.waitpid(self._pid, 0)


@contextmanager
def at_terminal(person: CommandLineUser, **more: str) -> Iterator[ShellTerminal]:
    """The person at their terminal, with `strongroom` in the path."""
    folder = person.home.parent
    program = folder / "bin" / "strongroom"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m strongroom "$@"\n')
    program.chmod(0o755)
    variables = person.environment(**more)
    variables["PATH"] = f"{program.parent}:{variables['PATH']}"
    terminal = open_terminal(folder, variables)
    try:
        yield terminal
    finally:
        terminal.close()
