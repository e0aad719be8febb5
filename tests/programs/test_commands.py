"""run, read, inject, env and the credential helpers, with the token of a machine and a real server."""

from __future__ import annotations

import json
import shlex
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.kit.people.machine import SECRETS, World
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.terminals.terminal import Terminal

DATABASE = SECRETS["Database"]


def strongroom(world: World, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command at the machine; `environment` has variables besides its own."""
    environment = clean_environment(**world.environment, **more.pop("environment", {}))
    return processes.run(
        [*STRONGROOM, *arguments],
        cwd=world.home,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        **more,
    )


# read


def test_read_prints_a_value(world: World) -> None:
    """With a newline after it, or without, or as JSON."""
    reference = "sr://office/Database/password"
    assert strongroom(world, "read", reference).stdout == DATABASE + "\n"
    assert strongroom(world, "read", "-n", reference).stdout == DATABASE
    assert json.loads(strongroom(world, "read", "--json", reference).stdout) == {
        "reference": reference,
        "value": DATABASE,
    }


@pytest.mark.parametrize(
    ("reference", "code", "sentence"),
    [
        ("sr://office/Gone/password", 3, "There is no item 'Gone'"),
        ("sr://office/Database/nothing", 3, "The item has no field 'nothing'"),
        ("sr://other/Database/password", 3, "There is no vault 'other'"),
        ("sr://office/Twin/password", 7, "2 items are named 'Twin'"),
        ("office/Database", 2, "A reference has the form"),
    ],
)
def test_a_reference_that_cannot_be_read_is_a_sentence(world: World, reference: str, code: int, sentence: str) -> None:
    """With an exit code of its own, and nothing on standard output."""
    done = strongroom(world, "read", reference)
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


# run


def test_run_replaces_references_for_one_process(world: World) -> None:
    """Whole values and parts of values, in the file and in the environment; the token is taken out."""
    world.file("app.env", "A=sr://office/Database/password\nB='x {{ sr://office/Wiki/username }}'\nC=plain\nE=file\n")
    program = "import json, os; print(json.dumps(dict(os.environ)))"
    done = strongroom(
        world,
        *("run", "--no-masking", "--env-file", "app.env", "--", sys.executable, "-c", program),
        environment={"D": "sr://office/Wiki/password", "E": "shell"},
    )
    seen = json.loads(done.stdout)
    assert (seen["A"], seen["B"], seen["C"]) == (DATABASE, "x user-of-Wiki", "plain")
    assert (seen["D"], seen["E"]) == (SECRETS["Wiki"], "file")
    assert not {"STRONGROOM_TOKEN", "STRONGROOM_TOKEN_FILE"} & set(seen)
    assert world.environment["STRONGROOM_TOKEN"] not in done.stdout


def test_run_masks_the_output(world: World) -> None:
    """By default; with --no-masking the output is as it is. Exit code and input are passed through."""
    command = ["--", "sh", "-c", 'cat; echo "$A"; echo "$A" | base64 >&2; exit 5']
    environment = {"A": "sr://office/Database/password"}
    done = strongroom(world, "run", *command, environment=environment, input="in\n")
    assert (done.returncode, done.stdout) == (5, "in\n<masked>\n")
    assert done.stderr.startswith("<masked>")
    done = strongroom(world, "run", "--no-masking", *command, environment=environment, input="in\n")
    assert (done.returncode, done.stdout) == (5, f"in\n{DATABASE}\n")


def test_everything_after_the_dashes_is_the_commands(world: World) -> None:
    """Options too that `run` itself has, and further dashes."""
    done = strongroom(world, "run", "--", "echo", "--no-masking", "--", "x", "--help")
    assert (done.returncode, done.stdout) == (0, "--no-masking -- x --help\n")


def test_run_says_what_it_does_not_mask(world: World) -> None:
    """A value with fewer than four characters."""
    world.login("Short", "abc")
    done = strongroom(world, "run", "--", "sh", "-c", 'echo "$A"', environment={"A": "sr://office/Short/password"})
    assert done.stdout == "abc\n"
    assert "sr://office/Short/password: not masked, because it has fewer than 4 characters." in done.stderr


def test_run_starts_nothing_if_a_reference_fails(world: World) -> None:
    """There is a sentence for each, and none shows a value."""
    world.file("bad.env", "A=sr://office/Gone/password\nB=sr://office/Database/password\nC=sr://office/Twin/password\n")
    done = strongroom(world, "run", "--env-file", "bad.env", "--", "touch", "started")
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("strongroom: sr://office/Gone/password: There is no item")
    assert lines[1].startswith("strongroom: sr://office/Twin/password: 2 items are named")
    assert not (world.home / "started").exists()
    assert DATABASE not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["run"], 2, "Say which command to run"),
        (["run", "--env-file", "none.env", "--", "true"], 2, "Cannot read the file none.env"),
        (["run", "--", "no-such-program"], 127, "there is no such program"),
        (["run", "--", "/etc/passwd"], 126, "Permission denied"),
        (["inject", "-i", "none.tmpl"], 2, "Cannot read the file none.tmpl"),
        (["inject", "-i", "open.tmpl"], 2, "Line 1"),
        (["env", "wrong.env"], 2, "wrong.env, line 1"),
    ],
)
def test_wrong_use_is_a_sentence(world: World, arguments: list[str], code: int, sentence: str) -> None:
    """And never a traceback."""
    world.file("open.tmpl", "{{ sr://office/Database/password\n")
    world.file("wrong.env", "hunter2\n")
    done = strongroom(world, *arguments)
    assert (done.returncode, sentence in done.stderr, "Traceback" in done.stderr) == (code, True, False), done.stderr
    assert "hunter2" not in done.stderr


def test_run_at_a_terminal(world: World) -> None:
    """The program has a terminal, keys reach it, and the secret is masked there too."""
    program = "import os, sys; print(os.isatty(1), os.environ['A'], flush=True); print(input().upper())"
    environment = clean_environment(**world.environment, A="sr://office/Database/password")
    with Terminal(
        [*STRONGROOM, "run", "--", sys.executable, "-c", program], env=environment, cwd=world.home
    ) as terminal:
        terminal.wait_for(b"True <masked>\r\n")
        terminal.press(b"typed\n")
        terminal.wait_for(b"TYPED\r\n")
        terminal.rest()
        assert terminal.process.returncode == 0


def test_a_signal_of_the_program_is_that_of_run(world: World) -> None:
    """A shell sees that it was killed."""
    done = strongroom(world, "run", "--", "sh", "-c", "kill -USR1 $$", environment={"A": "sr://office/Wiki/password"})
    assert done.returncode == -signal.SIGUSR1


# inject and env


def test_inject_fills_a_template(world: World) -> None:
    """Into a file for its owner alone, which replaces an older one; or as a filter. Other braces stay."""
    text = "p={{ sr://office/Database/password }}\r\n{{ .Values.x }}\n"
    filled = f"p={DATABASE}\r\n{{{{ .Values.x }}}}\n".encode()
    world.file("app.tmpl", "").write_bytes(text.encode())
    world.file("app.conf", "old", 0o644)
    done = strongroom(world, "inject", "-i", "app.tmpl", "-o", "app.conf")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    made = world.home / "app.conf"
    assert made.read_bytes() == filled
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    piped = processes.run(
        [*STRONGROOM, "inject"],
        cwd=world.home,
        env=clean_environment(**world.environment),
        input=text.encode(),
        capture_output=True,
        check=True,
    )
    assert piped.stdout == filled


def test_inject_writes_nothing_if_a_reference_fails(world: World) -> None:
    """The file that was there stays as it was."""
    world.file("bad.tmpl", "{{ sr://office/Database/password }} {{ sr://office/Gone/password }}")
    made = world.file("kept.conf", "old")
    done = strongroom(world, "inject", "-i", "bad.tmpl", "-o", "kept.conf")
    assert (done.returncode, made.read_text()) == (3, "old")
    made.unlink()
    made.symlink_to("elsewhere")
    world.file("good.tmpl", "{{ sr://office/Database/password }}")
    done = strongroom(world, "inject", "-i", "good.tmpl", "-o", "kept.conf")
    assert (done.returncode, (world.home / "elsewhere").exists()) == (1, False)
    assert "symbolic link" in done.stderr


def test_env_prints_what_a_shell_can_evaluate(world: World, tmp_path: Path) -> None:
    """Whatever signs are in a value, it is only a value."""
    world.login("Evil", "'; touch evil; echo '$(touch evil)`touch evil`\n\"")
    world.file("app.env", "A=sr://office/Database/password\nB=sr://office/Evil/password\nC='two words'\n")
    printed = strongroom(world, "env", "app.env").stdout
    shown = subprocess.run(
        ["sh", "-c", f'{printed}printf "%s|%s|%s" "$A" "$B" "$C"'],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout == f"{DATABASE}|'; touch evil; echo '$(touch evil)`touch evil`\n\"|two words"
    assert list(tmp_path.iterdir()) == []
    assert json.loads(strongroom(world, "env", "--json", "app.env").stdout)["A"] == DATABASE


# Credential helpers


@pytest.fixture
def mapped(world: World) -> Path:
    """The file that says which item is for which host."""
    home = world.home / "strongroom"
    home.mkdir(mode=0o700, exist_ok=True)
    path = home / "credentials.toml"
    path.write_text(
        '[git]\n"git.example.com" = "sr://office/Wiki"\n[docker]\n"images.example.com:5000" = "sr://office/Wiki"\n'
        '"localhost:5000" = "sr://office/Wiki"\n"[::1]:5000" = "sr://office/Wiki"\n'
    )
    path.chmod(0o600)
    return path


@pytest.mark.usefixtures("mapped")
def test_git_gets_credentials_for_a_host_of_the_file(world: World) -> None:
    """By https, for the host and the user of the item; git itself asks."""
    asked = "protocol=https\nhost=git.example.com\n"
    wanted = f"username=user-of-Wiki\npassword={SECRETS['Wiki']}\n"
    assert strongroom(world, "credential", "git", "get", input=asked + "\n").stdout == wanted
    twice = asked + "capability[]=authtype\ncapability[]=state\n"
    assert strongroom(world, "credential", "git", "get", input=twice).stdout == wanted
    for other in (
        "protocol=https\nhost=evil.example.com\n",
        "protocol=https\nhost=git.example.com.evil.example.com\n",
        "protocol=https\nhost=git.example.com:8443\n",
        "protocol=http\nhost=git.example.com\n",
        asked + "username=somebody\n",
        "",
        # What git reads as one line of another host, and a reader of other line ends as two.
        *(
            f"protocol=https\nhost=evil.example.com\nusername=user-of-Wiki{end}host=git.example.com\n"
            for end in ("\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029")
        ),
        'protocol=https\nhost=evil.example.com\nwwwauth[]=Basic realm="x\x85host=git.example.com\x85"\n',
        "protocol=https\nhost=evil.example.com\nhost=git.example.com\n",
        "protocol=http\nprotocol=https\nhost=git.example.com\n",
    ):
        done = strongroom(world, "credential", "git", "get", input=other)
        assert (done.returncode, done.stdout) == (0, "")
    for operation in ("store", "erase", "new"):
        assert strongroom(world, "credential", "git", operation, input=asked).returncode == 0
    program = "import sys; from strongroom.cli.credentials import git; sys.exit(git())"  # git-credential-strongroom
    helper = f"!{shlex.join([sys.executable, '-c', program])}"
    filled = subprocess.run(
        ["git", "-c", "credential.helper=", "-c", f"credential.helper={helper}", "credential", "fill"],
        input=asked,
        cwd=world.home,
        env=clean_environment(**world.environment, GIT_TERMINAL_PROMPT="0", HOME=str(world.home)),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"password={SECRETS['Wiki']}\n" in filled.stdout


@pytest.mark.usefixtures("mapped")
def test_docker_gets_credentials_for_a_host_of_the_file(world: World) -> None:
    """In its own form; any other host gets the sentence that docker knows."""
    for server in (
        "images.example.com:5000",
        "https://images.example.com:5000/v2/",
        "http://localhost:5000",
        "http://[::1]:5000/v2/",
    ):
        done = strongroom(world, "credential", "docker", "get", input=server + "\n")
        assert json.loads(done.stdout) == {
            "ServerURL": server,
            "Username": "user-of-Wiki",
            "Secret": SECRETS["Wiki"],
        }
    for server in (
        "evil.example.com",
        "images.example.com",
        "https://images.example.com:5000@evil.example.com",
        "http://images.example.com:5000",
        "HTTP://images.example.com:5000/v2/",
        "ftp://images.example.com:5000",
        "ftp://localhost:5000",
        "http://localhost:5000@evil.example.com",
        "http://localhost",
        "//[",
    ):
        done = strongroom(world, "credential", "docker", "get", input=server)
        assert (done.returncode, done.stdout) == (1, "credentials not found in native keychain\n")
    assert json.loads(strongroom(world, "credential", "docker", "list").stdout) == {
        "images.example.com:5000": "user-of-Wiki",
        "localhost:5000": "user-of-Wiki",
        "[::1]:5000": "user-of-Wiki",
    }
    assert strongroom(world, "credential", "docker", "store", input="{}").returncode == 1


def test_a_file_of_hosts_that_is_wrong_is_refused(world: World, mapped: Path) -> None:
    """Loose permissions, unknown parts, a field in the place of an item."""
    for text, mode, sentence in (
        ("", 0o666, "Others can write"),
        ("[svn]\n", 0o600, "unknown field"),
        ('[git]\n"a" = "sr://office/Wiki/password"\n', 0o600, "must name an item"),
        ('[git]\n"a" = "Wiki"\n', 0o600, "A reference has the form"),
        ("[git\n", 0o600, "cannot be used"),
    ):
        mapped.write_text(text)
        mapped.chmod(mode)
        done = strongroom(world, "credential", "git", "get", input="protocol=https\nhost=a\n")
        assert (done.returncode, sentence in done.stderr, "Traceback" in done.stderr) == (2, True, False), done.stderr


def test_a_token_in_a_file(world: World) -> None:
    """As with systemd's credentials; a file that others can read is refused."""
    path = world.file("token", world.environment["STRONGROOM_TOKEN"] + "\n")
    environment = {"STRONGROOM_TOKEN": "", "STRONGROOM_TOKEN_FILE": str(path)}
    given = clean_environment(**(world.environment | environment))
    command = [*STRONGROOM, "read", "-n", "sr://office/Wiki/password"]
    assert processes.run(command, env=given, capture_output=True, text=True, check=True).stdout == SECRETS["Wiki"]
    path.chmod(0o640)
    done = processes.run(command, env=given, capture_output=True, text=True, check=False)
    assert (done.returncode, "Others can read the token file" in done.stderr) == (1, True)
    of_systemd = given | {
        "CREDENTIALS_DIRECTORY": str(world.home)
    }  # where an access list shows as the group's permission
    assert processes.run(command, env=of_systemd, capture_output=True, text=True, check=True).stdout == SECRETS["Wiki"]
    path.chmod(0o644)
    assert processes.run(command, env=of_systemd, capture_output=True, text=True, check=False).returncode == 1


@pytest.mark.parametrize("member", ["username", "password"])
@pytest.mark.parametrize("sign", ["\n", "\r", "\0"])
def test_git_gets_no_credential_with_a_line_break(world: World, mapped: Path, member: str, sign: str) -> None:
    """What follows the break would be a line of its own, such as another host: nothing is printed."""
    item = {"type": "login", "title": "Broken", "username": "ada", "password": "hunter2-canary"}
    made = world.items.create({**item, member: f"{item[member]}{sign}host=evil.example.com"})
    try:
        mapped.write_text('[git]\n"git.example.com" = "sr://office/Broken"\n')
        done = strongroom(world, "credential", "git", "get", input="protocol=https\nhost=git.example.com\n")
        assert (done.returncode, done.stdout) == (1, "")
        assert "line break" in done.stderr
        assert "canary" not in done.stderr
    finally:
        world.items.delete(made)
