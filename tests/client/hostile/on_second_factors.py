"""Lies about second factors: one that the account does not have, and one that is asked for without end."""

from __future__ import annotations

from typing import Any

from strongroom.client import Refusal
from strongroom.client.operations.factors import MOST_ASKED
from strongroom.errors import InvalidCredentials, InvalidSecondFactor, InvalidTicket, SecondFactorRequired
from tests.client.hostile.attack import Broken, Tampered, attack
from tests.client.hostile.lying_proxy import Talk
from tests.client.hostile.scenario import Stage, about, together
from tests.kit.people.credentials import PASSWORD

LOGIN = ("POST", "/auth/email/login")
SECOND = ("POST", "/auth/email/login/second")
TICKET = {"ticket": "srt_" + "A" * 43, "methods": ["totp"], "expiresAt": 1}


def required(talk: Talk, details: Any = None) -> None:
    talk.refuse(401, "second_factor_required", details)


def login(stage: Stage) -> None:
    stage.login()


def login_with_codes(stage: Stage) -> None:
    """A login by somebody who answers every question, as long as there are any."""
    asked: list[Refusal] = []

    def ask(refusal: Refusal) -> str:
        asked.append(refusal)
        return f"{len(asked):06}"

    try:
        stage.clients.client(stage.liar.url, retries=0).login(stage.people.email, PASSWORD, code=ask)
    finally:
        if len(asked) > MOST_ASKED or any("ticket" in (one.details or {}) for one in asked):
            raise Broken(f"a person was asked {len(asked)} times, or shown a ticket")


attack(
    "a second factor that the account does not have",
    lambda _stage: about(*LOGIN, lambda talk: required(talk, TICKET)),
    client=SecondFactorRequired,
    act=login,
)
WRONG_DETAILS: dict[str, Any] = {
    "no details": None,
    "details that are a list": [],
    "no ticket": {"methods": ["totp"]},
    "a ticket that is a number": {"ticket": 1},
    "an empty ticket": {"ticket": ""},
    "a ticket of a thousand signs": {"ticket": "A" * 1000},
}
for name, details in WRONG_DETAILS.items():
    attack(
        f"a second factor is asked for with {name}",
        lambda _stage, details=details: about(*LOGIN, lambda talk: required(talk, details)),  # type: ignore[misc]
        client=Tampered,
        act=login,
    )
for code, error in {
    "second_factor_required": SecondFactorRequired,
    "invalid_second_factor": InvalidSecondFactor,
    "invalid_ticket": InvalidTicket,
    "invalid_credentials": InvalidCredentials,
}.items():
    attack(
        f"every second factor is answered with {code}",
        lambda _stage, code=code: together(  # type: ignore[misc]
            about(*LOGIN, lambda talk: required(talk, TICKET)),
            about(*SECOND, lambda talk: talk.refuse(401, code, TICKET)),
        ),
        client=error,
        act=login_with_codes,
        writes=(" ".join(SECOND),),
    )


# Enrolment


def enrol(stage: Stage) -> Any:
    return stage.victim.second_factor.enrol(PASSWORD)


def confirm(stage: Stage) -> Any:
    return stage.victim.second_factor.confirm("123456")


SECRET = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
for name, told in {
    "an address that is no otpauth": {"secret": SECRET, "uri": f"https://evil.example/?secret={SECRET}"},
    "an address that runs in a browser": {"secret": SECRET, "uri": f"javascript:alert('{SECRET}')"},
    "an address with another secret": {"secret": SECRET, "uri": "otpauth://totp/a?secret=AAAAAAAAAAAAAAAA"},
    "an address with a line feed": {"secret": SECRET, "uri": f"otpauth://totp/a?secret={SECRET}\nx"},
    "a secret that is no base32": {"secret": "secret!!secret!!", "uri": "otpauth://totp/a?secret=secret!!secret!!"},
    "no secret": {"secret": "", "uri": "otpauth://totp/a?secret="},
}.items():
    attack(
        f"an enrolment with {name}",
        lambda _stage, told=told: about("POST", "/auth/second-factor/totp", lambda talk: talk.say(told, 201)),  # type: ignore[misc]
        client=Tampered,
        act=enrol,
    )
for name, codes in {
    "an escape sequence": ["\x1b[2J0123-4567-89AB-CDEF"],
    "an empty one": [""],
    "a thousand": ["0123-4567-89AB-CDEF"] * 1000,
    "a long text": ["0" * 1000],
    "numbers": [1],
}.items():
    attack(
        f"recovery codes with {name}",
        lambda _stage, codes=codes: about(  # type: ignore[misc]
            "POST", "/auth/second-factor/totp/confirm", lambda talk: talk.say({"recoveryCodes": codes}, 201)
        ),
        client=Tampered,
        act=confirm,
    )
