"""A session: whose requests they are, when they are sent again, and how a token that has run out is exchanged."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from strongroom.client.errors import Locked
from strongroom.client.net import effects, requests
from strongroom.client.net.effects import Answer, Listen, Lost, Meanwhile, Pause, Request, Steps
from strongroom.client.net.errors_from_status import refusal
from strongroom.client.net.requests import Call
from strongroom.errors import InvalidRefreshToken, Later, Refusal, RequestTimeout, Unauthorized, Unavailable

if TYPE_CHECKING:
    from strongroom.wire.responses import SignedIn

T = TypeVar("T")
R = TypeVar("R")
RETRIES: Final = 4
PATIENCE: Final = 30.0  # seconds that a `Retry-After` may ask for
EXCHANGES: Final = 2  # of a token that has run out, for one request: on a slow line the new one may run out too
_FIRST: Final = 0.1  # seconds before the first repetition; each further one waits up to twice as long
_LONGEST: Final = 5.0
_AWAY: Final = "The server cannot be reached, or did not answer."


class _No(Exception):  # noqa: N818
    """A refusal on its way to the caller; `doubt`: the same request may have been answered before with yes."""

    def __init__(self, refused: Refusal, *, doubt: bool) -> None:
        self.refused = refused
        self.doubt = doubt


class _Beside:
    """Work that is done once, while the first request is under way."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.run = run
        self.done = False
        self.result: Any = None


class Session:
    """The tokens of a login, or an API key; and how patient this client is."""

    def __init__(self, *, retries: int = RETRIES, patience: float = PATIENCE) -> None:
        self._retries = retries
        self._patience = patience
        self._access: str | None = None
        self._refresh: str | None = None
        self._key: str | None = None
        self.log_in: Callable[[], Steps[None]] | None = None  # opens a session when one is needed first

    def begin(self, opened: SignedIn) -> None:
        """Go on with these tokens."""
        self._access, self._refresh, self._key = opened.access_token, opened.refresh_token, None

    def use_key(self, api_key: str) -> None:
        """Go on with an API key."""
        self._access, self._refresh, self._key = None, None, api_key

    def end(self) -> None:
        """Forget everything that gives authority."""
        self._access = self._refresh = self._key = self.log_in = None

    @property
    def is_open(self) -> bool:
        """Whether there is something to show to the server."""
        return self._access is not None or self._key is not None

    def __repr__(self) -> str:
        return f"Session(open={self.is_open})"

    def ask(self, call: Call[T]) -> Steps[T]:
        """The answer to a call."""
        try:
            answer = yield from self._ask(call)
        except _No as no:
            raise no.refused from None
        return call.read(answer.body)

    def ask_or_done(self, call: Call[T]) -> Steps[T | None]:
        """The answer to a call; None where it was refused only because an earlier sending of it had done the work."""
        try:
            answer = yield from self._ask(call)
        except _No as no:
            if no.doubt and isinstance(no.refused, call.done):
                return None
            raise no.refused from None
        return call.read(answer.body)

    def ask_beside(self, call: Call[T], run: Callable[[], R]) -> Steps[tuple[T, R]]:
        """The answer to a call, and the result of work that is done while it is under way."""
        beside = _Beside(run)
        try:
            answer = yield from self._ask(call, beside)
        except _No as no:
            raise no.refused from None
        return call.read(answer.body), beside.result

    def listen(self, call: Call[T]) -> Steps[Any]:
        """A stream of events, as long as the server lets it go on. It is not asked for again by itself."""
        for last in (False, True):
            bearer = yield from self._bearer()
            try:
                stream = yield Listen(_request(call, bearer))
            except Lost:
                raise Unavailable(message=_AWAY) from None
            if not isinstance(stream, Answer):
                return stream
            no = refusal(stream, call.refusals, self._secrets(call))
            if last or not isinstance(no, Unauthorized) or self._key is not None:
                raise no
            yield from effects.under("refresh", self._exchange(bearer))
        return None

    def _ask(self, call: Call[T], beside: _Beside | None = None) -> Steps[Answer]:
        doubt = False
        for last in (*[False] * EXCHANGES, True):
            bearer = (yield from self._bearer()) if call.known else None
            try:
                return (yield from self._persist(call, bearer, beside))
            except _No as no:
                doubt = doubt or no.doubt
                if last or not isinstance(no.refused, Unauthorized) or bearer is None or self._key is not None:
                    raise _No(no.refused, doubt=doubt) from None
            yield from effects.under("refresh", self._exchange(bearer))
        raise Unauthorized

    def _bearer(self) -> Steps[str]:
        if not self.is_open and self.log_in is not None:
            yield from effects.under("login", self._open())
        bearer = self._key or self._access
        if bearer is None:
            raise Locked
        return bearer

    def _open(self) -> Steps[None]:
        if not self.is_open and self.log_in is not None:
            yield from self.log_in()

    def _exchange(self, bearer: str) -> Steps[None]:
        """New tokens for the old, unless another thread or task got them while this one waited for its turn."""
        if self._access != bearer:
            return
        if not self._refresh:
            raise Unauthorized
        try:
            answer = yield from self._persist(requests.refresh(self._refresh), None)
        except _No as no:
            if isinstance(no.refused, InvalidRefreshToken):
                self._access = self._refresh = None
            raise no.refused from None
        fresh = requests.refresh("").read(answer.body)
        self._access, self._refresh = fresh.access_token, fresh.refresh_token

    def _persist(self, call: Call[T], bearer: str | None, beside: _Beside | None = None) -> Steps[Answer]:
        """Send a request until it is answered, as often as that is safe and this client is patient."""
        doubt = False
        for attempt in range(self._retries + 1):
            wait = 0
            try:
                answer = yield from _send(call, bearer, beside)
            except Lost as lost:
                doubt = doubt or lost.sent
                no: Refusal = Unavailable(message=_AWAY)
                again = call.repeats or not lost.sent
            else:
                if 200 <= answer.status < 300:
                    return answer
                no = refusal(answer, call.refusals, self._secrets(call))
                again = isinstance(no, RequestTimeout) or (isinstance(no, Later) and call.repeats)
                wait = no.retry_after if isinstance(no, Later) and answer.retry_after is not None else 0
                doubt = doubt or (again and answer.status >= 500)
            if not again or attempt == self._retries or wait > self._patience:
                break
            yield Pause(max(wait, _backoff(attempt)))
        raise _No(no, doubt=doubt)

    def _secrets(self, call: Call[T]) -> list[str]:
        return [secret for secret in (self._access, self._refresh, self._key, *call.secrets) if secret]


def _request(call: Call[T], bearer: str | None) -> Request:
    return Request(
        method=call.method,
        path=call.path,
        query=call.query,
        body=call.body,
        bearer=bearer,
        most=call.most,
        wait=call.wait,
    )


def _send(call: Call[T], bearer: str | None, beside: _Beside | None) -> Steps[Answer]:
    request = _request(call, bearer)
    if beside is None or beside.done:
        answer: Answer = yield request
        return answer
    got, beside.result = yield Meanwhile(request, beside.run)
    beside.done = True
    if isinstance(got, Lost):
        raise got
    answer = got
    return answer


def _backoff(attempt: int) -> float:
    """Some time, not the same for everybody: those who were cut off together shall not come back together."""
    share = random.uniform(0.5, 1)  # noqa: S311 - nothing secret depends on it
    return share * min(_LONGEST, _FIRST * 2.0**attempt)
