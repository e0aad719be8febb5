"""What the tests of the Python client say of tokens, said of the TypeScript client."""

from __future__ import annotations

import pytest

from strongroom import errors
from strongroom.client import Locked
from tests.kit.clients.typescript import TypeScriptClientFactory


def test_a_token_of_a_collection_leads_nowhere_else(clients: TypeScriptClientFactory) -> None:
    """Neither the server nor the client lets it out."""
    vault = clients.person().vault("v", create=True)
    secret = vault.collection("secrets").create("not for agents")
    agent = clients.with_token(vault.collection("notes").token("agent"))
    for attempt in (
        lambda: agent.vault("v"),
        agent.vault,
        agent.vaults,
        lambda: agent.vault("new", create=True),
        lambda: agent.change_password("a password", "another password"),
        lambda: agent.collection().token("another"),
    ):
        with pytest.raises(Locked):
            attempt()
    with pytest.raises(errors.DocumentNotFound):
        agent.collection().get(secret.uid)
    for refused in (agent.sessions, agent.api_keys):
        with pytest.raises(errors.InsufficientScope):
            refused()
