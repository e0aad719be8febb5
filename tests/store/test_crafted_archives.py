"""A forged archive, with checksums that fit, is refused with a sentence, and nothing is replaced."""

from __future__ import annotations

import asyncio
import hashlib
import io
import struct
import tracemalloc
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from strongroom import archive, sealing
from strongroom.archive import Manifest, Reader, Row, Writer
from strongroom.cli import main
from strongroom.store.maintenance.backup import backup
from strongroom.store.postgres.connection import connect
from tests.kit.clock import START, Clock
from tests.kit.samples import chosen
from tests.kit.servers.populated_database import live_in, rows_of
from tests.kit.servers.silent_watcher import SilentWatcher

MIB = 1024 * 1024
STEP = 83  # of the values; it meets every strange value, and others in each column
LONG_STEP = 11
STRANGE: tuple[Any, ...] = (
    *([1], [], {"a": 1}, {}, [[[[]]]], b"bytes", 1.5, float("inf"), float("nan"), True, 2**63, 2**64 - 1, -(2**63)),
    *("text", "", "a\0b", "\N{GRINNING FACE}", "9" * 5_000, 7, -1, None),
)


class Original(NamedTuple):
    """A real archive, to be changed."""

    manifest: Manifest
    pages: list[tuple[int, list[Row]]]


async def original(where: str, clock: Clock) -> Original:
    """The archive of a service with rows in every table."""
    await live_in(where, clock)
    file = io.BytesIO()
    await backup(where, file, "1.2.3", START, SilentWatcher())
    reader = Reader(io.BytesIO(file.getvalue()))
    places = [table.name for table in reader.manifest.tables]
    return Original(reader.manifest, [(places.index(name), _short(page)) for name, page in reader.pages()])


def _short(page: list[Row]) -> list[Row]:
    """The same rows without large texts: they are written very often."""
    return [tuple(value[:100] if isinstance(value, str) else value for value in row) for row in page]


def written(manifest: Any, pages: list[tuple[int, Any]], *blocks: tuple[bytes, bytes]) -> bytes:
    """An archive of these rows and blocks, rightly checksummed."""
    file = io.BytesIO()
    out = Writer(file, manifest)
    for place, page in pages:
        out.rows(place, page)
    for kind, payload in blocks:
        out._block(kind, payload)
    out.end()
    return file.getvalue()


def changed(real: Original) -> Iterator[tuple[str, list[tuple[int, Any]]]]:
    """One value of one row of each table and column, replaced by each strange one: its name, and all rows."""
    for number, (place, page) in enumerate(real.pages):
        table = real.manifest.tables[place]
        for column, name in enumerate(table.columns):
            for value in STRANGE:
                row = (*page[0][:column], value, *page[0][column + 1 :])
                pages = [*real.pages[:number], (place, [row, *page[1:]]), *real.pages[number + 1 :]]
                yield f"{table.name}.{name} = {value!r:.20}", pages


def of_values(real: Original) -> Iterator[tuple[str, bytes]]:
    """Some of them, more in `make soak`."""
    every = list(changed(real))
    for name, pages in chosen("values of crafted archives", every[::LONG_STEP], every[::STEP]):
        yield name, written(real.manifest, pages)


def of_rows(real: Original) -> Iterator[tuple[str, bytes]]:
    """Rows that fit no table, or one of them twice."""
    place, page = real.pages[0]
    tables = list(real.manifest.tables)
    tables[place] = msgspec.structs.replace(tables[place], rows=tables[place].rows + 1)
    more = msgspec.structs.replace(real.manifest, tables=tuple(tables))
    yield "a row twice", written(more, [*real.pages, (place, page[:1])])
    yield "a row too short", written(more, [*real.pages, (place, [page[0][:-1]])])
    yield "a row that is no list", written(more, [*real.pages, (place, [7])])
    yield "a row that is a text", written(more, [*real.pages, (place, ["x" * len(page[0])])])
    for wrong in (-1, len(tables), 2**62):
        yield f"table {wrong}", written(more, [*real.pages, (wrong, page[:1])])
    yield "rows before those that they refer to", written(real.manifest, real.pages[::-1])


def of_manifests(real: Original) -> Iterator[tuple[str, bytes]]:
    """Manifests that make no sense."""
    first = real.manifest.tables[0]
    change = msgspec.structs.replace
    for rows in (-1, 2**63, 10**30, True, "1", None, 1e308):
        odd = change(first, rows=rows)
        yield f"{rows!r} rows", written(change(real.manifest, tables=(odd, *real.manifest.tables[1:])), real.pages)
    for moment in (-1, 2**63, 10**30, 1e308, None, 253_402_300_800_000):
        yield f"made at {moment!r}", written(change(real.manifest, created_at=moment), real.pages)
    for schema in (-1, 0, 10**6, 10**30):
        yield f"schema {schema}", written(change(real.manifest, schema=schema), real.pages)
    for field in ("program", "engine", "epoch"):
        yield f"{field} that clears the screen", written(change(real.manifest, **{field: "\x1b[2J"}), real.pages)
        yield f"a long {field}", written(change(real.manifest, **{field: "x" * MIB}), real.pages)
    yield "no steps", written(change(real.manifest, steps={}), real.pages)
    yield "no tables", written(change(real.manifest, tables=()), real.pages)
    yield (
        "an unknown table",
        written(change(real.manifest, tables=(change(first, name="x; DROP"), *real.manifest.tables)), []),
    )
    yield (
        "an unknown column",
        written(
            change(real.manifest, tables=(change(first, columns=(*first.columns, "x")), *real.manifest.tables[1:])), []
        ),
    )
    many = tuple(change(first, name=f"table{number}") for number in range(100_000))
    yield "many tables", written(change(real.manifest, tables=many), [])


def of_blocks(real: Original) -> Iterator[tuple[str, bytes]]:
    """Blocks that decoders dislike."""
    head = archive.MAGIC
    for name, kind, payload in (
        ("deep rows", b"R", b"\x91" * 100_000),
        ("deep values", b"R", b"\x92\x00\x91\x91" + b"\x91" * 100_000 + b"\x00"),
        ("deep maps", b"R", b"\x92\x00\x91\x91" + b"\x81\x00" * 100_000 + b"\x00"),
        ("a list that says it is long", b"R", b"\x92\x00\xdd\xff\xff\xff\xff"),
        ("a text that says it is long", b"R", b"\x92\x00\x91\x91\xdb\xff\xff\xff\xff"),
        ("no UTF-8", b"R", b"\x92\x00\x91\x91\xa2\xff\xfe"),
        ("a surrogate", b"R", b"\x92\x00\x91\x91\xa3\xed\xa0\x80"),
        ("an extension", b"R", b"\x92\x00\x91\x91\xd4\x05\x00"),
        ("a time", b"R", b"\x92\x00\x91\x91\xd6\xff\x00\x00\x00\x00"),
        ("nothing", b"R", b""),
        ("another manifest", b"M", msgspec.json.encode(real.manifest)),
        ("an unknown kind", b"Z", b""),
        ("an early end", b"E", b'{"rows":0,"blocks":1}'),
        ("a deep end", b"E", b'{"a":' + b"[" * 100_000),
    ):
        yield name, written(real.manifest, real.pages, (kind, payload))
    for name, payload in (
        ("a deep manifest", b'{"a":' + b"[" * 100_000),
        ("a manifest with a lone surrogate", b'{"program":"\\ud800"}'),
        ("a manifest that is a list", b"[]"),
        ("an empty manifest", b""),
        ("a manifest of digits", b'{"created_at":' + b"9" * MIB + b"}"),
    ):
        digest = archive._head(b"M", len(payload))
        chain = archive._next(hashlib.sha256(head).digest(), digest, payload)
        yield name, head + digest + payload + chain
    for length in (2**32 - 1, 2**31, 2**30 + 1, 2**30):
        yield f"a block of {length} bytes", head + archive._head(b"M", length) + b"x" * 100


@pytest.fixture
def real(where: str, clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Original:
    """A service, its archive, and the settings of the commands."""
    for name in ("JWT_SECRET", "DATABASE_URL", "DB_PATH", "BACKUP_PASSPHRASE", "BACKUP_RECIPIENT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DATABASE_URL" if "://" in where else "DB_PATH", where)
    monkeypatch.chdir(tmp_path)
    return asyncio.run(original(where, clock))


def refusal_sentence(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """The one sentence of a command that was refused; empty if it was not."""
    capsys.readouterr()
    code = main([*command])
    said = capsys.readouterr()
    if code == 0:
        return ""
    assert code in {1, 2}, said.err
    assert said.err.count("\n") == 1, said.err
    assert said.err.isprintable() or said.err.rstrip("\n").isprintable(), said.err
    return said.err


async def forget_what_was_kept(where: str) -> None:
    """Remove what a restore has set aside: with a thousand of them each restore takes longer than the one before."""
    if "://" not in where:
        for path in Path(where).parent.glob("*.before-*"):
            path.unlink()
        return
    connection = await connect(where)
    for (kept,) in await connection.fetch("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'strongroom_before_%'"):
        await connection.execute(f"DROP SCHEMA {kept} CASCADE")
    await connection.close()


@pytest.mark.parametrize(
    ("crafted", "where"),
    [
        pytest.param(crafted, engine, id=f"{crafted.__name__}-{engine}")
        for crafted in (of_values, of_rows, of_manifests, of_blocks)
        for engine in ("sqlite", "postgres")
    ],
    indirect=["where"],
)
def test_a_crafted_archive_is_refused_in_a_sentence(
    crafted: Any, real: Original, where: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every one is refused and leaves everything as it was, or is an archive and is restored as it says."""
    before, taken, tried = asyncio.run(rows_of(where)), list[str](), 0
    for name, data in crafted(real):
        tried += 1
        (tmp_path / "crafted").write_bytes(data)
        refusal_sentence(capsys, "backup", "--verify", "crafted")
        if refusal_sentence(capsys, "restore", "crafted"):
            assert asyncio.run(rows_of(where)) == before, name
        else:
            taken.append(name)
            asyncio.run(forget_what_was_kept(where))
            before = asyncio.run(rows_of(where))
    assert tried >= 8
    assert len(taken) <= (tried // 2 if crafted is of_values else 0), taken


def test_a_value_is_of_the_kind_of_its_column(
    real: Original, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No engine is relied on for it: SQLite would keep a text where a number belongs."""
    for name, pages in changed(real):
        column, _, value = name.partition(" = ")
        if column == "users.created_at" and value[0] in "'[{b1iTn":
            (tmp_path / "crafted").write_bytes(written(real.manifest, pages))
            said = refusal_sentence(capsys, "restore", "crafted")
            assert said == "" if value == "7" else "damaged" in said, name


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_block_costs_no_more_memory_than_the_file_has(real: Original, tmp_path: Path) -> None:
    """One that claims up to 4 GiB, the first or a later one, is read no further than there is something to read."""
    first = [data for name, data in of_blocks(real) if name.startswith("a block of")]
    opened = io.BytesIO()
    Writer(opened, real.manifest)
    later = [opened.getvalue() + archive._head(b"R", length) + b"x" * 100 for length in (2**32 - 1, 2**30)]
    for data in (*first, *later):
        (tmp_path / "crafted").write_bytes(data)
        tracemalloc.start()
        try:
            with (tmp_path / "crafted").open("rb") as file, pytest.raises(archive.BadArchive):
                list(Reader(file).pages())
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert most < 8 * MIB


@pytest.mark.parametrize("figures", [(2**32 - 1, 3, 4), (65_536, 2**32 - 1, 4), (65_536, 3, 2**32 - 1), (0, 0, 0)])
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_a_sealed_archive_cannot_ask_for_absurd_work(
    real: Original,
    tmp_path: Path,
    figures: tuple[int, int, int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither memory nor time."""
    assert real
    monkeypatch.setenv("BACKUP_PASSPHRASE", "open sesame")
    for memory, passes, lanes in (figures, (1_048_576, 64, 64), (8, 1, 1_000), (1, 1, 1)):
        body = struct.pack(">16s7sIII", b"s" * 16, b"p" * 7, memory, passes, lanes)
        (tmp_path / "crafted").write_bytes(sealing.MAGIC + body + zlib.crc32(body).to_bytes(4) + b"x" * 100)
        assert refusal_sentence(capsys, "restore", "crafted")
