"""The endpoints, one file a noun. `table` is every route that a server of this variant has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.server.routes import accounts, documents, keys, sessions, system, vaults
from strongroom.server.table import Table

if TYPE_CHECKING:
    from strongroom.model import Variant


def table(variant: Variant) -> Table:
    """Every route that this variant serves."""
    endpoints = [*accounts.ENDPOINTS, *sessions.ENDPOINTS, *vaults.endpoints(variant), *system.ENDPOINTS]
    if variant.has_documents:
        endpoints += [*documents.ENDPOINTS, *keys.ENDPOINTS]
    return Table(endpoints)


def watching() -> Table:
    """The routes of the port that only those who watch over a server reach."""
    return Table(system.WATCHING)
