"""The endpoints, one file a noun. `table` is every route that a server of this variant has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.server.routes import accounts, batches, documents, keyrings, keys, sessions, system, vaults
from strongroom.server.table import Table

if TYPE_CHECKING:
    from strongroom.model import Variant


def table(variant: Variant) -> Table:
    """Every route that this variant serves."""
    of_accounts = [*accounts.ENDPOINTS, *sessions.ENDPOINTS, *keyrings.ENDPOINTS]
    endpoints = [*of_accounts, *vaults.endpoints(variant), *system.ENDPOINTS]
    if variant.has_documents:
        endpoints += [*documents.ENDPOINTS, *batches.ENDPOINTS, *keys.ENDPOINTS]
    return Table(endpoints)
