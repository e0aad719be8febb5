"""What SIGHUP takes, and what it says: which secrets have changed, which is weak, what needs a restart."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import httpx2
import pytest

from strongroom.options import TABLE
from strongroom.server.reloading import RELOADABLE
from tests.kit.servers.certificate import certificate
from tests.kit.servers.server_process import PASSWORD, running, status_on_new_connection
from tests.kit.waiting import until

FIRST, SECOND = "first secret, long enough to sign with", "second secret, long enough to sign with"


def told(home: Path) -> list[tuple[str, str]]:
    """The level and the sentence of each line that the server has written about itself."""
    lines = [json.loads(line) for line in (home / "stderr").read_text().splitlines() if line.startswith("{")]
    return [(line["level"], line["message"]) for line in lines if line["event"] == "server"]


def write(home: Path, **settings: str) -> None:
    """Replace the settings file in one step."""
    (home / "new").write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    (home / "new").replace(home / ".env")


@pytest.mark.parametrize("workers", [1, 2])
def test_sighup_says_what_it_took_and_what_not(tmp_path: Path, workers: int) -> None:
    """By name and never by value; what needs a restart is told once, however many processes there are."""
    certificate(tmp_path, "first")
    given = {"TLS_CERT_FILE": "cert.pem", "TLS_KEY_FILE": "key.pem", "WORKERS": str(workers), "JWT_SECRET": FIRST}
    write(tmp_path, **given)

    with running(tmp_path) as (process, _):
        seen = 0

        def hang_up(warnings: int = 0) -> tuple[set[str], list[str]]:
            """What is said after it: the sentences about what was taken, and the warnings."""
            nonlocal seen
            before, seen = seen, seen + workers + warnings
            process.send_signal(signal.SIGHUP)
            until(lambda: len(told(tmp_path)) >= seen, "word of it")
            new = told(tmp_path)[before:]
            assert len(new) == workers + warnings, new
            taken = {sentence.partition("anew. ")[2] for level, sentence in new if level == "info"}
            return taken, [sentence for level, sentence in new if level == "warning"]

        assert hang_up() == ({"Nothing has changed."}, [])
        write(tmp_path, **given | {"JWT_SECRET": SECOND, "JWT_SECRET_PREVIOUS": FIRST})
        assert hang_up() == ({"Changed: JWT_SECRET, JWT_SECRET_PREVIOUS."}, [])
        given["JWT_SECRET"] = SECOND
        write(tmp_path, **given, METRICS_TOKEN="the-token-of-the-metrics")
        assert hang_up() == ({"Changed: JWT_SECRET_PREVIOUS, METRICS_TOKEN."}, [])
        write(tmp_path, **given)
        certificate(tmp_path, "second")
        assert hang_up() == ({"Changed: METRICS_TOKEN, the certificate."}, [])
        write(tmp_path, **given, SIGNUPS="closed", DATABASE_URL="postgresql://u:hunter2@h/d", RATE_LIMIT="7")
        left = "Changed in the settings, and not taken before a restart: DATABASE_URL, SIGNUPS, RATE_LIMIT."
        assert hang_up(1) == ({"Nothing has changed."}, [left])
        assert hang_up(1) == ({"Nothing has changed."}, [left])
        write(tmp_path, **given | {"JWT_SECRET": "too short"})
        taken, [weak] = hang_up(1)
        assert taken == {"Changed: JWT_SECRET."}
        assert "shorter than 32 bytes" in weak
        write(tmp_path, **given)
        (tmp_path / "stdout").write_text("")
        assert hang_up() == ({"Changed: JWT_SECRET."}, [])
        written = (tmp_path / "stderr").read_text()
        assert not [value for value in (FIRST, SECOND, "hunter2", "the-token", "too short") if value in written]


def test_files_that_variables_name_are_read_anew(tmp_path: Path) -> None:
    """A secret in a file of its own, named by a variable of the environment; and a settings file that is gone."""
    (tmp_path / "jwt-secret").write_text(FIRST)
    (tmp_path / "settings").write_text("SIGNUP_LIMIT=5\n")
    named = {"JWT_SECRET_FILE": "jwt-secret", "STRONGROOM_SETTINGS": str(tmp_path / "settings")}
    with running(tmp_path, **named) as (process, where):
        http = httpx2.Client(base_url=where)
        made = http.post("/auth/email/register", json={"email": "a@example.com", "password": PASSWORD}).json()
        (tmp_path / "jwt-secret").write_text(f"{SECOND}\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: "Changed: JWT_SECRET." in str(told(tmp_path)), "word of it")
        assert status_on_new_connection(f"{where}/vault", made["accessToken"]) == 401
        (tmp_path / "settings").unlink()
        process.send_signal(signal.SIGHUP)
        until(lambda: "Nothing was reloaded: Cannot read the settings file" in str(told(tmp_path)), "word of it")
        http.close()


def workers_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_worker_that_is_started_later_has_the_new_secret(tmp_path: Path) -> None:
    """One that dies after a leak was mended must not come back with the secret that leaked."""
    (tmp_path / "jwt-secret").write_text(FIRST)
    with running(tmp_path, JWT_SECRET_FILE="jwt-secret", WORKERS="2") as (process, where):
        began = time.monotonic()
        body = {"email": "a@example.com", "password": PASSWORD}
        with httpx2.Client(base_url=where) as http:
            old = http.post("/auth/email/register", json=body).json()["accessToken"]
        (tmp_path / "jwt-secret").write_text(SECOND)
        process.send_signal(signal.SIGHUP)
        until(lambda: str(told(tmp_path)).count("Changed: JWT_SECRET.") == 2, "word of both")
        until(lambda: time.monotonic() - began > 6, "workers old enough to be replaced when they die")
        for dying in workers_of(process.pid):
            os.kill(dying, signal.SIGKILL)
            until(lambda dying=dying: dying not in workers_of(process.pid), "its end")  # type: ignore[misc]
        until(lambda: len(workers_of(process.pid)) == 2, "others in their place")
        for _ in range(8):
            assert until(lambda: answered(f"{where}/vault", old), "an answer") == 401


def answered(url: str, bearer: str) -> int:
    try:
        return status_on_new_connection(url, bearer)
    except httpx2.TransportError:
        return 0


def test_what_is_taken_are_secrets() -> None:
    """The database's addresses and the passphrase of backups are not: the pool and the schedule have them already."""
    assert set(RELOADABLE) == {option.variable for option in TABLE if option.is_secret} - {
        "DATABASE_URL", "DATABASE_POOLER_URL", "BACKUP_PASSPHRASE"
    }  # fmt: skip
