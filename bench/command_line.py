"""How long `strongroom get` takes from the shell, agent warm and cold, beside `pass` where it is installed.

    .venv/bin/python -m bench.command_line [--calls 50] [--items 1000]

Warm: the agent runs and is unlocked. Cold: there is no agent; the time is that of `unlock`, with the password on
standard input, and of the first `get`. Both start Python each time, as a person's shell does.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tests.kit.servers.process import Server

PASSWORD = "correct horse battery staple"
PROGRAM = Path(sys.executable).with_name("strongroom")


def timed(words: Sequence[str | Path], env: Mapping[str, str], given: str = "") -> tuple[float, float]:
    """Milliseconds of a command, and those of them in which it had a processor: these depend less on the load."""
    begin, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, env=env, input=given, capture_output=True, text=True, check=True)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall * 1000, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def median(times: Iterable[tuple[float, float]]) -> str:
    walls, processors = (sorted(one) for one in zip(*times, strict=True))
    most = walls[int(len(walls) * 0.95)]
    told = f"{statistics.median(walls):6.1f} ms (best {walls[0]:.1f}, 95 % below {most:.1f})"
    return f"{told}, on the processor {statistics.median(processors):.1f} ms"


def strongroom(home: Path, server: Server, calls: int, items: int) -> None:
    env = dict(os.environ, STRONGROOM_HOME=str(home / "sr"))
    url = f"http://127.0.0.1:{server.port}"
    timed(
        [PROGRAM, "login", "bench@example.com", "--server", url, "--register", "--password", "-"], env, PASSWORD + "\n"
    )
    timed([PROGRAM, "add", "login", "GitHub", "password=-"], env, "hunter2")
    os.environ["STRONGROOM_HOME"] = env["STRONGROOM_HOME"]
    from strongroom.agent.connection import ask

    made = [{"type": "login", "title": f"Site {number}", "password": "x" * 20} for number in range(items)]
    for at in range(0, items, 500):
        ask("add_many", items=made[at : at + 500])
    timed([PROGRAM, "get", "GitHub"], env)
    warm = [timed([PROGRAM, "get", "GitHub"], env) for _ in range(calls)]
    print(f"strongroom get, warm, {items:,} items:   {median(warm)}")
    cold = []
    for _ in range(max(3, calls // 10)):
        timed([PROGRAM, "lock"], env)
        unlocked = timed([PROGRAM, "unlock", "--password", "-"], env, PASSWORD + "\n")
        got = timed([PROGRAM, "get", "GitHub"], env)
        cold.append((unlocked[0] + got[0], unlocked[1] + got[1]))
    print(f"strongroom unlock + get, cold:       {median(cold)}")
    timed([PROGRAM, "lock"], env)


def pass_(home: Path, calls: int) -> None:
    env = dict(os.environ, GNUPGHOME=str(home / "gnupg"), PASSWORD_STORE_DIR=str(home / "store"))
    (home / "gnupg").mkdir(mode=0o700)
    key = [
        "gpg",
        "--batch",
        "--passphrase",
        "",
        "--quick-generate-key",
        "bench@example.com",
        "default",
        "default",
        "never",
    ]
    timed(key, env)
    timed(["pass", "init", "bench@example.com"], env)
    timed(["pass", "insert", "--multiline", "GitHub"], env, "hunter2\n")
    warm = [timed(["pass", "show", "GitHub"], env) for _ in range(calls)]
    print(f"pass show, key without a passphrase: {median(warm)}")
    subprocess.run(["gpgconf", "--kill", "gpg-agent"], env=env, check=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--items", type=int, default=1000)
    options = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="strongroom-bench-"))
    server = Server(home / "server").start()
    try:
        print(f"load at the begin: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; Python {sys.version.split()[0]}")
        bare = [timed([sys.executable, "-c", "pass"], dict(os.environ)) for _ in range(options.calls)]
        print(f"python -c pass:                      {median(bare)}")
        strongroom(home, server, options.calls, options.items)
        if shutil.which("pass"):
            pass_(home, options.calls)
        print(f"load at the end: {os.getloadavg()[0]:.1f}")
    finally:
        server.end()
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
