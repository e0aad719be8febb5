"""PostgreSQL goes back to a moment before a mistake by the recipe of docs/operating.md, with pgBackRest itself.

The settings and commands are read from the page. Only folders, the port and the moment are those of this test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.programs.command_line import strongroom
from tests.kit.programs.debian_programs import PACKAGES, environment, find
from tests.kit.programs.other_user import NOBODY, public_folder
from tests.kit.requirements import needs
from tests.kit.samples import rounds
from tests.kit.servers.process import Server
from tests.kit.waiting import until

PROGRAMS: Final = [
    name for package in ("pgbackrest", "postgresql-15", "postgresql-client-15") for name in PACKAGES[package]
]
pytestmark = needs(*PROGRAMS)

REPOSITORY: Final = "/srv/backups/pgbackrest"
DATA: Final = "/var/lib/postgresql/data"
MOMENT: Final = "2026-03-01 11:59:00+00"
PASSWORD: Final = "correct horse"
# A recovery takes long where there is much log. Here it waits until commits are this old; pg_ctl does not wait for it.
RECOVERY_SECONDS: Final = rounds(0, 30)


def section() -> str:
    """The part of the page that is played."""
    return sections(text_of("docs/operating.md"), 3)["To a point in time"]


def page() -> list[str]:
    """What it shows: pgBackRest's settings, PostgreSQL's, the commands of every night, those to go back."""
    shown = [text for _, text in fences(section())]
    assert len(shown) == 4
    return shown


def put(text: str, old: str, new: str) -> str:
    """Replace what the page must have once."""
    assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {text!r}"
    return text.replace(old, new)


class Host:
    """The machine of PostgreSQL, where its user types commands."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.user = NOBODY if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        self.data = folder / "data"
        programs = [program for name in PROGRAMS if (program := find(name)) is not None]
        self._env = {name: value for program in programs for name, value in environment(program).items()} | {
            "PATH": os.pathsep.join([*dict.fromkeys(str(program.parent) for program in programs), os.environ["PATH"]]),
            "PGDATA": str(self.data),
            "PGHOST": str(folder),
            "PGPORT": str(self.port),
            "PGUSER": "postgres",
            "PGDATABASE": "postgres",
            "PGBACKREST_CONFIG": str(folder / "pgbackrest.conf"),
            "PGBACKREST_LOCK_PATH": str(folder / "lock"),
            "PGBACKREST_LOG_PATH": str(folder),
            "PGBACKREST_PG1_PORT": str(self.port),
            "PGBACKREST_PG1_SOCKET_PATH": str(folder),
            "PGBACKREST_PG1_USER": "postgres",
        }
        if self.user is not None:
            os.chown(folder, self.user, self.user)
            closed = [up for program in programs for up in program.parents if not up.stat().st_mode & 0o001]
            if closed:
                pytest.skip(f"PostgreSQL does not run as root, and {closed[0]} is closed to its user")

    def type(self, command: str, code: int = 0) -> str:
        """Run a command as the user of PostgreSQL, to its end, which must be this one."""
        with (self.folder / "said").open("w+b") as said:  # no pipe, which a server that is started would hold open
            done = subprocess.run(
                ["bash", "-c", command],
                cwd=self.folder,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                check=False,
                timeout=300,
                user=self.user,
                group=self.user,
                extra_groups=None if self.user is None else [],
            )
            said.seek(0)
            text = said.read().decode(errors="replace")
        assert done.returncode == code, f"{command}: {text}"
        return text

    def sql(self, statement: str) -> str:
        """The one value that a statement gives."""
        return self.type(f'psql -XAtqc "{statement}"').strip()

    def moment(self) -> str:
        """A second as the page writes it: later than all that happened, and over when this returns."""
        second = self.sql("SELECT date_trunc('second', clock_timestamp() AT TIME ZONE 'UTC') + interval '1 second'")
        until(lambda: self.sql(f"SELECT clock_timestamp() > '{second}+00'") == "t", "the second to pass")
        return f"{second}+00"


@pytest.fixture
def host() -> Iterator[Host]:
    """A PostgreSQL that archives its log as the page has it."""
    with public_folder() as folder:
        host = Host(folder)
        sys.stdout.write(host.type("postgres --version && pgbackrest version"))
        host.type("initdb --auth=trust --username=postgres --encoding=UTF8 --locale=C")
        backrest, postgresql, *_ = page()
        backrest = put(put(backrest, REPOSITORY, str(folder / "repository")), DATA, str(host.data))
        (folder / "pgbackrest.conf").write_text(backrest)
        own = [
            f"port = {host.port}",
            f"unix_socket_directories = '{folder}'",
            "listen_addresses = '127.0.0.1'",
            f"recovery_min_apply_delay = {RECOVERY_SECONDS}s",
        ]
        with (host.data / "postgresql.conf").open("a") as file:
            file.write("\n".join([*own, postgresql]))
        host.type("pg_ctl start")
        try:
            yield host
        finally:
            if (host.data / "postmaster.pid").exists():
                host.type("pg_ctl stop -m immediate")


class Account:
    """An account with one vault, which remembers what the server has acknowledged."""

    def __init__(self, server: Server, email: str) -> None:
        self._server = server
        answer = server.connect().post("/auth/email/register", json={"email": email, "password": PASSWORD})
        assert answer.status_code == 201, answer.text
        self.token: str = answer.json()["accessToken"]
        self.vault: str = self._said("POST", "/vault", {"name": "precious"})["uid"]
        self.url = f"/vaults/{self.vault}/documents"
        self.documents: dict[str, Any] = {}

    def ask(self, method: str, url: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        return self._server.connect(self.token).request(method, url, json=body)

    def _said(self, method: str, url: str, body: dict[str, Any] | None = None) -> Any:
        answer = self.ask(method, url, body)
        assert answer.is_success, (method, url, answer.text)
        return answer.json()

    def write(self, count: int) -> None:
        """Create documents, replace one and delete one."""
        for number in range(count):
            made = self._said("POST", self.url, {"collection": "notes", "data": f"{number}"})
            self.documents[made["uid"]] = made
        first, last = next(iter(self.documents)), list(self.documents)[-1]
        body = {"data": "replaced", "version": self.documents[first]["version"]}
        self.documents[first] = self._said("PUT", f"{self.url}/{first}", body)
        self._said("DELETE", f"{self.url}/{last}")
        del self.documents[last]

    def held(self) -> dict[str, Any]:
        """What the server holds of it."""
        listed = self._said("GET", f"{self.url}?limit=1000")
        return {one["uid"]: one for one in listed["documents"]}


def epoch_of(server: Server) -> str:
    """The epoch that clients see."""
    epoch: str = server.connect().get("/health").json()["epoch"]
    return epoch


def go_back(host: Host, server: Server, commands: str) -> None:
    """Type what the page says, each command where it is typed."""
    for command in commands.splitlines():
        if command == "systemctl stop strongroom":
            assert server.end() == 0
        elif command == "systemctl start strongroom":
            server.start()
        elif command.startswith("strongroom "):
            assert host.sql("SELECT pg_is_in_recovery()") == "f"
            done = strongroom(server.home, *command.split()[1:], DATABASE_URL=server.settings["DATABASE_URL"])
            assert (done.returncode, done.stderr) == (0, ""), command
        else:
            host.type(command)


def test_what_was_deleted_is_there_again_under_another_epoch(host: Host, tmp_path: Path) -> None:
    """Everything acknowledged before the moment is there and nothing of later, which can still be gone to as well."""
    *_, first, back = page()
    [nightly] = first.splitlines()[-1:]
    host.sql("CREATE DATABASE vault")
    database = f"postgresql://postgres@127.0.0.1:{host.port}/vault"
    server = Server(tmp_path, DATABASE_URL=database, JWT_ACCESS_EXPIRY="1d").start()
    try:
        ada = Account(server, "ada@example.com")
        ada.write(20)
        too_early = host.moment()
        for command in first.splitlines():
            host.type(command)
        ada.write(20)
        assert ada.held() == ada.documents
        before = host.moment()
        for uid in ada.documents:
            assert ada.ask("DELETE", f"{ada.url}/{uid}").status_code == 200
        assert ada.ask("DELETE", f"/vault/{ada.vault}").status_code == 200
        host.type(nightly)  # the mistake is noticed after another night
        bob = Account(server, "bob@example.com")
        bob.write(5)
        after = host.moment()
        bob.ask("DELETE", f"/vault/{bob.vault}")
        epochs = [epoch_of(server)]

        _, stop, restore, start, *_ = back.splitlines()
        host.type(stop)
        assert "[075]" in host.type(put(restore, MOMENT, too_early), code=75)
        host.type(start)  # for nothing was touched
        go_back(host, server, put(back, MOMENT, before))
        epochs.append(epoch_of(server))
        assert ada.held() == ada.documents
        assert bob.ask("GET", "/auth/me").status_code == 401
        ada.write(5)
        for command in first.splitlines()[1:]:
            host.type(command)
        assert ada.held() == ada.documents

        assert "`--target-timeline=1`" in section()
        go_back(host, server, put(put(back, MOMENT, after), " restore", " --target-timeline=1 restore"))
        epochs.append(epoch_of(server))
        assert len(set(epochs)) == 3
        assert bob.held() == bob.documents
        assert ada.ask("GET", f"/vault/{ada.vault}").status_code == 404
        assert server.end() == 0
    finally:
        server.abandon()
