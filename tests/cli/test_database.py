"""`strongroom db copy`, as an operator types it."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Self

import apsw
import asyncpg
import pytest

from strongroom.cli import terminal
from strongroom.store import open_database
from strongroom.store.postgres.connection import connect
from tests.kit.clock import Clock
from tests.kit.programs import processes
from tests.kit.servers.populated_database import PAIRS, copied_rows_of, drawn_by, fill, live_in
from tests.kit.servers.postgres import postgres

MIB = 1024 * 1024


def command(source: str, target: str) -> list[str]:
    return [sys.executable, "-m", "strongroom", "db", "copy", source, target]


def copy(source: str, target: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return processes.run(command(source, target), cwd=cwd, capture_output=True, text=True, check=False, timeout=120)


def same(one: str, other: str) -> bool:
    return asyncio.run(copied_rows_of(one)) == asyncio.run(copied_rows_of(other))


@pytest.fixture
def lived_in(tmp_path: Path, clock: Clock) -> str:
    """A small service in a file."""
    where = str(tmp_path / "old.db")
    asyncio.run(live_in(where, clock))
    return where


def filled(path: Path, clock: Clock, count: int, size: int) -> str:
    """A large service in a file."""
    asyncio.run(open_database(str(path), clock).close())
    fill(path, count, size)
    return str(path)


def test_it_copies_and_says_what(lived_in: str, tmp_path: Path) -> None:
    """A table of counts on standard output, a word that it was verified, and not a sound on standard error."""
    target = postgres().fresh()
    done = copy(lived_in, target, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["table", "source", "target"]
    counts = {line.split()[0]: line.split()[1:] for line in lines if line}
    assert counts["documents"][0] == counts["documents"][1] != "0"
    assert "verified: every row is the same on both sides." in lines
    assert [line for line in lines if line.startswith("not copied: failures (")]
    assert same(lived_in, target)


def test_an_address_can_stand_in_a_file(lived_in: str, tmp_path: Path) -> None:
    """So that a password need not stand in the list of processes; the help says so."""
    target = postgres().fresh()
    (tmp_path / "target").write_text(f"{target}\n")
    (tmp_path / "source").write_text(lived_in)
    assert copy("@source", "@target", tmp_path).returncode == 0
    assert same(lived_in, target)
    done = copy("@nowhere", "x.db", tmp_path)
    assert done.returncode == 2
    assert done.stderr == "strongroom: Cannot read the file nowhere: No such file or directory.\n"
    told = processes.run([*command("", "")[:-2], "--help"], capture_output=True, text=True, check=True).stdout
    assert "@FILE" in told
    assert "list of processes" in " ".join(told.split())


def test_a_target_that_is_not_empty_is_refused(lived_in: str, tmp_path: Path) -> None:
    """One sentence, exit code 2; also right after a copy that has succeeded."""
    assert copy(lived_in, "new.db", tmp_path).returncode == 0
    done = copy(lived_in, "new.db", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("strongroom: The target (")
    assert "is not empty" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DELETE FROM schema_migrations", "has schema 0, this program has"),
        ("INSERT INTO schema_migrations VALUES (9999, 'later', '', 0)", "install a newer strongroom"),
    ],
    ids=["older", "newer"],
)
def test_another_schema_is_refused(tmp_path: Path, clock: Clock, change: str, says: str) -> None:
    """In a sentence, without a target being made."""
    source = filled(tmp_path / "old.db", clock, 1, 1)
    connection = apsw.Connection(source)
    connection.execute(change)
    connection.close()
    done = copy(source, "new.db", tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(
    "address", ["postgresql://ada:hunter2@127.0.0.1:1/db", "postgresql://ada:hunter2#@127.0.0.1:1/db", "x://hunter2"]
)
def test_a_password_is_not_repeated(lived_in: str, tmp_path: Path, address: str) -> None:
    """Neither of the source nor of the target, whatever is wrong with it."""
    for source, target in ((lived_in, address), (address, lived_in)):
        done = copy(source, target, tmp_path)
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert "hunter2" not in done.stderr + done.stdout


def test_help_loads_nothing_heavy() -> None:
    """The drivers are loaded when there is something to copy."""
    code = (
        "import sys, contextlib, io\n"
        "from strongroom.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['db', 'copy', '--help'])\n"
        "print([name for name in ('strongroom.store', 'apsw', 'asyncpg', 'msgspec', 'asyncio') if name in sys.modules])"
    )
    assert processes.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# Interrupted


class Marks:
    """Looks at the marks of a half copy, again and again, from one connection."""

    def __init__(self, where: str) -> None:
        self._where = where
        self._runner = asyncio.Runner()
        self._connection: Any = self._runner.run(connect(where)) if "://" in where else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._runner.run(self._connection.close())
        self._runner.close()

    @property
    def rows(self) -> int:
        """How many rows they tell of; 0 while there are no marks."""
        statement = "SELECT coalesce(sum(copied), 0) FROM copy_progress"
        if self._connection is not None:
            with suppress(asyncpg.UndefinedTableError):
                return int(self._runner.run(self._connection.fetchval(statement)))
        elif Path(self._where).exists():
            file = apsw.Connection(self._where, flags=apsw.SQLITE_OPEN_READWRITE)
            with closing(file), suppress(apsw.SQLError, apsw.SchemaChangeError, apsw.BusyError):
                return int(str(file.execute(statement).get))
        return 0


def copied(where: str) -> int:
    with Marks(where) as marks:
        return marks.rows


def stop_at(goal: int, source: str, target: str, cwd: Path, how: signal.Signals) -> tuple[int, str]:
    """Start a copy and send it a signal when so many rows are there; its exit code, and what it said."""
    process = processes.Popen(
        command(source, target), cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 60
    with Marks(target if "://" in target else str(cwd / target)) as marks:
        while marks.rows < goal and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    process.send_signal(how)
    said = process.communicate(timeout=60)[0]
    return process.returncode, said


@pytest.mark.parametrize(("source_engine", "target_engine"), PAIRS)
def test_killed_five_times_it_still_arrives(
    tmp_path: Path, clock: Clock, source_engine: str, target_engine: str
) -> None:
    """SIGKILL at five chance moments. Each run goes on where the last one died, and in the end every row is there."""
    count = 2_000
    source = filled(tmp_path / "old.db", clock, count, 20_000)
    if source_engine == "postgres":
        moved = postgres().fresh()
        assert copy(source, moved, tmp_path).returncode == 0
        source = moved
    target = postgres().fresh() if target_engine == "postgres" else str(tmp_path / "new.db")
    before = 0
    for round_ in range(5):
        goal = before + random.Random(round_).randrange(1, count // 10)  # noqa: S311 - a moment, not a secret
        code, said = stop_at(goal, source, target, tmp_path, signal.SIGKILL)
        assert (code, said) == (-signal.SIGKILL, ""), "it was to be killed amid its work, and never to start over"
        now = copied(target)
        assert now >= goal
        before = now
    assert 0 < before < count
    with pytest.raises(Exception, match="half of a copy"):
        open_database(target, clock)
    done = copy(source, target, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "verified" in done.stdout
    assert "starting over" not in done.stdout
    assert same(source, target)
    asyncio.run(open_database(target, clock).close())


@pytest.mark.parametrize("target_engine", ["postgres", "sqlite"])
def test_an_interrupt_is_no_traceback(tmp_path: Path, clock: Clock, target_engine: str) -> None:
    """Ctrl-C says what to do next, and that works."""
    source = filled(tmp_path / "old.db", clock, 1_000, 20_000)
    target = postgres().fresh() if target_engine == "postgres" else str(tmp_path / "new.db")
    code, said = stop_at(1, source, target, tmp_path, signal.SIGINT)
    assert (code, said) == (2, "strongroom: Interrupted; run the same command again to continue.\n")
    assert 0 < copied(target) < 1_000
    assert copy(source, target, tmp_path).returncode == 0
    assert same(source, target)


# Memory


def peak(source: str, target: str, cwd: Path) -> int:
    """The largest memory that a copy has had, in bytes, as the kernel has told the process itself."""
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from strongroom.cli import main\n"
        "assert main(['db', 'copy', *sys.argv[1:]]) == 0\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1])"
    )
    done = processes.run(
        [sys.executable, "-c", code, source, target], cwd=cwd, capture_output=True, text=True, check=True
    )
    return int(done.stdout.splitlines()[-1]) * 1024


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_flat(tmp_path: Path, clock: Clock) -> None:
    """2,000 documents of 50 KB, and three of 6 MiB: in every direction a copy needs little more than an empty one."""
    asyncio.run(open_database(str(tmp_path / "empty.db"), clock).close())
    empty = peak("empty.db", postgres().fresh(), tmp_path)
    source = filled(tmp_path / "old.db", clock, 2_000, 50_000)
    connection = apsw.Connection(source)
    connection.execute("UPDATE documents SET data = ? WHERE uid > '001996'", ("A" * 6 * MIB,))
    connection.close()
    there = postgres().fresh()
    for start, end in ((source, there), (there, "back.db")):
        assert peak(start, end, tmp_path) - empty < 64 * MIB
    assert same(source, str(tmp_path / "back.db"))


# The bar


def test_the_bar_is_drawn_where_somebody_looks_on(lived_in: str, tmp_path: Path) -> None:
    """One line, drawn over and over, and gone at the end."""
    printed, drawn = drawn_by(command(lived_in, "new.db"), tmp_path)
    assert "\r" not in printed
    assert "\n" not in drawn
    steps = drawn.split("\r")[1:]
    assert steps[0].startswith("copying ")
    assert [step for step in steps if step.startswith("verifying ")]
    assert "100 %" in steps[-2]
    assert steps[-1] == "\x1b[K"
    assert max(len(step.removesuffix("\x1b[K")) for step in steps) < 80


@pytest.mark.parametrize(("done", "total", "full"), [(0, 0, 0), (0, 7, 0), (1, 2, 20), (7, 7, 40)])
def test_the_bar_is_as_full_as_the_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], done: int, total: int, full: int
) -> None:
    """Also where there is nothing to do at all; and it is not drawn again when nothing has moved."""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    bar = terminal.Bar()
    for _ in range(2):
        bar.show("copying", done, total)
    drawn = capsys.readouterr().err
    assert drawn.count("\r") == 1
    assert drawn.count("█") == full
    assert f"{done:,} of {total:,} rows" in drawn
