"""What a sync reports: its progress, and what it did."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from strongroom.client.replica.conflicts import BlobConflict, Conflict
from strongroom.client.replica.refused import RefusedChange
from strongroom.client.replica.store.records import RenamedVault


class Progress(Struct, frozen=True):
    """The progress of a sync. `total` is the server's count, if it gives one."""

    phase: str
    done: int
    total: int | None


class Report(Struct, kw_only=True):
    """What a sync did. `conflicts` wait to be decided; `refused` are all changes that the server does not accept.

    `newly_refused` counts those that were not refused before this sync, or for another reason. `gaps` are
    documents that were taken over although the server's history no longer shows what lies between, `keyring_gaps`
    keyrings of which the same is true; of these, all since the sync before are counted. `renamed_vaults` are told
    again after a program that ended before its replica was closed.
    """

    pulled: int = 0
    pushed: int = 0
    gaps: int = 0
    keyring_gaps: int = 0
    conflicts: list[Conflict] = msgspec.field(default_factory=list)
    blob_conflicts: list[BlobConflict] = msgspec.field(default_factory=list)
    refused: list[RefusedChange] = msgspec.field(default_factory=list)
    newly_refused: int = 0
    renamed_vaults: list[RenamedVault] = msgspec.field(default_factory=list)

    @property
    def changed(self) -> bool:
        """Whether the sync changed anything."""
        told = self.conflicts or self.blob_conflicts or self.newly_refused or self.renamed_vaults
        return bool(self.pulled or self.pushed or told)


class RunningReport:
    """The report of a sync that is under way, and where its progress is told."""

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self.report = Report()
        self._progress = progress
        self._done = 0
        self._total: int | None = None

    def begin(self, total: int | None) -> None:
        """Begin a phase. `total` is the number of documents in it, if that is known."""
        self._done, self._total = 0, total

    def add(self, phase: str, new: int, gaps: int = 0) -> None:
        """Add documents that are done in a phase, and tell the progress."""
        self._done += new
        self.report.gaps += gaps
        if phase == "pull":
            self.report.pulled += new
        if self._progress is not None:
            self._progress(Progress(phase, self._done, self._total))
