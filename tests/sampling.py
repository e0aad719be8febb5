"""Some of many, where all of them take long: every fourth in `make test`, all in `make soak`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")
LONG = bool(os.environ.get("SOAK"))


def some(of: Iterable[T]) -> list[T]:
    """Every fourth; all of them where there is time."""
    return list(of)[:: 1 if LONG else 4]
