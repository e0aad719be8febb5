"""A service whose server was killed, its files, and ways to damage them."""

from __future__ import annotations

import base64
import random
import shutil
import signal
import subprocess
import uuid
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET

FRAME = 24 + 4096  # bytes of one frame of the write-ahead log: its header and a page


class Service:
    """A server on a SQLite file, with one account, one vault, and every document that was acknowledged."""

    def __init__(self, home: Path, **settings: str) -> None:
        self._settings = settings
        self.server = Server(home, JWT_ACCESS_EXPIRY="1d", RATE_LIMIT="0", **settings)
        self.server.settings.pop("DATABASE_URL", None)
        self.database = home / "vault.db"
        self.log = home / "vault.db-wal"
        self.acknowledged: dict[str, str] = {}
        self.sent: dict[str, str] = {}  # with those that were not answered
        self.vault = self.token = ""

    def copy(self, home: Path) -> Service:
        """Another one with the files of this one, which does not run."""
        other = Service(home, **self._settings)
        for path in self.server.home.glob("vault.db*"):
            shutil.copy(path, home)
        other.vault, other.token = self.vault, self.token
        other.acknowledged, other.sent = dict(self.acknowledged), dict(self.sent)
        return other

    def start(self) -> None:
        """Start it; the first time, with an account and a vault."""
        self.server.start()
        if not self.vault:
            with self.server.connect() as http:
                person = {"email": "ada@example.com", "password": "correct horse"}
                self.token = http.post("/auth/email/register", json=person).json()["accessToken"]
                made = http.post("/vault", json={"name": "v"}, headers=self.bearer)
                self.vault = made.json()["uid"]

    @property
    def bearer(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.token}"}

    def write(self, count: int, chance: random.Random, size: int = 300) -> None:
        """Create documents, one request each; what was answered with 201 is acknowledged."""
        with self.server.connect() as http:
            for _ in range(count):
                uid = str(uuid.UUID(int=chance.getrandbits(128), version=4))
                data = base64.b64encode(chance.randbytes(chance.randint(size // 2, size * 2))).decode()
                self.sent[uid] = data
                body = {"uid": uid, "collection": "c", "data": data}
                made = http.post(f"/vaults/{self.vault}/documents", json=body, headers=self.bearer)
                assert made.status_code == 201, made.text
                self.acknowledged[uid] = data

    def kill(self) -> None:
        self.server.end(signal.SIGKILL)

    def stored(self) -> dict[str, str]:
        """What the running server says that it holds."""
        with self.server.connect() as http:
            answer = http.get(f"/vaults/{self.vault}/documents", headers=self.bearer)
            assert answer.status_code == 200, answer.text
            return {one["uid"]: one["data"] for one in answer.json()["documents"]}

    def epoch(self) -> str:
        with self.server.connect() as http:
            epoch: str = http.get("/health").json()["epoch"]
            return epoch

    def command(self, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
        return command(self.server.home, *arguments, **more)


class Doctor(NamedTuple):
    """What the doctor said: exit code, and the worst verdict and sentence of each check."""

    code: int
    findings: dict[str, tuple[str, str]]


def command(home: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run `strongroom` with these arguments against the database of this folder."""
    env = clean_environment(DB_PATH=str(home / "vault.db"), JWT_SECRET=SECRET)
    return processes.run(
        [*STRONGROOM, *arguments],
        cwd=home,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
        **more,
    )


def doctor(home: Path, **more: Any) -> Doctor:
    ended = command(home, "doctor", "--json", **more)
    assert ended.returncode in {0, 1}, ended.stderr
    found: dict[str, tuple[str, str]] = {}
    for one in msgspec.json.decode(ended.stdout)["findings"]:
        if found.get(one["check"], ("ok", ""))[0] != "fault":
            found[one["check"]] = one["verdict"], one["says"]
    return Doctor(ended.returncode, found)


def flip(path: Path, offset: int, count: int = 1) -> None:
    """Change bytes of a file in place."""
    with path.open("rb+") as file:
        file.seek(offset)
        old = file.read(count)
        file.seek(offset)
        file.write(bytes(byte ^ 0x5A for byte in old))


def frames(log: Path) -> int:
    """How many frames a write-ahead log has room for."""
    return (log.stat().st_size - 32) // FRAME
