"""PgBouncer as a real process before the PostgreSQL of the tests, with the settings of docs/operating.md."""

from __future__ import annotations

import re
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from tests.cluster.machines import put
from tests.kit.documents import fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.programs.debian_programs import environment
from tests.kit.requirements import needed
from tests.kit.servers.postgres import postgres
from tests.kit.waiting import until

KEEPS_STATEMENTS = (1, 21)  # the first release that keeps prepared statements in transaction mode


def shown(mark: str) -> str:
    """The example of the page that has this in it."""
    page = sections(text_of("docs/operating.md"), 2)["PgBouncer"]
    [text] = [text for _, text in fences(page) if mark in text]
    return text


def program() -> Path:
    """PgBouncer; without it the test is skipped."""
    return needed("pgbouncer")


def version() -> tuple[int, int]:
    """The release of PgBouncer that runs here."""
    path = program()
    told = subprocess.run(
        [str(path), "--version"], env=environment(path), capture_output=True, text=True, check=True
    ).stdout
    match = re.search(r"(\d+)\.(\d+)", told)
    assert match
    return int(match[1]), int(match[2])


def settings(databases: dict[str, str], port: int, users: Path, *more: str) -> str:
    """The example of the page, with addresses of this test; and further lines."""
    lines = [
        f"{name} = host={parse_qs(urlsplit(url).query)['host'][0]} port=5432 dbname={urlsplit(url).path[1:]}"
        for name, url in databases.items()
    ]
    text = put(
        shown("[pgbouncer]"),
        (r"strongroom = host=.*", "\n".join(lines)),
        (r"listen_port = 6432", f"listen_port = {port}"),
        (r"auth_type = .*", "auth_type = trust\nunix_socket_dir ="),
        (r"auth_file = .*", f"auth_file = {users}"),
        (r"default_pool_size = 20", "default_pool_size = 3"),  # fewer than clients: sessions are shared at once
    )
    if version() < KEEPS_STATEMENTS:  # as the page says
        text = put(text, (r"max_prepared_statements = .*\n", ""))
    return "\n".join([text, *more, ""])


@contextmanager
def pgbouncer(databases: dict[str, str], *more: str) -> Iterator[str]:
    """PgBouncer before these databases; what an address of it begins with."""
    path, port = program(), free_port()
    with tempfile.TemporaryDirectory(prefix="strongroom-pgbouncer-") as home:
        folder = Path(home)
        postgres().give(folder)
        (folder / "users").write_text('"postgres" ""\n')
        (folder / "ini").write_text(settings(databases, port, folder / "users", *more))
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [str(path), str(folder / "ini")],
                env=environment(path),
                user=postgres().system_user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            until(lambda: _listens(process, port, folder), "PgBouncer to listen")
            yield f"postgresql://postgres@127.0.0.1:{port}"
        finally:
            process.kill()
            process.wait(20)


def _listens(process: subprocess.Popen[bytes], port: int, folder: Path) -> bool:
    assert process.poll() is None, (folder / "log").read_text(errors="replace")
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        return True
    return False
