"""The key hierarchy. Vault keys are random and have generations; each key below one is derived from it.

account key ─── keyring key
vault key   ─┬─ blob key
             ├─ names key
             └─ collection key ─┬─ seal key
                                └─ proof key
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from strongroom.client.errors import Locked
from strongroom.client.format import primitives
from strongroom.client.format.encoding import checked_name, items, label, text

ACCOUNT: Final = 16  # bytes of an account id


def derive(key: bytes, purpose: str, *parts: bytes, salt: bytes = b"") -> bytes:
    """A key for one purpose, below another key."""
    return primitives.hkdf(key, salt, items(label(purpose), *parts))


class CollectionKey(Struct, frozen=True, kw_only=True):
    """The key of a collection in one generation, and the two keys that follow from it."""

    generation: int
    key: bytes
    sealing: bytes
    proving: primitives.MacKey

    @classmethod
    def of(cls, generation: int, key: bytes) -> CollectionKey:
        """From the 32 bytes of the collection key."""
        proving = primitives.MacKey(derive(key, "proof"))
        return cls(generation=generation, key=key, sealing=derive(key, "seal"), proving=proving)

    def __repr__(self) -> str:
        return f"CollectionKey(generation={self.generation}, ...)"


class CollectionKeys(Struct, frozen=True, kw_only=True):
    """The keys of a collection, of every generation. `wires` are its names on the wire, the newest first.

    `keyring` is the version of the keyring that they are from; None for those of a token. `floor` is the lowest
    generation of a live row.
    """

    account: bytes
    vault: str
    name: str
    wires: tuple[str, ...]
    keys: tuple[CollectionKey, ...]
    keyring: int | None = None
    floor: int = 1

    @property
    def newest(self) -> CollectionKey:
        """The key that writers use."""
        return self.keys[-1]

    @property
    def wire(self) -> str:
        """The name on the wire under which documents are created."""
        return self.wires[0]

    def of(self, generation: int) -> CollectionKey:
        """The key of a generation; Locked where it is not here."""
        for key in reversed(self.keys):
            if key.generation == generation:
                return key
        raise Locked("This was written with keys that are newer than yours; log in again, or ask for a new token.")

    def __repr__(self) -> str:
        return f"CollectionKeys(vault={self.vault!r}, ...)"


class VaultKey(Struct, frozen=True, kw_only=True):
    """The key of one vault in one generation."""

    account: bytes
    vault: str
    generation: int
    key: bytes

    def collection(self, name: str) -> CollectionKey:
        """The key of a collection, by the name that people use."""
        return CollectionKey.of(self.generation, derive(self.key, "collection", text(checked_name(name, "collection"))))

    def blob(self) -> bytes:
        """The key of this vault's blob."""
        return derive(self.key, "blob")

    def names(self) -> bytes:
        """The key of this vault's sealed names."""
        return derive(self.key, "names")

    def __repr__(self) -> str:
        return f"VaultKey(vault={self.vault!r}, generation={self.generation}, ...)"


class VaultKeys(Struct, frozen=True, kw_only=True):
    """The keys of one vault, of every generation in ascending order.

    `keyring` is the version of the keyring that they are from; None for those of a token. `floor` is the lowest
    generation of a live row.
    """

    account: bytes
    vault: str
    keys: tuple[VaultKey, ...]
    keyring: int | None = None
    floor: int = 1

    @classmethod
    def build(
        cls,
        account: bytes,
        vault: str,
        keys: list[tuple[int, bytes]],
        *,
        keyring: int | None = None,
        floor: int = 1,
    ) -> VaultKeys:
        """From pairs of generation and key."""
        made = tuple(VaultKey(account=account, vault=vault, generation=number, key=key) for number, key in keys)
        return cls(account=account, vault=vault, keys=made, keyring=keyring, floor=floor)

    @property
    def newest(self) -> VaultKey:
        """The key that writers use."""
        return self.keys[-1]

    def of(self, generation: int) -> VaultKey:
        """The key of a generation; Locked where it is not here."""
        for key in reversed(self.keys):
            if key.generation == generation:
                return key
        raise Locked("This was written with keys that are newer than yours; log in again, or ask for a new token.")

    def __repr__(self) -> str:
        return f"VaultKeys(vault={self.vault!r}, ...)"


def keyring_key(account_key: bytes) -> bytes:
    """The key of the keyring's body."""
    return derive(account_key, "keyring")
