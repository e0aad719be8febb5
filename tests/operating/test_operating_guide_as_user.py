"""The first, the ordinary and the bad day of docs/operating.md, typed as the unit's user and as in the container.

The stories are in guide_stories.py; tests/faults/test_operating_guide.py plays them without a unit. Here the settings
are where the unit and the image have them, and the user has no privileges, stands in a folder of another user, and has
no settings in the environment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

import pytest
import yaml

from strongroom.cli.configuration import SYSTEM_FILE
from tests.kit.documents import text_of
from tests.kit.network.ports import free_port
from tests.kit.programs.mount_namespace import UID, Machine, needs_another_user
from tests.kit.project import ROOT
from tests.kit.servers.postgres import postgres
from tests.operating import guide_stories
from tests.operating.guide_stories import Begin
from tests.operating.installation import PASSWORD, Installation

pytestmark = needs_another_user
PATH = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
TOGETHER = {"READY_FREE_BYTES": "1000000", "PUBLIC_URL": "https://vault.example.com"}


def _reached(url: str) -> tuple[str, list[str]]:
    """An address of PostgreSQL for whoever may not enter the folder of its socket, and the mounts that it takes."""
    [folder] = parse_qs(urlsplit(url).query)["host"]
    [socket] = [path for path in Path(folder).iterdir() if path.is_socket()]
    mount = (
        f"mkdir /run/postgres && touch /run/postgres/{socket.name} && mount --bind {socket} /run/postgres/{socket.name}"
    )
    return url.replace(quote(folder, safe=""), "/run/postgres").replace(folder, "/run/postgres"), [mount]


class IsolatedInstallation(Installation):
    """An installation in a namespace of its own, where an unprivileged user types."""

    user: str | int = UID

    def __init__(self, home: Path, engine: str) -> None:
        super().__init__(home, "sqlite")
        self.url, self._socket = _reached(postgres().fresh()) if engine == "postgres" else ("", [])
        self.environment: dict[str, str] = {}  # what is around whoever types
        self.elsewhere = home / "elsewhere"
        self.elsewhere.mkdir(mode=0o700)

    @cached_property
    def machine(self) -> Machine:
        """Made when it is first needed: what is mounted below its folders by then is seen in it."""
        return Machine("mount -t tmpfs -o mode=0755 tmpfs /run", *self._socket, *self.mounts(), user=self.user)

    def mounts(self) -> list[str]:
        raise NotImplementedError

    def abandon(self) -> None:
        super().abandon()
        if "machine" in self.__dict__:
            self.machine.close()

    def _run(self, command: str, *, root: bool = False) -> subprocess.CompletedProcess[str]:
        env = {"PATH": PATH, **self.environment, **self.named}
        shell = ["bash", "-c", command]
        return self.machine.run(shell, self.cwd, env, root=root, given=f"{PASSWORD}\n")

    cwd: Path | str

    def _started(self, command: list[str], cwd: str, env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.home / "stdout").open("wb") as out, (self.home / "stderr").open("wb") as err:
            return subprocess.Popen(
                self.machine.command(command, cwd),
                env={"PATH": PATH, **env},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def _give(self, path: Path, to: Path) -> None:
        """Copy a file, and give it to the owner of the folder that it comes into."""
        shutil.copy(path, to)
        owner = to.parent.stat()
        os.chown(to, owner.st_uid, owner.st_gid)


class UnitInstallation(IsolatedInstallation):
    """A machine with the unit that `strongroom systemd` prints, installed as its first lines say."""

    way = 1
    user = "strongroom"

    def __init__(self, home: Path, engine: str) -> None:
        super().__init__(home, engine)
        (home / "var-lib").mkdir(mode=0o755)
        self.data = home / "var-lib" / "strongroom"
        self.backups = self.data / "backups"
        self.named = {"DATA": "/var/lib/strongroom", "BACKUPS": "/var/lib/strongroom/backups"}
        self.cwd = self.elsewhere
        self.unit = ""

    def mounts(self) -> list[str]:
        etc = self.home / "etc"
        return [
            f"cp -a /etc {etc} && rm -rf {etc}/strongroom && mkdir -p {etc}/systemd/system && mount --rbind {etc} /etc",
            f"mount --rbind {self.home / 'var-lib'} /var/lib",
        ]

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """What is written to /etc is written by root; all else is typed by the service's user, who is told nothing."""
        root = ".env" in command or "/etc/" in command
        return self._run(command.replace(".env", SYSTEM_FILE), root=root)

    def prepare(self, *, whole: bool = False) -> None:
        """Type the first lines of the unit, until it is to be started."""
        self.unit = self._run("strongroom systemd", root=True).stdout
        lines = re.findall(r"^#   (.*)$", self.unit, re.MULTILINE)
        starts = next(at for at, line in enumerate(lines) if "systemctl" in line)
        for line in lines[:starts]:
            done = self._run(line, root=True)
            assert done.returncode == 0, (line, done.stderr)
        self.after = lines[starts + 1 :]
        if not whole:  # the stories say for themselves when backups begin
            assert self._run(f"sed -i /^BACKUP_DIR/d {SYSTEM_FILE}", root=True).returncode == 0
        self.write_env(PORT=str(free_port()), **TOGETHER, **({"DATABASE_URL": self.url} if self.url else {}))
        state = "install -d -m 0700 -o strongroom -g strongroom /var/lib/strongroom"
        assert self._run(state, root=True).returncode == 0  # which systemd does: StateDirectory=

    def install(self) -> None:
        """All of the first lines."""
        self.prepare(whole=True)
        self.start()
        for line in self.after:
            assert line.startswith("sudo -u strongroom strongroom ")
            assert self._run(line.removeprefix("sudo -u strongroom ")).returncode == 0, line

    def write_env(self, **settings: str) -> None:
        """Write settings into the unit's file."""
        with (self.home / "etc" / "strongroom" / "settings").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())

    def launched(self, *options: str) -> subprocess.Popen[bytes]:
        """Start what the unit starts, as it says."""
        told = dict(re.findall(r"^(ExecStart|WorkingDirectory|User)=(.*)$", self.unit, re.MULTILINE))
        assert told["User"] == self.user
        environment = dict(re.findall(r"^Environment=([A-Z_]+)=(.*)$", self.unit, re.MULTILINE))
        return self._started([*told["ExecStart"].split(), *options], told["WorkingDirectory"], environment)

    def take_over(self, old: Installation) -> None:
        """Bring the secret."""
        assert isinstance(old, UnitInstallation)
        self.prepare()
        name = "etc/strongroom/jwt-secret"
        shutil.copyfile(old.home / name, self.home / name)

    def receive(self, path: Path) -> str:
        """Into the service's own folder."""
        self._give(path, self.data / "vault.backup")
        return "/var/lib/strongroom/vault.backup"


class ContainerInstallation(IsolatedInstallation):
    """The image's user, its variables and those of the compose file; nothing but the volume can be written to."""

    way = 2

    def __init__(self, home: Path, engine: str) -> None:
        super().__init__(home, engine)
        self.data = home / "volume"
        self.backups = self.data / "backups"
        self.named = {"DATA": "/mnt", "BACKUPS": "/mnt/backups"}
        self.cwd = "/mnt"  # instead of /data, which is WORKDIR
        image = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
        [given] = re.findall(r"^ENV (.*)$", image, re.MULTILINE)
        assert re.search(r"^WORKDIR /data$", image, re.MULTILINE)
        name = "compose.postgres.yaml" if self.url else "compose.yaml"
        composed = yaml.safe_load((ROOT / "deploy" / name).read_text())["services"]["strongroom"]
        told = dict(part.split("=", 1) for part in given.split() if not part.startswith("PATH="))
        told |= {variable: str(value) for variable, value in composed["environment"].items()}
        self.environment = {variable: re.sub("^/data", "/mnt", value) for variable, value in told.items()}
        self.environment |= {"PORT": str(free_port()), **TOGETHER}
        self.secrets = {"jwt-secret": os.urandom(32).hex(), "database-url": self.url}

    def mounts(self) -> list[str]:
        self.data.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.data, UID, UID)
        lines = ["mkdir /run/secrets"]
        for name, value in self.secrets.items():
            (self.home / name).write_text(value)
            (self.home / name).chmod(0o644)
            lines.append(f"touch /run/secrets/{name} && mount --bind {self.home / name} /run/secrets/{name}")
        return [*lines, f"mount --rbind {self.data} /mnt", "mount -o remount,bind,ro /"]

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Settings are lines of the compose file, its secrets lie beside it; all else is typed in the container."""
        setting = re.fullmatch(r"echo '([A-Z_]+)=(.*)' >> \.env", command)
        if setting is not None:
            self.environment[setting[1]] = setting[2]
            command = "true"
        if command.endswith("> jwt-secret"):
            return subprocess.run(
                ["bash", "-c", command], cwd=self.home, capture_output=True, text=True, check=False, timeout=30
            )
        return self._run(command)

    def prepare(self) -> None:
        """The compose file has it all; the stories say for themselves when backups begin."""
        self.environment.pop("BACKUP_DIR")

    def write_env(self, **settings: str) -> None:
        """Write settings under `environment`."""
        self.environment |= settings

    def install(self) -> None:
        """Start it, and type what the page says of commands in a container."""
        self.start()
        page = text_of("docs/operating.md") + (ROOT / "deploy" / "compose.yaml").read_text()
        typed = set(re.findall(r"docker compose exec strongroom (strongroom [a-z ]*[a-z])", page))
        assert typed == {"strongroom users list"}
        for command in typed:
            done = self._run(command)
            assert done.returncode == 0, done.stderr
        assert self._run("touch /etc/x").returncode, "the root can be written to"

    def launched(self, *options: str) -> subprocess.Popen[bytes]:
        """The image's command."""
        return self._started(["strongroom", "serve", *options], "/mnt", self.environment)

    def _listening(self) -> int:
        assert self.process.poll() is None, f"the server ended at its start: {self.log()}"
        match = re.search(r"listens on http://0\.0\.0\.0:(\d+)", (self.home / "stdout").read_text())
        return int(match[1]) if match else 0

    def take_over(self, old: Installation) -> None:
        """Bring the secret."""
        assert isinstance(old, ContainerInstallation)
        self.secrets["jwt-secret"] = old.secrets["jwt-secret"]

    def receive(self, path: Path) -> str:
        """Into the volume."""
        self.mounts()
        self._give(path, self.data / "vault.backup")
        return "vault.backup"


@pytest.fixture
def begin(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., IsolatedInstallation]]:
    """Makes installations of one kind, and leaves nothing behind."""
    made: list[IsolatedInstallation] = []

    def new(engine: str, name: str = "home") -> IsolatedInstallation:
        made.append(request.param(tmp_path / name, engine))
        return made[-1]

    yield new
    for installation in made:
        installation.abandon()


STORIES: list[tuple[Callable[..., None], list[list[str]]]] = [
    (guide_stories.the_first_day_and_every_day, [["sqlite"], ["postgres"]]),
    (guide_stories.something_is_gone, [["sqlite"], ["postgres"]]),
    (guide_stories.the_secret_has_leaked, [["sqlite"]]),
    (guide_stories.the_owner_is_locked_out, [["sqlite"]]),
    (guide_stories.the_machine_is_gone, [["sqlite"]]),
    (guide_stories.the_disk_is_full, [[]]),
    (guide_stories.the_file_is_damaged, [[]]),
]
WAYS = [("unit", UnitInstallation), ("container", ContainerInstallation)]


@pytest.mark.parametrize(
    ("begin", "story", "engine"),
    [
        pytest.param(kind, story, engine, id="-".join([way, f"test_{story.__name__}", *engine]))
        for story, engines in STORIES
        for way, kind in WAYS
        for engine in engines
    ],
    indirect=["begin"],
)
def test_a_story(begin: Begin, story: Callable[..., None], engine: list[str]) -> None:
    """As the page tells it; tests/faults/test_operating_guide.py plays the same without a unit."""
    story(begin, *engine)
