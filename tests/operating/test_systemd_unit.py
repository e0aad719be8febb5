"""The service under the unit that `strongroom systemd` prints: its system-call filter and its file systems."""

from __future__ import annotations

import os
import resource
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.network.ports import free_port
from tests.kit.programs import processes, sandbox
from tests.kit.programs.systemd_manager import manager
from tests.kit.project import ROOT
from tests.kit.waiting import until

PASSWORD = "correct horse"
_reason = sandbox.why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


def printed() -> str:
    done = processes.run([sys.executable, "-m", "strongroom", "systemd"], capture_output=True, text=True, check=True)
    return done.stdout


class Machine:
    """A machine on which the unit is installed: its unit, its folders, and commands under it."""

    def __init__(self, home: Path, **settings: str) -> None:
        self.state, self.config, self.unit = home / "state", home / "config", home / "strongroom.service"
        text = printed()
        if os.geteuid() != 0:  # without a namespace the folders lie elsewhere
            text = text.replace(str(sandbox.STATE), str(self.state)).replace(str(sandbox.CONFIG), str(self.config))
        self.folder = sandbox.STATE if os.geteuid() == 0 else self.state
        self.unit.write_text(text)
        self.state.mkdir()
        self.config.mkdir()
        self.port = free_port()
        secret = "a secret of the unit's tests, 32 bytes"
        (self.config / "jwt-secret").write_text(secret + "\n")
        given = {"JWT_SECRET": secret, "DB_PATH": f"{self.folder}/vault.db", "PORT": str(self.port), **settings}
        (self.config / "settings").write_text("".join(f"{name}={value}\n" for name, value in given.items()))
        self.err = home / "stderr"
        self.http = httpx2.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30, trust_env=False)

    def _command(self, *command: str) -> list[str]:
        where = map(str, (self.unit, self.state, self.config))
        return [sys.executable, "-m", "tests.kit.programs.sandbox", *where, *command]

    def run(self, *command: str, said: str = "") -> subprocess.CompletedProcess[str]:
        """A command of strongroom under the unit."""
        program = shlex.split(sandbox.service(self.unit.read_text())["ExecStart"][0])
        start = program[: program.index("serve")]
        return subprocess.run(
            self._command(*start, *command), cwd=ROOT, input=said, capture_output=True, text=True, check=False
        )

    @contextmanager
    def serving(self, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
        """The unit's own process, until it is told to stop."""
        start = shlex.split(sandbox.service(self.unit.read_text())["ExecStart"][0])
        with self.err.open("ab") as err:
            process = subprocess.Popen(
                self._command(*start), cwd=ROOT, env=os.environ | environment, stdout=err, stderr=err
            )
        try:
            until(lambda: self._answers(process), "the service to answer")
            yield process
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0, self.err.read_text()
        finally:
            self.http.close()
            self.http = httpx2.Client(base_url=self.http.base_url, timeout=30, trust_env=False)
            process.kill()
            process.wait(30)

    def _answers(self, process: subprocess.Popen[bytes]) -> bool:
        assert process.poll() is None, self.err.read_text()
        try:
            return self.http.get("/health").status_code == 200
        except httpx2.TransportError:
            return False

    def register(self, email: str) -> dict[str, Any]:
        made = self.http.post("/auth/email/register", json={"email": email, "password": PASSWORD})
        assert made.status_code == 201, made.text + self.err.read_text()
        found: dict[str, Any] = made.json()
        return found


def test_the_sandbox_plays_every_line_of_the_unit() -> None:
    """A line that is new in the unit is played here, or somebody has decided that it need not be."""
    assert sandbox.service(printed()).keys() <= sandbox.PLAYED | sandbox.UNPLAYED


def test_the_sandbox_refuses_what_the_unit_refuses(tmp_path: Path) -> None:
    """The tests below would prove nothing in a sandbox that lets everything pass."""
    machine = Machine(tmp_path)
    program = """
import errno, mmap, os, socket, resource
def expect_error(work, *codes):
    try: work()
    except OSError as error: assert error.errno in codes, (work, error)
    else: raise SystemExit(f"{work} was not refused")
expect_error(lambda: os.sched_setaffinity(0, {0}), errno.EPERM)
expect_error(lambda: os.chown(".", os.getuid(), os.getgid()), errno.EPERM)
expect_error(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW), errno.EAFNOSUPPORT)
expect_error(lambda: os.mkdir("d", 0o4700) or os.chmod(".", 0o4700), errno.EPERM)
expect_error(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC), errno.EPERM)
assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 8192
if ROOT:
    expect_error(lambda: open("/usr/new", "w"), errno.EROFS, errno.EACCES)
    expect_error(lambda: open("/etc/new", "w"), errno.EROFS, errno.EACCES)
    assert not os.path.exists("/proc/meminfo") and os.path.exists("/proc/self/statm")
    assert os.getuid() == 64111 and not os.path.exists("/dev/mem")
    open("/tmp/t", "w").close(); open("/run/strongroom/t", "w").close()
open("t", "w").close()
print("all of it")
""".replace("ROOT", str(os.geteuid() == 0))
    done = subprocess.run(
        machine._command(sys.executable, "-c", program), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stdout == "all of it\n", done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_under_the_unit(tmp_path: Path, workers: str) -> None:
    """People register and log in, backups are made, secrets reloaded; every command of an operator works too."""
    machine = Machine(
        tmp_path,
        WORKERS=workers,
        BACKUP_DIR=f"{sandbox.STATE if os.geteuid() == 0 else tmp_path / 'state'}/backups",
        BACKUP_EVERY="1h",
        METRICS_TOKEN="a-token-for-the-figures",
    )
    backups = machine.state / "backups"
    name = f"strongroom-unit-{os.getpid()}-{workers}"
    with (
        manager("\0" + name) as systemd,
        machine.serving(NOTIFY_SOCKET=f"@{name}", WATCHDOG_USEC="4000000") as process,
    ):
        until(lambda: systemd.has_received("READY=1") and systemd.has_received("WATCHDOG=1"), "what systemd is told")
        made = machine.register("ada@example.com")
        login = machine.http.post("/auth/email/login", json={"email": "ada@example.com", "password": PASSWORD})
        assert login.status_code == 200, login.text
        ready = machine.http.get("/ready")
        assert ready.status_code == 200, ready.text
        head = {"authorization": f"Bearer {made['accessToken']}"}
        assert machine.http.post("/vault", json={"name": "v"}, headers=head).status_code == 201
        until(lambda: list(backups.glob("*.backup")), "the scheduled backup: " + machine.err.read_text())
        by_hand = machine.run("backup", f"{machine.folder}/by-hand.backup")
        assert by_hand.returncode == 0, by_hand.stderr
        process.send_signal(signal.SIGHUP)
        until(lambda: "read anew" in machine.err.read_text(), "the reload")
        added = machine.run("users", "add", "grace@example.com", said=PASSWORD + "\n")
        assert added.returncode == 0, added.stderr
        for command in (("doctor",), ("users", "list"), ("stats",), ("vacuum", "--yes"), ("ready",), ("config",)):
            done = machine.run(*command)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        figures = machine.http.get("/metrics", headers={"authorization": "Bearer a-token-for-the-figures"})
        assert figures.status_code == 200
    back = machine.run("restore", f"{machine.folder}/by-hand.backup")
    assert back.returncode == 0, back.stderr
    checked = machine.run("doctor")
    assert checked.returncode == 0, checked.stdout
    with machine.serving():
        assert machine.register("new@example.com")
    assert '"level":"error"' not in machine.err.read_text()
    assert '"level":"warning"' not in machine.err.read_text(), machine.err.read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="a limit of processes binds only another user")
def test_a_server_that_cannot_hash_passwords_is_not_ready(tmp_path: Path) -> None:
    """No thread can be begun for them: /ready says which check fails, and is good again when one can."""
    machine = Machine(tmp_path)
    with machine.serving() as process:
        hard = resource.getrlimit(resource.RLIMIT_NPROC)[1]  # the server has the same

        def limit(threads: int) -> None:
            set_it = ["prlimit", f"--pid={process.pid}", f"--nproc={'unlimited' if threads < 0 else threads}:"]
            subprocess.run(set_it, user=sandbox.USER_ID, group=sandbox.USER_ID, check=True)

        limit(0)
        ready = machine.http.get("/ready")
        assert (ready.status_code, ready.json()["checks"]["passwords"]) == (503, "failed")
        assert ready.json()["checks"]["database"] == "ok"
        until(lambda: "RuntimeError" in machine.err.read_text(), "a line in the log")
        limit(hard)
        until(lambda: machine.http.get("/ready").status_code == 200, "readiness")
        assert machine.register("ada@example.com")


def test_a_lower_priority_is_a_wish(tmp_path: Path) -> None:
    """A filter that refuses it, as one of a container may, costs a line in the log and nothing else."""
    machine = Machine(tmp_path, BACKUP_DIR="/var/lib/strongroom/backups")
    text = machine.unit.read_text()
    assert "\nSystemCallFilter=setpriority\n" in text
    machine.unit.write_text(text.replace("SystemCallFilter=setpriority\n", ""))
    with machine.serving():
        assert machine.register("ada@example.com")
        until(lambda: list(machine.state.glob("backups/*.backup")), "the scheduled backup")
        said = machine.err.read_text()
        assert said.count("keep their normal priority") == 1
    assert '"level":"error"' not in said


def test_logins_of_many_at_once_under_the_unit(tmp_path: Path) -> None:
    """Every thread that hashes may be made, whatever the filter says of clone3 and priorities."""
    machine = Machine(tmp_path)
    with machine.serving():
        machine.register("ada@example.com")
        found: list[int] = []

        def login() -> None:
            with httpx2.Client(base_url=machine.http.base_url, timeout=30, trust_env=False) as http:
                body = {"email": "ada@example.com", "password": PASSWORD}
                found.append(http.post("/auth/email/login", json=body).status_code)

        threads = [threading.Thread(target=login) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [200] * 6
