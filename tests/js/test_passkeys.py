"""What the tests of the Python client say of passkeys, said of the TypeScript client with the same authenticator."""

from __future__ import annotations

import pytest

from tests.client.test_passkeys import (  # noqa: F401
    named_server,
    test_a_change_of_password_and_a_rotation_keep_passkeys,
    test_a_passkey_is_a_second_factor,
    test_a_passkey_that_was_not_enabled_does_not_unlock,
    test_one_ceremony_logs_in_and_unlocks,
    test_passkeys_are_listed_renamed_and_deleted,
    test_without_prf_it_never_unlocks,
)
from tests.contract.harness import Server
from tests.kit.clients.typescript import TypeScriptClientFactory


@pytest.fixture
def named(_typescript: TypeScriptClientFactory, named_server: Server) -> TypeScriptClientFactory:  # noqa: F811
    """Makes TypeScript clients of a server that has a name, and so passkeys."""
    _typescript.url = f"http://localhost:{named_server.port}"
    return _typescript
