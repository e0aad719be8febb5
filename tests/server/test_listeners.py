"""Where a server listens: a socket in a file, TLS by files; and secrets that it reads anew on SIGHUP."""

from __future__ import annotations

import os
import resource
import signal
import socket
import ssl
import stat
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.kit.network.ports import free_port
from tests.kit.programs import processes
from tests.kit.servers.certificate import certificate
from tests.kit.servers.server_process import PASSWORD, logged, running, status_on_new_connection
from tests.kit.waiting import until


def through(path: Path) -> httpx2.Client:
    return httpx2.Client(transport=httpx2.HTTPTransport(uds=str(path)), base_url="http://server")


def test_a_socket_in_a_file(tmp_path: Path) -> None:
    """For its owner and its group; the proxy's word about addresses counts only if it is trusted by name."""
    path = tmp_path / "s.sock"
    secret = {"JWT_SECRET": "x" * 32, "HOST": f"unix:{path}"}
    for trusted, seen in (("unix", "198.51.100.7"), ("", "unix")):
        with running(tmp_path, TRUSTED_PROXIES=trusted, **secret) as (process, where), through(path) as http:
            assert where == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            email = f"ada{len(trusted)}@example.com"
            made = http.post(
                "/auth/email/register",
                json={"email": email, "password": PASSWORD},
                headers={"x-forwarded-for": "198.51.100.7"},
            ).json()
            log = http.get("/auth/sessions", headers={"authorization": f"Bearer {made['accessToken']}"}).json()
            assert log["sessions"][0]["address"] == seen
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0
        assert not path.exists()


def test_a_socket_that_a_dead_server_left_is_taken_and_a_living_ones_is_not(tmp_path: Path) -> None:
    """A sentence, exit code 2; also for a file that is no socket."""
    path = tmp_path / "s.sock"
    secret = {"JWT_SECRET": "x" * 32, "HOST": f"unix:{path}"}
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with running(tmp_path, **secret), through(path) as http:
        assert http.get("/health").status_code == 200
        second = processes.run(
            [sys.executable, "-m", "strongroom", "serve", "--host", f"unix:{path}"],
            cwd=tmp_path,
            env={**os.environ, **secret},
            capture_output=True,
            text=True,
            check=False,
        )
        assert second.returncode == 2
        assert "another server listens there" in second.stderr
        assert http.get("/health").status_code == 200


def shown(home: Path, port: int) -> str:
    """The name on the certificate that a server shows; it must be the one in the file, and TLS 1.2 or newer."""
    context = ssl.create_default_context(cafile=str(home / "cert.pem"))
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as wrapped,
    ):
        wrapped.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert wrapped.recv(12) == b"HTTP/1.1 200"
        told: Any = wrapped.getpeercert()
        name: str = dict(part[0] for part in told["subject"])["commonName"]
        return name


@pytest.mark.parametrize("workers", ["1", "2"])
def test_tls_by_files_and_a_new_certificate_without_a_restart(tmp_path: Path, workers: str) -> None:
    """After SIGHUP whoever connects is shown the new one. One that cannot be read leaves the old one in place."""
    certificate(tmp_path, "first")
    files = {"TLS_CERT_FILE": str(tmp_path / "cert.pem"), "TLS_KEY_FILE": str(tmp_path / "key.pem")}
    with running(tmp_path, JWT_SECRET="x" * 32, WORKERS=workers, **files) as (process, where):
        assert where.startswith("https://127.0.0.1:")
        port = int(where.rpartition(":")[2])
        assert shown(tmp_path, port) == "first"
        kept = (tmp_path / "cert.pem").read_bytes()
        (tmp_path / "cert.pem").write_bytes(b"nonsense")
        process.send_signal(signal.SIGHUP)
        until(lambda: len(logged(tmp_path)) == int(workers), "the refusal in the log")
        assert all("Nothing was reloaded: Cannot use the certificate" in line for line in logged(tmp_path))
        (tmp_path / "cert.pem").write_bytes(kept)
        assert shown(tmp_path, port) == "first"
        certificate(tmp_path, "second")
        process.send_signal(signal.SIGHUP)
        until(lambda: len(logged(tmp_path)) == 2 * int(workers), "the reload in the log")
        assert {shown(tmp_path, port) for _ in range(8)} == {"second"}
        assert "hunter" not in (tmp_path / "stderr").read_text()


def test_a_certificate_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    """One sentence, with the file's name."""
    done = processes.run(
        [sys.executable, "-m", "strongroom", "serve", "--tls-cert", "nowhere.pem", "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "JWT_SECRET": "x" * 32},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2
    assert "Cannot use the certificate nowhere.pem" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("workers", ["1", "2"])
def test_secrets_are_read_anew_and_nobody_is_logged_out(tmp_path: Path, workers: str) -> None:
    """The new secret signs, the previous one still opens; a file that is gone changes nothing."""
    new, old, token = (tmp_path / name for name in ("secret", "previous", "token"))
    new.write_text("first secret, long enough to sign with")
    old.write_text("")
    token.write_text("the-first-token-of-metrics")
    options = ("--jwt-secret-file", "secret", "--jwt-secret-previous-file", "previous", "--metrics-token-file", "token")
    with running(tmp_path, *options, WORKERS=workers) as (process, where), httpx2.Client(base_url=where) as http:
        made = http.post("/auth/email/register", json={"email": "ada@example.com", "password": PASSWORD}).json()

        def hang_up(times: int) -> None:
            process.send_signal(signal.SIGHUP)
            until(lambda: len(logged(tmp_path)) == times * int(workers), "word of the reload in the log")

        old.write_text(new.read_text())
        new.write_text("second secret, long enough to sign with")
        token.write_text("the-second-token-of-metrics")
        hang_up(1)
        for _ in range(6):
            assert status_on_new_connection(f"{where}/vault", made["accessToken"]) == 200
            tokens = ("the-first-token-of-metrics", "the-second-token-of-metrics")
            assert [status_on_new_connection(f"{where}/metrics", token) for token in tokens] == [401, 200]
        pair = http.post("/auth/refresh", json={"refreshToken": made["refreshToken"]}).json()
        old.write_text("")
        hang_up(2)
        for _ in range(6):
            assert status_on_new_connection(f"{where}/vault", made["accessToken"]) == 401
            assert status_on_new_connection(f"{where}/vault", pair["accessToken"]) == 200
        new.unlink()
        hang_up(3)
        assert "Nothing was reloaded: Cannot read the file secret" in logged(tmp_path)[-1]
        assert status_on_new_connection(f"{where}/vault", pair["accessToken"]) == 200
        assert "long enough" not in (tmp_path / "stderr").read_text()


def test_a_server_can_be_asked_whether_it_is_ready(tmp_path: Path) -> None:
    """`strongroom ready`, as a container's health check: by address, by file, with TLS; 1 where nobody answers."""
    certificate(tmp_path, "any")
    port = str(free_port())
    ways = (
        {"HOST": "0.0.0.0", "PORT": port},
        {"HOST": f"unix:{tmp_path}/s"},
        {"PORT": port, "TLS_CERT_FILE": str(tmp_path / "cert.pem"), "TLS_KEY_FILE": str(tmp_path / "key.pem")},
    )

    def asked(way: dict[str, str]) -> int:
        command = [sys.executable, "-m", "strongroom", "ready"]
        return processes.run(
            command, cwd=tmp_path, env={**os.environ, **way}, check=False, capture_output=True
        ).returncode

    for way in ways:
        with running(tmp_path, JWT_SECRET="x" * 32, **way):
            assert asked(way) == 0
        assert asked(way) == 1
    with running(tmp_path, JWT_SECRET="x" * 32, READY_FREE_BYTES="999999999999999", **ways[0]):
        assert asked(ways[0]) == 1


def refused_start(home: Path, host: str) -> str:
    """What a server says that does not start, on a host."""
    secret = {"JWT_SECRET": "x" * 32, "DB_PATH": str(home / "vault.db"), "HOST": host, "PORT": "0"}
    done = processes.run(
        [sys.executable, "-m", "strongroom", "serve"],
        cwd=home,
        env={**os.environ, **secret},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize("what", ["a file", "an empty file", "a folder", "a pipe", "a link to a file", "datagrams"])
def test_only_a_socket_is_taken_away(tmp_path: Path, what: str) -> None:
    """Whatever else is there stays as it is, and the operator is told."""
    path, other = tmp_path / "s.sock", tmp_path / "other"
    other.write_text("kept")
    somebody = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a link to a file":
        path.symlink_to(other)
    elif what == "datagrams":
        somebody.bind(str(path))
    else:
        path.write_text("kept" if what == "a file" else "")
    before = path.lstat()
    said = refused_start(tmp_path, f"unix:{path}")
    assert str(path) in said
    assert "HOST" in said
    after = path.lstat()
    assert (before.st_ino, before.st_mode, before.st_size) == (after.st_ino, after.st_mode, after.st_size)
    assert other.read_text() == "kept"
    somebody.close()


def test_the_database_is_not_taken_for_a_socket(tmp_path: Path) -> None:
    """The very file that is served."""
    with running(tmp_path, JWT_SECRET="x" * 32):
        pass
    before = (tmp_path / "vault.db").lstat()
    refused_start(tmp_path, f"unix:{tmp_path / 'vault.db'}")
    after = (tmp_path / "vault.db").lstat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert (tmp_path / "vault.db").read_bytes().startswith(b"SQLite format 3")


def test_a_socket_that_another_put_there_meanwhile_stays(tmp_path: Path) -> None:
    """At its end a server takes away the socket that it made, and no other thing of that name."""
    path = tmp_path / "s.sock"
    with running(tmp_path, JWT_SECRET="x" * 32, HOST=f"unix:{path}") as (process, _):
        path.unlink()
        path.write_text("kept")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    assert path.read_text() == "kept"


def figures_of(home: Path) -> str:
    """Where a server says that its figures are."""
    return next(line.split()[1] for line in (home / "stdout").read_text().splitlines() if line.startswith("  figures"))


@pytest.mark.parametrize(
    ("host", "token", "there"),
    [
        ("0.0.0.0", "", "127.0.0.1"),
        ("0.0.0.0", "x" * 32, "0.0.0.0"),
        ("127.0.0.2", "", "127.0.0.2"),
        ("::", "", "127.0.0.1"),
    ],
)
def test_figures_without_a_token_are_for_this_machine_alone(tmp_path: Path, host: str, token: str, there: str) -> None:
    """A port without a token listens where nobody else can reach it; with one, where the server does."""
    more = {"METRICS_TOKEN": token} if token else {}
    with running(tmp_path, JWT_SECRET="x" * 32, HOST=host, METRICS_PORT="0", **more):
        assert f"//{there}:" in figures_of(tmp_path)


@pytest.mark.parametrize(("soft", "hard", "warned"), [(256, 256, True), (256, 8_192, False)])
def test_too_few_open_files_are_told_at_the_start(tmp_path: Path, soft: int, hard: int, *, warned: bool) -> None:
    """The limit is raised as far as it may be; where that is too low for MAX_CONNECTIONS, the log says so."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert before[1] == resource.RLIM_INFINITY or before[1] >= hard
    env = {**os.environ, "DB_PATH": str(tmp_path / "vault.db"), "PORT": "0", "JWT_SECRET": "x" * 32}
    with (tmp_path / "stdout").open("wb") as out, (tmp_path / "stderr").open("ab") as err:
        process = processes.Popen(
            ["sh", "-c", f"ulimit -S -n {soft} && ulimit -H -n {hard} && exec {sys.executable} -m strongroom serve"],
            cwd=tmp_path,
            env=env,
            stdout=out,
            stderr=err,
        )
    try:
        until(lambda: "listens" in (tmp_path / "stdout").read_text(), "the server's start")
        limits = Path(f"/proc/{process.pid}/limits").read_text()
        raised = next(line for line in limits.splitlines() if line.startswith("Max open files")).split()[3]
        assert int(raised) >= (soft if warned else 4_000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
    finally:
        process.kill()
        process.wait(20)
    told = [line for line in logged(tmp_path) if "MAX_CONNECTIONS" in line]
    assert bool(told) is warned
    assert not warned or "256" in told[0]
