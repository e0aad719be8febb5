"""The bounds that every attack is held to, and the table of exceptions, each with its reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from tests.fairness.harness import Measured
from tests.fairness.stage import MIB, SETTINGS

SLOWER: Final = 5  # times its own p99 alone that the honest client may wait
LONGEST: Final = 250.0  # milliseconds of processor in a row on the event loop, and before an honest response
TIMES_SENT: Final = 4  # bytes stored for each byte that was sent
FOR_A_REQUEST: Final = 2_048  # and for each request
PAGES_AHEAD: Final = MIB  # that an engine takes for its tables and indexes before it needs them
MOST_EXCEPTIONS: Final = 5
OF_TIME: Final = {"stretch", "turn", "p99"}  # the bounds that a slow moment of the machine may break

# The bounds that an attack may break, by its name in the table: which one, and why.
_BATCH: Final = "POST /vaults/{vaultUid}/batch"
EXCEPTIONS: Final[dict[tuple[str, str], str]] = {
    (
        f"{_BATCH} small creates",
        "stored",
    ): "each operation is a row with indexes, which QUOTA_DOCUMENTS bounds in number",
    (f"{_BATCH} wide creates", "stored"): "the collection of a document is in its indexes too",
    (f"{_BATCH} tombstones", "stored"): "so it is with a tombstone, which stays until its vault is deleted",
}


class Fault(NamedTuple):
    """A bound that an attack has broken."""

    attack: str
    bound: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.attack}: {self.bound}: {self.sentence}"


def broken(measured: Measured, *, by_the_clock: bool) -> Iterator[tuple[str, str]]:
    """The bounds that an attack has broken, each with a sentence; those of wall time need a quiet machine."""
    attack, alone, beside = measured.attack, measured.alone, measured.beside
    if not measured.statuses.keys() & set(attack.expected):
        yield "reach", f"none of {attack.expected} is among {measured.statuses}"
    if measured.stretch > LONGEST:
        yield "stretch", f"{measured.callback} took {measured.stretch:.0f} ms of processor in a row"
    if beside.loop_longest > LONGEST:
        yield "turn", f"an honest request waited for {beside.loop_longest:.0f} ms of processor"
    allowed = TIMES_SENT * measured.sent + FOR_A_REQUEST * measured.requests + PAGES_AHEAD
    if measured.stored > allowed:
        yield "stored", f"{measured.stored:,} bytes were stored for {measured.sent:,} in {measured.requests:,} requests"
    if measured.usage["bytes"] > int(SETTINGS["QUOTA_BYTES"]):
        yield "quota", f"{measured.usage['bytes']:,} bytes are beyond the quota"
    if by_the_clock and beside.p99 > SLOWER * alone.p99:
        yield "p99", f"the honest p99 was {beside.p99:.1f} ms, {beside.p99 / alone.p99:.1f} times that alone"


def faults(measured: Measured, *, by_the_clock: bool) -> list[Fault]:
    """The broken bounds that are not in the table of exceptions."""
    name = measured.attack.name
    found = broken(measured, by_the_clock=by_the_clock)
    return [Fault(name, bound, sentence) for bound, sentence in found if (name, bound) not in EXCEPTIONS]
