"""What every peer is: a server that starts, is filled, says each request in its own words, and stops."""

from __future__ import annotations

import os
import re
import selectors
import shutil
import signal
import socket
import subprocess
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, ClassVar

from bench import proc
from bench.dataset import Dataset
from bench.peer_requests import PeerRequest, Reply, send

BENCH = Path(__file__).resolve().parent.parent
WORK = BENCH / ".work"
PROJECT = BENCH.parent
PROJECT_BIN = PROJECT / ".venv" / "bin"
BENCH_BIN = WORK / "venv" / "bin"
SECRET = "a secret of the benchmark, which guards nothing at all"

_PATIENCE = 90  # seconds for a server to start


class NotHere(Exception):  # noqa: N818 - said to the one who runs the benchmark
    """This peer cannot run here; the message says why, in one sentence."""


class Peer(ABC):
    """One server under test. `cannot` names scenarios that it has no equivalent for, and why."""

    name: ClassVar[str]
    title: ClassVar[str]
    cannot: ClassVar[dict[str, str]] = {}
    marker_version: ClassVar[tuple[bytes, bytes]]  # around the version in an answer to an update
    marker_cursor: ClassVar[tuple[bytes, bytes]]  # around the cursor in an answer to `since`
    marker_page: ClassVar[tuple[bytes, bytes]]  # around the cursor in a page, after its last document
    first_cursor: ClassVar[str] = "0"  # before everything
    stale_status: ClassVar[int] = 409  # what an update with an old version gets

    def __init__(self) -> None:
        self.folder = WORK / "run" / self.name
        self.host = ""
        self.processes: list[subprocess.Popen[str]] = []
        self.data: Dataset
        self.writers: list[tuple[str, str]] = []  # of many accounts: the Authorization header, and a vault

    # Life

    @abstractmethod
    def launch(self) -> None:
        """Start the server on what lies in `folder`, and set `host`."""

    @abstractmethod
    def fill(self, data: Dataset) -> None:
        """Make the accounts and the vaults, and put the documents in. The server runs before and after."""

    @property
    def version(self) -> str:
        """Which release this is."""
        return ""

    def start(self, data: Dataset) -> None:
        """Start on an empty folder and fill it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.launch()
        self.fill(data)
        self.data = data

    def halt(self) -> None:
        """Stop the server's processes in order."""
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)
            if process.stdout is not None:
                process.stdout.close()
        self.processes.clear()

    def stop(self) -> None:
        """Stop, and leave nothing behind."""
        self.halt()
        shutil.rmtree(self.folder, ignore_errors=True)

    def pids(self) -> list[int]:
        """All processes that work for this server."""
        return proc.tree([process.pid for process in self.processes])

    def spawn(self, command: list[str | Path], environment: dict[str, str], says: str | None) -> str:
        """Start a process whose first words hold this pattern; its first group is returned. Its log goes nowhere."""
        surroundings: dict[str, Any] = {
            "env": {"PATH": os.environ["PATH"], "HOME": str(self.folder), **environment},
            "cwd": self.folder,
        }
        process = subprocess.Popen(
            [str(part) for part in command],
            **surroundings,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdout is not None
        said = "" if says is None else _wait_for(process, process.stdout, re.compile(says), _PATIENCE)
        if said is None:
            process.kill()
            process.wait(5)
            process.stdout.close()
            raise NotHere(f"It did not start: {_last_words(process, surroundings)}")
        self.processes.append(process)
        return said

    def await_answer(self, path: str) -> None:
        """Wait until the server answers at all."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            try:
                send(self.host, PeerRequest("GET", path))
            except OSError:
                time.sleep(0.1)
            else:
                return
        raise NotHere(f"It did not answer within {_PATIENCE} s.")

    # The requests, in the peer's own words

    @abstractmethod
    def get(self, vault: str, uid: str) -> PeerRequest:
        """One document."""

    @abstractmethod
    def create(self, vault: str, data: str) -> PeerRequest:
        """A new document."""

    @abstractmethod
    def update(self, vault: str, uid: str, data: str) -> PeerRequest:
        """Other ciphertext for a document; VALUE is the version that the client saw."""

    @abstractmethod
    def list_(self, vault: str) -> PeerRequest:
        """All documents of a vault."""

    @abstractmethod
    def since(self, vault: str) -> PeerRequest:
        """What changed after the cursor VALUE."""

    @abstractmethod
    def page(self, vault: str) -> PeerRequest:
        """The first documents of a vault after the cursor VALUE, as many as a page holds."""

    def create_as(self, number: int, data: str) -> PeerRequest:
        """A new document of another account, in its own vault."""
        bearer, vault = self.writers[number]
        ask = self.create(vault, data)
        return replace(ask, headers={**ask.headers, "Authorization": bearer})

    @abstractmethod
    def login(self, number: int) -> PeerRequest:
        """Account `number` logs in."""

    # What the answers mean

    @abstractmethod
    def document(self, reply: Reply) -> tuple[str, str]:
        """A document's id and its ciphertext."""

    @abstractmethod
    def documents(self, reply: Reply) -> list[tuple[str, str]]:
        """The ids and ciphertexts of a list, oldest change first."""

    def next_cursor(self, reply: Reply) -> str:
        """The cursor after a page, cut out of it as the load does it."""
        before, after = self.marker_page
        return reply.raw.rpartition(before)[2].partition(after)[0].decode().replace(" ", "%20")

    @abstractmethod
    def first_version(self, vault: str, uid: str) -> str:
        """The version of a seeded document, as `update` takes it."""

    @abstractmethod
    def works(self, reply: Reply) -> bool:
        """Whether what a login gave opens the door."""

    def strangers(self, ask: PeerRequest) -> list[PeerRequest]:
        """The same request without a bearer, and with another account's: both must be refused."""
        bare = {name: text for name, text in ask.headers.items() if name != "Authorization"}
        return [
            PeerRequest(ask.method, ask.path, ask.body, headers, ask.status)
            for headers in (bare, {**bare, "Authorization": self.other})
        ]

    def refuses(self, reply: Reply) -> bool:
        """Whether this answer shows and does nothing."""
        return reply.status in {401, 403, 404}

    other: str = ""  # the Authorization header of an account that owns nothing


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _last_words(process: subprocess.Popen[str], surroundings: dict[str, Any]) -> str:
    """What a server that refuses to start says about it: it is started once more, with an ear to its log."""
    try:
        again = subprocess.run(process.args, capture_output=True, text=True, timeout=5, check=False, **surroundings)
    except subprocess.TimeoutExpired:
        return "it says nothing."
    lines: list[str] = [line.strip() for line in again.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else "it says nothing."


def _wait_for(process: subprocess.Popen[str], out: IO[str], pattern: re.Pattern[str], seconds: float) -> str | None:
    """What the pattern finds in the first words of a process, or None if it ends or says nothing."""
    until = time.monotonic() + seconds
    heard = ""
    os.set_blocking(out.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(out, selectors.EVENT_READ)
        while time.monotonic() < until:
            selector.select(0.2)
            try:
                heard += os.read(out.fileno(), 65536).decode()
            except BlockingIOError:
                continue
            finally:
                found = pattern.search(heard)
            if found:
                return found[1]
            if process.poll() is not None:
                return None
    return None
