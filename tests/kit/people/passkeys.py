"""Ceremonies with passkeys against a server: a soft authenticator in the place of the browser."""

from __future__ import annotations

from typing import Any

import httpx2

from tests.kit.network.responses import good
from tests.kit.people.person import Person
from tests.kit.people.soft_authenticator import ES256, SoftPasskey, unb64

ORIGIN, RP_ID = "https://vault.example.com", "vault.example.com"
PASSWORD = "correct horse"
BY_PASSWORD = {"currentPassword": PASSWORD}


async def creation_options(person: Person, proof: Any = BY_PASSWORD) -> dict[str, Any]:
    """The options of a registration."""
    answer = await person("POST", "/auth/passkeys/registration/options", proof)
    options: dict[str, Any] = good(answer)["publicKey"]
    return options


async def register(person: Person, options: dict[str, Any], passkey: SoftPasskey, **wrong: Any) -> httpx2.Response:
    """Send a new passkey; what is `wrong` stands in the place of what is right."""
    body = {"name": "a key", "credential": passkey.register(options, ORIGIN, **wrong)}
    return await person("POST", "/auth/passkeys", body)


async def add_passkey(
    person: Person, proof: Any = BY_PASSWORD, algorithm: int = ES256, *, counts: bool = True, name: str = "a key"
) -> tuple[SoftPasskey, dict[str, Any]]:
    """A new passkey of a person, and the response to its registration."""
    options = await creation_options(person, proof)
    passkey = SoftPasskey(options["rp"]["id"], unb64(options["user"]["id"]), algorithm, counts=counts)
    body = {"name": name, "credential": passkey.register(options, ORIGIN), "prf": True}
    return passkey, good(await person("POST", "/auth/passkeys", body), 201)


async def login_options(http: httpx2.AsyncClient, ticket: str | None = None) -> dict[str, Any]:
    """The options of a login."""
    answer = await http.post("/auth/passkeys/login/options", json={} if ticket is None else {"ticket": ticket})
    options: dict[str, Any] = good(answer)["publicKey"]
    return options


async def log_in(http: httpx2.AsyncClient, passkey: SoftPasskey, **wrong: Any) -> httpx2.Response:
    """Log in with a passkey alone; what is `wrong` stands in the place of what is right."""
    credential = passkey.assertion(await login_options(http), ORIGIN, **wrong)
    return await http.post("/auth/passkeys/login", json={"credential": credential})


async def proof_by(person: Person, passkey: SoftPasskey, **wrong: Any) -> dict[str, Any]:
    """An assertion by which a person proves a passkey, once."""
    options = good(await person("POST", "/auth/passkeys/proof/options"))["publicKey"]
    return passkey.assertion(options, ORIGIN, **wrong)


async def second_factor(person: Person, passkey: SoftPasskey, **wrong: Any) -> dict[str, Any]:
    """The same, as a second factor beside the password."""
    return {"passkey": await proof_by(person, passkey, **wrong)}


async def newest_events(person: Person) -> set[str]:
    """The types of the newest events in the log of an account: those of one moment."""
    found = good(await person("GET", "/auth/events"))["events"]
    return {event["type"] for event in found if event["createdAt"] == found[0]["createdAt"]}
