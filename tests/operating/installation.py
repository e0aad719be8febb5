"""An installation whose operator types the commands of docs/operating.md."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any, NamedTuple

from strongroom.server.backup_schedule import backup_name
from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.people import one_time_codes
from tests.kit.programs import processes
from tests.kit.programs.command_line import isolated_environment
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until

ADA, PASSWORD = "ada@example.com", "correct horse"
IN_A_CONTAINER = 2  # as `Installation.way`
PAGE = sections(text_of("docs/operating.md"), 2)
STORIES = sections(PAGE["Bad day"], 3)


class Typed(NamedTuple):
    """A command, how it ended and what it said."""

    command: str
    code: int
    said: str


class Installation(Server):
    """A folder where a server runs, and where an operator types commands."""

    way = 0  # the column of the page's table that this is

    def __init__(self, home: Path, engine: str) -> None:
        super().__init__(home)
        where = {"DATABASE_URL": postgres().fresh()} if engine == "postgres" else {"DB_PATH": "data/vault.db"}
        self.settings = {"PORT": str(free_port()), "READY_FREE_BYTES": "1000000", **where}
        self.data, self.backups = home / "data", home / "backups"
        self.named = {"DATA": "./data", "BACKUPS": "./backups"}  # what the page tells to say first

    def write_env(self, **settings: str) -> None:
        """Write settings into .env."""
        with (self.home / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())
        (self.home / ".env").chmod(0o600)

    def type(self, script: str, faults: int = 0, **words: str) -> str:
        """Type the commands of a block, one after the other; what they print.

        Each ends well, but so often the doctor finds a fault.
        """
        done = []
        for line in script.strip().splitlines():
            command = line
            for word, meant in words.items():
                command = re.sub(rf"\b{word}\b", meant, command)
            done.append(Typed(line, *self._typed(command)))
        found = [one for one in done if one.command == "strongroom doctor" and one.code == 1]
        assert [one for one in done if one.code and one not in found] == []
        assert len(found) == faults, found
        return "".join(one.said for one in done)

    def _typed(self, command: str) -> tuple[int, str]:
        match = re.fullmatch(r"(?:systemctl|docker compose) (start|stop|reload|kill --signal HUP) strongroom", command)
        if match is None:
            done = self.shell(command)
            return done.returncode, done.stdout + done.stderr
        if match[1] == "start":
            self.start()
        elif match[1] == "stop":
            assert self.end() == 0
        else:
            before = self.log().count("read anew")
            self.process.send_signal(signal.SIGHUP)
            until(lambda: self.log().count("read anew") > before, "a line in the log about it")
        return 0, ""

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line in a shell, where the page says that it is typed."""
        return processes.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=isolated_environment(self.home, **self.settings, **self.named),
            input=f"{PASSWORD}\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def prepare(self) -> None:
        """Have settings with a secret, and no server yet."""
        self.write_env(JWT_SECRET=uuid.uuid4().hex)

    def install(self) -> None:
        """Do what the first day says for this way, up to a server that runs."""
        self.type(blocks(PAGE["First day"])[0])

    def take_over(self, old: Installation) -> None:
        """Bring the settings of a machine that is gone."""
        shutil.copy(old.home / ".env", self.home / ".env")

    def receive(self, path: Path) -> str:
        """Bring a file that was kept elsewhere; its name in the guide's commands."""
        shutil.copy(path, self.home / "vault.backup")
        return "vault.backup"

    def login(self, password: str = PASSWORD, email: str = ADA) -> Any:
        """Try to log in."""
        return self.connect().post("/auth/email/login", json={"email": email, "password": password})

    def settle(self) -> str:
        """Have an account with a vault, and a backup of it; the token."""
        self.prepare()
        self.start()
        self.type(f"strongroom users add {ADA}")
        token: str = self.login().json()["accessToken"]
        assert self.connect(token).post("/vault", json={"name": "first"}).status_code == 201
        self.type('mkdir -p -m 0700 "$BACKUPS"')
        self.type(f'strongroom backup "$BACKUPS/{backup_name(time.time_ns() // 1_000_000)}"')
        self.write_env(BACKUP_DIR=self.named["BACKUPS"])
        return token

    def vaults(self, token: str) -> list[str]:
        """The names of the vaults that a token sees."""
        return [vault["name"] for vault in self.connect(token).get("/vault").json()["vaults"]]


def blocks(text: str) -> list[str]:
    """What is to be typed."""
    return [body for language, body in fences(text) if language == "sh"]


def invitation_in(printed: str) -> str:
    """The code that `strongroom invite create` printed."""
    [code] = re.findall(r"^SRI-[0-9A-Z-]+$", printed, re.MULTILINE)
    return str(code)


def enrol(installation: Installation, token: str) -> str:
    """Give somebody one-time codes; their secret."""
    http = installation.connect(token)
    secret: str = http.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}).json()["secret"]
    first = {"code": one_time_codes.code(secret, time.time_ns() // 1_000_000)}
    assert http.post("/auth/second-factor/totp/confirm", json=first).status_code == 201
    return secret
