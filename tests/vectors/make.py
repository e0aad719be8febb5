"""Writes the vectors: `python -m tests.vectors.make` from the project's root. The same files every time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.vectors import basics, rings, rows
from tests.vectors.book import Book

HERE = Path(__file__).parent
CHAPTERS = {
    "derivation": basics.derivation,
    "keys": basics.keys,
    "padding": basics.paddings,
    "encoding": basics.encodings,
    "wrapping": rings.wrapping,
    "sealing": rows.sealing,
    "blobs": rows.blobs,
    "memory": rows.memories,
    "names": basics.sealed_names,
    "recovery": basics.recovery_keys,
    "tokens": basics.bundles,
}


def spelled(book: Book) -> str:
    """A chapter as it stands in its file: a line for each case."""
    chapter: dict[str, Any] = book.spelled()
    cases = ",\n".join(json.dumps(case, ensure_ascii=False) for case in chapter.pop("cases"))
    head = json.dumps(chapter, ensure_ascii=False)[:-1]
    return f'{head}, "cases": [\n{cases}\n]}}\n'


if __name__ == "__main__":
    for name, chapter in CHAPTERS.items():
        (HERE / f"{name}.json").write_text(spelled(chapter()), "utf-8")
