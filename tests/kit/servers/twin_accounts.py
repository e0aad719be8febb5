"""Accounts that have the same uids, names and versions."""

from __future__ import annotations

from typing import Any

from tests.kit.people.invitations import invite
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer
from tests.kit.servers.internals import database_of

KEEPING: dict[str, Any] = {
    "jwt_access_expiry": "20000d",
    "jwt_refresh_expiry": "20000d",
    "trash_days": 4,
    "history_days": 4,
    "history_versions": 3,
}
VAULTS = [f"0192f0c1-0000-7000-8000-00000000000{n}" for n in range(3)]
DOCUMENTS = [f"0192f0c1-0000-7000-8000-0000000000d{n}" for n in range(5)]
CHANGED, DELETED, OTHER = DOCUMENTS[0], DOCUMENTS[1], DOCUMENTS[2]


async def good(person: Person, method: str, path: str, body: Any = None) -> dict[str, Any]:
    answer = await person(method, path, body)
    assert answer.status_code in (200, 201), (method, path, answer.text)
    told: dict[str, Any] = answer.json()
    return told


def at(document: str, vault: str = VAULTS[0]) -> str:
    return f"/vaults/{vault}/documents/{document}"


async def vault(person: Person, number: int) -> None:
    """A vault with a blob that was replaced once."""
    blob = {"data": "QkxPQg==", "salt": "c2FsdA=="}
    await good(person, "POST", "/vault", {"uid": VAULTS[number], "name": f"vault {number}", **blob})
    await good(person, "PUT", f"/vault/{VAULTS[number]}", {**blob, "data": "QkxPQgBC", "version": 1})


async def document(person: Person, uid: str, *, deleted: bool = False, vault: str = VAULTS[0]) -> None:
    """A document that was changed twice, or once and then deleted."""
    await good(person, "POST", f"/vaults/{vault}/documents", {"uid": uid, "collection": "c", "data": "AAAA"})
    await good(person, "PUT", at(uid, vault), {"data": "BBBB", "hmac": "h", "version": 1})
    if deleted:
        await good(person, "DELETE", at(uid, vault))
    else:
        await good(person, "PUT", at(uid, vault), {"data": "CCCC", "hmac": "h", "version": 2})


async def furnish(server: InProcessServer, email: str) -> Person:
    """An account with one of everything, under the same uids as any other."""
    person = await server.person(email, invitation=await invite(database_of(server.app), email))
    await vault(person, 0)
    await vault(person, 1)
    await document(person, CHANGED)
    await document(person, DELETED, deleted=True)
    await document(person, OTHER, vault=VAULTS[1])
    await person.key()
    for version in (0, 1):
        body = {"keyring": "S0VZUklORw==", "version": version, "currentPassword": "correct horse"}
        await good(person, "PUT", "/auth/keyring", body)
    await good(person, "POST", "/auth/refresh", {"refreshToken": person.refresh})
    assert (await server.login(email)).status_code == 200
    assert (await server.login(email, "wrong horse")).status_code == 401
    return person
