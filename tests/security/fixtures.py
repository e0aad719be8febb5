"""The accounts, keys, vaults and documents of the matrix. Everything that could leak carries a canary."""

from __future__ import annotations

import itertools
import json
import uuid
from typing import Any, NamedTuple

from strongroom import store
from strongroom.model import StoredPasskey
from strongroom.rules import MINUTE
from strongroom.store import Tx
from strongroom.store.statement import Sql
from tests.contract.jwt import claims
from tests.kit.clock import Clock
from tests.kit.people.keyrings import keyring
from tests.kit.people.one_time_codes import code
from tests.kit.servers.internals import database_of
from tests.security.asgi_request import Answer, ask
from tests.security.table import HOMES, PRINCIPALS, VAULTS, Principal

PASSWORD = "correct horse"
_numbers = itertools.count(1)


_EXPIRE = Sql("UPDATE login_tickets SET expires_at = :now WHERE user_id = :user_id")


async def _expire(tx: Tx, user_id: str) -> None:
    """Let the tickets of an account expire now."""
    await tx.run(_EXPIRE, user_id=user_id, now=tx.now)


class Thing(NamedTuple):
    """A vault or a document, and the text by which it would be recognised."""

    uid: str
    name: str
    canary: str


class Account:
    """A user with vaults, documents, a key and a session to spare."""

    def __init__(self, name: str, email: str, agent: str, signed_in: Any) -> None:
        self.name: str = name
        self.email: str = email
        self.agent: str = agent
        self.id: str = signed_in["user"]["id"]
        self.access: str = signed_in["accessToken"]
        self.refresh: str = signed_in["refreshToken"]
        self.session: str = claims(self.access)["sid"]
        self.vaults: dict[str, Thing] = {}
        self.documents: dict[str, Thing] = {}
        self.key_uid = ""
        self.passkey_uid = ""
        self.keyring: str = ""
        self.ticket: str = ""  # of somebody with a second factor, and of a login that lacks it
        self.factor: dict[str, str] = {}  # one that was not used yet
        self.spent: dict[str, str] = {}  # and one that was

    def canaries(self) -> set[str]:
        """All by which anything of this account would be recognised."""
        return {
            self.agent,
            self.key_uid,
            self.passkey_uid,
            self.keyring,
            self.session,
            *(thing.canary for thing in (*self.vaults.values(), *self.documents.values())),
        }


class Stage:
    """Ann and Bob, who have the same kinds of things; Carol, who lends her uids; and all the ways to be somebody."""

    def __init__(self, app: Any, clock: Clock) -> None:
        self.app = app
        self.clock = clock
        self.accounts: dict[str, Account] = {}
        self.bearers: dict[str, str | None] = {}
        self.dead_refresh: dict[str, str] = {}
        self.lent: str = ""
        self.other_node: Any = None  # another server over the same database

    async def set_up(self) -> None:
        """Make everybody and everything."""
        old = await self.register("old")
        self.clock.pass_(8 * 24 * 60 * MINUTE)
        twin = str(uuid.uuid4()), str(uuid.uuid4())
        for name in ("ann", "bob", "carol"):
            account = self.accounts[name] = await self.register(name)
            if name != "carol":
                await self._furnish(account, *twin)
        ann, gone, ended = self.accounts["ann"], await self.register("gone"), await self.log_in(self.accounts["ann"])
        inside = {"vaultUids": [ann.vaults["inside"].uid]}
        scopes: dict[str, dict[str, Any]] = {
            "key: full": {},
            "key: read": {"permissions": ["read"]},
            "key: write": {"permissions": ["write"]},
            "key: delete": {"permissions": ["delete"]},
            "key: vaultUids": inside,
            "key: collections": {"collections": ["in"]},
            "key: vaultUids and collections": {**inside, "collections": ["in"]},
            "key: expired": {"expiresAt": self.clock.now + 1_000},
            "key: revoked": {},
        }
        keys = {name: await self.key(ann, **scope) for name, scope in scopes.items()}
        gone_key = await self.key(gone)
        self.bearers = {name: key["key"] for name, key in keys.items()} | {
            "nobody": None,
            "owner": ann.access,
            "other user": self.accounts["bob"].access,
            "key: of a deleted account": gone_key["key"],
            "key: mistyped": keys["key: full"]["key"][:-1] + ("A" if keys["key: full"]["key"][-1] != "A" else "B"),
            "refresh token": ann.refresh,
            "expired token": old.access,
            "ended session": ended.access,
            "deleted account": gone.access,
            "ticket": (await self.enrolled()).ticket,
        }
        self.bearers |= dict.fromkeys(name for name in PRINCIPALS if name.startswith("token "))
        self.dead_refresh = {
            "ended session": ended.refresh,
            "deleted account": gone.refresh,
            "expired token": old.refresh,
        }
        self.clock.pass_(2_000)
        await self._good("DELETE", f"/auth/api-keys/{keys['key: revoked']['uid']}", ann)
        await self._good("POST", "/auth/logout", ended)
        await self._good("DELETE", "/auth/me", gone, {"password": PASSWORD})

    async def _furnish(self, account: Account, twin_vault: str, twin_document: str) -> None:
        """Both accounts have a twin: the same uid and the same name, but another owner and another content."""
        for which in VAULTS:
            canary = f"vault{which}of{account.name}{uuid.uuid4().hex}"
            name = "twin" if which == "twin" else f"{which}/{account.name} {uuid.uuid4()}"
            uid = twin_vault if which == "twin" else str(uuid.uuid4())
            await self._good("POST", "/vault", account, {"uid": uid, "name": name, "data": canary, "salt": ""})
            account.vaults[which] = Thing(uid, name, canary)
        for which, (home, collection) in HOMES.items():
            canary = f"document{which}of{account.name}{uuid.uuid4().hex}"
            uid = twin_document if which == "twin" else str(uuid.uuid4())
            vault = account.vaults[home].uid
            await self.document(account, vault, collection, canary, uid, hmac=canary)
            again = {"data": canary, "hmac": canary, "version": 1}  # what it replaces is in the history
            await self._good("PUT", f"/vaults/{vault}/documents/{uid}", account, again)
            account.documents[which] = Thing(uid, collection, canary)
        account.key_uid = (await self.key(account))["uid"]
        account.passkey_uid = await self.passkey(account)
        account.keyring = keyring(account.id)
        for version in (0, 1):
            body = {"keyring": account.keyring, "version": version, "currentPassword": PASSWORD}
            await self._good("PUT", "/auth/keyring", account, body)

    async def _good(self, method: str, path: str, account: Account, body: Any = None) -> Any:
        answer = await self.send(method, path, account.access, body, agent=account.agent)
        assert answer.status in {200, 201}, answer
        return answer.json()

    async def send(self, method: str, path: str, bearer: str | None = None, body: Any = None, **more: Any) -> Answer:
        """One request."""
        return await ask(self.app, method, path, bearer, body, **more)

    async def register(self, name: str, **more: Any) -> Account:
        """A new account."""
        email, agent = f"{name}{next(_numbers)}@example.com", f"agentof{name}{uuid.uuid4().hex}"
        answer = await self.send(
            "POST", "/auth/email/register", None, {"email": email, "password": PASSWORD, **more}, agent=agent
        )
        assert answer.status == 201, answer
        return Account(name, email, agent, answer.json())

    async def log_in(self, account: Account) -> Account:
        """The same account in a new session."""
        body = {"email": account.email, "password": PASSWORD}
        answer = await self.send("POST", "/auth/email/login", None, body, agent=account.agent)
        assert answer.status == 200, answer
        return Account(account.name, account.email, account.agent, answer.json())

    async def enrolled(self, ticket: str = "good") -> Account:
        """A new account with a second factor, and a ticket of it in this state."""
        account = await self.register("passing")
        proof = {"currentPassword": PASSWORD}
        secret = (await self._good("POST", "/auth/second-factor/totp", account, proof))["secret"]
        account.spent = {"code": code(secret, self.clock.now)}
        confirmed = await self._good("POST", "/auth/second-factor/totp/confirm", account, account.spent)
        account.factor = {"code": code(secret, self.clock.now, 1)}
        body: dict[str, Any] = {"email": account.email, "password": PASSWORD}
        app = self.other_node if ticket == "of another node" else self.app
        answer = await ask(app, "POST", "/auth/email/login", None, body)
        account.ticket = str(answer.json()["error"].get("details", {}).get("ticket")) if answer.status == 401 else ""
        recovery = {"recoveryCode": confirmed["recoveryCodes"][0]}
        if ticket == "used":
            body = {"ticket": account.ticket, "secondFactor": recovery}
            await self.send("POST", "/auth/email/login/second", None, body)
            account.spent = recovery
        elif ticket == "before a change of password":
            body = {**proof, "newPassword": PASSWORD, "secondFactor": recovery}
            await self._good("PUT", "/auth/password", account, body)
        elif ticket == "expired":
            await database_of(self.app).write(_expire, account.id)
        elif ticket == "of another account":
            account.ticket = (await self.enrolled()).ticket
        return account

    async def vault(self, account: Account) -> str:
        """A new vault's uid."""
        made = await self._good("POST", "/vault", account, {"name": str(uuid.uuid4()), "data": "x", "salt": ""})
        return str(made["uid"])

    async def document(
        self, account: Account, vault: str, collection: str, data: str, uid: str | None = None, hmac: str | None = None
    ) -> str:
        """A new document's uid."""
        body = {"collection": collection, "data": data, "uid": uid or str(uuid.uuid4()), "hmac": hmac}
        return str((await self._good("POST", f"/vaults/{vault}/documents", account, body))["uid"])

    async def key(self, account: Account, **scope: Any) -> Any:
        """A new API key."""
        return await self._good("POST", "/auth/api-keys", account, {"name": "k", **scope})

    async def passkey(self, account: Account) -> str:
        """The uid of a new passkey, which no authenticator has; it asks for no second factor."""
        uid = str(uuid.uuid4())
        made = StoredPasskey(account.id, uid, uuid.uuid4().hex, "", 0)
        await database_of(self.app).write(store.passkeys.insert, made, "a passkey", prf=False)
        return uid

    async def lend(self) -> None:
        """Let Carol make something under a uid that others will then try to use."""
        self.lent = await self.vault(self.accounts["carol"])

    def named(self, whose: str, account: Account) -> Account:
        """The account itself, or the other one."""
        return account if whose == "own" else self.accounts["bob" if account.name == "ann" else "ann"]

    def hidden(self, principal: Principal) -> set[str]:
        """The canaries that a principal must never see."""
        own = self.accounts[principal.account]
        hidden = self.named("foreign", own).canaries()
        if not principal.column:
            return hidden | own.canaries()
        for which, inside in VAULTS.items():
            if (principal.of_some_vaults and not inside) or principal.of_some_collections:
                hidden.add(own.vaults[which].canary)
        for which, (home, collection) in HOMES.items():
            beyond = principal.of_some_vaults and not VAULTS[home]
            if beyond or (principal.of_some_collections and collection != "in"):
                hidden.add(own.documents[which].canary)
        return hidden

    async def inventory(self) -> str:
        """What Ann and Bob have, as they see it: the contents, not the versions."""
        found = []
        for account in (self.accounts["ann"], self.accounts["bob"]):
            found.append([(await self.send("GET", "/auth/keyring", account.access)).json().get("keyring")])
            for vault in account.vaults.values():
                kept = (await self.send("GET", f"/vault/{vault.uid}", account.access)).json()
                listed = (await self.send("GET", f"/vaults/{vault.uid}/documents", account.access)).json()
                canaries = {thing.canary for thing in account.documents.values()}
                held = sorted(item["data"] for item in listed.get("documents", ()) if item["data"] in canaries)
                found.append([kept.get("name"), kept.get("data"), held])
        return json.dumps(found)
