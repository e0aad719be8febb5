"""Requests of vaults: their names and blobs, their collections, their events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from strongroom import errors
from strongroom.client.format.seal import SealedBlob
from strongroom.client.net import decoders
from strongroom.client.net.call import LARGE, Call, encode, path_part
from strongroom.errors import Refusal
from strongroom.model import VaultBlob
from strongroom.wire import responses

_NO_VAULT: Final[Mapping[int, type[Refusal]]] = {404: errors.VaultNotFound, 409: errors.VaultAlreadyExists}


def _path(uid: str) -> str:
    return f"/vault/{path_part(uid)}"


def list_all() -> Call[responses.Vaults]:
    """List the vaults."""
    return Call(method="GET", path="/vault", decode=decoders.vaults, max_bytes=LARGE)


def get(uid: str) -> Call[responses.Vault]:
    """Get a vault."""
    return Call(method="GET", path=_path(uid), decode=decoders.vault, refusals=_NO_VAULT, max_bytes=LARGE)


def create(uid: str, name: str, blob: SealedBlob | None) -> Call[responses.Vault]:
    """Create a vault."""
    body: dict[str, Any] = {"name": name, "uid": uid}
    if blob is not None:
        body |= {"data": blob.data, "salt": blob.salt}
    return Call(
        method="POST", path="/vault", body=encode(body), decode=decoders.vault, refusals=_NO_VAULT, max_bytes=LARGE
    )


def put_blob(uid: str, blob: SealedBlob, version: int, keyring_version: int | None = None) -> Call[responses.Vault]:
    """Another blob in the place of the one of this version."""
    body = {"data": blob.data, "salt": blob.salt, "version": version}
    return _change(uid, body, keyring_version=keyring_version)


def put(
    uid: str,
    name: str,
    blob: SealedBlob | None,
    version: int,
    new_version: int | None = None,
    *,
    keyring_version: int | None = None,
) -> Call[responses.Vault]:
    """Another name, and with it the blob that is sealed for it."""
    body: dict[str, Any] = {"name": name, "version": version}
    if blob is not None:
        body |= {"data": blob.data, "salt": blob.salt}
    return _change(uid, body if new_version is None else {**body, "newVersion": new_version}, keyring_version)


def _change(uid: str, body: dict[str, Any], keyring_version: int | None) -> Call[responses.Vault]:
    refusals: Mapping[int, type[Refusal]] = {404: errors.VaultNotFound, 409: errors.VaultConflict}
    return Call(
        method="PUT",
        path=_path(uid),
        body=encode(body),
        decode=decoders.vault,
        refusals=refusals,
        max_bytes=LARGE,
        keyring_version=keyring_version,
    )


def blob_versions(uid: str) -> Call[responses.BlobVersions]:
    """Which blobs of a vault were replaced and are kept."""
    return Call(method="GET", path=f"{_path(uid)}/versions", decode=decoders.blob_versions, refusals=_NO_VAULT)


def blob_version(uid: str, version: int) -> Call[VaultBlob]:
    """A vault's blob as it was."""
    path = f"{_path(uid)}/versions/{version}"
    return Call(method="GET", path=path, decode=decoders.blob_version, refusals=_NO_VAULT, max_bytes=LARGE)


def delete(uid: str) -> Call[Any]:
    """Delete a vault and everything in it."""
    return Call(
        method="DELETE",
        path=_path(uid),
        decode=decoders.ignored,
        refusals=_NO_VAULT,
        already_done=(errors.VaultNotFound,),
    )


def list_collections(vault: str, after: str | None) -> Call[responses.Collections]:
    """List a page of the collections of a vault."""
    return Call(
        method="GET",
        path=f"/vaults/{path_part(vault)}/collections",
        query=() if after is None else (("after", after),),
        decode=decoders.collections,
        refusals={404: errors.VaultNotFound},
    )


def events(vault: str | None, since: int) -> Call[Any]:
    """Open the event stream of a vault, or of all vaults, after a timestamp."""
    path = "/events" if vault is None else f"/vaults/{path_part(vault)}/events"
    return Call(
        method="GET",
        path=path,
        query=(("since", str(since)),),
        decode=decoders.ignored,
        accept="text/event-stream",
        refusals={404: errors.NotFound},
        wait=15.0,
    )
