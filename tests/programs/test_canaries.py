"""Fifty secrets go through every command and tool for programs, and are found in no place where they do not belong."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.kit.people.machine import World
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.mcp.model import Model

CANARIES = [f"canary{number:02}-{secrets.token_hex(12)}" for number in range(50)]
MARK = "GIVEN_THE_CANARIES"  # in the environment of the processes that are given them


class Watch:
    """Looks at the arguments and the environment of every process, again and again."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self.rounds = 0
        self._end = threading.Event()

    def look(self) -> None:
        """Look once."""
        for process in Path("/proc").iterdir():
            if process.name.isdecimal():
                for name in ("cmdline", "environ"):
                    data = read(process / name)
                    given = name == "environ" and f"{MARK}=".encode() in data
                    if not given and b"canary" in data and any(one.encode() in data for one in CANARIES):
                        self.found.add(f"{name} of {read(process / 'comm').decode().strip()}")
        self.rounds += 1

    def run(self) -> None:
        """Look until the end."""
        while not self._end.wait(0.05):
            self.look()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look for as long as the block takes."""
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            thread.join()


def read(path: Path) -> bytes:
    """A file of /proc; empty where the process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


def files_with_canaries(*folders: Path) -> set[str]:
    """The files in which a canary stands as it is."""
    return {
        path.name
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and any(one.encode() in path.read_bytes() for one in CANARIES)
    }


def strongroom(world: World, folder: Path, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run a command in a folder that also has its temporary files."""
    environment = clean_environment(**world.environment, TMPDIR=str(folder), GIT_TERMINAL_PROMPT="0")
    done = processes.run(
        [*STRONGROOM, *arguments],
        cwd=folder,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done


def policy_of(folder: Path) -> str:
    """A policy that uses every canary."""
    variables = ", ".join(f'V{number} = "sr://office/Canary {number}/password"' for number in range(50))
    references = json.dumps([f"sr://office/Canary {number}/password" for number in range(50)])
    return f"""
items = ["sr://office/*"]
[[command]]
argv = ["/usr/bin/env"]
environment = {{ {MARK} = "1", {variables} }}
[[command]]
argv = ["/bin/sh", "-c", "env | base64; env >&2"]
environment = {{ {MARK} = "1", {variables} }}
[[template]]
name = "all"
source = "{folder}/all.tmpl"
target = "{folder}/all-by-model.conf"
references = {references}
[memory]
url = "http://127.0.0.1:1"
token_file = "{folder}/none"
"""


def test_no_canary_is_anywhere_else(world: World, tmp_path: Path) -> None:
    """Neither in arguments, nor in other processes' environments, nor in logs, temporary files or messages of MCP."""
    logins = [
        {"type": "login", "title": f"Canary {number}", "username": "u", "password": one}
        for number, one in enumerate(CANARIES)
    ]
    assert len(list(world.items.create_many(logins))) == 50
    folder = tmp_path / "work"
    folder.mkdir(mode=0o700)
    lines = [f"V{number}=sr://office/Canary {number}/password\n" for number in range(50)]
    (folder / "all.env").write_text("".join(lines) + f"{MARK}=1\n")
    (folder / "all.tmpl").write_text(
        "".join(f"{{{{ sr://office/Canary {number}/password }}}}\n" for number in range(50))
    )
    (folder / "all.tmpl").chmod(0o600)
    (folder / "mcp.toml").write_text(policy_of(folder))
    (folder / "mcp.toml").chmod(0o600)
    home = world.home / "strongroom"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "credentials.toml").write_text(
        '[git]\n"h" = "sr://office/Canary 1"\n[docker]\n"h" = "sr://office/Canary 2"\n'
    )
    (home / "credentials.toml").chmod(0o600)
    print_all = "import os, sys; print(dict(os.environ)); print(*os.environ.values(), file=sys.stderr)"
    watch = Watch()
    with watch.running():
        for options in ([], ["--no-masking"]):
            done = strongroom(
                world, folder, "run", *options, "--env-file", "all.env", "--", sys.executable, "-c", print_all
            )
            assert all((one in done.stdout, one in done.stderr) == (bool(options),) * 2 for one in CANARIES)
            assert done.stdout.count("<masked>") == (0 if options else 50)
        assert strongroom(world, folder, "read", "sr://office/Canary 7/password").stdout == CANARIES[7] + "\n"
        strongroom(world, folder, "inject", "-i", "all.tmpl", "-o", "all.conf")
        assert all(one in strongroom(world, folder, "env", "all.env").stdout for one in CANARIES[:1])
        assert (
            CANARIES[1]
            in strongroom(world, folder, "credential", "git", "get", given="protocol=https\nhost=h\n").stdout
        )
        assert CANARIES[2] in strongroom(world, folder, "credential", "docker", "get", given="h").stdout
        environment = world.environment | {"TMPDIR": str(folder)}
        with Model(
            folder / "model", environment, "--policy", str(folder / "mcp.toml"), "--log", str(folder / "mcp.log")
        ) as model:
            assert model.call("list_items").value["items"]
            shown = model.call("run_command", argv=["/usr/bin/env"]).value
            assert shown["output"].count("<masked>") == 50
            model.call("run_command", argv=["/bin/sh", "-c", "env | base64; env >&2"])
            assert model.call("fill_template", name="all").value["references"] == 50
            for refused in (
                model.call("reveal", reference="sr://office/Canary 1/password"),
                model.call("recall"),
                model.call("run_command", argv=["/usr/bin/env", "x"]),
            ):
                assert refused.refused
        assert watch.rounds > 0
    assert watch.found == set()
    filled = {"all.conf", "all-by-model.conf"}
    assert files_with_canaries(folder, home, world.server.home) == filled
    assert all((folder / name).read_text().split() == CANARIES for name in filled)
    assert not any(one.encode() in model.messages() for one in CANARIES)
    assert len((folder / "mcp.log").read_text().splitlines()) >= 8


def test_the_watch_finds_what_it_looks_for(tmp_path: Path) -> None:
    """A canary in an argument, in an environment or in a file is found; the processes that are given them are not."""
    command = [sys.executable, "-c", "import sys; print('ready', flush=True); sys.stdin.read()"]
    for arguments, variables, found in (
        ([CANARIES[3]], {}, {"cmdline"}),
        ([], {"X": CANARIES[4]}, {"environ"}),
        ([], {"X": CANARIES[4], MARK: "1"}, set()),
    ):
        environment = {**os.environ, **variables}
        with subprocess.Popen(
            [*command, *arguments], env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            watch = Watch()
            watch.look()
            process.communicate()
        assert {one.split()[0] for one in watch.found} == found
    (tmp_path / "file").write_text(f"x {CANARIES[5]} y")
    assert files_with_canaries(tmp_path) == {"file"}
