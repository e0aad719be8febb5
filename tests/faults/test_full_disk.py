"""A full disk refuses writes, keeps answering reads, and recovers when there is space again."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.kit.people.settled import settle_in
from tests.kit.servers.process import Server


def test_a_full_disk_refuses_writes_and_keeps_reading(tmp_path: Path, small_disk: Path) -> None:
    """507 `storage_full` for writes; what was acknowledged can be read; space brings writes back."""
    server = Server(tmp_path / "home", DB_PATH=str(small_disk / "vault.db"), JWT_ACCESS_EXPIRY="1d")
    server.settings.pop("DATABASE_URL", None)
    server.start()
    _, token, vault = settle_in(server)
    http = server.connect(token)
    path = f"/vaults/{vault}/documents"
    try:
        kept = []
        for _ in range(200):
            answer = http.post(path, json={"collection": "c", "data": "A" * 100_000})
            if answer.status_code != 201:
                break
            kept.append(answer.json()["uid"])
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage_full")
        assert len(kept) > 10
        for _ in range(5):
            assert http.post(path, json={"collection": "c", "data": "A" * 100_000}).status_code == 507
            listed = http.get(path)
            assert listed.status_code == 200
            assert [document["uid"] for document in listed.json()["documents"]] == kept
            assert http.get(f"{path}/{kept[0]}").status_code == 200
        subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
        assert http.post(path, json={"collection": "c", "data": "A" * 100_000}).status_code == 201
        assert len(http.get(path).json()["documents"]) == len(kept) + 1
        assert server.end() == 0
    finally:
        server.abandon()
