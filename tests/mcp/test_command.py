"""The command `strongroom mcp` before it serves: what it says of its policy, its log and its library."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kit.programs.command_line import strongroom


@pytest.fixture
def account_folder(tmp_path: Path) -> Path:
    """The folder of the account's files."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


def test_check_says_what_the_policy_allows(account_folder: Path) -> None:
    """Each part in a line; without a file, that nothing is allowed."""
    done = strongroom(account_folder, "mcp", "--check", STRONGROOM_HOME=str(account_folder))
    assert (done.returncode, done.stdout) == (0, "The policy allows nothing.\n")
    assert f"There is no policy {account_folder}/mcp.toml" in done.stderr
    (account_folder / "mcp.toml").write_text(
        """
items = ["sr://office/*"]
reveal = ["sr://office/Wiki/username"]
command = [{ argv = ["/bin/echo", "{word}"], environment = { A = "sr://office/Wiki/password" } }]
template = [{ name = "app", source = "/a", target = "/b", references = [] }]
memory = { url = "https://vault.example.com", token_file = "/c" }
"""
    )
    (account_folder / "mcp.toml").chmod(0o600)
    done = strongroom(account_folder, "mcp", "--check", STRONGROOM_HOME=str(account_folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "run      /bin/echo {word}  with A=sr://office/Wiki/password",
        "fill     app: /a into /b",
        "reveal   sr://office/Wiki/username",
        "list     sr://office/*",
        "memory   at https://vault.example.com",
    ]


def test_what_cannot_be_used_is_a_sentence(account_folder: Path) -> None:
    """A policy that is not there, one that others can write, and a log that is no file: nothing is served."""
    (account_folder / "loose.toml").write_text("")
    (account_folder / "loose.toml").chmod(0o666)
    for options, sentence in (
        (["--policy", "none.toml"], "none.toml cannot be read: No such file"),
        (["--policy", "loose.toml"], "Others can write loose.toml"),
        (["--log", str(account_folder)], "cannot be opened"),
    ):
        done = strongroom(account_folder, "mcp", *options, STRONGROOM_HOME=str(account_folder))
        assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (2, "", False)
        assert sentence in done.stderr
