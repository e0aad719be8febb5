"""Every request of the client, as a value: what is sent, how its response is decoded, what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from strongroom import errors
from strongroom.client.format.encoding import MOST_VERSION
from strongroom.client.format.seal import Sealed, SealedBlob
from strongroom.client.net import decoders
from strongroom.client.net.effects import Upload
from strongroom.errors import Refusal
from strongroom.model import Document, VaultBlob
from strongroom.wire import responses
from strongroom.wire.export_lines import MEDIA_TYPE

T = TypeVar("T")

SMALL: Final = 1 << 20  # bytes of a response without ciphertext
LARGE: Final = 1 << 31  # of one with documents or a blob

_encode = msgspec.json.Encoder().encode
_NO_VAULT: Final[Mapping[int, type[Refusal]]] = {404: errors.VaultNotFound, 409: errors.VaultAlreadyExists}
_NO_DOCUMENT: Final[Mapping[int, type[Refusal]]] = {
    404: errors.DocumentNotFound,
    409: errors.DocumentConflict,
    412: errors.DocumentConflict,
}


class Call(Struct, Generic[T], frozen=True, kw_only=True):
    """An API call: a request, and how its response is read.

    `idempotent`: a retry is safe. `already_done`: the errors of a retry whose first attempt succeeded without a
    response. `authenticated`: a token or an API key is sent. `secrets`: what must not appear in an error.
    """

    method: str
    path: str
    decode: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | Upload | None = None
    accept: str = "application/json"
    refusals: Mapping[int, type[Refusal]] = {}
    idempotent: bool = True
    authenticated: bool = True
    secrets: tuple[str, ...] = ()
    already_done: tuple[type[Refusal], ...] = ()
    max_bytes: int = SMALL
    wait: float = 0.0

    def __repr__(self) -> str:
        return f"Call({self.method}, ...)"


def _part(text: str) -> str:
    return quote(text, safe="")


def _vault(uid: str) -> str:
    return f"/vault/{_part(uid)}"


def _documents(vault: str) -> str:
    return f"/vaults/{_part(vault)}/documents"


def _document(vault: str, uid: str) -> str:
    return f"{_documents(vault)}/{_part(uid)}"


# Accounts


def prelogin(email: str) -> Call[responses.Derivation]:
    """Get the key-derivation parameters of an account."""
    body = _encode({"email": email})
    return Call(method="POST", path="/auth/email/prelogin", body=body, decode=decoders.derivation, authenticated=False)


def register(
    email: str,
    password: str,
    kdf: dict[str, Any],
    keyring: str | None,
    device_name: str | None,
    invitation: str | None,
) -> Call[responses.SignedIn]:
    """Register an account; one that is to be imported has no keyring yet."""
    body = {"email": email, "password": str(password), "kdf": kdf, "keyring": keyring} | _device(device_name)
    if invitation is not None:
        body["invitation"] = str(invitation)
    return Call(
        method="POST",
        path="/auth/email/register",
        body=_encode(body),
        decode=decoders.signed_in,
        refusals={409: errors.EmailAlreadyExists},
        already_done=(errors.EmailAlreadyExists, errors.InvalidInvitation),
        secrets=(password, *([invitation] if invitation else [])),
        authenticated=False,
    )


def _device(name: str | None) -> dict[str, Any]:
    return {} if name is None else {"deviceName": name}


def login(email: str, password: str, device_name: str | None) -> Call[responses.SignedIn]:
    """Log in."""
    return Call(
        method="POST",
        path="/auth/email/login",
        body=_encode({"email": email, "password": str(password)} | _device(device_name)),
        decode=decoders.signed_in,
        refusals={401: errors.InvalidCredentials},
        secrets=(password,),
        authenticated=False,
    )


def refresh(refresh_token: str) -> Call[responses.Tokens]:
    """Refresh the tokens of a session."""
    return Call(
        method="POST",
        path="/auth/refresh",
        body=_encode({"refreshToken": str(refresh_token)}),
        decode=decoders.tokens,
        refusals={401: errors.InvalidRefreshToken},
        authenticated=False,
    )


def logout(*, everywhere: bool) -> Call[Any]:
    """Log out: end this session, or all."""
    body = _encode({"everywhere": True}) if everywhere else None
    return Call(
        method="POST", path="/auth/logout", body=body, decode=decoders.ignored, already_done=(errors.Unauthorized,)
    )


def sessions() -> Call[responses.Sessions]:
    """List the open sessions."""
    return Call(method="GET", path="/auth/sessions", decode=decoders.sessions)


def end_session(sid: str) -> Call[Any]:
    """End a session."""
    return Call(
        method="DELETE",
        path=f"/auth/sessions/{_part(sid)}",
        decode=decoders.ignored,
        refusals={404: errors.SessionNotFound},
        already_done=(errors.SessionNotFound,),
    )


def me() -> Call[responses.Me]:
    """Get the account, its usage and its limits."""
    return Call(method="GET", path="/auth/me", decode=decoders.me)


def log(before: str | None) -> Call[responses.Events]:
    """Get a page of the account's log, before an entry."""
    query = () if before is None else (("before", before),)
    return Call(method="GET", path="/auth/events", query=query, decode=decoders.events)


def get_keyring() -> Call[responses.Keyring]:
    """Get the keyring."""
    return Call(method="GET", path="/auth/keyring", decode=decoders.keyring)


def put_keyring(
    keyring: str, version: int, new_version: int, *, password: str | None = None
) -> Call[responses.Keyring]:
    """Another keyring in the place of the one of this version. Where its slots change, the password is the proof."""
    body: dict[str, Any] = {"keyring": keyring, "version": version, "newVersion": new_version}
    if password is not None:
        body["currentPassword"] = str(password)
    return Call(
        method="PUT",
        path="/auth/keyring",
        body=_encode(body),
        decode=decoders.keyring,
        refusals={401: errors.InvalidCredentials} if password is not None else {},
        secrets=() if password is None else (password,),
    )


def keyring_version(version: int) -> Call[responses.Keyring]:
    """A keyring that was replaced, if the server has kept it."""
    return Call(
        method="GET",
        path=f"/auth/keyring/versions/{version}",
        decode=decoders.keyring,
        refusals={404: errors.VersionNotFound},
    )


def change_password(
    current: str, new: str, kdf: dict[str, Any], keyring: str, keyring_version: int, *, new_version: int
) -> Call[Any]:
    """Another password, with the keyring that is sealed for it."""
    body = {
        "currentPassword": str(current),
        "newPassword": str(new),
        "kdf": kdf,
        "keyring": keyring,
        "keyringVersion": keyring_version,
        "keyringNewVersion": new_version,
    }
    return Call(
        method="PUT",
        path="/auth/password",
        body=_encode(body),
        decode=decoders.ignored,
        refusals={401: errors.InvalidCredentials},
        already_done=(errors.InvalidCredentials,),
        secrets=(current, new),
    )


def delete_account(password: str) -> Call[Any]:
    """Delete the account."""
    return Call(
        method="DELETE",
        path="/auth/me",
        body=_encode({"password": str(password)}),
        decode=decoders.ignored,
        already_done=(errors.Unauthorized,),
        secrets=(password,),
    )


def make_key(name: str, scopes: dict[str, Any]) -> Call[responses.NewApiKey]:
    """Create an API key. Not idempotent: sent twice, it creates two."""
    body = _encode({"name": name, **scopes})
    return Call(
        method="POST",
        path="/auth/api-keys",
        body=body,
        decode=decoders.new_key,
        refusals={404: errors.VaultNotFound},
        idempotent=False,
    )


def list_keys() -> Call[responses.ApiKeys]:
    """List the API keys."""
    return Call(method="GET", path="/auth/api-keys", decode=decoders.keys, max_bytes=LARGE)


def revoke_key(uid: str) -> Call[Any]:
    """Revoke an API key."""
    return Call(
        method="DELETE",
        path=f"/auth/api-keys/{_part(uid)}",
        decode=decoders.ignored,
        refusals={404: errors.ApiKeyNotFound},
        already_done=(errors.ApiKeyNotFound,),
    )


# Export and import


def export_account() -> Call[Any]:
    """Open the stream of the account's export."""
    return Call(method="GET", path="/auth/export", decode=decoders.ignored, accept=MEDIA_TYPE)


def import_account(password: str, path: str, size: int) -> Call[responses.Imported]:
    """Import the file of an account, with the password as the proof."""
    line = _encode({"kind": "password", "currentPassword": str(password)}) + b"\n"
    return Call(
        method="POST",
        path="/auth/import",
        body=Upload(line, path, len(line) + size),
        decode=decoders.imported,
        refusals={409: errors.ImportUnfinished},
        secrets=(password,),
        wait=60.0,
    )


def abandon_import() -> Call[Any]:
    """Give up an unfinished import: what came in is deleted."""
    return Call(
        method="DELETE",
        path="/auth/import",
        decode=decoders.ignored,
        refusals={404: errors.ImportNotFound},
        already_done=(errors.ImportNotFound,),
        wait=60.0,
    )


# Vaults


def list_vaults() -> Call[responses.Vaults]:
    """List the vaults."""
    return Call(method="GET", path="/vault", decode=decoders.vaults, max_bytes=LARGE)


def get_vault(uid: str) -> Call[responses.Vault]:
    """Get a vault."""
    return Call(method="GET", path=_vault(uid), decode=decoders.vault, refusals=_NO_VAULT, max_bytes=LARGE)


def create_vault(uid: str, name: str, blob: SealedBlob | None) -> Call[responses.Vault]:
    """Create a vault."""
    body: dict[str, Any] = {"name": name, "uid": uid}
    if blob is not None:
        body |= {"data": blob.data, "salt": blob.salt}
    return Call(
        method="POST", path="/vault", body=_encode(body), decode=decoders.vault, refusals=_NO_VAULT, max_bytes=LARGE
    )


def put_blob(uid: str, blob: SealedBlob, version: int, new_version: int | None = None) -> Call[responses.Vault]:
    """Another blob in the place of the one of this version."""
    return _change_vault(uid, {"data": blob.data, "salt": blob.salt, "version": version}, new_version)


def put_vault(
    uid: str, name: str, blob: SealedBlob | None, version: int, new_version: int | None = None
) -> Call[responses.Vault]:
    """Another name, and with it the blob that is sealed for it."""
    body: dict[str, Any] = {"name": name, "version": version}
    if blob is not None:
        body |= {"data": blob.data, "salt": blob.salt}
    return _change_vault(uid, body, new_version)


def _change_vault(uid: str, body: dict[str, Any], new_version: int | None) -> Call[responses.Vault]:
    if new_version is not None:
        body["newVersion"] = new_version
    refusals: Mapping[int, type[Refusal]] = {404: errors.VaultNotFound, 409: errors.VaultConflict}
    return Call(
        method="PUT", path=_vault(uid), body=_encode(body), decode=decoders.vault, refusals=refusals, max_bytes=LARGE
    )


def blob_versions(uid: str) -> Call[responses.BlobVersions]:
    """Which blobs of a vault were replaced and are kept."""
    return Call(method="GET", path=f"{_vault(uid)}/versions", decode=decoders.blob_versions, refusals=_NO_VAULT)


def blob_version(uid: str, version: int) -> Call[VaultBlob]:
    """A vault's blob as it was."""
    path = f"{_vault(uid)}/versions/{version}"
    return Call(method="GET", path=path, decode=decoders.blob_version, refusals=_NO_VAULT, max_bytes=LARGE)


def delete_vault(uid: str) -> Call[Any]:
    """Delete a vault and everything in it."""
    return Call(
        method="DELETE",
        path=_vault(uid),
        decode=decoders.ignored,
        refusals=_NO_VAULT,
        already_done=(errors.VaultNotFound,),
    )


# Documents


def create_document(vault: str, uid: str, collection: str, sealed: Sealed) -> Call[Document]:
    """Create a document."""
    body = _encode({"collection": collection, "data": sealed.data, "hmac": sealed.hmac, "uid": uid})
    return Call(
        method="POST",
        path=_documents(vault),
        body=body,
        decode=decoders.document,
        refusals={404: errors.VaultNotFound, 409: errors.UidTaken},
        already_done=(errors.UidTaken,),
        max_bytes=LARGE,
    )


def get_document(vault: str, uid: str) -> Call[Document]:
    """Get a document, deleted or not."""
    return Call(
        method="GET", path=_document(vault, uid), decode=decoders.document, refusals=_NO_DOCUMENT, max_bytes=LARGE
    )


def put_document(vault: str, uid: str, sealed: Sealed, version: int) -> Call[Document]:
    """Replace the ciphertext of a document of this version."""
    body = _encode({"data": sealed.data, "hmac": sealed.hmac, "version": version})
    return Call(
        method="PUT",
        path=_document(vault, uid),
        body=body,
        decode=decoders.document,
        refusals=_NO_DOCUMENT,
        max_bytes=LARGE,
    )


def list_documents(
    vault: str,
    *,
    collection: str | None = None,
    since: int | None = None,
    limit: int,
    deleted: bool | None = None,
    trash: bool = False,
    wait: int = 0,
) -> Call[responses.Documents]:
    """List a page of documents; with `trash`, only of deleted ones that can be revived."""
    query: list[tuple[str, str]] = []
    if collection is not None:
        query.append(("collection", collection))
    if since is not None:
        query.append(("since", str(since)))
    query.append(("limit", str(limit)))
    if trash:
        query.append(("deleted", "only"))
    elif deleted is not None:
        query.append(("includeDeleted", "true" if deleted else "false"))
    if wait:
        query.append(("wait", str(wait)))
    return Call(
        method="GET",
        path=_documents(vault),
        query=tuple(query),
        decode=decoders.documents,
        refusals={404: errors.VaultNotFound},
        max_bytes=LARGE,
        wait=wait,
    )


def list_collections(vault: str, after: str | None) -> Call[responses.Collections]:
    """List a page of the collections of a vault."""
    return Call(
        method="GET",
        path=f"/vaults/{_part(vault)}/collections",
        query=() if after is None else (("after", after),),
        decode=decoders.collections,
        refusals={404: errors.VaultNotFound},
    )


def purge(vault: str, uid: str, version: int) -> Call[Document]:
    """Purge a deleted document of this version."""
    return Call(
        method="DELETE",
        path=f"/vaults/{_part(vault)}/trash/{_part(uid)}",
        body=_encode({"version": version}),
        decode=decoders.document,
        refusals=_NO_DOCUMENT,
    )


def empty_trash(vault: str, collection: str | None) -> Call[responses.Purged]:
    """Purge deleted documents of a vault, or of one collection; some of them, where there are many."""
    return Call(
        method="DELETE",
        path=f"/vaults/{_part(vault)}/trash",
        query=() if collection is None else (("collection", collection),),
        decode=decoders.purged,
        refusals={404: errors.VaultNotFound},
    )


# Batches, history, events


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


def batch(vault: str, operations: list[dict[str, Any]]) -> Call[responses.Results]:
    """Run a batch of operations: all of them, or none."""
    path = f"/vaults/{_part(vault)}/batch"
    return Call(
        method="POST", path=path, body=_encode({"operations": operations}), decode=decoders.results, max_bytes=LARGE
    )


def batch_size(operations: list[dict[str, Any]]) -> int:
    """The size of a batch's body, in bytes."""
    return len(_encode({"operations": operations}))


def single_size(uid: str, collection: str, sealed: Sealed) -> int:
    """The size of a batch with one document alone, in bytes, in the longest form that it can take."""
    bare = Sealed("", sealed.hmac)
    create = create_operation(uid, collection, bare, MOST_VERSION)
    put = put_operation(uid, bare, MOST_VERSION, MOST_VERSION)
    return len(sealed.data) + max(batch_size([create]), batch_size([put]))


def get_version(vault: str, uid: str, version: int) -> Call[Document]:
    """Get an earlier version of a document."""
    path = f"{_document(vault, uid)}/versions/{version}"
    return Call(method="GET", path=path, decode=decoders.document, refusals=_NO_DOCUMENT, max_bytes=LARGE)


def history(vault: str, since: int, uid: str | None = None) -> Call[responses.History]:
    """Uid, version and proof of the documents' versions that were replaced after a time and are kept."""
    query = [("since", str(since)), ("limit", "5000")]
    if uid is not None:
        query.append(("uid", uid))
    path = f"{_documents(vault)}/history"
    refusals: Mapping[int, type[Refusal]] = {404: errors.VaultNotFound}
    return Call(
        method="GET", path=path, query=tuple(query), decode=decoders.history, refusals=refusals, max_bytes=LARGE
    )


def health() -> Call[responses.Health]:
    """Get the epoch of the server's database."""
    return Call(method="GET", path="/health", decode=decoders.health, authenticated=False)


def events(vault: str | None, since: int) -> Call[Any]:
    """Open the event stream of a vault, or of all vaults, after a timestamp."""
    path = "/events" if vault is None else f"/vaults/{_part(vault)}/events"
    return Call(
        method="GET",
        path=path,
        query=(("since", str(since)),),
        decode=decoders.ignored,
        accept="text/event-stream",
        refusals={404: errors.NotFound},
        wait=15.0,
    )
