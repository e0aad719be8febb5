"""The endpoints, one file a noun. `router` has every route that a server of this variant has."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import structs

from strongroom.server.api_docs.openapi import ApiDescription
from strongroom.server.routes import (
    accounts,
    batches,
    documents,
    events,
    keyrings,
    keys,
    metrics,
    sessions,
    system,
    transfer,
    vaults,
    versions,
)
from strongroom.server.routing import Router

if TYPE_CHECKING:
    from strongroom.model import Variant


@lru_cache
def router(variant: Variant) -> Router:
    """Every route that this variant serves."""
    of_accounts = [*accounts.ENDPOINTS, *sessions.ENDPOINTS, *keyrings.ENDPOINTS, *transfer.ENDPOINTS]
    endpoints = [*of_accounts, *vaults.endpoints(variant), *events.endpoints(variant)]
    if variant.has_documents:
        endpoints += [*documents.ENDPOINTS, *versions.OF_DOCUMENTS, *batches.ENDPOINTS, *keys.ENDPOINTS]
    if variant.has_blobs:
        endpoints += versions.OF_BLOBS
    endpoints += [*system.ENDPOINTS, metrics.METRICS]
    endpoints += system.documentation_endpoints(ApiDescription(endpoints, variant))
    return Router(endpoints)


@lru_cache
def watching() -> Router:
    """The routes of the port that only those who watch over a server reach."""
    figures = structs.replace(metrics.METRICS, handler=metrics.figures)
    return Router([*(endpoint for endpoint in system.ENDPOINTS if endpoint.path != "/"), figures])
