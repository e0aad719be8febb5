"""The history of documents and of blobs."""

from __future__ import annotations

from typing import Final

from strongroom import errors, rules, wire
from strongroom.actions import versions
from strongroom.model import Document, Permission, VaultBlob
from strongroom.server.request import Call, Endpoint, integer
from strongroom.server.response import Answer, answer


def _version(call: Call) -> int:
    """The version that the path names; what is no number becomes one that nothing has."""
    number = integer(call.parts["version"], 1) or 0
    return number if number <= rules.LARGEST else 0


async def of_document(call: Call) -> Answer:
    """The replaced versions of a document, newest first, without their ciphertext."""
    found = await call.read(versions.of_document, call.actor, call.uid("vaultUid"), call.uid("uid"))
    return answer(wire.Versions(found))


async def document(call: Call) -> Answer:
    """A document as it was at a version."""
    where = call.uid("vaultUid"), call.uid("uid"), _version(call)
    return answer(await call.read(versions.document, call.actor, *where))


async def of_blob(call: Call) -> Answer:
    """The replaced blobs of a vault, newest first, without their ciphertext."""
    return answer(wire.BlobVersions(await call.read(versions.of_blob, call.actor, call.uid("uid"))))


async def blob(call: Call) -> Answer:
    """A vault's blob as it was at a version."""
    return answer(await call.read(versions.blob, call.actor, call.uid("uid"), _version(call)))


_DOCUMENT: Final = "/vaults/{vaultUid}/documents/{uid}/versions"
_ALSO: Final = "/vault/{vaultUid}/documents/{uid}/versions"
_BLOB: Final = "/vault/{uid}/versions"
_MISSING: Final = (errors.VaultNotFound, errors.DocumentNotFound)

OF_DOCUMENTS: Final = (
    Endpoint(
        method="GET",
        path=_DOCUMENT,
        also=(_ALSO,),
        handler=of_document,
        summary="List the replaced versions of a document",
        permission=Permission.READ,
        answers=wire.Versions,
        refusals=_MISSING,
    ),
    Endpoint(
        method="GET",
        path=_DOCUMENT + "/{version}",
        also=(_ALSO + "/{version}",),
        handler=document,
        summary="A document as it was at a version",
        permission=Permission.READ,
        answers=Document,
        refusals=(*_MISSING, errors.VersionNotFound),
    ),
)
OF_BLOBS: Final = (
    Endpoint(
        method="GET",
        path=_BLOB,
        handler=of_blob,
        summary="List the replaced versions of a vault's blob",
        permission=Permission.READ,
        answers=wire.BlobVersions,
        refusals=(errors.VaultNotFound,),
    ),
    Endpoint(
        method="GET",
        path=_BLOB + "/{version}",
        handler=blob,
        summary="A vault's blob as it was at a version",
        permission=Permission.READ,
        answers=VaultBlob,
        refusals=(errors.VaultNotFound, errors.VersionNotFound),
    ),
)
