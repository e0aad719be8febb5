"""Kinto on PostgreSQL, the backend that its documentation recommends, on waitress as `kinto start` runs it."""

from __future__ import annotations

import base64
import importlib.metadata
import json
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

from bench import postgres, proc
from bench.dataset import COLLECTION, HMAC, PAGE, PASSWORD, Dataset, uuid4
from bench.peer_requests import VALUE, PeerRequest, Reply, expect
from bench.peers.base import BENCH_BIN, NotHere, Peer, free_port

_BUCKET = "/v1/buckets/bench"
_INI = """
[server:main]
use = egg:waitress#main
host = 127.0.0.1
port = %(http_port)s
threads = 16

[app:main]
use = egg:kinto
kinto.includes = kinto.plugins.accounts
kinto.storage_backend = kinto.core.storage.postgresql
kinto.storage_url = {url}
kinto.permission_backend = kinto.core.permission.postgresql
kinto.permission_url = {url}
kinto.cache_backend = kinto.core.cache.memory
kinto.bucket_create_principals = system.Authenticated
kinto.account_create_principals = system.Everyone
kinto.userid_hmac_secret = a secret of the benchmark, which guards nothing at all
multiauth.policies = account
multiauth.policy.account.use = kinto.plugins.accounts.authentication.AccountsAuthenticationPolicy
kinto.experimental_collection_schema_validation = false

[loggers]
keys = root
[handlers]
keys = console
[formatters]
keys = plain
[logger_root]
level = WARNING
handlers = console
[handler_console]
class = StreamHandler
args = (sys.stderr,)
formatter = plain
[formatter_plain]
format = %(message)s
"""


class Kinto(Peer):
    """A vault is a collection in the owner's bucket, a document a record; the version is the record's ETag."""

    name = "kinto"
    title = "Kinto, PostgreSQL"
    cannot = {
        "login": "has no login: every request carries the password",
        "accounts": "every request carries the password: of 1,000 accounts the hash checks would be measured",
    }
    marker_version = (b'Etag: "', b'"')
    marker_cursor = (b'Etag: "', b'"')
    marker_page = (b'"last_modified":', b"}")
    stale_status = 412

    def __init__(self) -> None:
        super().__init__()
        self._database: postgres.Postgres | None = None

    @property
    def version(self) -> str:
        return importlib.metadata.version("kinto")

    def launch(self) -> None:
        if not (BENCH_BIN / "kinto").exists() or not postgres.present():
            raise NotHere("Kinto or PostgreSQL is not installed: run `make bench-setup`.")
        ini = self.folder / "kinto.ini"
        if self._database is None:
            self._database = postgres.Postgres(self.folder / "pg")
            ini.write_text(_INI.format(url=self._database.url.replace("%", "%%")))
            migrate: list[str | Path] = [BENCH_BIN / "kinto", "migrate", "--ini", ini]
            subprocess.run(migrate, check=True, capture_output=True, timeout=120)
        port = free_port()
        self.spawn([BENCH_BIN / "kinto", "start", "--ini", ini, "--port", str(port)], {}, None)
        self.host = f"127.0.0.1:{port}"
        self.await_answer("/v1/")

    def fill(self, data: Dataset) -> None:
        """Accounts, bucket and collections through the API, records straight into PostgreSQL."""
        assert self._database is not None
        for number in (0, 1):
            body = json.dumps({"data": {"password": PASSWORD}})
            expect(self.host, PeerRequest("PUT", f"/v1/accounts/account{number}", body, {}, 201))
        self.other = _basic(1)
        expect(self.host, PeerRequest("PUT", _BUCKET, "{}", self._headers(), 201))
        for number, seeded in enumerate(data.vaults):
            seeded.vault = f"vault{number}"
            expect(self.host, PeerRequest("PUT", f"{_BUCKET}/collections/{seeded.vault}", "{}", self._headers(), 201))
        for seeded in data.vaults:
            first = time.time_ns() // 1_000_000 - seeded.count - 60_000
            seeded.uids = [uuid4() for _ in range(seeded.count)]
            seeded.end = str(first + max(seeded.count - 1, 0))
            parent = f"/buckets/bench/collections/{seeded.vault}"
            self._database.copy(
                "objects",
                ("id", "parent_id", "resource_name", "last_modified", "data", "deleted"),
                (
                    (uid, parent, "record", _moment(first + number), _content(seeded.payload(number)), "false")
                    for number, uid in enumerate(seeded.uids)
                ),
            )
        self._database.run("ANALYZE")

    def halt(self) -> None:
        super().halt()
        if self._database is not None:
            self._database.stop()
            self._database = None

    def pids(self) -> list[int]:
        assert self._database is not None
        return proc.tree([process.pid for process in self.processes]) + self._database.pids()

    def _headers(self) -> dict[str, str]:
        return {"Authorization": _basic(0)}

    def get(self, vault: str, uid: str) -> PeerRequest:
        return PeerRequest("GET", f"{_BUCKET}/collections/{vault}/records/{uid}", None, self._headers())

    def create(self, vault: str, data: str) -> PeerRequest:
        return PeerRequest("POST", f"{_BUCKET}/collections/{vault}/records", _record(data), self._headers(), 201)

    def update(self, vault: str, uid: str, data: str) -> PeerRequest:
        headers = {**self._headers(), "If-Match": f'"{VALUE}"'}
        return PeerRequest("PUT", f"{_BUCKET}/collections/{vault}/records/{uid}", _record(data), headers)

    def list_(self, vault: str) -> PeerRequest:
        return PeerRequest("GET", f"{_BUCKET}/collections/{vault}/records?_sort=last_modified", None, self._headers())

    def since(self, vault: str) -> PeerRequest:
        path = f"{_BUCKET}/collections/{vault}/records?_sort=last_modified&_since={VALUE}"
        return PeerRequest("GET", path, None, self._headers())

    def page(self, vault: str) -> PeerRequest:
        since = self.since(vault)
        return PeerRequest(since.method, f"{since.path}&_limit={PAGE}", None, since.headers)

    def login(self, number: int) -> PeerRequest:
        raise NotImplementedError

    def document(self, reply: Reply) -> tuple[str, str]:
        return reply.json["data"]["id"], reply.json["data"]["data"]

    def documents(self, reply: Reply) -> list[tuple[str, str]]:
        return [(record["id"], record["data"]) for record in reply.json["data"]]

    def first_version(self, vault: str, uid: str) -> str:
        return str(expect(self.host, self.get(vault, uid)).json["data"]["last_modified"])

    def works(self, reply: Reply) -> bool:
        raise NotImplementedError


def _basic(number: int) -> str:
    return "Basic " + base64.b64encode(f"account{number}:{PASSWORD}".encode()).decode()


def _record(data: str) -> str:
    return json.dumps({"data": {"collection": COLLECTION, "data": data, "hmac": HMAC}})


def _content(data: str) -> str:
    return json.dumps({"collection": COLLECTION, "data": data, "hmac": HMAC})


def _moment(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
