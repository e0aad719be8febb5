"""Paths of the API."""

from tests.kit.network.responses import Json


def docs(vault: Json, document: Json | None = None) -> str:
    """The path of a vault's documents, or of one of them."""
    path = f"/vaults/{vault['uid']}/documents"
    return path if document is None else f"{path}/{document['uid']}"
