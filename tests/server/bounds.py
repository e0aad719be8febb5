"""Everything that is stored, table by table: how many rows, of how many bytes, and how somebody fills it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final

from strongroom import rules
from strongroom.rules import DAY
from strongroom.store.queries.keyrings import RETAINED
from strongroom.store.queries.vault_changes import TRIM_EVERY
from tests.export.files import LINES, sealed
from tests.kit.network.responses import good, refused
from tests.kit.people.one_time_codes import code
from tests.kit.people.passkeys import ORIGIN, add_passkey, proof_by
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer
from tests.kit.servers.populated_database import alter, rows_of

LONG = "\N{KEY}" * 255  # the longest name, in four bytes each
COLLECTION = "\N{KEY}" * (rules.MAX_COLLECTION // 4)
KEYRING = "A" * rules.MAX_KEYRING
PASSWORD = "correct horse"


@dataclass(frozen=True)
class Greed:
    """A server, somebody greedy on it, and where its database is."""

    server: InProcessServer
    person: Person
    where: str

    async def plant(self, table: str, count: int, **columns: str) -> None:
        """Add so many rows of the account at once, as earlier requests left them; `n` is the number of each."""
        names, values = ", ".join(columns), ", ".join(columns.values())
        some = "WITH RECURSIVE series (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM series WHERE n < {})"
        series = f"{some.format(count)} SELECT '{self.person.id}', {values} FROM series"
        await alter(self.where, f"INSERT INTO {table} (user_id, {names}) {series}")


Fill = Callable[[Greed], Awaitable[None]]


@dataclass(frozen=True)
class Bound:
    """How many rows of a table one account may have, or one address, and how many bytes a row may have."""

    rows: int
    bytes: int
    fill: Fill | None = None  # None: nobody can fill it, for the reason that the settings page gives
    settings: dict[str, Any] = field(default_factory=dict)


async def registrations(greed: Greed) -> None:
    """Register until it is refused; the person has done so once."""
    kdf = {"format": 2, "salt": "x" * 1_900}
    for number in range(5):
        email = f"{number}{'x' * 200}@{'y' * 50}.example"[: rules.MAX_EMAIL]
        body = {"email": email, "password": PASSWORD, "kdf": kdf}
        answer = await greed.server.http.post("/auth/email/register", json=body)
        assert answer.status_code == (201 if number < 2 else 429), answer.text


async def logins(greed: Greed) -> None:
    """Log in again and again."""
    count, device = rules.SESSIONS_PER_ACCOUNT - 1, "\N{KEY}" * rules.MAX_DEVICE_NAME
    await greed.plant(
        "sessions", count, id="'planted ' || n", generation="0", created_at="n", last_used_at="n",
        expires_at="9000000000000000", address="'127.0.0.1'", user_agent="'x'",
    )  # fmt: skip
    for _ in range(3):
        body = {"email": greed.person.email, "password": PASSWORD, "deviceName": device}
        headers = {"user-agent": "x" * 5_000}
        good(await greed.server.http.post("/auth/email/login", json=body, headers=headers))


async def refreshes(greed: Greed) -> None:
    """Refresh the same token again and again, as a client that stores no new one."""
    found = good(await greed.person("GET", "/auth/sessions"))["sessions"]
    await greed.plant(
        "refresh_tokens", rules.TOKENS_PER_SESSION, jti="'planted ' || n", session_id=f"'{found[0]['id']}'",
        generation="1", created_at="n", expires_at="9000000000000000",
    )  # fmt: skip
    for _ in range(3):
        good(await greed.server.http.post("/auth/refresh", json={"refreshToken": greed.person.refresh}))


async def shares(greed: Greed) -> None:
    """Store a share again and again."""
    for _ in range(3):
        good(await greed.person("PUT", "/auth/key-share", {"keyShare": "A" * 43 + "="}))


async def keys(greed: Greed) -> None:
    """Make keys until it is refused."""
    await greed.plant(
        "api_keys", rules.KEYS_PER_ACCOUNT - 1, uid="'planted ' || n", key_hash="'planted ' || n", name="'k'",
        created_at="n",
    )  # fmt: skip
    scope = {"name": LONG, "collections": ["x" * 160] * 100}
    good(await greed.person("POST", "/auth/api-keys", scope), 201)
    refused(await greed.person("POST", "/auth/api-keys", scope), 409, "too_many_api_keys")


async def vaults(greed: Greed) -> None:
    """Make vaults until it is refused."""
    await greed.plant(
        "vaults", rules.VAULTS_PER_ACCOUNT - 1, uid="'planted ' || n", name="'planted ' || n", version="1",
        created_at="n", updated_at="n",
    )  # fmt: skip
    body = {"name": LONG, "salt": "A" * 1024, "data": "x"}
    good(await greed.person("POST", "/vault", body), 201)
    refused(await greed.person("POST", "/vault", {**body, "name": "another"}), 409, "too_many_vaults")


async def tombstones(greed: Greed) -> None:
    """Create and delete documents until it is refused; a vault's deletion makes room."""
    vault = await greed.person.vault()
    path = f"/vaults/{vault['uid']}/batch"
    for batch in range(10):
        uids = [f"00000000-0000-7000-8000-{batch:06}{number:06}" for number in range(500)]
        creates = [{"op": "create", "collection": COLLECTION, "data": "AAAA", "uid": uid} for uid in uids]
        answer = await greed.person(
            "POST", path, {"operations": [*creates, *({"op": "delete", "uid": u} for u in uids)]}
        )
        if answer.status_code != 200:
            break
    assert batch > 1
    refused(answer, 507, "quota_exceeded")
    await fill_up(greed, vault)


async def fill_up(greed: Greed, vault: dict[str, Any]) -> None:
    """Create single documents until it is refused; then only another vault's deletion makes room."""
    body = {"collection": "c", "data": "AAAA"}
    other = await greed.person.vault()
    first = await greed.person.document(other)
    for _ in range(2_000):
        operations = [{"op": "create", **body}] * 100
        if (await greed.person("POST", f"/vaults/{vault['uid']}/batch", {"operations": operations})).status_code != 200:
            break
    while (answer := await greed.person("POST", f"/vaults/{vault['uid']}/documents", body)).status_code == 201:
        pass
    refused(answer, 507, "quota_exceeded")
    good(await greed.person("DELETE", f"/vaults/{other['uid']}/documents/{first['uid']}"))
    refused(await greed.person("POST", f"/vaults/{vault['uid']}/documents", body), 507, "quota_exceeded")
    good(await greed.person("DELETE", f"/vault/{other['uid']}"))
    good(await greed.person("POST", f"/vaults/{vault['uid']}/documents", body), 201)


async def replacements(greed: Greed) -> None:
    """Replace a document and a blob more often than is kept."""
    vault = await greed.person.vault(data="x", salt="")
    document = await greed.person.document(vault, collection=COLLECTION)
    for version in range(1, 26):
        body = {"data": "AAAA", "version": version}
        good(await greed.person("PUT", f"/vaults/{vault['uid']}/documents/{document['uid']}", body))
        good(await greed.person("PUT", f"/vault/{vault['uid']}", {"data": f"{version}", "salt": "A" * 1024}))


async def renamings(greed: Greed) -> None:
    """Rename a vault again and again."""
    vault = await greed.person.vault()
    await greed.plant(
        "vault_changes", rules.VAULT_CHANGES_PER_ACCOUNT + 50, changed_at="n", vault_uid="'v'", kind="'renamed'",
        name="'x'", version="n",
    )  # fmt: skip
    for version in range(1, TRIM_EVERY + 1):
        name = f"{LONG[:-2]}{version:02}"
        good(await greed.person("PUT", f"/vault/{vault['uid']}", {"name": name, "version": version}))


async def deletions(greed: Greed) -> None:
    """Delete vaults faster than their rows go, and faster than the log is emptied."""
    last = await greed.person.vault()
    for _ in range(rules.WAITING_DELETIONS + 15):
        vault = await greed.person.vault()
        await greed.person.document(vault)
        good(await greed.person("DELETE", f"/vault/{vault['uid']}"))
    rows = (await rows_of(greed.where))["deletions"]
    assert sum(row[4] is None for row in rows) <= rules.WAITING_DELETIONS
    rest = rules.DELETIONS_PER_ACCOUNT - len(rows)
    await greed.plant("deletions", rest, vault_uid="'planted ' || n", until="n", deleted_at="n", emptied_at="n")
    refused(await greed.person("DELETE", f"/vault/{last['uid']}"), 503, "unavailable")


async def keyrings(greed: Greed) -> None:
    """Replace the keyring with every import, each with as many replaced ones as a file may have."""
    now, proof = greed.server.clock.now, {"kind": "password", "currentPassword": PASSWORD}
    for attempt in range(2):
        head = {
            "kind": "header", "format": "strongroom-export", "version": 2, "epoch": "e", "clock": now,
            "exportedAt": now, "id": f"0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f{attempt}",
        }  # fmt: skip
        ring = {"kind": "keyring", "keyring": KEYRING, "version": 900, "updatedAt": now}
        old = [
            {"kind": "keyringVersion", "keyring": "A" * 1_000, "version": 126 * attempt + number + 1, "updatedAt": 1}
            | {"replacedAt": now - (125 - number) * DAY}
            for number in range(126)
        ]
        vault = {"kind": "vault", "uid": head["id"], "name": "v", "version": 1, "createdAt": 1, "updatedAt": 2}
        body = b"".join((sealed([proof]).splitlines()[0], b"\n", sealed([head, ring, *old, vault])))
        good(await greed.person("POST", "/auth/import", content=body, headers={"content-type": LINES}))
        good(await greed.person("DELETE", f"/vault/{vault['uid']}"))
        await greed.server.finish_deletions()


async def wrong_tokens(greed: Greed) -> None:
    """Try tokens until it is refused."""
    for number in range(rules.FAILURES_PER_ADDRESS + 5):
        answer = await greed.server.http.post("/auth/refresh", json={"refreshToken": f"wrong {number}"})
        assert answer.status_code == (401 if number < rules.FAILURES_PER_ADDRESS else 429), answer.text


async def entries(greed: Greed) -> None:
    """Fill the log with entries of one type."""
    await greed.plant(
        "events", rules.EVENTS_PER_TYPE + 5, id="'planted ' || n", type="'session_ended'", created_at="n",
        address="'127.0.0.1'", user_agent="'x'",
    )  # fmt: skip
    headers = {"user-agent": "x" * 5_000}
    good(await greed.person("POST", "/auth/logout", headers=headers))


async def codes(greed: Greed) -> None:
    """Enrol one-time codes twice, and begin more logins than may wait for a code."""
    begun = good(await greed.person("POST", "/auth/second-factor/totp", {"currentPassword": PASSWORD}), 201)
    now = greed.server.clock.now
    good(await greed.person("POST", "/auth/second-factor/totp/confirm", {"code": code(begun["secret"], now)}), 201)
    await greed.plant(
        "login_tickets", rules.TICKETS_PER_ACCOUNT, ticket_hash="'planted ' || n", password="'x'", created_at="n",
        expires_at="9000000000000000",
    )  # fmt: skip
    for _ in range(3):
        await greed.server.login(greed.person.email)


async def passkeys(greed: Greed) -> None:
    """Add passkeys until it is refused, and begin more ceremonies than may be open."""
    passkey, _ = await add_passkey(greed.person)
    await greed.plant(
        "passkeys", rules.PASSKEYS_PER_ACCOUNT - 1, uid="'planted ' || n", credential_id="'planted ' || n",
        public_key="'x'", sign_count="0", name="'x'", prf="0", created_at="n",
    )  # fmt: skip
    proof = {"passkey": await proof_by(greed.person, passkey)}
    refused(await greed.person("POST", "/auth/passkeys/registration/options", proof), 409, "too_many_passkeys")
    for _ in range(rules.CHALLENGES_PER_ACCOUNT + 5):
        await proof_by(greed.person, passkey)


_ROW = 1_000  # bytes of the numbers, ids and times of a row
_PATIENT = {"jwt_access_expiry": "20000d"}
_QUOTA = {"quota_bytes": rules.ROWS_MINIMUM, **_PATIENT}
_PASSKEYS = {"public_url": ORIGIN}
BOUNDS: Final[dict[str, Bound]] = {
    "users": Bound(3, 4 * rules.MAX_EMAIL + rules.MAX_KDF + _ROW, registrations, {"signup_limit": 3}),
    "signups": Bound(3, _ROW, registrations, {"signup_limit": 3}),
    "sessions": Bound(rules.SESSIONS_PER_ACCOUNT, 4 * (rules.MAX_DEVICE_NAME + 256) + _ROW, logins),
    "refresh_tokens": Bound(rules.TOKENS_PER_SESSION, _ROW, refreshes),
    "key_shares": Bound(1, _ROW, shares),
    "api_keys": Bound(rules.KEYS_PER_ACCOUNT, rules.MAX_KEY_SCOPE + 4 * 255 + _ROW, keys),
    "vaults": Bound(rules.VAULTS_PER_ACCOUNT, 4 * 255 + 1_024 + _ROW, vaults),
    "documents": Bound(rules.ROWS_MINIMUM // 257, rules.MAX_COLLECTION + _ROW, tombstones, _QUOTA),
    "versions": Bound(20, rules.MAX_COLLECTION + _ROW, replacements),
    "blob_versions": Bound(20, 4 * 255 + 1_024 + _ROW, replacements),
    "vault_changes": Bound(rules.VAULT_CHANGES_PER_ACCOUNT + TRIM_EVERY, 4 * 255 + _ROW, renamings),
    "deletions": Bound(rules.DELETIONS_PER_ACCOUNT, _ROW, deletions),
    "keyrings": Bound(1, rules.MAX_KEYRING + _ROW, keyrings, _PATIENT),
    "keyring_versions": Bound(RETAINED + 92, rules.MAX_KEYRING + rules.MAX_KDF + _ROW, keyrings, _PATIENT),
    "failures": Bound(rules.FAILURES_PER_ADDRESS, _ROW, wrong_tokens),
    "events": Bound(2 * rules.EVENTS_PER_TYPE, 4 * 256 + _ROW, entries),
    "one_time_codes": Bound(2, _ROW, codes),
    "recovery_codes": Bound(10, _ROW, codes),
    "login_tickets": Bound(rules.TICKETS_PER_ACCOUNT, 4 * rules.MAX_DEVICE_NAME + _ROW, codes),
    "passkeys": Bound(rules.PASSKEYS_PER_ACCOUNT, 4 * 1_024 + _ROW, passkeys, _PASSKEYS),
    "challenges": Bound(rules.CHALLENGES_PER_ACCOUNT, _ROW, passkeys, _PASSKEYS),
    "ledgers": Bound(1, _ROW, vaults),
    "imports": Bound(1, _ROW, keyrings, _PATIENT),
    "invitations": Bound(0, 4 * (rules.MAX_NOTE + rules.MAX_EMAIL) + _ROW),
    "lineage": Bound(1, _ROW),
    "secrets": Bound(10, _ROW),
    "schema_migrations": Bound(1_000, _ROW),
}
