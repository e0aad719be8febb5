"""A damaged write-ahead log: what the server keeps of it and reports, and where its commits end."""

from __future__ import annotations

import json
from pathlib import Path

import apsw

from tests.kit.faults.damaged_files import FRAME, Service, frames


def kept_logs(service: Service) -> list[Path]:
    """The damaged logs that a server has put aside."""
    return sorted(service.server.home.glob("vault.db-wal.damaged-*"))


def damage_reports(service: Service) -> list[str]:
    """The lines of the log and of standard error that report a damaged log."""
    found = []
    for line in service.server.log().splitlines():
        said = json.loads(line)["message"] if line.startswith("{") and "message" in line else line
        if "was damaged" in said:
            found.append(said)
    return found


def epoch_in_file(service: Service) -> str:
    """The epoch in the database file alone, without what is in its log."""
    connection = apsw.Connection(f"file:{service.database}?immutable=1", apsw.SQLITE_OPEN_READONLY | 0x40)
    [(epoch,)] = connection.execute("SELECT epoch FROM lineage").fetchall()
    connection.close()
    return str(epoch)


def commit_frames(log: Path) -> list[int]:
    """The numbers of the frames that end a commit."""
    whole = log.read_bytes()
    salts = whole[16:24]
    found = []
    for number in range(1, frames(log) + 1):
        head = whole[32 + (number - 1) * FRAME :][:24]
        if head[8:16] == salts and head[4:8] != bytes(4):
            found.append(number)
    return found
