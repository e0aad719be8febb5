"""Adoption: an account whose password the server knows becomes one that only its owner can open.

An operator makes such an account with `strongroom users add`. It has no keyring, and its password is sent as typed.
"""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from strongroom.client.format import account, derive
from strongroom.client.net import effects, requests
from strongroom.client.operations import keyrings, sessions_and_keys
from strongroom.client.operations.factors import FactorSource
from strongroom.errors import AccountNotEmpty, Invalid, InvalidCredentials, KeyringNotFound, NotFound

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.model import User

_WRONG: Final = (
    "The email or the password is wrong. If this account was adopted already, log in with the password that was set."
)
_NOT_EMPTY: Final = (
    "Another program has stored vaults in this account, and could not log in any more after this. Nothing was changed. "
    "Delete them with that program, or register another account."
)


def adopt(core: Core, email: str, password: str, new_password: str) -> Effects[User]:
    """Log in with the password as typed, and set a new one together with the first keyring, in one request.

    Nothing stays with those who knew the first password: other sessions end, and API keys are revoked.
    """
    email = derive.normal_email(email)
    derive.check_new_password(new_password)
    if unicodedata.normalize("NFC", new_password) == unicodedata.normalize("NFC", password):
        raise Invalid({"new_password": "must be another one: the server knows this password"})
    if core.device.account(email) is not None:  # a password that only its owner knows must not be sent as typed
        raise Invalid({"email": "is of an account that has keys; log in. The password was not sent"})
    core.lock()
    try:
        user = yield from core.open_session(email, password, FactorSource(None))
    except InvalidCredentials:
        raise InvalidCredentials(_WRONG) from None
    try:
        yield from _require_unused(core)
        yield from _set_first_keyring(core, email, password, new_password)
        with suppress(NotFound):  # a server without documents has no API keys
            for key in (yield from sessions_and_keys.api_keys(core)):
                yield from sessions_and_keys.revoke_key(core, key.uid)
    except BaseException:
        core.lock()
        raise
    return user


def _require_unused(core: Core) -> Effects[None]:
    """Refuse an account that has a keyring, or data of another program."""
    try:
        yield from core.session.send(requests.keyrings.get())
    except KeyringNotFound:
        pass
    else:
        raise Invalid({"email": "is of an account that has keys; log in"})
    if (yield from core.session.send(requests.vaults.list_all())).vaults:
        raise AccountNotEmpty(_NOT_EMPTY)


def _set_first_keyring(core: Core, email: str, password: str, new_password: str) -> Effects[None]:
    made = yield from effects.compute(lambda: account.register(email, new_password))
    call = requests.accounts.change_password(
        password, made.password.password, made.descriptor.spelled(), made.sealed, 0, new_version=made.keyring.version
    )
    yield from core.session.send_or_done(call)
    stored = yield from core.session.send(requests.keyrings.get())
    keyrings.require_stored(stored, made.sealed, made.keyring.version)
    yield from keyrings.use(core, email, made.keyring, made.sealed, made.descriptor)
