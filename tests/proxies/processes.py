"""caddy, nginx and haproxy as real processes before a server, with the settings of docs/operating.md."""

from __future__ import annotations

import os
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.programs.debian_programs import environment
from tests.kit.waiting import until

HOST: Final = "vault.example.com"
SERVER: Final = "127.0.0.1:3000"

# How the examples of the page are found, and what of them is replaced: the address that people use, without TLS, and
# the address of the server. Everything else stands as it is on the page. Each rule must apply, once.
PROXIES: Final[dict[str, tuple[str, list[tuple[str, str]]]]] = {
    "caddy": (
        "reverse_proxy",
        [(rf"^{re.escape(HOST)} {{$", f"http://{HOST}:PORT {{"), (re.escape(SERVER), "SERVER")],
    ),
    "nginx": (
        "proxy_pass",
        [
            (r"listen 443 ssl;", "listen 127.0.0.1:PORT;"),
            (r"^ *ssl_certificate .*\n", ""),
            (r"^ *ssl_certificate_key .*\n", ""),
            (re.escape(SERVER), "SERVER"),
        ],
    ),
    "haproxy": (
        "default_backend",
        [(r"bind :443 ssl .*", "bind 127.0.0.1:PORT"), (re.escape(SERVER), "SERVER")],
    ),
}


def example(name: str) -> str:
    """The settings that the page shows for a proxy."""
    mark = PROXIES[name][0]
    shown = [text for _, text in fences(sections(text_of("docs/operating.md"), 2)["Behind a proxy"]) if mark in text]
    assert len(shown) == 1, f"docs/operating.md shows {len(shown)} examples for {name}"
    return shown[0]


def settings(name: str, port: int, server: int) -> str:
    """The example of the page with addresses of this test."""
    text = example(name)
    for pattern, put in PROXIES[name][1]:
        text, times = re.subn(pattern, put, text, flags=re.MULTILINE)
        assert times == 1, f"{pattern!r} stands {times} times in the example for {name}"
    return text.replace("PORT", str(port)).replace("SERVER", f"127.0.0.1:{server}")


def _command(name: str, program: Path, home: Path, text: str) -> list[str]:
    """How a proxy is started in the foreground, with all of its files in `home`."""
    file = home / "settings"
    if name == "caddy":
        file.write_text(f"{{\n\tadmin off\n\tdefault_bind 127.0.0.1\n}}\n{text}")
        return [str(program), "run", "--adapter", "caddyfile", "--config", str(file)]
    if name == "haproxy":
        file.write_text(text)
        return [str(program), "-db", "-f", str(file)]
    user = "user root;\n" if os.geteuid() == 0 else ""
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {home}/{kind};\n" for kind in kinds)
    file.write_text(
        f"{user}daemon off;\npid {home}/pid;\nerror_log {home}/errors;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{temporary}{text}}}\n"
    )
    return [str(program), "-p", str(home), "-e", f"{home}/errors", "-c", str(file)]


@contextmanager
def running(name: str, program: Path, home: Path, server: int) -> Iterator[int]:
    """A proxy before the server at this port; gives the port where it listens."""
    port = free_port()
    with started(name, program, home, settings(name, port, server), port):
        yield port


@contextmanager
def started(name: str, program: Path, home: Path, text: str, port: int) -> Iterator[None]:
    """A proxy with these settings, which make it listen on this port."""
    home.mkdir(parents=True)
    command = _command(name, program, home, text)
    env = environment(program) | {"HOME": str(home), "XDG_DATA_HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    with (home / "said").open("wb") as said:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        until(lambda: _answers(process, port, home), f"{name} to answer")
        yield
    finally:
        if name == "nginx":
            process.terminate()  # which ends its workers too, at once
        else:
            process.kill()  # the others would wait for streams
        process.wait(20)


def _answers(process: subprocess.Popen[bytes], port: int, home: Path) -> bool:
    assert process.poll() is None, (home / "said").read_text(errors="replace")
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as wire:
            wire.sendall(f"GET /health HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode())
            return wire.recv(65_536).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
