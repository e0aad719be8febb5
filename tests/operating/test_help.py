"""Help shows the few options that matter first; all of them are accepted, and one step away."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.options import TABLE
from tests.kit.programs.command_line import strongroom

ALL = {option.option for option in TABLE}


def options_of(text: str) -> list[str]:
    """The options that help explains, in order."""
    return re.findall(r"^  (?:-h, )?(--[a-z-]+)", text, re.MULTILINE)


@pytest.mark.parametrize("command", ["serve", "doctor", "config"])
def test_help_is_short_and_says_where_the_rest_is(tmp_path: Path, command: str) -> None:
    """About a dozen options, the settings file first; --help-all has every one, with its variables and defaults."""
    short, long = (strongroom(tmp_path, command, word, COLUMNS="100") for word in ("--help", "--help-all"))
    assert (short.returncode, long.returncode, short.stderr + long.stderr) == (0, 0, "")
    shown = options_of(short.stdout)
    assert len(shown) <= 17
    assert shown[:3] == ["--help", "--help-all", "--settings"] or command == "doctor"
    assert {"--settings", "--db-path", "--database-url-file", "--help-all"} <= set(shown)
    assert "--help-all shows them all" in " ".join(short.stdout.split())
    assert "docs/settings.md explains every setting" in " ".join(short.stdout.split())
    assert set(options_of(long.stdout)) >= ALL | set(shown)
    said = " ".join(long.stdout.split())
    for option in TABLE:
        assert re.search(rf"\[{option.variable}( or {option.variable}_FILE)?\]", said), option.variable
        assert not option.default or f"(default: {option.default})" in said
    assert "==SUPPRESS==" not in short.stdout + long.stdout


def test_what_most_people_set_is_shown_for_serve(tmp_path: Path) -> None:
    """The settings file, where the data lies, where it listens, TLS, backups, workers, the log."""
    shown = set(options_of(strongroom(tmp_path, "serve", "--help").stdout))
    for name in ("settings", "db-path", "host", "port", "tls-cert", "tls-key", "public-url", "backup-dir", "workers"):
        assert f"--{name}" in shown
    assert "--buffer-bytes" not in shown


def test_options_that_help_leaves_out_are_accepted(tmp_path: Path) -> None:
    """Each of them, with its own sentence where its value is bad."""
    done = strongroom(tmp_path, "serve", "--buffer-bytes", "x", JWT_SECRET="x" * 32)
    assert done.returncode == 2
    assert "--buffer-bytes must be a whole number" in done.stderr


def test_the_menu_names_every_command(tmp_path: Path) -> None:
    """With a few words for each; every command has help of its own."""
    menu = strongroom(tmp_path, "--help").stdout
    commands = re.findall(r"^    ([a-z]+) +[a-z]", menu, re.MULTILINE)
    assert {"serve", "init", "backup", "restore", "doctor", "db", "users", "keys", "config", "ready"} <= set(commands)
    for command in commands:
        assert strongroom(tmp_path, command, "--help").stdout.startswith(f"usage: strongroom {command}")
