"""What the server tells of an account: sessions with their devices' names, the log, usage and limits."""

from __future__ import annotations

import platform
from typing import Any

import pytest

from strongroom.errors import InsufficientScope, Invalid, InvalidCredentials
from strongroom.model import EventType
from tests.kit.clients.factory import ClientFactory
from tests.kit.people.credentials import PASSWORD, unique_email


def test_a_session_has_the_name_of_its_device(clients: ClientFactory) -> None:
    """By default the operating system and nothing that tells the machine or its user; another, or none, if wanted."""
    email = unique_email()
    client = clients.client(device_name="Ada's laptop")
    client.register(email, PASSWORD)
    for name in (None, ""):
        clients.client(device_name=name).login(email, PASSWORD)
    default = f"strongroom Python client on {platform.system()}"
    assert {session.device_name for session in client.sessions()} == {"Ada's laptop", default, None}
    assert platform.node() not in default
    assert [session.device_name for session in client.sessions() if session.current] == ["Ada's laptop"]


@pytest.mark.both_languages
@pytest.mark.parametrize("name", ["x" * 129, "two\nlines", "\x7f"])
def test_what_is_no_name_of_a_device_is_refused(clients: ClientFactory, name: str) -> None:
    """Before anything is sent, and with the parameter's name."""
    with pytest.raises(Invalid) as refused:
        clients.client(device_name=name)
    assert list((refused.value.details or {})["fields"]) == ["device_name"]


@pytest.mark.both_languages
def test_the_log_is_read_to_its_end(clients: ClientFactory) -> None:
    """Newest first, over several pages, each entry once, with its type."""
    email = unique_email()
    client = clients.client()
    client.register(email, PASSWORD)
    vault = client.vault("v", create=True)
    for _ in range(60):
        vault.token("agent")
    for key in client.api_keys():
        client.revoke_api_key(key.uid)
    with pytest.raises(InvalidCredentials):
        clients.client().login(email, "a wrong password")
    entries = list(client.log())
    assert len({entry.id for entry in entries}) == len(entries)
    kinds = [entry.type for entry in entries if entry.type != EventType.KEYRING_CHANGED]
    assert len(kinds) == 122
    assert kinds[::121] == [EventType.LOGIN_FAILED, EventType.REGISTERED]
    assert [entry.created_at for entry in entries] == sorted((entry.created_at for entry in entries), reverse=True)
    assert {entry.address for entry in entries} == {"127.0.0.1"}


@pytest.mark.both_languages
def test_usage_is_what_the_server_counts(clients: ClientFactory) -> None:
    """Documents that are not deleted, their bytes, trash and history apart; no limits on this server."""
    client = clients.person()
    notes = client.vault("v", create=True).collection("notes")
    first, second = notes.create("one"), notes.create("two")
    full = client.usage()
    notes.delete(second)
    less = client.usage()
    assert (full.documents, full.kept, less.documents) == (2, 0, 1)
    assert (full.bytes, less.kept > 0) == (2 * less.bytes, True)
    assert (full.max_documents, full.max_bytes) == (None, None)
    assert first.version == 1


@pytest.mark.both_languages
def test_a_token_sees_no_usage(clients: ClientFactory) -> None:
    """It reaches one vault, and the account's usage is more than that."""
    token = clients.person().vault("v", create=True).token("agent")
    agent: Any = clients.with_token(token)
    with pytest.raises(InsufficientScope, match="one vault or collection"):
        agent.usage()
