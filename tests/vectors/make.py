"""Writes the vectors: `python -m tests.vectors.make` from the project's root. The same files every time."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from tests.vectors import basics, contents, passkeys, rings, rows
from tests.vectors.book import Book

HERE = Path(__file__).parent
CHAPTERS = {
    "encoding": basics.encodings,
    "padding": basics.paddings,
    "content": contents.contents,
    "boxes": basics.boxes,
    "derivation": basics.derivation,
    "recovery": basics.recovery_keys,
    "keys": basics.keys,
    "keyrings": rings.keyrings,
    "passkeys": passkeys.passkeys,
    "names": basics.sealed_names,
    "sealing": rows.sealing,
    "parents": rows.lineage,
    "blobs": rows.blobs,
    "tokens": basics.bundles,
    "memory": rows.memories,
}


_LONE: Final = re.compile("[\ud800-\udfff]")  # what UTF-8 cannot hold


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"


def spelled(book: Book) -> str:
    """A chapter as it stands in its file: a line for each case."""
    chapter: dict[str, Any] = book.spelled()
    cases = ",\n".join(_LONE.sub(_escaped, json.dumps(case, ensure_ascii=False)) for case in chapter.pop("cases"))
    head = json.dumps(chapter, ensure_ascii=False)[:-1]
    return f'{head}, "cases": [\n{cases}\n]}}\n'


if __name__ == "__main__":
    for name, chapter in CHAPTERS.items():
        (HERE / f"{name}.json").write_text(spelled(chapter()), "utf-8")
