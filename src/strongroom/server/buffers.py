"""A memory budget for buffers: responses that clients do not take, and requests that they do not finish."""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from typing import Final, Protocol

from strongroom.errors import Unavailable

UNAUTHENTICATED_BYTES: Final = 8 * 1024 * 1024  # of request bodies of callers without a token, all together
FREE_BYTES: Final = 4 * 1024  # of each body that are not counted: no honest login is larger
_BACK_TO: Final = 0.875  # of the limit is cut to, so that the next byte does not cut again


class Holder(Protocol):
    """A connection, as the budget uses it."""

    @property
    def held_bytes(self) -> int:
        """The bytes of its buffers."""

    @property
    def owner(self) -> str:
        """The account, or else the address, that the buffers belong to."""

    @property
    def is_busy(self) -> bool:
        """Whether its request is running: to cut it would free nothing."""

    def abort(self) -> None:
        """Cut the connection."""


class BufferBudget:
    """Bounds the bytes that all connections of a process hold. Beyond the limit, the owner with the most is cut.

    What is held is measured a few times a second; what grows in between is added.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.unauthenticated = 0  # bytes of bodies that came without a token and are not complete
        self.cut = 0  # connections that were cut
        self._holders: dict[Holder, None] = {}  # in the order in which they came
        self._held = 0

    @property
    def held(self) -> int:
        """The bytes of all buffers, as of the last measurement."""
        return self._held

    def add(self, holder: Holder) -> None:
        """Include a connection."""
        self._holders[holder] = None

    def remove(self, holder: Holder) -> None:
        """Exclude a connection."""
        self._holders.pop(holder, None)

    def grow(self, size: int) -> None:
        """Count bytes that were added to some buffer."""
        self._held += size
        if self._held > self.limit:
            self.enforce()

    def enforce(self, wanted: int = 0, asking: str | None = None) -> None:
        """Measure, and cut connections until `wanted` more bytes fit: the oldest of the owner that holds the most.

        No connection is cut in favour of an owner that would hold more itself.
        """
        held = {holder: size for holder in self._holders if (size := holder.held_bytes)}
        self._held = sum(held.values())
        if self._held + wanted <= self.limit:
            return
        owned: defaultdict[str, deque[tuple[Holder, int]]] = defaultdict(deque)
        totals: defaultdict[str, int] = defaultdict(int)
        for holder, size in held.items():
            totals[holder.owner] += size
            if not holder.is_busy:
                owned[holder.owner].append((holder, size))
        room = max(0, int(self.limit * _BACK_TO) - wanted)
        own = 0 if asking is None else totals[asking] + wanted
        heap = [(-totals[owner], owner) for owner in owned]
        heapq.heapify(heap)
        while self._held > room and heap and -heap[0][0] > own:
            total, owner = heapq.heappop(heap)
            victim, size = owned[owner].popleft()
            if owned[owner]:
                heapq.heappush(heap, (total + size, owner))
            self._held -= size
            self.cut += 1
            victim.abort()

    def reserve(self, size: int, owner: str) -> None:
        """Count bytes of a body that is about to be kept, or refuse it."""
        if self._held + size > self.limit:
            self.enforce(size, owner)
            if self._held + size > self.limit:
                raise Unavailable(1, "The server holds as many unfinished requests as it can; try again shortly.")
        self._held += size
