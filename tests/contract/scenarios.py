"""Scenarios: a request and its response as a row of a table, in words that a reader knows from the API."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import httpx2
import pytest

from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser, unique_email

from .checks import BLOB, UNKNOWN, refused_fields


@dataclass(frozen=True)
class Scenario:
    """One request and what it gets; what is in braces is made for it, as `{bob.vault}`."""

    name: str
    method: str
    path: str
    status: int
    code: str | None = None  # of a refusal; None where the contract names none
    _: KW_ONLY
    sent_by: str | tuple[str, ...] = "ann"  # fixtures: each sends the request in a test of its own
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str | bytes] = field(default_factory=dict)
    bad_fields: tuple[str, ...] = ()  # which the refusal names
    fields: Json = field(default_factory=dict)  # which the response has, among others
    body: Json | None = None  # the whole response
    response_headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """A row says nothing that would not be compared."""
        of_a_refusal, of_a_body = bool(self.code or self.bad_fields), bool(self.fields or self.body is not None)
        vain = of_a_body if self.status >= 400 else of_a_refusal
        if self.method == "HEAD":
            vain = of_a_body or of_a_refusal
        assert not vain, f"{self.name}: this response has no such part"


class Belongings:
    """What somebody has in a scenario, made when a row first names it."""

    def __init__(self, person: ApiUser) -> None:
        self._person = person
        self.email, self.access, self.refresh = person.email, person.access, person.refresh

    @cached_property
    def _vault(self) -> Json:
        return self._person.vault()

    @cached_property
    def _blob_vault(self) -> Json:
        return self._person.vault(**BLOB)

    @cached_property
    def _document(self) -> Json:
        return self._person.document(self._vault, collection="closed", hmac="old")

    @property
    def vault(self) -> str:
        """The uid of a vault without a blob."""
        return str(self._vault["uid"])

    @property
    def blob_vault(self) -> str:
        """The uid of a vault with a blob, which every kind of server keeps or ignores."""
        return str(self._blob_vault["uid"])

    @property
    def taken_name(self) -> str:
        """The name of the vault with a blob."""
        return str(self._blob_vault["name"])

    @property
    def document(self) -> str:
        """The uid of a document in `vault`, in the collection `closed`, at version 1."""
        return str(self._document["uid"])

    @property
    def shelf(self) -> str:
        """The uid of `vault`, with `document` in it."""
        return str(self._document["vaultUid"])

    @cached_property
    def changed_document(self) -> str:
        """The uid of a document in `vault` that has been changed once: version 2."""
        return str(good(self._person.put(self._vault, self._person.document(self._vault), data="dHdv"))["uid"])

    @cached_property
    def etag(self) -> str:
        """The ETag of `document`."""
        return str(self._person.http.get(f"/vaults/{self.vault}/documents/{self.document}").headers["etag"])

    @cached_property
    def key(self) -> str:
        """The secret of an API key without scopes."""
        return str(self._person.key()["key"])


class _World(dict[str, Any]):
    """The names in braces: a person's fixture, `my` for the sender, `unknown` for a uid, `new` for an email."""

    def __init__(self, request: pytest.FixtureRequest, sender: object) -> None:
        super().__init__(unknown=UNKNOWN, new=unique_email())
        self._request = request
        if isinstance(sender, ApiUser):
            self["my"] = Belongings(sender)

    def __missing__(self, name: str) -> Belongings:
        self[name] = Belongings(self._request.getfixturevalue(name))
        return self[name]  # type: ignore[no-any-return]

    def fill(self, value: Any) -> Any:
        """The same value with what the braces in its texts stand for."""
        match value:
            case str():
                return value.format_map(self)
            case dict():
                return {name: self.fill(one) for name, one in value.items()}
            case list():
                return [self.fill(one) for one in value]
        return value


def each_of(module: ModuleType) -> pytest.MarkDecorator:
    """Play each row of each table in a module as a test with its name, once for each sender."""
    tables = [value for value in vars(module).values() if isinstance(value, list)]
    rows = [
        pytest.param(row, sender, id=row.name if isinstance(row.sent_by, str) else f"{row.name}: {sender}")
        for table in tables
        for row in table
        for sender in ([row.sent_by] if isinstance(row.sent_by, str) else row.sent_by)
    ]
    names = [str(row.id) for row in rows]
    assert len(names) == len(set(names)), sorted(name for name in names if names.count(name) > 1)
    return pytest.mark.parametrize(("row", "sender"), rows)


def play_row(request: pytest.FixtureRequest, row: Scenario, sender: str) -> None:
    """Send the request of a row, and compare the response with it."""
    caller = request.getfixturevalue(sender)
    http: httpx2.Client = caller.http if isinstance(caller, ApiUser) else caller
    world = _World(request, caller)
    headers = [(name.encode(), _encoded(world.fill(value))) for name, value in row.headers.items()]
    response = http.request(
        row.method, world.fill(row.path), json=world.fill(row.json), content=row.content, headers=headers
    )
    _compare(response, row)


def _compare(response: httpx2.Response, row: Scenario) -> None:
    """The status, and all that the row says of the response."""
    if row.method == "HEAD":
        assert response.status_code == row.status, response.status_code
        assert response.content == b"", response.content
    elif row.status >= 400:
        refused(response, row.status, row.code)
        if row.bad_fields:
            refused_fields(response, *row.bad_fields)
    else:
        body = good(response, row.status)
        assert row.fields.items() <= body.items(), body
        assert row.body is None or row.body == body, body
    for name, value in row.response_headers.items():
        assert response.headers[name] == value, response.headers


def _encoded(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode()
