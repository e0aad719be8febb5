"""Lies about an account: how its keys are derived, its keyring, its sessions."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client import WrongServer
from strongroom.client.format import keyring
from strongroom.client.format.derive import Descriptor, PasswordKeys
from strongroom.client.format.primitives import random
from strongroom.errors import InvalidCredentials, InvalidRefreshToken, KeyringNotFound
from tests.client.hostile.attack import RolledBack, Tampered, Unsupported, WeakParameters, attack
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.scenario import Row, Stage, about
from tests.kit.people.credentials import PASSWORD

PRELOGIN = ("POST", "/auth/email/prelogin")
KEYRING = ("GET", "/auth/keyring")
LOGIN = ("POST", "/auth/email/login")
SLOTS, BODY = 65, 1249  # where the slots of a keyring begin, and its body


def described(**changes: Any) -> Callable[[Stage], Lie]:
    """A descriptor with other members."""

    def change(talk: Talk) -> None:
        talk.say({"kdf": {**talk.told["kdf"], **changes}})

    return lambda _stage: about(*PRELOGIN, change)


def login(stage: Stage) -> None:
    stage.login()


attack("key derivation with less memory", described(memory=8192), client=WeakParameters, act=login)
attack("key derivation with fewer passes", described(passes=1), client=WeakParameters, act=login)
attack("key derivation with more lanes", described(lanes=4), client=WeakParameters, act=login)
attack("more memory than a machine has", described(memory=2**31), client=WeakParameters, act=login)
attack("more passes than a day has", described(passes=10**6), client=WeakParameters, act=login)
attack("another key derivation", described(kdf="pbkdf2", passes=100_000), client=Tampered, act=login)
attack("a descriptor of an older format", described(format=1), client=Unsupported, act=login)
attack("a descriptor of a later format", described(format=3), client=Unsupported, act=login)
attack("a descriptor with a secret key", described(secretKey=True), client=Unsupported, act=login)
attack("a descriptor with 0 as its secret key", described(secretKey=0), client=Tampered, act=login)
attack("a descriptor with a short salt", described(salt=base64.b64encode(b"salt").decode()), client=Tampered, act=login)


def remembers(stage: Stage) -> None:
    """A device that has seen more passes logs in again."""
    core = stage.core
    seen = core.device.account(stage.people.email)
    assert seen is not None
    core.device._accounts[stage.people.email] = msgspec.structs.replace(seen, passes=4)
    stage.victim.login(stage.people.email, PASSWORD)


attack("less work than this device has seen", described(passes=3), client=WeakParameters, act=remembers)


def others_descriptor(stage: Stage) -> Lie:
    descriptor = stage.people.mallory._core.descriptor
    assert descriptor is not None
    return about(*PRELOGIN, lambda talk: talk.say({"kdf": descriptor.spelled()}))


attack("the descriptor of another account", others_descriptor, client=InvalidCredentials, act=login)
attack(
    "a server that says it stores no descriptors",
    lambda _stage: about(*PRELOGIN, lambda talk: talk.refuse(404, "not_found")),
    client=WrongServer,
    act=login,
)


# The keyring


def shown(make: Callable[[Stage], Row]) -> Callable[[Stage], Lie]:
    """Another keyring than the stored one."""

    def prepare(stage: Stage) -> Lie:
        row = make(stage)
        return about(*KEYRING, lambda talk: talk.say(talk.told | row))

    return prepare


def reload(stage: Stage) -> Any:
    """A name that is not in the directory: the client looks whether the directory has changed."""
    return stage.victim.vault("no vault is called so")


def flipped(text: str, at: int, to: bytes) -> str:
    raw = bytearray(base64.b64decode(text))
    raw[at : at + len(to)] = to
    return base64.b64encode(raw).decode()


def substituted(_stage: Stage) -> Row:
    """A keyring that the server has made itself, for keys that it knows."""
    keys = PasswordKeys(auth=random(32), wrap=random(32))
    return {"keyring": keyring.seal(keyring.Keyring.new(keys, Descriptor.new()), password=keys)[0], "version": 1}


def of_mallory(stage: Stage) -> Row:
    found: Row = stage.raw_of_mallory("/auth/keyring")
    return {"keyring": found["keyring"], "version": found["version"]}


def joined(stage: Stage) -> Row:
    """The slots of one keyring before the body of another."""
    new, substitute = (base64.b64decode(row["keyring"]) for row in (stage.raw_keyring(), substituted(stage)))
    return {"keyring": base64.b64encode(new[:SLOTS] + substitute[SLOTS:BODY] + new[BODY:]).decode()}


def again(stage: Stage) -> Row:
    """The newest keyring, sealed once more: the same version, other bytes, and a key holder made it."""
    newest = keyring.reopen(stage.raw_keyring()["keyring"], stage.core.keyring().key)
    return {"keyring": keyring.seal(newest)[0]}


def replayed(stage: Stage) -> Row:
    """The keyring as it was before the newest vault was made, which this device has seen in it."""
    before = stage.before
    stage.victim.vault(f"newer than {before['version']}", create=True)
    return {"keyring": before["keyring"], "version": before["version"]}


for name, make in {
    "a keyring of the server's own making": substituted,
    "the keyring of another account": of_mallory,
    "a keyring with the slots of another": joined,
}.items():
    attack(f"{name}, at login", shown(make), client=Tampered, act=login)
    attack(name, shown(make), client=Tampered, act=reload, replica=Tampered)

attack("a replayed keyring", shown(replayed), client=RolledBack, act=reload, replica=RolledBack)
attack("two keyrings of one version", shown(again), client=Tampered, act=reload, replica=Tampered)
attack(
    "a keyring called by another version",
    shown(lambda stage: {"version": stage.raw_keyring()["version"] + 1}),
    client=Tampered,
    act=reload,
    replica=Tampered,
)
for name, first in {"an older": b"\1", "a later": b"\3"}.items():

    def of_format(stage: Stage, first: bytes = first) -> Row:
        return {"keyring": flipped(stage.raw_keyring()["keyring"], 0, first)}

    attack(f"a keyring of {name} format", shown(of_format), client=Unsupported, act=reload, replica=Unsupported)
    attack(f"a keyring of {name} format, at login", shown(of_format), client=Unsupported, act=login)
for name, figures in {
    "another number of slots": bytes((9, 0, 148)),
    "slots of another size": bytes((8, 4, 212)),
}.items():

    def with_slots(stage: Stage, figures: bytes = figures) -> Row:
        return {"keyring": flipped(stage.raw_keyring()["keyring"], SLOTS - len(figures), figures)}

    attack(f"a keyring with {name}", shown(with_slots), client=Unsupported, act=reload, replica=Unsupported)
    attack(f"a keyring with {name}, at login", shown(with_slots), client=Unsupported, act=login)
attack(
    "a keyring whose account id is another",
    shown(lambda stage: {"keyring": flipped(stage.raw_keyring()["keyring"], 2, bytes(16))}),
    client=Tampered,
    act=reload,
    replica=Tampered,
)
attack(
    "a keyring that is gone, at login",
    lambda _stage: about(*KEYRING, lambda talk: talk.refuse(404, "keyring_not_found")),
    client=KeyringNotFound,
    act=login,
)


def unkept(stage: Stage) -> Lie:
    old = stage.raw_keyring()
    return about("PUT", "/auth/keyring", lambda talk: talk.say(old, 200))


attack(
    "a keyring that is not kept",
    unkept,
    client=Tampered,
    act=lambda stage: stage.victim.vault("a vault that is never made", create=True),
)


def refused_for_ever(stage: Stage) -> Lie:
    del stage
    return about("PUT", "/auth/keyring", lambda talk: talk.refuse(409, "keyring_conflict", {"version": 1}))


attack(
    "every keyring is refused as out of date",
    refused_for_ever,
    client=Tampered,
    act=lambda stage: stage.victim.vault("a vault that is never made", create=True),
    writes=("PUT /auth/keyring",),
)
attack(
    "a new password that is not kept",
    lambda _stage: about("PUT", "/auth/password", lambda talk: talk.say({"success": True}, 200)),
    client=Tampered,
    act=lambda stage: stage.victim.change_password(PASSWORD, "another password"),
)


def decoy(stage: Stage) -> Lie:
    """What a server shows for an email that it does not know; and it takes whatever is then sent."""
    opened = stage.people.ada._core.session
    tokens = {"accessToken": str(opened._access), "refreshToken": str(opened._refresh), "token": ""}
    user = {"id": "x", "email": stage.people.email}

    def lie(talk: Talk) -> None:
        if (talk.method, talk.path) == PRELOGIN:
            talk.say({"kdf": Descriptor.new().spelled()})
        elif (talk.method, talk.path) == LOGIN:
            talk.say(tokens | {"user": user}, 200)

    return lie


attack("a descriptor for nobody, and any password is taken", decoy, client=Tampered, act=login)
attack(
    "a descriptor for nobody",
    lambda _stage: about(*PRELOGIN, lambda talk: talk.say({"kdf": Descriptor.new().spelled()})),
    client=InvalidCredentials,
    act=login,
)


# Sessions


def signed_in(change: Callable[[Row], Row]) -> Callable[[Stage], Lie]:
    """Another answer to a login."""
    return lambda _stage: about(*LOGIN, lambda talk: talk.say(change(talk.told)))


attack(
    "a session of another account",
    signed_in(lambda told: told | {"user": told["user"] | {"email": "mallory@example.com"}}),
    client=Tampered,
    act=login,
)


def unlocked(stage: Stage) -> Any:
    """A device that was unlocked without a server logs in with its first request."""
    path = stage.home / "unlocked"
    before = stage.clients.client(stage.people.url)
    before.login(stage.people.email, PASSWORD)
    replica = before.open_replica(path)
    replica.sync()
    replica.close()
    client = stage.clients.client(stage.liar.url, retries=1, patience=0.5)
    client.unlock(path, PASSWORD)
    return client.vaults()


def of_mallorys(stage: Stage) -> Lie:
    """A session of the server's friend, under the owner's email."""
    session = stage.people.mallory._core.session
    tokens = {"accessToken": str(session._access), "refreshToken": str(session._refresh)}
    return about(*LOGIN, lambda talk: talk.say(talk.told | tokens))


attack("a session of another account, after an unlock", of_mallorys, client=Tampered, act=unlocked)
attack(
    "a session of nobody",
    signed_in(lambda told: told | {"user": told["user"] | {"email": "no address"}}),
    client=Tampered,
    act=login,
)
attack(
    "a bearer with a header in it",
    signed_in(lambda told: told | {"accessToken": "x\r\nX-Stolen: yes"}),
    client=Tampered,
    act=login,
)
attack("a bearer beyond ASCII", signed_in(lambda told: told | {"accessToken": "tökén"}), client=Tampered, act=login)


def unauthorized(talk: Talk) -> None:
    code = "invalid_refresh_token" if talk.path == "/auth/refresh" else "unauthorized"
    talk.refuse(401, code)


attack(
    "nobody is let in any more",
    lambda _stage: unauthorized,
    client=InvalidRefreshToken,
    act=reload,
    replica=InvalidRefreshToken,
)


def refreshed(stage: Stage) -> Lie:
    stage.core.session._access = "run-out"
    return about("POST", "/auth/refresh", lambda talk: talk.say({"accessToken": "é\n", "refreshToken": "x"}, 200))


attack("a fresh token that no header carries", refreshed, client=Tampered, act=reload, replica=Tampered)
