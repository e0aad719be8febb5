"""What the contract promises of responses, said once for all its tests."""

import time
import uuid

import httpx2

from tests.kit.network.responses import Json, refused

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


def now() -> int:
    """The time as the wire spells it: whole Unix milliseconds."""
    return time.time_ns() // 1_000_000


def refused_fields(answer: httpx2.Response, *names: str) -> None:
    """A validation error names each bad field and says what is wrong with it."""
    fields = refused(answer, 400, "validation_error")["details"]["fields"]
    assert set(names) <= set(fields), fields
    assert all(isinstance(reason, str) and reason for reason in fields.values())


def refused_stale(answer: httpx2.Response, stored: Json, status: int, code: str) -> None:
    """A conflict tells which version is stored, and since when."""
    details = refused(answer, status, code)["details"]
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
