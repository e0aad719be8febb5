"""A server that is killed during an import: repeated, the import is complete and exact, and nothing is there twice."""

from __future__ import annotations

import contextlib
import random
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.export.files import LINES, Json, body, came, lines, sealed
from tests.kit.samples import rounds
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until

DOCUMENTS = 4_000
PIECE = 16_384


def a_file() -> bytes:
    """Four vaults, with documents, tombstones and what they were before, all of today: nothing of it is due."""
    now = time.time_ns() // 1_000_000
    written: list[Json] = [
        {
            "kind": "header",
            "format": "strongroom-export",
            "version": 2,
            "id": "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6",
            "epoch": "e",
            "exportedAt": now,
            "clock": now,
        }
    ]
    for v in range(4):
        vault = f"0192f0c1-0000-7000-8000-00000000000{v}"
        made: Json = {"createdAt": 1, "updatedAt": now, "version": 2, "data": "x", "salt": ""}
        written.append({"kind": "vault", "uid": vault, "name": f"vault {v}", **made})
        documents: list[Json] = []
        for n in range(DOCUMENTS // 4):
            document = {
                "kind": "document",
                "uid": f"0192f0c2-{v:04}-7000-8000-{n:012}",
                "vaultUid": vault,
                "collection": "c",
                "version": 2 + n % 2,
                "createdAt": 1,
                "updatedAt": now - DOCUMENTS + n,
                "data": "A" * (200 + n % 400),
            }
            documents.append({**document, "deletedAt": now - DOCUMENTS + n} if n % 5 == 0 else document)
        written += documents
        written += [
            {
                **document,
                "kind": "version",
                "version": 1,
                "updatedAt": n + 1,
                "replacedAt": now - DOCUMENTS + n,
                "deletedAt": None,
            }
            for n, document in enumerate(documents)
            if n % 2
        ]
        blob = {"uid": vault, "version": 1, "updatedAt": 1, "replacedAt": now, "data": "y", "salt": ""}
        written.append({"kind": "blobVersion", **blob})
    return sealed(written)


class Sender(threading.Thread):
    """Sends a file; a connection that breaks is what is tested."""

    def __init__(self, http: httpx2.Client, file: bytes) -> None:
        super().__init__()
        self._http, self._file = http, file
        self.start()

    def _pieces(self) -> Iterator[bytes]:
        for at in range(0, len(self._file), PIECE):
            yield self._file[at : at + PIECE]

    def run(self) -> None:
        """Send it."""
        with contextlib.suppress(httpx2.TransportError):
            self._http.post("/auth/import", content=self._pieces(), headers={"content-type": LINES})


def counted(http: httpx2.Client) -> tuple[Any, Any]:
    """What the account says that it uses, and what it has, counted."""
    found = {"documents": 0, "bytes": 0}
    for vault in http.get("/vault").json()["vaults"]:
        listed = http.get(f"/vaults/{vault['uid']}/documents").json()["documents"]
        found["documents"] += len(listed)
        found["bytes"] += sum(len(document["data"]) for document in listed) + len(vault["data"] + vault["salt"])
    told = http.get("/auth/me").json()["usage"]
    return {name: told[name] for name in found}, found


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_a_killed_import_is_repeated_and_exact(tmp_path: Path, engine: str) -> None:
    """SIGKILL at any point, again and again with the same file: what is counted is there, and in the end all of it."""
    server = Server(tmp_path, JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    if engine == "postgres":
        server.settings["DATABASE_URL"] = postgres().fresh()
    file = a_file()
    try:
        server.start()
        with server.connect() as http:
            account = {"email": "a@b.c", "password": "correct horse"}
            token = http.post("/auth/email/register", json=account).json()["accessToken"]
        held = 0
        for _ in range(rounds(4, 6, "KILLS")):
            sender, http = Sender(server.connect(token), file), server.connect(token)
            enough = min(held + random.randrange(DOCUMENTS // 8), DOCUMENTS // 2)  # noqa: S311
            until(lambda: http.get("/auth/me").json()["usage"]["documents"] > enough, "documents to come in")  # noqa: B023
            server.process.send_signal(signal.SIGKILL)
            server.process.wait()
            sender.join()
            server.disconnect()
            server.start()
            used, found = counted(server.connect(token))
            assert used == found
            assert used["documents"] >= held, "what was stored is gone"
            held = used["documents"]
        http = server.connect(token)
        answer = http.post("/auth/import", content=file, headers={"content-type": LINES})
        assert (answer.status_code, answer.json()) == (200, came(file))
        out = http.get("/auth/export").content
        assert [_plain(line) for line in lines(b"\n".join(body(out)))] == [
            _plain(line) for line in lines(b"\n".join(body(file)))
        ]
        used, found = counted(http)
        assert used == found
        assert server.end() == 0
        assert 0 < held < found["documents"]
        print(f"{engine}: {len(file)} bytes, {held} documents before the last attempt")  # noqa: T201
    finally:
        server.abandon()


def _plain(line: Json) -> Json:
    """A line without what is null."""
    return {name: value for name, value in line.items() if value is not None}
