"""The log of `strongroom mcp`: what a model chooses can neither forge a line, nor fill it, nor hide another."""

from __future__ import annotations

import asyncio
import json
import resource
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.mcp import use_log
from strongroom.mcp.policy import Command, Policy
from strongroom.mcp.tools import Refused, Tools
from strongroom.mcp.use_log import UseLog
from strongroom.programs.private_files import FileRefused

FORGED = '{"time": "2026-01-01T00:00:00Z", "tool": "reveal", "outcome": "allowed"}'
ODD = [
    f"x\n{FORGED}\n",
    f"x\r{FORGED}",
    f"x\u2028{FORGED}\u2029\x85\x0b\x0c",
    '", "outcome": "allowed", "tool": "reveal',
    "\x1b[2K\x1b[1A\x1b]0;title\x07\x9b2J\x7f\x08\x08",
    "\u202egnihtemos\u2066 else",
    "\x00 and \ud800",
    "long " * 10_000,
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The file of a log."""
    return tmp_path / "log"


@pytest.fixture
def tools(path: Path) -> Iterator[Tools]:
    """The tools of a policy that reveals one field and allows one command."""
    log = UseLog(str(path))
    yield Tools(Policy(reveal=["sr://a/b/c"], command=[Command(argv=["/bin/true"])]), log)
    log.close()


def refusal(tools: Tools, tool: str, **arguments: Any) -> str:
    """The sentence with which a call is refused."""
    with pytest.raises((Refused, FileRefused)) as problem:
        asyncio.run(tools.call(tool, arguments))
    return str(problem.value)


@pytest.mark.parametrize("text", ODD)
def test_a_text_of_the_model_is_one_member_of_one_line(tools: Tools, path: Path, text: str) -> None:
    """A name of a tool, a reference, a command line: short, in printable ASCII, and nothing beside it."""
    refusal(tools, text)
    refusal(tools, "run_command", argv=[text[:4000]])
    refusal(tools, "reveal", reference=text[:4000])
    refusal(tools, "reveal", reference=f"sr://a/b/{text[:4000]}")
    data = path.read_bytes()
    assert data.count(b"\n") == 4
    assert all(byte == 0x0A or 0x20 <= byte < 0x7F for byte in data)
    lines = [json.loads(line) for line in data.splitlines()]
    assert [line["tool"] for line in lines] == ["unknown", "run_command", "reveal", "reveal"]
    assert {line["outcome"] for line in lines} == {"refused"}
    assert all(set(line) == {"time", "tool", "outcome", "asked"} and len(line["asked"]) <= 201 for line in lines)
    assert lines[0]["asked"].rstrip("…") == text[:200]
    assert b'"outcome": "allowed"' not in data


def test_arguments_that_do_not_fit_are_not_in_the_log(tools: Tools, path: Path) -> None:
    """Neither their values nor their names."""
    refusal(tools, "reveal", reference=["canary"], canary="canary")
    assert "canary" not in path.read_text()


def test_an_allowed_field_is_logged_as_the_policy_spells_it(tools: Tools, path: Path) -> None:
    """Not as the model does."""
    refusal(tools, "reveal", reference="sr://%61/%62/%63")  # there is no agent
    assert [json.loads(line).get("references") for line in path.read_text().splitlines()] == [["sr://a/b/c"], None]


def test_a_line_that_was_cut_does_not_swallow_the_next(tools: Tools, path: Path) -> None:
    """The disk was full: nothing was done; what comes later has a line of its own."""
    refusal(tools, "first")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, before[1]))
    try:
        assert "so nothing is done" in refusal(tools, "second")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    refusal(tools, "third")
    first, cut, third = path.read_text().splitlines()
    assert (json.loads(first)["asked"], len(cut), json.loads(third)["asked"]) == ("first", 20, "third")


def test_a_full_log_ends_all_use_until_a_person_moves_it(
    tools: Tools, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in it is overwritten; a file that was moved away is begun anew, with the right permissions."""
    monkeypatch.setattr(use_log, "_MOST", 1000)
    while "is full" not in refusal(tools, "unlock"):
        pass
    size = path.stat().st_size
    assert 800 < size <= 1000
    assert "is full" in refusal(tools, "run_command", argv=["/bin/true"])
    assert path.stat().st_size == size
    path.rename(path.with_name("old"))
    assert "does not allow" in refusal(tools, "unlock")
    assert (path.read_text().count("\n"), stat.S_IMODE(path.stat().st_mode)) == (1, 0o600)
    path.unlink()
    path.symlink_to("elsewhere")
    assert "cannot be opened" in refusal(tools, "unlock")
    assert not path.with_name("elsewhere").exists()


def test_a_log_that_is_no_file_of_the_owner_is_refused(tmp_path: Path) -> None:
    """Neither a link nor a folder; loose permissions are mended."""
    (tmp_path / "true").write_text("")
    (tmp_path / "true").chmod(0o666)
    (tmp_path / "link").symlink_to(tmp_path / "true")
    for name in ("link", "."):
        with pytest.raises(FileRefused):
            UseLog(str(tmp_path / name))
    UseLog(str(tmp_path / "true")).close()
    assert stat.S_IMODE((tmp_path / "true").stat().st_mode) == 0o600
