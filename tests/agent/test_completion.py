"""Completion: commands, options, names of items and fields; nothing is unlocked for it."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import pytest

from tests.kit.people.command_line_user import CommandLineUser
from tests.kit.programs.debian_programs import FISH_FUNCTIONS, ZSH_FUNCTIONS, environment
from tests.kit.requirements import needed
from tests.kit.waiting import PATIENCE

NAME = """My "bank" & co's $HOME"""


def completed(person: CommandLineUser, *words: str) -> list[str]:
    """What may stand in the place of the last word."""
    return person.said("completion", "--at", str(len(words)), "--", "strongroom", *words).splitlines()


def test_what_may_follow(ada: CommandLineUser) -> None:
    """At each place what belongs there, in the spelling of the item."""
    ada.add("GitHub", "hunter2", "username=ada", "url=https://github.com")
    ada.add("Gitea", "hunter2")
    found = completed(ada, "s")
    assert {"share-token", "search", "serve", "status", "sync"} <= {*found}
    assert all(one.startswith("s") for one in found)
    assert completed(ada, "get", "git") == ["Gitea", "GitHub"]
    assert completed(ada, "get", "sr://Personal/Gi") == ["sr://Personal/Gitea", "sr://Personal/GitHub"]
    assert completed(ada, "get", "GitHub", "") == ["username", "password", "url"]
    assert completed(ada, "list", "--va") == ["--vault"]
    assert completed(ada, "list", "--vault", "") == ["Personal"]
    assert completed(ada, "serve", "--por") == ["--port"]
    assert completed(ada, "completion", "") == ["bash", "zsh", "fish"]
    assert completed(ada, "nothing", "") == []


def test_a_locked_agent_stays_locked(person: CommandLineUser) -> None:
    """No prompt, no name, no failure."""
    person.add("GitHub", "hunter2")
    person.lock()
    assert completed(person, "get", "") == []
    assert not person.running


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with the command `strongroom`."""
    program = tmp_path / "bin" / "strongroom"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m strongroom "$@"\n')
    program.chmod(0o755)
    return program.parent


def environment_of(person: CommandLineUser, programs: Path, shell: Path | None = None) -> dict[str, str]:
    """The variables of a shell that finds the command."""
    found = person.environment() | ({} if shell is None else environment(shell))
    return found | {"PATH": f"{programs}:{os.environ['PATH']}", "LANG": "C.UTF-8", "TERM": "dumb"}


def test_in_bash(ada: CommandLineUser, programs: Path) -> None:
    """A name with quotes and spaces comes out as one word that means itself."""
    ada.add(NAME, "hunter2")
    script = ada.said("completion", "bash")
    lines = f'{script}\nCOMP_WORDS=(strongroom get "My"); COMP_CWORD=2; _strongroom; printf "%s\\n" "${{COMPREPLY[@]}}"'
    told = subprocess.run(
        ["bash", "-c", lines], env=environment_of(ada, programs), capture_output=True, text=True, check=True
    ).stdout
    assert shlex.split(told) == [NAME]
    echoed = subprocess.run(["bash", "-c", f"printf %s {told}"], capture_output=True, text=True, check=True).stdout
    assert echoed == NAME


def test_in_zsh(ada: CommandLineUser, programs: Path, tmp_path: Path) -> None:
    """Typed in a terminal: the key Tab completes a command, a name that needs quotes, and a field of that item."""
    shell, functions = needed("zsh"), needed(ZSH_FUNCTIONS)
    ada.said("add", "login", NAME, "username=ada", "password=-", "--vault", "Zsh", "--create-vault", stdin="hunter2")
    modules = [str(one) for one in shell.parents[1].glob("*lib/*/zsh/*")] + [
        str(one) for one in shell.parents[1].glob("usr/lib/*/zsh/*")
    ]
    (tmp_path / "setup").write_text(
        f"module_path=({' '.join(modules)} $module_path)\nfpath=({functions} {functions}/**/*(/N) $fpath)\n"
        f"autoload -Uz compinit; compinit -u -D\n{ada.said('completion', 'zsh')}\nbindkey -e\nPS1='ready> '\n"
    )
    with Shell([str(shell), "-f", "-i"], environment_of(ada, programs, shell), tmp_path) as typing:
        typing.type("source ./setup\n", "ready> ")
        typing.type("strongroom get Zsh/My\t", "HOME")
        typing.type("us\t", "username")
        typing.type("\x01printf '<%s>' \n", f"<strongroom><get><Zsh/{NAME}><username>")


def test_in_fish(ada: CommandLineUser, programs: Path, tmp_path: Path) -> None:
    """What fish offers: a command, a name, a field of an item whose name needs quotes; files where nothing fits."""
    shell, functions = needed("fish"), needed(FISH_FUNCTIONS)
    ada.said("add", "login", NAME, "username=ada", "password=-", "--vault", "Fish", "--create-vault", stdin="hunter2")
    (tmp_path / "export.json").write_text("")
    quoted = "'Fish/" + NAME.replace("'", "\\'") + "'"
    asked = ["strongroom share-t", "strongroom get Fish/My", f"strongroom get {quoted} us", "strongroom import exp"]
    (tmp_path / "asked").write_text("\n".join(asked))
    (tmp_path / "script.fish").write_text(
        f"set fish_function_path {functions}\n{ada.said('completion', 'fish')}\n"
        "for line in (cat asked)\n    complete -C $line\nend\n"
    )
    told = subprocess.run(
        [str(shell), "--no-config", "script.fish"],
        cwd=tmp_path,
        env=environment_of(ada, programs, shell),
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    assert told == ["share-token", f"Fish/{NAME}", "username", "export.json"]


class Shell:
    """A shell at a pseudo-terminal."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self._ours, theirs = pty.openpty()
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def type(self, keys: str, shown: str) -> None:
        """Press keys, and wait until something is shown."""
        os.write(self._ours, keys.encode())
        seen = ""
        deadline = time.monotonic() + PATIENCE
        while shown not in seen:
            assert time.monotonic() < deadline, f"{shown!r} is not shown: {seen[-2000:]!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                seen += os.read(self._ours, 1 << 16).decode(errors="replace")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)
