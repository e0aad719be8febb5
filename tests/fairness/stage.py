"""The stage of the attacks: a server with a quota, a greedy account with the most rows, and an honest one."""

from __future__ import annotations

import base64
import json
import uuid
from typing import Any, Final, NamedTuple

from tests.fairness.measure import WatchedServer
from tests.kit.network.paths import docs
from tests.kit.network.responses import good, made
from tests.kit.people.api_user import PASSWORD, ApiUser
from tests.kit.people.keyrings import keyring
from tests.kit.people.soft_authenticator import SoftPasskey, unb64

MIB: Final = 1024 * 1024
ORIGIN: Final = "https://vault.example.com"
WIDE: Final = "\U0001f511"  # a character of four bytes
KEYRING: Final = 262_144  # characters
VERSIONS: Final = 20  # of a document, and of a blob
SETTINGS: Final = {
    "PUBLIC_URL": ORIGIN,
    "QUOTA_BYTES": str(64 * MIB),
    "JWT_ACCESS_EXPIRY": "1d",  # on a busy machine, a run takes longer than a token is valid
    "LOGIN_LIMIT": "60",
    "LOG_LEVEL": "warning",
    "METRICS_TOKEN": "a-token-for-the-figures",
    "WATCHDOG_CHEAP": "1",
}


class Scale(NamedTuple):
    """How much of everything: the whole in `make soak`, little of it in `make test`."""

    connections: int
    body: int  # bytes of the largest bodies
    rows: int  # documents of a vault that is read
    few: int  # documents that are imported, deleted or purged
    vaults: int
    operations: int  # of a batch
    alone: float  # seconds in which the honest client is alone
    attack: float  # seconds of an attack


WHOLE: Final = Scale(64, 5 * MIB, 20_000, 20_000, 300, 1_000, 1.0, 3.0)
SHORT: Final = Scale(64, MIB // 64, 1_000, 100, 50, 20, 0.0, 0.0)


def wide_name(number: int) -> str:
    """A collection of the largest size, another one for each number."""
    return f"{number:06}" + WIDE * 126


def encoded(body: object) -> bytes:
    """A body in JSON, with characters as they are."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def large_keyring(version: int) -> str:
    """A keyring of the largest size, whose slots are always the same."""
    head = base64.b64decode(keyring("greedy", version=version))
    head += bytes(-len(head) % 3)
    return base64.b64encode(head).decode() + "QUJD" * (KEYRING // 4 - len(head) // 3)


class Stage:
    """What attacks name in their requests."""

    def __init__(self, server: WatchedServer, scale: Scale) -> None:
        self.server = server
        self.scale = scale
        self.data = "QUJD" * (scale.body // 4)
        self.version = 1  # of the object that an attack replaces, as the last response had it
        self.file = b""  # an export, to be imported
        self._spare: dict[str, ApiUser] = {}
        self._own_vaults: dict[str, str] = {}
        self._enrolled = False
        self._doomed: list[str] = []
        self._to_delete: list[str] = []
        self._to_purge: list[str] = []
        self.honest = ApiUser.register(server)
        self.greedy = ApiUser.register(server)
        self.passkey_uids: list[str] = []
        self.session_ids: list[str] = []
        self.key_uids: list[str] = []
        self.kdf = {f"field {number}": "x" * 100 for number in range(16)}
        self._fill_vaults()
        self._fill_account()
        self.vault_of_honest = self.honest.vault()
        self.document_of_honest = self.honest.document(self.vault_of_honest, data="QUJD" * 64)
        for _ in range(19):
            self.honest.document(self.vault_of_honest, data="QUJD" * 64)

    def spare(self, name: str) -> ApiUser:
        """An account of its own for an attack that changes or ends the account."""
        if name not in self._spare:
            self._spare[name] = ApiUser.register(self.server)
        return self._spare[name]

    def filled(self, person: ApiUser, rows: int, collection: str = "c") -> str:
        """The uid of a new vault with so many small documents."""
        uid: str = person.vault()["uid"]
        self.add(person, uid, rows, collection)
        return uid

    def add(self, person: ApiUser, vault: str, rows: int, collection: str = "c") -> list[str]:
        """Add so many small documents to a vault; their uids."""
        uids = [str(uuid.uuid4()) for _ in range(rows)]
        for start in range(0, rows, 1_000):
            operations = [
                {"op": "create", "uid": uid, "collection": collection, "data": "QUJD"}
                for uid in uids[start : start + 1_000]
            ]
            good(person.http.post(f"/vaults/{vault}/batch", json={"operations": operations}))
        return uids

    def deleted(self, person: ApiUser, vault: str, uids: list[str]) -> None:
        """Delete documents, so that they are in the trash."""
        for start in range(0, len(uids), 1_000):
            operations = [{"op": "delete", "uid": uid} for uid in uids[start : start + 1_000]]
            good(person.http.post(f"/vaults/{vault}/batch", json={"operations": operations}))

    def _fill_vaults(self) -> None:
        """A vault with many documents, one with a large document and its history, one with a blob and its history."""
        person, rows = self.greedy, self.scale.rows
        self.vault = self.filled(person, rows)
        self.trash = self.filled(person, 1)
        self.trashed = self.add(person, self.trash, rows)
        self.deleted(person, self.trash, self.trashed)
        self.collections: str = person.vault()["uid"]
        for start in range(0, 2 * self.scale.vaults, 100):
            operations = [
                {"op": "create", "collection": wide_name(start + number), "data": "QUJD"} for number in range(100)
            ]
            good(person.http.post(f"/vaults/{self.collections}/batch", json={"operations": operations}))
        self.large: str = person.vault()["uid"]
        document = person.document({"uid": self.large}, data=self.data)
        self.document: str = document["uid"]
        self.versioned: str = person.document({"uid": self.large}, data="QUJD" * 4_096)["uid"]
        for version in range(1, VERSIONS + 1):
            body = {"data": "QUJD" * (4_096 + version), "version": version}
            good(person.http.put(f"{docs({'uid': self.large})}/{self.versioned}", json=body))
        self.blob: str = person.vault(data=self.data, salt="")["uid"]
        self.versioned_blob: str = person.vault(data="QUJD" * 4_096, salt="")["uid"]
        for version in range(1, VERSIONS + 1):
            body = {"data": "QUJD" * (4_096 + version), "salt": "", "version": version}
            good(person.http.put(f"/vault/{self.versioned_blob}", json=body))
        for number in range(self.scale.vaults):
            made(person.http.post("/vault", json={"name": wide_name(number)}))

    def _fill_account(self) -> None:
        """As many passkeys, sessions, keys and keyrings as an account may have."""
        http = self.greedy.http
        for version in range(1, 13):
            body: dict[str, Any] = {"keyring": large_keyring(version), "version": version - 1}
            if version == 1:
                body["currentPassword"] = PASSWORD
            good(http.put("/auth/keyring", json=body))
        for number in range(100 if self.scale is WHOLE else 10):
            body = {"name": wide_name(number), "collections": [WIDE * 40] * 97}
            self.key_uids.append(made(http.post("/auth/api-keys", json=body))["uid"])
        proof: dict[str, Any] = {"currentPassword": PASSWORD}
        for _ in range(20 if self.scale is WHOLE else 2):
            options = good(http.post("/auth/passkeys/registration/options", json=proof))["publicKey"]
            passkey = SoftPasskey(options["rp"]["id"], unb64(options["user"]["id"]))
            body = {"name": WIDE * 128, "credential": passkey.register(options, ORIGIN), "prf": True}
            self.passkey_uids.append(made(http.post("/auth/passkeys", json=body))["passkey"]["uid"])
            options = good(http.post("/auth/passkeys/proof/options"))["publicKey"]
            proof = {"passkey": passkey.assertion(options, ORIGIN)}
        with self.server.connect() as anybody:
            for _ in range(98 if self.scale is WHOLE else 10):
                options = good(anybody.post("/auth/passkeys/login/options", json={}))["publicKey"]
                body = {"credential": passkey.assertion(options, ORIGIN), "deviceName": WIDE * 128}
                good(anybody.post("/auth/passkeys/login", json=body))
        self.session_ids = [one["id"] for one in good(http.get("/auth/sessions"))["sessions"] if not one["current"]]
        self.passkey = passkey

    def own_vault(self, name: str) -> str:
        """The vault of an account of its own."""
        if name not in self._own_vaults:
            self._own_vaults[name] = self.spare(name).vault()["uid"]
        return self._own_vaults[name]

    def doomed(self, number: int) -> str:
        """A vault with many rows that is to be deleted, or what does not exist once all are."""
        if not self._doomed:
            self._doomed = [self.filled(self.spare("deletes"), self.scale.few) for _ in range(4)]
        return self._doomed[number] if number < len(self._doomed) else str(uuid.uuid4())

    def to_delete(self, number: int) -> str:
        """A document that is to be deleted."""
        name = "deletes documents"
        if not self._to_delete:
            self._to_delete = self.add(self.spare(name), self.own_vault(name), self.scale.few, wide_name(0))
        return self._to_delete[number] if number < len(self._to_delete) else str(uuid.uuid4())

    def to_purge(self, number: int) -> str:
        """A document in the trash that is to be purged."""
        if not self._to_purge:
            person, vault = self.spare("purges"), self.own_vault("purges")
            self._to_purge = self.add(person, vault, self.scale.few)
            self.deleted(person, vault, self._to_purge)
        return self._to_purge[number] if number < len(self._to_purge) else str(uuid.uuid4())

    def wrong_code(self, number: int) -> str:
        """A code that does not confirm an enrolment, or not likely."""
        if not self._enrolled:
            self._enrolled = True
            made(self.spare("confirms").http.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}))
        return f"{number % 1_000_000:06}"

    @property
    def usage(self) -> dict[str, int]:
        """What the greedy account has stored, as the server counts it."""
        found: dict[str, int] = good(self.greedy.http.get("/auth/me"))["usage"]
        return found
