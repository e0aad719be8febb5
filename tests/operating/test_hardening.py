"""What an attacker with bad intentions, or an operator with bad luck, does to a process and its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx2
import pytest

from strongroom.cli import archives
from strongroom.cli.terminal import CommandFailed
from strongroom.store.sqlite.database_file import DAMAGED_EXIT
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, strongroom
from tests.kit.servers.certificate import certificate
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET
from tests.kit.servers.server_process import running
from tests.kit.waiting import until

OTHER = "another secret, which is long enough to sign tokens with"


def test_a_worker_that_is_starting_takes_the_new_secret(tmp_path: Path) -> None:
    """SIGHUP while a worker takes the place of one that died: no process goes on with the secret that leaked."""
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    server = Server(tmp_path / "home", WORKERS="2", JWT_SECRET_FILE=str(secret))
    del server.settings["JWT_SECRET"]
    try:
        server.start()
        body = {"email": "ada@example.com", "password": "correct horse"}
        with httpx2.Client(base_url=f"http://127.0.0.1:{server.port}", trust_env=False) as http:
            token = http.post("/auth/email/register", json=body).json()["accessToken"]
        children = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children")
        first = until(lambda: children.read_text().split(), "the workers")
        until(lambda: _uptime(int(first[0])) > 6, "a worker that is old enough to be started again", 30)
        secret.write_text(OTHER)
        os.kill(int(first[0]), signal.SIGKILL)
        while not (new := set(children.read_text().split()) - set(first)):
            assert server.process.poll() is None  # no pause: the new worker is to be held before it serves
        os.kill(int(*new), signal.SIGSTOP)
        server.process.send_signal(signal.SIGHUP)
        until(lambda: "were read anew" in server.log(), "the other worker to read the secret anew")
        os.kill(int(*new), signal.SIGCONT)
        headers = {"authorization": f"Bearer {token}", "connection": "close"}

        def is_token_refused() -> bool:
            """Whether every worker refuses the previous token."""
            where = f"http://127.0.0.1:{server.port}/vault"
            return all(httpx2.get(where, headers=headers).status_code == 401 for _ in range(30))

        until(is_token_refused, "both workers to read the secret anew")
        assert server.end() == 0
    finally:
        server.abandon()


def _uptime(pid: int) -> float:
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19])
    return float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")


def test_a_child_that_is_no_worker_ends_nothing(tmp_path: Path) -> None:
    """A shell that became the server left one behind; as the first process of a container, any orphan is one."""
    command = f"sleep 1 & exec {sys.executable} -m strongroom serve --workers 2"
    env = clean_environment(JWT_SECRET=SECRET, DB_PATH=str(tmp_path / "vault.db"), PORT="0")
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = processes.Popen(["/bin/sh", "-c", command], cwd=tmp_path, env=env, stdout=out, stderr=err)
    try:
        until(lambda: "data" in (tmp_path / "out").read_text(), "the server's start")
        until(lambda: not _has_child(process.pid, "sleep"), "the end of the other child")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.terminate()
        assert process.wait(20) == 0
        assert "Traceback" not in (tmp_path / "err").read_text()
    finally:
        process.kill()
        process.wait(20)


def _has_child(pid: int, name: str) -> bool:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return any(Path(f"/proc/{child}/comm").read_text().strip() == name for child in children)


def test_a_certificate_that_does_not_fit_its_key_is_not_taken(tmp_path: Path) -> None:
    """On SIGHUP in the middle of a renewal: the pair that was good is still shown."""
    certificate(tmp_path, "first")
    files = {"TLS_CERT_FILE": str(tmp_path / "cert.pem"), "TLS_KEY_FILE": str(tmp_path / "key.pem")}
    with running(tmp_path, JWT_SECRET=SECRET, **files) as (process, url):
        assert httpx2.get(f"{url}/health", verify=False).status_code == 200
        key = (tmp_path / "key.pem").read_bytes()
        certificate(tmp_path, "second")
        (tmp_path / "key.pem").write_bytes(key)
        process.send_signal(signal.SIGHUP)
        until(lambda: "Nothing was reloaded" in (tmp_path / "stderr").read_text(), "the refusal")
        assert httpx2.get(f"{url}/health", verify=False).status_code == 200


def test_a_process_that_must_stop_does_so_though_nobody_reads_what_it_says(tmp_path: Path) -> None:
    """Standard error is a pipe whose reader has gone."""
    script = (
        "import os, apsw; from pathlib import Path; from strongroom.store.sqlite.database_file import stop_process; "
        "read, write = os.pipe(); os.dup2(write, 2); os.close(write); os.close(read); "
        "stop_process(Path('vault.db'), apsw.CorruptError())"
    )
    assert processes.run([sys.executable, "-c", script], cwd=tmp_path, check=False).returncode == DAMAGED_EXIT


def test_a_file_that_appears_while_a_backup_is_made_stays(tmp_path: Path) -> None:
    """Nothing is ever written over."""
    target = tmp_path / "vault.backup"

    def fill(sink: Any) -> str:
        sink.write(b"content")
        target.write_text("of somebody else")
        return "sum"

    with pytest.raises(CommandFailed, match="nothing was overwritten"):
        archives.write(target, archives.Key(), fill, lambda _: "sum", lambda: None)
    assert target.read_text() == "of somebody else"
    assert [path.name for path in tmp_path.iterdir()] == ["vault.backup"]


@pytest.mark.parametrize("name", ["BACKUP_PASSPHRASE_FILE", "JWT_SECRET_FILE"])
def test_a_secret_with_a_nul_is_refused(tmp_path: Path, name: str) -> None:
    """A file in UTF-16: the environment of the process that makes backups would cut it at the first NUL."""
    (tmp_path / "secret").write_bytes("a passphrase that is long enough".encode("utf-16-le"))
    given = {} if name == "JWT_SECRET_FILE" else {"JWT_SECRET": SECRET}
    done = strongroom(tmp_path, "serve", **given, **{name: "secret"})
    assert done.returncode == 2
    assert "NUL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_with_a_nul_in_a_settings_file_ends_no_server(tmp_path: Path) -> None:
    """Written while it runs, and read on SIGHUP."""
    settings = tmp_path / "settings"
    text = f"DB_PATH={tmp_path}/vault.db\nWORKERS=2\nPORT=0\n"
    settings.write_text(f"{text}JWT_SECRET={SECRET}\n")
    env = clean_environment(STRONGROOM_SETTINGS=str(settings))
    with (tmp_path / "out").open("wb") as out, (tmp_path / "err").open("wb") as err:
        process = processes.Popen([*STRONGROOM, "serve"], cwd=tmp_path, env=env, stdout=out, stderr=err)
    try:
        until(lambda: "data" in (tmp_path / "out").read_text(), "the server's start")
        settings.write_text(f"{text}JWT_SECRET_FILE=se\0cret\n")
        process.send_signal(signal.SIGHUP)
        until(lambda: (tmp_path / "err").read_text().count("Nothing was reloaded") == 2, "both refusals")
        process.terminate()
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)


def test_backups_do_not_see_what_the_server_was_told_otherwise(tmp_path: Path) -> None:
    """PORT of the environment is nonsense, and an option puts it right: a backup is made all the same."""
    with running(tmp_path, "--port", "0", JWT_SECRET=SECRET, PORT="none", BACKUP_DIR=str(tmp_path / "kept")):
        until(lambda: list((tmp_path / "kept").glob("strongroom-*.backup")), "a backup")
    assert "backup failed" not in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    """A command whose streams were closed does its work, and writes what it says into no file."""
    env = clean_environment(JWT_SECRET=SECRET, DB_PATH=str(tmp_path / "vault.db"))
    for arguments in ("db migrate", "users list", "backup one.backup", "backup --verify one.backup"):
        command = f"{sys.executable} -m strongroom {arguments} {closed}"
        done = processes.run(["/bin/sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, check=False)
        assert done.returncode == 0, (arguments, done.stderr)


def test_a_secret_is_added_to_a_settings_file_that_has_none(tmp_path: Path) -> None:
    """`init` does what every sentence that names it promises; a secret that is there stays."""
    (tmp_path / ".env").write_text("PORT=0")
    (tmp_path / ".env").chmod(0o600)
    assert strongroom(tmp_path, "init").returncode == 0
    first = (tmp_path / ".env").read_text()
    assert first.startswith("PORT=0\nJWT_SECRET=")
    assert "nothing was changed" in strongroom(tmp_path, "init").stdout
    assert (tmp_path / ".env").read_text() == first


def test_a_second_signal_is_no_error(tmp_path: Path) -> None:
    """Whoever presses Ctrl+C twice finds nothing in the log that looks like a fault."""
    with running(tmp_path, JWT_SECRET=SECRET, LOG_FORMAT="json") as (process, _):
        ended = threading.Thread(target=process.wait)
        ended.start()
        process.terminate()
        process.terminate()
        ended.join(20)
        assert process.returncode == 0
    assert '"level":"error"' not in (tmp_path / "stderr").read_text()
