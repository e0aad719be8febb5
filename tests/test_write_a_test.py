"""The examples of docs/write-a-test.md are tests of this suite, to the letter."""

from __future__ import annotations

import re
import textwrap

from tests.kit.project import ROOT

EXAMPLE = re.compile(r"^`(tests/\w+/test_example\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROWS = re.compile(r"^Rows of `(tests/[\w/]+\.py)`:\n\n```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_page_shows_every_example() -> None:
    """One of each kind; each is run where it stands."""
    shown = dict(EXAMPLE.findall((ROOT / "docs/write-a-test.md").read_text("utf-8")))
    files = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in ROOT.glob("tests/*/test_example.py")}
    assert len(files) == 6
    assert shown == files


def test_the_page_shows_rows_that_are_played() -> None:
    """As they stand in their tables."""
    shown = ROWS.findall((ROOT / "docs/write-a-test.md").read_text("utf-8"))
    assert len(shown) == 2
    for path, rows in shown:
        assert textwrap.indent(rows, "    ") in (ROOT / path).read_text("utf-8"), path
