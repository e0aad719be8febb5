"""Collections: the labels of a vault's documents, found in the index by skipping from one to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.store.queries.deletions import live
from strongroom.store.statement import Sql

if TYPE_CHECKING:
    from strongroom.store.database import Tx

_AFTER = Sql(f"""
    SELECT collection FROM documents WHERE user_id = :user_id AND vault_uid = :vault_uid AND collection > :after
       AND {live()} ORDER BY collection LIMIT 1
""")
_IS_LIVE = Sql(f"""
    SELECT 1 FROM documents
     WHERE user_id = :user_id AND vault_uid = :vault_uid AND collection = :collection AND deleted_at IS NULL
       AND {live()} LIMIT 1
""")


async def after(tx: Tx, user_id: str, vault_uid: str, name: str) -> str | None:
    """The next collection after a name that has a document, deleted or not."""
    found: str | None = await tx.value(_AFTER, user_id=user_id, vault_uid=vault_uid, after=name)
    return found


async def is_live(tx: Tx, user_id: str, vault_uid: str, name: str) -> bool:
    """Whether a collection holds a document that is not deleted."""
    return await tx.value(_IS_LIVE, user_id=user_id, vault_uid=vault_uid, collection=name) is not None
