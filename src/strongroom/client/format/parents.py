"""Parents: whether a newer row knew of what this device has seen.

Each row names, by a hash, the row that it follows on. What `hmac` (of blobs: `data`) spells alone proves the chain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum
from typing import NamedTuple

from strongroom.client.errors import Tampered
from strongroom.client.format.encoding import NO_PARENT, short

Reader = Callable[[str], tuple[int, bytes]]  # of a text: the generation and the parent that it names


class Descent(Enum):
    """How a newer row stands to the one that was seen."""

    FOLLOWS = "follows"
    FORKED = "forked"
    GAP = "gap"


class Link(NamedTuple):
    """A version and its text: `hmac` of a document, `data` of a blob."""

    version: int
    text: str


def follows(newest: str, seen: str, read: Reader) -> bool:
    """Whether a newer row follows on the one that was seen directly, and not under an older key."""
    generation, parent = read(newest)
    return parent == short(seen) and generation >= read(seen)[0]


def trace(newest: Link, seen: Link, history: Iterable[Link], read: Reader) -> Descent:
    """Follow the parents from a newer row down to the one that was seen, through what the server has kept.

    A text is believed only because the row after it names its hash. The versions of `history` are the server's word,
    and only tell a gap from a fork. Whoever knew of a row had its key: an older one is somebody's who was shut out.
    """
    known = _known(history)
    generation, parent = read(newest.text)
    wanted, lowest = short(seen.text), newest.version
    if newest.text == seen.text:
        return Descent.FOLLOWS  # the tombstone of a notice that was seen: a proof is good for one version
    if generation < read(seen.text)[0]:
        return Descent.FORKED
    while parent != wanted:
        if parent == NO_PARENT or lowest <= seen.version + 1:
            return Descent.FORKED
        link = known.pop(parent, None)
        if link is None:
            return Descent.GAP
        lowest, parent = min(lowest, link.version), read(link.text)[1]
    return Descent.FOLLOWS


def _known(history: Iterable[Link]) -> dict[bytes, Link]:
    """The links by what names them. A text that spells nothing can be named by no row."""
    known = {}
    for link in history:
        with suppress(Tampered):
            known[short(link.text)] = link
    return known


def trace_all(newest: Link, history: Sequence[Link], read: Reader) -> list[Descent]:
    """What `trace` says of each link of a history, with one walk along the parents."""
    known = _known(history)
    generation, parent = read(newest.text)
    reached, lowest = {short(newest.text)}, newest.version
    while parent not in reached and (link := known.get(parent)) is not None:
        reached.add(parent)
        lowest, parent = min(lowest, link.version), read(link.text)[1]

    def descent(link: Link) -> Descent:
        if read(link.text)[0] > generation:
            return Descent.FORKED
        if short(link.text) in reached:
            return Descent.FOLLOWS
        return Descent.FORKED if parent == NO_PARENT or lowest <= link.version + 1 else Descent.GAP

    return [descent(link) for link in history]
