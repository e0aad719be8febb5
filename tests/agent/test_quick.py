"""`strongroom get` asks the agent and loads little else: the start of Python is most of its time."""

from __future__ import annotations

import subprocess
import sys

from tests.kit.people.command_line_user import CommandLineUser

ALLOWED = {"__future__", "_ctypes", "_socket", "resource"}  # the middle one and the last: no dump of its memory
PROGRAM = """
import sys
before = set(sys.modules)
from strongroom.cli import main
code = main(["get", "GitHub"])
print(*sorted(set(sys.modules) - before))
"""


def test_a_get_loads_nothing_but_a_socket(ada: CommandLineUser) -> None:
    """Neither argparse, json, re, socket, typing nor a part of the client: only modules of the agent's connection."""
    ada.add("GitHub", "hunter2")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=ada.environment(), capture_output=True, text=True, check=True, timeout=60
    )
    value, loaded = done.stdout.splitlines()
    assert value == "hunter2"
    others = {name for name in loaded.split() if not name.startswith("strongroom")} - ALLOWED
    assert others == set()
    assert len(loaded.split()) < 15


def test_a_value_that_needs_escapes_is_the_same(ada: CommandLineUser) -> None:
    """Quotes, backslashes, line ends and letters of other languages come out as they went in."""
    for number, value in enumerate(['a"b', "a\\b", "a\nb", "ä\u2028é😀", '{"result":"x"}', "\u0001"]):
        ada.add(f"Odd {number}", value)
        assert ada.said("get", f"Odd {number}") == f"{value}\n"
