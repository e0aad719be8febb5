"""Rollback detection state of a device: what it has seen of accounts, vaults and documents.

Requests overlap. A response must not be older than what was seen before its request was sent; what was seen after that
may honestly be newer. So each request takes a mark before it is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec
from msgspec import Struct

from strongroom.client.errors import RolledBack, Tampered
from strongroom.client.format import seal
from strongroom.client.format.encoding import to_url
from strongroom.client.format.parents import Link
from strongroom.client.operations import rollback
from strongroom.client.operations.rollback import SeenAccount, SeenRow

if TYPE_CHECKING:
    from strongroom import model
    from strongroom.client.format.derive import Descriptor
    from strongroom.client.format.keyring import Keyring
    from strongroom.model import Document
    from strongroom.wire.responses import Vault

BlobRow: TypeAlias = "Vault | model.Vault"  # a vault with its blob, sealed
_OTHER_EMAIL: Final = "The server names another email for an account than the one that this device knows it by."
_WRONG_TIME: Final = "The server changed the time of something that it showed before."


class KnownDocument(Struct, frozen=True, array_like=True):
    """A document as last seen. `order` is the logical time of that."""

    row: SeenRow
    link: Link
    created_at: int
    updated_at: int
    deleted: bool
    order: int

    @property
    def collection(self) -> str:
        """The collection that it is in, by its name on the wire."""
        return self.row.collection


class KnownVault(Struct, frozen=True, array_like=True):
    """A vault as last seen."""

    version: int
    clock: int
    data: str | None  # of its blob
    order: int
    epoch: str = ""  # that of the server; empty where an earlier release has saved it


class Memory(Struct, frozen=True, kw_only=True):
    """What a device has seen of one account, to be saved."""

    account: SeenAccount
    vaults: dict[str, KnownVault]
    rows: dict[str, dict[str, KnownDocument]]


def merged(one: Memory, other: Memory) -> Memory:
    """The newest of everything that either has seen."""
    rows = {}
    for vault in {*one.rows, *other.rows}:
        mine, theirs = one.rows.get(vault, {}), other.rows.get(vault, {})
        newer = {uid: known for uid, known in theirs.items() if uid not in mine or _at(known) >= _at(mine[uid])}
        rows[vault] = mine | newer
    vaults = [
        (uid, known)
        for uid, known in other.vaults.items()
        if uid not in one.vaults or (known.version, known.clock) >= (one.vaults[uid].version, one.vaults[uid].clock)
    ]
    return Memory(
        account=max(one.account, other.account, key=lambda account: account.version),
        vaults=one.vaults | dict(vaults),
        rows=rows,
    )


def _at(known: KnownDocument) -> int:
    return known.row.version


class Device:
    """What one device has seen, held in memory."""

    def __init__(self) -> None:
        self._accounts: dict[str, SeenAccount] = {}
        self._vaults: dict[str, KnownVault] = {}
        self._rows: dict[str, dict[str, KnownDocument]] = {}
        self._blobs: dict[str, BlobRow] = {}
        self._order = 0

    def mark(self) -> int:
        """The logical time now; taken before a request is sent."""
        return self._order

    # Accounts

    def account(self, email: str) -> SeenAccount | None:
        """What was last seen of an account."""
        return self._accounts.get(email)

    def record_account(self, email: str, ring: Keyring, descriptor: Descriptor) -> None:
        """Remember a keyring that was opened, or refuse it.

        A passkey leads to an account whose email is the server's word: by another one, what was seen would not count.
        """
        own = to_url(ring.account)
        if any(seen.account == own and known != email for known, seen in self._accounts.items()):
            raise Tampered(_OTHER_EMAIL)
        self._accounts[email] = rollback.next_account(self._accounts.get(email), ring, descriptor)

    def forget_account(self, email: str) -> None:
        """Forget an account that was deleted or is registered again."""
        self._accounts.pop(email, None)

    def memory(self, email: str, vaults: set[str]) -> Memory:
        """What was seen of an account, and of these vaults of it."""
        return Memory(
            account=self._accounts[email],
            vaults={uid: known for uid, known in self._vaults.items() if uid in vaults},
            rows={uid: dict(known) for uid, known in self._rows.items() if uid in vaults},
        )

    def remember(self, email: str, memory: Memory) -> None:
        """Begin with what was seen earlier: every response from now on is held against it."""
        self._accounts[email] = memory.account
        for uid in {*memory.vaults, *memory.rows}:
            self.remember_vault(uid, memory.vaults.get(uid), memory.rows.get(uid, {}))

    def remember_vault(self, uid: str, vault: KnownVault | None, rows: dict[str, KnownDocument]) -> None:
        """Begin with what was seen earlier of a vault and its documents."""
        if vault is not None:
            self._vaults[uid] = msgspec.structs.replace(vault, order=0)
        self._rows[uid] = {row: msgspec.structs.replace(known, order=0) for row, known in rows.items()}

    # Vaults

    def knows_vault(self, uid: str) -> bool:
        """Whether this vault was seen."""
        return uid in self._vaults

    def vault(self, uid: str) -> KnownVault | None:
        """What was seen of a vault."""
        return self._vaults.get(uid)

    def record_vault(self, vault: Vault, mark: int) -> None:
        """Remember a vault, or refuse it: neither its version nor its clock runs backwards, and its blob stays."""
        known = self._vaults.get(vault.uid)
        if known is not None and (vault.version < known.version or vault.updated_at < known.clock):
            if known.order <= mark:
                raise RolledBack("The server shows a vault as it was before this device saw it last.")
            return
        if known is not None:
            rollback.check_blob(known.version, known.data, vault.version, vault.data)
        self._order += 1
        known = KnownVault(vault.version, vault.updated_at, vault.data, self._order, vault.epoch)
        self._vaults[vault.uid] = known

    def forget_vault(self, uid: str) -> None:
        """Forget a vault that was deleted by this client."""
        self._vaults.pop(uid, None)
        self._rows.pop(uid, None)
        self._blobs.pop(uid, None)

    def blob(self, uid: str) -> BlobRow | None:
        """The vault with the blob that the program was given last, or has written; None if there was none."""
        return self._blobs.get(uid)

    def record_blob(self, vault: BlobRow) -> None:
        """Remember the blob that the program is given, or has written: the next one may follow on it."""
        self._blobs[vault.uid] = vault

    def replace_vault(self, uid: str, vault: KnownVault, documents: dict[str, KnownDocument]) -> None:
        """Remember a vault, and these of its documents, as a restored server has them; a replica has compared them."""
        self._order += 1
        order = self._order
        if uid in self._vaults:
            self._vaults[uid] = msgspec.structs.replace(vault, order=order)
        rows = self._rows.get(uid, {})
        rows.update((key, msgspec.structs.replace(one, order=order)) for key, one in documents.items() if key in rows)

    # Documents

    def rows(self, vault: str) -> dict[str, KnownDocument]:
        """The documents of a vault that were seen."""
        return dict(self._rows.get(vault, {}))

    def known(self, vault: str, uid: str) -> KnownDocument | None:
        """What was last seen of a document."""
        return self._rows.get(vault, {}).get(uid)

    def live(self, vault: str) -> dict[str, KnownDocument]:
        """The documents of a vault that were alive when they were last seen."""
        return {uid: known for uid, known in self._rows.get(vault, {}).items() if not known.deleted}

    def after(self, vault: str, timestamp: int) -> dict[str, KnownDocument]:
        """The documents of a vault that were last seen with a later timestamp than this, deleted or not."""
        return {uid: known for uid, known in self._rows.get(vault, {}).items() if known.updated_at > timestamp}

    def record(self, row: Document, mark: int, *, deleted: bool, keep: bool = True) -> bool:
        """Remember a row that was opened, or refuse it. False: something newer was seen meanwhile; ask again.

        Without `keep` it is held against what was seen, and not remembered.
        """
        rows = self._rows.setdefault(row.vault_uid, {})
        known = rows.get(row.uid)
        if known is not None:
            if row.version < known.row.version and known.order > mark:
                return False
            rollback.next_row(known.row, row)
            same = row.version == known.row.version
            if known.updated_at and (  # otherwise a restored server did not have it; somebody has sent it again
                row.created_at != known.created_at
                or (same and row.updated_at != known.updated_at)
                or (not same and row.updated_at <= known.updated_at)
            ):
                raise Tampered(_WRONG_TIME)
        if not keep:
            return True
        self._order += 1
        seen = SeenRow(row.version, row.hmac or "", row.collection)
        times = row.created_at, row.updated_at
        rows[row.uid] = KnownDocument(seen, seal.link(row), *times, deleted, self._order)
        return True
