"""Vaults. The variant decides what a request may carry and what an answer shows; below, there is one kind of vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import errors, rules, wire
from strongroom.actions import vaults
from strongroom.errors import Invalid
from strongroom.model import Permission, Variant, Vault
from strongroom.server.request import Call, Endpoint
from strongroom.server.response import CHUNK, Answer, answer, items, streamed
from strongroom.server.snapshots import Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.server.response import Chunks, Pieces
    from strongroom.store import Tx

_CREATE: dict[Variant, type[wire.CreateVault | wire.CreateContainer | wire.CreateBlob]] = {
    Variant.BOTH: wire.CreateVault,
    Variant.DOCUMENT: wire.CreateContainer,
    Variant.BLOB: wire.CreateBlob,
}
_PUT: dict[Variant, type[wire.PutVault | wire.RenameVault | wire.PutBlob]] = {
    Variant.BOTH: wire.PutVault,
    Variant.DOCUMENT: wire.RenameVault,
    Variant.BLOB: wire.PutBlob,
}


def _answer(call: Call, vault: Vault, status: int = 200, sent: wire.Body | None = None) -> Answer:
    """A vault, with its ETag: it covers the vault's own version and its clock."""
    etag = f"{vault.version}-{vault.updated_at}"
    if call.method in {"GET", "HEAD"} and call.unchanged(etag):
        return Answer(status=304, etag=etag)
    return answer(_shown(call, vault, sent), status, etag=etag)


def _shown(call: Call, stored: Vault, sent: wire.Body | None = None) -> wire.Vault:
    """A vault as the caller may see it, who sent this with the request."""
    vault = rules.seen_by(call.actor, stored, sent)
    blob = call.room.variant.has_blobs
    return wire.Vault(
        uid=vault.uid,
        name=vault.name,
        version=vault.version,
        updated_at=vault.updated_at,
        documents=vault.documents,
        bytes=vault.bytes,
        epoch=call.room.epoch,
        data=vault.data if blob else None,
        salt=vault.salt if blob else None,
    )


async def list_(call: Call) -> Answer:
    """The vaults within reach."""
    return await streamed(_listed(call))


async def _listed(call: Call) -> Chunks:
    """The list as JSON, a chunk at a time; where its client is slow, it goes on beyond the last uid."""
    out: Pieces = [b'{"vaults":[']
    last, size = "", 0

    async def read(tx: Tx) -> AsyncGenerator[list[Vault], None]:
        return vaults.list_(tx, call.actor, last, blobs=call.room.variant.has_blobs)

    async with Snapshot(call) as snapshot:
        pages = await snapshot.read(read)
        while (page := await anext(pages, None)) is not None:
            if page:
                out += items([_shown(call, vault) for vault in page], first=not last)
                last = page[-1].uid
                size += len(out[-1])
            if size > CHUNK:
                await snapshot.pause(size)
                yield out
                await snapshot.resume()
                out, size = [], 0
                if snapshot.released:
                    pages = await snapshot.read_on(read)
    out.append(b"]}")
    yield out


async def create(call: Call) -> Answer:
    """Make a vault."""
    wanted = await call.read_body(_CREATE[call.room.variant])
    vault, new = await call.write(vaults.create, call.actor, call.room.terms, wanted)
    return _answer(call, vault, 201 if new else 200, wanted)


async def get(call: Call) -> Answer:
    """One vault."""
    return _answer(call, await call.read(vaults.get, call.actor, call.uid("uid")))


async def by_name(call: Call) -> Answer:
    """The vault of a name."""
    return _answer(call, await call.read(vaults.by_name, call.actor, call.parts["name"]))


async def put(call: Call) -> Answer:
    """Set a vault's blob, or its name, or both."""
    wanted = await call.read_body(_PUT[call.room.variant])
    expected = call.expected(wanted.version, of_vault=True)
    if wanted.name is not None and expected is None:
        raise Invalid({"version": "is required to rename a vault: the version you last saw (or send If-Match)"})
    vault = await call.write(vaults.change, call.actor, call.room.terms, call.uid("uid"), wanted, expected)
    return _answer(call, vault, sent=wanted)


async def delete(call: Call) -> Answer:
    """Delete a vault and all its documents."""
    expected = call.expected(None, of_vault=True)
    await call.write_long(vaults.delete, call.actor, call.room.terms, call.uid("uid"), expected)
    return answer(wire.Done())


def endpoints(variant: Variant) -> tuple[Endpoint, ...]:
    """The vault routes, with the bodies that this variant takes."""
    return (
        Endpoint(
            method="GET",
            path="/vault",
            handler=list_,
            summary="List the vaults",
            permission=Permission.READ,
            answers=wire.Vaults,
        ),
        Endpoint(
            method="POST",
            path="/vault",
            handler=create,
            summary="Create a vault",
            permission=Permission.WRITE,
            whole_account=True,
            takes=_CREATE[variant],
            answers=wire.Vault,
            status=201,
            refusals=(errors.VaultAlreadyExists, errors.UidTaken, errors.QuotaExceeded),
        ),
        Endpoint(
            method="GET",
            path="/vault/by-name/{name*}",
            handler=by_name,
            summary="The vault of a name; any percent-encoded name",
            permission=Permission.READ,
            answers=wire.Vault,
            refusals=(errors.VaultNotFound,),
            conditional=("If-None-Match",),
        ),
        Endpoint(
            method="GET",
            path="/vault/{uid}",
            handler=get,
            summary="One vault",
            permission=Permission.READ,
            answers=wire.Vault,
            refusals=(errors.VaultNotFound,),
            conditional=("If-None-Match",),
        ),
        Endpoint(
            method="PUT",
            path="/vault/{uid}",
            handler=put,
            summary=_PUT_SUMMARY[variant],
            permission=Permission.WRITE,
            takes=_PUT[variant],
            answers=wire.Vault,
            refusals=(errors.VaultNotFound, errors.VaultConflict, errors.VaultAlreadyExists, errors.QuotaExceeded),
            conditional=("If-Match",),
        ),
        Endpoint(
            method="DELETE",
            path="/vault/{uid}",
            handler=delete,
            summary="Delete a vault and all its documents",
            permission=Permission.DELETE,
            whole_account=True,
            answers=wire.Done,
            refusals=(errors.VaultNotFound, errors.VaultConflict),
            conditional=("If-Match",),
        ),
    )


_PUT_SUMMARY = {
    Variant.BOTH: "Set a vault's blob, rename the vault, or both",
    Variant.DOCUMENT: "Rename a vault",
    Variant.BLOB: "Replace a vault's blob",
}
