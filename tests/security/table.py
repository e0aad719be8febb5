"""Who may do what: one row for every way to use a route, one column for every kind of caller.

A `+` is let in, a `-` gets 403 `insufficient_scope`. Whoever has no good bearer gets 401 everywhere but on public rows.
What those who are let in may reach is a second, shorter table: `VAULTS`, `HOMES` and `missing`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.kit.people.keyrings import keyring
from tests.kit.people.passkeys import ORIGIN, RP_ID
from tests.kit.people.soft_authenticator import SoftPasskey, b64

if TYPE_CHECKING:
    from tests.security.fixtures import Account, Stage


class Spot(NamedTuple):
    """Where a body is written: on which stage, by whose principal, for which vault."""

    stage: Stage
    account: Account
    vault: str


Body = Callable[[Spot], Any]
COLUMNS = ("user", "full", "read", "write", "delete", "vaults", "collections", "both")
EVERYBODY = "public"


class Principal(NamedTuple):
    """A caller: its column, whose things are its own, how its token travels. No column: it is let in nowhere."""

    column: str = ""
    account: str = "ann"
    carried: str = "header"

    @property
    def of_some_vaults(self) -> bool:
        return self.column in {"vaults", "both"}

    @property
    def of_some_collections(self) -> bool:
        return self.column in {"collections", "both"}

    @property
    def is_key(self) -> bool:
        return self.column not in {"", "user"}


PRINCIPALS = {
    "nobody": Principal(),
    "owner": Principal("user"),
    "other user": Principal("user", "bob"),
    "key: full": Principal("full"),
    "key: read": Principal("read"),
    "key: write": Principal("write"),
    "key: delete": Principal("delete"),
    "key: vaultUids": Principal("vaults"),
    "key: collections": Principal("collections"),
    "key: vaultUids and collections": Principal("both"),
    "key: expired": Principal(),
    "key: revoked": Principal(),
    "key: of a deleted account": Principal(),
    "key: mistyped": Principal(),
    "refresh token": Principal(),
    "expired token": Principal(),
    "ended session": Principal(),
    "deleted account": Principal(),
    "ticket": Principal(),  # the password is proven, and the second factor is not
    "token in the query": Principal(carried="query"),
    "token in a cookie": Principal(carried="cookie"),
    "token as a password": Principal(carried="basic"),
}


class Row(NamedTuple):
    """One way to use a route, and who may."""

    route: str
    may: str
    good: tuple[int, str] = (200, "")
    family: str = ""  # what its path names: vault, name, document, key, session
    body: Body | None = None
    how: str = ""  # tells rows of one route apart
    query: str = ""
    if_match: bool = False
    version: str = "1"  # where the path names one
    destroys: bool = False  # the target is made for each call anew
    content_type: str = ""  # of a request without a body
    enrolled: str = ""  # somebody with a second factor is made for this call, with a ticket in this state
    bearer: str = ""  # "session" or "account": a user calls with one that is made for this call
    shows: str = ""  # what a good answer must hold: vaults, documents, all of both, itself, agent, keys
    only: str = "both document blob"

    @property
    def name(self) -> str:
        return f"{self.route} ({self.how})" if self.how else self.route

    def lets_in(self, principal: Principal) -> bool:
        return self.may == EVERYBODY or self.may.split()[COLUMNS.index(principal.column)] == "+"


def _new_email(_spot: Spot) -> Any:
    return {"email": f"{uuid.uuid4()}@example.com", "password": "correct horse"}


def _document(collection: str) -> Body:
    return lambda _spot: {"collection": collection, "data": "AAAA"}


def _batch(one: Body, op: str) -> Body:
    return lambda spot: {"operations": [{"op": op, **one(spot)}]}


def _blob(spot: Spot) -> Any:
    """The blob that is stored already: the canary stays where it is."""
    own = spot.account.vaults.get(spot.vault)
    return {"data": "x" if own is None else own.canary, "salt": ""}


def _new_vault(_spot: Spot) -> Any:
    return {"name": str(uuid.uuid4()), "data": "x", "salt": ""}


def _key_for(whose: str, which: str) -> Body:
    return lambda at: {"name": "k", "vaultUids": [at.stage.named(whose, at.account).vaults[which].uid]}


#                                              user full read write delete vaults collections both
READS_ = "                                       +    +    +    -     -      +        +         +  "
WRITES = "                                       +    +    -    +     -      +        +         +  "
ERASES = "                                       +    +    -    -     +      +        +         +  "
OF_USER = "                                      +    -    -    -     -      -        -         -  "
ANYONE = "                                       +    +    +    +     +      +        +         +  "
CREATES_VAULTS = "                               +    +    -    +     -      -        -         -  "
DELETES_VAULTS = "                               +    +    -    -     +      -        -         -  "
SETS_BLOBS = "                                   +    +    -    +     -      +        -         -  "
READS_OUTSIDE = "                                +    +    +    -     -      +        -         -  "
WRITES_OUTSIDE = "                               +    +    -    +     -      +        -         -  "

_BATCH = "/vaults/{vaultUid}/batch"
_VAULT, _DOCUMENTS = "/vault/{uid}", "/vaults/{vaultUid}/documents"
_ONE, _EVENTS = _DOCUMENTS + "/{uid}", "/vaults/{vaultUid}/events"
_KEYS = "both document"
_UNASKED, _UNKNOWN = SoftPasskey(RP_ID, bytes(16)), {"challenge": b64(bytes(32))}
_SOME = "01890000-0000-7000-8000-00000000dead"

_PROVEN = {"currentPassword": "correct horse"}
_SECOND = "POST /auth/email/login/second"


def _with_ticket(factor: str = "factor") -> Body:
    return lambda at: {"ticket": at.account.ticket, "secondFactor": getattr(at.account, factor)}


def _wrong_code(at: Spot) -> Any:
    known = {at.account.factor["code"], at.account.spent["code"]}
    return {"ticket": at.account.ticket, "secondFactor": {"code": min({"000000", "000001", "000002"} - known)}}


def _other_slots(at: Spot) -> Any:
    return {**_PROVEN, "keyring": keyring(at.account.id), "version": 0}


# What somebody with a second factor may do with it, and nobody without it.
_GUARDED: tuple[tuple[str, str, tuple[int, str], Body], ...] = (
    ("PUT /auth/password", "password", (200, ""), lambda _: {**_PROVEN, "newPassword": "another horse"}),
    (
        "PUT /auth/password",
        "recovery",
        (200, ""),
        lambda at: {
            **_PROVEN,
            "newPassword": "another horse",
            "kdf": {"salt": "x"},
            "keyring": keyring(at.account.id),
            "keyringVersion": 0,
        },
    ),
    ("PUT /auth/keyring", "keyring", (200, ""), _other_slots),
    ("PUT /auth/keyring", "kdf", (200, ""), lambda at: {**_other_slots(at), "kdf": {"salt": "x"}}),
    ("POST /auth/second-factor/totp", "other codes", (201, ""), lambda _: _PROVEN),
    ("DELETE /auth/second-factor/totp", "no codes", (200, ""), lambda _: _PROVEN),
    ("POST /auth/second-factor/recovery-codes", "recovery codes", (201, ""), lambda _: _PROVEN),
    ("DELETE /auth/me", "account", (200, ""), lambda _: {"password": "correct horse"}),
)
_WITHOUT = (401, "second_factor_required")
_WRONG = (401, "invalid_second_factor")
_DEAD = (401, "invalid_ticket")
_SECOND_FACTOR = (
    Row(
        "POST /auth/email/login",
        EVERYBODY,
        _WITHOUT,
        body=lambda at: {"email": at.account.email, "password": "correct horse"},
        enrolled="good",
        how="second factor missing",
    ),
    Row(
        "POST /auth/email/login",
        EVERYBODY,
        (401, "invalid_credentials"),
        body=lambda at: {"email": at.account.email, "password": "wrong horse"},
        enrolled="good",
        how="second factor and wrong password",
    ),
    Row(
        "POST /auth/refresh",
        EVERYBODY,
        (401, "invalid_refresh_token"),
        body=lambda at: {"refreshToken": at.account.ticket},
        enrolled="good",
        how="a ticket",
    ),
    *(Row(_SECOND, EVERYBODY, body=_with_ticket(), enrolled=state, how=state) for state in ("good", "of another node")),
    *(
        Row(_SECOND, EVERYBODY, _DEAD, body=_with_ticket(), enrolled=state, how=f"a ticket that is {state}")
        for state in ("expired", "used", "before a change of password")
    ),
    Row(
        _SECOND, EVERYBODY, _WRONG, body=_with_ticket(), enrolled="of another account", how="ticket of another account"
    ),
    Row(_SECOND, EVERYBODY, _WRONG, body=_with_ticket("spent"), enrolled="good", how="a code that was used"),
    Row(_SECOND, EVERYBODY, _WRONG, body=_wrong_code, enrolled="good", how="wrong code"),
    Row(
        _SECOND,
        EVERYBODY,
        (400, "validation_error"),
        body=lambda at: {"ticket": at.account.ticket},
        enrolled="good",
        how="only a ticket",
    ),
    *(
        Row(route, OF_USER, _WITHOUT, body=body, enrolled="good", how=f"{how} without the second factor")
        for route, how, _, body in _GUARDED
    ),
    *(
        Row(
            route,
            OF_USER,
            _WRONG,
            body=lambda at, body=body: {**body(at), "secondFactor": at.account.spent},  # type: ignore[misc]
            enrolled="used",
            how=f"{how} with a recovery code that was used",
        )
        for route, how, _, body in _GUARDED
    ),
    *(
        Row(
            route,
            OF_USER,
            good,
            body=lambda at, body=body: {**body(at), "secondFactor": at.account.factor},  # type: ignore[misc]
            enrolled="good",
            how=f"{how} with the second factor",
        )
        for route, how, good, body in _GUARDED
    ),
)

ROWS = (
    Row("GET /", EVERYBODY, (302, "")),
    Row("GET /health", EVERYBODY),
    Row("GET /ready", EVERYBODY),
    Row("GET /metrics", EVERYBODY, (404, "not_found")),
    Row("GET /openapi.json", EVERYBODY),
    Row("GET /docs", EVERYBODY),
    Row("GET /docs/style.css", EVERYBODY),
    Row("POST /auth/refresh", EVERYBODY, body=lambda at: {"refreshToken": at.account.refresh}),
    Row(
        "POST /auth/refresh",
        EVERYBODY,
        (401, "invalid_refresh_token"),
        body=lambda at: {"refreshToken": at.account.access},
        how="an access token",
    ),
    *(
        Row(
            "POST /auth/refresh",
            EVERYBODY,
            (401, "invalid_refresh_token"),
            body=lambda at, name=name: {"refreshToken": at.stage.dead_refresh[name]},  # type: ignore[misc]
            how=name,
        )
        for name in ("ended session", "deleted account", "expired token")
    ),
    Row("POST /auth/email/prelogin", EVERYBODY, body=lambda at: {"email": at.account.email}),
    Row("GET /auth/me", ANYONE),
    Row("GET /auth/keyring", OF_USER, shows="keyring"),
    Row("GET /auth/keyring/versions", OF_USER),
    Row("GET /auth/keyring/versions/{version}", OF_USER, shows="keyring"),
    Row("GET /auth/keyring/versions/{version}", OF_USER, (404, "version_not_found"), version="0", how="none"),
    Row("PUT /auth/keyring", OF_USER, body=lambda at: {"keyring": at.account.keyring}, if_match=True, shows="keyring"),
    Row(
        "PUT /auth/keyring",
        OF_USER,
        (409, "keyring_conflict"),
        body=lambda at: {"keyring": keyring(at.account.id, body="other"), "version": 0},
        how="stale",
    ),
    Row(
        "PUT /auth/keyring",
        OF_USER,
        (400, "validation_error"),
        body=lambda at: {"keyring": keyring(at.account.id, slots="of a thief")},
        if_match=True,
        how="other slots",
    ),
    Row("GET /auth/events", OF_USER, shows="agent"),
    Row("GET /auth/sessions", OF_USER, shows="agent"),
    Row("DELETE /auth/sessions/{sid}", OF_USER, family="session", destroys=True),
    Row("PUT /auth/key-share", OF_USER, body=lambda _: {"keyShare": f"{'A' * 43}="}),
    Row(
        "PUT /auth/key-share",
        OF_USER,
        (400, "validation_error"),
        body=lambda _: {"keyShare": f"{'A' * 42}B="},
        how="spare bits",
    ),
    Row("DELETE /auth/key-share", OF_USER),
    Row("GET /auth/export", OF_USER, shows="all"),
    Row("POST /auth/import", OF_USER, (409, "account_not_empty"), content_type="application/x-ndjson"),
    Row(
        "POST /auth/import", OF_USER, (415, "unsupported_media_type"), body=lambda _: {"kind": "header"}, how="no file"
    ),
    Row("DELETE /auth/import", OF_USER, (404, "import_not_found")),
    Row("GET /auth/passkeys", OF_USER, shows="passkeys"),
    Row("PUT /auth/passkeys/{uid}", OF_USER, family="passkey", body=lambda _: {"name": "another name"}),
    Row(
        "DELETE /auth/passkeys/{uid}",
        OF_USER,
        (400, "validation_error"),
        family="passkey",
        body=lambda _: {},
        how="no proof",
    ),
    Row("POST /auth/passkeys/proof/options", OF_USER),
    Row(
        "POST /auth/passkeys",
        OF_USER,
        (401, "invalid_passkey"),
        body=lambda _: {"name": "k", "credential": _UNASKED.register(_UNKNOWN, ORIGIN)},
        how="unknown challenge",
    ),
    Row("POST /auth/passkeys/login/options", EVERYBODY, body=lambda _: {}),
    Row(
        "POST /auth/passkeys/login/options",
        EVERYBODY,
        (401, "invalid_ticket"),
        body=lambda at: {"ticket": at.account.access},
        how="no ticket",
    ),
    Row(
        "POST /auth/passkeys/login",
        EVERYBODY,
        (401, "invalid_passkey"),
        body=lambda _: {"credential": _UNASKED.assertion(_UNKNOWN, ORIGIN)},
        how="unknown challenge",
    ),
    Row("GET /auth/api-keys", OF_USER, shows="keys", only=_KEYS),
    Row("POST /auth/api-keys", OF_USER, (201, ""), body=lambda _: {"name": "k"}, only=_KEYS),
    Row("POST /auth/api-keys", OF_USER, (201, ""), body=_key_for("own", "inside"), how="own vault", only=_KEYS),
    Row(
        "POST /auth/api-keys",
        OF_USER,
        (404, "vault_not_found"),
        body=_key_for("foreign", "inside"),
        how="foreign vault",
        only=_KEYS,
    ),
    Row(
        "POST /auth/api-keys",
        OF_USER,
        (404, "vault_not_found"),
        body=lambda _: {"name": "k", "vaultUids": [str(uuid.uuid4())]},
        how="random vault",
        only=_KEYS,
    ),
    Row("DELETE /auth/api-keys/{uid}", OF_USER, family="key", destroys=True, only=_KEYS),
    Row("GET /vault", READS_, shows="vaults"),
    Row("POST /vault", CREATES_VAULTS, (201, ""), body=_new_vault),
    Row(
        "POST /vault",
        CREATES_VAULTS,
        (409, "uid_taken"),
        body=lambda at: _new_vault(at) | {"uid": at.account.vaults["inside"].uid},
        how="own uid",
    ),
    Row(
        "POST /vault",
        CREATES_VAULTS,
        (201, ""),
        body=lambda at: _new_vault(at) | {"uid": at.stage.lent},
        how="foreign uid",
    ),
    Row("GET /vault/by-name/{name*}", READS_, family="name", shows="itself"),
    Row("GET " + _VAULT, READS_, family="vault", shows="itself"),
    Row("PUT " + _VAULT, SETS_BLOBS, family="vault", body=_blob, how="blob", only="both blob"),
    Row(
        "PUT " + _VAULT,
        CREATES_VAULTS,
        family="vault",
        body=lambda _: {"name": str(uuid.uuid4())},
        if_match=True,
        destroys=True,
        how="rename",
        only="both document",
    ),
    Row("DELETE " + _VAULT, DELETES_VAULTS, family="vault", destroys=True),
    Row("GET " + _DOCUMENTS, READS_, family="vault", shows="documents", only=_KEYS),
    Row("GET " + _DOCUMENTS, READS_, family="vault", query="?since=0", shows="documents", how="since", only=_KEYS),
    Row("GET " + _DOCUMENTS, READS_, family="vault", query="?collection=in", how="in reach", only=_KEYS),
    Row("GET " + _DOCUMENTS, READS_OUTSIDE, family="vault", query="?collection=out", how="beyond reach", only=_KEYS),
    Row(
        "GET " + _DOCUMENTS,
        READS_,
        family="vault",
        query="?since=0&wait=1",
        shows="documents",
        how="long poll",
        only=_KEYS,
    ),
    Row("GET /events", READS_),
    Row("GET " + _EVENTS, READS_, family="vault", only=_KEYS),
    Row("GET " + _DOCUMENTS + "/sync", READS_, family="vault", shows="documents", only=_KEYS),
    Row(
        "GET " + _DOCUMENTS + "/sync",
        READS_OUTSIDE,
        family="vault",
        query="?collection=out",
        how="beyond reach",
        only=_KEYS,
    ),
    Row("GET " + _DOCUMENTS + "/history", READS_, family="vault", shows="documents", only=_KEYS),
    Row(
        "GET " + _DOCUMENTS + "/history",
        READS_,
        family="vault",
        query=f"?uid={_SOME}&since=1",
        how="a document",
        only=_KEYS,
    ),
    Row("POST " + _DOCUMENTS, WRITES, (201, ""), family="vault", body=_document("in"), how="in reach", only=_KEYS),
    Row(
        "POST " + _DOCUMENTS,
        WRITES_OUTSIDE,
        (201, ""),
        family="vault",
        body=_document("out"),
        how="beyond reach",
        only=_KEYS,
    ),
    Row(
        "POST " + _DOCUMENTS,
        WRITES,
        (409, "uid_taken"),
        family="vault",
        body=lambda at: {"collection": "in", "data": "AAAA", "uid": at.account.documents["in1"].uid},
        how="own uid",
        only=_KEYS,
    ),
    Row(
        "POST " + _DOCUMENTS,
        WRITES,
        (201, ""),
        family="vault",
        body=lambda at: {"collection": "in", "data": "AAAA", "uid": at.stage.lent},
        how="foreign uid",
        only=_KEYS,
    ),
    Row("GET " + _ONE, READS_, family="document", shows="itself", only=_KEYS),
    Row(
        "PUT " + _ONE,
        WRITES,
        family="document",
        body=lambda _: {"data": "AAAA"},
        if_match=True,
        destroys=True,
        only=_KEYS,
    ),
    Row("DELETE " + _ONE, ERASES, family="document", destroys=True, only=_KEYS),
    Row("GET /vaults/{vaultUid}/collections", READS_, family="vault", only=_KEYS),
    Row("DELETE /vaults/{vaultUid}/trash", OF_USER, family="vault", only=_KEYS),
    Row("DELETE /vaults/{vaultUid}/trash/{uid}", OF_USER, (409, "document_conflict"), family="document", only=_KEYS),
    Row("GET " + _ONE + "/versions", READS_, family="document", only=_KEYS),
    Row("GET " + _ONE + "/versions/{version}", READS_, family="document", shows="itself", only=_KEYS),
    Row("GET " + _VAULT + "/versions", READS_, family="vault", only="both blob"),
    Row(
        "GET " + _VAULT + "/versions/{version}",
        READS_,
        (404, "version_not_found"),
        family="vault",
        version="0",
        only="both blob",
    ),
    Row("POST " + _BATCH, WRITES, family="vault", body=_batch(_document("in"), "create"), how="in reach", only=_KEYS),
    Row(
        "POST " + _BATCH,
        WRITES_OUTSIDE,
        family="vault",
        body=_batch(_document("out"), "create"),
        how="beyond reach",
        only=_KEYS,
    ),
    Row(
        "POST " + _BATCH,
        WRITES,
        (409, "batch_conflict"),
        family="vault",
        body=_batch(lambda at: {"uid": at.account.documents["out1"].uid, "data": "AAAA", "version": 9}, "put"),
        how="put",
        only=_KEYS,
    ),
    Row(
        "POST " + _BATCH,
        ERASES,
        (409, "batch_conflict"),
        family="vault",
        body=_batch(lambda at: {"uid": at.account.documents["out1"].uid, "version": 9}, "delete"),
        how="delete",
        only=_KEYS,
    ),
    Row(
        "POST " + _BATCH,
        WRITES,
        (409, "batch_conflict"),
        family="vault",
        body=_batch(lambda at: {**_document("in")(at), "uid": at.account.documents["in1"].uid}, "create"),
        how="own uid",
        only=_KEYS,
    ),
    # Those that hash a password come last: they are slow, and a broken one may cost somebody the session.
    Row("POST /auth/email/register", EVERYBODY, (201, ""), body=_new_email),
    Row("POST /auth/email/login", EVERYBODY, body=lambda at: {"email": at.account.email, "password": "correct horse"}),
    Row(
        "POST /auth/email/login",
        EVERYBODY,
        (401, "invalid_credentials"),
        body=lambda at: {"email": at.account.email, "password": "wrong horse"},
        how="wrong password",
    ),
    *_SECOND_FACTOR,
    Row(
        "POST /auth/email/login/second",
        EVERYBODY,
        (401, "invalid_ticket"),
        body=lambda _: {"ticket": "srt_" + "A" * 43, "secondFactor": {"code": "123456"}},
        how="unknown ticket",
    ),
    Row("GET /auth/second-factor", OF_USER),
    Row(
        "POST /auth/second-factor/totp/confirm",
        OF_USER,
        (404, "second_factor_not_found"),
        body=lambda _: {"code": "123456"},
        how="nothing begun",
    ),
    Row("POST /auth/second-factor/totp", OF_USER, (201, ""), body=lambda _: {"currentPassword": "correct horse"}),
    Row(
        "DELETE /auth/second-factor/totp",
        OF_USER,
        (404, "second_factor_not_found"),
        body=lambda _: {"currentPassword": "correct horse"},
        how="nothing enrolled",
    ),
    Row(
        "POST /auth/second-factor/recovery-codes",
        OF_USER,
        (404, "second_factor_not_found"),
        body=lambda _: {"currentPassword": "correct horse"},
        how="nothing enrolled",
    ),
    Row("POST /auth/passkeys/registration/options", OF_USER, body=lambda _: {"currentPassword": "correct horse"}),
    Row(
        "POST /auth/passkeys/registration/options",
        OF_USER,
        (401, "invalid_credentials"),
        body=lambda _: {"currentPassword": "wrong horse"},
        how="wrong password",
    ),
    Row(
        "POST /auth/passkeys/registration/options",
        OF_USER,
        (400, "validation_error"),
        body=lambda _: {},
        how="no proof",
    ),
    Row("DELETE /auth/me", OF_USER, body=lambda _: {"password": "correct horse"}, bearer="account"),
    Row(
        "DELETE /auth/me",
        OF_USER,
        (401, "invalid_credentials"),
        body=lambda _: {"password": "wrong horse"},
        how="wrong password",
    ),
    Row(
        "PUT /auth/keyring",
        OF_USER,
        (401, "invalid_credentials"),
        body=lambda _: {"keyring": "AAAA", "version": 1, "kdf": {"salt": "x"}, "currentPassword": "wrong horse"},
        how="wrong password",
    ),
    Row(
        "PUT /auth/keyring",
        OF_USER,
        (400, "validation_error"),
        body=lambda _: {"keyring": keyring("somebody else"), "currentPassword": "correct horse"},
        if_match=True,
        how="another account id",
    ),
    Row(
        "PUT /auth/password",
        OF_USER,
        body=lambda _: {"currentPassword": "correct horse", "newPassword": "another horse"},
        bearer="account",
    ),
    Row(
        "PUT /auth/password",
        OF_USER,
        (401, "invalid_credentials"),
        body=lambda _: {"currentPassword": "wrong horse", "newPassword": "another horse"},
        how="wrong password",
    ),
    Row("POST /auth/logout", OF_USER, bearer="session"),
    Row("POST /auth/logout", OF_USER, body=lambda _: {"everywhere": True}, bearer="account", how="everywhere"),
)

# Which of an account's own vaults there are, and whether a key that is limited to vaults names it.
VAULTS = {"inside": True, "outside": False, "twin": False}
# In which vault an account's own documents lie, and in which collection. Keys are limited to the collection `in`.
HOMES = {"in1": ("inside", "in"), "out1": ("inside", "out"), "in2": ("outside", "in"), "twin": ("twin", "in")}
MISSING = {
    "vault": "vault_not_found",
    "name": "vault_not_found",
    "document": "document_not_found",
    "key": "api_key_not_found",
    "session": "session_not_found",
    "passkey": "passkey_not_found",
}
MALFORMED = (
    "x",
    "0",
    "-1",
    "null",
    "*",
    "%00",
    "%FF%FE",
    "..%2F..",
    "%27%20OR%201=1",
    _SOME[:-1],
    _SOME + "0",
    _SOME.replace("-", ""),
    f"%7B{_SOME}%7D",
    f"{_SOME}%20",
    f"{_SOME}%0A",
    "%D9%A1" * 36,
    "a" * 3_000,
)
MALFORMED_NAMES = ("%00", "%0A", "%FF", "x" * 300, "%2F", "by-name")


def reaches(principal: Principal, vault: str) -> bool:
    """Whether a caller that was let in gets at a vault of this name: its own, and within its scope."""
    return vault in VAULTS and (VAULTS[vault] or not principal.of_some_vaults)


def missing(principal: Principal, family: str, vault: str, thing: str) -> str:
    """The code with which a target is refused to a caller that was let in; empty where it is not refused."""
    if family in {"key", "session", "passkey"}:
        return "" if thing == "own" else MISSING[family]
    if not reaches(principal, vault):
        return MISSING["vault"]
    if family == "document":
        home, collection = HOMES.get(thing, ("", ""))
        if home != vault or (collection == "out" and principal.of_some_collections):
            return MISSING["document"]
    return ""
