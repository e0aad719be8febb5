"""PostgreSQL is not there when the server starts, or goes away and comes back."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest

from tests.kit.network.ports import free_port
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.servers.postgres import postgres
from tests.kit.servers.server_process import logged, running
from tests.kit.waiting import until

SECRET = {"JWT_SECRET": "x" * 32}
WORKERS = pytest.mark.parametrize("workers", ["1", "2"])


@pytest.fixture
def url() -> Iterator[str]:
    """A new database; whatever a test does to PostgreSQL, it runs afterwards."""
    yield postgres().fresh()
    postgres().restart()


def serve(home: Path, **settings: str) -> subprocess.Popen[bytes]:
    """A server process that may not start."""
    env = clean_environment(**{"PORT": str(free_port()), "LOG_FORMAT": "json", **SECRET, **settings})
    with (home / "stdout").open("wb") as out, (home / "stderr").open("wb") as err:
        return processes.Popen([*STRONGROOM, "serve"], cwd=home, env=env, stdout=out, stderr=err)


@WORKERS
def test_a_server_waits_for_postgresql_at_its_start(tmp_path: Path, url: str, workers: str) -> None:
    """One line says that it waits, one that it has found it; then it serves."""
    postgres().halt()
    process = serve(tmp_path, DATABASE_URL=url, WORKERS=workers)
    try:
        until(lambda: logged(tmp_path), "a line in the log")
        assert re.search(r"Cannot reach PostgreSQL .*; trying again for 60 seconds", logged(tmp_path)[0])
        time.sleep(2)  # several attempts
        assert process.poll() is None
        assert len(logged(tmp_path)) == 1
        postgres().restart()
        until(lambda: "docs" in (tmp_path / "stdout").read_text(), "the server's start")
        assert re.search(r"PostgreSQL was reached after \d+ seconds", logged(tmp_path)[1])
        where = (tmp_path / "stdout").read_text().split("\n")[0].rpartition(" ")[2]
        assert httpx2.get(f"{where}/ready").status_code == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)


def test_it_does_not_wait_for_ever(tmp_path: Path, url: str) -> None:
    """Then the sentence, and exit code 2. With 0 it does not wait at all."""
    postgres().halt()
    for seconds in ("1", "0"):
        process = serve(tmp_path, DATABASE_URL=url, DB_WAIT_SECONDS=seconds)
        assert process.wait(30) == 2
        said = (tmp_path / "stderr").read_text()
        assert ("trying again for 1 seconds" in said) == (seconds == "1")
        assert said.splitlines()[-1].startswith("strongroom: Cannot reach PostgreSQL")


@WORKERS
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait(tmp_path: Path, url: str, number: signal.Signals, workers: str) -> None:
    """At once and in order, without a traceback."""
    postgres().halt()
    process = serve(tmp_path, DATABASE_URL=url, DB_WAIT_SECONDS="600", WORKERS=workers)
    until(lambda: logged(tmp_path), "a line in the log")
    process.send_signal(number)
    assert process.wait(10) == 0
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_what_waiting_cannot_mend_is_not_waited_for(tmp_path: Path, url: str) -> None:
    """No such database; no such user or a wrong password; an address that is none."""
    missing = url.replace("/test_", "/missing_")
    wrong = re.sub(r"//[^@/]*@", "//nobody:wrong@", url)
    assert missing != url != wrong
    for bad in (missing, wrong, "postgresql://a:b/c@/d"):
        process = serve(tmp_path, DATABASE_URL=bad, DB_WAIT_SECONDS="600")
        assert process.wait(30) == 2, bad
        assert logged(tmp_path) == []
        assert "wrong" not in (tmp_path / "stderr").read_text()


@WORKERS
def test_loss_and_return_are_a_line_each(tmp_path: Path, url: str, workers: str) -> None:
    """However many requests meet it."""
    with ExitStack() as stack:
        _, where = stack.enter_context(running(tmp_path, DATABASE_URL=url, WORKERS=workers, **SECRET))
        with httpx2.Client(base_url=where, timeout=30, trust_env=False) as http:
            assert http.get("/ready").status_code == 200
            postgres().halt()
            until(lambda: http.get("/ready").status_code == 503, "the loss at /ready")
            until(lambda: any("cannot be reached" in line for line in logged(tmp_path)), "the loss in the log")
            bodies = [{"email": f"ada{number}@example.com", "password": "correct horse"} for number in range(3)]
            with ThreadPoolExecutor(3) as callers:
                answers = callers.map(lambda body: http.post("/auth/email/register", json=body), bodies)
                assert {answer.status_code for answer in answers} == {503}
            assert sum("cannot be reached" in line for line in logged(tmp_path)) <= int(workers)
            assert not any("can be reached again" in line for line in logged(tmp_path))
            postgres().restart()
            until(lambda: http.get("/ready").status_code == 200, "readiness")
            until(lambda: any("can be reached again" in line for line in logged(tmp_path)), "the return in the log")
            losses = sum("cannot be reached" in line for line in logged(tmp_path))
            assert 1 <= losses <= int(workers)
            assert sum("can be reached again" in line for line in logged(tmp_path)) <= losses
            assert '"event":"fault"' not in (tmp_path / "stderr").read_text()
