"""The contract as tables: each row is a request and its response, and a test on each engine."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import httpx2
import pytest

from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import Server, fresh_address

from . import (
    scenarios_accounts,
    scenarios_documents,
    scenarios_keys,
    scenarios_precedence,
    scenarios_requests,
    scenarios_vaults,
)
from .scenarios import Scenario, each_of, play_row

Play = Callable[[Scenario, str], None]


@pytest.fixture
def play(request: pytest.FixtureRequest, engine: str) -> Play:  # noqa: ARG001 - which decides the engine
    """Plays a row as one of its senders."""
    return partial(play_row, request)


@pytest.fixture(scope="module")
def anns_key(ann: ApiUser) -> httpx2.Client:
    """A key of Ann's without scopes."""
    return ann.with_key()


@pytest.fixture(scope="module")
def anns_clerk(ann: ApiUser) -> httpx2.Client:
    """A key of Ann's for a collection in which there is nothing."""
    return ann.with_key(collections=["open"])


@pytest.fixture
def anns_second_session(ann: ApiUser) -> httpx2.Client:
    """Another session of Ann's, for her to end."""
    return ann.login().http


@pytest.fixture
def stranger_of_document(document: Server) -> httpx2.Client:
    """A caller without any authority, on the server of Variant A."""
    return document.connect(address=fresh_address())


@pytest.fixture
def stranger_of_blob(blob: Server) -> httpx2.Client:
    """A caller without any authority, on the server of Variant B."""
    return blob.connect(address=fresh_address())


@pytest.fixture
def stranger_of_tight(tight: Server) -> httpx2.Client:
    """A caller without any authority, on the narrowed server."""
    return tight.connect(address=fresh_address())


@pytest.fixture
def junk_token(tight: Server) -> httpx2.Client:
    """A caller with a token that is none."""
    return tight.connect("junk", address=fresh_address())


@pytest.fixture
def tess_elsewhere(tess: ApiUser) -> httpx2.Client:
    """Tess at an address that nobody else uses."""
    return tess.server.connect(tess.access, fresh_address())


@pytest.fixture(scope="module")
def tess_key(tess: ApiUser) -> httpx2.Client:
    """A key of Tess's without scopes."""
    return tess.with_key()


@pytest.fixture(scope="module")
def tess_reader(tess: ApiUser) -> httpx2.Client:
    """A key of Tess's that may only read."""
    return tess.with_key(permissions=["read"])


@pytest.fixture(scope="module")
def tess_clerk(tess: ApiUser) -> httpx2.Client:
    """A key of Tess's for a collection in which there is nothing."""
    return tess.with_key(collections=["open"])


@each_of(scenarios_vaults)
def test_vaults(play: Play, row: Scenario, sender: str) -> None:
    """Vaults, as scenarios_vaults.py says."""
    play(row, sender)


@each_of(scenarios_documents)
def test_documents(play: Play, row: Scenario, sender: str) -> None:
    """Documents, as scenarios_documents.py says."""
    play(row, sender)


@each_of(scenarios_keys)
def test_keys(play: Play, row: Scenario, sender: str) -> None:
    """API keys, as scenarios_keys.py says."""
    play(row, sender)


@each_of(scenarios_accounts)
def test_accounts(play: Play, row: Scenario, sender: str) -> None:
    """Accounts and sessions, as scenarios_accounts.py says."""
    play(row, sender)


@each_of(scenarios_requests)
def test_requests(play: Play, row: Scenario, sender: str) -> None:
    """Requests of every kind, as scenarios_requests.py says."""
    play(row, sender)


@each_of(scenarios_precedence)
def test_precedence(play: Play, row: Scenario, sender: str) -> None:
    """Of two refusals that apply, the first in the contract's order is given."""
    play(row, sender)


REFUSED = Scenario("refused", "POST", "/vault", 400, "validation_error", json={}, bad_fields=("name",))
TAKEN = Scenario("taken", "GET", "/health", 200, fields={"status": "ok"}, headers={"X-Request-Id": "mine"})
EMPTY = Scenario("empty", "GET", "/vault", 200, sent_by="newcomer", body={"vaults": []})
HEAD = Scenario("head", "HEAD", "/health", 200)


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (REFUSED, {"status": 404}),
        (REFUSED, {"code": "vault_not_found"}),
        (REFUSED, {"bad_fields": ("name", "salt")}),
        (TAKEN, {"status": 201}),
        (TAKEN, {"fields": {"status": "ill"}}),
        (TAKEN, {"fields": {"more": None}}),
        (TAKEN, {"response_headers": {"X-Request-Id": "another"}}),
        (EMPTY, {"body": {}}),
        (HEAD, {"status": 401}),
    ],
)
def test_a_wrong_row_is_noticed(play: Play, row: Scenario, change: dict[str, Any]) -> None:
    """Whatever a row says of the response is compared."""
    sender = str(row.sent_by)
    play(row, sender)
    with pytest.raises(AssertionError):
        play(replace(row, **change), sender)


@pytest.mark.parametrize(
    ("row", "change"),
    [
        (REFUSED, {"fields": {"name": ""}}),
        (REFUSED, {"body": {}}),
        (TAKEN, {"code": "ok"}),
        (TAKEN, {"bad_fields": ("name",)}),
        (HEAD, {"code": "unauthorized", "status": 401}),
        (HEAD, {"body": {}}),
    ],
)
def test_a_row_says_nothing_in_vain(row: Scenario, change: dict[str, Any]) -> None:
    """What would not be compared is an error."""
    with pytest.raises(AssertionError, match="no such part"):
        replace(row, **change)
