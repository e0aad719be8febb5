"""Commands that hold secrets leave no core dump and cannot be read by a debugger; the program of `run` is as always."""

from __future__ import annotations

import os
import resource
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.faults.protection import AS_SOMEBODY, is_protected, on_linux, until_protected
from tests.kit.people.machine import World
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.programs.other_user import NOBODY, as_root, as_user, public_folder

REFERENCE = "sr://office/Wiki/password"


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that never responds."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def account_folder(tmp_path: Path) -> Path:
    """A folder for an account."""
    made = tmp_path / "home"
    made.mkdir(mode=0o700)
    return made


@pytest.fixture(autouse=True)
def dumps() -> Iterator[None]:
    """Core dumps are allowed where the commands are started."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    allowed = before[1] if before[1] != resource.RLIM_INFINITY else 1 << 20
    resource.setrlimit(resource.RLIMIT_CORE, (allowed, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_CORE, before)


@on_linux
@pytest.mark.parametrize(
    "words",
    [
        ["get", REFERENCE],
        ["read", REFERENCE],
        ["run", "--env-file", "app.env", "--", "true"],
        ["inject"],
        ["env", "app.env"],
        ["credential", "git", "get"],
        ["add", "secret", "X", "value=-"],
        ["unlock", "--password", "-"],
        ["mcp"],
    ],
)
def test_a_command_is_protected_before_it_gets_a_secret(
    world: World, account_folder: Path, silent: str, words: list[str]
) -> None:
    """While it waits for a server, or for its input."""
    (account_folder.parent / "app.env").write_text(f"SECRET={REFERENCE}\n")
    variables = world.environment | {"STRONGROOM_HOME": str(account_folder), "STRONGROOM_URL": silent}
    with subprocess.Popen(
        [*STRONGROOM, *words],
        cwd=account_folder.parent,
        env=clean_environment(**variables),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        **AS_SOMEBODY,
    ) as process:
        until_protected(process.pid)
        process.kill()


@on_linux
def test_the_short_way_of_get_is_protected(account_folder: Path) -> None:
    """While it waits for the agent's reply, which alone has the secret."""
    with socket.socket(socket.AF_UNIX) as agent:
        agent.bind(str(account_folder / "agent.sock"))
        agent.listen()
        command = [*STRONGROOM, "get", "GitHub"]
        with subprocess.Popen(
            command, env=clean_environment(STRONGROOM_HOME=str(account_folder)), **AS_SOMEBODY
        ) as process:
            connected, _ = agent.accept()
            with connected:
                assert b'"get"' in connected.recv(1000)
                until_protected(process.pid)
                process.kill()


@as_root
def test_a_protected_command_of_a_person_writes_its_files() -> None:
    """Its files in /proc belong to root then: a new file gets its name all the same."""
    with public_folder() as folder:
        place = folder / "place"
        place.mkdir()
        os.chown(place, NOBODY, NOBODY)
        (place / "template").write_text("no reference")
        settings = {"STRONGROOM_HOME": str(place / "home")}
        done = as_user(place, NOBODY, "inject", "-i", "template", "-o", "filled", **settings)
        assert (done.returncode, done.stderr) == (0, "")
        found = (place / "filled").stat()
        assert ((place / "filled").read_text(), found.st_uid, found.st_mode & 0o777) == ("no reference", NOBODY, 0o600)
        assert sorted(one.name for one in place.iterdir()) == ["filled", "template"]


@on_linux
def test_the_test_can_see_an_unprotected_process() -> None:
    """A program of anybody is not protected."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, **AS_SOMEBODY) as process:
        assert not is_protected(process.pid)
        process.kill()


@pytest.mark.parametrize("options", [["--env-file", "app.env"], ["--env-file", "app.env", "--no-masking"], []])
@pytest.mark.parametrize("limit", ["0", "100"])
def test_a_program_of_run_has_the_limits_of_its_caller(
    world: World, tmp_path: Path, options: list[str], limit: str
) -> None:
    """As if it had been started without `run`."""
    (tmp_path / "app.env").write_text(f"SECRET={REFERENCE}\n")
    show = "ulimit -Sc; ulimit -Hc"
    own = subprocess.run(
        ["bash", "-c", f"ulimit -Sc {limit}; {show}"], capture_output=True, text=True, check=True
    ).stdout
    words = [*STRONGROOM, "run", *options, "--", "bash", "-c", show]
    done = subprocess.run(
        ["bash", "-c", f'ulimit -Sc {limit}; exec "$@"', "bash", *words],
        cwd=tmp_path,
        env=clean_environment(**world.environment),
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout, own.split()[0]) == (own, limit)
