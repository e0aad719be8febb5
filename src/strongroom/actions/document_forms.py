"""Creates and puts of documents in the form that an engine may combine, if nothing stands against them so far."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from strongroom import identifiers, rules
from strongroom.store.write_forms import NewDocument, Replacement

if TYPE_CHECKING:
    from strongroom.model import AccountLimits, Actor, Expected
    from strongroom.wire.requests import CreateDocument, PutDocument


def new_document(
    now: int, actor: Actor, limits: AccountLimits, vault_uid: str, wanted: CreateDocument
) -> NewDocument | None:
    """The form of a create; None if it is beyond the actor's scope."""
    if not rules.reaches(actor, vault_uid, wanted.collection):
        return None
    if wanted.uid is None:
        wanted = structs.replace(wanted, uid=identifiers.new_uid(now))
    return NewDocument(
        args=(actor, limits, vault_uid, wanted),
        limits=limits,
        keyring_version=actor.keyring_version,
        uid=(wanted.uid or "").lower(),
        vault_uid=vault_uid,
        collection=wanted.collection,
        data=wanted.data,
        hmac=wanted.hmac,
        version=wanted.new_version or 1,
        size=rules.octets(wanted.data, wanted.hmac),
        row_bytes=rules.row_bytes(wanted.collection),
        most_row_bytes=rules.row_limit(limits.bytes),
    )


def replacement(
    _now: int,
    actor: Actor,
    limits: AccountLimits,
    vault_uid: str,
    uid: str,
    wanted: PutDocument,
    expected: Expected,
) -> Replacement | None:
    """The form of a put at one version; None if it is, or may be, beyond the actor's scope."""
    key = actor.key
    if key is not None and (key.collections is not None or not rules.reaches(actor, vault_uid, "")):
        return None
    if expected.versions is None or len(expected.versions) != 1:
        return None
    return Replacement(
        args=(actor, limits, vault_uid, uid, wanted, expected),
        limits=limits,
        keyring_version=actor.keyring_version,
        uid=uid,
        vault_uid=vault_uid,
        data=wanted.data,
        hmac=wanted.hmac,
        version=expected.versions[0],
        new_version=wanted.new_version,
        size=rules.octets(wanted.data, wanted.hmac),
        most_retained=rules.retention_limit(limits.bytes),
    )
