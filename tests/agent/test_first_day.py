"""A person's first day, typed into a real terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.terminals.shell_terminal import PROMPT, ShellTerminal, at_terminal

NEW_PASSWORD = "another horse another battery"


def typed(terminal: ShellTerminal, command: str, *replies: tuple[str, str], then: str) -> str:
    """Type a command, reply to each of its prompts, and wait for what it says at the end."""
    terminal.type(command)
    shown = ""
    for prompt, reply in replies:
        shown += terminal.shows(prompt)
        terminal.type(reply)
    return shown + terminal.shows(then)


def test_a_first_day(url: str, tmp_path: Path) -> None:
    """Register, keep the recovery key, add, import, read, lock, unlock by reading, edit, change password, recover."""
    person = CommandLineUser(tmp_path / "one" / "home", url)
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nsed -i 's/hunter2/hunter3/' \"$1\"\n")
    editor.chmod(0o755)
    old = {"type": 1, "id": "1", "name": "Old bank", "login": {"username": "ada", "password": "from-bitwarden"}}
    (person.home.parent / "bitwarden.json").write_text(json.dumps({"encrypted": False, "items": [old]}))
    with at_terminal(person, EDITOR=str(editor)) as terminal:
        typed(
            terminal,
            f"strongroom login --register --server {url}",
            ("Email:", person.email),
            ("Master password:", PASSWORD),
            ("Master password again:", PASSWORD),
            then="strongroom recovery",
        )
        terminal.type("strongroom recovery")
        terminal.shows("Master password:")
        terminal.type(PASSWORD)
        shown = terminal.shows("Type its last group to go on")
        [key] = re.findall(r"SR2(?:-[0-9A-Z]{4}){9}", shown)
        terminal.type("XXXX")
        terminal.shows("That is not its last group.")
        terminal.type(key.rpartition("-")[2])
        terminal.shows("Nobody can show it again.")
        shown = typed(
            terminal, "strongroom add login GitHub username=ada", ("Password:", "hunter2"), then="sr://Personal/GitHub"
        )
        assert "hunter2" not in shown
        typed(terminal, "strongroom get GitHub", then="hunter2")
        typed(terminal, "strongroom import bitwarden.json --vault Personal", then=PROMPT)
        typed(terminal, "strongroom get 'Old bank'", then="from-bitwarden")
        typed(terminal, "strongroom lock", then="Locked.")
        shown = typed(terminal, "strongroom get GitHub", ("Master password of", PASSWORD), then="hunter2")
        assert PASSWORD not in shown
        typed(terminal, "strongroom edit GitHub", then="Changed 'GitHub'.")
        typed(terminal, "strongroom get GitHub", then="hunter3")
        typed(terminal, "strongroom rm GitHub", ("(y or n)", "n"), then="Nothing was done.")
        typed(
            terminal,
            "strongroom passwd",
            ("Master password:", PASSWORD),
            ("New master password:", NEW_PASSWORD),
            ("New master password again:", NEW_PASSWORD),
            then="other devices log in again",
        )
        typed(terminal, "strongroom lock", then="Locked.")
        typed(terminal, "strongroom unlock", ("Master password of", PASSWORD), then="The password is wrong")
        typed(terminal, "strongroom unlock", ("Master password of", NEW_PASSWORD), then="Unlocked;")
        typed(terminal, "strongroom logout", then="Logged out;")
    other = CommandLineUser(tmp_path / "two" / "home", url, person.email)
    with at_terminal(other) as terminal:  # another device, and the password is forgotten
        typed(
            terminal,
            f"strongroom login {other.email} --server {url} --recover",
            ("Recovery key:", key.lower()),
            ("New master password:", PASSWORD),
            ("New master password again:", PASSWORD),
            then="Logged in as",
        )
        typed(terminal, "strongroom get GitHub", then="hunter3")
        typed(terminal, "strongroom get 'Old bank'", then="from-bitwarden")
    other.close()


@pytest.mark.production_hashing  # agents that are true starts hash so
def test_prompts_come_at_the_terminal_and_not_from_a_pipe(person: CommandLineUser) -> None:
    """With standard input and output redirected, the password is still asked for at the terminal and nowhere else."""
    person.add("GitHub", "hunter2")
    person.lock()
    with at_terminal(person) as terminal:
        terminal.type("echo wrong | strongroom get GitHub > out.txt; cat out.txt")
        terminal.shows("Master password of")
        terminal.type(PASSWORD)
        terminal.shows("hunter2")
        terminal.type("echo wrong | strongroom recovery > key.txt")
        terminal.shows("Master password:")
        terminal.type(PASSWORD)
        terminal.shows("Type its last group")
        assert not (person.home.parent / "key.txt").read_text()
        terminal.type("")
        terminal.shows("That is not its last group.")
