"""What a vector can ask for: each operation takes plain data and gives plain data, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from strongroom.client.format import box, derive, encoding, keyring, names, padding, recovery, seal, tokens
from strongroom.client.format.derive import Descriptor, Floor, PasswordKeys
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import AccountKey, CollectionKey, VaultKey
from strongroom.client.format.padding import Content
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.operations import rollback
from strongroom.model import Document, Vault

Given = dict[str, Any]
hexed = bytes.fromhex


def _password_keys(given: Given) -> Given:
    descriptor = Descriptor.read(given["descriptor"])
    master = derive.master_key(given["email"], given["password"], descriptor)
    salt = derive.kdf_salt(given["email"], descriptor).hex()
    return {"salt": salt, "master": master.hex()} | _split({"master": master.hex()})


def _split(given: Given) -> Given:
    keys = derive.split(hexed(given["master"]))
    return {"auth": keys.auth.hex(), "wrap": keys.wrap.hex(), "password": keys.password}


def _email(given: Given) -> Given:
    return {"email": derive.normal_email(given["email"])}


def _new_password(given: Given) -> Given:
    derive.check_new_password(given["password"])
    return {"bytes": derive.normal_password(given["password"]).hex()}


def _descriptor(given: Given) -> Given:
    descriptor = Descriptor.read(given["descriptor"], Floor(*given.get("floor", derive.FLOOR)))
    return {"memory": descriptor.memory, "passes": descriptor.passes, "salt": descriptor.salt.hex()}


def _account(given: Given) -> Given:
    keys = AccountKey.of(hexed(given["accountKey"]))
    return {"account": keys.account.hex(), "keyring": keys.keyring().hex(), "vaultNames": keys.vault_names().hex()}


def _vault(given: Given) -> Given:
    keys = AccountKey.of(hexed(given["accountKey"])).vault(given["vault"])
    return {"key": keys.key.hex(), "blob": keys.blob().hex(), "collectionNames": keys.collection_names().hex()}


def _collection(given: Given) -> Given:
    keys = AccountKey.of(hexed(given["accountKey"])).vault(given["vault"]).collection(given["collection"])
    return {"key": keys.key.hex(), "sealing": keys.sealing.hex(), "proving": keys.proving.hex()}


def _padded_length(given: Given) -> Given:
    return {"padded": padding.padded_length(given["length"])}


def _pad(given: Given) -> Given:
    return {"padded": padding.pad(Content(given["kind"], hexed(given["content"]))).hex()}


def _unpad(given: Given) -> Given:
    return _content(padding.unpad(hexed(given["padded"])))


def _content(content: Content) -> Given:
    return {"kind": content.kind, "content": content.data.hex()}


def _open_box(given: Given) -> Given:
    return {"plaintext": box.open_(hexed(given["key"]), hexed(given["box"]), hexed(given["associated"])).hex()}


def _base64(given: Given) -> Given:
    return {"bytes": encoding.from_base64(given["text"]).hex()}


def _base64url(given: Given) -> Given:
    return {"bytes": encoding.from_url(given["text"]).hex()}


def collection_key(given: Given) -> CollectionKey:
    """The key that a vector gives."""
    return CollectionKey.of(hexed(given["account"]), given["vault"], given["collection"], hexed(given["collectionKey"]))


def vault_key(given: Given) -> VaultKey:
    """The key that a vector gives."""
    return VaultKey(account=hexed(given["account"]), vault=given["vault"], key=hexed(given["vaultKey"]))


def document(row: Given) -> Document:
    """A row as the server answers it."""
    return Document(
        uid=row["uid"],
        vault_uid=row["vaultUid"],
        collection=row["collection"],
        data=row["data"],
        hmac=row["hmac"],
        version=row["version"],
        created_at=row["createdAt"],
        updated_at=row["updatedAt"],
        deleted_at=row["deletedAt"],
    )


def _seal_document(given: Given) -> Given:
    kind = seal.DELETION if given["deletion"] else seal.DOCUMENT
    content = Content(given["kind"], hexed(given["content"]))
    keys = collection_key(given)
    made = seal.seal_content(keys, kind, given["uid"], given["version"], content, lambda _: hexed(given["salt"]))
    row = seal._row(keys, given["uid"], given["version"])
    return {"data": made.data, "hmac": made.hmac, "associated": (seal._LABEL[kind] + row).hex()}


def _open_document(given: Given) -> Given:
    opened = seal.open_document(collection_key(given), document(given["row"]))
    return {"deleted": opened.deleted, "purged": opened.purged} | _content(opened.content)


def _open_blob(given: Given) -> Given:
    row = given["row"]
    vault = Vault(row["uid"], row["name"], row["version"], row["updatedAt"], data=row["data"], salt=row["salt"])
    return _content(seal.open_blob(vault_key(given), vault))


def _ring(ring: Keyring) -> Given:
    return {
        "accountKey": ring.keys.key.hex(),
        "version": ring.version,
        "recoveryAuth": None if ring.recovery_auth is None else ring.recovery_auth.hex(),
        "vaults": [{"uid": entry.uid, "name": entry.name, "sealed": entry.sealed} for entry in ring.vaults],
    }


def _open_keyring(given: Given) -> Given:
    keys = PasswordKeys(auth=b"", wrap=hexed(given["wrap"]))
    return _ring(keyring.open_with_password(given["keyring"], keys, Descriptor.read(given["descriptor"])))


def _recover_keyring(given: Given) -> Given:
    return _ring(keyring.open_with_recovery(given["keyring"], RecoveryKey.read(given["recoveryKey"])))


def _reopen_keyring(given: Given) -> Given:
    return _ring(keyring.reopen(given["keyring"], AccountKey.of(hexed(given["accountKey"]))))


def _open_auth(given: Given) -> Given:
    key = RecoveryKey.read(given["recoveryKey"])
    return {"auth": recovery.open_auth(key, given["email"], Descriptor.read(given["descriptor"])).hex()}


def _seal_name(given: Given) -> Given:
    keys = AccountKey.of(hexed(given["accountKey"]))
    if "vault" in given:
        return {"sealed": names.seal_collection_name(keys.vault(given["vault"]), given["name"])}
    return {"sealed": names.seal_vault_name(keys, given["name"])}


def _open_name(given: Given) -> Given:
    keys = AccountKey.of(hexed(given["accountKey"]))
    if "vault" in given:
        return {"name": names.open_collection_name(keys.vault(given["vault"]), given["sealed"])}
    return {"name": names.open_vault_name(keys, given["sealed"])}


def _recovery_key(given: Given) -> Given:
    key = RecoveryKey.read(given["printed"])
    return {
        "secret": key.secret.hex(),
        "printed": key.printed(),
        "wrap": key.wrap().hex(),
        "auth": key.auth().hex(),
    }


def _token(given: Given) -> Given:
    token = tokens.read(given["token"])
    collection = token.keys.collection if isinstance(token.keys, CollectionKey) else ""
    return {
        "apiKey": token.api_key,
        "account": token.keys.account.hex(),
        "key": token.keys.key.hex(),
        "vault": token.vault,
        "collection": collection,
        "name": token.name,
        "sealed": token.sealed,
    }


def _remember_row(given: Given) -> Given:
    seen = rollback.next_row(rollback.SeenRow(*given["seen"]), document(given["row"]))
    return {"seen": [seen.version, seen.proof]}


def _remember_account(given: Given) -> Given:
    ring = keyring.reopen(given["keyring"], AccountKey.of(hexed(given["accountKey"])))
    descriptor = Descriptor.read(given["descriptor"])
    before = rollback.SeenAccount(**given["seen"])
    return {"version": rollback.next_account(before, ring, given["keyring"], descriptor).version}


OPERATIONS: dict[str, Callable[[Given], Given]] = {
    "password-keys": _password_keys,
    "split": _split,
    "normal-email": _email,
    "new-password": _new_password,
    "read-descriptor": _descriptor,
    "account-keys": _account,
    "vault-keys": _vault,
    "collection-keys": _collection,
    "padded-length": _padded_length,
    "pad": _pad,
    "unpad": _unpad,
    "open-box": _open_box,
    "base64": _base64,
    "base64url": _base64url,
    "seal-document": _seal_document,
    "open-document": _open_document,
    "open-blob": _open_blob,
    "open-keyring": _open_keyring,
    "recover-keyring": _recover_keyring,
    "reopen-keyring": _reopen_keyring,
    "open-auth": _open_auth,
    "seal-name": _seal_name,
    "open-name": _open_name,
    "read-recovery-key": _recovery_key,
    "read-token": _token,
    "remember-row": _remember_row,
    "remember-account": _remember_account,
}
