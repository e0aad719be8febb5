"""The key hierarchy. Vault keys are random and have generations; each key below one is derived from it.

account key ─── keyring key
vault key   ─┬─ blob key
             ├─ names key
             └─ collection key ─┬─ seal key
                                └─ proof key
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec import Struct, structs

from strongroom.client.errors import Locked
from strongroom.client.format import primitives
from strongroom.client.format.encoding import checked_name, items, label, text

ACCOUNT: Final = 16  # bytes of an account id
_NEWER: Final = "This was written with keys that are newer than yours; log in again, or ask for a new token."
_OLDER: Final = (
    "This was written with keys of before a rotation, which this token does not carry; ask for a token with older keys."
)


K = TypeVar("K", "CollectionKey", "VaultKey")


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

    def from_floor(self) -> CollectionKeys:
        """The keys that open live rows."""
        return structs.replace(self, keys=tuple(key for key in self.keys if key.generation >= self.floor))

    def of(self, generation: int) -> CollectionKey:
        """The key of a generation; Locked where it is not here."""
        return _of(self.keys, generation)

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


class NamesKey(Struct, frozen=True, kw_only=True):
    """The key of the sealed names of one vault in one generation: all that a token carries of an older one."""

    account: bytes
    vault: str
    generation: int
    key: bytes

    def names(self) -> bytes:
        """The key itself."""
        return self.key

    def __repr__(self) -> str:
        return f"NamesKey(vault={self.vault!r}, generation={self.generation}, ...)"


class VaultKeys(Struct, frozen=True, kw_only=True):
    """The keys of one vault, of every generation in ascending order; those of a token may lack the oldest.

    `keyring` is the version of the keyring that they are from; None for those of a token. `floor` is the lowest
    generation of a live row. `former` are the names keys of generations before `keys`.
    """

    account: bytes
    vault: str
    keys: tuple[VaultKey, ...]
    keyring: int | None = None
    floor: int = 1
    former: tuple[NamesKey, ...] = ()

    @classmethod
    def build(
        cls,
        account: bytes,
        vault: str,
        keys: list[tuple[int, bytes]],
        *,
        keyring: int | None = None,
        floor: int = 1,
        former: Sequence[tuple[int, bytes]] = (),
    ) -> VaultKeys:
        """From pairs of generation and key."""
        made = tuple(VaultKey(account=account, vault=vault, generation=number, key=key) for number, key in keys)
        older = tuple(NamesKey(account=account, vault=vault, generation=number, key=key) for number, key in former)
        return cls(account=account, vault=vault, keys=made, keyring=keyring, floor=floor, former=older)

    def from_floor(self) -> VaultKeys:
        """The keys that open live rows and read every name: no key below the floor, but those of names."""
        former = [(key.generation, key.names()) for key in self.naming if key.generation < self.floor]
        keys = [(key.generation, key.key) for key in self.keys if key.generation >= self.floor]
        return VaultKeys.build(self.account, self.vault, keys, keyring=self.keyring, floor=self.floor, former=former)

    @property
    def naming(self) -> tuple[NamesKey | VaultKey, ...]:
        """What seals names, of every generation in ascending order."""
        return (*self.former, *self.keys)

    @property
    def newest(self) -> VaultKey:
        """The key that writers use."""
        return self.keys[-1]

    def of(self, generation: int) -> VaultKey:
        """The key of a generation; Locked where it is not here."""
        return _of(self.keys, generation)

    def __repr__(self) -> str:
        return f"VaultKeys(vault={self.vault!r}, ...)"


def _of(keys: Sequence[K], generation: int) -> K:
    for key in reversed(keys):
        if key.generation == generation:
            return key
    raise Locked(_OLDER if generation < keys[0].generation else _NEWER)


def keyring_key(account_key: bytes) -> bytes:
    """The key of the keyring's body."""
    return derive(account_key, "keyring")
