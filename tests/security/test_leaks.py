"""Canaries sent through every route, rightly and wrongly: none sings in a log, an error or a place of the database."""

from __future__ import annotations

import itertools
import re
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx2
import msgspec
import pytest

from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.request import Endpoint
from tests.kit.network.raw_http import Response, refusal
from tests.kit.people.api_user import PASSWORD, ApiUser, unique_email
from tests.kit.people.one_time_codes import code
from tests.kit.samples import LONG, some
from tests.kit.servers.process import Server, fresh_address
from tests.kit.servers.secret import SECRET

ENDPOINTS = routes.router(Variant.BOTH).endpoints
SECRETS = (
    "password",
    "new password",
    "access token",
    "refresh token",
    "API key",
    "secret of one-time codes",
    "recovery code",
    "ticket",
)


def canary(kind: str) -> str:
    return f"canary{kind}{uuid.uuid4().hex}"


class Cage(NamedTuple):
    """A server, and the canaries by what they are."""

    server: Server
    canaries: dict[str, str]

    def parts(self, kind: str) -> list[str]:
        """What of a canary would betray it: of a token its payload and its signature, of a key all but the prefix."""
        whole = self.canaries[kind]
        if kind.endswith("token"):
            return whole.split(".")[1:]
        return [whole.removeprefix("srk_").removeprefix("srt_")]


def with_second_factor(server: Server) -> tuple[str, str, str]:
    """Somebody who has a second factor, and has used it rightly and wrongly: its secret, a recovery code, a ticket."""
    person, password = ApiUser.register(server), {"currentPassword": PASSWORD}
    begun = person.http.post("/auth/second-factor/totp", json=password).json()
    now = int(person.http.get("/health").json()["timestamp"])
    first = {"code": code(begun["secret"], now)}
    codes = person.http.post("/auth/second-factor/totp/confirm", json=first).json()["recoveryCodes"]
    login = {"email": person.email, "password": PASSWORD}
    ticket = person.http.post("/auth/email/login", json=login).json()["error"]["details"]["ticket"]
    for factor, status in ((first, 401), ({"recoveryCode": codes[0]}, 200), ({"recoveryCode": codes[0]}, 401)):
        body = {"ticket": ticket, "secondFactor": factor}
        assert person.http.post("/auth/email/login/second", json=body).status_code == status
        change = {**password, "newPassword": PASSWORD, "secondFactor": {"recoveryCode": "0" * 16}}
        assert person.http.put("/auth/password", json=change).status_code == 401
    return begun["secret"], codes[1], ticket


@pytest.fixture
def cage(tmp_path: Path) -> Iterator[Cage]:
    """A server that has seen every canary in its right place."""
    server = Server(tmp_path, DB_PATH="vault.db", LOG_LEVEL="debug")
    try:
        server.start()
        http = server.connect(address=fresh_address())
        email, password, new = f"{canary('email')}@example.com", canary("password"), canary("newpassword")
        kdf, keyring = {"salt": canary("kdf")}, canary("keyring")
        new_kdf, new_keyring = {"salt": canary("newkdf")}, canary("newkeyring")
        body = {"email": email, "password": password, "kdf": kdf, "keyring": keyring}
        made = http.post("/auth/email/register", json=body).json()
        http.headers["authorization"] = f"Bearer {made['accessToken']}"
        assert http.post("/auth/email/prelogin", json={"email": email}).json() == {"kdf": kdf}
        proof = {"currentPassword": password, "kdf": new_kdf, "keyring": new_keyring}
        assert http.put("/auth/keyring", json={**proof, "version": 9}).status_code == 409
        assert http.put("/auth/keyring", json={**proof, "version": 1}).status_code == 200
        assert http.put("/auth/password", json={**proof, "newPassword": new, "keyringVersion": 9}).status_code == 409
        change = {**proof, "newPassword": new, "keyringVersion": 2}
        assert http.put("/auth/password", json=change).status_code == 200
        made = http.post("/auth/email/login", json={"email": email, "password": new}).json()
        made = http.post("/auth/refresh", json={"refreshToken": made["refreshToken"]}).json()
        http.headers["authorization"] = f"Bearer {made['accessToken']}"
        key = http.post("/auth/api-keys", json={"name": "k"}).json()["key"]
        data, blob, name = canary("data"), canary("blob"), canary("name")
        vault = http.post("/vault", json={"name": name, "data": blob, "salt": canary("salt")}).json()["uid"]
        path = f"/vaults/{vault}/documents"
        body = {"collection": canary("collection"), "data": data, "hmac": canary("hmac")}
        uid = http.post(path, json=body).json()["uid"]
        for bearer, way in itertools.product((made["accessToken"], key), (path, f"{path}/{uid}", "/vault", "/auth/me")):
            assert http.get(way, headers={"authorization": f"Bearer {bearer}"}).status_code == 200
        assert http.post(path, json=body | {"uid": uid, "data": canary("data")}).status_code == 409
        assert http.put(f"{path}/{uid}", json={"data": canary("data"), "version": 9}).status_code == 409
        secret, recovery_code, ticket = with_second_factor(server)
        canaries = {
            "secret of one-time codes": secret,
            "recovery code": recovery_code,
            "ticket": ticket,
            "password": password,
            "new password": new,
            "access token": made["accessToken"],
            "refresh token": made["refreshToken"],
            "API key": key,
            "ciphertext": data,
            "blob": blob,
            "email": email,
            "vault name": name,
            "collection": body["collection"],
            "hmac": body["hmac"],
            "descriptor": new_kdf["salt"],
            "first descriptor": kdf["salt"],
            "keyring": new_keyring,
            "first keyring": keyring,
        }
        yield Cage(server, canaries)
    finally:
        server.abandon()


def abuses(endpoint: Endpoint, text: str) -> Iterator[dict[str, Any]]:
    """Ways to put a text where it does not belong."""
    filled = re.sub(r"\{[^}]+\}", quote(text, safe=""), endpoint.path)
    plain = re.sub(r"\{[^}]+\}", str(uuid.uuid4()), endpoint.path)
    fields = (
        {field.encode_name: text for field in msgspec.structs.fields(endpoint.request_type)}
        if endpoint.request_type
        else {}
    )
    json_type = {"content-type": "application/json"}
    asked = ("since", "limit", "collection", "includeDeleted", "before")
    yield {"url": filled}
    yield {"url": f"{filled}/{quote(text, safe='')}"}
    yield {"url": plain, "params": {text: text, **dict.fromkeys(asked, text)}}
    yield {"url": f"{plain}?limit={quote(text)}&limit={quote(text)}"}
    yield {"url": plain, "json": {**fields, text: text}}
    yield {"url": plain, "json": {name: [value] for name, value in fields.items()} or [text]}
    yield {"url": plain, "json": text}
    yield {"url": plain, "content": text.encode(), "headers": json_type}
    yield {"url": plain, "content": f'{{"{text}": "{text}"'.encode(), "headers": json_type}
    yield {"url": plain, "content": text.encode(), "headers": {"content-type": "text/plain"}}
    yield {"url": plain, "content": b"{}", "headers": {"content-type": text}}
    yield {"url": plain, "data": {text: text, **fields}}
    yield {"url": plain, "headers": {"authorization": f"Bearer {text}x"}}
    yield {"url": plain, "headers": {"authorization": f"Basic {text}", "x-api-key": text, "cookie": f"token={text}"}}
    yield {"url": plain, "headers": dict.fromkeys(("if-match", "if-none-match", "accept", "referer"), text)}
    yield {"url": plain, "headers": dict.fromkeys(("origin", "x-forwarded-for", "range", "te"), text)}
    yield {"url": plain, "method": "PATCH", "json": {text: text}}


class Caller:
    """Calls from an address of its own, over a connection that is kept for as long as answers have an end."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"
        self._to, self._from = ("127.0.0.1", port), (fresh_address(), 0)
        self._wire: socket.socket | None = None

    def refusal_of(self, method: str, url: str, **more: Any) -> Response | None:
        """How a request is refused; None if it is not."""
        asked = httpx2.Request(method, self._url + url, **more)
        lines = [b"%s %s HTTP/1.1" % (method.encode(), asked.url.raw_path)]
        lines += [b"%s: %s" % header for header in asked.headers.raw]
        if self._wire is None:
            self._wire = socket.create_connection(self._to, 30, self._from)
        self._wire.sendall(b"\r\n".join(lines) + b"\r\n\r\n" + asked.read())
        answer = refusal(self._wire)
        if answer is None or answer.closes:
            self.close()
        return answer

    def close(self) -> None:
        if self._wire is not None:
            self._wire.close()
        self._wire = None


def refusals(cage: Cage, endpoint: Endpoint) -> Iterator[tuple[str, Response]]:
    """What an endpoint says to abuses, from nobody and from somebody who has nothing to hide.

    In `make test` each canary comes in a quarter of the ways; each way with some canaries.
    """
    body = {"email": unique_email(), "password": "correct horse"}
    worker = cage.server.connect().post("/auth/email/register", json=body).json()["accessToken"]
    for number, (kind, text) in enumerate(cage.canaries.items()):
        caller = Caller(cage.server.port)
        for abuse, bearer in itertools.product(
            some("abuses that carry a canary", abuses(endpoint, text), number), (None, worker)
        ):
            given = {"method": endpoint.method, **abuse}
            if bearer is not None:
                given["headers"] = {"authorization": f"Bearer {bearer}", **given.get("headers", {})}
            if answer := caller.refusal_of(**given):
                assert answer.status < 500, answer.body
                yield kind, answer
        caller.close()


def test_no_canary_sings(cage: Cage) -> None:
    """No refusal echoes what was sent; the log holds none of it, and the database only what it is there to keep."""
    echoes, count = [], 0
    for endpoint in ENDPOINTS:
        for kind, answer in refusals(cage, endpoint):
            count += 1
            shown = answer.body.decode() + str(answer.headers)
            if any(part in shown for part in cage.parts(kind)):
                echoes.append((endpoint.method, endpoint.path, kind, shown))
    assert echoes == []
    assert count > (15_000 if LONG else 4_000)
    server, home = cage.server, Path(cage.server.home)
    running = b"".join(path.read_bytes() for path in home.glob("vault.db*"))
    assert server.end() == 0
    ended = b"".join(path.read_bytes() for path in home.glob("vault.db*"))
    log = (home / "stderr").read_text() + (home / "stdout").read_text()
    assert log.count('"event":"request"') > count
    assert '"event":"fault"' not in log
    assert "Traceback" not in log
    assert SECRET not in log
    assert [kind for kind in cage.canaries if any(part in log for part in cage.parts(kind))] == []
    for raw in (running, ended):
        assert SECRET.encode() not in raw
        held = {kind for kind in cage.canaries if any(part.encode() in raw for part in cage.parts(kind))}
        assert not held & set(SECRETS)
    assert held >= {"ciphertext", "blob", "email", "keyring", "descriptor"}
    assert held >= {"first keyring", "first descriptor"}, "what is replaced is retained for its owner"
