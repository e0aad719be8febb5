"""The QR codes of the web app, read by a decoder that was written from the standard for this test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.kit.browsers.web_app import SOURCE
from tests.kit.clients.javascript import once, run

# Of level M, for each version from 1 to 20: groups of (blocks, all codewords of a block, its data codewords).
_BLOCKS: Final = (
    ((1, 26, 16),), ((1, 44, 28),), ((1, 70, 44),), ((2, 50, 32),), ((2, 67, 43),), ((4, 43, 27),), ((4, 49, 31),),
    ((2, 60, 38), (2, 61, 39)), ((3, 58, 36), (2, 59, 37)), ((4, 69, 43), (1, 70, 44)), ((1, 80, 50), (4, 81, 51)),
    ((6, 58, 36), (2, 59, 37)), ((8, 59, 37), (1, 60, 38)), ((4, 64, 40), (5, 65, 41)), ((5, 65, 41), (5, 66, 42)),
    ((7, 73, 45), (3, 74, 46)), ((10, 74, 46), (1, 75, 47)), ((9, 69, 43), (4, 70, 44)), ((3, 70, 44), (11, 71, 45)),
    ((3, 67, 41), (13, 68, 42)),
)  # fmt: skip
_CENTRES: Final = (
    (), (6, 18), (6, 22), (6, 26), (6, 30), (6, 34), (6, 22, 38), (6, 24, 42), (6, 26, 46), (6, 28, 50), (6, 30, 54),
    (6, 32, 58), (6, 34, 62), (6, 26, 46, 66), (6, 26, 48, 70), (6, 26, 50, 74), (6, 30, 54, 78), (6, 30, 56, 82),
    (6, 30, 58, 86), (6, 34, 62, 90),
)  # fmt: skip
# The fifteen bits of level M with each mask, from the table of the standard.
_FORMATS: Final = (
    *(0b101010000010010, 0b101000100100101, 0b101111001111100, 0b101101101001011),
    *(0b100010111111001, 0b100000011001110, 0b100111110010111, 0b100101010100000),
)
_MASKS: Final[tuple[Callable[[int, int], int], ...]] = (
    lambda i, j: (i + j) % 2,
    lambda i, _: i % 2,
    lambda _, j: j % 3,
    lambda i, j: (i + j) % 3,
    lambda i, j: (i // 2 + j // 3) % 2,
    lambda i, j: i * j % 2 + i * j % 3,
    lambda i, j: (i * j % 2 + i * j % 3) % 2,
    lambda i, j: ((i + j) % 2 + i * j % 3) % 2,
)
_TEXTS: Final = ["a", "otpauth://totp/x", *("otpauth://totp/é" + "aZ9%" * count for count in range(0, 169, 2))]


@pytest.fixture(scope="module")
def codes() -> dict[str, list[str] | None]:
    """The code of each text, as rows of 0 and 1."""

    def make(folder: Path) -> None:
        script = f"""
          import {{ build }} from "esbuild";
          const outfile = "{folder}/qr.mjs";
          await build({{ entryPoints: ["src/account/qr.ts"], bundle: true, format: "esm", outfile }});
          const {{ qrCode }} = await import("{folder}/qr.mjs");
          const {{ writeFileSync }} = await import("node:fs");
          const rows = (text) => qrCode(text)?.map((row) => row.map(Number).join("")) ?? null;
          const made = Object.fromEntries({json.dumps(_TEXTS)}.map((text) => [text, rows(text)]));
          writeFileSync("{folder}/codes.json", JSON.stringify(made));
        """
        run("node", "--input-type=module", "--eval", script, folder=SOURCE)

    found: dict[str, list[str] | None] = json.loads(
        (once("qr", make, packages=SOURCE) / "codes.json").read_text("utf-8")
    )
    return found


def test_every_code_is_read(codes: dict[str, list[str] | None]) -> None:
    """Of every version the text is read, each block is without an error, and what does not fit has no code."""
    versions = set()
    for text, rows in codes.items():
        if rows is None:
            assert len(text.encode()) > 666
            continue
        versions.add((len(rows) - 17) // 4)
        assert _decode(rows) == text
    assert versions >= set(range(2, 21))
    assert None in codes.values()


def _decode(rows: list[str]) -> str:
    size = len(rows)
    version = (size - 17) // 4
    grid = [[cell == "1" for cell in row] for row in rows]
    around = [(8, at) for at in (0, 1, 2, 3, 4, 5, 7, 8)] + [(at, 8) for at in (7, 5, 4, 3, 2, 1, 0)]
    beside = [(size - 1 - at, 8) for at in range(7)] + [(8, size - 8 + at) for at in range(8)]
    spelled = {sum(grid[i][j] << (14 - at) for at, (i, j) in enumerate(places)) for places in (around, beside)}
    assert len(spelled) == 1
    mask = _MASKS[_FORMATS.index(spelled.pop())]
    taken = _patterns(version, size)
    bits = []
    column, upwards = size - 1, True
    while column > 0:
        column -= column == 6
        for i in range(size - 1, -1, -1) if upwards else range(size):
            bits += [grid[i][j] != (mask(i, j) == 0) for j in (column, column - 1) if (i, j) not in taken]
        column, upwards = column - 2, not upwards
    words = [
        sum(bit << (7 - at) for at, bit in enumerate(bits[start : start + 8])) for start in range(0, len(bits) - 7, 8)
    ]
    blocks = [(total, data) for count, total, data in _BLOCKS[version - 1] for _ in range(count)]
    assert len(words) == sum(total for total, _ in blocks)
    parts: list[list[int]] = [[] for _ in blocks]
    rest = iter(words)
    for at in range(max(data for _, data in blocks)):
        for part, (_, data) in zip(parts, blocks, strict=True):
            if at < data:
                part.append(next(rest))
    whole = [word for part in parts for word in part]
    for _ in range(blocks[0][0] - blocks[0][1]):
        for part in parts:
            part.append(next(rest))
    for part, (total, data) in zip(parts, blocks, strict=True):
        assert _is_codeword(part, total - data)
    stream = "".join(f"{word:08b}" for word in whole)
    assert stream[:4] == "0100"
    width = 8 if version < 10 else 16
    length = int(stream[4 : 4 + width], 2)
    start = 4 + width
    return bytes(int(stream[start + 8 * at : start + 8 * at + 8], 2) for at in range(length)).decode()


def _patterns(version: int, size: int) -> set[tuple[int, int]]:
    """The cells that are no data."""
    taken = {(6, at) for at in range(size)} | {(at, 6) for at in range(size)}
    for top, left in ((0, 0), (0, size - 8), (size - 8, 0)):
        taken |= {(top + i, left + j) for i in range(8) for j in range(8)}
    taken |= {(8, at) for at in (*range(9), *range(size - 8, size))} | {
        (at, 8) for at in (*range(9), *range(size - 8, size))
    }
    centres = _CENTRES[version - 1]
    for i in centres:
        for j in centres:
            if (i, j) not in {(6, 6), (6, size - 7), (size - 7, 6)}:
                taken |= {(i + down, j + right) for down in range(-2, 3) for right in range(-2, 3)}
    if version >= 7:
        taken |= {(i, size - 11 + j) for i in range(6) for j in range(3)} | {
            (size - 11 + j, i) for i in range(6) for j in range(3)
        }
    return taken


def _is_codeword(words: list[int], roots: int) -> bool:
    """Whether the polynomial is nought at each root of the generator, in the field of 256 elements."""
    powers = [1]
    for _ in range(254):
        following = powers[-1] << 1
        powers.append(following ^ 0x11D if following > 255 else following)
    logarithms = {power: at for at, power in enumerate(powers)}
    for root in range(roots):
        value = 0
        for word in words:
            value = (powers[(logarithms[value] + root) % 255] if value else 0) ^ word
        if value:
            return False
    return True
