"""strongroom: a self-hostable, end-to-end encrypted backend; its operator cannot read the data."""

from __future__ import annotations

from strongroom._version import __version__

TYPE_CHECKING = False  # and not that of typing, which every command would wait for
if TYPE_CHECKING:
    from typing import Any

    from strongroom.server import Server, create_server

__all__ = ["Server", "__version__", "create_server"]

if not TYPE_CHECKING:  # a type checker would take any name for a public one

    def __getattr__(name: str) -> Any:
        """Import the server on first use: clients and the command line start without it."""
        if name in {"Server", "create_server"}:
            from strongroom import server

            return getattr(server, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
