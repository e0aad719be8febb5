"""Maps error responses to exceptions: the class that the server raised is raised here.

Nothing in an error is trusted. Its code counts only among the server's classes, never among the client's; its message
is the client's own; of its details only numbers and short texts remain, and none that contains a secret.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import msgspec

from strongroom import errors
from strongroom.client.errors import Tampered, Unreachable, WrongServer
from strongroom.client.net.effects import Response
from strongroom.errors import Conflict, Invalid, Later, MethodNotAllowed, NotFound, Refusal

CODES: Final[Mapping[str, type[Refusal]]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refusal) and kind.code != Refusal.code
}
# The class of a status, if the code in the body is unknown.
_BY_STATUS: Final[Mapping[int, type[Refusal]]] = {
    400: errors.Invalid,
    401: errors.Unauthorized,
    403: errors.InsufficientScope,
    404: errors.NotFound,
    405: errors.MethodNotAllowed,
    408: errors.RequestTimeout,
    415: errors.UnsupportedMediaType,
    429: errors.RateLimited,
    507: errors.StorageFull,
}
# Statuses of proxies whose server is away or slow; those above 504 are of content delivery networks.
_FROM_PROXIES: Final = frozenset({502, 503, 504, *range(520, 531)})
_LIMITED: Final = "The request has {:,} bytes, and this server takes at most {:,}; store it in smaller parts."
_UNLIMITED: Final = "The request has {:,} bytes, which is more than {} takes; store it in smaller parts."
# Where the server speaks of HTTP, to whoever wrote the request.
_SENTENCES: Final[Mapping[type[Refusal], str]] = {
    errors.Unauthorized: (
        "The server does not accept this token: it was revoked, has expired, or belongs to another server."
    ),
    errors.SecondFactorRequired: (
        "This account has a second factor: give a one-time code or a recovery code as `code`, or use a passkey."
    ),
}
_MAX_TEXT: Final = 200
_MAX_DEPTH: Final = 4


class _Fault(msgspec.Struct):
    code: str = ""
    details: Any = None


class _Failure(msgspec.Struct):
    error: _Fault


def refusal(
    response: Response,
    expected: Mapping[int, type[Refusal]],
    secrets: Collection[str],
    *,
    url: str = "this address",
    size: int = 0,
) -> Refusal:
    """The exception for an error response. `expected` maps statuses to classes, for a body without a known code.

    `size` is that of the request, in bytes.
    """
    fault = _fault(response.body)
    if response.status == 413:
        return _too_large(fault, size)
    if fault is None and not (response.is_json and not response.body):
        other = _from_another_program(response, url)
        if other is not None:
            return other
    fault = fault or _Fault()
    kind = CODES.get(fault.code)
    if kind is None or not _is_plausible(kind, response.status):
        kind = expected.get(response.status) or _BY_STATUS.get(response.status)
    if kind is None:
        kind = errors.Unavailable if response.status in {502, 503, 504} else errors.InternalError
        if response.status < 500:
            return Tampered("The server gave an answer that no request of this kind can get.")
    return _build(kind, _sanitised(fault.details, secrets), response.retry_after, _sentence(kind, response))


def _sentence(kind: type[Refusal], response: Response) -> str | None:
    """The sentence for a user of this client, where it is another than that of the API."""
    if kind is errors.RateLimited and response.retry_after is not None:
        return f"Too many attempts; the server asks to wait {response.retry_after:,} seconds."
    return _SENTENCES.get(kind)


def wrong_server(response: Response, url: str) -> WrongServer:
    """The exception for a response that no strongroom server gives."""
    what = "a web page" if response.body.lstrip()[:1] == b"<" else "something else"
    sentence = (
        f"{url} answered {response.status} with {what}, not as a strongroom server does. Check the URL, its path "
        "included, and whether a proxy or a login page of the network is in between."
    )
    return WrongServer(sentence, details={"status": response.status})


def _from_another_program(response: Response, url: str) -> Refusal | None:
    """The exception for an error that strongroom has not written: every error of a server has a code."""
    if response.status in _FROM_PROXIES:
        sentence = (
            f"A proxy before the server answered {response.status}: the server behind {url} is away or too slow at the "
            "moment."
        )
        details = {"status": response.status}
        after = 1 if response.retry_after is None else response.retry_after
        return Unreachable(sentence, reason="behind_proxy", details=details, retry_after=after)
    if 400 <= response.status < 500 and response.status not in {408, 429}:
        return wrong_server(response, url)
    return None


def _too_large(fault: _Fault | None, size: int) -> Refusal:
    limit = fault.details.get("limit") if fault is not None and isinstance(fault.details, dict) else None
    if isinstance(limit, int) and not isinstance(limit, bool):
        return _build(errors.PayloadTooLarge, {"size": size, "limit": limit}, None, _LIMITED.format(size, limit))
    sentence = _UNLIMITED.format(size, "the server" if fault is not None else "a proxy before the server")
    return _build(errors.PayloadTooLarge, {"size": size}, None, sentence)


def _fault(body: bytes) -> _Fault | None:
    try:
        return msgspec.json.decode(body, type=_Failure).error
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None


def _is_plausible(kind: type[Refusal], status: int) -> bool:
    """Whether a class can have this status: a missing vault is no server error, and a server error is no conflict."""
    if issubclass(kind, Conflict):
        return status in {409, 412}
    if issubclass(kind, NotFound):
        return status == 404
    if kind in {errors.Unavailable, errors.InternalError, errors.StorageFull, errors.QuotaExceeded}:
        return status >= 500
    return 400 <= status < 500


def _build(kind: type[Refusal], details: Any, retry_after: int | None, message: str | None = None) -> Refusal:
    """An instance of this class, whatever arguments its constructor takes."""
    made = kind.__new__(kind)
    Refusal.__init__(made, message, details=details if isinstance(details, dict) else None)
    if isinstance(made, Invalid) and made.details is None:
        made.details = {"fields": {}}
    if isinstance(made, Later):
        made.retry_after = 1 if retry_after is None else retry_after
    if isinstance(made, Conflict):
        made.precondition = False
    if isinstance(made, MethodNotAllowed):
        made.allowed = ()
    return made


def _sanitised(value: Any, secrets: Collection[str], depth: int = 0) -> Any:
    """Details without secrets, long texts and deep nesting."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        good = len(value) <= _MAX_TEXT and value.isprintable() and not any(secret in value for secret in secrets)
        return value if good else ""
    if depth < _MAX_DEPTH and isinstance(value, dict):
        return {
            key: _sanitised(entry, secrets, depth + 1)
            for key, entry in value.items()
            if isinstance(key, str) and _sanitised(key, secrets) == key
        }
    if depth < _MAX_DEPTH and isinstance(value, list):
        return [_sanitised(entry, secrets, depth + 1) for entry in value]
    return None
