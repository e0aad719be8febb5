"""What a server answers in tests of sync."""

from __future__ import annotations

from typing import Any, NamedTuple


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: dict[str, Any]

    @property
    def code(self) -> str:
        """The word of a refusal; empty where there is none."""
        return str(self.body["error"]["code"]) if self.status >= 400 else ""
