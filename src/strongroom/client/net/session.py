"""The session of a client: authentication of requests, retries, refresh of expired tokens."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from strongroom.client.errors import Locked
from strongroom.client.format.primitives import SecretText
from strongroom.client.net import effects, requests
from strongroom.client.net.call import Call
from strongroom.client.net.effects import (
    Effects,
    NoResponse,
    OpenStream,
    Request,
    Response,
    SendAndCompute,
    Sleep,
    Upload,
)
from strongroom.client.net.errors_from_status import refusal, wrong_server
from strongroom.errors import InvalidRefreshToken, Later, Refusal, RequestTimeout, Unauthorized

if TYPE_CHECKING:
    from strongroom.wire.responses import SignedIn

T = TypeVar("T")
R = TypeVar("R")
RETRIES: Final = 4
PATIENCE: Final = 30.0  # the longest `Retry-After` that is obeyed, in seconds
MAX_REFRESHES: Final = 2  # for one request: on a slow connection the new token may expire too
_ENDED: Final = (
    "This session has ended: it expired, was ended from another device, or the password was changed; log in again."
)
_FIRST_BACKOFF: Final = 0.1  # seconds before the first retry; doubles with each
_MAX_BACKOFF: Final = 5.0


class _Refused(Exception):  # noqa: N818
    """Carries a refusal to the caller; `in_doubt`: an earlier attempt of the same request may have succeeded."""

    def __init__(self, error: Refusal, *, in_doubt: bool) -> None:
        self.error = error
        self.in_doubt = in_doubt


class _Computation:
    """A computation that runs once, during the first attempt."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.done = False
        self.result: Any = None


class SavedTokens(Protocol):
    """Tokens that are saved on this device, perhaps for several programs."""

    def exchange(self, refresh: str, request: Effects[tuple[str, str]]) -> Effects[tuple[str, str]]:
        """New access and refresh tokens: those that another program has saved, else those of the request."""
        ...

    def update(self) -> Effects[None]:
        """Save what has changed besides the tokens."""
        ...

    def delete(self) -> Effects[None]:
        """Delete what is saved."""
        ...


class Session:
    """The tokens of a login, or an API key; and the policy for retries."""

    def __init__(self, url: str = "The server", *, retries: int = RETRIES, patience: float = PATIENCE) -> None:
        self.url = url
        self._retries = retries
        self._patience = patience
        self._access: str | None = None
        self._refresh: str | None = None
        self._key: str | None = None
        self.log_in: Callable[[], Effects[None]] | None = None  # called when the first request needs a session
        self.saved: SavedTokens | None = None  # where the tokens of this session are saved

    def begin(self, opened: SignedIn) -> None:
        """Use the tokens of a new session."""
        self.use_tokens(opened.access_token, opened.refresh_token)

    def use_tokens(self, access: str, refresh: str) -> None:
        """Use the tokens of a session that is not saved, or not yet."""
        self._keep(access, refresh)
        self._key = self.saved = None

    def tokens(self) -> Effects[tuple[str, str]]:
        """The access and the refresh token of the session."""
        yield from self._bearer()
        if self._access is None or self._refresh is None:
            raise Locked
        return self._access, self._refresh

    def _keep(self, access: str, refresh: str) -> None:
        self._access, self._refresh = SecretText(access), SecretText(refresh)

    def use_key(self, api_key: str) -> None:
        """Use an API key."""
        self._access, self._refresh, self._key = None, None, SecretText(api_key)

    def end(self) -> None:
        """Forget all tokens and keys."""
        self._access = self._refresh = self._key = self.log_in = self.saved = None

    @property
    def is_open(self) -> bool:
        """Whether there is a token or an API key."""
        return self._access is not None or self._key is not None

    def __repr__(self) -> str:
        return f"Session(open={self.is_open})"

    def send(self, call: Call[T]) -> Effects[T]:
        """Send a call and decode its response."""
        try:
            response = yield from self._send_authorised(call)
        except _Refused as refused:
            raise refused.error from None
        return call.decode(response.body)

    def send_or_done(self, call: Call[T]) -> Effects[T | None]:
        """The same; None if it was refused because an earlier attempt, whose response was lost, has done it already."""
        try:
            response = yield from self._send_authorised(call)
        except _Refused as refused:
            if refused.in_doubt and isinstance(refused.error, call.already_done):
                return None
            raise refused.error from None
        return call.decode(response.body)

    def send_in_doubt(self, call: Call[T]) -> Effects[tuple[T | Refusal, bool]]:
        """The response or the refusal, and whether an earlier attempt without a response may have been applied."""
        try:
            response = yield from self._send_authorised(call)
        except _Refused as refused:
            return refused.error, refused.in_doubt
        return call.decode(response.body), False

    def send_and_compute(self, call: Call[T], run: Callable[[], R]) -> Effects[tuple[T, R]]:
        """The same, and the result of a computation that runs until the response arrives."""
        computation = _Computation(run)
        try:
            response = yield from self._send_authorised(call, computation)
        except _Refused as refused:
            raise refused.error from None
        return call.decode(response.body), computation.result

    def open_stream(self, call: Call[T]) -> Effects[Any]:
        """Open a stream of what the call accepts. It is not reopened when it ends."""
        for last in (False, True):
            bearer = yield from self._bearer()
            try:
                stream = yield OpenStream(_request(call, bearer))
            except NoResponse as lost:
                raise lost.error from None
            if not isinstance(stream, Response):
                return stream
            refused = self._refusal(call, stream)
            if last or not isinstance(refused, Unauthorized) or self._key is not None:
                raise refused
            yield from effects.with_lock("refresh", self._refresh_tokens(bearer))
        return None

    def _send_authorised(self, call: Call[T], computation: _Computation | None = None) -> Effects[Response]:
        in_doubt = False
        for last in (*[False] * MAX_REFRESHES, True):
            bearer = (yield from self._bearer()) if call.authenticated else None
            try:
                return (yield from self._send_with_retries(call, bearer, computation))
            except _Refused as refused:
                in_doubt = in_doubt or refused.in_doubt
                if last or not isinstance(refused.error, Unauthorized) or bearer is None or self._key is not None:
                    raise _Refused(refused.error, in_doubt=in_doubt) from None
            yield from effects.with_lock("refresh", self._refresh_tokens(bearer))
        raise Unauthorized

    def _bearer(self) -> Effects[str]:
        if not self.is_open and self.log_in is not None:
            yield from effects.with_lock("login", self._open())
        bearer = self._key or self._access
        if bearer is None:
            raise Locked
        return bearer

    def _open(self) -> Effects[None]:
        if not self.is_open and self.log_in is not None:
            yield from self.log_in()

    def _refresh_tokens(self, bearer: str) -> Effects[None]:
        """Refresh the tokens, unless another thread or task has done so while this one waited for the lock."""
        if self._access != bearer:
            return
        if not self._refresh:
            raise Unauthorized
        request = self._request_tokens(self._refresh)
        try:
            access, refresh = yield from (
                request if self.saved is None else self.saved.exchange(self._refresh, request)
            )
        except InvalidRefreshToken:
            self._access = self._refresh = None
            raise
        self._keep(access, refresh)

    def _request_tokens(self, refresh: str) -> Effects[tuple[str, str]]:
        try:
            response = yield from self._send_with_retries(requests.accounts.refresh(refresh), None)
        except _Refused as refused:
            ended = isinstance(refused.error, InvalidRefreshToken)
            raise (InvalidRefreshToken(_ENDED) if ended else refused.error) from None
        fresh = requests.accounts.refresh("").decode(response.body)
        return SecretText(fresh.access_token), SecretText(fresh.refresh_token)

    def _send_with_retries(
        self, call: Call[T], bearer: str | None, computation: _Computation | None = None
    ) -> Effects[Response]:
        """Send a request with retries, as far as that is safe."""
        in_doubt = False
        for attempt in range(self._retries + 1):
            wait = 0
            try:
                response = yield from _send_once(call, bearer, computation)
            except NoResponse as lost:
                in_doubt = in_doubt or lost.sent
                refused: Refusal = lost.error
                again = lost.retry and (call.idempotent or not lost.sent)
            else:
                if 200 <= response.status < 300 and (response.is_json or not response.body):
                    return response
                refused = self._refusal(call, response)
                again = isinstance(refused, RequestTimeout) or (isinstance(refused, Later) and call.idempotent)
                wait = refused.retry_after if isinstance(refused, Later) and response.retry_after is not None else 0
                in_doubt = in_doubt or (again and response.status >= 500)
            if not again or attempt == self._retries or wait > self._patience:
                break
            yield Sleep(max(wait, _backoff(attempt)))
        raise _Refused(refused, in_doubt=in_doubt)

    def _refusal(self, call: Call[T], response: Response) -> Refusal:
        if response.status < 300:
            return wrong_server(response, self.url)
        size = call.body.size if isinstance(call.body, Upload) else len(call.body or b"")
        return refusal(response, call.refusals, self._secrets(call), url=self.url, size=size)

    def _secrets(self, call: Call[T]) -> list[str]:
        return [secret for secret in (self._access, self._refresh, self._key, *call.secrets) if secret]


def _request(call: Call[T], bearer: str | None) -> Request:
    return Request(
        method=call.method,
        path=call.path,
        query=call.query,
        body=call.body,
        accept=call.accept,
        bearer=bearer,
        max_bytes=call.max_bytes,
        wait=call.wait,
        keyring_version=call.keyring_version,
    )


def _send_once(call: Call[T], bearer: str | None, computation: _Computation | None) -> Effects[Response]:
    request = _request(call, bearer)
    if computation is None or computation.done:
        response: Response = yield request
        return response
    got, computation.result = yield SendAndCompute(request, computation.run)
    computation.done = True
    if isinstance(got, NoResponse):
        raise got
    response = got
    return response


def _backoff(attempt: int) -> float:
    """Exponential backoff with jitter: clients that were cut off together must not return together."""
    share = random.uniform(0.5, 1)  # noqa: S311 - nothing secret depends on it
    return share * min(_MAX_BACKOFF, _FIRST_BACKOFF * 2.0**attempt)
