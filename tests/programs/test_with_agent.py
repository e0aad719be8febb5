"""The same commands for a person, whose agent holds the keys: unlocked, locked, and in one terminal."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.people.machine import World
from tests.kit.programs.command_line import STRONGROOM
from tests.kit.terminals.terminal import Terminal
from tests.mcp.model import Model

SECRET = "pw-of-the-person-81"


@pytest.fixture
def person(world: World, tmp_path: Path) -> Iterator[CommandLineUser]:
    """Somebody with one item, whose agent is unlocked."""
    made = CommandLineUser(tmp_path / "home", world.url, production_hashing=True)
    made.register()
    made.add("Database", SECRET)
    yield made
    made.close()


def test_programs_get_secrets_from_the_agent(person: CommandLineUser, tmp_path: Path) -> None:
    """run, read, inject and a model use what is unlocked, and are told when it is locked; a person unlocks."""
    [item] = person.json("list")
    reference = f"{item['reference']}/password"
    assert person.said("read", "-n", reference) == SECRET
    assert person.said("run", "--", "sh", "-c", "echo got $A", A=reference) == "got <masked>\n"
    (tmp_path / "app.tmpl").write_text(f"{{{{ {reference} }}}}")
    assert person.said("inject", "-i", "app.tmpl") == SECRET
    policy = tmp_path / "mcp.toml"
    policy.write_text(
        f'items = ["sr://*/*"]\n[[command]]\nargv = ["/usr/bin/env"]\nenvironment = {{ A = "{reference}" }}\n'
    )
    policy.chmod(0o600)
    environment = {"STRONGROOM_HOME": str(person.home)}
    with Model(tmp_path / "model", environment, "--policy", str(policy)) as model:
        assert [one["title"] for one in model.call("list_items").value["items"]] == ["Database"]
        assert "A=<masked>\n" in model.call("run_command", argv=["/usr/bin/env"]).value["output"]
        person.lock()
        reply = model.call("run_command", argv=["/usr/bin/env"])
        assert (reply.refused, "A person must run 'strongroom unlock'" in reply.text) == (True, True)
        assert not person.running
        done = person.run("run", "--", "touch", "started", A=reference)
        assert (done.returncode, (tmp_path / "started").exists()) == (5, False)
        command = [*STRONGROOM, "run", "--", "sh", "-c", "echo got $A"]
        with Terminal(command, env=person.environment(A=reference), cwd=tmp_path) as terminal:
            terminal.wait_for(b"Master password of")
            terminal.press(PASSWORD.encode() + b"\n")
            terminal.wait_for(b"got <masked>")
            terminal.rest()
            assert terminal.process.returncode == 0
        assert not model.call("run_command", argv=["/usr/bin/env"]).refused
    assert SECRET.encode() not in model.messages()
    assert SECRET not in (person.home / "mcp.log").read_text()


def test_the_page_runs_word_for_word(person: CommandLineUser, tmp_path: Path) -> None:
    """The first five minutes, a token for a machine, and one for a memory, as docs/agents.md has them."""
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    blocks = re.findall(r"```(sh|text)\n(.*?)```", page, re.DOTALL)
    first, shown = next((one[1], blocks[at + 1][1]) for at, one in enumerate(blocks) if "app.env" in one[1])
    [machine] = [text for _, text in blocks if "share-token ci" in text]
    [memory] = [text for _, text in blocks if "share-token agents" in text]
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "strongroom").write_text(f'#!/bin/sh\nexec {shlex.join(STRONGROOM)} "$@"\n')
    (tmp_path / "bin" / "strongroom").chmod(0o700)
    environment = person.environment(PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def typed(script: str, **more: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", script],
            cwd=tmp_path,
            env=environment | more,
            input=SECRET,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert typed(first).endswith(shown)
    token = typed(machine).splitlines()[-1]
    typed(memory)
    assert stat.S_IMODE((tmp_path / "memory.token").stat().st_mode) == 0o600
    person.lock()
    given = {"STRONGROOM_TOKEN": token, "STRONGROOM_URL": person.url}
    assert typed("strongroom read sr://ci/Database/password", **given) == SECRET + "\n"
    policy = tmp_path / "mcp.toml"
    policy.write_text(f'[memory]\nurl = "{person.url}"\ntoken_file = "{tmp_path}/memory.token"\n')
    policy.chmod(0o600)
    with Model(tmp_path / "model", {"STRONGROOM_HOME": str(person.home)}, "--policy", str(policy)) as model:
        noted = model.call("remember", text="a note").value["uid"]
        assert [one["text"] for one in model.call("recall").value["memories"]] == ["a note"]
        model.call("forget", uid=noted)
        assert model.call("recall").value["memories"] == []
