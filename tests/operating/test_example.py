"""Example of a test of an operator's command: it runs as a process, as it is typed."""

from pathlib import Path

from tests.kit.programs.command_line import in_json, strongroom


def test_an_account_is_added_and_listed(tmp_path: Path) -> None:
    """And a second one with the same email is refused in a sentence."""
    settings = {"JWT_SECRET": "x" * 32, "DB_PATH": str(tmp_path / "vault.db"), "input": "correct horse\n"}
    assert strongroom(tmp_path, "db", "migrate", **settings).returncode == 0
    assert strongroom(tmp_path, "users", "add", "ada@example.com", **settings).returncode == 0
    listed = in_json(strongroom(tmp_path, "users", "list", "--json", **settings))
    assert [account["email"] for account in listed["accounts"]] == ["ada@example.com"]
    again = strongroom(tmp_path, "users", "add", "ada@example.com", **settings)
    assert again.returncode != 0
    assert again.stderr.count("\n") == 1
