"""A table within one test: every row runs, and a failure names its row."""

from __future__ import annotations

import pytest

from tests.kit.rows import each_row


def test_every_row_runs_with_the_fixtures() -> None:
    """In the order of the table; of one column or of several."""
    seen: list[object] = []

    @each_row(("one", "two"), [(1, 2), (3, 4)])
    def several(fixture: str, one: int, two: int) -> None:
        seen.append((fixture, one, two))

    @each_row("row", ["a", ("b", "c")])
    def single(row: object) -> None:
        seen.append(row)

    several(fixture="x")
    single()
    assert seen == [("x", 1, 2), ("x", 3, 4), "a", ("b", "c")]


def test_a_failure_names_its_row() -> None:
    """By its id where there is one, else by its values; also where an exception was expected and did not come."""

    @each_row("value", [1, 2], ids=["first", "second"])
    def fails(value: int) -> None:
        assert value == 1

    with pytest.raises(AssertionError) as caught:
        fails()
    assert caught.value.__notes__ == ["in the row second"]

    @each_row("value", ["0", "x"])
    def expects(value: str) -> None:
        with pytest.raises(ValueError, match="invalid literal"):
            int(value)

    with pytest.raises(pytest.fail.Exception) as missed:
        expects()
    assert missed.value.__notes__ == ["in the row '0'"]


def test_a_table_without_rows_fails() -> None:
    """Nothing would be tested."""

    @each_row("value", [])
    def never(value: int) -> None:
        """Not called."""

    with pytest.raises(AssertionError, match="a table without rows"):
        never()
