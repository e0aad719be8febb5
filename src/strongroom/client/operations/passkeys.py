"""Operations on passkeys: list, add, rename, delete; log in with one, and let one open the account.

Which passkeys are registered is the server's word. Which of them open the account is in the keyring, and proven.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from strongroom.client.errors import CeremonyFailed, Locked, Tampered
from strongroom.client.format import account, derive, keyring
from strongroom.client.format.encoding import checked_text, from_url, to_url
from strongroom.client.format.keyring_body import SLOTS
from strongroom.client.format.passkey import PasskeyId, PasskeySecret
from strongroom.client.net import requests
from strongroom.client.net.call import Factor
from strongroom.client.operations import ceremonies, factors, keyrings
from strongroom.client.operations.factors import FactorSource
from strongroom.errors import Invalid, PasskeyNotFound

if TYPE_CHECKING:
    from strongroom.client.format.derive import PasswordKeys
    from strongroom.client.format.keyring import Keyring
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.ceremonies import Authenticator
    from strongroom.client.operations.core import Core
    from strongroom.model import User
    from strongroom.wire.responses import PasskeyCreation

_NO_PRF: Final = (
    "This passkey cannot open the account: its authenticator does not have the PRF extension. Log in with the "
    "password, and give the authenticator as `code`."
)
_NOT_OPENING: Final = (
    "This passkey logs in, and does not open the account: log in with the password, and call `passkeys.enable_unlock`. "
    "If it did open the account before, the server may have changed the keyring."
)
_FULL: Final = "cannot be added: eight ways into this account are the most, the password included; disable one first"


class ListedPasskey(Struct, frozen=True, kw_only=True):
    """A passkey of the account. `unlocks`: it opens the account's keys, which is proven; the rest is the server's word.

    `uid` is None, and `name` is empty, if it opens the keys and the server does not know it: it was deleted there, or
    the account has moved to another server. `passkeys.disable_unlock` removes it.
    """

    uid: str | None
    name: str
    rp_id: str
    credential_id: str
    unlocks: bool
    created_at: int | None = None
    last_used_at: int | None = None


class NewPasskey(Struct, frozen=True, kw_only=True):
    """A passkey that was added. `has_prf`: it can open the account's keys, once `passkeys.enable_unlock` was called.

    `recovery_codes` are there if it is the account's first second factor, and are shown only here.
    """

    passkey: ListedPasskey
    has_prf: bool
    recovery_codes: list[str] | None

    def __repr__(self) -> str:
        return f"NewPasskey(passkey={self.passkey!r}, ...)"


def list_(core: Core) -> Effects[list[ListedPasskey]]:
    """The passkeys that the server knows, and those that open the account."""
    yield from keyrings.reload(core)
    found = (yield from core.session.send(requests.passkeys.list_())).passkeys
    opening = {(one.rp_id, to_url(one.credential)) for one in core.keyring().passkeys()}
    rp_id = ceremonies.host(core.session)
    listed = [
        ListedPasskey(
            uid=one.uid,
            name=one.name,
            rp_id=rp_id,
            credential_id=one.credential_id,
            unlocks=(rp_id, one.credential_id) in opening,
            created_at=one.created_at,
            last_used_at=one.last_used_at,
        )
        for one in found
    ]
    others = sorted(opening - {(one.rp_id, one.credential_id) for one in listed})
    return listed + [
        ListedPasskey(uid=None, name="", rp_id=host, credential_id=credential, unlocks=True)
        for host, credential in others
    ]


def add(
    core: Core, name: str, password: str, authenticator: Authenticator, source: FactorSource
) -> Effects[NewPasskey]:
    """Make a passkey, and register it: it logs in, and is a second factor."""
    name = checked_text(name, "name")
    keys = yield from keyrings.checked_password(core, password)

    def begin(factor: Factor | None) -> Effects[PasskeyCreation]:
        return core.session.send(requests.passkeys.begin_registration(keys.password, factor))

    options = (yield from factors.prove(core.session, source, begin)).public_key
    made = yield from ceremonies.create(core.session, authenticator, options)
    added = yield from core.session.send(requests.passkeys.add(name, made.sent, prf=made.prf))
    if added.passkey.credential_id != made.credential_id:
        raise Tampered("The server registered another passkey than the one that it was given.")
    listed = ListedPasskey(
        uid=added.passkey.uid,
        name=added.passkey.name,
        rp_id=options.rp.id,
        credential_id=made.credential_id,
        unlocks=False,
        created_at=added.passkey.created_at,
    )
    return NewPasskey(passkey=listed, has_prf=made.prf, recovery_codes=added.recovery_codes)


def enable_unlock(core: Core, passkey: ListedPasskey, password: str, authenticator: Authenticator) -> Effects[None]:
    """Let a registered passkey open the account, too. Its own assertion is the second factor of that."""
    _uid_of(passkey)
    keys = yield from keyrings.checked_password(core, password)
    ring = core.keyring()
    if len(ring.slots) == SLOTS and _id_of(passkey) not in ring.passkeys():
        raise Invalid({"passkey": _FULL})
    options = (yield from core.session.send(requests.passkeys.begin_proof())).public_key
    asserted = yield from ceremonies.get(core.session, authenticator, options, unlock=True, only=passkey.credential_id)
    secret = asserted.secret
    if secret is None:
        raise CeremonyFailed(_NO_PRF)
    source = FactorSource(Factor({"passkey": asserted.sent}))
    yield from keyrings.change_slots(
        core, keys, lambda ring, descriptor: account.add_passkey(ring, keys, descriptor, secret), source
    )


def disable_unlock(core: Core, passkey: ListedPasskey, password: str, source: FactorSource) -> Effects[None]:
    """Let a passkey open the account no more. What it could open before, it can open still."""
    keys = yield from keyrings.checked_password(core, password)
    yield from _remove_slot(core, passkey, keys, source)


def _remove_slot(core: Core, passkey: ListedPasskey, keys: PasswordKeys, source: FactorSource) -> Effects[None]:
    credential = _id_of(passkey)
    if credential in core.keyring().passkeys():
        yield from keyrings.change_slots(
            core, keys, lambda ring, descriptor: account.remove_passkey(ring, keys, descriptor, credential), source
        )


def rename(core: Core, passkey: ListedPasskey, name: str) -> Effects[None]:
    """Give a passkey another name."""
    yield from core.session.send(requests.passkeys.rename(_uid_of(passkey), checked_text(name, "name")))


def delete(core: Core, passkey: ListedPasskey, password: str, source: FactorSource) -> Effects[None]:
    """Delete a passkey: it neither opens the account nor logs in."""
    keys = yield from keyrings.checked_password(core, password)
    yield from _remove_slot(core, passkey, keys, source)
    if passkey.uid is None:
        return

    def send(factor: Factor | None) -> Effects[Any]:
        return core.session.send_or_done(requests.passkeys.delete(_uid_of(passkey), keys.password, factor))

    yield from factors.prove(core.session, source, send)


def login(core: Core, authenticator: Authenticator, email: str | None) -> Effects[User]:
    """Log in with a passkey and open the account, in one ceremony."""
    expected = None if email is None else derive.normal_email(email)
    core.lock()
    options = (yield from core.session.send(requests.passkeys.begin_login(None))).public_key
    asserted = yield from ceremonies.get(core.session, authenticator, options, unlock=True)
    secret = asserted.secret
    if secret is None:
        raise Locked(_NO_PRF)
    opened = yield from core.session.send(requests.passkeys.login(asserted.sent, core.device_name))
    whose = expected or _email_of(opened.user)
    user = core.begin(whose, opened)
    try:
        descriptor = yield from keyrings.get_descriptor(core, whose)
        yield from keyrings.unlock(core, whose, descriptor, lambda sealed: _open(sealed, secret))
    except BaseException:
        core.lock()
        raise
    return user


def _open(sealed: str, secret: PasskeySecret) -> Keyring:
    """The keyring. That no slot opens means most likely that there is none for this passkey."""
    try:
        return keyring.open_with_passkey(sealed, secret)
    except Tampered:
        raise Locked(_NOT_OPENING) from None


def _email_of(user: User) -> str:
    try:
        return derive.normal_email(user.email)
    except Invalid:
        raise Tampered("The server opened a session of no account.") from None


def _uid_of(passkey: ListedPasskey) -> str:
    if passkey.uid is None:
        raise PasskeyNotFound("The server does not know this passkey; call `passkeys.disable_unlock` to remove it.")
    return passkey.uid


def _id_of(passkey: ListedPasskey) -> PasskeyId:
    try:
        return PasskeyId.of(passkey.rp_id, from_url(passkey.credential_id))
    except Tampered:
        raise Invalid({"passkey": "has no credential id"}) from None
