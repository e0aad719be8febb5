"""What a good answer and a refusal look like, said once for all tests."""

import re
import time
import uuid
from typing import Any

import httpx2

Json = dict[str, Any]

VAULT_FIELDS = {"uid", "name", "version", "updatedAt"}
DOCUMENT_FIELDS = {
    "uid",
    "vaultUid",
    "collection",
    "data",
    "hmac",
    "version",
    "createdAt",
    "updatedAt",
    "deletedAt",
}
BLOB = {"data": "sealed text", "salt": "c2FsdA=="}
UNKNOWN = "01890000-0000-7000-8000-00000000dead"
_SNAKE = re.compile(r"[a-z]+(_[a-z]+)*")


def now() -> int:
    """The time as the wire spells it: whole Unix milliseconds."""
    return time.time_ns() // 1_000_000


def made(answer: httpx2.Response) -> Json:
    """The body of an answer that created something."""
    assert answer.status_code == 201, answer.text
    body: Json = answer.json()
    return body


def good(answer: httpx2.Response) -> Json:
    """The body of an answer that went well and created nothing."""
    assert answer.status_code == 200, answer.text
    body: Json = answer.json()
    return body


def refused(answer: httpx2.Response, status: int, code: str | None = None) -> Json:
    """A refusal has this status, this code and the promised shape; its details are handed on."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["content-type"].startswith("application/json")
    body = answer.json()
    assert set(body) == {"error"}
    error = body["error"]
    assert {"code", "message", "requestId"} <= set(error) <= {"code", "message", "requestId", "details"}
    assert _SNAKE.fullmatch(error["code"])
    assert isinstance(error["message"], str)
    assert error["message"].strip()
    assert error["requestId"]
    assert error["requestId"] == answer.headers["x-request-id"]
    if code is not None:
        assert error["code"] == code, answer.text
    if error["code"] == "unauthorized":
        assert answer.headers["www-authenticate"].startswith("Bearer")
    if status == 429:
        assert 1 <= int(answer.headers["retry-after"]) <= 900
    details: Json = error.get("details") or {}
    return details


def refused_fields(answer: httpx2.Response, *names: str) -> None:
    """A validation error names each bad field and says what is wrong with it."""
    fields = refused(answer, 400, "validation_error")["fields"]
    assert set(names) <= set(fields), fields
    assert all(isinstance(reason, str) and reason for reason in fields.values())


def refused_stale(answer: httpx2.Response, stored: Json, status: int, code: str) -> None:
    """A conflict tells which version is stored, and since when."""
    details = refused(answer, status, code)
    assert details["version"] == stored["version"]
    assert details["updatedAt"] == stored["updatedAt"]


def clean(answer: httpx2.Response) -> None:
    """Whatever the server thinks of the request, it keeps its composure."""
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400:
        refused(answer, answer.status_code)


def without_id(answer: httpx2.Response) -> Json:
    """An error as its reader sees it, less the one field that always differs."""
    error: Json = dict(answer.json()["error"])
    error.pop("requestId")
    return error


def is_uuid7(text: str) -> bool:
    """Whether this is a UUIDv7 in canonical text."""
    parsed = uuid.UUID(text)
    return parsed.version == 7 and str(parsed) == text


def docs(vault: Json, document: Json | None = None) -> str:
    """The path of a vault's documents, or of one of them."""
    path = f"/vaults/{vault['uid']}/documents"
    return path if document is None else f"{path}/{document['uid']}"
