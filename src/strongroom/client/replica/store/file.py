"""The replica's SQLite file: the database, and its tables."""

from __future__ import annotations

import os

from strongroom.client.replica.store.database import Database
from strongroom.client.replica.store.documents import DocumentTable
from strongroom.client.replica.store.marks import MarkTable
from strongroom.client.replica.store.outbox import Outbox
from strongroom.client.replica.store.refusals import RefusalTable
from strongroom.client.replica.store.vaults import VaultTable


class File(Database):
    """An open replica file with its tables."""

    def __init__(self, path: str | os.PathLike[str], *, read_only: bool | None = None) -> None:
        super().__init__(path, read_only=read_only)
        self.refusals = RefusalTable(self)
        self.vaults = VaultTable(self)
        self.documents = DocumentTable(self, self.refusals)
        self.marks = MarkTable(self)
        self.outbox = Outbox(self, self.refusals)
