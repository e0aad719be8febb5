"""The description is made from what serves, so it cannot lie; these tests hold its form."""

from __future__ import annotations

import re

import msgspec
import pytest

from strongroom import wire
from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.api_docs import examples, html
from strongroom.server.api_docs.openapi import ApiDescription
from strongroom.server.response import STATUS
from tests.kit.asynchronous import async_test
from tests.kit.rows import each_row
from tests.kit.servers.in_process import OpenServer


def described(variant: Variant) -> ApiDescription:
    """The description of all routes of a variant."""
    return ApiDescription(routes.router(variant).endpoints, variant)


@pytest.mark.parametrize("variant", Variant)
def test_every_route_is_described_with_examples_and_refusals(variant: Variant) -> None:
    """Nothing is served that is not said."""
    api = described(variant).document
    for endpoint in routes.router(variant).endpoints:
        operation = api["paths"][endpoint.path.replace("*}", "}")][endpoint.method.lower()]
        assert operation["summary"]
        assert "500" in operation["responses"]
        if endpoint.request_type is not None:
            assert "example" in operation["requestBody"]["content"]["application/json"]


def test_every_error_code_is_described() -> None:
    """Each of the table's codes appears under the status that it has."""
    text = described(Variant.BOTH).as_json().decode()
    unroutable = {"not_found", "method_not_allowed"}  # what no route answers
    assert {kind.code for kind in STATUS if f'"{kind.code}"' not in text} <= unroutable


@each_row("kind", examples.OF, ids=lambda kind: kind.__name__)
def test_examples_are_what_they_are_examples_of(kind: type) -> None:
    """Requests go through the very reader that serves; answers through their struct."""
    example = msgspec.json.encode(examples.OF[kind])
    if issubclass(kind, wire.requests.Body):
        wire.decode(kind, example)
    else:
        msgspec.json.decode(example, type=kind)


@pytest.mark.parametrize("variant", Variant)
def test_the_blob_variant_has_no_documents(variant: Variant) -> None:
    """What a variant does not serve is not described either."""
    paths = described(variant).document["paths"]
    assert any("documents" in path for path in paths) is variant.has_documents
    assert ("/auth/api-keys" in paths) is variant.has_documents


def test_operation_ids_are_unique_and_references_lead_somewhere() -> None:
    """Generators of clients depend on both."""
    api = described(Variant.BOTH).document
    ids = [operation["operationId"] for methods in api["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))
    names = set(re.findall(r'"#/components/schemas/([^"]+)"', described(Variant.BOTH).as_json().decode()))
    assert names <= set(api["components"]["schemas"])


@async_test
async def test_the_page_and_its_style_come_from_the_server_alone(open_server: OpenServer) -> None:
    """No script, nothing from another host, and a policy that says so."""
    async with open_server(web="off") as server:
        page = await server.http.get("/docs")
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "<script" not in page.text
        assert re.findall(r'(?:src|href)="(?!/|#)[^"]*"', page.text) == []
        assert (await server.http.get("/docs/style.css")).headers["content-type"].startswith("text/css")
        assert (await server.http.get("/openapi.json")).json()["openapi"] == "3.1.0"
        assert (await server.http.get("/")).headers["location"] == "/docs"
    assert b"/vaults/{vaultUid}/documents" in html.documentation(described(Variant.BOTH))
