"""`strongroom doctor` names what is wrong, and what to do about it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import msgspec
import pytest

from strongroom.cli import main
from strongroom.options import TABLE
from strongroom.server.backup_schedule import backup_name
from strongroom.store import open_database
from strongroom.store.locks import lock_of
from tests.kit.servers.certificate import certificate
from tests.kit.servers.populated_database import USERS, alter
from tests.kit.wall_clock import now

GOOD = {
    "JWT_SECRET": "4f1c9a7be0d25386a1f7c4d9e2b80563",
    "DB_PATH": "data/vault.db",
    "PUBLIC_URL": "https://vault.example.com",
    "TRUSTED_PROXIES": "127.0.0.1",
    "BACKUP_DIR": "kept",
    "SIGNUPS": "closed",
}
LEDGERS = "INSERT INTO ledgers (user_id, clock, documents, bytes) VALUES"


class Told(NamedTuple):
    """What the doctor said: its exit code, and verdict, sentence and advice by check."""

    code: int
    findings: dict[str, tuple[str, str, str]]

    def verdict(self, check: str) -> str:
        return self.findings[check][0]


@pytest.fixture
def database(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A server that is in order, on each engine in turn."""
    for option in TABLE:
        monkeypatch.delenv(option.variable, raising=False)
    monkeypatch.chdir(tmp_path)
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    database = str(tmp_path / "data" / "vault.db")
    if "://" in where:
        monkeypatch.setenv("DATABASE_URL", where)
        database = where
    asyncio.run(open_database(database, now).close())
    (tmp_path / "kept").mkdir(mode=0o700)
    put_backup(tmp_path / "kept" / backup_name(now()))
    return database


def put_backup(path: Path) -> None:
    path.touch(0o600)
    path.write_bytes(b"strongroom archive 1\n")


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Callable[..., Told]:
    def run(*options: str) -> Told:
        capsys.readouterr()
        code = main(["doctor", "--json", *options])
        said = msgspec.json.decode(capsys.readouterr().out)["findings"]
        found: dict[str, tuple[str, str, str]] = {}
        for one in said:
            if one["check"] not in found or one["verdict"] != "ok":
                found[one["check"]] = (one["verdict"], one["says"], one.get("todo", ""))
        assert code == any(verdict == "fault" for verdict, _, _ in found.values())
        assert all((verdict == "ok") == (not todo) for verdict, _, todo in found.values())
        return Told(code, found)

    return run


def test_a_server_in_order_has_no_fault(
    database: str, ask: Callable[..., Told], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every check is made, and the table for people says the same as the JSON."""
    told = ask()
    assert told.code == 0
    checks = {
        "integrity",
        "references",
        "schema",
        "clock",
        "deletions",
        "disk",
        "permissions",
        "secret",
        "backup",
        "proxy",
    }
    on_a_file = {"sqlite", "rows", "backup disk"} if "://" not in database else set()
    assert (
        told.findings.keys()
        == checks | {"settings", "server", "signups", "address", "public url", "open files"} | on_a_file
    )
    bad = {check for check, (verdict, _, _) in told.findings.items() if verdict != "ok"}
    assert bad <= {"integrity", "disk", "backup disk", "open files"}
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("ok       schema       The schema is number")]


@pytest.mark.parametrize(("minutes", "verdict"), [(1, "ok"), (120, "warning")])
def test_deletions_that_wait_are_counted(database: str, ask: Callable[..., Told], minutes: int, verdict: str) -> None:
    """And those that wait for longer than a server needs are reported with what to do."""
    deleted_at = now() - minutes * 60_000
    values = f"('a', 'v', 1, {deleted_at})"
    asyncio.run(alter(database, f"INSERT INTO deletions (user_id, vault_uid, until, deleted_at) VALUES {values}"))
    found = ask().findings["deletions"]
    assert found[0] == verdict
    assert found[1].startswith("1 deletion of a vault or an account waits for rows to go")


@pytest.mark.parametrize(
    ("check", "verdict", "settings"),
    [
        ("secret", "warning", {"JWT_SECRET": "4f1c9a7be0d25386"}),
        ("secret", "fault", {"JWT_SECRET": "a" * 64}),
        ("secret", "fault", {"JWT_SECRET": "changeme-changeme-changeme-changeme"}),
        ("secret", "fault", {"JWT_SECRET": ""}),
        ("secret", "warning", {"JWT_SECRET_PREVIOUS": "the one before"}),
        ("backup", "warning", {"BACKUP_DIR": ""}),
        ("backup", "warning", {"BACKUP_DIR": "elsewhere"}),
        ("proxy", "warning", {"TRUSTED_PROXIES": ""}),
        ("proxy", "fault", {"TRUSTED_PROXIES": "0.0.0.0/0"}),
        ("proxy", "fault", {"TRUSTED_PROXIES": "::/0"}),
        ("address", "warning", {"HOST": "0.0.0.0"}),
        ("address", "fault", {"HOST": "0.0.0.0", "PUBLIC_URL": ""}),
        ("address", "fault", {"HOST": "::", "PUBLIC_URL": "http://vault.example.com"}),
        ("address", "ok", {"HOST": "unix:/run/strongroom/http.sock"}),
        ("public url", "fault", {"PUBLIC_URL": "http://vault.example.com"}),
        ("public url", "warning", {"PUBLIC_URL": ""}),
    ],
)
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
def test_a_bad_setting_is_named(
    ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, check: str, verdict: str, settings: dict[str, str]
) -> None:
    """With its verdict; a secret is not repeated."""
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    told = ask()
    assert told.verdict(check) == verdict
    if settings.get("JWT_SECRET"):
        assert settings["JWT_SECRET"] not in str(told)


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
def test_a_certificate_is_looked_at(ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether it fits its key, and how long it is good; with one, the server may listen to the world."""
    monkeypatch.setenv("HOST", "0.0.0.0")
    monkeypatch.setenv("TLS_CERT_FILE", "cert.pem")
    monkeypatch.setenv("TLS_KEY_FILE", "key.pem")
    for days, verdict in ((90.0, "ok"), (3.0, "warning"), (-1.0, "fault")):
        certificate(tmp_path, "vault", days)
        (tmp_path / "key.pem").chmod(0o640)
        told = ask()
        assert told.verdict("tls") == verdict
        assert told.verdict("address") == told.verdict("permissions") == "ok"
    (tmp_path / "key.pem").chmod(0o644)
    assert ask().verdict("permissions") == "fault"
    (tmp_path / "key.pem").write_text("nonsense")
    assert ask().verdict("tls") == "fault"


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
def test_an_old_backup_is_a_fault(ask: Callable[..., Told], tmp_path: Path) -> None:
    """Older than twice the time between two."""
    for file in (tmp_path / "kept").iterdir():
        file.unlink()
    put_backup(tmp_path / "kept" / backup_name(now() - 49 * 3_600_000))
    assert ask().verdict("backup") == "fault"
    assert ask("--backup-every", "25h").verdict("backup") == "ok"


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
def test_files_that_others_can_read_are_a_fault(ask: Callable[..., Told], tmp_path: Path) -> None:
    """The database, a backup, .env; and a folder that others can write to."""
    (tmp_path / ".env").write_text("")
    files = [tmp_path / "data" / "vault.db", *(tmp_path / "kept").iterdir(), tmp_path / ".env"]
    for file in files:
        file.chmod(0o600)
    assert ask().verdict("permissions") == "ok"
    for path, bad, good in [(file, 0o640, 0o600) for file in files] + [(tmp_path / "data", 0o720, 0o700)]:
        path.chmod(bad)
        told = ask()
        assert told.verdict("permissions") == "fault"
        assert path.name in told.findings["permissions"][1]
        path.chmod(good)
    assert ask().verdict("permissions") == "ok"


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
@pytest.mark.parametrize(
    ("lines", "mode", "secret_mode", "verdict"),
    [
        ("JWT_SECRET=4f1c9a7be0d25386a1f7c4d9e2b80563\n", 0o640, 0o600, "ok"),
        ("JWT_SECRET=4f1c9a7be0d25386a1f7c4d9e2b80563\n", 0o644, 0o600, "fault"),
        ("JWT_SECRET_FILE=jwt-secret\n", 0o644, 0o640, "ok"),
        ("JWT_SECRET_FILE=jwt-secret\n", 0o644, 0o644, "fault"),
        ("JWT_SECRET_FILE=jwt-secret\n", 0o644, 0o660, "fault"),
        ("JWT_SECRET_FILE=jwt-secret\n", 0o664, 0o640, "fault"),
    ],
)
def test_a_group_may_read_the_settings_file_and_nobody_else_a_secret(
    ask: Callable[..., Told],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: str,
    mode: int,
    secret_mode: int,
    verdict: str,
) -> None:
    """root:strongroom 0640 is how a system shares them with its service. Nobody else writes to either."""
    monkeypatch.delenv("JWT_SECRET")
    monkeypatch.setenv("STRONGROOM_SETTINGS", str(tmp_path / "settings"))
    for name, text, bits in (("settings", lines, mode), ("jwt-secret", GOOD["JWT_SECRET"], secret_mode)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(bits)
    told = ask()
    assert told.verdict("permissions") == verdict, told.findings["permissions"]
    assert told.verdict("secret") == "ok"
    assert str(tmp_path / "settings") in told.findings["settings"][1]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.usefixtures("database")
def test_a_full_disk_is_a_fault(ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch) -> None:
    """And a nearly full one a warning. How much is free is the only thing that is pretended."""
    for free, verdict in ((10 << 20, "fault"), (500 << 20, "warning"), (50 << 30, "ok")):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: _Usage(free))
        assert ask().verdict("disk") == verdict


class _Usage(NamedTuple):
    free: int


def test_a_clock_that_is_behind_is_a_fault(database: str, ask: Callable[..., Told]) -> None:
    """An account has times from the future: one of the two clocks was wrong."""
    asyncio.run(alter(database, f"{USERS} ('u', 'u@x', 1, 1)"))
    asyncio.run(alter(database, f"{LEDGERS} ('u', {now() + 30_000}, 0, 0)"))
    assert ask().verdict("clock") == "ok"
    asyncio.run(alter(database, f"UPDATE ledgers SET clock = {now() + 3_600_000}"))
    assert ask().verdict("clock") == "fault"


def test_another_schema_is_named(database: str, ask: Callable[..., Told]) -> None:
    """An older one is a warning, a newer one a fault; neither is changed."""
    asyncio.run(alter(database, "DELETE FROM schema_migrations WHERE number = 3"))
    assert ask().verdict("schema") == "warning"
    asyncio.run(alter(database, "INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)"))
    assert ask().verdict("schema") == "fault"


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_broken_reference_is_a_fault(database: str, ask: Callable[..., Told]) -> None:
    """A row that refers to one that is gone."""
    connection = apsw.Connection(database)
    connection.execute(f"{LEDGERS} ('nobody', 1, 0, 0)")
    connection.close()
    told = ask()
    assert told.verdict("references") == "fault"
    assert "ledgers" in told.findings["references"][1]


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_faulty_sqlite_is_a_fault(database: str, ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the versions that can corrupt a write-ahead log."""
    del database
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: "3.45.0")
    told = main(["doctor"])
    assert told == 1
    del ask


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_an_interrupted_restore_is_a_fault(database: str, ask: Callable[..., Told]) -> None:
    """Its word is still in the lock."""
    lock = lock_of(Path(database))
    lock.restore_mark = "20260301T060000Z"
    lock.close()
    assert ask().verdict("integrity") == "fault"


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_no_database_is_a_warning_and_none_is_made(
    database: str, ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The doctor makes nothing."""
    del database
    monkeypatch.setenv("DB_PATH", "elsewhere/vault.db")
    assert ask().verdict("database") == "warning"
    assert not (tmp_path / "elsewhere").exists()


def test_a_database_out_of_reach_is_a_fault(
    ask: Callable[..., Told], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database: str
) -> None:
    """The rest is looked at all the same, and no password is shown."""
    del database, tmp_path
    monkeypatch.setenv("DATABASE_URL", "postgresql://ada:hunter2@127.0.0.1:1/db")
    told: Any = ask()
    assert told.verdict("database") == "fault"
    assert told.verdict("secret") == "ok"
    assert "hunter2" not in str(told)
