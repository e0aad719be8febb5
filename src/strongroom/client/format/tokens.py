"""A token that carries an API key and the key of one vault, or of one collection, and nothing that leads further.

    srv_ ‖ base64url(format (1) ‖ scope (1) ‖ account id (16) ‖ key (32) ‖ API key ‖ vault uid ‖ collection ‖ name
                     ‖ the first 4 bytes of a SHA-256 of all that)

The four texts are each preceded by their length in two bytes.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from strongroom.client.errors import Locked, Tampered
from strongroom.client.format import primitives
from strongroom.client.format.encoding import FORMAT, checked_name, checked_uid, from_url, items, label, text, to_url
from strongroom.client.format.keys import ACCOUNT, CollectionKey, VaultKey
from strongroom.errors import Invalid

PREFIX: Final = "srv_"
VAULT: Final = 1
COLLECTION: Final = 2
PLAIN_VAULT: Final = 3  # a vault whose names are not sealed
_CHECK: Final = 4
_HEAD: Final = 2 + ACCOUNT + primitives.KEY
_MOST: Final = 8192  # characters
_API_KEY: Final = re.compile(r"[!-~]{1,1024}")
_BAD: Final = {"token": "must be a whole token, as it was made: srv_ and letters, digits, - and _"}


class Token(Struct, frozen=True, kw_only=True):
    """An API key, and the key of a vault or of one of its collections. `name` is what people call it.

    `sealed`: the names of the vault are sealed. A client that let the server say so could be made to reveal names.
    """

    api_key: str
    keys: VaultKey | CollectionKey
    name: str = ""
    sealed: bool = True

    @property
    def vault(self) -> str:
        """The uid of the vault that it opens, or that its collection lies in."""
        return self.keys.vault

    def collection(self, name: str) -> CollectionKey:
        """The key of a collection, named as on the wire, if the token opens it."""
        if isinstance(self.keys, VaultKey):
            return self.keys.collection(name)
        if name != self.keys.collection:
            raise Locked("This token opens another collection.")
        return self.keys

    def spelled(self) -> str:
        """The token as text: a secret as a whole."""
        keys = self.keys
        scope, collection = VAULT if self.sealed else PLAIN_VAULT, ""
        if isinstance(keys, CollectionKey):
            scope, collection = COLLECTION, keys.collection
        body = bytes((FORMAT, scope)) + keys.account + keys.key
        for part in (self.api_key, keys.vault, collection, self.name):
            raw = text(part)
            if len(raw) > 0xFFFF:
                raise Invalid({"token": "has a part that is too long"})
            body += len(raw).to_bytes(2, "big") + raw
        spelled = PREFIX + to_url(body + _check(body))
        if read(spelled) != self:
            raise Invalid({"token": "has a part that a token cannot carry"})
        return spelled

    def __repr__(self) -> str:
        return f"Token(vault={self.vault!r}, ...)"


def read(spelled: str) -> Token:
    """A token from its text; a typo is noticed."""
    try:
        return _read(spelled)
    except (Tampered, UnicodeDecodeError):
        raise Invalid(_BAD) from None


def _read(spelled: str) -> Token:
    if not spelled.startswith(PREFIX) or len(spelled) > _MOST:
        raise Tampered
    raw = from_url(spelled.removeprefix(PREFIX))
    body = raw[:-_CHECK]
    if len(body) < _HEAD or _check(body) != raw[-_CHECK:] or body[0] != FORMAT:
        raise Tampered
    if body[1] not in {VAULT, COLLECTION, PLAIN_VAULT}:
        raise Tampered
    account, key = body[2 : 2 + ACCOUNT], body[2 + ACCOUNT : _HEAD]
    api_key, vault, collection, name = _texts(body[_HEAD:])
    if not _API_KEY.fullmatch(api_key) or checked_uid(vault) != vault or bool(collection) != (body[1] == COLLECTION):
        raise Tampered
    keys: VaultKey | CollectionKey = VaultKey(account=account, vault=vault, key=key)
    if collection:
        keys = CollectionKey.of(account, vault, checked_name(collection, "token"), key)
    name = name and checked_name(name, "token")
    return Token(api_key=api_key, keys=keys, name=name, sealed=body[1] != PLAIN_VAULT)


def _texts(rest: bytes) -> list[str]:
    found = []
    for _ in range(4):
        end = 2 + int.from_bytes(rest[:2], "big")
        if len(rest) < max(end, 2):
            raise Tampered
        found.append(rest[2:end].decode())
        rest = rest[end:]
    if rest:
        raise Tampered
    return found


def _check(body: bytes) -> bytes:
    return primitives.sha256(items(label("token"), body))[:_CHECK]
