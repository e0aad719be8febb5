"""However long a list is, the server's memory stays flat; what it caches is released when it has little to do."""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import apsw
import httpx2
import pytest

from strongroom.server import memory
from tests.kit.asynchronous import async_test
from tests.kit.servers.memory import LIMIT, resident
from tests.kit.waiting import until_async

COUNT = 100_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_list_of_a_hundred_thousand_documents_takes_little_memory(tmp_path: Path) -> None:
    """100,000 documents of 1 KB without a limit: the server grows by less than 32 MiB, and none is missing."""
    environment = {**os.environ, "JWT_SECRET": "x" * 32, "DB_PATH": str(tmp_path / "x.db"), "PORT": "0"}
    command = [sys.executable, "-m", "strongroom", "serve"]
    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(
            command, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=log, text=True
        ) as server,
        ExitStack() as stack,
    ):
        stack.callback(server.kill)  # whatever fails below, the server does not outlive the test
        assert server.stdout is not None
        url = re.findall(r"http://\S+", server.stdout.readline())[0]
        with httpx2.Client(base_url=url, timeout=60) as http:
            body = {"email": "a@b.c", "password": "correct horse"}
            signed_in = http.post("/auth/email/register", json=body).json()
            http.headers["authorization"] = f"Bearer {signed_in['accessToken']}"
            vault = http.post("/vault", json={"name": "large"}).json()
            _fill(tmp_path / "x.db", signed_in["user"]["id"], vault["uid"])
            http.get(f"/vaults/{vault['uid']}/documents?limit=500")
            before = resident(server.pid, "VmRSS")
            seen = size = 0
            with http.stream("GET", f"/vaults/{vault['uid']}/documents") as answer:
                assert answer.status_code == 200
                tail = b""
                for chunk in answer.iter_bytes():
                    size += len(chunk)
                    joined = tail + chunk
                    seen += joined.count(b'"vaultUid"') - tail.count(b'"vaultUid"')
                    tail = joined[-9:]
            assert seen == COUNT
            assert size > COUNT * 1024
            assert resident(server.pid, "VmHWM") - before < LIMIT
        server.terminate()
        assert server.wait(15) == 0


def _fill(path: Path, user_id: str, vault_uid: str) -> None:
    """Documents enough, straight into the file: what is measured is reading them."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    with connection:
        connection.executemany(
            "INSERT INTO documents VALUES (?, ?, ?, 'c', ?, NULL, 1, ?, ?, NULL, NULL)",
            ((user_id, f"{n:036}", vault_uid, "A" * 1024, n, n) for n in range(1, COUNT + 1)),
        )
    connection.close()


@async_test
@pytest.mark.parametrize(("load", "released"), [(0.04, True), (0.06, False)])
async def test_caches_are_released_only_while_there_is_little_to_do(
    monkeypatch: pytest.MonkeyPatch, *, load: float, released: bool
) -> None:
    """The load is what the process uses of a processor; one that has not grown releases nothing."""
    sizes = itertools.chain([1], itertools.repeat(memory.MIB, 3), itertools.repeat(64 * memory.MIB))
    used = itertools.count(step=load * 0.01)
    trims: list[int] = []
    releases: list[int] = []
    monkeypatch.setattr(memory, "_CHECK_SECONDS", 0.01)
    monkeypatch.setattr(memory, "_function", lambda _name: trims.append)
    monkeypatch.setattr(memory, "resident", lambda: next(sizes))
    monkeypatch.setattr(time, "process_time", lambda: next(used))
    returning = asyncio.create_task(memory.return_free_memory(lambda: releases.append(len(trims))))
    await until_async(lambda: len(trims) >= 3)
    returning.cancel()
    assert releases[:3] == ([0, 1, 2] if released else [])
