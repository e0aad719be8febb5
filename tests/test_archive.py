"""An archive gives back what was put in, and nothing that has changed on the way."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from typing import Any

import pyrage
import pytest

from strongroom import sealing
from strongroom.archive import BadArchive, Manifest, Reader, TableInfo, Writer

Rows = list[tuple[Any, ...]]
TABLES: dict[str, Rows] = {
    "people": [("a", None, 2**63 - 1), ("any\x00text \N{GRINNING FACE}", "", -(2**63))],
    "empty": [],
    "things": [(n, "x" * n) for n in range(5)],
}


def manifest(**tables: Rows) -> Manifest:
    listed = tuple(
        TableInfo(name, tuple(f"c{n}" for n in range(len(rows[0]) if rows else 1)), len(rows))
        for name, rows in tables.items()
    )
    return Manifest("1.2.3", "sqlite", 5, "epoch", 3, {"1": "x"}, listed)


def write(sink: Any, pages: int = 2) -> str:
    out = Writer(sink, manifest(**TABLES))
    for place, rows in enumerate(TABLES.values()):
        for page in _batched(rows, pages):
            out.rows(place, page)
    return out.end()


def _batched(rows: Rows, size: int) -> list[Rows]:
    return [rows[at : at + size] for at in range(0, len(rows), size)]


def read(source: Any) -> tuple[dict[str, Rows], str]:
    reader = Reader(source)
    found: dict[str, Rows] = {table.name: [] for table in reader.manifest.tables}
    for name, page in reader.pages():
        found[name] += page
    return found, reader.checksum


@pytest.fixture
def whole() -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def test_it_gives_back_what_it_took(whole: bytes) -> None:
    """Every value of every row, and the checksum that the writer told."""
    assert read(io.BytesIO(whole)) == (TABLES, write(io.BytesIO()))
    assert Reader(io.BytesIO(whole)).manifest == manifest(**TABLES)


def test_a_flipped_bit_is_refused_wherever_it_is(whole: bytes) -> None:
    """Each of them, one at a time."""
    for at, bit in itertools.product(range(len(whole)), range(8)):
        bad = bytearray(whole)
        bad[at] ^= 1 << bit
        with pytest.raises(BadArchive):
            read(io.BytesIO(bad))


def test_a_part_is_refused_and_so_is_more(whole: bytes) -> None:
    """Cut off anywhere, or with a byte after its end."""
    for size in range(len(whole)):
        with pytest.raises(BadArchive):
            read(io.BytesIO(whole[:size]))
    with pytest.raises(BadArchive, match="follows its end"):
        read(io.BytesIO(whole + b"\0"))


def test_a_wrong_length_is_not_believed(whole: bytes) -> None:
    """A flipped bit in a length does not make it read gigabytes into memory before it is noticed."""
    asked: list[int] = []

    class Wary(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            asked.append(size or 0)
            return super().read(size)

    bad = bytearray(whole)
    bad[whole.index(b"\n") + 2] ^= 0x40
    with pytest.raises(BadArchive):
        read(Wary(bytes(bad)))
    assert max(asked) < len(whole)


def blocks(whole: bytes) -> list[bytes]:
    """The blocks after the first line."""
    found, at = [], whole.index(b"\n") + 1
    while at < len(whole):
        size = 9 + int.from_bytes(whole[at + 1 : at + 5]) + 32
        found.append(whole[at : at + size])
        at += size
    return found


def test_blocks_keep_their_order(whole: bytes) -> None:
    """Two that changed places, one that is left out, one that comes twice: each is sound by itself."""
    line, parts = whole[: whole.index(b"\n") + 1], blocks(whole)
    assert line + b"".join(parts) == whole
    for bad in (
        [parts[0], parts[2], parts[1], *parts[3:]],
        [parts[0], *parts[2:]],
        [parts[0], parts[1], *parts[1:]],
        [parts[0], parts[-1]],
    ):
        with pytest.raises(BadArchive):
            read(io.BytesIO(line + b"".join(bad)))


def test_rows_that_the_manifest_does_not_promise_are_refused() -> None:
    """One too many, one too few, one that is too short, one of a table that is not there."""
    wanted: list[Callable[[Writer], None]] = [
        lambda out: out.rows(0, [("a",), ("b",)]),
        lambda _: None,
        lambda out: out.rows(0, [()]),
        lambda out: out.rows(1, [("a",)]),
    ]
    for act in wanted:
        file = io.BytesIO()
        out = Writer(file, manifest(one=[("a",)]))
        act(out)
        out.end()
        file.seek(0)
        with pytest.raises(BadArchive):
            read(file)


def test_a_later_form_and_a_stranger_are_told_apart() -> None:
    """The one asks for a newer release, the other is nothing of ours."""
    with pytest.raises(BadArchive, match="newer strongroom"):
        Reader(io.BytesIO(b"strongroom archive 2\nwhatever"))
    with pytest.raises(BadArchive, match="not an archive"):
        Reader(io.BytesIO(b"PK\3\4 somebody's holiday"))


# Encrypted


@pytest.fixture
def light(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is derived at once: what is tried is what it encrypts."""
    for name, value in (("_MEMORY", 32), ("_PASSES", 1), ("CHUNK", 100)):
        monkeypatch.setattr(sealing, name, value)


def sealed(passphrase: str) -> bytes:
    file = io.BytesIO()
    sealer = sealing.Sealer(file, passphrase)
    write(sealer)
    sealer.close()
    return file.getvalue()


def unsealed(data: bytes, passphrase: str) -> Any:
    file = io.BytesIO(data)
    assert file.readline() == sealing.MAGIC
    return read(sealing.Opener(file, passphrase))[0]


@pytest.mark.usefixtures("light")
def test_a_passphrase_opens_what_it_has_sealed(whole: bytes) -> None:
    """And no other does; nothing of the archive shows."""
    data = sealed("sesame")
    assert unsealed(data, "sesame") == TABLES
    assert data != sealed("sesame")
    assert b"people" in whole
    assert b"people" not in data
    with pytest.raises(BadArchive, match="passphrase is wrong"):
        unsealed(data, "Sesame")


@pytest.mark.usefixtures("light")
def test_a_sealed_archive_that_was_changed_is_refused() -> None:
    """A bit of every byte, and every length; also where a cut falls between two chunks."""
    data = sealed("sesame")
    start = len(sealing.MAGIC)
    for at in range(start, len(data)):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        with pytest.raises(BadArchive):
            unsealed(bytes(bad), "sesame")
    for size in range(start, len(data)):
        with pytest.raises(BadArchive):
            unsealed(data[:size], "sesame")
    with pytest.raises(BadArchive):
        unsealed(data + b"\0", "sesame")


@pytest.mark.usefixtures("light")
def test_chunks_that_are_cut_off_are_missed_by_the_seal_itself() -> None:
    """Whatever it holds: the chunk that is last now does not say that it is."""
    file = io.BytesIO()
    sealer = sealing.Sealer(file, "x")
    sealer.write(bytes(1_000))
    sealer.close()
    for chunks in range(1, 10):
        head = len(sealing.MAGIC) + sealing._HEAD.size + 4
        cut = io.BytesIO(file.getvalue()[: head + chunks * 116])
        cut.seek(len(sealing.MAGIC))
        with pytest.raises(BadArchive):
            sealing.Opener(cut, "x").read(10_000)


@pytest.mark.usefixtures("light")
def test_what_is_written_in_small_and_large_pieces_is_the_same() -> None:
    """Around the size of a chunk, too, where the last one is full or empty."""
    for size in (0, 1, 99, 100, 101, 200, 1_000):
        file = io.BytesIO()
        sealer = sealing.Sealer(file, "x")
        for at in range(0, size, 7):
            sealer.write(bytes(min(7, size - at)))
        sealer.close()
        file.seek(len(sealing.MAGIC))
        assert sealing.Opener(file, "x").read(10_000) == bytes(size)


def test_the_key_of_a_passphrase_costs_work() -> None:
    """What somebody must spend who tries passphrases: 64 MiB and three passes each."""
    file = io.BytesIO()
    sealing.Sealer(file, "x")
    head = file.getvalue()[len(sealing.MAGIC) :]
    assert sealing._HEAD.unpack(head[:-4])[2:] == (65_536, 3, 4)


def test_an_age_identity_opens_what_its_recipient_has_sealed() -> None:
    """The file is an age file as any age tool reads it; no other identity opens it, nor is a changed one read."""
    key, other = pyrage.x25519.Identity.generate(), pyrage.x25519.Identity.generate()
    file = io.BytesIO()
    sealer = sealing.AgeSealer(file, [str(key.to_public())])
    write(sealer)
    sealer.close()
    data = file.getvalue()
    assert read(io.BytesIO(pyrage.decrypt(data, [key])))[0] == TABLES

    def opened(data: bytes, identity: Any) -> Any:
        source = io.BytesIO(data)
        assert source.readline() == sealing.AGE_MAGIC
        opener = sealing.AgeOpener(source, f"# mine\n{identity}\n")
        try:
            return read(opener)[0]
        finally:
            opener.close()

    assert opened(data, key) == TABLES
    with pytest.raises(BadArchive):
        opened(data, other)
    for at in range(len(sealing.AGE_MAGIC), len(data), 13):
        bad = bytearray(data)
        bad[at] ^= 1 << at % 8
        with pytest.raises(BadArchive):
            opened(bytes(bad), key)
    with pytest.raises(BadArchive):
        opened(data[:-1], key)
    with pytest.raises(sealing.CannotSeal, match="not an age recipient"):
        sealing.AgeSealer(file, ["age1nonsense"])
    with pytest.raises(sealing.CannotSeal, match="no age identity"):
        sealing.AgeOpener(file, "nonsense")
    with pytest.raises(sealing.CannotSeal, match="no line"):
        sealing.AgeOpener(file, "\n")
