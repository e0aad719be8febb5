"""The floor: what Python could do at best. The same statements, schema and settings, and nothing around them."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from bench.dataset import Dataset
from bench.peers.base import BENCH, PROJECT_BIN, SECRET
from bench.peers.strongroom import accounts_of_store, insert_sqlite
from bench.peers.vault_api import VaultApi


class Floor(VaultApi):
    """A bare ASGI application (floor_app.py) on uvicorn."""

    name = "floor"
    title = "the floor"

    def launch(self) -> None:
        environment = {"JWT_SECRET": SECRET, "DB_PATH": str(self.folder / "floor.db")}
        environment["PYTHONPATH"] = sysconfig.get_path("purelib")  # uvicorn is the benchmark's, not strongroom's
        command: list[str | Path] = [PROJECT_BIN / "python", "-P", BENCH / "peers/floor_app.py"]
        self.host = self.spawn(command, environment, r"listens on http://(\S+)")

    def insert(self, data: Dataset, owner: str) -> None:
        insert_sqlite(self.folder / "floor.db", data, owner)

    def add_accounts(self, count: int) -> list[str]:
        return accounts_of_store(str(self.folder / "floor.db"), count, "floor")
