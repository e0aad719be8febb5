"""docs/command-line.md: what it says to type works as it stands, and its tables are those of the code."""

from __future__ import annotations

import os
import pty
import re
import select
import shlex
import sys
import time
from pathlib import Path

from strongroom.cli import exit_codes
from strongroom.cli.commands import PEOPLE
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.waiting import PATIENCE

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
TEXT = PAGE.read_text("utf-8")
REPLIES = {
    r"[Mm]aster password.*: $": PASSWORD,
    r"Password: $": "hunter2",
    r"Type its last group to go on: $": "the last group",
}


def blocks() -> list[str]:
    """The scripts of the page, but for the installation."""
    return [
        one for one in re.findall(r"^```sh\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL) if "pip install" not in one
    ]


def typed(script: str, folder: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a script in a terminal, and reply to its prompts as a person would; its exit code, and what was shown."""
    pid, master = pty.fork()
    if not pid:
        os.chdir(folder)
        os.execvpe("bash", ["bash", "--norc", "-e", "-c", script], environment)  # noqa: S606
    shown, since, deadline = "", "", time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if not select.select([master], [], [], 0.1)[0]:
            continue
        try:
            told = os.read(master, 1 << 16).decode(errors="replace").replace("\r", "")
        except OSError:  # the script has ended
            break
        shown, since = shown + told, since + told
        for prompt, reply in REPLIES.items():
            if re.search(prompt, since):
                said = re.findall(r"SR2(?:-[0-9A-Z]{4})+-([0-9A-Z]{4})", shown)[-1] if "last group" in reply else reply
                os.write(master, f"{said}\n".encode())
                since = ""
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


def test_the_page_works_word_for_word(url: str, tmp_path: Path) -> None:
    """Every block, in order, in one folder: for people, for scripts, for CI."""
    person = CommandLineUser(tmp_path / "home", url)
    program = tmp_path / "bin" / "strongroom"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m strongroom "$@"\n')
    program.chmod(0o755)
    environment = person.environment(TERM="dumb")
    environment["PATH"] = f"{program.parent}:{environment['PATH']}"
    try:
        for script in blocks():
            typed_in = script.replace("https://vault.example.com", url).replace("ada@example.com", person.email)
            code, shown = typed(typed_in, tmp_path, environment)
            assert code == 0, f"{typed_in}\n{shown}"
            assert PASSWORD not in shown
    finally:
        person.close()


def test_the_exit_codes_are_those_of_the_code() -> None:
    """Each number of the table is used, and each that is used is in the table."""
    table = TEXT.partition("## Exit codes")[2].partition("## Variables")[0]
    told = {int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    used = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert told == used | {130, 141}


def test_every_command_is_named() -> None:
    """The page names each of people's commands."""
    for command in PEOPLE:
        assert re.search(rf"`(strongroom )?{command.name}\b|strongroom {command.name}\b", TEXT), command.name
