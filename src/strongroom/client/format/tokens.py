"""A token that carries an API key and the keys of one vault, or of one collection, and nothing that leads further.

    srv_ ‖ base64url(format (1) ‖ scope (1) ‖ account id (16) ‖ API key ‖ vault uid ‖ name
                     ‖ number of keys (1) ‖ generation (4) and key (32) of each
                     ‖ number of names keys (1) ‖ generation (4) and key (32) of each
                     ‖ number of collections (1) ‖ the name on the wire of each ‖ floor (4) ‖ keyring version (8)
                     ‖ the first 4 bytes of a SHA-256 of all that)

Texts are preceded by their length in two bytes.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from strongroom.client.errors import Tampered, Unsupported
from strongroom.client.format import primitives
from strongroom.client.format.encoding import (
    FORMAT,
    check_format,
    checked_name,
    checked_uid,
    from_url,
    generation_bytes,
    is_generation,
    is_version,
    items,
    label,
    number,
    text,
    to_url,
)
from strongroom.client.format.keys import ACCOUNT, CollectionKey, CollectionKeys, NamesKey, VaultKeys
from strongroom.client.format.primitives import KEY
from strongroom.errors import Invalid, Refusal

PREFIX: Final = "srv_"
VAULT: Final = 1
COLLECTION: Final = 2
PLAIN_VAULT: Final = 3  # a vault whose names are not sealed
_CHECK: Final = 4
_MOST: Final = 8192  # characters
_API_KEY: Final = re.compile(r"[!-~]{1,1024}")
_BAD: Final = {"token": "must be a whole token, as it was made: srv_ and letters, digits, - and _"}


class Token(Struct, frozen=True, kw_only=True):
    """An API key, and the keys of a vault or of one of its collections. `name` is what people call it.

    `sealed` says of a vault that its names are sealed: a client that took the server's word would tell it names.
    `keyring` is the version of the keyring that the keys and the floor are from.
    """

    api_key: str
    keys: VaultKeys | CollectionKeys
    keyring: int
    name: str = ""
    sealed: bool = True

    @property
    def vault(self) -> str:
        """The uid of the vault that it opens, or that its collection lies in."""
        return self.keys.vault

    def spelled(self) -> str:
        """The token as text: a secret as a whole."""
        keys, wires, former = self.keys, tuple[str, ...](), tuple[NamesKey, ...]()
        scope = VAULT if self.sealed else PLAIN_VAULT
        if isinstance(keys, CollectionKeys):
            scope, wires = COLLECTION, keys.wires
        else:
            former = keys.former
        body = bytes((FORMAT, scope)) + keys.account
        body += b"".join(_text(part) for part in (self.api_key, keys.vault, self.name))
        for carried in (keys.keys, former):
            body += _count(carried) + b"".join(generation_bytes(key.generation) + key.key for key in carried)
        body += _count(wires) + b"".join(_text(wire) for wire in wires)
        body += generation_bytes(keys.floor) + number(self.keyring)
        spelled = PREFIX + to_url(body + _check(body))
        if read(spelled) != self:
            raise Invalid({"token": "has a part that a token cannot carry"})
        return spelled

    def __repr__(self) -> str:
        return f"Token(vault={self.vault!r}, ...)"


def read(spelled: str) -> Token:
    """A token from its text; a typo is noticed."""
    fault: Refusal = Invalid(_BAD)
    try:
        return _read(spelled)
    except (Tampered, UnicodeDecodeError, IndexError):
        pass
    except Unsupported as refused:
        fault = Unsupported(str(refused))
    raise fault  # not in a handler: the error would lead to frames that hold the token


def _read(spelled: str) -> Token:
    if not spelled.startswith(PREFIX) or len(spelled) > _MOST:
        raise Tampered
    raw = primitives.SecretBytes(from_url(spelled.removeprefix(PREFIX)))
    check_format(raw[0])  # before the checksum, which each format makes in its own way
    body, check = raw[:-_CHECK], raw[-_CHECK:]
    if _check(body) != check or body[1] not in {VAULT, COLLECTION, PLAIN_VAULT}:
        raise Tampered
    reader = _Reader(body)
    reader.take(2)
    account = reader.take(ACCOUNT)
    api_key, vault, name = reader.text(), reader.text(), reader.text()
    keys, former = reader.keys(), reader.keys()
    wires = tuple(checked_name(reader.text(), "token") for _ in range(reader.count()))
    floor, keyring = int.from_bytes(reader.take(4), "big"), int.from_bytes(reader.take(8), "big")
    reader.end()
    numbers = [generation for generation, _ in (*former, *keys)]
    if not keys or numbers != sorted(set(numbers)) or not all(is_generation(one) for one in numbers):
        raise Tampered
    if not 1 <= floor <= numbers[-1] or not is_version(keyring) or (former and body[1] != VAULT):
        raise Tampered
    if not _API_KEY.fullmatch(api_key) or checked_uid(vault) != vault or bool(wires) != (body[1] == COLLECTION):
        raise Tampered
    if len(set(wires)) != len(wires):
        raise Tampered
    if body[1] != COLLECTION:
        name = name and checked_name(name, "token")
        opened = VaultKeys.build(account, vault, keys, floor=floor, former=former)
        return Token(api_key=api_key, keys=opened, keyring=keyring, name=name, sealed=body[1] == VAULT)
    name = checked_name(name, "token")
    made = tuple(CollectionKey.of(generation, key) for generation, key in keys)
    collection = CollectionKeys(account=account, vault=vault, name=name, wires=wires, keys=made, floor=floor)
    return Token(api_key=api_key, keys=collection, keyring=keyring, name=name)


class _Reader:
    """Reads the parts of a token's body in order."""

    def __init__(self, body: bytes) -> None:
        self._rest = body

    def take(self, length: int) -> bytes:
        """So many bytes."""
        if len(self._rest) < length:
            raise Tampered
        taken, self._rest = self._rest[:length], self._rest[length:]
        return taken

    def text(self) -> str:
        """A text, with its length before it."""
        return self.take(int.from_bytes(self.take(2), "big")).decode()

    def count(self) -> int:
        """How many follow."""
        return self.take(1)[0]

    def keys(self) -> list[tuple[int, bytes]]:
        """Keys, each with its generation."""
        return [(int.from_bytes(self.take(4), "big"), self.take(KEY)) for _ in range(self.count())]

    def end(self) -> None:
        """Refuse what is left."""
        if self._rest:
            raise Tampered


def _text(part: str) -> bytes:
    raw = text(part)
    if len(raw) > 0xFFFF:
        raise Invalid({"token": "has a part that is too long"})
    return len(raw).to_bytes(2, "big") + raw


def _count(parts: tuple[object, ...]) -> bytes:
    if len(parts) > 255:
        raise Invalid({"token": "has too many keys: they were rotated too often"})
    return bytes((len(parts),))


def _check(body: bytes) -> bytes:
    return primitives.sha256(items(label("token"), body))[:_CHECK]
