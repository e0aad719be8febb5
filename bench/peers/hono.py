"""A twin of the document endpoints on Hono with better-sqlite3, set as that stack ships: WAL, synchronous=NORMAL."""

from __future__ import annotations

import base64
import hmac
import json
import shutil
import sqlite3
import time

from bench.dataset import COLLECTION, HMAC, Dataset, uuid4
from bench.peers.base import BENCH, SECRET, WORK, NotHere
from bench.peers.vault_api import VaultApi


class HonoTwin(VaultApi):
    """Node, Hono, hono/jwt, better-sqlite3, bcryptjs."""

    name = "hono"
    title = "Hono twin"

    @property
    def version(self) -> str:
        packages = json.loads((BENCH / "peers/hono/package-lock.json").read_text())["packages"]
        names = ("hono", "@hono/node-server", "better-sqlite3")
        return ", ".join(f"{name} {packages[f'node_modules/{name}']['version']}" for name in names)

    def launch(self) -> None:
        home = WORK / "hono"
        node = shutil.which("node")
        if node is None or not (home / "node_modules").is_dir():
            raise NotHere("The Hono twin needs Node and its packages: run `make bench-setup`.")
        shutil.copy(BENCH / "peers/hono/server.mjs", home / "server.mjs")
        environment = {"JWT_SECRET": SECRET, "DB_PATH": str(self.folder / "twin.db"), "NODE_ENV": "production"}
        self.host = self.spawn([node, home / "server.mjs"], environment, r"listens on http://(\S+)")

    def insert(self, data: Dataset, owner: str) -> None:  # noqa: ARG002
        connection = sqlite3.connect(self.folder / "twin.db")
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA cache_size = -200000")
        with connection:
            for seeded in data.vaults:
                first = time.time_ns() // 1_000_000 - seeded.count - 60_000
                seeded.uids = [uuid4() for _ in range(seeded.count)]
                connection.executemany(
                    "INSERT INTO documents VALUES (?, ?, ?, ?, ?, 1, ?, ?, NULL)",
                    (
                        (uid, seeded.vault, COLLECTION, seeded.payload(number), HMAC, first + number, first + number)
                        for number, uid in enumerate(seeded.uids)
                    ),
                )
                seeded.end = str(first + max(seeded.count - 1, 0))
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()

    def add_accounts(self, count: int) -> list[str]:
        """Rows as a registration leaves them, and tokens as hono/jwt signs them."""
        now = int(time.time())
        users = [uuid4() for _ in range(count)]
        connection = sqlite3.connect(self.folder / "twin.db")
        with connection:
            connection.executemany(
                "INSERT INTO users VALUES (?, ?, 'no password', ?, ?)",
                ((user, f"{user}@example.org", now * 1000, now * 1000) for user in users),
            )
        connection.close()
        return [
            _signed({"iss": "twin", "sub": user, "iat": now, "typ": "access", "exp": now + 21_600}) for user in users
        ]


def _signed(claims: dict[str, str | int]) -> str:
    text = b".".join(_b64(json.dumps(part).encode()) for part in ({"alg": "HS256", "typ": "JWT"}, claims))
    return (text + b"." + _b64(hmac.digest(SECRET.encode(), text, "sha256"))).decode()


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")
