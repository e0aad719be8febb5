"""What a restore says at its end fits what was there before it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from strongroom.store import open_database
from tests.kit.programs.command_line import strongroom


def test_what_a_restore_says_of_sessions(tmp_path: Path) -> None:
    """In the place of a service, what was ended since comes back; on a new machine the old secret is the right one."""
    asyncio.run(open_database(str(tmp_path / "vault.db"), lambda: time.time_ns() // 1_000_000).close())
    added = strongroom(tmp_path, "users", "add", "ada@example.com", DB_PATH="vault.db", input="correct horse\n")
    assert added.returncode == 0, added.stderr
    assert strongroom(tmp_path, "backup", "kept.backup", DB_PATH="vault.db").returncode == 0
    replaced = strongroom(tmp_path, "restore", "kept.backup", DB_PATH="vault.db")
    assert replaced.returncode == 0, replaced.stderr
    last = replaced.stdout.splitlines()[-1]
    assert "ended, revoked or changed since" in last
    assert "a new JWT_SECRET ends every session" in last
    made = strongroom(tmp_path, "restore", "--new", "kept.backup", DB_PATH="new.db")
    assert made.returncode == 0, made.stderr
    last = made.stdout.splitlines()[-1]
    assert "with the JWT_SECRET that the service had, users stay logged in" in last
    assert "a new JWT_SECRET" not in last
