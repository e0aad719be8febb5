"""The routes of the API, one file a noun; `router` has those of a variant."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import structs

from strongroom.server.api_docs.openapi import ApiDescription
from strongroom.server.routes import (
    accounts,
    batches,
    collections,
    documents,
    events,
    key_shares,
    keyrings,
    keys,
    metrics,
    passkeys,
    second_factors,
    sessions,
    system,
    transfer,
    trash,
    vaults,
    versions,
    web_app,
)
from strongroom.server.routing import Router

if TYPE_CHECKING:
    from strongroom.model import Variant

__all__ = ["monitoring_router", "router", "web_app"]


@lru_cache
def router(variant: Variant) -> Router:
    """The router of a server with this variant."""
    account_routes = [*accounts.ENDPOINTS, *sessions.ENDPOINTS, *second_factors.ENDPOINTS, *keyrings.ENDPOINTS]
    account_routes += [*passkeys.ENDPOINTS, *key_shares.ENDPOINTS, *transfer.ENDPOINTS]
    endpoints = [*account_routes, *vaults.endpoints(variant), *events.endpoints(variant)]
    if variant.has_documents:
        endpoints += [*documents.ENDPOINTS, *versions.OF_DOCUMENTS, *batches.ENDPOINTS, *keys.ENDPOINTS]
        endpoints += [*collections.ENDPOINTS, *trash.ENDPOINTS]
    if variant.has_blobs:
        endpoints += versions.OF_BLOBS
    endpoints += [*system.ENDPOINTS, metrics.METRICS]
    endpoints += system.documentation_endpoints(ApiDescription(endpoints, variant))
    return Router(endpoints)


@lru_cache
def monitoring_router() -> Router:
    """The router of METRICS_PORT: metrics and health checks."""
    on_own_port = structs.replace(metrics.METRICS, handler=metrics.get_on_own_port)
    return Router([*(endpoint for endpoint in system.ENDPOINTS if endpoint.path != "/"), on_own_port])
