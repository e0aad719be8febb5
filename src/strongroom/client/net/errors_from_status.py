"""A server's no, read backwards: the class that the server raised is raised here.

Nothing in an error is believed. Its code counts only among the server's own words, never among the client's; its
sentence is ours, not the server's; of its details only figures and short texts are kept, and none that holds a secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from strongroom import errors
from strongroom.client.errors import Tampered
from strongroom.client.net.effects import Answer
from strongroom.errors import Conflict, Invalid, Later, MethodNotAllowed, NotFound, Refusal

CODES: Final[Mapping[str, type[Refusal]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refusal) and kind.code != Refusal.code
}
# What a status means where the server's words are not ours.
_BY_STATUS: Final[Mapping[int, type[Refusal]]] = {
    400: errors.Invalid,
    401: errors.Unauthorized,
    403: errors.InsufficientScope,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    408: errors.RequestTimeout,
    413: errors.PayloadTooLarge,
    415: errors.UnsupportedMediaType,
    429: errors.RateLimited,
    507: errors.StorageFull,
}
_LONGEST: Final = 200
_DEEPEST: Final = 4


class _Fault(msgspec.Struct):
    code: str = ""
    details: Any = None


class _Failure(msgspec.Struct):
    error: _Fault


def refusal(answer: Answer, expected: Mapping[int, type[Refusal]], secrets: Collection[str]) -> Refusal:
    """The refusal that an answer carries. `expected` says what a status means here, where its body does not say it."""
    fault = _fault(answer.body)
    kind = CODES.get(fault.code)
    if kind is None or not _fits(kind, answer.status):
        kind = expected.get(answer.status) or _BY_STATUS.get(answer.status)
    if kind is None:
        kind = errors.Unavailable if answer.status in {502, 503, 504} else errors.InternalError
        if answer.status < 500:
            return Tampered("The server gave an answer that no request of this kind can get.")
    return _made(kind, _harmless(fault.details, secrets), answer.retry_after)


def _fault(body: bytes) -> _Fault:
    try:
        return msgspec.json.decode(body, type=_Failure).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _Fault()


def _fits(kind: type[Refusal], status: int) -> bool:
    """Whether a refusal can have this status: a missing vault is no fault of the server, and a fault is no conflict."""
    if issubclass(kind, Conflict):
        return status in {409, 412}
    if issubclass(kind, NotFound):
        return status == 404
    if kind in {errors.Unavailable, errors.InternalError, errors.StorageFull, errors.QuotaExceeded}:
        return status >= 500
    return 400 <= status < 500


def _made(kind: type[Refusal], details: Any, retry_after: int | None) -> Refusal:
    """A refusal of this kind, whatever its own way of being made is."""
    made = kind.__new__(kind)
    Refusal.__init__(made, details=details if isinstance(details, dict) else None)
    if isinstance(made, Invalid) and made.details is None:
        made.details = {"fields": {}}
    if isinstance(made, Later):
        made.retry_after = 1 if retry_after is None else retry_after
    if isinstance(made, Conflict):
        made.precondition = False
    if isinstance(made, MethodNotAllowed):
        made.allowed = ()
    return made


def _harmless(value: Any, secrets: Collection[str], depth: int = 0) -> Any:
    """Details without anything that should not be shown."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        good = len(value) <= _LONGEST and value.isprintable() and not any(secret in value for secret in secrets)
        return value if good else ""
    if depth < _DEEPEST and isinstance(value, dict):
        return {
            key: _harmless(entry, secrets, depth + 1)
            for key, entry in value.items()
            if isinstance(key, str) and _harmless(key, secrets) == key
        }
    if depth < _DEEPEST and isinstance(value, list):
        return [_harmless(entry, secrets, depth + 1) for entry in value]
    return None
