"""Somebody whose client keeps a descriptor and a keyring on the server."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer

PASSWORD, NEW = "an auth key in base64url", "another auth key in base64url"
KDF = {
    "format": 2,
    "kdf": "argon2id",
    "memory": 65_536,
    "passes": 3,
    "lanes": 1,
    "secretKey": False,
    "salt": "c2FsdA==",
    "recovery": "AA==",
}
PATH, VERSIONS = "/auth/keyring", "/auth/keyring/versions"
PROOF = {"currentPassword": PASSWORD}


async def registered(server: InProcessServer, **body: Any) -> httpx2.Response:
    email = body.pop("email", "ann@example.com")
    return await server.http.post("/auth/email/register", json={"email": email, "password": PASSWORD, **body})


async def ann_of(server: InProcessServer, **body: Any) -> Person:
    """Somebody whose client keeps a descriptor and a keyring here, from the beginning."""
    made = await registered(server, **{"kdf": KDF, "keyring": "Rmlyc3Q=", **body})
    assert made.status_code == 201, made.text
    return Person(server.http, "ann@example.com", made.json())
