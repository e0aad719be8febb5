"""Requests of batches: their operations, their size."""

from __future__ import annotations

from typing import Any

from strongroom.client.format.encoding import MOST_VERSION
from strongroom.client.format.seal import Sealed
from strongroom.client.net import decoders
from strongroom.client.net.call import LARGE, Call, encode, path_part
from strongroom.wire import responses


def create_operation(uid: str, collection: str, sealed: Sealed, version: int = 1) -> dict[str, Any]:
    """A new document, in a batch; after a restore, at the version that it had."""
    body = {"op": "create", "collection": collection, "data": sealed.data, "hmac": sealed.hmac, "uid": uid}
    return body if version == 1 else {**body, "newVersion": version}


def put_operation(uid: str, sealed: Sealed, version: int, new_version: int | None = None) -> dict[str, Any]:
    """Other ciphertext, in a batch; after a restore, at the version that it had."""
    body = {"op": "put", "uid": uid, "data": sealed.data, "hmac": sealed.hmac, "version": version}
    return body if new_version in {None, version + 1} else {**body, "newVersion": new_version}


def delete_operation(uid: str, version: int) -> dict[str, Any]:
    """The batch operation that deletes a document."""
    return {"op": "delete", "uid": uid, "version": version}


def run(vault: str, operations: list[dict[str, Any]], keyring_version: int | None = None) -> Call[responses.Results]:
    """Run a batch of operations: all of them, or none."""
    return Call(
        method="POST",
        path=f"/vaults/{path_part(vault)}/batch",
        body=encode({"operations": operations}),
        decode=decoders.results,
        max_bytes=LARGE,
        keyring_version=keyring_version,
    )


def size(operations: list[dict[str, Any]]) -> int:
    """The size of a batch's body, in bytes."""
    return len(encode({"operations": operations}))


def single_size(uid: str, collection: str, sealed: Sealed) -> int:
    """The size of a batch with one document alone, in bytes, in the longest form that it can take."""
    bare = Sealed("", sealed.hmac)
    create = create_operation(uid, collection, bare, MOST_VERSION)
    put = put_operation(uid, bare, MOST_VERSION, MOST_VERSION)
    return len(sealed.data) + max(size([create]), size([put]))
