"""The file of a saved session: its tokens, the account's keys and what this device has seen, sealed.

    {"format": "strongroom session 2", "id": "…", "service": null, "key": "…", "sealed": "…"}

`sealed` is a box. Its key is in the operating system's keyring, under `service` and the id; or in the file itself, and
then nothing but the file's permissions protects it; or nowhere, and then it follows from the storage seed in the
keyring, which the master password opens in the replica. A file that others can read or replace is refused.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format import box, primitives
from strongroom.client.format.encoding import from_base64, from_url, items, label, text, to_url
from strongroom.client.format.keyring import Keyring, reopen
from strongroom.client.format.primitives import KEY, SecretBytes, SecretText
from strongroom.client.operations import own_files
from strongroom.client.operations.device import Memory
from strongroom.errors import Invalid

_ANY_FORMAT: Final = "strongroom session "
FORMAT: Final = f"{_ANY_FORMAT}2"
_AGAIN: Final = "Log in again and save the session anew"
_COPIED: Final = (
    "They may have copied it: end that session from another login, delete the file, and log in again; or run chmod 600 "
    "if you know that nobody did"
)


class Contents(Struct, frozen=True, kw_only=True):
    """What a session file holds. All of it is secret."""

    url: str
    email: str
    access: str
    refresh: str
    key: str  # the account key
    keyring: str
    descriptor: dict[str, Any]
    memory: Memory

    def ring(self) -> Keyring:
        """The keyring, opened."""
        return reopen(self.keyring, SecretBytes(from_base64(self.key)))

    def __repr__(self) -> str:
        return "Contents(...)"


class _Envelope(Struct, frozen=True, kw_only=True):
    format: str
    id: str
    service: str | None
    key: str | None
    sealed: str

    def __repr__(self) -> str:
        return "_Envelope(...)"


class SessionFile:
    """A session file, by its path; `key` seals it. `needs_password`: the key follows from the keyring."""

    def __init__(self, path: Path, id_: str, key: bytes, service: str | None, *, needs_password: bool = False) -> None:
        self.path = path
        self.id = id_
        self._key = key
        self._service = service
        self._needs_password = needs_password

    @classmethod
    def new(cls, path: str | os.PathLike[str], service: str | None, *, needs_password: bool = False) -> SessionFile:
        """A file that is not written yet, with a fresh key; in the keyring, if there is a service."""
        id_, key = to_url(primitives.random(16)), SecretBytes(primitives.random(KEY))
        made = cls(Path(path).absolute(), id_, key, service, needs_password=needs_password)
        own_files.check_folder(made.path)
        if service is not None:
            _in_keyring("set_password", service, f"session {made.id}", SecretText(to_url(made._key)))
        return made

    @classmethod
    def open_(cls, path: str | os.PathLike[str], ring: Keyring | None = None) -> tuple[SessionFile, Contents]:
        """A file and what it holds. One that needs the password is opened with the keyring."""
        where = Path(path).absolute()
        own_files.check_folder(where)
        found = _read(where)
        if found is None:
            raise Locked(f"There is no saved session at {where.name}; log in.")
        needs_password = found.service is None and found.key is None
        if not needs_password:
            key = _key_of(found, where)
        elif ring is None:
            raise Locked(f"The session at {where.name} opens with the password: unlock its replica.")
        else:
            key = _derived(ring, found.id)
        file = cls(where, found.id, key, found.service, needs_password=needs_password)
        return file, file._opened(found)

    def read(self) -> Contents | None:
        """What it holds now; None if it is gone, or is by now the file of another login."""
        found = _read(self.path)
        return None if found is None or found.id != self.id else self._opened(found)

    def write(self, contents: Contents) -> None:
        """Replace the file in one step. It is on disk when this returns."""
        if self._needs_password:
            self._key = _derived(contents.ring(), self.id)
        sealed = box.seal(self._key, primitives.random(KEY), msgspec.json.encode(contents), self._associated())
        envelope = _Envelope(
            format=FORMAT,
            id=self.id,
            service=self._service,
            key=to_url(self._key) if self._service is None and not self._needs_password else None,
            sealed=to_url(sealed),
        )
        own_files.replace(self.path, msgspec.json.encode(envelope))

    def delete(self) -> None:
        """Delete the file, unless it is by now that of another login, and its key from the keyring."""
        with suppress(Invalid, OSError):
            found = _read(self.path)
            if found is not None and found.id == self.id:
                self.path.unlink(missing_ok=True)
        self.forget_key()

    def forget_key(self) -> None:
        """Delete the key from the keyring, if it is there."""
        if self._service is not None:
            with suppress(Invalid, ModuleNotFoundError):
                _in_keyring("delete_password", self._service, f"session {self.id}")

    def _associated(self) -> bytes:
        return items(label("session-file"), text(self.id))

    def _opened(self, found: _Envelope) -> Contents:
        with suppress(Tampered, msgspec.MsgspecError, ValueError):
            plain = SecretBytes(box.open_(self._key, from_url(found.sealed), self._associated()))
            return msgspec.json.decode(plain, type=Contents)
        raise Invalid({"path": f"is damaged, or was changed: {self.path.name}. {_AGAIN}"})

    def __repr__(self) -> str:
        return f"SessionFile({self.path.name!r})"


def _read(path: Path) -> _Envelope | None:
    """The file, if only its owner can read it; None if there is none."""
    name = path.name
    raw = own_files.read(path, _COPIED)
    if raw is None:
        return None
    with suppress(msgspec.MsgspecError, ValueError):
        found = msgspec.json.decode(raw, type=_Envelope)
        if found.format == FORMAT:
            return found
        if found.format.startswith(_ANY_FORMAT):
            raise Invalid({"path": f"is a session file of another release: {name}. {_AGAIN}, or update this program"})
    raise Invalid({"path": f"is not a session file, or was cut off: {name}. It was not changed"})


def _derived(ring: Keyring, id_: str) -> bytes:
    """The key of a file that needs the password."""
    return ring.storage_key("session-file", text(id_))


def _key_of(found: _Envelope, path: Path) -> bytes:
    """The key that seals a file: in it, or in the keyring of this user on this machine."""
    spelled = SecretText(found.key or "")
    if found.service is not None:
        kept = _in_keyring("get_password", found.service, f"session {found.id}")
        spelled = SecretText(kept or "")
        del kept
        if not spelled:
            said = "has no key in this keyring: it was copied from another device or another user, or was logged out"
            raise Invalid({"path": f"{said}: {path.name}. {_AGAIN}"})
    with suppress(Tampered):
        key = SecretBytes(from_url(spelled))
        if len(key) == KEY:
            return key
    raise Invalid({"path": f"is damaged, or was changed: {path.name}. {_AGAIN}"})


def _in_keyring(what: str, *given: str) -> Any:
    try:
        import keyring
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            "The keyring needs a library that is not installed; run: pip install 'strongroom[keyring]'", name="keyring"
        ) from None
    try:
        return getattr(keyring, what)(*given)
    except Exception as error:  # noqa: BLE001 - backends raise what they like
        raise Invalid({"keyring": f"of this machine cannot be used: {type(error).__name__}"}) from None
