"""What the greedy account sends to each route: the largest bodies, the most rows, the names that take the most room."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import quote

from tests.fairness.greedy import Ask
from tests.fairness.stage import WIDE, Stage, encoded, large_keyring, wide_name
from tests.kit.people.api_user import PASSWORD

_VERSION: Final = re.compile(rb'"version":(\d+)')
SILENT: Final = 16  # connections of an attack that reads which never do
Make = Callable[[Stage, int], Ask]


class Attack(NamedTuple):
    """How a route is attacked."""

    route: str
    make: Make
    expected: tuple[int, ...]  # statuses of which one shows that the attack reaches what it is about
    kind: str = ""  # where a route is attacked in several ways
    streams: bool = False
    learns: bool = False  # the version of what is replaced, from each response
    version: int = 1  # of what is replaced, at first
    silent: int = 0  # connections that never read

    @property
    def name(self) -> str:
        """The name in the table."""
        return f"{self.route} {self.kind}".strip()

    def learn(self, stage: Stage, start: bytes) -> None:
        """Take the version that a response names."""
        found = _VERSION.search(start)
        if self.learns and found is not None:
            stage.version = int(found[1])


def _get(
    route: str,
    path: Callable[[Stage], str] | None = None,
    status: int = 200,
    kind: str = "",
    *,
    streams: bool = False,
    silent: int = SILENT,
) -> Attack:
    """An attack that reads, on some of its connections as slowly as can be: never."""
    where = route.split()[1]

    def make(stage: Stage, _number: int) -> Ask:
        return Ask("GET", path(stage) if path else where, token=stage.greedy.access)

    return Attack(route, make, (status,), kind, streams=streams, silent=silent)


def _send(
    route: str,
    body: Callable[[Stage, int], object],
    status: int | tuple[int, ...],
    path: Callable[[Stage, int], str] | None = None,
    kind: str = "",
    spare: str = "",
    *,
    public: bool = False,
    learns: bool = False,
    version: int = 1,
) -> Attack:
    """An attack that sends a body; by an account of its own where it changes or ends that."""
    method, where = route.split()
    statuses = status if isinstance(status, tuple) else (status,)

    def make(stage: Stage, number: int) -> Ask:
        token = "" if public else (stage.spare(spare) if spare else stage.greedy).access
        content = body(stage, number)
        raw = content if isinstance(content, bytes) else b"" if content is None else encoded(content)
        return Ask(method, path(stage, number) if path else where, raw, token)

    return Attack(route, make, statuses, kind, learns=learns, version=version)


def _nothing(_stage: Stage, _number: int) -> None:
    """No body."""


def _proof(_stage: Stage, _number: int) -> object:
    return {"currentPassword": PASSWORD}


def _documents(stage: Stage) -> str:
    return f"/vaults/{stage.vault}/documents"


def _large(stage: Stage) -> str:
    return f"/vaults/{stage.large}/documents"


def _one_of(uids: list[str], number: int) -> str:
    """One of these, or what does not exist once all are used."""
    return uids[number] if number < len(uids) else str(uuid.uuid4())


def _email(number: int) -> str:
    return f"{number:08}-{uuid.uuid4().hex}@{'x' * 200}"


def _registration(stage: Stage, number: int) -> object:
    body = {"email": _email(number), "password": "x" * 1024, "kdf": stage.kdf, "keyring": large_keyring(1)}
    return body | {"deviceName": WIDE * 128}


def _login(stage: Stage, _number: int) -> object:
    return {"email": stage.spare("logs in").email, "password": PASSWORD, "deviceName": WIDE * 128}


def _change_of_password(stage: Stage, _number: int) -> object:
    body = {"currentPassword": PASSWORD, "newPassword": PASSWORD, "kdf": stage.kdf, "keyring": large_keyring(1)}
    return body | {"keyringVersion": stage.version}


def _large_document(stage: Stage, _number: int) -> bytes:
    return b'{"collection":"c","data":"' + stage.data.encode() + b'"}'


def _large_replacement(stage: Stage, _number: int) -> bytes:
    return b'{"version":%d,"data":"' % stage.version + stage.data.encode() + b'"}'


def _large_blob(stage: Stage, number: int) -> bytes:
    return b'{"salt":"","name":"%d","data":"' % number + stage.data.encode() + b'"}'


def _other_blob(stage: Stage, _number: int) -> bytes:
    return b'{"salt":"","data":"' + stage.data.encode() + b'"}'


def _creates(collection: str) -> Callable[[Stage, int], object]:
    def body(stage: Stage, _number: int) -> object:
        return {"operations": [{"op": "create", "collection": collection, "data": "QUJD"}] * stage.scale.operations}

    return body


def _tombstones(stage: Stage, number: int) -> object:
    """Documents that are created and deleted in one batch: only their tombstones stay."""
    uids = [str(uuid.uuid4()) for _ in range(stage.scale.operations // 2)]
    made = [{"op": "create", "uid": uid, "collection": wide_name(number), "data": "QQ"} for uid in uids]
    return {"operations": [*made, *({"op": "delete", "uid": uid} for uid in uids)]}


def _assertion(stage: Stage, _number: int) -> object:
    options = {"challenge": "A" * 43}
    credential = stage.passkey.assertion(options, "https://vault.example.com", signature=b"x" * 512)
    return {"credential": credential}


def _registered(stage: Stage, _number: int) -> object:
    options = {"challenge": "A" * 43}
    credential = stage.passkey.register(
        options, "https://vault.example.com", attestation=b"\x80" * (stage.scale.body // 2)
    )
    return {"name": WIDE * 128, "credential": credential}


def _import(stage: Stage, _number: int) -> bytes:
    """The file of an account with documents, into one that is empty."""
    if not stage.file:
        person = stage.spare("exports")
        stage.filled(person, stage.scale.few, wide_name(0))
        person.document({"uid": stage.filled(person, 1)}, data=stage.data)
        stage.file = person.http.get("/auth/export").content
    return stage.file


ATTACKS: Final = (
    _send("POST /auth/email/register", _registration, 201, public=True),
    _get("GET /auth/me"),
    _send("DELETE /auth/me", lambda _stage, _number: {"password": PASSWORD}, 200, spare="is deleted"),
    _send("PUT /auth/password", _change_of_password, 200, spare="changes its password", learns=True, version=0),
    _get("GET /auth/events", lambda _: "/auth/events?limit=1000"),
    _send("POST /auth/email/login", _login, 200, public=True),
    _send(
        "POST /auth/email/login/second",
        lambda _stage, number: {"ticket": "x" * 50_000, "secondFactor": {"code": f"{number % 1_000_000:06}"}},
        401,
        public=True,
    ),
    _send("POST /auth/refresh", lambda stage, _: {"refreshToken": stage.spare("refreshes").refresh}, 200, public=True),
    _send("POST /auth/logout", lambda _stage, _number: {"everywhere": True}, 200, spare="logs out"),
    _get("GET /auth/sessions"),
    _send(
        "DELETE /auth/sessions/{sid}",
        _nothing,
        200,
        lambda stage, number: f"/auth/sessions/{_one_of(stage.session_ids, number)}",
    ),
    _get("GET /auth/second-factor"),
    _send("POST /auth/second-factor/totp", _proof, 201, spare="enrols"),
    _send(
        "POST /auth/second-factor/totp/confirm",
        lambda stage, number: {"code": stage.wrong_code(number)},
        401,
        spare="confirms",
    ),
    _send("DELETE /auth/second-factor/totp", _proof, 404, spare="has no second factor"),
    _send("POST /auth/second-factor/recovery-codes", _proof, 404, spare="has no codes"),
    _get("GET /auth/keyring/versions"),
    _get("GET /auth/keyring/versions/{version}", lambda _: "/auth/keyring/versions/11"),
    _send("POST /auth/email/prelogin", lambda _stage, number: {"email": _email(number)}, 200, public=True),
    _get("GET /auth/keyring"),
    _send(
        "PUT /auth/keyring",
        lambda stage, _: {"keyring": large_keyring(stage.version + 1), "version": stage.version},
        200,
        learns=True,
        version=12,
    ),
    _send("POST /auth/passkeys/registration/options", _proof, 200, spare="begins passkeys"),
    _send("POST /auth/passkeys", _registered, (400, 401)),
    _get("GET /auth/passkeys"),
    _send(
        "PUT /auth/passkeys/{uid}",
        lambda _stage, number: {"name": f"{number:06}" + WIDE * 122},
        200,
        lambda stage, _: f"/auth/passkeys/{stage.passkey_uids[0]}",
    ),
    _send(
        "DELETE /auth/passkeys/{uid}",
        _proof,
        404,
        lambda *_: f"/auth/passkeys/{uuid.uuid4()}",
        spare="deletes passkeys",
    ),
    _send("POST /auth/passkeys/proof/options", _nothing, 200),
    _send("POST /auth/passkeys/login/options", lambda *_: {}, 200, public=True),
    _send("POST /auth/passkeys/login", _assertion, 401, public=True),
    _send("PUT /auth/key-share", lambda *_: {"keyShare": "A" * 43 + "="}, 200),
    _send("DELETE /auth/key-share", _nothing, 200),
    _get("GET /auth/export", kind="read", silent=0),
    _get("GET /auth/export", None, 429, "unread"),
    Attack(
        "POST /auth/import",
        lambda stage, number: Ask(
            "POST", "/auth/import", _import(stage, number), stage.spare("imports").access, "application/x-ndjson"
        ),
        (200, 409),  # one of them comes in, or none: each gives way to another of the same account
    ),
    _send("DELETE /auth/import", _nothing, 404),
    _get("GET /vault"),
    _send("POST /vault", lambda _stage, _number: {"name": uuid.uuid4().hex + WIDE * 223}, 201, kind="names"),
    _send("POST /vault", _large_blob, 201, kind="blobs", spare="stores blobs"),
    _get("GET /vault/by-name/{name*}", lambda _: f"/vault/by-name/{quote(wide_name(1))}"),
    _get("GET /vault/{uid}", lambda stage: f"/vault/{stage.blob}"),
    _send("PUT /vault/{uid}", _other_blob, 200, lambda stage, _: f"/vault/{stage.blob}"),
    _send(
        "DELETE /vault/{uid}", _nothing, 200, lambda stage, number: f"/vault/{stage.doomed(number)}", spare="deletes"
    ),
    _get("GET /events", lambda _: "/events?since=0", streams=True),
    _get("GET /vaults/{vaultUid}/events", lambda stage: f"/vaults/{stage.vault}/events?since=0", streams=True),
    _get("GET /vaults/{vaultUid}/documents", _documents),
    _send(
        "POST /vaults/{vaultUid}/documents",
        _large_document,
        201,
        lambda stage, _: f"/vaults/{stage.own_vault('stores documents')}/documents",
        kind="large",
        spare="stores documents",
    ),
    _send(
        "POST /vaults/{vaultUid}/documents",
        lambda _stage, number: {"collection": wide_name(number), "data": "QQ"},
        201,
        lambda stage, _: _large(stage),
        kind="small",
    ),
    _get("GET /vaults/{vaultUid}/documents/sync", lambda stage: f"/vaults/{stage.trash}/documents/sync?since=0"),
    _get("GET /vaults/{vaultUid}/documents/{uid}", lambda stage: f"{_large(stage)}/{stage.document}"),
    _send(
        "PUT /vaults/{vaultUid}/documents/{uid}",
        _large_replacement,
        200,
        lambda stage, _: f"{_large(stage)}/{stage.document}",
        learns=True,
    ),
    _send(
        "DELETE /vaults/{vaultUid}/documents/{uid}",
        _nothing,
        200,
        lambda stage, number: f"/vaults/{stage.own_vault('deletes documents')}/documents/{stage.to_delete(number)}",
        spare="deletes documents",
    ),
    _get("GET /vaults/{vaultUid}/documents/history", lambda stage: f"{_large(stage)}/history?since=0"),
    _get(
        "GET /vaults/{vaultUid}/documents/{uid}/versions", lambda stage: f"{_large(stage)}/{stage.versioned}/versions"
    ),
    _get(
        "GET /vaults/{vaultUid}/documents/{uid}/versions/{version}",
        lambda stage: f"{_large(stage)}/{stage.versioned}/versions/{20}",
    ),
    _send(
        "POST /vaults/{vaultUid}/batch",
        _creates("c"),
        200,
        lambda stage, _: f"/vaults/{stage.own_vault('stores batches')}/batch",
        kind="small creates",
        spare="stores batches",
    ),
    _send(
        "POST /vaults/{vaultUid}/batch",
        _creates(WIDE * 128),
        200,
        lambda stage, _: f"/vaults/{stage.own_vault('stores batches')}/batch",
        kind="wide creates",
        spare="stores batches",
    ),
    _send(
        "POST /vaults/{vaultUid}/batch",
        _tombstones,
        200,
        lambda stage, _: f"/vaults/{stage.own_vault('leaves tombstones')}/batch",
        kind="tombstones",
        spare="leaves tombstones",
    ),
    _send(
        "POST /auth/api-keys", lambda *_: {"name": WIDE * 255, "collections": [WIDE * 40] * 97}, 201, spare="makes keys"
    ),
    _get("GET /auth/api-keys"),
    _send(
        "DELETE /auth/api-keys/{uid}",
        _nothing,
        200,
        lambda stage, number: f"/auth/api-keys/{_one_of(stage.key_uids, number)}",
    ),
    _get("GET /vaults/{vaultUid}/collections", lambda stage: f"/vaults/{stage.collections}/collections"),
    _send("DELETE /vaults/{vaultUid}/trash", _nothing, 200, lambda stage, _: f"/vaults/{stage.trash}/trash"),
    _send(
        "DELETE /vaults/{vaultUid}/trash/{uid}",
        _nothing,
        200,
        lambda stage, number: f"/vaults/{stage.own_vault('purges')}/trash/{stage.to_purge(number)}",
        spare="purges",
    ),
    _get("GET /vault/{uid}/versions", lambda stage: f"/vault/{stage.versioned_blob}/versions"),
    _get("GET /vault/{uid}/versions/{version}", lambda stage: f"/vault/{stage.versioned_blob}/versions/20"),
    *(_get(f"GET {path}") for path in ("/health", "/ready")),
    _get("GET /", status=302),
    _get("GET /metrics", status=401),
    *(_get(f"GET {path}") for path in ("/openapi.json", "/docs", "/docs/style.css")),
)
