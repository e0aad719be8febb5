"""What a good response and a refusal look like, said once for all tests."""

from __future__ import annotations

import re
from typing import Any

import httpx2

Json = dict[str, Any]
_SNAKE = re.compile(r"[a-z]+(_[a-z]+)*")


def made(response: httpx2.Response) -> Json:
    """The body of a response that created something."""
    return good(response, 201)


def good(response: httpx2.Response, status: int = 200) -> Json:
    """The body of a response with this status: without one, of a response that created nothing."""
    assert response.status_code == status, response.text
    body: Json = response.json()
    return body


def refused(response: httpx2.Response, status: int, code: str | None = None) -> Json:
    """The error of a refusal with this status, this code and the promised shape."""
    assert response.status_code == status, f"{response.status_code} {response.text}"
    assert response.headers["content-type"].startswith("application/json")
    body = response.json()
    assert set(body) == {"error"}
    error: Json = body["error"]
    assert {"code", "message", "requestId"} <= set(error) <= {"code", "message", "requestId", "details"}
    assert _SNAKE.fullmatch(error["code"])
    assert isinstance(error["message"], str)
    assert error["message"].strip()
    assert error["requestId"]
    assert error["requestId"] == response.headers["x-request-id"]
    if code is not None:
        assert error["code"] == code, response.text
    if error["code"] == "unauthorized":
        assert response.headers["www-authenticate"].startswith("Bearer")
    if status == 429:
        assert 1 <= int(response.headers["retry-after"]) <= 900
    return error
