"""Ways around the second factor to plant, one at a time, in a server that runs. The table must notice each."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from strongroom import credentials, identifiers, one_time_codes, store
from strongroom.actions import second_factors, sessions
from strongroom.errors import InvalidRefreshToken, Refusal
from strongroom.model import Actor, CodeProof, Proof, RecoveryCodeProof, Ticket
from strongroom.server import app, authentication
from strongroom.server.request import Endpoint, Request
from strongroom.server.response import Response, json_response
from strongroom.server.routing import Router
from strongroom.store.statement import Sql, columns
from strongroom.wire.requests import Refresh
from strongroom.wire.responses import Tokens
from tests.security.fixtures import Stage
from tests.security.planted import Plant, both, replaced, shorter


def unasked(path: str, *fields: str) -> Plant:
    """One route asks for no second factor, or only where its body lacks one of these fields."""
    bodies: dict[str, Any] = {}

    async def read_body(request: Request, kind: Any) -> Any:
        bodies["last"] = await _read_body(request, kind)
        return bodies["last"]

    async def checked(request: Request, login: Any, given: Any) -> Any:
        endpoint = request.endpoint
        hit = endpoint is not None and f"{endpoint.method} {endpoint.path}" == path
        if given is None and hit and all(getattr(bodies["last"], field) is not None for field in fields):
            return None
        return await _check_second_factor(request, login, given)

    async def used(tx: Any, user_id: str, proof: Proof, origin: Any) -> str:
        return proof.password_hash if proof.factor is None else await _use(tx, user_id, proof, origin)

    def plant(patch: pytest.MonkeyPatch, _stage: Stage) -> None:
        patch.setattr(Request, "read_body", read_body)
        patch.setattr(authentication, "check_second_factor", checked)
        patch.setattr(second_factors, "use", used)

    return plant


def rehandled(path: str, handler: Callable[[Request], Any]) -> Plant:
    """Another handler for one route."""

    def plant(patch: pytest.MonkeyPatch, stage: Stage) -> None:
        def changed(endpoint: Endpoint) -> Endpoint:
            hit = f"{endpoint.method} {endpoint.path}" == path
            return msgspec.structs.replace(endpoint, handler=handler) if hit else endpoint

        router = Router([changed(endpoint) for endpoint in stage.app._app._router.endpoints])
        patch.setattr(stage.app._app, "_router", router)

    return plant


def of_any_step(secret: bytes, code: str, now: int, _last_step: int) -> int | None:
    """Forget which steps have counted."""
    return _matching_step(secret, code, now, 0)


async def of_anybody(tx: Any, login: Any, given: Any, box: Any, address: str, origin: Any) -> Any:
    """Take the one-time code of any account."""
    if given.code is None:
        return await _check(tx, login, given, box, address, origin)
    for user in await tx.all(_Owner, Sql("SELECT user_id FROM one_time_codes WHERE confirmed = 1")):
        other = msgspec.structs.replace(login, id=user.user_id)
        with suppress(Refusal):
            if await _check(tx, other, given, box, address, origin) is not None:
                code = await store.second_factors.get(tx, login.id, confirmed=True)
                assert code is not None
                return CodeProof(code.last_step + 1, code.created_at)
    return None


class _Owner(msgspec.Struct):
    user_id: str


def known_by_its_factor(password: str, stored: str) -> bool:
    """Take any password for an account that has a second factor anyway."""
    return credentials.needs_second_factor(stored) or _password_matches(password, stored)


async def kept(tx: Any, ticket_hash: str) -> Any:
    """Take a ticket, and leave it there."""
    sql = Sql(f"SELECT {columns(Ticket)} FROM login_tickets WHERE ticket_hash = :hash")
    return await tx.one(Ticket, sql, hash=ticket_hash)


async def never_used(_tx: Any, _user_id: str, _code_hash: str) -> bool:
    """Say that the recovery code is used up."""
    return True


async def of_any_age(tx: Any, login: Any, given: Any, box: Any, address: str, origin: Any) -> Any:
    """Take a recovery code that looks like one."""
    if given.recovery_code is not None:
        return RecoveryCodeProof(credentials.recovery_code_hash(login.id, given.recovery_code) or "")
    return await _check(tx, login, given, box, address, origin)


async def refreshed_by_ticket(request: Request) -> Response:
    """Exchange a ticket for tokens, as if it were a refresh token."""
    token = (await request.read_body(Refresh)).refresh_token
    login = await request.read(sessions.ticket_holder, credentials.ticket_hash(token))
    if login is None or login.password_hash is None:
        raise InvalidRefreshToken
    now = request.context.clock()
    pair = request.context.token_issuer.pair(login.id, identifiers.new_uid(now), now)
    await request.write(sessions.open_, login.id, login.password_hash, pair, request.origin)
    return json_response(Tokens(pair.access_token, pair.refresh_token))


async def borne(request: Request) -> Actor:
    """Take a ticket as an access token."""
    token = request.headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
    login = await request.read(sessions.ticket_holder, credentials.ticket_hash(token))
    return await _authenticate(request) if login is None else Actor(login.id)


async def unmarked(_tx: Any, _user_id: str) -> None:
    """Forget to mark the account."""


_check, _use = second_factors.check, second_factors.use
_check_second_factor = authentication.check_second_factor
_matching_step, _password_matches = one_time_codes.matching_step, credentials.password_matches
_authenticate, _read_body = authentication.authenticate, Request.read_body

FAULTS: dict[str, Plant] = {
    "a one-time code is accepted twice": both(
        replaced(one_time_codes, "matching_step", of_any_step),
        shorter(store.second_factors, "_USE_STEP", " AND last_step < :step"),
    ),
    "a recovery code is accepted twice": both(
        replaced(second_factors, "check", of_any_age), replaced(store.second_factors, "use_recovery_code", never_used)
    ),
    "a ticket is not bound to its account": replaced(second_factors, "check", of_anybody),
    "a ticket is not bound to the password": replaced(credentials, "password_binding", lambda _stored: "any"),
    "a ticket comes before the password": replaced(credentials, "password_matches", known_by_its_factor),
    "an expired ticket is taken": both(
        shorter(store.tickets, "_HOLDER", " AND expires_at > :now"),
        shorter(store.tickets, "_TAKE", " AND expires_at > :now"),
    ),
    "a ticket is taken twice": replaced(store.tickets, "take", kept),
    "a ticket is taken as an access token": replaced(app, "authenticate", borne),
    "the second factor is skipped at refresh": rehandled("POST /auth/refresh", refreshed_by_ticket),
    "the second factor is skipped at recovery": unasked("PUT /auth/password", "keyring"),
    "the second factor is skipped at a change of password": unasked("PUT /auth/password"),
    "the second factor is skipped at a change of the keyring": unasked("PUT /auth/keyring"),
    "the second factor is skipped at a change of the descriptor": unasked("PUT /auth/keyring", "kdf"),
    "the second factor is skipped at the deletion of the account": unasked("DELETE /auth/me"),
    "the second factor is skipped at its own deletion": unasked("DELETE /auth/second-factor/totp"),
    "the second factor is skipped at an enrolment of another": unasked("POST /auth/second-factor/totp"),
    "the second factor is skipped at new recovery codes": unasked("POST /auth/second-factor/recovery-codes"),
    "the account is not marked": replaced(second_factors, "mark", unmarked),
}
