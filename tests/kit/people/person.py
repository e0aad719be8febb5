"""A user of a server in this process."""

from __future__ import annotations

import itertools
from typing import Any

import httpx2

_numbers = itertools.count(1)


def new_email() -> str:
    """An email address that nobody in this process has used."""
    return f"person{next(_numbers)}@example.com"


class Person:
    """A user of the server, with a client that carries the access token."""

    def __init__(self, http: httpx2.AsyncClient, email: str, signed_in: dict[str, Any]) -> None:
        self.http = http
        self.email = email
        self.access: str = signed_in["accessToken"]
        self.refresh: str = signed_in["refreshToken"]
        self.id: str = signed_in["user"]["id"]

    async def __call__(self, method: str, path: str, json: Any = None, **more: Any) -> httpx2.Response:
        headers = {"authorization": f"Bearer {more.pop('bearer', self.access)}", **more.pop("headers", {})}
        if json is not None:
            more["json"] = json
        return await self.http.request(method, path, headers=headers, **more)

    async def vault(self, **body: Any) -> dict[str, Any]:
        made = await self("POST", "/vault", {"name": f"vault {next(_numbers)}", **body})
        assert made.status_code == 201, made.text
        vault: dict[str, Any] = made.json()
        return vault

    async def document(self, vault: dict[str, Any], **body: Any) -> dict[str, Any]:
        made = await self("POST", f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "AAAA", **body})
        assert made.status_code == 201, made.text
        document: dict[str, Any] = made.json()
        return document

    async def key(self, **scopes: Any) -> str:
        made = await self("POST", "/auth/api-keys", {"name": "k", **scopes})
        assert made.status_code == 201, made.text
        key: str = made.json()["key"]
        return key
