"""Every request that this client makes, as a value: what is sent, how its answer is read, how it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from strongroom import errors
from strongroom.client.format.seal import Sealed, SealedBlob
from strongroom.client.net import decoders
from strongroom.errors import Refusal
from strongroom.model import Document
from strongroom.wire import responses

T = TypeVar("T")

SMALL: Final = 1 << 20  # bytes of an answer that holds no ciphertext of any size
LARGE: Final = 1 << 31  # of one that holds a document or a blob

_encode = msgspec.json.Encoder().encode
_NO_VAULT: Final[Mapping[int, type[Refusal]]] = {404: errors.VaultNotFound, 409: errors.VaultAlreadyExists}
_NO_DOCUMENT: Final[Mapping[int, type[Refusal]]] = {
    404: errors.DocumentNotFound,
    409: errors.DocumentConflict,
    412: errors.DocumentConflict,
}


class Call(Struct, Generic[T], frozen=True, kw_only=True):
    """A request, and what to make of its answer.

    `repeats`: sending it twice does what sending it once does. `done`: how the second sending is refused where the
    first, whose answer was lost, did it. `known`: it carries the caller's authority. `secrets`: what it tells.
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    refusals: Mapping[int, type[Refusal]] = {}
    repeats: bool = True
    known: bool = True
    secrets: tuple[str, ...] = ()
    done: tuple[type[Refusal], ...] = ()
    most: int = SMALL
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
    """How this account's password is derived."""
    body = _encode({"email": email})
    return Call(method="POST", path="/auth/email/prelogin", body=body, read=decoders.derivation, known=False)


def register(email: str, password: str, kdf: dict[str, Any], keyring: str) -> Call[responses.SignedIn]:
    """A new account."""
    body = {"email": email, "password": password, "kdf": kdf, "keyring": keyring}
    return Call(
        method="POST",
        path="/auth/email/register",
        body=_encode(body),
        read=decoders.signed_in,
        refusals={409: errors.EmailAlreadyExists},
        done=(errors.EmailAlreadyExists,),
        secrets=(password,),
        known=False,
    )


def login(email: str, password: str) -> Call[responses.SignedIn]:
    """Another session."""
    return Call(
        method="POST",
        path="/auth/email/login",
        body=_encode({"email": email, "password": password}),
        read=decoders.signed_in,
        refusals={401: errors.InvalidCredentials},
        secrets=(password,),
        known=False,
    )


def refresh(refresh_token: str) -> Call[responses.Tokens]:
    """Another pair of tokens."""
    return Call(
        method="POST",
        path="/auth/refresh",
        body=_encode({"refreshToken": refresh_token}),
        read=decoders.tokens,
        refusals={401: errors.InvalidRefreshToken},
        known=False,
    )


def logout(*, everywhere: bool) -> Call[Any]:
    """The end of this session, or of all."""
    body = _encode({"everywhere": True}) if everywhere else None
    return Call(method="POST", path="/auth/logout", body=body, read=decoders.ignored, done=(errors.Unauthorized,))


def sessions() -> Call[responses.Sessions]:
    """The open sessions."""
    return Call(method="GET", path="/auth/sessions", read=decoders.sessions)


def end_session(sid: str) -> Call[Any]:
    """The end of one session."""
    return Call(
        method="DELETE",
        path=f"/auth/sessions/{_part(sid)}",
        read=decoders.ignored,
        refusals={404: errors.SessionNotFound},
        done=(errors.SessionNotFound,),
    )


def get_keyring() -> Call[responses.Keyring]:
    """The keyring."""
    return Call(method="GET", path="/auth/keyring", read=decoders.keyring)


def put_keyring(
    keyring: str, version: int, kdf: dict[str, Any] | None = None, password: str | None = None
) -> Call[responses.Keyring]:
    """Another keyring in the place of the one of this version; with a descriptor, the password proves who asks."""
    body: dict[str, Any] = {"keyring": keyring, "version": version}
    if kdf is not None:
        body |= {"kdf": kdf, "currentPassword": password}
    return Call(
        method="PUT",
        path="/auth/keyring",
        body=_encode(body),
        read=decoders.keyring,
        secrets=() if password is None else (password,),
    )


def change_password(current: str, new: str, kdf: dict[str, Any], keyring: str, keyring_version: int) -> Call[Any]:
    """Another password, with the keyring that is wrapped under it."""
    body = {
        "currentPassword": current,
        "newPassword": new,
        "kdf": kdf,
        "keyring": keyring,
        "keyringVersion": keyring_version,
    }
    return Call(
        method="PUT",
        path="/auth/password",
        body=_encode(body),
        read=decoders.ignored,
        refusals={401: errors.InvalidCredentials},
        done=(errors.InvalidCredentials,),
        secrets=(current, new),
    )


def delete_account(password: str) -> Call[Any]:
    """The end of the account."""
    return Call(
        method="DELETE",
        path="/auth/me",
        body=_encode({"password": password}),
        read=decoders.ignored,
        done=(errors.Unauthorized,),
        secrets=(password,),
    )


def make_key(name: str, scopes: dict[str, Any]) -> Call[responses.NewApiKey]:
    """An API key. Sent twice it makes two."""
    body = _encode({"name": name, **scopes})
    return Call(
        method="POST",
        path="/auth/api-keys",
        body=body,
        read=decoders.new_key,
        refusals={404: errors.VaultNotFound},
        repeats=False,
    )


def list_keys() -> Call[responses.ApiKeys]:
    """The API keys."""
    return Call(method="GET", path="/auth/api-keys", read=decoders.keys, most=LARGE)


def revoke_key(uid: str) -> Call[Any]:
    """The end of an API key."""
    return Call(
        method="DELETE",
        path=f"/auth/api-keys/{_part(uid)}",
        read=decoders.ignored,
        refusals={404: errors.ApiKeyNotFound},
        done=(errors.ApiKeyNotFound,),
    )


# Vaults


def list_vaults() -> Call[responses.Vaults]:
    """All vaults."""
    return Call(method="GET", path="/vault", read=decoders.vaults, most=LARGE)


def get_vault(uid: str) -> Call[responses.Vault]:
    """One vault."""
    return Call(method="GET", path=_vault(uid), read=decoders.vault, refusals=_NO_VAULT, most=LARGE)


def create_vault(uid: str, name: str, blob: SealedBlob | None) -> Call[responses.Vault]:
    """A new vault."""
    body: dict[str, Any] = {"name": name, "uid": uid}
    if blob is not None:
        body |= {"data": blob.data, "salt": blob.salt}
    return Call(method="POST", path="/vault", body=_encode(body), read=decoders.vault, refusals=_NO_VAULT, most=LARGE)


def put_blob(uid: str, blob: SealedBlob, version: int) -> Call[responses.Vault]:
    """Another blob in the place of the one of this version."""
    body = _encode({"data": blob.data, "salt": blob.salt, "version": version})
    refusals: Mapping[int, type[Refusal]] = {404: errors.VaultNotFound, 409: errors.VaultConflict}
    return Call(method="PUT", path=_vault(uid), body=body, read=decoders.vault, refusals=refusals, most=LARGE)


def delete_vault(uid: str) -> Call[Any]:
    """The end of a vault and of everything in it."""
    return Call(
        method="DELETE", path=_vault(uid), read=decoders.ignored, refusals=_NO_VAULT, done=(errors.VaultNotFound,)
    )


# Documents


def create_document(vault: str, uid: str, collection: str, sealed: Sealed) -> Call[Document]:
    """A new document."""
    body = _encode({"collection": collection, "data": sealed.data, "hmac": sealed.hmac, "uid": uid})
    return Call(
        method="POST",
        path=_documents(vault),
        body=body,
        read=decoders.document,
        refusals={404: errors.VaultNotFound, 409: errors.UidTaken},
        done=(errors.UidTaken,),
        most=LARGE,
    )


def get_document(vault: str, uid: str) -> Call[Document]:
    """One document, also a deleted one."""
    return Call(method="GET", path=_document(vault, uid), read=decoders.document, refusals=_NO_DOCUMENT, most=LARGE)


def put_document(vault: str, uid: str, sealed: Sealed, version: int) -> Call[Document]:
    """Other ciphertext in the place of that of this version."""
    body = _encode({"data": sealed.data, "hmac": sealed.hmac, "version": version})
    return Call(
        method="PUT", path=_document(vault, uid), body=body, read=decoders.document, refusals=_NO_DOCUMENT, most=LARGE
    )


def list_documents(
    vault: str,
    *,
    collection: str | None = None,
    since: int | None = None,
    limit: int,
    deleted: bool | None = None,
    wait: int = 0,
) -> Call[responses.Documents]:
    """A page of documents."""
    query: list[tuple[str, str]] = []
    if collection is not None:
        query.append(("collection", collection))
    if since is not None:
        query.append(("since", str(since)))
    query.append(("limit", str(limit)))
    if deleted is not None:
        query.append(("includeDeleted", "true" if deleted else "false"))
    if wait:
        query.append(("wait", str(wait)))
    return Call(
        method="GET",
        path=_documents(vault),
        query=tuple(query),
        read=decoders.documents,
        refusals={404: errors.VaultNotFound},
        most=LARGE,
        wait=wait,
    )


# Many at once


def create_operation(uid: str, collection: str, sealed: Sealed) -> dict[str, Any]:
    """A new document, in a batch."""
    return {"op": "create", "collection": collection, "data": sealed.data, "hmac": sealed.hmac, "uid": uid}


def put_operation(uid: str, sealed: Sealed, version: int) -> dict[str, Any]:
    """Other ciphertext, in a batch."""
    return {"op": "put", "uid": uid, "data": sealed.data, "hmac": sealed.hmac, "version": version}


def delete_operation(uid: str, version: int) -> dict[str, Any]:
    """The end of a document, in a batch."""
    return {"op": "delete", "uid": uid, "version": version}


def batch(vault: str, operations: list[dict[str, Any]]) -> Call[responses.Results]:
    """All of these operations, or none."""
    path = f"/vaults/{_part(vault)}/batch"
    return Call(method="POST", path=path, body=_encode({"operations": operations}), read=decoders.results, most=LARGE)


def get_version(vault: str, uid: str, version: int) -> Call[Document]:
    """A document as it was."""
    path = f"{_document(vault, uid)}/versions/{version}"
    return Call(method="GET", path=path, read=decoders.document, refusals=_NO_DOCUMENT, most=LARGE)


def health() -> Call[responses.Health]:
    """Which database the server has."""
    return Call(method="GET", path="/health", read=decoders.health, known=False)


def events(vault: str | None, since: int) -> Call[Any]:
    """The events of a vault, or of all vaults, after a moment."""
    path = "/events" if vault is None else f"/vaults/{_part(vault)}/events"
    return Call(
        method="GET",
        path=path,
        query=(("since", str(since)),),
        read=decoders.ignored,
        refusals={404: errors.NotFound},
        wait=15.0,
    )
