"""One way to say where the service is: a settings file, and files that hold the secrets."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.options import TABLE
from strongroom.server.backup_schedule import list_backups
from tests.kit.network.ports import free_port
from tests.kit.programs import processes
from tests.kit.programs.command_line import clean_environment, in_json, strongroom
from tests.kit.programs.mount_namespace import UID
from tests.kit.programs.other_user import as_root, as_user
from tests.kit.waiting import until

SECRET = "4f1c9a7be0d25386a1f7c4d9e2b80563"
PASSWORD = "correct horse"


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of root's that everybody may enter; pytest's own is closed."""
    made = Path(tempfile.mkdtemp(prefix="strongroom-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


class Service:
    """A service whose settings and data lie in one folder, and a person who is in another."""

    def __init__(self, folder: Path, where: str) -> None:
        self.etc, self.elsewhere = folder / "etc", folder / "elsewhere"
        for made in (self.etc, self.elsewhere):
            made.mkdir()
        (self.etc / "jwt-secret").write_text(f"{SECRET}\n")
        (self.etc / "database-url").write_text(f"{where}\n")
        on_postgres = "://" in where
        self.shown = where.rpartition("/")[2] if on_postgres else where
        data = "DATABASE_URL_FILE=database-url" if on_postgres else f"DB_PATH={where}"
        self.file = self.etc / "settings"
        self.file.write_text(f"{data}\nJWT_SECRET_FILE=jwt-secret\n")
        for path in self.etc.iterdir():
            path.chmod(0o640)

    def run(self, *arguments: str, given: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
        return strongroom(self.elsewhere, *arguments, input=given, **environment)


@pytest.fixture
def service(tmp_path: Path, where: str) -> Service:
    made = Service(tmp_path, where)
    assert made.run("db", "migrate", STRONGROOM_SETTINGS=str(made.file)).returncode == 0
    return made


CHANGES = (
    ("users", "disable", "ada@example.com", "--yes"),
    ("users", "enable", "ada@example.com"),
    ("users", "sign-out", "ada@example.com", "--yes"),
    ("users", "reset-throttle", "ada@example.com"),
    ("users", "reset-second-factor", "ada@example.com", "--yes"),
    ("vacuum", "--yes"),
    ("db", "migrate"),
    ("users", "delete", "ada@example.com", "--yes"),
)


def test_every_command_finds_the_service_from_any_folder(service: Service) -> None:
    """By the variable and by the option alike; what changes something says which service it has changed."""
    named = {"STRONGROOM_SETTINGS": str(service.file)}
    added = service.run("users", "add", "ada@example.com", "--json", given=f"{PASSWORD}\n", **named)
    assert service.shown in in_json(added)["data"]
    ways: tuple[tuple[dict[str, str], tuple[str, ...]], ...] = ((named, ()), ({}, ("--settings", str(service.file))))
    for way, options in ways:
        for command in ("users list", "keys list", "stats", "doctor", "config"):
            done = service.run(*command.split(), *options, **way)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
        assert "ada@example.com" in service.run("users", "list", *options, **way).stdout
        archive = f"{len(way)}.backup"
        assert service.run("backup", archive, *options, **way).returncode == 0
        assert (service.elsewhere / archive).is_file()
    for change in CHANGES:
        said, told = service.run(*change, **named), service.run(*change, "--json", **named)
        assert said.returncode == 0 or "delete" in change, (change, said.stderr)
        assert service.shown in said.stdout, change
        assert "delete" in change or service.shown in in_json(told)["data"], change
    assert {path.suffix for path in service.elsewhere.iterdir()} == {".backup"}, "no database beside the service's"


def test_a_server_and_the_commands_read_the_same_file(service: Service) -> None:
    """`serve` and `ready`, typed in another folder; the backups that the server makes by itself, with its secrets."""
    (service.etc / "passphrase").write_text("a passphrase of the tests")
    with service.file.open("a") as file:
        file.write(f"PORT={free_port()}\nREADY_FREE_BYTES=1000\nBACKUP_DIR=kept\n")
    named = {"STRONGROOM_SETTINGS": str(service.file), "BACKUP_PASSPHRASE_FILE": str(service.etc / "passphrase")}
    with (service.etc / "log").open("wb") as log:
        server = processes.Popen(
            [sys.executable, "-m", "strongroom", "serve"],
            cwd=service.elsewhere,
            env={**clean_environment(), **named},
            stdout=log,
            stderr=log,
        )
    try:
        until(lambda: service.run("ready", **named).returncode == 0, "a server that is ready", 60)
        assert service.run("ready", "--settings", str(service.file)).returncode == 0
        assert service.shown in (service.etc / "log").read_text()
        until(lambda: list_backups(service.etc / "kept"), "a backup", 60)
        [made] = list_backups(service.etc / "kept")
        assert made.path.read_bytes().startswith(b"strongroom sealed")
        assert service.run("backup", "--verify", str(made.path), **named).returncode == 0
    finally:
        server.terminate()
        assert server.wait(40) == 0


def config(folder: Path, *options: str, **environment: str) -> dict[str, Any]:
    """What `strongroom config` tells: settings by name, and the rest under its own names."""
    told: dict[str, Any] = in_json(strongroom(folder, "config", "--json", *options, **environment))
    return told | {row["variable"]: (row["value"], row["source"]) for row in told["settings"]}


def test_which_settings_file_is_read(tmp_path: Path) -> None:
    """The option before the variable, that before .env in this folder; `config` names it."""
    for name, port in ((".env", 1), ("by-variable", 2), ("by-option", 3)):
        (tmp_path / name).write_text(f"JWT_SECRET={SECRET}\nPORT={port}\n")
    variable = {"STRONGROOM_SETTINGS": str(tmp_path / "by-variable")}
    told = config(tmp_path)
    assert (told["PORT"], told["settingsFile"]) == (("1", ".env"), ".env")
    told = config(tmp_path, **variable)
    assert told["PORT"] == ("2", variable["STRONGROOM_SETTINGS"])
    assert told["settingsFile"] == variable["STRONGROOM_SETTINGS"]
    told = config(tmp_path, "--settings", "by-option", **variable)
    assert told["PORT"] == ("3", "by-option")
    assert config(tmp_path, "--settings", "by-option", PORT="4")["PORT"] == ("4", "environment")
    assert config(tmp_path, "--settings", "by-option", "--port", "5", PORT="4")["PORT"] == ("5", "--port")
    assert config(tmp_path, STRONGROOM_SETTINGS="")["PORT"] == ("1", ".env")
    shown = strongroom(tmp_path, "config", **variable).stdout
    assert f"settings file: {variable['STRONGROOM_SETTINGS']}" in shown
    (tmp_path / ".env").unlink()
    told = config(tmp_path, JWT_SECRET=SECRET)
    assert (told["settingsFile"], told["PORT"]) == (None, ("3000", "default"))


def test_a_folder_called_env_is_no_settings_file(tmp_path: Path) -> None:
    """Python's virtual environments are sometimes called so."""
    (tmp_path / ".env").mkdir()
    assert config(tmp_path, JWT_SECRET=SECRET)["settingsFile"] is None


@pytest.mark.parametrize("way", ["option", "variable"])
@pytest.mark.parametrize(
    "command",
    [
        ("serve",), ("users", "list"), ("keys", "list"), ("stats",), ("vacuum",), ("config",), ("doctor",), ("ready",),
        ("backup", "x"), ("restore", "x"), ("db", "migrate"),
    ],
    ids="-".join,
)  # fmt: skip
def test_a_named_settings_file_that_is_not_there_stops_every_command(
    tmp_path: Path, command: tuple[str, ...], way: str
) -> None:
    """Exit code 2, one sentence with its name; and nothing is made in its stead."""
    options = ("--settings", "nowhere") if way == "option" else ()
    named = {"STRONGROOM_SETTINGS": "nowhere"} if way == "variable" else {}
    done = strongroom(tmp_path, *command, *options, JWT_SECRET=SECRET, **named)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Cannot read the settings file nowhere: No such file or directory" in done.stderr
    assert list(tmp_path.iterdir()) == []


@as_root
def test_a_settings_file_that_others_may_not_read(folder: Path) -> None:
    """Exit code 2, and what to do: run it as the service's user. Also for .env, and for a closed folder."""
    closed = folder / "etc"
    closed.mkdir(mode=0o700)
    (closed / "settings").write_text(f"JWT_SECRET={SECRET}\n")
    (folder / ".env").write_text(f"JWT_SECRET={SECRET}\n")
    (folder / ".env").chmod(0o600)
    for environment in ({"STRONGROOM_SETTINGS": str(closed / "settings")}, {}):
        done = as_user(folder, UID, "users", "list", **environment)
        assert done.returncode == 2, done.stdout
        assert "Permission denied" in done.stderr
        assert "belongs to root: run the command as the service's user, sudo strongroom …" in done.stderr
        assert done.stderr.count("\n") == 1
    (folder / "jwt-secret").write_text(SECRET)
    (folder / "jwt-secret").chmod(0o600)
    (folder / ".env").write_text("JWT_SECRET_FILE=jwt-secret\n")
    (folder / ".env").chmod(0o644)
    done = as_user(folder, UID, "serve")
    assert done.returncode == 2
    assert "jwt-secret that JWT_SECRET_FILE names: Permission denied" in done.stderr
    assert "sudo strongroom" in done.stderr
    closed_home = folder / "root"
    closed_home.mkdir(mode=0o700)
    (folder / "open").write_text(f"JWT_SECRET={SECRET}\nDB_PATH=nowhere.db\n")
    done = as_user(closed_home, UID, "users", "list", STRONGROOM_SETTINGS=str(folder / "open"))
    assert "There is no database" in done.stderr
    done = as_user(closed_home, UID, "config", JWT_SECRET=SECRET)
    assert done.returncode == 0, done.stderr


@as_root
def test_a_database_in_a_closed_folder_is_a_sentence(folder: Path) -> None:
    """Where sudo was typed in somebody's home, with a path that starts there."""
    (folder / "root").mkdir(mode=0o700)
    for command in (
        "users list",
        "users add a@example.com",
        "stats",
        "vacuum --yes",
        "doctor",
        "backup x",
        "restore x",
    ):
        done = as_user(folder / "root", UID, *command.split(), JWT_SECRET=SECRET)
        assert "Traceback" not in done.stderr, (command, done.stderr)
        assert done.returncode == 2
        assert "belongs to root" in done.stderr


@as_root
def test_another_users_env_in_a_shared_folder_is_not_believed(folder: Path) -> None:
    """Whoever may write to /tmp could otherwise say which database the operator changes there; by a link as well."""
    (folder / "theirs").write_text(f"JWT_SECRET={SECRET}\nDB_PATH=theirs.db\n")
    for link in (False, True):
        (folder / ".env").unlink(missing_ok=True)
        (folder / ".env").symlink_to("theirs") if link else shutil.copy(folder / "theirs", folder / ".env")
        os.chown(folder, 0, 0)
        os.chown(folder / ".env", UID, UID, follow_symlinks=False)
        done = strongroom(folder, "users", "list")
        assert done.returncode == 2
        assert "belongs to another user" in done.stderr
        assert "There is no database" in strongroom(folder, "users", "list", "--settings", ".env").stderr
        os.chown(folder, UID, UID)
        assert "belongs to another user" in strongroom(folder, "users", "list").stderr, "root believes root alone"


def test_relative_paths_start_at_the_settings_file(tmp_path: Path) -> None:
    """The default of the database too; those of options and of the environment start where one types."""
    etc, here = tmp_path / "etc", tmp_path / "here"
    etc.mkdir()
    here.mkdir()
    (etc / "jwt-secret").write_text(SECRET)
    lines = "JWT_SECRET_FILE=jwt-secret\nBACKUP_DIR=./kept\nTLS_CERT_FILE=cert.pem\nHOST=unix:s.sock\n"
    (etc / "settings").write_text(lines)
    for named in (str(etc / "settings"), "../etc/settings"):
        told = config(here, "--settings", named)
        assert Path(told["DB_PATH"][0]) == etc / "data" / "vault.db"
        assert Path(told["BACKUP_DIR"][0]) == etc / "kept"
        assert Path(told["TLS_CERT_FILE"][0]) == etc / "cert.pem"
        assert told["HOST"][0] == f"unix:{etc / 's.sock'}"
        assert told["JWT_SECRET"][0] == f"in {etc / 'jwt-secret'}"
    told = config(here, "--settings", str(etc / "settings"), "--backup-dir", "mine", DB_PATH="my.db")
    assert (told["DB_PATH"][0], told["BACKUP_DIR"][0]) == ("my.db", "mine")
    (etc / "settings").write_text(lines + "DB_PATH=/srv/vault.db\nBACKUP_DIR=~/kept\n")
    told = config(here, "--settings", str(etc / "settings"))
    assert (told["DB_PATH"][0], told["BACKUP_DIR"][0]) == ("/srv/vault.db", "~/kept")
    (here / ".env").write_text(f"JWT_SECRET={SECRET}\n")
    assert config(here)["DB_PATH"] == ("./data/vault.db", "default")


SECRETS = [option for option in TABLE if option.is_secret]
GOOD = {
    "DATABASE_URL": "postgresql://u:hunter2@h/d",
    "DATABASE_POOLER_URL": "postgresql://u:hunter2@pooler/d",
    "JWT_SECRET": SECRET,
}
NEEDED = {"DATABASE_POOLER_URL": {"DATABASE_URL": GOOD["DATABASE_URL"]}}  # what is refused alone


def test_there_are_secrets() -> None:
    """The ones that this file speaks about."""
    assert {option.variable for option in SECRETS} == {
        "JWT_SECRET", "JWT_SECRET_PREVIOUS", "SECOND_FACTOR_SECRET", "SECOND_FACTOR_SECRET_PREVIOUS",
        "DATABASE_URL", "DATABASE_POOLER_URL", "BACKUP_PASSPHRASE", "METRICS_TOKEN"
    }  # fmt: skip


@pytest.mark.parametrize("text", ["{}", "{}\n", "{}\r\n", "\ufeff{}\r\n", "  {}\n\n"])
@pytest.mark.parametrize("option", SECRETS, ids=lambda option: option.variable)
def test_every_secret_may_lie_in_a_file(tmp_path: Path, option: Any, text: str) -> None:
    """Whatever ends its lines; the value is taken from there, and never shown."""
    from strongroom.server.settings import resolve

    value = GOOD.get(option.variable, "a-value-that-nobody-may-see")
    (tmp_path / "secret").write_text(text.format(value))
    environment = {
        **NEEDED.get(option.variable, {}),
        "JWT_SECRET": SECRET,
        option.file_variable: str(tmp_path / "secret"),
    }
    if option.variable == "JWT_SECRET":
        del environment["JWT_SECRET"]
    found = getattr(resolve(environment), option.variable.lower())
    assert found in (value, value.encode())
    done = strongroom(tmp_path, "config", "--json", **environment)
    assert value not in done.stdout + done.stderr
    [row] = [row for row in in_json(done)["settings"] if row["variable"] == option.variable]
    assert (row["value"], row["source"]) == (f"in {tmp_path / 'secret'}", "environment")


@pytest.mark.parametrize("place", ["environment", "file"])
@pytest.mark.parametrize("option", SECRETS, ids=lambda option: option.variable)
def test_a_secret_and_its_file_in_one_place_are_refused(tmp_path: Path, option: Any, place: str) -> None:
    """Which of the two was meant cannot be known; in different places the order of places decides."""
    (tmp_path / "secret").write_text(GOOD.get(option.variable, "a-value-that-nobody-may-see"))
    both = {option.variable: GOOD.get(option.variable, "x" * 32), option.file_variable: "secret"}
    environment = {**NEEDED.get(option.variable, {}), "JWT_SECRET": SECRET} | (both if place == "environment" else {})
    if place == "file":
        (tmp_path / ".env").write_text("".join(f"{name}={value}\n" for name, value in both.items()))
        environment.pop("JWT_SECRET") if option.variable == "JWT_SECRET" else None
    done = strongroom(tmp_path, "serve", **environment)
    assert done.returncode == 2
    assert f"{option.variable} and {option.file_variable} are both set" in done.stderr
    assert f"Remove {option.variable} if the file is right, or {option.file_variable} if the value is." in done.stderr
    assert "hunter2" not in done.stderr
    assert done.stderr.count("\n") == 1
    environment = {**NEEDED.get(option.variable, {}), "JWT_SECRET": SECRET, option.file_variable: "secret"}
    environment.pop("JWT_SECRET") if option.variable == "JWT_SECRET" else None
    assert place == "environment" or config(tmp_path, **environment)[option.variable] == ("in secret", "environment")


def test_what_a_secrets_file_may_not_be(tmp_path: Path) -> None:
    """Missing, a folder, not text, empty: a sentence with the file and the variable. An empty variable is none."""
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    for name, why in (
        ("nowhere", "No such file or directory"),
        (".", "Is a directory"),
        ("empty", "it is empty"),
        ("bytes", "it is not text"),
    ):
        done = strongroom(tmp_path, "serve", JWT_SECRET_FILE=name)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"Cannot read the file {name} that JWT_SECRET_FILE names: {why}." in done.stderr
    for name in ("DATABASE_URL", "BACKUP_PASSPHRASE", "METRICS_TOKEN"):
        done = strongroom(tmp_path, "serve", JWT_SECRET=SECRET, **{f"{name}_FILE": "empty"})
        assert "it is empty" in done.stderr
    assert config(tmp_path, JWT_SECRET=SECRET, JWT_SECRET_PREVIOUS_FILE="empty")["JWT_SECRET_PREVIOUS"][0] == "in empty"
    assert "JWT_SECRET is not set" in strongroom(tmp_path, "serve", JWT_SECRET_FILE="").stderr
    (tmp_path / ".env").write_text(f"JWT_SECRET={SECRET}\n")
    assert config(tmp_path, JWT_SECRET_FILE="")["JWT_SECRET"] == ("set, not shown", ".env")


def test_commands_that_sign_nothing_need_no_secret(tmp_path: Path) -> None:
    """Nor a file that they may not read: the operator's commands want the database alone."""
    assert (
        strongroom(tmp_path, "db", "migrate", JWT_SECRET_FILE="nowhere", METRICS_TOKEN_FILE="nowhere").returncode == 0
    )
    assert strongroom(tmp_path, "users", "list", JWT_SECRET_FILE="nowhere").returncode == 0
    assert "no response" in strongroom(tmp_path, "ready", PORT="1", DATABASE_URL_FILE="nowhere").stderr


def test_the_files_of_the_certificate_are_not_secrets_in_files(tmp_path: Path) -> None:
    """TLS_CERT_FILE and TLS_KEY_FILE name files, as they always did."""
    done = strongroom(tmp_path, "serve", JWT_SECRET=SECRET, TLS_CERT_FILE="nowhere.pem", PORT="0")
    assert "Cannot use the certificate nowhere.pem" in done.stderr


def test_how_a_settings_file_is_read(tmp_path: Path) -> None:
    """As a shell reads such lines: export, quotes, spaces, comments; a dollar is a dollar."""
    (tmp_path / ".env").write_bytes(
        b"\xef\xbb\xbf# a comment\r\n"
        b"export JWT_SECRET='4f1c9a7be0d25386 a1f7#c4d9'\r\n"
        b'PORT = "4"   # behind\r\n'
        b"CORS_ORIGINS=https://a.example.com#no-comment\r\n"
        b"JWT_ISSUER=a$HOME b # behind\r\n"
        b"\r\n"
        b"DB_PATH=./x y.db"
    )
    told = config(tmp_path)
    assert told["PORT"] == ("4", ".env")
    assert told["CORS_ORIGINS"][0] == "https://a.example.com#no-comment"
    assert told["JWT_ISSUER"][0] == "a$HOME b"
    assert told["DB_PATH"][0] == "./x y.db"
    (tmp_path / ".env").write_bytes(b"PORT=\xff\n")
    done = strongroom(tmp_path, "config")
    assert (done.returncode, done.stderr) == (
        2, "strongroom: Cannot read the settings file .env: it is not text.\n"
    )  # fmt: skip


def test_to_add_an_account_makes_no_database(tmp_path: Path) -> None:
    """A mistyped path would otherwise hold an account that nobody can use."""
    done = strongroom(tmp_path, "users", "add", "ada@example.com", input=f"{PASSWORD}\n")
    assert done.returncode == 2
    assert "There is no database" in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def owned_by_the_service(folder: Path) -> Path:
    """A database that belongs to another user; its service is stopped."""
    data = folder / "data"
    data.mkdir(mode=0o700)
    os.chown(data, UID, UID)
    assert as_user(data, UID, "db", "migrate", DB_PATH="vault.db").returncode == 0
    (data / "vault.db-lock").unlink()
    return data


@as_root
def test_what_root_does_leaves_the_service_its_files(owned_by_the_service: Path) -> None:
    """Every file beside the database belongs to the database's owner, and the service can open it."""
    data = owned_by_the_service
    where = {"DB_PATH": str(data / "vault.db")}
    assert strongroom(Path("/"), "users", "add", "a@example.com", input=f"{PASSWORD}\n", **where).returncode == 0
    assert strongroom(Path("/"), "users", "list", **where).returncode == 0
    assert {(path.name, path.stat().st_uid, path.stat().st_gid) for path in data.iterdir()} == {
        (name, UID, UID) for name in ("vault.db", "vault.db-lock", *(p.name for p in data.glob("vault.db-[ws]*")))
    }
    assert as_user(data, UID, "users", "list", DB_PATH="vault.db").returncode == 0
    for path in data.iterdir():
        path.unlink()
    assert strongroom(Path("/"), "db", "migrate", **where).returncode == 0
    assert {path.stat().st_uid for path in data.iterdir()} == {UID}
    assert {stat.S_IMODE(path.stat().st_mode) for path in data.iterdir()} == {0o600}
    assert as_user(data, UID, "users", "list", DB_PATH="vault.db").returncode == 0
