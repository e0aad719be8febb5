"""What no backup can work with is told when the server starts and by the doctor, not at night."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.kit.programs.command_line import clean_environment, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until

RECIPIENT = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
SECRET_KEY = "AGE-SECRET-KEY-1QQQQQQQQ"
WITHOUT = "import sys; sys.modules[{!r}] = None; from strongroom.cli import main; sys.exit(main())"


def settings_of(home: Path, **more: str) -> dict[str, str]:
    where = {"DB_PATH": str(home / "vault.db"), "BACKUP_DIR": str(home / "kept"), "PORT": "0"}
    return {"JWT_SECRET": SECRET, **where, **more}


def without(library: str, home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command where a library is not installed."""
    return subprocess.run(
        [sys.executable, "-c", WITHOUT.format(library), *arguments],
        cwd=home,
        env=clean_environment(**settings),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def error_line(done: subprocess.CompletedProcess[str]) -> str:
    """The one sentence of a server that does not start."""
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def doctor(done: subprocess.CompletedProcess[str], check: str) -> list[str]:
    """The faults of a check."""
    assert done.returncode == 1, done
    found: list[dict[str, Any]] = msgspec.json.decode(done.stdout)["findings"]
    return [one["says"] for one in found if (one["check"], one["verdict"]) == (check, "fault")]


@pytest.mark.parametrize("recipient", ["age1", "ada@example.com", f"{RECIPIENT}x", "ssh-rsa", SECRET_KEY])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_recipient_that_is_none(tmp_path: Path, recipient: str, workers: str) -> None:
    """Nothing is made, and the doctor and `config` say the same."""
    settings = settings_of(tmp_path, BACKUP_RECIPIENT=recipient, WORKERS=workers)
    assert "BACKUP_RECIPIENT cannot be used" in error_line(strongroom(tmp_path, "serve", **settings))
    assert list(tmp_path.iterdir()) == []
    assert SECRET_KEY not in strongroom(tmp_path, "serve", **settings).stderr
    assert "BACKUP_RECIPIENT cannot be used" in error_line(strongroom(tmp_path, "config", **settings))
    [told] = doctor(strongroom(tmp_path, "doctor", "--json", **settings), "backup")
    assert "BACKUP_RECIPIENT cannot be used" in told


@pytest.mark.parametrize(
    ("library", "extra", "setting"),
    [
        ("pyrage", "age", {"BACKUP_RECIPIENT": RECIPIENT}),
        ("asyncssh", "sftp", {"BACKUP_TO": "sftp://ada@127.0.0.1:1/in"}),
        ("obstore", "s3", {"BACKUP_TO": "s3://bucket/in"}),
    ],
)
def test_a_library_that_is_not_installed(tmp_path: Path, library: str, extra: str, setting: dict[str, str]) -> None:
    """The sentence says what to install; once, also by the doctor."""
    settings = settings_of(tmp_path, **setting)
    advice = f"pip install 'strongroom[{extra}]'"
    assert advice in error_line(without(library, tmp_path, "serve", **settings))
    told = without(library, tmp_path, "doctor", "--json", **settings)
    assert [advice in one for one in doctor(told, "backup") + doctor(told, "backup sent")] == [True]


@pytest.mark.parametrize(
    "place",
    ["sftp:/host/path", "s3:bucket", "S3://bucket", "ada@host:/srv", "host:srv", "ftp://host/x", "s3://", "://"],
)
@pytest.mark.parametrize("by", ["variable", "file"])
def test_an_address_that_is_none(tmp_path: Path, place: str, by: str) -> None:
    """It is not taken for the name of a folder."""
    settings = settings_of(tmp_path)
    if by == "file":
        (tmp_path / "settings").write_text(f"BACKUP_TO={place}\n")
        settings["STRONGROOM_SETTINGS"] = str(tmp_path / "settings")
    else:
        settings["BACKUP_TO"] = place
    for command in ("serve", "doctor"):
        assert "BACKUP_TO must be a folder, sftp://" in error_line(strongroom(tmp_path, command, **settings))


@pytest.mark.parametrize("place", ["./with:colon", "a/b:c"])
def test_a_folder_with_a_colon(tmp_path: Path, place: str) -> None:
    """It is one if it cannot be an address."""
    assert strongroom(tmp_path, "config", **settings_of(tmp_path, BACKUP_TO=place)).returncode == 0


@pytest.mark.parametrize("name", ["BACKUP_SSH_KEY", "BACKUP_SSH_HOSTS"])
def test_a_key_for_sftp_that_is_not_there(tmp_path: Path, name: str) -> None:
    """As with the certificate: the server does not start, and names the file and the setting."""
    settings = settings_of(tmp_path, BACKUP_TO="sftp://ada@127.0.0.1:1/in", **{name: "nowhere"})
    assert f"Cannot read the file nowhere that {name} names" in error_line(strongroom(tmp_path, "serve", **settings))


def test_a_place_that_cannot_be_reached_is_told_of_at_the_start(tmp_path: Path) -> None:
    """The server starts, for the place may come back; its log says so at once, also where no backup is due."""
    home = tmp_path / "home"
    server = Server(home, BACKUP_DIR=str(home / "kept"), BACKUP_TO="sftp://ada@127.0.0.1:1/in")
    for _ in range(2):
        server.start()
        until(lambda: "cannot be sent" in server.log(), "a line about the place")
        assert server.end() == 0
    assert len(list((home / "kept").glob("*.backup"))) == 1
