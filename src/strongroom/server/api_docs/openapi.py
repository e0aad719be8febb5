"""The OpenAPI 3.1 description, generated from the endpoints and the structs of their bodies."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import msgspec

from strongroom import errors, wire
from strongroom._version import __version__
from strongroom.errors import Refusal
from strongroom.model import Variant
from strongroom.server.api_docs import examples
from strongroom.server.request import Access, Endpoint
from strongroom.server.response import STATUS

if TYPE_CHECKING:
    from collections.abc import Sequence

_REF: Final = "#/components/schemas/{name}"
_HEADERS: Final = {
    "If-Match": "The ETag you last saw: the request fails with 412 if it is not the current one",
    "Keyring-Version": "The version of the keyring that you sealed with: refused where the stored one is newer",
    "Last-Event-ID": "The id of the last event you received: later ones are sent first. Wins over since",
    "If-None-Match": "An ETag you have: the response is 304, without a body, while it is the current one",
}
_TEXT: Final = {"schema": {"type": "string"}}
_VARIANTS: Final = {
    Variant.BOTH: "This server keeps document vaults (Variant A) and blob vaults (Variant B).",
    Variant.DOCUMENT: "This server keeps document vaults (Variant A).",
    Variant.BLOB: "This server keeps blob vaults (Variant B).",
}


class ApiDescription:
    """The OpenAPI description of these endpoints, generated on first use."""

    def __init__(self, endpoints: Sequence[Endpoint], variant: Variant) -> None:
        self._endpoints = endpoints
        self._variant = variant

    @cached_property
    def document(self) -> dict[str, Any]:
        """The description as plain data."""
        types = [
            each
            for endpoint in self._endpoints
            for each in (endpoint.request_type, endpoint.response_type, *endpoint.event_types)
            if each is not None
        ]
        _, schemas = msgspec.json.schema_components([*dict.fromkeys(types), wire.responses.Failure], ref_template=_REF)
        paths: dict[str, dict[str, Any]] = {}
        for endpoint in self._endpoints:
            path = endpoint.path.replace("*}", "}")
            paths.setdefault(path, {})[endpoint.method.lower()] = _operation(endpoint, self._variant)
        described = {
            "openapi": "3.1.0",
            "info": {
                "title": "strongroom",
                "version": __version__,
                "summary": "A backend for end-to-end encrypted data, which the operator of the server cannot read.",
                "description": f"{_VARIANTS[self._variant]} Times are Unix milliseconds. "
                "Unknown fields in a request are ignored.",
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": "/"}],
            "paths": paths,
            "components": {
                "schemas": schemas,
                "securitySchemes": {
                    "bearer": {
                        "type": "http",
                        "scheme": "bearer",
                        "description": "An access token from register, login or refresh; or an API key (srk_...).",
                    }
                },
            },
        }
        return _plain(described)  # type: ignore[no-any-return]

    @cached_property
    def _json(self) -> bytes:
        return msgspec.json.encode(self.document)

    def as_json(self) -> bytes:
        """The description as JSON."""
        return self._json


def refusals_of(endpoint: Endpoint) -> list[type[Refusal]]:
    """All refusals of an endpoint, in the order in which they are checked."""
    refusals: list[type[Refusal]] = []
    if endpoint.access is not Access.PUBLIC:
        refusals += [errors.RateLimited, errors.Unauthorized, errors.AccountDisabled, errors.InsufficientScope]
    if endpoint.request_type is not None or endpoint.request_media_type:
        refusals += [errors.RequestTimeout, errors.PayloadTooLarge, errors.UnsupportedMediaType]
    if endpoint.request_type is not None or endpoint.request_media_type or endpoint.query or endpoint.request_headers:
        refusals += [errors.Invalid]
    refusals += endpoint.refusals
    if endpoint.method != "GET":
        refusals += [errors.StorageFull]
        if endpoint.access is Access.ANY:  # writes in vaults
            refusals += [errors.ImportUnfinished]
    return list(dict.fromkeys([*refusals, errors.InternalError, errors.Unavailable]))


def _operation(endpoint: Endpoint, variant: Variant) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": f"{endpoint.method.lower()}{re.sub('[^A-Za-z]+', '_', endpoint.path).rstrip('_') or '_root'}",
        "summary": endpoint.summary,
        "description": (endpoint.handler.__doc__ or "").strip(),
        "tags": [endpoint.handler.__module__.rpartition(".")[2]],
        "security": [] if endpoint.access is Access.PUBLIC else [{"bearer": []}],
        "responses": _responses(endpoint, variant),
    }
    parameters = [
        {"name": name.rstrip("*"), "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{([^}]+)\}", endpoint.path)
    ]
    parameters += [
        {"name": name, "in": "query", "required": False, "description": meaning, "schema": {"type": kind}}
        for name, kind, meaning in endpoint.query
    ]
    parameters += [
        {"name": name, "in": "header", "required": False, "description": _HEADERS[name], "schema": {"type": "string"}}
        for name in endpoint.request_headers
    ]
    if parameters:
        operation["parameters"] = parameters
    if endpoint.request_type is not None:
        operation["requestBody"] = {
            "required": any(field.required for field in msgspec.structs.fields(endpoint.request_type)),
            "content": _json(endpoint.request_type, variant),
        }
    if endpoint.request_media_type:
        operation["requestBody"] = {"required": True, "content": {endpoint.request_media_type: _TEXT}}
    return operation


def _responses(endpoint: Endpoint, variant: Variant) -> dict[str, Any]:
    success: dict[str, Any] = {"description": endpoint.summary}
    if endpoint.response_type is not None:
        success["content"] = _json(endpoint.response_type, variant)
    elif endpoint.event_types:
        success["content"] = _events(endpoint)
    if endpoint.response_media_type:
        success["content"] = {endpoint.response_media_type: _TEXT}
    responses = {str(302 if endpoint.path == "/" else endpoint.status): success}
    if (
        endpoint.status == 201
        and endpoint.request_type is not None
        and "uid" in endpoint.request_type.__struct_fields__
    ):
        responses["200"] = {**success, "description": "A retry of the same request: what the first one created"}
    if "If-None-Match" in endpoint.request_headers:
        responses["304"] = {"description": "Not changed"}
    grouped: dict[int, list[type[Refusal]]] = {}
    for refusal in refusals_of(endpoint):
        grouped.setdefault(STATUS[refusal], []).append(refusal)
        if issubclass(refusal, errors.Conflict) and "If-Match" in endpoint.request_headers:
            grouped.setdefault(412, []).append(refusal)
    for status, kinds in sorted(grouped.items()):
        responses[str(status)] = {
            "description": "; ".join(f"`{kind.code}`: {(kind.__doc__ or '').splitlines()[0]}" for kind in kinds),
            "content": {
                "application/json": {
                    "schema": {"$ref": _REF.format(name="Failure")},
                    "examples": {kind.code: {"value": examples.refusal(kind)} for kind in kinds},
                }
            },
        }
    return responses


def _json(kind: type[Any], variant: Variant) -> dict[str, Any]:
    example = examples.OF[kind]
    if kind in {wire.responses.Vault, wire.responses.Vaults} and variant is Variant.DOCUMENT:
        example = examples.without_blob(example)
    return {"application/json": {"schema": {"$ref": _REF.format(name=kind.__name__)}, "example": example}}


def _events(endpoint: Endpoint) -> dict[str, Any]:
    """The description of an event stream: the data of each type of event, and an example."""
    shapes = [{"$ref": _REF.format(name=kind.__name__)} for kind in endpoint.event_types]
    return {
        "text/event-stream": {
            "schema": {
                "type": "string",
                "description": "Server-sent events. The data of each is one of these, as JSON.",
                "contentMediaType": "application/json",
                "contentSchema": {"anyOf": shapes},
            },
            "example": examples.STREAM,
        }
    }


def _plain(value: Any) -> Any:
    r"""Translate regular expressions: the end of a text is \Z in Python and $ in JSON Schema."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.replace("\\Z", "$") if isinstance(value, str) else value
