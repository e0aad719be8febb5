"""What a backup of about 1 GiB costs those who write meanwhile, and how much memory it takes.

    python -m bench.backup [--mib 1024] [--postgres URL] [--seconds 10]

Writers go on over HTTP against a real server; their rate is taken without and with a backup beside them, in turns.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx2

WRITERS = 16
DOCUMENT = 16 * 1024


def serve(home: Path, settings: dict[str, str]) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "strongroom", "serve"],
        cwd=home,
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=(home / "log").open("w"),
        text=True,
    )
    for line in process.stdout:
        if match := re.match(r"strongroom listens on (\S+)", line):
            return process, match[1]
    raise SystemExit((home / "log").read_text())


async def fill(url: str, token: str, vault: str, mib: int) -> None:
    """Through the front door, by several at once."""
    data = "A" * DOCUMENT
    left = iter(range(mib * 1024 * 1024 // DOCUMENT))

    async def one(http: httpx2.AsyncClient) -> None:
        for _ in left:
            answer = await http.post(f"/vaults/{vault}/documents", json={"collection": "c", "data": data})
            assert answer.status_code == 201, answer.text

    async with httpx2.AsyncClient(base_url=url, headers={"authorization": f"Bearer {token}"}, timeout=60) as http:
        await asyncio.gather(*(one(http) for _ in range(32)))


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

    def rate(self, since: float, until: float) -> float:
        return sum(since <= moment < until for moment in self.done) / (until - since)

    def end(self) -> None:
        self._stop.set()
        self._thread.join()


def backup(home: Path, settings: dict[str, str], name: str) -> tuple[float, float, int]:
    """When it began and ended, and the most memory that it had."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from strongroom.cli import main\n"
        f"code = main(['backup', {name!r}])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])\n"
        "sys.exit(code)"
    )
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=home, env={**os.environ, **settings}, capture_output=True, text=True, check=True
    )
    return began, time.monotonic(), int(done.stdout.splitlines()[-1]) * 1024


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
            asyncio.run(fill(url, token, vault, options.mib))
            print(f"filled with {options.mib} MiB in {time.monotonic() - began:.0f} s", flush=True)
            ratios = []
            for turn in range(options.turns):
                load = Load(url, token, vault)
                time.sleep(1)
                before = time.monotonic()
                time.sleep(8)
                start, end, memory = backup(home, settings, f"{turn}.backup")
                after = time.monotonic()
                time.sleep(8)
                load.end()
                quiet = (load.rate(before, start) + load.rate(after, after + 7)) / 2
                beside = load.rate(start, end)
                ratios.append(1 - beside / quiet)
                size = (home / f"{turn}.backup").stat().st_size
                print(
                    f"{quiet:,.0f} writes/s alone, {beside:,.0f} beside a backup of {size >> 20} MiB in {end - start:.1f} s: "
                    f"{ratios[-1]:.1%} slower; slowest write {load.slowest * 1000:.0f} ms; memory {memory / 2**20:.1f} MiB",
                    flush=True,
                )
            print(f"median slowdown {statistics.median(ratios):.1%}")
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    main()
