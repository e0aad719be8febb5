"""Sessions that outlive a program: save, resume, and keep the file in step with what the server hands out.

A refresh token stays valid until its successor is used. So a new one is on disk before it is used: a program that is
killed at any moment leaves a file whose token is valid. Programs that share a file take turns: each reads the file
before it refreshes, and takes the tokens that another has put there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from strongroom.client.errors import Locked, Tampered, WeakParameters
from strongroom.client.format import derive, keyring
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.encoding import checked_text, to_base64
from strongroom.client.net import effects
from strongroom.client.operations import own_files
from strongroom.client.operations.device import Memory, merged
from strongroom.client.operations.session_file import Contents, SessionFile
from strongroom.errors import Invalid, InvalidRefreshToken

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core

_GONE: Final = (
    "The saved session is gone: another program has logged out or in again, or its file was deleted; log in again."
)
_OTHERS: Final = "holds the session of another account: {}. Log that one out, or use another path"


class SavedSession:
    """The session of a client that is saved in a file."""

    def __init__(self, core: Core, file: SessionFile, memory: Memory) -> None:
        self._core = core
        self._file = file
        self._memory = memory  # as this client has read or written it last

    def exchange(self, refresh: str, request: Effects[tuple[str, str]]) -> Effects[tuple[str, str]]:
        """New access and refresh tokens: those that another program has saved, else those of the request."""
        return (yield from own_files.in_turn(self._file.path, self._exchange(refresh, request)))

    def _exchange(self, refresh: str, request: Effects[tuple[str, str]]) -> Effects[tuple[str, str]]:
        saved = yield from effects.compute(self._file.read)
        if saved is None:
            raise InvalidRefreshToken(_GONE)
        if saved.refresh != refresh:
            request.close()
            return saved.access, saved.refresh
        tokens = yield from request
        mine = _contents(self._core, self._core.session.url, *tokens)
        yield from effects.compute(lambda: self._write(saved, mine))
        return tokens

    def update(self) -> Effects[None]:
        """Save the keyring, and what was seen meanwhile."""
        yield from own_files.in_turn(self._file.path, self._update())

    def _update(self) -> Effects[None]:
        saved = yield from effects.compute(self._file.read)
        if saved is not None and self._core.ring is not None:
            mine = _contents(self._core, saved.url, saved.access, saved.refresh)
            yield from effects.compute(lambda: self._write(saved, mine))

    def _write(self, saved: Contents, mine: Contents) -> None:
        """Write what is here, and the newer of what another program has written meanwhile."""
        if saved.memory != self._memory:
            self._file.write(_newest(saved, mine))
        else:
            self._file.write(mine)
            self._memory = mine.memory

    def delete(self) -> Effects[None]:
        """Delete the file."""
        yield from own_files.in_turn(self._file.path, effects.compute(self._file.delete))

    def __repr__(self) -> str:
        return "SavedSession(...)"


def save(
    core: Core, path: str | os.PathLike[str], service: str | None, *, needs_password: bool = False
) -> Effects[None]:
    """Save the session in a file, and keep it in step from now on."""
    if core.token is not None:
        raise Locked("A token is no session: keep the token itself, as a secret.")
    core.keyring()
    if service is not None and not checked_text(service, "keyring"):
        raise Invalid({"keyring": "must be a name for the entries in the keyring"})
    if service is not None and needs_password:
        raise Invalid({"keyring": "cannot be given with needs_password: the key then follows from the password"})
    access, refresh = yield from core.session.tokens()
    file = yield from effects.compute(lambda: SessionFile.new(path, service, needs_password=needs_password))
    mine = _contents(core, core.session.url, access, refresh)
    try:
        memory = yield from own_files.in_turn(file.path, effects.compute(lambda: _save(file, mine)))
    except BaseException:
        file.forget_key()
        raise
    core.session.saved = SavedSession(core, file, memory)


def _save(file: SessionFile, mine: Contents) -> Memory:
    """Write the file. What an earlier session of this account has seen there is not forgotten."""
    try:
        before, contents = SessionFile.open_(file.path, mine.ring())
    except Locked:
        file.write(mine)
        return mine.memory
    if keyring.account_of(contents.keyring) != keyring.account_of(mine.keyring):
        raise Invalid({"path": _OTHERS.format(file.path.name)})
    memory = merged(contents.memory, mine.memory)
    file.write(msgspec.structs.replace(mine, memory=memory))
    before.forget_key()
    return mine.memory


def open_(path: str | os.PathLike[str], email: str | None) -> Effects[tuple[SessionFile, Contents]]:
    """A saved session, verified; `email` is the account that it must be of."""
    file, contents = yield from effects.compute(lambda: SessionFile.open_(path))
    if email is not None and derive.normal_email(email) != contents.email:
        raise Invalid({"path": _OTHERS.format(file.path.name)})
    return file, contents


def use(core: Core, file: SessionFile, contents: Contents) -> None:
    """Go on with a saved session. The first request shows whether the server still has it."""
    core.lock()
    fault = None
    try:
        ring = contents.ring()
        descriptor = Descriptor.read(contents.descriptor)
        core.device.remember(contents.email, contents.memory)
        core.device.record_account(contents.email, ring, descriptor)
    except (Tampered, WeakParameters):
        fault = Invalid({"path": f"is damaged, or was changed: {file.path.name}. Log in again"})
    if fault is not None:
        raise fault
    core.email, core.ring, core.sealed, core.descriptor = contents.email, ring, contents.keyring, descriptor
    core.session.use_tokens(contents.access, contents.refresh)
    core.session.saved = SavedSession(core, file, contents.memory)


def join(core: Core, path: str | os.PathLike[str]) -> Effects[None]:
    """Go on with a saved session that opens with the keys that are here. Without one, the first request logs in."""
    ring, found = core.keyring(), None
    with suppress(Locked, Invalid):  # there is none, or its keys were rotated elsewhere: it is saved anew
        found = yield from effects.compute(lambda: SessionFile.open_(path, ring))
    if found is None:
        return
    file, contents = found
    if (contents.url, contents.email) == (core.session.url, core.email):
        seen = core.device.memory(contents.email, {entry.uid for entry in ring.vaults})
        core.device.remember(contents.email, merged(contents.memory, seen))
        core.session.use_tokens(contents.access, contents.refresh)
        core.session.saved = SavedSession(core, file, contents.memory)


def update(core: Core) -> Effects[None]:
    """Save what has changed, if the session is saved. That it cannot be is told by the next refresh."""
    if core.session.saved is not None:
        with suppress(Invalid):
            yield from core.session.saved.update()


def _newest(saved: Contents, mine: Contents) -> Contents:
    """What is in the file and what is here, as one: the newer keyring, and the newest of everything that was seen."""
    memory = merged(saved.memory, mine.memory)
    if (saved.memory.account.version, saved.keyring) > (mine.memory.account.version, mine.keyring):
        mine = msgspec.structs.replace(mine, key=saved.key, keyring=saved.keyring, descriptor=saved.descriptor)
    return msgspec.structs.replace(mine, memory=memory)


def _contents(core: Core, url: str, access: str, refresh: str) -> Contents:
    ring, sealed, descriptor, email = core.ring, core.sealed, core.descriptor, core.email
    if ring is None or sealed is None or descriptor is None or email is None:
        raise Locked
    return Contents(
        url=url,
        email=email,
        access=str(access),
        refresh=str(refresh),
        key=to_base64(ring.key),
        keyring=sealed,
        descriptor=descriptor.spelled(),
        memory=core.device.memory(email, {entry.uid for entry in ring.vaults}),
    )
