"""Completion: commands, options, names of items and fields; nothing is unlocked for it."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.person import Person

NAME = """My "bank" & co's $HOME"""


def completed(person: Person, *words: str) -> list[str]:
    """What may stand in the place of the last word."""
    return person.said("completion", "--at", str(len(words)), "--", "strongroom", *words).splitlines()


def test_what_may_follow(ada: Person) -> None:
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


def test_a_locked_agent_stays_locked(person: Person) -> None:
    """No prompt, no name, no failure."""
    person.add("GitHub", "hunter2")
    person.lock()
    assert completed(person, "get", "") == []
    assert not person.running


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(ada: Person, shell: str, tmp_path: Path) -> None:
    """It is valid there; in bash, a name with quotes and spaces comes out as one word that means itself."""
    script = ada.said("completion", shell)
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "script").write_text(script)
    subprocess.run([shell, "-n", str(tmp_path / "script")], check=True)
    if shell != "bash":
        return
    ada.add(NAME, "hunter2")
    program = tmp_path / "strongroom"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m strongroom "$@"\n')
    program.chmod(0o755)
    lines = f'{script}\nCOMP_WORDS=(strongroom get "My"); COMP_CWORD=2; _strongroom; printf "%s\\n" "${{COMPREPLY[@]}}"'
    environment = ada.environment()
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    told = subprocess.run(["bash", "-c", lines], env=environment, capture_output=True, text=True, check=True).stdout
    assert shlex.split(told) == [NAME]
    echoed = subprocess.run(["bash", "-c", f"printf %s {told}"], capture_output=True, text=True, check=True).stdout
    assert echoed == NAME
