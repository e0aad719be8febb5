"""Every request of the client, as a value, by what it is about."""

from strongroom.client.net.requests import (
    accounts,
    batches,
    documents,
    keyrings,
    passkeys,
    second_factors,
    server,
    vaults,
)

__all__ = ["accounts", "batches", "documents", "keyrings", "passkeys", "second_factors", "server", "vaults"]
