"""Runs all rows of a long table within one test: what each test costs by itself would be more than its row."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any


def each_row(
    names: str | tuple[str, ...], rows: Iterable[Any], ids: Callable[[Any], str] | Iterable[str] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Take the place of `pytest.mark.parametrize`, for rows that may share their fixtures; a failure names its row."""
    arguments = (names,) if isinstance(names, str) else names
    table = [(row,) if isinstance(names, str) else tuple(row) for row in rows]
    labels = [str(one) for one in ids] if isinstance(ids, Iterable) else [_label(row, ids) for row in table]

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(test)

        @functools.wraps(test)
        def run(**fixtures: Any) -> None:
            assert table, "a table without rows"
            for label, row in zip(labels, table, strict=True):
                try:
                    test(**fixtures, **dict(zip(arguments, row, strict=True)))
                except BaseException as error:
                    error.add_note(f"in the row {label}")
                    raise

        asked = [one for name, one in signature.parameters.items() if name not in arguments]
        run.__signature__ = signature.replace(parameters=asked)  # type: ignore[attr-defined]
        return run

    return decorate


def _label(row: tuple[Any, ...], spell: Callable[[Any], str] | None) -> str:
    return ", ".join(spell(value) if spell else repr(value)[:200] for value in row)
