"""PocketBase as it ships: collections with rules that let only a vault's owner in, and the same indexes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from bench.dataset import ACCOUNTS, COLLECTION, HMAC, PAGE, PASSWORD, WRITERS, Dataset, uuid4
from bench.peer_requests import VALUE, PeerRequest, Reply, expect, send
from bench.peers.base import BENCH_BIN, NotHere, Peer, free_port

_OWNER = "vault.owner = @request.auth.id"
# Which vault, and since when, is part of the rule: PocketBase delays empty answers to a `filter` by up to half a
# second, on purpose, so that nobody guesses hidden fields by filters.
_LISTED = f"{_OWNER} && vault = @request.query.vault && updated > @request.query.since"
_RECORDS = "/api/collections/documents/records"
_COLLECTIONS: tuple[dict[str, Any], ...] = (
    {
        "id": "benchvaults0001",
        "name": "vaults",
        "type": "base",
        "fields": [
            {"name": "owner", "type": "relation", "collectionId": "_pb_users_auth_", "maxSelect": 1, "required": True},
            {"name": "name", "type": "text", "required": True},
        ],
        "indexes": ["CREATE UNIQUE INDEX vaults_by_name ON vaults (owner, name)"],
        "createRule": "owner = @request.auth.id",
        "viewRule": "owner = @request.auth.id",
    },
    {
        "name": "documents",
        "type": "base",
        "fields": [
            {
                "name": "vault",
                "type": "relation",
                "collectionId": "benchvaults0001",
                "maxSelect": 1,
                "required": True,
                "cascadeDelete": True,
            },
            {"name": "collection", "type": "text", "required": True},
            {"name": "data", "type": "text", "required": True, "max": 10_000_000},
            {"name": "hmac", "type": "text"},
            {"name": "version", "type": "number"},
            {"name": "created", "type": "autodate", "onCreate": True},
            {"name": "updated", "type": "autodate", "onCreate": True, "onUpdate": True},
        ],
        "indexes": [
            "CREATE INDEX documents_by_time ON documents (vault, updated)",
            "CREATE INDEX documents_by_collection ON documents (vault, collection)",
        ],
        "listRule": _LISTED,
        "viewRule": _OWNER,
        "createRule": _OWNER,
        # the optimistic lock: the version that the client saw must be the stored one
        "updateRule": f"{_OWNER} && version = @request.body.seen",
    },
)


class PocketBase(Peer):
    """Go, one process, SQLite in WAL with synchronous=NORMAL."""

    name = "pocketbase"
    title = "PocketBase"
    marker_version = (b'"version":', b"}")
    marker_cursor = (b'"updated":"', b'"')
    marker_page = marker_cursor
    first_cursor = "2000"
    stale_status = 404  # a rule that does not hold hides the record

    def __init__(self) -> None:
        super().__init__()
        self._program = BENCH_BIN / "pocketbase"
        self._bearer = ""

    @property
    def version(self) -> str:
        said = subprocess.run([self._program, "--version"], capture_output=True, text=True, check=False).stdout
        return said.split()[-1]

    def launch(self) -> None:
        if not self._program.exists():
            raise NotHere("PocketBase is not installed: run `make bench-setup`.")
        host = f"127.0.0.1:{free_port()}"
        command: list[str | Path] = [self._program, "serve", "--http", host, "--dir", self.folder / "data"]
        self.host = self.spawn(command, {}, r"http://(127\S+:\d+)")

    def fill(self, data: Dataset) -> None:
        """Collections, accounts and vaults through the API, documents straight into the stopped database."""
        admin = ["admin@example.org", PASSWORD]
        subprocess.run(
            [self._program, "superuser", "upsert", *admin, "--dir", self.folder / "data"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
        token = expect(self.host, _log_in("_superusers", admin[0])).json["token"]
        for wanted in _COLLECTIONS:
            expect(self.host, PeerRequest("POST", "/api/collections", json.dumps(wanted), {"Authorization": token}))
        for number in range(ACCOUNTS):
            body = {"email": _email(number), "password": PASSWORD, "passwordConfirm": PASSWORD}
            expect(self.host, PeerRequest("POST", "/api/collections/users/records", json.dumps(body)))
        self.other = expect(self.host, self.login(1)).json["token"]
        owner = expect(self.host, self.login(0)).json
        self._bearer = owner["token"]
        for seeded in data.vaults:
            body = {"owner": owner["record"]["id"], "name": seeded.name}
            ask = PeerRequest("POST", "/api/collections/vaults/records", json.dumps(body), self._headers())
            seeded.vault = expect(self.host, ask).json["id"]
        self.halt()
        self._insert(data)
        users = self._add_accounts(WRITERS)
        self.launch()
        with ThreadPoolExecutor(16) as pool:
            self.writers = list(pool.map(partial(self._own_vault, token), users))

    def _own_vault(self, admin: str, user: str) -> tuple[str, str]:
        """A token of an account, which a superuser may ask for, and a vault that the account makes with it."""
        ask = PeerRequest("POST", f"/api/collections/users/impersonate/{user}", "{}", {"Authorization": admin})
        bearer = expect(self.host, ask).json["token"]
        body = json.dumps({"owner": user, "name": "own"})
        own = PeerRequest("POST", "/api/collections/vaults/records", body, {"Authorization": bearer})
        return bearer, expect(self.host, own).json["id"]

    def _insert(self, data: Dataset) -> None:
        connection = sqlite3.connect(self.folder / "data/data.db")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        with connection:
            for seeded in data.vaults:
                first = time.time() - seeded.count / 1000 - 60
                moments = [_moment(first + number / 1000) for number in range(max(seeded.count, 1))]
                seeded.uids = [uuid4().replace("-", "")[:15] for _ in range(seeded.count)]
                connection.executemany(
                    "INSERT INTO documents (id, vault, collection, data, hmac, version, created, updated)"
                    " VALUES (?, ?, ?, ?, ?, 1, ?, ?)",
                    (
                        (uid, seeded.vault, COLLECTION, seeded.payload(number), HMAC, moments[number], moments[number])
                        for number, uid in enumerate(seeded.uids)
                    ),
                )
                seeded.end = moments[-1].replace(" ", "%20")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def _add_accounts(self, count: int) -> list[str]:
        """Copies of an account under other ids, addresses and token keys; a superuser gets a token of each."""
        connection = sqlite3.connect(self.folder / "data/data.db")
        connection.row_factory = sqlite3.Row
        [row] = connection.execute("SELECT * FROM users WHERE email = ?", (_email(1),))
        ids = [uuid4().replace("-", "")[:15] for _ in range(count)]
        marks = ", ".join("?" * len(row))
        with connection:
            for one in ids:
                new = {**dict(row), "id": one, "email": f"{one}@example.org", "tokenKey": one * 3}
                connection.execute(f"INSERT INTO users ({', '.join(new)}) VALUES ({marks})", list(new.values()))
        connection.close()
        return ids

    def _headers(self) -> dict[str, str]:
        return {"Authorization": self._bearer}

    def get(self, vault: str, uid: str) -> PeerRequest:  # noqa: ARG002
        return PeerRequest("GET", f"{_RECORDS}/{uid}", None, self._headers())

    def create(self, vault: str, data: str) -> PeerRequest:
        body = {"vault": vault, "collection": COLLECTION, "data": data, "hmac": HMAC, "version": 1}
        return PeerRequest("POST", _RECORDS, json.dumps(body), self._headers())

    def update(self, vault: str, uid: str, data: str) -> PeerRequest:  # noqa: ARG002
        body = f'{{"data": "{data}", "hmac": "{HMAC}", "version+": 1, "seen": {VALUE}}}'
        return PeerRequest("PATCH", f"{_RECORDS}/{uid}", body, self._headers())

    def list_(self, vault: str) -> PeerRequest:
        return self._query(vault, "2000")

    def since(self, vault: str) -> PeerRequest:
        return self._query(vault, VALUE)

    def _query(self, vault: str, since: str) -> PeerRequest:
        path = f"{_RECORDS}?perPage={PAGE}&skipTotal=1&sort=updated&vault={vault}&since={since}"
        return PeerRequest("GET", path, None, self._headers())

    def page(self, vault: str) -> PeerRequest:
        return self.since(vault)  # never more than a page

    def login(self, number: int) -> PeerRequest:
        return _log_in("users", _email(number))

    def document(self, reply: Reply) -> tuple[str, str]:
        return reply.json["id"], reply.json["data"]

    def documents(self, reply: Reply) -> list[tuple[str, str]]:
        return [(record["id"], record["data"]) for record in reply.json["items"]]

    def first_version(self, vault: str, uid: str) -> str:  # noqa: ARG002
        return "1"

    def works(self, reply: Reply) -> bool:
        token, user = reply.json["token"], reply.json["record"]["id"]
        body = json.dumps({"owner": user, "name": token[-40:]})
        ask = PeerRequest("POST", "/api/collections/vaults/records", body, {"Authorization": token})
        return send(self.host, ask).status == 200

    def refuses(self, reply: Reply) -> bool:
        """A list that the rule hides is empty; a create that it forbids is a 400."""
        return reply.status in {400, 401, 403, 404} or (reply.status == 200 and self.documents(reply) == [])


def _email(number: int) -> str:
    return f"account{number}@example.org"


def _log_in(collection: str, email: str) -> PeerRequest:
    body = json.dumps({"identity": email, "password": PASSWORD})
    return PeerRequest("POST", f"/api/collections/{collection}/auth-with-password", body)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + "Z"
