"""A server of the bare specification, and nothing more: its own uids, its own words, no order, no pages."""

from __future__ import annotations

import json
import random
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class BareServer:
    """Variant A, or B, word for word. `hides`: deleted documents are not shown any more."""

    def __init__(self, variant: str = "A", *, hides: bool = False) -> None:
        self.variant = variant
        self.hides = hides
        self.users: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, str] = {}
        self.vaults: dict[str, dict[str, Any]] = {}
        self.documents: dict[str, dict[str, Any]] = {}
        self.lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_any(self) -> None:
                raw = self.rfile.read(int(self.headers.get("content-length") or 0))
                body = json.loads(raw) if raw else {}
                token = (self.headers.get("authorization") or "").removeprefix("Bearer ")
                parts = urlsplit(self.path)
                path = tuple(unquote(part) for part in parts.path.strip("/").split("/"))
                query = {name: values[0] for name, values in parse_qs(parts.query).items()}
                with server.lock:
                    status, answer = server.answer(self.command, path, query, body, server.tokens.get(token))
                content = json.dumps(answer).encode()
                self.send_response_only(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_DELETE = handle_any  # noqa: N815

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)

    def answer(
        self, method: str, path: tuple[str, ...], query: dict[str, str], body: dict[str, Any], user: str | None
    ) -> tuple[int, Any]:
        """The answer to a request, in this server's own words."""
        if path in {("auth", "email", "register"), ("auth", "email", "login")}:
            return self._enter(path[2], body)
        if path[0] == "auth" and path not in {("auth", "me"), ("auth", "logout")}:
            return 404, {"message": "Cannot find that"}
        if user is None:
            return 401, {"message": "Unauthorized"}
        if path == ("auth", "me"):
            return 200, self.users[user]
        if path[0] == "vault":
            return self._vault(method, path[1:], body, user)
        if path[0] == "vaults" and len(path) >= 3 and path[2] == "documents" and self.variant == "A":
            if self.vaults.get(path[1], {}).get("user") != user:
                return 404, {"message": "no vault"}
            return self._document(method, path[1], path[3:], query, body)
        return 404, {"message": "Cannot find that"}

    def _enter(self, how: str, body: dict[str, Any]) -> tuple[int, Any]:
        known = self.users.get(body["email"])
        if how == "register":
            if known is not None:
                return 409, {"message": "taken"}
            self.users[body["email"]] = {
                "id": secrets.token_hex(4),
                "email": body["email"],
                "password": body["password"],
            }
        elif known is None or known["password"] != body["password"]:
            return 401, {"message": "wrong"}
        token = secrets.token_urlsafe()
        self.tokens[token] = body["email"]
        user = self.users[body["email"]]
        shown = {"id": user["id"], "email": user["email"]}
        return 201, {"accessToken": token, "refreshToken": secrets.token_urlsafe(), "user": shown}

    def _vault(self, method: str, path: tuple[str, ...], body: dict[str, Any], user: str) -> tuple[int, Any]:
        mine = [vault for vault in self.vaults.values() if vault["user"] == user]
        if not path:
            if method == "GET":
                return 200, {"vaults": [_shown(vault) for vault in mine]}
            if any(vault["name"] == body["name"] for vault in mine):
                return 409, {"message": "taken"}
            if self.variant == "B" and not (body.get("data") and "salt" in body):
                return 400, {"message": "data and salt are required"}
            kept: dict[str, Any] = {name: body[name] for name in ("name", "data", "salt") if name in body}
            if self.variant == "A":
                kept = {"name": body["name"]}
            stamped: dict[str, Any] = {"uid": secrets.token_hex(8), "user": user, "version": 1, "updatedAt": _now()}
            vault: dict[str, Any] = {**stamped, **kept}
            self.vaults[vault["uid"]] = vault
            return 201, _shown(vault)
        found = self.vaults.get(path[0])
        if found is None or found["user"] != user:
            return 404, {"message": "no vault"}
        if method == "PUT" and self.variant == "B":
            found |= {"data": body["data"], "salt": body["salt"]}
            found |= {"version": found["version"] + 1, "updatedAt": _now()}
        if method == "DELETE":
            del self.vaults[path[0]]
            return 200, {}
        return 200, _shown(found)

    def _document(
        self, method: str, vault: str, path: tuple[str, ...], query: dict[str, str], body: dict[str, Any]
    ) -> tuple[int, Any]:
        if not path and method == "GET":
            found = [row for row in self.documents.values() if row["vaultUid"] == vault]
            found = [row for row in found if query.get("collection") in {None, row["collection"]}]
            found = [row for row in found if row["updatedAt"] > int(query.get("since", -1))]
            found = [row for row in found if not (self.hides and row["deletedAt"])]
            random.Random(len(found)).shuffle(found)  # noqa: S311
            return 200, {"documents": found[: int(query.get("limit", len(found)))]}
        if not path:
            made: dict[str, Any] = {"uid": secrets.token_hex(8), "vaultUid": vault, "collection": body["collection"]}
            made |= {"data": body["data"], "hmac": body.get("hmac"), "version": 1}
            made |= {"createdAt": _now(), "updatedAt": _now(), "deletedAt": None}
            self.documents[made["uid"]] = made
            return 201, {name: value for name, value in made.items() if name != "deletedAt"}
        row: dict[str, Any] = self.documents.get(path[0], {})
        if row.get("vaultUid") != vault or (self.hides and row["deletedAt"]):
            return 404, {"message": "no document"}
        if method == "PUT":
            if body["version"] != row["version"]:
                return 409, {"message": "conflict"}
            row |= {"data": body["data"], "hmac": body["hmac"], "version": row["version"] + 1}
            row |= {"updatedAt": _now(), "deletedAt": None}
        if method == "DELETE":
            row |= {"deletedAt": _now(), "updatedAt": _now()}
            return 200, {"ok": True}
        return 200, row


def _now() -> int:
    return time.time_ns() // 1_000_000


def _shown(vault: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in vault.items() if name != "user"}
