"""What was measured on each machine: `bench/results/ARCHITECTURE/`, one file for each program that measures."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Machine:
    """The results of one architecture; a part that was not measured there is None, a run that was not is empty."""

    name: str
    run: dict[str, Any]
    growth: dict[str, Any] | None
    sync: dict[str, Any] | None
    client: dict[str, Any] | None
    profile: dict[str, Any] | None

    @property
    def title(self) -> str:
        """The name as people write it."""
        return self.name.replace("_", "-")

    @property
    def cells(self) -> dict[tuple[str, int, str], dict[str, Any]]:
        """The figures of the run, by scenario, number of clients and target."""
        return {(cell["scenario"], cell["clients"], cell["target"]): cell for cell in self.run["cells"]}


_EMPTY = {"date": "", "targets": [], "scenarios": [], "absent": {}, "cannot": {}, "cells": []}


def machines(folder: Path = FOLDER) -> list[Machine]:
    """All machines, the one whose run is the newest first."""
    found = []
    for place in sorted(folder.iterdir()):
        run, *others = (_read(place / f"{part}.json") for part in ("run", "growth", "sync", "client", "profile"))
        found.append(Machine(place.name, run or _EMPTY, *others))
    return sorted(found, key=lambda machine: str(machine.run["date"]), reverse=True)


def _read(path: Path) -> Any:
    return json.loads(path.read_text()) if path.exists() else None


def circumstances() -> dict[str, str]:
    """When and where something is measured."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"
    return {"date": datetime.now(UTC).date().isoformat(), "machine": machine}


def text(result: dict[str, Any]) -> str:
    """A result as JSON, with each element of a list on a line of its own."""
    parts = []
    for key, value in result.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            shown = "[\n  " + ",\n  ".join(json.dumps(one) for one in value) + "\n ]"
        else:
            shown = json.dumps(value)
        parts.append(f" {json.dumps(key)}: {shown}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
