"""What a backup of about 1 GiB costs those who write meanwhile, and how much memory it takes.

    python -m bench.backup [--mib 1024] [--postgres URL] [--turns 3]

Writers go on over HTTP against a real server. The backup is held for every other half second, and the rates of the
slices are compared: other work on the machine then falls on both alike.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx2

WRITERS = 16
DOCUMENT = 16 * 1024
SLICE = 0.5  # seconds
Slice = tuple[float, float]


def serve(home: Path, settings: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "strongroom", "serve"],
        cwd=home,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=(home / "log").open("w"),
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if match := re.match(r"strongroom listens on (\S+)", line):
            return process, match[1]
    raise SystemExit((home / "log").read_text())


def rows(user: str, vault: str, mib: int) -> Iterator[tuple[Any, ...]]:
    for n in range(1, mib * 1024 * 1024 // DOCUMENT + 1):
        uid = f"{random.getrandbits(128):032x}"
        yield user, uid, vault, "c", "A" * DOCUMENT, None, 1, n, n, None, None


async def fill(settings: dict[str, str], home: Path, user: str, vault: str, mib: int) -> None:
    """Straight into the database: what is measured comes later."""
    if "DATABASE_URL" in settings:
        connection = await asyncpg.connect(settings["DATABASE_URL"])
        await connection.copy_records_to_table("documents", records=rows(user, vault, mib))
        await connection.execute("CHECKPOINT")
        await connection.close()
        return
    file = apsw.Connection(str(home / "vault.db"))
    file.set_busy_timeout(60_000)
    with file:
        file.executemany(f"INSERT INTO documents VALUES ({', '.join('?' * 11)})", rows(user, vault, mib))
    file.close()


class Load:
    """Writers that count what was acknowledged."""

    def __init__(self, url: str, token: str, vault: str) -> None:
        self.done: list[float] = []
        self.slowest = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run(url, token, vault)))
        self._thread.start()

    async def _run(self, url: str, token: str, vault: str) -> None:
        async def one(http: httpx2.AsyncClient) -> None:
            while not self._stop.is_set():
                began = time.monotonic()
                answer = await http.post(f"/vaults/{vault}/documents", json={"collection": "w", "data": "B" * 1024})
                assert answer.status_code == 201, answer.text
                self.done.append(time.monotonic())
                self.slowest = max(self.slowest, self.done[-1] - began)

        async with httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
            await asyncio.gather(*(one(http) for _ in range(WRITERS)))

    def rate(self, slices: list[Slice]) -> float:
        done = sum(start <= moment < end for start, end in slices for moment in self.done)
        return done / sum(end - start for start, end in slices)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def backup(home: Path, settings: dict[str, str], name: str) -> tuple[list[Slice], list[Slice], int]:
    """The slices of time in which it ran and in which it was held, and the most memory that it had."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from strongroom.cli import main\n"
        f"code = main(['backup', {name!r}])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])\n"
        "sys.exit(code)"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], cwd=home, env={**os.environ, **settings}, stdout=subprocess.PIPE, text=True
    )
    ran, held = [], []
    while process.poll() is None:
        began = time.monotonic()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(SLICE)
        ran.append((began, time.monotonic()))
        if process.poll() is None:
            process.send_signal(signal.SIGSTOP)
            began = time.monotonic()
            time.sleep(SLICE)
            held.append((began, time.monotonic()))
            process.send_signal(signal.SIGCONT)
    assert process.returncode == 0
    assert process.stdout is not None
    return ran, held, int(process.stdout.read().splitlines()[-1]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--postgres", default="")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="strongroom-backup-") as folder:
        home = Path(folder)
        settings = {"JWT_SECRET": "x" * 40, "PORT": "0", "DB_PATH": "vault.db", "JWT_ACCESS_EXPIRY": "1d"}
        if options.postgres:
            settings["DATABASE_URL"] = options.postgres
        process, url = serve(home, settings)
        try:
            with httpx2.Client(base_url=url) as http:
                person = http.post("/auth/email/register", json={"email": "a@b.c", "password": "correct horse"}).json()
                token = person["accessToken"]
                http.headers["authorization"] = f"Bearer {token}"
                vault = http.post("/vault", json={"name": "v"}).json()["uid"]
            began = time.monotonic()
            asyncio.run(fill(settings, home, person["user"]["id"], vault, options.mib))
            print(f"filled with {options.mib} MiB in {time.monotonic() - began:.0f} s", flush=True)
            ratios = []
            for turn in range(options.turns):
                load = Load(url, token, vault)
                time.sleep(2)
                ran, held, memory = backup(home, settings, f"{turn}.backup")
                load.end()
                quiet, beside = load.rate(held), load.rate(ran)
                ratios.append(1 - beside / quiet)
                size = (home / f"{turn}.backup").stat().st_size
                took = sum(end - start for start, end in ran)
                print(
                    f"{quiet:,.0f} writes/s alone, {beside:,.0f} beside a backup of {size >> 20} MiB in {took:.1f} s: "
                    f"{ratios[-1]:.1%} slower; slowest write {load.slowest * 1000:.0f} ms; "
                    f"memory {memory / 2**20:.1f} MiB",
                    flush=True,
                )
            print(f"median slowdown {statistics.median(ratios):.1%}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
