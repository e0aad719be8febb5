"""The order in which tests begin: the slow ones first, spread over the workers, so that none is left for the end."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from typing import Final

import pytest

# Folders, files and tests that take longest, the longest first. What is missing here is only begun later.
SLOW: Final = (
    "tests/web/",
    "tests/js/test_guide.py",
    "tests/security/test_matrix.py",
    "tests/test_release.py",
    "tests/test_typescript_check.py",
    "tests/operating/test_operating_guide_as_user.py",
    "tests/operating/test_systemd_unit.py",
    "tests/client/test_convergence.py",
    "tests/js/",
    "tests/test_run.py",
    "tests/test_types.py",
    "tests/agent/test_canaries.py",
    "tests/programs/test_canaries.py",
    "tests/faults/",
    "tests/proxies/",
    "tests/upgrade/",
    "tests/client/test_batches.py",
    "tests/sync/",
)
_BROWSERS: Final = 2  # workers that begin with the web app: a browser takes long to start, and much memory


def slow_first(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """All tests, in equal shares for the workers; each share begins with slow ones.

    The slow tests of one file begin in one worker, as they share fixtures.
    """
    ranked = sorted((rank, at) for at, item in enumerate(items) if (rank := _rank(item.nodeid)) < len(SLOW))
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    numbers, browsers = itertools.count(_BROWSERS), itertools.cycle(range(min(_BROWSERS, workers)))
    worker_of = functools.cache(lambda _: next(numbers) % workers)
    for rank, at in ranked:
        shares[next(browsers) if rank == 0 else worker_of(items[at].path)].append(items[at])
    slow = {at for _, at in ranked}
    others = (item for at, item in enumerate(items) if at not in slow)
    size = -(-len(items) // workers)
    filled = [item for share in shares for item in (*share, *itertools.islice(others, max(0, size - len(share))))]
    return [*filled, *others]


def _rank(name: str) -> int:
    return next((rank for rank, prefix in enumerate(SLOW) if name.startswith(prefix)), len(SLOW))
