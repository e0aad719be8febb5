"""Planted faults must be caught for what they do, not because they name something that no longer exists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from strongroom.server.monitoring.log import Log

_STALE = (AttributeError, ImportError, NameError)


@contextmanager
def no_stale_names() -> Iterator[None]:
    """Fail if a server within met a fault of its own because of a name that does not exist."""
    found: list[str] = []
    logged = Log.fault

    def fault(self: Log, error: BaseException, request_id: str) -> None:
        if isinstance(error, _STALE):
            found.append(repr(error))
        logged(self, error, request_id)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Log, "fault", fault)
        yield
    assert not found, f"a planted fault names what does not exist: {found[0]}"
