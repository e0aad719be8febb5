"""People's commands on items: add, list, search, get, edit, rm, restore, history, totp, tokens."""

from __future__ import annotations

import json
import shlex
import stat
from pathlib import Path
from typing import Any

import pytest

from strongroom.agent.protocol import Failed
from strongroom.agent.secrets import open_secrets
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser

SECRET = "JBSWY3DPEHPK3PXP"


def test_a_login_is_added_found_read_and_changed(ada: CommandLineUser) -> None:
    """The names in many spellings; a secret comes by standard input; a change is one version more."""
    ada.add("GitHub", "hunter2", "username=ada", "url=https://github.com", "tags=work,code")
    assert ada.said("get", "GitHub") == "hunter2\n"
    for name in ("github", "Personal/GitHub", "sr://Personal/GitHub", "sr://personal/github/password"):
        assert ada.said("get", name) == "hunter2\n"
    assert ada.said("get", "GitHub", "username") == ada.said("get", "sr://Personal/GitHub/username") == "ada\n"
    assert ada.said("get", "-n", "GitHub") == "hunter2"
    [found] = ada.json("search", "git", "ADA")
    assert (found["title"], found["type"], found["vault"], found["tags"]) == (
        "GitHub",
        "login",
        "Personal",
        ["work", "code"],
    )
    assert found["reference"] == "sr://Personal/GitHub"
    assert "hunter2" not in json.dumps(found) + ada.said("list")
    ada.said("edit", "GitHub", "password=-", "username=grace", stdin="hunter3")
    assert ada.json("get", "GitHub")["item"]["username"] == "grace"
    assert ada.said("get", "GitHub") == "hunter3\n"


def test_what_is_not_there_or_ambiguous_has_its_own_exit_code(ada: CommandLineUser) -> None:
    """3 for what is not there, 7 for several, 2 for a reference that is none."""
    ada.add("Twice", "one")
    ada.add("Twice", "two")
    assert [ada.run("get", *words).returncode for words in (["nothing"], ["Twice"], ["Twice", "nothing"])] == [3, 7, 7]
    assert ada.run("get", "sr://Nowhere/x").returncode == 3
    assert ada.run("get", "sr://x").returncode == 2
    assert ada.run("get").returncode == 2
    assert ada.run("search", "zzzz").returncode == 3


@pytest.mark.parametrize("word", ["password=hunter2", "totp=JBSWY3DPEHPK3PXP"])
def test_a_secret_on_the_command_line_is_refused(ada: CommandLineUser, word: str) -> None:
    """Others can see a command line: the sentence says how it is done, and nothing is written."""
    done = ada.run("add", "login", "typed", word)
    assert done.returncode == 2
    assert f"{word.partition('=')[0]}=-" in done.stderr
    assert word.partition("=")[2] not in done.stderr
    assert ada.run("get", "typed").returncode == 3


@pytest.mark.parametrize("words", [("unlock", "--password", "hunter2"), ("login", "--password", "hunter2")])
def test_the_master_password_is_never_an_argument(ada: CommandLineUser, words: tuple[str, ...]) -> None:
    """Only `-` is taken, for standard input; what comes by that is not used in the place of an argument."""
    done = ada.run(*words, stdin=f"{PASSWORD}\n")
    assert done.returncode == 2
    assert "hunter2" not in done.stderr


def test_a_deleted_item_and_an_old_version_come_back(ada: CommandLineUser) -> None:
    """`rm` asks first; `restore` with a reference is about items, and with a file about backups."""
    ada.add("Bank", "first")
    assert ada.run("rm", "Bank").returncode == 4
    ada.said("rm", "Bank", "--yes")
    assert ada.run("get", "Bank").returncode == 3
    assert [one["title"] for one in ada.json("list", "--deleted")] == ["Bank"]
    ada.said("restore", "sr://Personal/Bank")
    assert ada.said("get", "Bank") == "first\n"
    ada.said("edit", "Bank", "password=-", stdin="second")
    versions = ada.json("history", "Bank")["versions"]
    assert [one["current"] for one in versions][:2] == [True, False]
    first = versions[-1]["version"]
    assert ada.json("history", "Bank", "--version", str(first))["item"]["password"] == "first"
    ada.said("restore", "sr://Personal/Bank", "--version", str(first))
    assert ada.said("get", "Bank") == "first\n"
    assert "backup" in ada.run("restore", "--help").stdout


def test_one_time_codes(ada: CommandLineUser) -> None:
    """The code is a field, and `totp` says for how long it is good."""
    ada.said("add", "totp", "Codes", "totp=-", stdin=SECRET)
    told = ada.json("totp", "Codes")
    assert len(told["code"]) == 6
    assert 0 < told["seconds"] <= 30
    assert ada.said("get", "Codes", "code").strip() in {told["code"], ada.json("totp", "Codes")["code"]}


def test_a_file_goes_in_and_out_unchanged(ada: CommandLineUser, tmp_path: Path) -> None:
    """Bytes that are no text; the new file is for its owner alone, and nothing is replaced."""
    content = bytes(range(256)) * 10
    (tmp_path / "key.bin").write_bytes(content)
    ada.said("add", "file", "Key", f"file=@{tmp_path / 'key.bin'}")
    out = tmp_path / "out.bin"
    ada.said("get", "Key", "--output", str(out))
    assert out.read_bytes() == content
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert ada.run("get", "Key", "--output", str(out)).returncode == 2


def test_an_item_comes_as_json_by_standard_input(ada: CommandLineUser) -> None:
    """Whole, members of other programs included; what does not fit is refused without showing a value."""
    raw = {"type": "secret", "title": "Whole", "value": "deep", "future": {"kept": True}}
    ada.said("add", "-", stdin=json.dumps(raw))
    assert ada.json("get", "Whole")["item"] == raw
    done = ada.run("add", "-", stdin=json.dumps({"type": "secret", "title": "Bad", "value": ["canary"]}))
    assert done.returncode == 2
    assert "canary" not in done.stderr


def test_a_machine_reads_with_a_token_and_no_agent(ada: CommandLineUser, tmp_path: Path) -> None:
    """The token in a variable or in a file of its owner; it opens its vault, and nothing is asked of the agent."""
    ada.add("Deploy", "s3cret", "username=bot")
    token = ada.said("share-token", "Personal", "--name", "ci").strip()
    machine = CommandLineUser(tmp_path / "machine", ada.url)
    variables = {"STRONGROOM_TOKEN": token, "STRONGROOM_URL": ada.url}
    assert machine.said("get", "sr://Personal/Deploy", **variables) == "s3cret\n"
    assert machine.said("get", "Deploy", "username", **variables) == "bot\n"
    assert "Deploy" in machine.said("list", **variables)
    assert not (tmp_path / "machine").exists()
    file = tmp_path / "token"
    file.write_text(f"{token}\n")
    variables = {"STRONGROOM_TOKEN_FILE": str(file), "STRONGROOM_URL": ada.url}
    file.chmod(0o644)
    assert "chmod 600" in machine.run("get", "Deploy", **variables).stderr
    file.chmod(0o600)
    assert machine.said("get", "Deploy", **variables) == "s3cret\n"
    assert machine.run("get", "sr://Other/Deploy", **variables).returncode == 3
    ada.said("share-token", "--revoke", "ci")
    assert machine.run("get", "Deploy", **variables).returncode == 6


def test_programs_read_through_one_function(ada: CommandLineUser, monkeypatch: pytest.MonkeyPatch) -> None:
    """`open_secrets` gives items without values and the values of references, from the agent."""
    ada.add("Program", "v4lue")
    monkeypatch.setenv("STRONGROOM_HOME", str(ada.home))
    for name in ("STRONGROOM_TOKEN", "STRONGROOM_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    with open_secrets() as secrets:
        [entry] = [one for one in secrets.items() if one["title"] == "Program"]
        assert set(entry["fields"]) == {"password"}
        assert "v4lue" not in str(entry)
        assert secrets.read(["sr://Personal/Program/password"]) == {"sr://Personal/Program/password": "v4lue"}
        with pytest.raises(Failed, match="sr://Personal/Program/nothing: ") as failed:
            secrets.read(["sr://Personal/Program", "sr://Personal/Program/nothing"])
        assert failed.value.code == "field_not_found"


def test_secrets_are_generated(ada: CommandLineUser) -> None:
    """With their strength; an item can have a new one at once, and nobody types it."""
    told = ada.json("generate", "--length", "30")
    assert len(told["value"]) == 30
    assert told["bits"] > 180
    assert len(ada.said("generate", "--words", "4", "--separator", " ").split()) == 4
    assert ada.run("generate", "--length", "5").returncode == 2
    assert ada.run("generate", "--words", "4", "--no-symbols").returncode == 2
    ada.said("add", "login", "Fresh", "--generate")
    first = ada.said("get", "Fresh")
    ada.said("edit", "Fresh", "--generate")
    assert len(first) == len(ada.said("get", "Fresh")) == 21
    assert ada.said("get", "Fresh") != first
    assert ada.run("add", "card", "Card", "--generate").returncode == 2


def test_a_name_with_a_vault_means_that_vault(person: CommandLineUser) -> None:
    """Not an item of another vault that has the whole for its title: who may write there could put one in the way."""
    person.said("add", "login", "Mine", "password=-", "--vault", "Alpha", "--create-vault", stdin="right")
    person.said("add", "login", "Alpha/Mine", "password=-", "--vault", "Beta", "--create-vault", stdin="planted")
    for name in ("Alpha/Mine", "alpha/Mine"):
        assert person.said("get", name) == "right\n"
    assert person.said("get", "Beta/Alpha/Mine") == "planted\n"
    person.said("add", "login", "Alpha/Other", "password=-", "--vault", "Beta", stdin="of beta")
    assert person.said("get", "Alpha/Other") == "of beta\n"


def test_the_command_that_brings_an_item_back_can_be_pasted(ada: CommandLineUser) -> None:
    """A title is no part of the shell's language."""
    title = "x';echo$IFS'pasted';'"
    ada.add(title, "hunter2")
    said = ada.said("rm", title, "--yes")
    words = shlex.split(said.partition("To bring it back: ")[2])
    assert words[:2] == ["strongroom", "restore"]
    assert len(words) == 3
    ada.said(*words[1:])
    assert ada.said("get", title) == "hunter2\n"


def test_names_do_not_control_the_terminal(ada: CommandLineUser) -> None:
    """Neither in JSON nor in a sentence: signs that move the cursor or turn the text are not printed."""
    item: dict[str, Any] = {"type": "note", "title": "Odd \x9b2J\x1b[2J\u202e", "notes": "n"}
    item["fields"] = [{"label": "a\x9b", "value": "1"}, {"label": "A\x9b", "value": "2"}]
    uid = ada.json("add", "-", stdin=json.dumps(item))["id"]
    shown = ada.said("get", uid, "--json") + ada.said("list", "--json") + ada.said("list")
    failed = ada.run("get", uid, "a\x9b ")
    assert failed.returncode
    assert not {sign for sign in shown + failed.stderr if not sign.isprintable()} - {"\n"}
    assert json.loads(ada.said("get", uid, "--json"))["item"]["title"] == item["title"]


def test_a_password_in_other_capitals_is_the_password(ada: CommandLineUser) -> None:
    """It is refused on the command line, and set by standard input."""
    assert ada.run("add", "login", "Capitals", "Password=hunter2").returncode == 2
    ada.said("add", "login", "Capitals", "PASSWORD=-", stdin="hunter2")
    assert ada.said("get", "Capitals") == "hunter2\n"


def test_a_proxys_password_is_no_argument(ada: CommandLineUser) -> None:
    """It would stand in the list of processes, and in the settings."""
    done = ada.run("login", "--proxy", "http://user:secret@proxy.example.com:3128")
    assert done.returncode == 2
    assert "HTTPS_PROXY" in done.stderr
