"""The proof of a second factor, where the server asks for one.

A request is first sent without one, so that nobody is asked for a code that is not needed. The server cannot ask for
ever: a person is asked for one factor a few times at the most.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from strongroom.client.errors import Tampered
from strongroom.client.format.encoding import checked_secret
from strongroom.client.format.primitives import SecretText
from strongroom.client.net import effects, requests
from strongroom.client.net.call import Factor
from strongroom.client.operations import ceremonies
from strongroom.client.operations.ceremonies import Authenticator
from strongroom.errors import Invalid, InvalidSecondFactor, Refusal, SecondFactorRequired

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.net.session import Session
    from strongroom.wire.responses import SignedIn

C = TypeVar("C")
T = TypeVar("T")
# A second factor: a code, a function that is asked for one, and told why, or what uses a passkey.
Code: TypeAlias = str | Callable[[Refusal], str] | Authenticator
AsyncCode: TypeAlias = str | Callable[[Refusal], str | Awaitable[str]] | Authenticator
MOST_ASKED: Final = 3  # times that a person is asked for one factor
_ONE_TIME: Final = re.compile(r"[0-9]{3} ?[0-9]{3}", re.ASCII)
_REQUIRED: Final = (
    "This account has a second factor: give `code`, which is a one-time code, a recovery code, a function that asks "
    "for one, or an authenticator with a passkey."
)
_ANOTHER: Final = (
    "The server asks for another second factor, and each code counts once: give a function as `code` that asks for "
    "each, or an authenticator with a passkey."
)
_NO_TICKET: Final = "The server asks for a second factor, and gives no ticket to send it with."


def checked_code(code: C) -> C:
    """A second factor as it was given; a text is one that no repr shows."""
    if code is None or callable(code) or isinstance(code, Authenticator):
        return code
    return cast("C", checked_secret(cast("str", code), "code"))


class FactorSource:
    """Where the second factors of one operation come from. A code that was given as a text is used once.

    A factor that was made for this operation is sent before the server asks.
    """

    def __init__(self, given: AsyncCode | Factor | None) -> None:
        self.made = given if isinstance(given, Factor) else None
        self._given = None if isinstance(given, Factor) else given
        self._used = False

    def answer(self, session: Session, refusal: Refusal, ticket: str | None = None) -> Effects[Factor]:
        """The factor that the server asks for, at a login with this ticket; raises the refusal if there is none."""
        given = self._given
        if given is None or self._used:
            raise _explained(refusal, _REQUIRED if given is None else _ANOTHER)
        if isinstance(given, str):
            self._used = True
            return read_code(given)
        if isinstance(given, Authenticator):
            return (yield from ceremonies.prove(session, given, ticket))
        return read_code(checked_secret((yield from effects.ask(lambda: given(_without_ticket(refusal)))), "code"))

    def __repr__(self) -> str:
        return "FactorSource(...)"


def read_code(code: str) -> Factor:
    """A one-time code if it has six digits, with or without a space; otherwise a recovery code."""
    if _ONE_TIME.fullmatch(code.strip()):
        return Factor({"code": SecretText(code.strip().replace(" ", ""))})
    if not 1 <= len(code.strip()) <= 100:
        raise Invalid({"code": "must be a one-time code of six digits, or a recovery code"})
    return Factor({"recoveryCode": SecretText(code.strip())})


def _explained(refusal: Refusal, sentence: str) -> Refusal:
    """The refusal, in words for whoever calls the client. That a code was wrong needs no others."""
    if isinstance(refusal, SecondFactorRequired):
        refusal.message, refusal.args = sentence, (sentence,)
    return _without_ticket(refusal)


def _without_ticket(refusal: Refusal) -> Refusal:
    if refusal.details is not None:
        refusal.details.pop("ticket", None)
    return refusal


def prove(session: Session, source: FactorSource, send: Callable[[Factor | None], Effects[T]]) -> Effects[T]:
    """Send a request; where the server asks for a second factor, again with one."""
    return (yield from _prove(session, source, send, source.made, None))


def _prove(
    session: Session,
    source: FactorSource,
    send: Callable[[Factor | None], Effects[T]],
    factor: Factor | None,
    ticket: str | None,
) -> Effects[T]:
    asked = 0 if ticket is None else 1
    while True:
        try:
            return (yield from send(factor))
        except (SecondFactorRequired, InvalidSecondFactor) as refused:
            refusal: Refusal = refused
        if asked == MOST_ASKED:
            raise _without_ticket(refusal)
        factor = yield from source.answer(session, refusal, ticket)
        asked += 1


def finish_login(session: Session, required: SecondFactorRequired, source: FactorSource) -> Effects[SignedIn]:
    """Finish a login whose password was right, with a second factor."""
    given = (required.details or {}).get("ticket")
    if not isinstance(given, str) or not given:
        raise Tampered(_NO_TICKET)
    ticket = SecretText(given)
    del given
    first = yield from source.answer(session, required, ticket)

    def send(factor: Factor | None) -> Effects[SignedIn]:
        return session.send(requests.second_factors.finish_login(ticket, factor or first))

    return (yield from _prove(session, source, send, first, ticket))
