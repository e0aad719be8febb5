"""What an import would do, before it does anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from strongroom.items.formats.common import Found, Problem
from strongroom.items.formats.overlay import STRONGROOM, source_of
from strongroom.items.references import Stored
from strongroom.items.types import Item


class Plan:
    """The items that are new, how many are there already, and what cannot be taken over."""

    def __init__(self) -> None:
        self.new: list[Item] = []
        self.known = 0
        self.problems: list[str] = []

    @property
    def counts(self) -> dict[str, int]:
        """How many new items there are of each type."""
        return dict(sorted(Counter(item.type for item in self.new).items()))

    def __repr__(self) -> str:
        return f"Plan(new={len(self.new)}, known={self.known}, problems={len(self.problems)})"


def _title(item: Item) -> str:
    """A title for an item that has none."""
    known = next((url.split("://")[-1].partition("/")[0] for url in item.urls), "") or getattr(item, "username", "")
    return known[:100] or "Untitled"


def make_plan(found: Iterable[Found], present: Iterable[Stored], progress: Callable[[int], None] | None = None) -> Plan:
    """What is new among the items of a file. An item is known by its source, which every import keeps in it.

    `present` are the items of the vault. `progress` is told how many items of the file were read.
    """
    seen = set()
    for stored in present:
        seen.add((STRONGROOM, stored.uid))
        if (source := source_of(stored.value)) is not None:
            seen.add((source.format, source.id))
    plan = Plan()
    for number, one in enumerate(found, 1):
        if isinstance(one, Problem):
            plan.problems.append(one.sentence)
        else:
            source = source_of(one)
            key = None if source is None else (source.format, source.id)
            if key in seen:
                plan.known += 1
            else:
                one.title = one.title.strip() or _title(one)
                plan.new.append(one)
                seen |= set() if key is None else {key}
        if progress is not None:
            progress(number)
    return plan
