"""The key hierarchy. Each key is derived from the one above it by a one-way function.

account key ─┬─ account id
             ├─ keyring key, vault-names key
             └─ vault key ─┬─ blob key
                           ├─ collection-names key
                           └─ collection key ─┬─ seal key
                                              └─ proof key
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from strongroom.client.format import primitives
from strongroom.client.format.encoding import checked_name, checked_uid, items, label, text

ACCOUNT: Final = 16  # bytes of an account id


def derive(key: bytes, purpose: str, *parts: bytes, length: int = primitives.KEY) -> bytes:
    """A key for one purpose, below another key."""
    return primitives.hkdf(key, b"", items(label(purpose), *parts), length)


class CollectionKey(Struct, frozen=True, kw_only=True):
    """The key of one collection of one vault, and what follows from it. `collection` is spelled as on the wire."""

    account: bytes
    vault: str
    collection: str
    key: bytes
    sealing: bytes
    proving: bytes
    place: bytes  # the items that say where a document lies: account, vault, collection

    @classmethod
    def of(cls, account: bytes, vault: str, collection: str, key: bytes) -> CollectionKey:
        """From what a token carries."""
        return cls(
            account=account,
            vault=vault,
            collection=collection,
            key=key,
            sealing=derive(key, "seal"),
            proving=derive(key, "proof"),
            place=items(account, text(vault), text(collection)),
        )

    def __repr__(self) -> str:
        return f"CollectionKey(vault={self.vault!r}, ...)"


class VaultKey(Struct, frozen=True, kw_only=True):
    """The key of one vault: its collections, their sealed names, its blob."""

    account: bytes
    vault: str
    key: bytes

    def collection(self, name: str) -> CollectionKey:
        """The key of a collection; `name` is spelled as on the wire, sealed if it is sealed there."""
        key = derive(self.key, "collection", text(checked_name(name, "collection")))
        return CollectionKey.of(self.account, self.vault, name, key)

    def blob(self) -> bytes:
        """The key of this vault's blob."""
        return derive(self.key, "blob")

    def collection_names(self) -> bytes:
        """The key of this vault's sealed collection names."""
        return derive(self.key, "collection-names")

    def __repr__(self) -> str:
        return f"VaultKey(vault={self.vault!r}, ...)"


class AccountKey(Struct, frozen=True, kw_only=True):
    """The key of an account: 32 random bytes that everything else is derived from, and the id that follows."""

    key: bytes
    account: bytes

    @classmethod
    def of(cls, key: bytes) -> AccountKey:
        """From the 32 bytes that were wrapped."""
        return cls(key=key, account=derive(key, "account", length=ACCOUNT))

    @classmethod
    def new(cls, random: primitives.Random = primitives.random) -> AccountKey:
        """A fresh one."""
        return cls.of(random(primitives.KEY))

    def vault(self, uid: str) -> VaultKey:
        """The key of a vault."""
        uid = checked_uid(uid)
        return VaultKey(account=self.account, vault=uid, key=derive(self.key, "vault", text(uid)))

    def vault_names(self) -> bytes:
        """The key of this account's sealed vault names."""
        return derive(self.key, "vault-names")

    def keyring(self) -> bytes:
        """The key of the keyring's body."""
        return derive(self.key, "keyring")

    def __repr__(self) -> str:
        return "AccountKey(...)"
