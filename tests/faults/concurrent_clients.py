"""Many concurrent clients over real sockets, each of which remembers the responses that it got."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from typing import Any

import httpx2

SHORT_ANSWER = 30.0  # seconds after which a request hangs, whatever happens to the database


class Writer:
    """Creates and replaces documents, and keeps what was acknowledged: uid -> version."""

    def __init__(self, url: str, token: str, vault: str, collection: str = "c") -> None:
        self.acknowledged: dict[str, int] = {}
        self.moments: list[tuple[int, str, int]] = []  # when, which and which version, in the order of the answers
        self.refused: dict[int, int] = {}
        self.slowest = 0.0
        self._vault = vault
        self._collection = collection
        self._url = url
        self._token = token

    async def run(self, go_on: Callable[[], bool]) -> None:
        """Write until told to stop; a lost connection is not an answer."""
        async with client(self._url, self._token) as http:
            while go_on():
                try:
                    await self._one(http)
                except httpx2.TransportError:
                    await asyncio.sleep(0.005)

    async def _one(self, http: httpx2.AsyncClient) -> None:
        path = f"/vaults/{self._vault}/documents"
        uid = str(uuid.uuid4())
        body = {"uid": uid, "collection": self._collection, "data": "A" * 200}
        if await self._sent(http, "POST", path, body, uid, 1):
            await self._sent(http, "PUT", f"{path}/{uid}", {"data": "B" * 200, "version": 1}, uid, 2)

    async def _sent(self, http: httpx2.AsyncClient, method: str, path: str, body: Any, uid: str, version: int) -> bool:
        began = time.monotonic()
        try:
            answer = await http.request(method, path, json=body)
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)
        if answer.status_code in {200, 201}:
            stored = answer.json()
            assert stored["version"] == version
            self.moments.append((stored["updatedAt"], uid, version))
            self.acknowledged[uid] = version
            return True
        self.refused[answer.status_code] = self.refused.get(answer.status_code, 0) + 1
        await asyncio.sleep(0.005)
        return False


def client(url: str, token: str) -> httpx2.AsyncClient:
    """A client with an authority."""
    transport = httpx2.AsyncHTTPTransport(verify=False, trust_env=False)
    headers = {"authorization": f"Bearer {token}"}
    return httpx2.AsyncClient(base_url=url, headers=headers, transport=transport, timeout=30, trust_env=False)


async def stored(url: str, token: str, vault: str) -> dict[str, int]:
    """What the server holds: uid -> version."""
    async with client(url, token) as http:
        answer = await http.get(f"/vaults/{vault}/documents")
        assert answer.status_code == 200, answer.text
        documents = answer.json()["documents"]
    times = [document["updatedAt"] for document in documents]
    assert times == sorted(set(times))
    return {document["uid"]: document["version"] for document in documents}


def lost(acknowledged: dict[str, int], held: dict[str, int]) -> dict[str, int]:
    """What was acknowledged and is not held, at that version or a later one."""
    return {uid: version for uid, version in acknowledged.items() if held.get(uid, 0) < version}
