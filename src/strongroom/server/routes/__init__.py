"""The endpoints, one file a noun. `table` is every route that a server of this variant has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.server.routes import (
    accounts,
    batches,
    documents,
    events,
    keyrings,
    keys,
    moving,
    sessions,
    system,
    vaults,
    versions,
)
from strongroom.server.table import Table

if TYPE_CHECKING:
    from strongroom.model import Variant


def table(variant: Variant) -> Table:
    """Every route that this variant serves."""
    of_accounts = [*accounts.ENDPOINTS, *sessions.ENDPOINTS, *keyrings.ENDPOINTS, *moving.ENDPOINTS]
    endpoints = [*of_accounts, *vaults.endpoints(variant), *events.endpoints(variant), *system.ENDPOINTS]
    if variant.has_documents:
        endpoints += [*documents.ENDPOINTS, *versions.OF_DOCUMENTS, *batches.ENDPOINTS, *keys.ENDPOINTS]
    if variant.has_blobs:
        endpoints += versions.OF_BLOBS
    return Table(endpoints)


def watching() -> Table:
    """The routes of the port that only those who watch over a server reach."""
    return Table(system.WATCHING)
