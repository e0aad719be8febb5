"""However large a file is, the server's memory stays flat, out and in."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from tests.export.files import LINES
from tests.kit.servers.memory import LIMIT, resident
from tests.kit.servers.process import Server

COUNT = 60_000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_a_large_file_takes_little_memory(tmp_path: Path) -> None:
    """60,000 documents of 1 KB, exported and imported: the server grows by less than 32 MiB."""
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    server.start()
    try:
        people = []
        for email in ("a@b.c", "b@b.c"):
            made = server.connect().post("/auth/email/register", json={"email": email, "password": "correct horse"})
            people.append((made.json()["user"]["id"], server.connect(made.json()["accessToken"])))
        (ann, http), (_, other) = people
        vault = http.post("/vault", json={"name": "large"}).json()
        _fill(tmp_path / "vault.db", ann, vault["uid"], vault["updatedAt"])
        http.get(f"/vaults/{vault['uid']}/documents?limit=500")
        before = resident(server.process.pid, "VmRSS")
        with http.stream("GET", "/auth/export") as answer, (tmp_path / "file").open("wb") as file:
            for chunk in answer.iter_bytes():
                file.write(chunk)
        assert (tmp_path / "file").stat().st_size > COUNT * 1024
        with (tmp_path / "file").open("rb") as file:
            came = other.post("/auth/import", content=file, headers={"content-type": LINES}, timeout=120)
        assert (came.status_code, came.json()["documents"]) == (200, COUNT)
        assert resident(server.process.pid, "VmHWM") - before < LIMIT
        assert server.end() == 0
    finally:
        server.abandon()


def _fill(path: Path, user_id: str, vault_uid: str, until: int) -> None:
    """Documents enough, straight into the file."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    with connection:
        connection.executemany(
            "INSERT INTO documents (user_id, uid, vault_uid, collection, data, version, created_at, updated_at)"
            " VALUES (?, ?, ?, 'c', ?, 1, ?, ?)",
            (
                (user_id, f"{n:08}-0000-7000-8000-000000000000", vault_uid, "A" * 1024, until - n, until - n)
                for n in range(COUNT)
            ),
        )
    connection.close()
