"""PostgreSQL's driver is imported only where the database is PostgreSQL: it takes 29 ms of a start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.programs.command_line import clean_environment

_OPENS = """
from strongroom.store import location_of, open_database
location_of("x.db")
open_database("x.db", lambda: 1).examine()
"""
_MAINTAINS = """
from strongroom.store.maintenance import backup, copy, health, restore, salvage
"""
_SERVES = """
from strongroom import create_server
create_server(db_path="x.db", jwt_secret="x" * 32)
"""


def _runs(*arguments: str) -> str:
    return f"from strongroom.cli import main\ntry:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"


@pytest.mark.parametrize(
    "code",
    [_OPENS, _MAINTAINS, _SERVES, _runs("--help"), _runs("doctor"), _OPENS + _runs("doctor", "--json")],
    ids=["open", "maintenance", "server", "help", "doctor", "doctor of a database"],
)
def test_sqlite_needs_no_driver_of_postgresql(tmp_path: Path, code: str) -> None:
    """A process that opens, serves or examines a SQLite file has not imported asyncpg at its end."""
    ended = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint('asyncpg' in sys.modules)"],
        cwd=tmp_path,
        env=clean_environment(DB_PATH="x.db", JWT_SECRET="x" * 32),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.splitlines()[-1] == "False", ended.stdout + ended.stderr
