"""Vaults that are made without a server: the Python replica's tests, of the TypeScript one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.client.test_offline_vaults import (  # noqa: F401
    test_a_rotation_before_a_vault_is_sent,
    test_a_vault_that_is_deleted_before_its_documents_come,
    test_a_vault_that_the_server_refuses,
    test_lost_requests_make_one_vault,
    test_no_name_of_a_vault_lies_in_the_clear,
    test_the_directory_changes_while_a_vault_is_sent,
    test_two_devices_make_vaults_of_one_name,
)
from tests.contract.harness import Server
from tests.kit.clients.pair import Pair
from tests.kit.clients.typescript import TypeScriptClientFactory
from tests.kit.network.proxy import Proxy


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    """A proxy before the server, for the second device."""
    made = Proxy(server.port)
    yield made
    made.close()


@pytest.fixture
def pair(clients: TypeScriptClientFactory, tmp_path: Path, proxy: Proxy) -> Iterator[Pair]:
    """Two devices that are in step."""
    made = Pair(clients, tmp_path, (None, proxy.url))  # type: ignore[arg-type]
    yield made
    made.close()
