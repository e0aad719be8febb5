"""Peers that speak the contract's own API: strongroom, the floor, the twin on Hono."""

from __future__ import annotations

import json
from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.dataset import ACCOUNTS, COLLECTION, HMAC, PAGE, PASSWORD, WRITERS, Dataset
from bench.peer_requests import VALUE, PeerRequest, Reply, expect, send
from bench.peers.base import Peer


class VaultApi(Peer):
    """The document endpoints of the contract."""

    marker_version = (b'"version":', b",")
    marker_cursor = (b'"updatedAt":', b",")
    marker_page = marker_cursor

    def __init__(self) -> None:
        super().__init__()
        self._bearer = ""

    def fill(self, data: Dataset) -> None:
        """Accounts and vaults through the API, documents straight into the database while the server is stopped."""
        owner = expect(self.host, self._register(0)).json
        self._bearer = f"Bearer {owner['accessToken']}"
        for number in range(1, ACCOUNTS):
            self.other = f"Bearer {expect(self.host, self._register(number)).json['accessToken']}"
        for seeded in data.vaults:
            ask = PeerRequest("POST", "/vault", json.dumps({"name": seeded.name}), self._headers(), 201)
            seeded.vault = expect(self.host, ask).json["uid"]
        self.halt()
        self.insert(data, owner["user"]["id"])
        bearers = [f"Bearer {token}" for token in self.add_accounts(WRITERS)]
        self.launch()
        with ThreadPoolExecutor(16) as pool:
            self.writers = list(zip(bearers, pool.map(self._own_vault, bearers), strict=True))

    def _own_vault(self, bearer: str) -> str:
        ask = PeerRequest("POST", "/vault", json.dumps({"name": "own"}), {"Authorization": bearer}, 201)
        uid: str = expect(self.host, ask).json["uid"]
        return uid

    @abstractmethod
    def add_accounts(self, count: int) -> list[str]:
        """Put accounts into the database, without hashing a password for each; an access token of each."""

    @abstractmethod
    def insert(self, data: Dataset, owner: str) -> None:
        """Put the documents of every vault into the database."""

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self._bearer}

    def _register(self, number: int) -> PeerRequest:
        return PeerRequest("POST", "/auth/email/register", _credentials(number), status=201)

    def get(self, vault: str, uid: str) -> PeerRequest:
        return PeerRequest("GET", f"/vaults/{vault}/documents/{uid}", None, self._headers())

    def create(self, vault: str, data: str) -> PeerRequest:
        body = json.dumps({"collection": COLLECTION, "data": data, "hmac": HMAC})
        return PeerRequest("POST", f"/vaults/{vault}/documents", body, self._headers(), 201)

    def update(self, vault: str, uid: str, data: str) -> PeerRequest:
        body = f'{{"data": "{data}", "hmac": "{HMAC}", "version": {VALUE}}}'
        return PeerRequest("PUT", f"/vaults/{vault}/documents/{uid}", body, self._headers())

    def list_(self, vault: str) -> PeerRequest:
        return PeerRequest("GET", f"/vaults/{vault}/documents", None, self._headers())

    def since(self, vault: str) -> PeerRequest:
        return PeerRequest("GET", f"/vaults/{vault}/documents?since={VALUE}", None, self._headers())

    def page(self, vault: str) -> PeerRequest:
        return PeerRequest("GET", f"/vaults/{vault}/documents?since={VALUE}&limit={PAGE}", None, self._headers())

    def login(self, number: int) -> PeerRequest:
        return PeerRequest("POST", "/auth/email/login", _credentials(number))

    def document(self, reply: Reply) -> tuple[str, str]:
        return _essence(reply.json)

    def documents(self, reply: Reply) -> list[tuple[str, str]]:
        return [_essence(document) for document in reply.json["documents"]]

    def first_version(self, vault: str, uid: str) -> str:  # noqa: ARG002
        return "1"

    def works(self, reply: Reply) -> bool:
        token = reply.json["accessToken"]
        ask = PeerRequest("POST", "/vault", json.dumps({"name": token[-40:]}), {"Authorization": f"Bearer {token}"})
        return send(self.host, ask).status == 201


def _credentials(number: int) -> str:
    return json.dumps({"email": f"account{number}@example.org", "password": PASSWORD})


def _essence(document: dict[str, Any]) -> tuple[str, str]:
    return document["uid"], document["data"]
