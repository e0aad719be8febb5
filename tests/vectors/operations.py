"""What a vector can ask for: each operation takes plain data and gives plain data, or refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client.errors import Tampered
from strongroom.client.format import (
    box,
    derive,
    encoding,
    keyring,
    keyring_body,
    keyring_merge,
    names,
    padding,
    parents,
    passkey,
    primitives,
    public_box,
    recovery,
    seal,
    tokens,
)
from strongroom.client.format.content import to_content, to_value
from strongroom.client.format.derive import Descriptor, Floor, PasswordKeys
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import CollectionKey, CollectionKeys, VaultKey, VaultKeys, keyring_key
from strongroom.client.format.keys import derive as below
from strongroom.client.format.padding import Content
from strongroom.client.format.parents import Link
from strongroom.client.format.passkey import PasskeyId, PasskeySecret
from strongroom.client.format.primitives import Random
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.operations import rollback
from strongroom.model import Document, Vault

Given = dict[str, Any]
hexed = bytes.fromhex


class Tape:
    """Randomness that a vector gives: what each draw gives, in order."""

    def __init__(self, draws: list[str]) -> None:
        self._draws = [hexed(draw) for draw in draws]

    def __call__(self, length: int) -> bytes:
        drawn = self._draws.pop(0)
        assert len(drawn) == length
        return drawn


def _random(given: Given) -> Random:
    random: Random = given["random"] if callable(given["random"]) else Tape(given["random"])
    return random


# Encodings, padding, boxes


def _items(given: Given) -> Given:
    spelled: dict[str, Callable[[Any], bytes]] = {
        "label": encoding.label,
        "text": encoding.text,
        "number": encoding.number,
        "bytes": hexed,
    }
    return {"items": encoding.items(*(spelled[kind](value) for kind, value in given["items"])).hex()}


def _short(given: Given) -> Given:
    return {"short": encoding.short(given["text"]).hex()}


def _base64(given: Given) -> Given:
    return {"bytes": encoding.from_base64(given["text"]).hex()}


def _base64url(given: Given) -> Given:
    return {"bytes": encoding.from_url(given["text"]).hex()}


def _to_base64(given: Given) -> Given:
    raw = hexed(given["bytes"])
    return {"base64": encoding.to_base64(raw), "base64url": encoding.to_url(raw)}


def _padded_length(given: Given) -> Given:
    return {"padded": padding.padded_length(given["length"])}


def _pad(given: Given) -> Given:
    return {"padded": padding.pad(Content(given["kind"], hexed(given["content"]))).hex()}


def _unpad(given: Given) -> Given:
    return _content(padding.unpad(hexed(given["padded"])))


def _content(content: Content) -> Given:
    return {"kind": content.kind, "content": content.data.hex()}


def _read_content(given: Given) -> Given:
    return {"value": to_value(Content(padding.JSON, hexed(given["json"])))}


def _write_content(given: Given) -> Given:
    return {"value": to_value(to_content(given["value"]))}


def _seal_box(given: Given) -> Given:
    made = box.seal(hexed(given["key"]), _random(given)(32), hexed(given["plaintext"]), hexed(given["associated"]))
    return {"box": made.hex()}


def _open_box(given: Given) -> Given:
    return {"plaintext": box.open_(hexed(given["key"]), hexed(given["box"]), hexed(given["associated"])).hex()}


def _key_pair(given: Given) -> Given:
    pair = KeyPair.of(hexed(given["secret"]))
    return {"private": pair.private.hex(), "public": pair.public.hex()}


def _seal_to(given: Given) -> Given:
    plaintext, associated = hexed(given["plaintext"]), hexed(given["associated"])
    return {"sealed": public_box.seal(hexed(given["public"]), plaintext, associated, _random(given)).hex()}


def _open_sealed(given: Given) -> Given:
    pair = KeyPair.of(hexed(given["secret"]))
    return {"plaintext": public_box.open_(pair, hexed(given["sealed"]), hexed(given["associated"])).hex()}


def _filler(given: Given) -> Given:
    return {"filler": public_box.filler(given["length"], _random(given)).hex()}


# From a password to keys, and the recovery key


def _password_keys(given: Given) -> Given:
    descriptor = Descriptor.read(given["descriptor"])
    salt = derive.kdf_salt(given["email"], descriptor)
    master = derive.master_key(salt, given["password"], descriptor)
    return {"salt": salt.hex(), "master": master.hex()} | _split({"master": master.hex()})


def _split(given: Given) -> Given:
    keys = derive.split(hexed(given["master"]))
    return {"auth": keys.auth.hex(), "wrap": keys.wrap.hex(), "password": keys.password}


def _email(given: Given) -> Given:
    return {"email": derive.normal_email(given["email"])}


def _new_password(given: Given) -> Given:
    derive.check_new_password(given["password"])
    return {"bytes": derive.normal_password(given["password"]).hex()}


def _new_descriptor(given: Given) -> Given:
    return {"descriptor": Descriptor.new(_random(given)).spelled()}


def _descriptor(given: Given) -> Given:
    descriptor = Descriptor.read(given["descriptor"], Floor(*given.get("floor", derive.FLOOR)))
    return {
        "memory": descriptor.memory,
        "passes": descriptor.passes,
        "salt": descriptor.salt.hex(),
        "recovery": descriptor.recovery.hex(),
    }


def _recovery_key(given: Given) -> Given:
    key = RecoveryKey.read(given["printed"])
    return {"secret": key.secret.hex(), "printed": key.printed()}


def _print_recovery_key(given: Given) -> Given:
    key = RecoveryKey(hexed(given["secret"]))
    return {
        "printed": key.printed(),
        "wrap": key.wrap().hex(),
        "wrapPublic": KeyPair.of(key.wrap()).public.hex(),
        "authPublic": key.auth().public.hex(),
    }


def _seal_auth(given: Given) -> Given:
    keys = PasswordKeys(auth=hexed(given["auth"]), wrap=b"")
    descriptor = Descriptor.read(given["descriptor"])
    made = recovery.seal_auth(hexed(given["authPublic"]), given["email"], descriptor, keys, _random(given))
    return {"descriptor": made.spelled()}


def _open_auth(given: Given) -> Given:
    key = RecoveryKey.read(given["recoveryKey"])
    return {"auth": recovery.open_auth(key, given["email"], Descriptor.read(given["descriptor"])).hex()}


# Keys


def _keyring_key(given: Given) -> Given:
    return {"keyring": keyring_key(hexed(given["accountKey"])).hex()}


def _storage_keys(given: Given) -> Given:
    seed, id_ = hexed(given["seed"]), encoding.text(given["id"])
    made = {name: below(seed, f"replica-{name}").hex() for name in ("vault", "renamed", "contents", "email")}
    return {**made, "session": below(seed, "session-file", id_).hex()}


def vault_key(key: str) -> VaultKey:
    """A vault's key alone, without its place."""
    return VaultKey(account=b"", vault="", generation=1, key=hexed(key))


def _vault(given: Given) -> Given:
    keys = vault_key(given["vaultKey"])
    return {"blob": keys.blob().hex(), "names": keys.names().hex()}


def _collection(given: Given) -> Given:
    keys = vault_key(given["vaultKey"]).collection(given["collection"])
    return {"key": keys.key.hex(), "sealing": keys.sealing.hex(), "proving": keys.proving.hex()}


def vault_keys(given: Given) -> VaultKeys:
    """The keys of a vault that a vector gives."""
    keys = [(generation, hexed(key)) for generation, key in given["vaultKeys"]]
    former = [(generation, hexed(key)) for generation, key in given.get("namesKeys", [])]
    floor = given.get("floor", 1)
    return VaultKeys.build(hexed(given["account"]), given["vault"], keys, floor=floor, former=former)


def collection_keys(given: Given) -> CollectionKeys:
    """The keys of a collection that a vector gives."""
    return CollectionKeys(
        account=hexed(given["account"]),
        vault=given["vault"],
        name="",
        wires=tuple(given["wires"]),
        keys=tuple(CollectionKey.of(generation, hexed(key)) for generation, key in given["collectionKeys"]),
        floor=given.get("floor", 1),
    )


# The keyring


def _ring(ring: Keyring) -> Given:
    return {
        "accountKey": ring.key.hex(),
        "account": ring.account.hex(),
        "version": ring.version,
        "generation": ring.generation,
        "previous": ring.previous.hex(),
        "digest": ring.digest.hex(),
        "body": keyring_body.to_json(ring),
    }


def ring_of(given: Given) -> Keyring:
    """A keyring that is not sealed yet."""
    account, version, generation = hexed(given["account"]), given["version"], given["generation"]
    previous = hexed(given["previous"])
    body = Content(padding.JSON, msgspec.json.encode(given["body"]))
    return Keyring(
        **msgspec.structs.asdict(keyring_body.decode(body, account, version, generation, previous)),
        key=hexed(given["accountKey"]),
        generation=generation,
        version=version,
        previous=previous,
        sealed_slots=hexed(given["slots"]),
        digest=b"",
    )


def _seal_keyring(given: Given) -> Given:
    return {"keyring": keyring.seal(ring_of(given), _random(given), password=_wrap(given))[0]}


def _wrap(given: Given) -> PasswordKeys | None:
    return PasswordKeys(auth=b"", wrap=hexed(given["wrap"])) if "wrap" in given else None


def _password(given: Given) -> tuple[PasswordKeys, Descriptor]:
    return PasswordKeys(auth=b"", wrap=hexed(given["wrap"])), Descriptor.read(given["descriptor"])


def _merge_keyrings(given: Given) -> Given:
    key = hexed(given["accountKey"])
    one, other = (keyring.reopen(text, key) for text in given["keyrings"])
    assert keyring_merge.merge(one, other) == keyring_merge.merge(other, one)
    made = keyring_merge.merge(one, other)
    return {"version": made.version, "previous": made.previous.hex(), "body": keyring_body.to_json(made)}


def _open_keyring(given: Given) -> Given:
    return _ring(keyring.open_with_password(given["keyring"], *_password(given)))


def _recover_keyring(given: Given) -> Given:
    return _ring(keyring.open_with_recovery(given["keyring"], RecoveryKey.read(given["recoveryKey"])))


def _reopen_keyring(given: Given) -> Given:
    return _ring(keyring.reopen(given["keyring"], hexed(given["accountKey"])))


def _open_slot(given: Given) -> Given:
    slot = hexed(given["slot"])
    if len(slot) != keyring._SLOT:
        raise Tampered
    payload = public_box.open_(KeyPair.of(hexed(given["secret"])), slot, hexed(given["associated"]))
    return {"generation": int.from_bytes(payload[:4], "big"), "accountKey": payload[4:].hex()}


def _passkey(given: Given) -> PasskeySecret:
    return PasskeySecret.of(given["rpId"], hexed(given["credential"]), hexed(given["prf"]))


def _passkey_input(_given: Given) -> Given:
    salt = primitives.sha256(b"WebAuthn PRF\0" + passkey.INPUT)
    return {"input": passkey.INPUT.hex(), "salt": salt.hex()}


def _passkey_keys(given: Given) -> Given:
    account, secret = hexed(given["account"]), _passkey(given)
    wrap = secret.wrap(account)
    public = KeyPair.of(wrap).public
    return {"wrap": wrap.hex(), "public": public.hex(), "associated": secret.passkey.slot(account).hex()}


def _unlock_keyring(given: Given) -> Given:
    return _ring(keyring.open_with_passkey(given["keyring"], _passkey(given)))


def _change_keyring(given: Given) -> Given:
    ring, random = keyring.reopen(given["keyring"], hexed(given["accountKey"])), _random(given)
    change = given["change"]
    match change["do"]:
        case "add vault":
            ring = ring.with_vault(change["uid"], change["name"], sealed=change["sealed"], random=random)
        case "made":
            ring = ring.with_entry(change["uid"], made=True)
        case "rename":
            ring = ring.with_entry(change["uid"], name=change["name"])
        case "delete vault":
            ring = ring.without_vault(change["uid"])
        case "rotate vault":
            ring = ring.with_rotated_vault(change["uid"], random)
        case "rotate":
            ring = ring.rotated(random)
        case "floor":
            ring = ring.with_floors({change["uid"]: change["floor"]}) or ring
        case "password":
            ring = ring.with_password(*_password(change), random)
        case "recovery":
            ring = ring.with_recovery(RecoveryKey(hexed(change["secret"])), random)
            ring = ring.with_password(*_password(change), random)
        case "no recovery":
            ring = ring.without_recovery().with_password(*_password(change), random)
        case "add passkey":
            ring = ring.with_passkey(_passkey(change), random)
        case "remove passkey":
            ring = ring.without_passkey(PasskeyId.of(change["rpId"], hexed(change["credential"])))
    return {"keyring": keyring.seal(ring, random, password=_wrap(change))[0]}


# Names, rows, blobs


def _seal_name(given: Given) -> Given:
    key = vault_keys(given).newest
    if given["of"] == "vault":
        return {"sealed": names.seal_vault_name(key, given["name"])}
    return {"sealed": names.seal_collection_name(key, given["name"])}


def _open_name(given: Given) -> Given:
    if given["of"] == "vault":
        return {"name": names.open_vault_name(vault_keys(given), given["sealed"])}
    return {"name": names.open_collection_name(vault_keys(given), given["sealed"])}


def _collection_names(given: Given) -> Given:
    made = names.collection_keys(vault_keys(given), given["name"], sealed=given["sealed"])
    return {"wires": list(made.wires)}


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
    keys, uid, version, parent = collection_keys(given), given["uid"], given["version"], hexed(given["parent"])
    made = seal.seal_content(keys, kind, uid, version, content, parent=parent, random=_random(given))
    row = seal._row(keys, keys.newest, keys.wire, encoding.checked_uid(uid), version, parent)
    return {"data": made.data, "hmac": made.hmac, "associated": (seal._LABEL[kind] + row).hex()}


def _open_document(given: Given) -> Given:
    return _opened(seal.open_document(collection_keys(given), document(given["row"])))


def _open_past_document(given: Given) -> Given:
    return _opened(seal.open_past_document(collection_keys(given), document(given["row"])))


def _opened(opened: seal.Opened) -> Given:
    return {
        "deleted": opened.deleted,
        "purged": opened.purged,
        "generation": opened.generation,
        "parent": opened.parent.hex(),
    } | _content(opened.content)


def _trace(given: Given) -> Given:
    read = seal.blob_lineage if given["of"] == "blob" else seal.lineage
    history = [Link(*link) for link in given["history"]]
    return {"descent": parents.trace(Link(*given["newest"]), Link(*given["seen"]), history, read).value}


def _link(given: Given) -> Given:
    row = document(given["row"])
    return {"link": list(seal.link(row)), "parentAfter": seal.parent_after(row).hex()}


def _seal_blob(given: Given) -> Given:
    content = Content(given["kind"], hexed(given["content"]))
    made = seal.seal_blob_content(
        vault_keys(given),
        given["name"],
        given["version"],
        content,
        parent=hexed(given["parent"]),
        random=_random(given),
    )
    return {"data": made.data, "salt": made.salt}


def _open_blob(given: Given) -> Given:
    row = given["row"]
    vault = Vault(row["uid"], row["name"], row["version"], row["updatedAt"], data=row["data"], salt=row["salt"])
    opened = seal.open_blob(vault_keys(given), vault)
    place = {"generation": seal.blob_generation(row["data"]), "parent": seal.blob_parent(row["data"]).hex()}
    return place | _content(opened)


# Tokens


def _make_token(given: Given) -> Given:
    keys: VaultKeys | CollectionKeys
    if given["scope"] == tokens.COLLECTION:
        keys = msgspec.structs.replace(collection_keys(given), name=given["name"])
    else:
        keys = vault_keys(given)
    sealed = given["scope"] != tokens.PLAIN_VAULT
    made = tokens.Token(api_key=given["apiKey"], keys=keys, keyring=given["keyring"], name=given["name"], sealed=sealed)
    return {"token": made.spelled()}


def _read_token(given: Given) -> Given:
    token = tokens.read(given["token"])
    part = isinstance(token.keys, CollectionKeys)
    return {
        "apiKey": token.api_key,
        "account": token.keys.account.hex(),
        "scope": tokens.COLLECTION if part else tokens.VAULT if token.sealed else tokens.PLAIN_VAULT,
        "vault": token.vault,
        "name": token.name,
        "floor": token.keys.floor,
        "keyring": token.keyring,
        "keys": [[key.generation, key.key.hex()] for key in token.keys.keys],
        "namesKeys": []
        if isinstance(token.keys, CollectionKeys)
        else [[key.generation, key.key.hex()] for key in token.keys.former],
        "collections": list(token.keys.wires) if isinstance(token.keys, CollectionKeys) else [],
    }


# What a device remembers


def _remember_row(given: Given) -> Given:
    before = None if given["seen"] is None else rollback.SeenRow(*given["seen"])
    seen = rollback.next_row(before, document(given["row"]))
    return {"seen": [seen.version, seen.proof, seen.collection]}


def _remember_blob(given: Given) -> Given:
    rollback.check_blob(*given["seen"], *given["shown"])
    return {"digest": rollback.digest(given["shown"][1])}


def _remember_account(given: Given) -> Given:
    ring = keyring.reopen(given["keyring"], hexed(given["accountKey"]))
    before = None if given["seen"] is None else rollback.SeenAccount(**given["seen"])
    seen = rollback.next_account(before, ring, Descriptor.read(given["descriptor"]))
    return {"seen": msgspec.to_builtins(seen)}


OPERATIONS: dict[str, Callable[[Given], Given]] = {
    "items": _items,
    "short": _short,
    "base64": _base64,
    "base64url": _base64url,
    "to-base64": _to_base64,
    "padded-length": _padded_length,
    "pad": _pad,
    "unpad": _unpad,
    "read-content": _read_content,
    "write-content": _write_content,
    "seal-box": _seal_box,
    "open-box": _open_box,
    "key-pair": _key_pair,
    "seal-to": _seal_to,
    "open-sealed": _open_sealed,
    "filler": _filler,
    "password-keys": _password_keys,
    "split": _split,
    "normal-email": _email,
    "new-password": _new_password,
    "new-descriptor": _new_descriptor,
    "read-descriptor": _descriptor,
    "read-recovery-key": _recovery_key,
    "print-recovery-key": _print_recovery_key,
    "seal-auth": _seal_auth,
    "open-auth": _open_auth,
    "keyring-key": _keyring_key,
    "storage-keys": _storage_keys,
    "vault-keys": _vault,
    "collection-keys": _collection,
    "seal-keyring": _seal_keyring,
    "change-keyring": _change_keyring,
    "merge-keyrings": _merge_keyrings,
    "open-keyring": _open_keyring,
    "recover-keyring": _recover_keyring,
    "reopen-keyring": _reopen_keyring,
    "open-slot": _open_slot,
    "passkey-input": _passkey_input,
    "passkey-keys": _passkey_keys,
    "unlock-keyring": _unlock_keyring,
    "seal-name": _seal_name,
    "open-name": _open_name,
    "collection-names": _collection_names,
    "seal-document": _seal_document,
    "open-document": _open_document,
    "open-past-document": _open_past_document,
    "link": _link,
    "trace": _trace,
    "seal-blob": _seal_blob,
    "open-blob": _open_blob,
    "make-token": _make_token,
    "read-token": _read_token,
    "remember-row": _remember_row,
    "remember-blob": _remember_blob,
    "remember-account": _remember_account,
}

# Those that write what others read; the others read, or derive.
WRITERS = frozenset(
    {
        "items",
        "short",
        "to-base64",
        "padded-length",
        "pad",
        "write-content",
        "seal-box",
        "seal-to",
        "filler",
        "new-descriptor",
        "print-recovery-key",
        "seal-auth",
        "seal-keyring",
        "change-keyring",
        "passkey-input",
        "seal-name",
        "collection-names",
        "seal-document",
        "seal-blob",
        "make-token",
    }
)

# The readers that the format stands on, by what they read.
READERS = {
    "keyring": {"open-keyring", "recover-keyring", "reopen-keyring"},
    "slot": {"open-slot"},
    "passkey": {"unlock-keyring"},
    "row": {"open-document", "open-past-document"},
    "content": {"read-content"},
    "blob": {"open-blob"},
    "token": {"read-token"},
    "name": {"open-name"},
    "recovery key": {"read-recovery-key"},
    "descriptor": {"read-descriptor"},
    "recovery box": {"open-auth"},
    "box": {"open-box"},
    "sealed box": {"open-sealed"},
}
