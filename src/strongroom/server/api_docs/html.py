"""The HTML page of the API, rendered from the OpenAPI description; no scripts, no external resources."""

from __future__ import annotations

import json
from functools import lru_cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strongroom.server.api_docs.openapi import ApiDescription


@lru_cache
def documentation(description: ApiDescription) -> bytes:
    """Render the page."""
    api = description.document
    groups: dict[str, list[tuple[str, str, dict[str, Any]]]] = {}
    for path, methods in api["paths"].items():
        for method, operation in methods.items():
            groups.setdefault(operation["tags"][0], []).append((method, path, operation))
    menu = "".join(f'<li><a href="#{tag}">{escape(tag)}</a></li>' for tag in groups)
    body = "".join(
        f'<section id="{tag}"><h2>{escape(tag)}</h2>{"".join(_operation(*item) for item in items)}</section>'
        for tag, items in groups.items()
    )
    info = api["info"]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{escape(info["title"])} API</title><link rel="stylesheet" href="/docs/style.css"></head><body>'
        f"<header><h1>{escape(info['title'])} <small>{escape(info['version'])}</small></h1>"
        f"<p>{escape(info['summary'])}</p><p>{escape(info['description'])}</p>"
        "<p>Send <code>Authorization: Bearer &lt;access token or API key&gt;</code> where a key &#128273; is shown. "
        'The same as data: <a href="/openapi.json">/openapi.json</a>.</p></header>'
        f'<nav><ul>{menu}</ul></nav><main>{body}<section id="schemas"><h2>schemas</h2>{_schemas(api)}</section></main>'
        "</body></html>"
    ).encode()


@lru_cache
def stylesheet() -> bytes:
    """The style sheet of the page."""
    return resources.files("strongroom.server.api_docs").joinpath("static/docs.css").read_bytes()


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    lock = " &#128273;" if operation["security"] else ""
    parts = [f"<p>{escape(operation['description'])}</p>"]
    if "parameters" in operation:
        rows = "".join(
            f"<tr><td><code>{escape(item['name'])}</code></td><td>{item['in']}</td>"
            f"<td>{escape(item['schema']['type'])}</td><td>{escape(item.get('description', ''))}</td></tr>"
            for item in operation["parameters"]
        )
        parts.append(f"<table><tr><th>parameter</th><th>in</th><th>type</th><th>meaning</th></tr>{rows}</table>")
    if "requestBody" in operation:
        parts.append(f"<h4>Request {_link(operation['requestBody'])}</h4>{_example(operation['requestBody'])}")
    for status, response in operation["responses"].items():
        shown = f"{_link(response)}{_example(response)}" if int(status) < 400 else ""
        parts.append(f'<div class="s{status[0]}"><b>{status}</b> {_code(response["description"])}{shown}</div>')
    return (
        f'<details><summary><span class="m {method}">{method.upper()}</span> <code>{escape(path)}</code>{lock} '
        f"<span>{escape(operation['summary'])}</span></summary>{''.join(parts)}</details>"
    )


def _code(text: str) -> str:
    """Escape a text; words between backticks become code."""
    return "".join(f"<code>{part}</code>" if at % 2 else part for at, part in enumerate(escape(text).split("`")))


def _link(carrier: dict[str, Any]) -> str:
    content = carrier.get("content", {}).get("application/json")
    if content is None:
        return ""
    name = content["schema"]["$ref"].rpartition("/")[2]
    return f' <a href="#schema-{name}">{name}</a>'


def _example(carrier: dict[str, Any]) -> str:
    content = carrier.get("content", {}).get("application/json")
    if content is None or "example" not in content:
        return ""
    return f"<pre>{escape(json.dumps(content['example'], indent=2))}</pre>"


def _schemas(api: dict[str, Any]) -> str:
    shown = []
    for name, schema in sorted(api["components"]["schemas"].items()):
        summary = escape(schema.get("description", "").partition("\n")[0])
        body = escape(json.dumps(schema, indent=2))
        shown.append(
            f'<details id="schema-{name}"><summary><code>{name}</code> <span>{summary}</span></summary>'
            f"<pre>{body}</pre></details>"
        )
    return "".join(shown)
