"""Upgrades by hand: `strongroom db migrate`, and `strongroom serve --no-migrate`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from strongroom.store import migrations, open_database
from tests.kit.programs.command_line import place_of, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET

Run = Callable[..., "subprocess.CompletedProcess[str]"]
KNOWN = migrations.load()


pytestmark = pytest.mark.without_schema


@pytest.fixture
def run(tmp_path: Path, where: str) -> Run:
    """Run a command where the data is."""
    settings = {"JWT_SECRET": SECRET, "PORT": "0", **place_of(where)}
    return lambda *arguments: strongroom(tmp_path, *arguments, **settings)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_who_migrates_by_hand_decides_when(
    where: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: str
) -> None:
    """Nothing serves before; the command says what it did, and does it once; then --no-migrate serves."""
    refused = run("serve", "--no-migrate", "--workers", workers)
    assert refused.returncode == 2
    assert "has no schema yet" in refused.stderr
    monkeypatch.setattr(migrations, "load", lambda: KNOWN[:-1])
    asyncio.run(open_database(where, lambda: 1).close())
    monkeypatch.undo()
    refused = run("serve", "--no-migrate", "--workers", workers)
    assert refused.returncode == 2
    assert f"has schema {KNOWN[-2].number}, this program needs {KNOWN[-1].number}" in refused.stderr
    assert "'strongroom db migrate'" in refused.stderr

    done = run("db", "migrate", "--json")
    assert (done.returncode, json.loads(done.stdout)["steps"]) == (0, [KNOWN[-1].number])
    assert list(tmp_path.glob("*.schema-*")) == (
        [] if "://" in where else [Path(f"{where}.schema-{KNOWN[-2].number:04}")]
    )
    again = run("db", "migrate")
    assert (again.returncode, again.stderr) == (0, "")
    assert "up to date already" in again.stdout
    server = Server(tmp_path / "home", WORKERS=workers, **{"DATABASE_URL": "", **place_of(where)})
    try:
        server.start("--no-migrate")
        assert server.connect().get("/ready").status_code == 200
        assert server.end() == 0
    finally:
        server.abandon()


def test_the_command_makes_a_database_where_there_is_none(run: Run) -> None:
    """All steps at once; and then it is there."""
    done = run("db", "migrate")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"ran {len(KNOWN)} migrations, up to {KNOWN[-1].number}." in done.stdout
    assert json.loads(run("db", "migrate", "--json").stdout)["steps"] == []
