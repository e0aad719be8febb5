"""Lies of the transport: redirects, cookies, responses without end, errors that say something else."""

from __future__ import annotations

import gzip
import json
from typing import Any

from strongroom.client import WrongServer
from strongroom.errors import InternalError, Invalid, RateLimited, Unavailable
from tests.client.hostile.attack import HARMLESS, Tampered, attack, read
from tests.client.hostile.lying_proxy import Liar, Lie, Talk
from tests.client.hostile.scenario import Stage, about

both: dict[str, Any] = {"client": Tampered, "replica": Tampered}


class Thief:
    """Another host, to which nothing may come."""

    def __init__(self, stage: Stage) -> None:
        self._liar = Liar(stage.people.server.port)
        self.url = self._liar.url
        stage.thieves.append(self._liar)


def elsewhere(status: int) -> Any:
    def prepare(stage: Stage) -> Lie:
        thief = Thief(stage)
        return lambda talk: talk.say(b"", status, {"location": thief.url + talk.path})

    return prepare


attack("a redirect to another host", elsewhere(307), act=read, client=WrongServer, replica=WrongServer)
attack("a permanent redirect to another host", elsewhere(308), act=read, client=WrongServer, replica=WrongServer)
attack("a redirect to another host, at login", elsewhere(307), act=lambda stage: stage.login(), client=WrongServer)


def cookie(stage: Stage) -> Any:
    """Two requests; the second must not bring the cookie of the first."""
    read(stage)
    read(stage)
    assert b"stolen-cookie" not in stage.liar.received
    return None


def with_cookie(talk: Talk) -> None:
    talk.say(talk.answer()[2], talk.status, {"set-cookie": "stolen-cookie=1; Path=/"})


attack("a cookie", lambda _stage: with_cookie, act=cookie, client=HARMLESS)


def vault_list(change: Any) -> Any:
    def prepare(stage: Stage) -> Lie:
        def lie(talk: Talk) -> None:
            if talk.path in {"/vault", f"/vaults/{stage.uid}/documents/{stage.note.uid}"}:
                change(talk)

        return lie

    return prepare


def packed(talk: Talk) -> None:
    talk.say(gzip.compress(talk.answer()[2]), talk.status, {"content-encoding": "gzip"})


attack("a compressed answer", vault_list(packed), act=read, **both)
attack("an answer that is no JSON", vault_list(lambda talk: talk.say(b"<html>", 200)), act=read, **both)
attack("an answer that is cut off", vault_list(lambda talk: talk.say(talk.answer()[2][:-9], 200)), act=read, **both)
attack("an answer without bytes", vault_list(lambda talk: talk.say(b"", 204)), act=read, **both)
attack("an answer as deep as the sea", vault_list(lambda talk: talk.say(b"[" * 10**6, 200)), act=read, **both)
attack("an answer that is not Unicode", vault_list(lambda talk: talk.say(b'{"uid": "\xff"}', 200)), act=read, **both)
attack("an answer of other types", vault_list(lambda talk: talk.say({"vaults": 1, "uid": []}, 200)), act=read, **both)
attack("an error that is called a success", vault_list(lambda talk: talk.refuse(200, "unauthorized")), act=read, **both)


def filled(talk: Talk) -> None:
    talk.say({"kdf": talk.told["kdf"] | {"filler": "A" * (1 << 21)}})


attack(
    "a descriptor of two megabytes",
    lambda _stage: about("POST", "/auth/email/prelogin", filled),
    act=lambda stage: stage.login(),
    client=Tampered,
)
attack(
    "a keyring without an end",
    lambda _stage: about("GET", "/auth/keyring", lambda talk: talk.say(b'{"keyring": "' + b"A" * (1 << 21), 200)),
    act=lambda stage: stage.victim.vault("no vault is called so"),
    **both,
)


# Errors that say something else


attack(
    "a fault of the server that is called a missing document",
    vault_list(lambda talk: talk.refuse(503, "document_not_found")),
    act=read,
    client=Unavailable,
    replica=Unavailable,
)
attack(
    "an error in the client's own words",
    vault_list(lambda talk: talk.refuse(400, "rolled_back")),
    act=read,
    client=Invalid,
    replica=Invalid,
)
attack(
    "an error with an unknown status",
    vault_list(lambda talk: talk.refuse(599, "tampered")),
    act=read,
    client=InternalError,
    replica=InternalError,
)
attack("a refusal that no request gets", vault_list(lambda talk: talk.refuse(418, "teapot")), act=read, **both)
attack(
    "a wait for ever",
    vault_list(lambda talk: talk.refuse(429, "rate_limited", retry_after="999999")),
    act=read,
    client=RateLimited,
    replica=RateLimited,
)


def echoed(talk: Talk) -> None:
    """What the client sent, in the details of an error."""
    bearer = talk._call.headers.get("authorization", "").removeprefix("Bearer ")
    talk.refuse(400, "validation_error", {"fields": {"token": bearer, bearer[:50]: "x" * 9}})


def quiet(stage: Stage) -> Any:
    """The error must not show the bearer."""
    try:
        read(stage)
    except Invalid as refused:
        assert str(stage.core.session._access) not in json.dumps(refused.details)
        raise


attack("an error that shows the bearer", vault_list(echoed), act=quiet, client=Invalid)
