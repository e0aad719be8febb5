"""Vaults. The variant decides which fields requests and responses have; below the routes there is one kind of vault."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom import errors, rules, wire
from strongroom.actions import deletions, vaults
from strongroom.errors import Invalid
from strongroom.model import Permission, Variant, Vault
from strongroom.server.request import Endpoint, Request
from strongroom.server.response import Response, json_response, streaming_response
from strongroom.server.snapshots import stream_list

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from strongroom.store import Tx

_CREATE: dict[Variant, type[wire.requests.CreateVault | wire.requests.CreateContainer | wire.requests.CreateBlob]] = {
    Variant.BOTH: wire.requests.CreateVault,
    Variant.DOCUMENT: wire.requests.CreateContainer,
    Variant.BLOB: wire.requests.CreateBlob,
}
_PUT: dict[Variant, type[wire.requests.PutVault | wire.requests.RenameVault | wire.requests.PutBlob]] = {
    Variant.BOTH: wire.requests.PutVault,
    Variant.DOCUMENT: wire.requests.RenameVault,
    Variant.BLOB: wire.requests.PutBlob,
}


def _response(request: Request, vault: Vault, status: int = 200, sent: wire.requests.Body | None = None) -> Response:
    """A vault, with an ETag of its version and its clock."""
    etag = f"{vault.version}-{vault.updated_at}"
    if request.method in {"GET", "HEAD"} and request.not_modified(etag):
        return Response(status=304, etag=etag)
    return json_response(_shown(request, vault, sent), status, etag=etag)


def _shown(request: Request, stored: Vault, sent: wire.requests.Body | None = None) -> wire.responses.Vault:
    """A vault as the caller may see it; `sent` is the body of the request."""
    vault = rules.visible_to(request.actor, stored, sent)
    blob = request.context.variant.has_blobs
    return wire.responses.Vault(
        uid=vault.uid,
        name=vault.name,
        version=vault.version,
        updated_at=vault.updated_at,
        documents=vault.documents,
        bytes=vault.bytes,
        epoch=request.context.epoch,
        data=vault.data if blob else None,
        salt=vault.salt if blob else None,
    )


async def list_(request: Request) -> Response:
    """The vaults that the caller may read."""
    last = ""

    async def read(tx: Tx) -> AsyncGenerator[list[Vault], None]:
        return vaults.list_(tx, request.actor, last, blobs=request.context.variant.has_blobs)

    def shown(page: list[Vault]) -> list[wire.responses.Vault]:
        nonlocal last
        last = page[-1].uid if page else last
        return [_shown(request, vault) for vault in page]

    return await streaming_response(stream_list(request, b'{"vaults":[', read, shown, lambda: b"]}"))


async def create(request: Request) -> Response:
    """Create a vault."""
    wanted = await request.read_body(_CREATE[request.context.variant])
    vault, new = await request.write(vaults.create, request.actor, request.context.limits, wanted)
    return _response(request, vault, 201 if new else 200, wanted)


async def get(request: Request) -> Response:
    """A vault."""
    return _response(request, await request.read(vaults.get, request.actor, request.uid("uid")))


async def by_name(request: Request) -> Response:
    """The vault with a name."""
    return _response(request, await request.read(vaults.by_name, request.actor, request.path_params["name"]))


async def put(request: Request) -> Response:
    """Set a vault's blob, or its name, or both."""
    wanted = await request.read_body(_PUT[request.context.variant])
    expected = request.expected(wanted.version, of_vault=True)
    if wanted.name is not None and expected is None:
        raise Invalid({"version": "is required to rename a vault: the version you last saw (or send If-Match)"})
    vault = await request.write(
        vaults.change, request.actor, request.context.limits, request.uid("uid"), wanted, expected
    )
    return _response(request, vault, sent=wanted)


async def delete(request: Request) -> Response:
    """Delete a vault and all its documents; their rows go in the background.

    An account that deletes vaults faster than their rows go waits for its own.
    """
    expected = request.expected(None, of_vault=True)
    owner, progress = request.actor.user_id, deletions.DeletionProgress()
    while await request.read(deletions.is_crowded, owner):
        await request.write_long(deletions.delete_some_of, owner, progress)
    await request.write_long(vaults.delete, request.actor, request.context.limits, request.uid("uid"), expected)
    request.context.deletions.begin()
    return json_response(wire.responses.Done())


def endpoints(variant: Variant) -> tuple[Endpoint, ...]:
    """The vault routes, with the request bodies of this variant."""
    return (
        Endpoint(
            method="GET",
            path="/vault",
            handler=list_,
            summary="List the vaults",
            permission=Permission.READ,
            response_type=wire.responses.Vaults,
        ),
        Endpoint(
            method="POST",
            path="/vault",
            handler=create,
            summary="Create a vault",
            permission=Permission.WRITE,
            whole_account=True,
            request_type=_CREATE[variant],
            response_type=wire.responses.Vault,
            status=201,
            refusals=(
                errors.VaultAlreadyExists,
                errors.UidTaken,
                errors.TooManyVaults,
                errors.QuotaExceeded,
                errors.KeyringConflict,
            ),
            request_headers=("Keyring-Version",),
        ),
        Endpoint(
            method="GET",
            path="/vault/by-name/{name*}",
            handler=by_name,
            summary="The vault with a name; any percent-encoded name",
            permission=Permission.READ,
            response_type=wire.responses.Vault,
            refusals=(errors.VaultNotFound,),
            request_headers=("If-None-Match",),
        ),
        Endpoint(
            method="GET",
            path="/vault/{uid}",
            handler=get,
            summary="A vault",
            permission=Permission.READ,
            response_type=wire.responses.Vault,
            refusals=(errors.VaultNotFound,),
            request_headers=("If-None-Match",),
        ),
        Endpoint(
            method="PUT",
            path="/vault/{uid}",
            handler=put,
            summary=_PUT_SUMMARY[variant],
            permission=Permission.WRITE,
            request_type=_PUT[variant],
            response_type=wire.responses.Vault,
            refusals=(
                errors.VaultNotFound,
                errors.VaultConflict,
                errors.VaultAlreadyExists,
                errors.QuotaExceeded,
                errors.KeyringConflict,
            ),
            request_headers=("If-Match", "Keyring-Version"),
        ),
        Endpoint(
            method="DELETE",
            path="/vault/{uid}",
            handler=delete,
            summary="Delete a vault and all its documents",
            permission=Permission.DELETE,
            whole_account=True,
            response_type=wire.responses.Done,
            refusals=(errors.VaultNotFound, errors.VaultConflict, errors.KeyringConflict),
            request_headers=("If-Match", "Keyring-Version"),
        ),
    )


_PUT_SUMMARY = {
    Variant.BOTH: "Set a vault's blob, rename the vault, or both",
    Variant.DOCUMENT: "Rename a vault",
    Variant.BLOB: "Replace a vault's blob",
}
