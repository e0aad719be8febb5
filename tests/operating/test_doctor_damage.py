"""The doctor says where a file is damaged, each damage once, and what to do about it; a server that refuses too."""

from __future__ import annotations

import random
import re
import shutil
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from tests.kit.faults.damaged_files import Service, command

PAGE = 4096
DOCUMENTS = 300


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    service = Service(tmp_path_factory.mktemp("template") / "home")
    service.start()
    service.write(DOCUMENTS, random.Random(1), 900)  # noqa: S311
    assert service.server.end() == 0
    return service.database


@pytest.fixture
def database(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "vault.db"))


def pages_of(path: Path, name: str) -> list[int]:
    """The pages of a table or an index; its root is the first."""
    connection = apsw.Connection(str(path))
    rows = connection.execute("SELECT pageno FROM dbstat WHERE name = ? ORDER BY path", (name,)).fetchall()
    connection.close()
    return [int(str(page)) for (page,) in rows]


def overwrite(path: Path, *pages: int, content: bytes = b"\x5a" * PAGE) -> None:
    with path.open("rb+") as file:
        for page in pages:
            file.seek((page - 1) * PAGE)
            file.write(content)


def faults(database: Path) -> list[dict[str, Any]]:
    """The faults that the doctor finds in the database."""
    told = command(database.parent, "doctor", "--json")
    assert told.returncode == 1, told.stderr
    findings: list[dict[str, Any]] = msgspec.json.decode(told.stdout)["findings"]
    return [one for one in findings if one["verdict"] == "fault"]


def the_fault(database: Path) -> str:
    """What the doctor says of damage, which it says once, with what to do."""
    [told] = faults(database)
    assert told["check"] == "integrity"
    assert "strongroom restore FILE" in told["todo"]
    assert "strongroom salvage" in told["todo"]
    says: str = told["says"]
    return says


@pytest.mark.parametrize("content", [b"\x5a" * PAGE, bytes(PAGE)], ids=["garbage", "zeros"])
@pytest.mark.parametrize("count", [1, 3])
def test_damaged_pages_of_a_table(database: Path, count: int, content: bytes) -> None:
    """The table, how many of its pages, and how many of its rows cannot be read; its indexes are not blamed."""
    overwrite(database, *pages_of(database, "documents")[40 : 40 + count], content=content)
    said = the_fault(database)
    pages = "1 page" if count == 1 else f"{count} pages"
    found = re.search(rf"{pages} of table documents, where (\d+) of {DOCUMENTS} rows cannot be read\.$", said)
    assert found, said
    assert 1 <= int(found[1]) <= 20 * count
    assert "index" not in said


def test_a_damaged_index_costs_no_row(database: Path) -> None:
    """An index is named, and its table is not."""
    overwrite(database, pages_of(database, "documents_by_time")[-1])
    assert the_fault(database).endswith("damaged: 1 page of index documents_by_time.")


def test_a_table_and_an_index_are_both_named(database: Path) -> None:
    """Rows are counted by an index that is whole."""
    overwrite(database, pages_of(database, "documents_by_time")[-1], pages_of(database, "documents")[0])
    said = the_fault(database)
    assert f"1 page of table documents, where {DOCUMENTS} of {DOCUMENTS} rows cannot be read" in said
    assert "1 page of index documents_by_time" in said


def test_a_file_that_was_cut_off(database: Path) -> None:
    """How much of it is there."""
    pages = database.stat().st_size // PAGE
    with database.open("rb+") as file:
        file.truncate(PAGE * (pages // 2))
    said = the_fault(database)
    assert f"{pages // 2} of its {pages} pages" in said or "of table documents" in said, said


def test_a_file_whose_schema_or_beginning_cannot_be_read(database: Path) -> None:
    """Nothing can be said of tables then; the damage is told of once all the same."""
    overwrite(database, pages_of(database, "sqlite_schema")[-1])
    assert "the schema" in the_fault(database)
    overwrite(database, 1)
    assert "not a database of strongroom" in the_fault(database)


def test_an_index_that_lacks_an_entry(database: Path) -> None:
    """Every page is sound, and the index is not: it is named."""
    connection = apsw.Connection(str(database))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    index = "documents_by_time"
    [(sql,)] = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (index,)).fetchall()
    change = "UPDATE sqlite_schema SET sql = ? WHERE name = ?"
    connection.execute(change, (f"{sql} WHERE 0", index))
    connection.close()
    connection = apsw.Connection(str(database))
    connection.execute("DELETE FROM documents WHERE rowid = 7")
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("PRAGMA writable_schema = ON").fetchall()
    connection.execute(change, (sql, index))
    connection.close()
    assert the_fault(database).endswith(f"damaged: index {index}.")


@pytest.mark.parametrize("name", ["documents", "documents_by_time"])
def test_a_server_that_refuses_names_both_ways(database: Path, name: str) -> None:
    """With exit code 2: restore, and salvage where there is no backup."""
    overwrite(database, pages_of(database, name)[-1])
    done = command(database.parent, "serve", "--port", "0")
    assert done.returncode == 2
    assert "strongroom restore FILE" in done.stderr
    assert "strongroom salvage" in done.stderr
    overwrite(database, 1)
    done = command(database.parent, "serve", "--port", "0")
    assert done.returncode == 2
    assert "strongroom salvage" in done.stderr


def test_a_sound_file_has_no_fault(database: Path) -> None:
    """The planted faults above are what turns it red."""
    told = command(database.parent, "doctor", "--json")
    assert told.returncode == 0, told.stdout
    assert "Every page and every index of the database is sound." in told.stdout
