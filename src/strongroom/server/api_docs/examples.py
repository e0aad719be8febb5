"""Examples for the OpenAPI description. A test decodes each with its struct."""

from __future__ import annotations

from typing import Any, Final

from strongroom import errors, wire
from strongroom.errors import Refusal
from strongroom.model import Document, SecondFactors, VaultBlob

_UID: Final = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
_VAULT_UID: Final = "0192f0c0-11aa-7bbb-8ccc-0123456789ab"
_EPOCH: Final = "0192f000-5e1f-7a11-9b0c-6d7e8f901234"
_NOW: Final = 1_731_600_000_000
_ACCESS: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.<access>.<signature>"
_REFRESH: Final = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.<refresh>.<signature>"
_USER: Final = {"id": "0192f0bf-0a0b-7c0d-8e0f-101112131415", "email": "ada@example.com"}
_LOGIN: Final = {"email": "ada@example.com", "password": "correct horse battery staple"}
_KDF: Final = {
    "format": 2,
    "kdf": "argon2id",
    "lanes": 1,
    "memory": 65_536,
    "passes": 3,
    "recovery": "L+V9o0fNYkTY...",
    "salt": "c2FsdC1zYWx0LXNhbHQtcw==",
    "secretKey": False,
}
_RECOVERY_CODE: Final = "7K3M-Q0ZD-V9XA-41TE"
_KEY_SHARE: Final = "c2hhcmUgb2YgYSBrZXksIG9mIDMyIGJ5dGVzIGhlcmU="
_KEYRING: Final = "AgQBkvDAEap7u4zM"
_VAULT: Final = {
    "uid": _VAULT_UID,
    "name": "personal",
    "version": 1,
    "updatedAt": _NOW,
    "documents": 12,
    "bytes": 48_211,
    "epoch": _EPOCH,
    "data": "AZx3...sealed...",
    "salt": "c2FsdC1zYWx0LXNhbHQ=",
}
_DOCUMENT: Final = {
    "uid": _UID,
    "vaultUid": _VAULT_UID,
    "collection": "notes",
    "data": "q83vEjRWeJCrze8SNFZ4kA==",
    "hmac": "b1946ac92492d234",
    "version": 1,
    "createdAt": _NOW,
    "updatedAt": _NOW,
    "deletedAt": None,
}
_SCOPE: Final = {"permissions": ["read", "write"], "vaultUids": [_VAULT_UID], "collections": None}
_KEY: Final = {"uid": _UID, "name": "backup script", **_SCOPE, "expiresAt": None}
_FROM: Final = {"address": "192.0.2.7", "userAgent": "curl/8.9"}
_DEVICE: Final = {"deviceName": "Ada's laptop"}
_SESSION: Final = {"id": _UID, "createdAt": _NOW, "lastUsedAt": _NOW, **_FROM, "current": True, **_DEVICE}
_CHANGED: Final = {"uid": _UID, "vaultUid": _VAULT_UID, "collection": "notes", "version": 2}
_KEPT: Final = {"version": 1, "updatedAt": _NOW, "replacedAt": _NOW + 60_000, "bytes": 40}
_CREDENTIAL_ID: Final = "h66NjmKn3MlckQeXlTMiJooMOEYCmdQPP5eGVDuw5zc"
_CHALLENGE: Final = "Qm9y4kJw1cN0m5fV3oZ7pX2aL8sT6hR0dGkEuYvCbnI"
_ASSERTION: Final = {
    "id": _CREDENTIAL_ID,
    "response": {
        "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0Ii",
        "authenticatorData": "SZYN5YgOjGh0NBcPZHZgW4_krrmihjLHmVzzuoMdl2MFAAAAAg",
        "signature": "MEUCIQCZs98ZEsavQ7DccNNYwRnZ0BsFop4k2lsr5b0",
        "userHandle": "AZLwvwoLfA2ODxAREhMUFQ",
    },
}
_PASSKEY: Final = {
    "uid": _UID,
    "credentialId": _CREDENTIAL_ID,
    "name": "Ada's phone",
    "prf": True,
    "createdAt": _NOW,
    "lastUsedAt": None,
}
_LIST: Final = {"documents": [_DOCUMENT], "hasMore": False, "next": _NOW}

OF: Final[dict[type[Any], dict[str, Any]]] = {
    wire.requests.Register: {**_LOGIN, "kdf": _KDF, "keyring": _KEYRING, **_DEVICE},
    wire.requests.Prelogin: {"email": _LOGIN["email"]},
    wire.responses.Derivation: {"kdf": _KDF},
    wire.requests.PutKeyring: {"keyring": _KEYRING, "version": 1},
    wire.responses.Keyring: {"keyring": _KEYRING, "version": 1, "updatedAt": _NOW, "kdf": _KDF},
    wire.responses.KeyringVersions: {"versions": [{**_KEPT, "bytes": 2_196}]},
    wire.requests.LogIn: {**_LOGIN, **_DEVICE},
    wire.requests.FinishLogin: {"ticket": "srt_" + "x" * 43, "secondFactor": {"code": "492039"}},
    wire.requests.ChangeSecondFactor: {
        "currentPassword": _LOGIN["password"],
        "secondFactor": {"recoveryCode": _RECOVERY_CODE},
    },
    wire.requests.ConfirmOneTimeCodes: {"code": "492039"},
    wire.responses.Enrolment: {
        "secret": "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP",
        "uri": "otpauth://totp/vault.example.com:ada@example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
        "&issuer=vault.example.com&algorithm=SHA1&digits=6&period=30",
    },
    wire.responses.RecoveryCodes: {"recoveryCodes": [_RECOVERY_CODE]},
    SecondFactors: {"totpSince": _NOW, "passkeys": 1, "recoveryCodes": 9},
    wire.requests.ProvePasskeyChange: {"currentPassword": _LOGIN["password"], "secondFactor": {"code": "492039"}},
    wire.requests.AddPasskey: {
        "name": "Ada's phone",
        "prf": True,
        "credential": {
            "id": _CREDENTIAL_ID,
            "response": {"clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIi", "attestationObject": "o2NmbXRkbm9uZQ"},
        },
    },
    wire.requests.RenamePasskey: {"name": "Ada's old phone"},
    wire.requests.BeginPasskeyLogin: {"ticket": "srt_" + "x" * 43},
    wire.requests.PasskeyLogIn: {"credential": _ASSERTION, **_DEVICE},
    wire.responses.Passkeys: {"passkeys": [_PASSKEY]},
    wire.responses.AddedPasskey: {"passkey": _PASSKEY, "recoveryCodes": [_RECOVERY_CODE]},
    wire.responses.PasskeyRequest: {
        "publicKey": {
            "challenge": _CHALLENGE,
            "timeout": 300_000,
            "rpId": "vault.example.com",
            "allowCredentials": [],
            "userVerification": "required",
        }
    },
    wire.responses.PasskeyCreation: {
        "publicKey": {
            "rp": {"id": "vault.example.com", "name": "vault.example.com"},
            "user": {"id": "AZLwvwoLfA2ODxAREhMUFQ", "name": _USER["email"], "displayName": _USER["email"]},
            "challenge": _CHALLENGE,
            "pubKeyCredParams": [{"alg": number, "type": "public-key"} for number in (-8, -7, -257)],
            "timeout": 300_000,
            "excludeCredentials": [{"id": _CREDENTIAL_ID, "type": "public-key"}],
            "authenticatorSelection": {
                "residentKey": "preferred",
                "requireResidentKey": False,
                "userVerification": "required",
            },
            "attestation": "none",
        }
    },
    wire.requests.Refresh: {"refreshToken": _REFRESH},
    wire.requests.PutKeyShare: {"keyShare": _KEY_SHARE},
    wire.responses.KeptKeyShare: {"sessionId": _UID, "expiresAt": _NOW},
    wire.requests.LogOut: {"everywhere": False},
    wire.requests.ChangePassword: {"currentPassword": "correct horse battery staple", "newPassword": "a better one"},
    wire.requests.DeleteAccount: {"password": "correct horse battery staple"},
    wire.responses.Sessions: {"sessions": [_SESSION]},
    wire.responses.Events: {"events": [{"id": _UID, "type": "login", "createdAt": _NOW, **_FROM}], "hasMore": False},
    wire.requests.CreateVault: {"name": "personal"},
    wire.requests.CreateContainer: {"name": "personal"},
    wire.requests.CreateBlob: {"name": "personal", "data": _VAULT["data"], "salt": _VAULT["salt"]},
    wire.requests.PutVault: {"name": "private", "version": 1},
    wire.requests.RenameVault: {"name": "private", "version": 1},
    wire.requests.PutBlob: {"data": _VAULT["data"], "salt": _VAULT["salt"], "version": 1},
    wire.requests.CreateDocument: {"collection": "notes", "data": _DOCUMENT["data"], "hmac": _DOCUMENT["hmac"]},
    wire.requests.PutDocument: {"data": "EjRWeJCrze8SNFZ4kKvN7w==", "hmac": None, "version": 1},
    wire.requests.DeleteDocument: {"version": 2},
    wire.requests.Batch: {
        "operations": [
            {"op": "create", "collection": "notes", "data": _DOCUMENT["data"]},
            {"op": "put", "uid": _UID, "data": "EjRWeJCrze8SNFZ4kKvN7w==", "hmac": None, "version": 1},
            {"op": "delete", "uid": _VAULT_UID, "version": 4},
        ]
    },
    wire.requests.CreateApiKey: {"name": "backup script", "permissions": ["read"]},
    wire.responses.SignedIn: {"accessToken": _ACCESS, "refreshToken": _REFRESH, "user": _USER, "token": _ACCESS},
    wire.responses.Tokens: {"accessToken": _ACCESS, "refreshToken": _REFRESH, "keyShare": _KEY_SHARE},
    wire.responses.Me: {
        "user": _USER,
        "usage": {"documents": 12, "bytes": 48_211},
        "limits": {"documents": None, "bytes": None},
    },
    wire.responses.Health: {"status": "ok", "timestamp": _NOW, "epoch": _EPOCH, "version": "0.1.0", "schema": 14},
    wire.responses.ReadyReport: {
        "status": "ready",
        "checks": {"database": "ok", "schema": "ok", "passwords": "ok", "disk": "ok"},
    },
    wire.responses.Done: {"success": True},
    wire.responses.Deleted: {"success": True, **_DOCUMENT, "version": 2, "updatedAt": _NOW + 1, "deletedAt": _NOW + 1},
    wire.responses.Vaults: {"vaults": [_VAULT]},
    wire.responses.Documents: _LIST,
    wire.responses.Synced: {**_LIST, "syncedAt": _NOW},
    wire.responses.Versions: {"versions": [{**_KEPT, "deletedAt": None}]},
    wire.responses.BlobVersions: {"versions": [_KEPT]},
    wire.responses.History: {
        "versions": [{"uid": _UID, "version": 1, "hmac": _DOCUMENT["hmac"], "updatedAt": _NOW}],
        "hasMore": False,
        "next": _NOW,
    },
    VaultBlob: {name: _VAULT[name] for name in ("uid", "version", "updatedAt", "data", "salt", "name")},
    wire.responses.Collections: {"collections": ["letters", "notes"], "hasMore": False},
    wire.responses.Purged: {"purged": 3, "hasMore": False},
    wire.responses.Results: {"results": [_DOCUMENT]},
    wire.responses.NewApiKey: {**_KEY, "key": "srk_" + "x" * 48, "createdAt": _NOW},
    wire.responses.ApiKeys: {"keys": [{**_KEY, "createdAt": _NOW, "lastUsedAt": None}]},
    wire.events.Ready: {"cursor": _NOW, "epoch": _EPOCH},
    wire.events.DocumentChanged: {**_CHANGED, "updatedAt": _NOW + 1, "deletedAt": None},
    wire.events.VaultChanged: {
        "uid": _VAULT_UID,
        "kind": "renamed",
        "name": "private",
        "version": 2,
        "updatedAt": _NOW + 2,
    },
    wire.events.Ended: {"reason": "token_expired"},
    wire.responses.Vault: _VAULT,
    wire.responses.Imported: {
        "keyrings": 1,
        "keyringVersions": 4,
        "vaults": 2,
        "documents": 1180,
        "versions": 342,
        "blobVersions": 7,
        "leftOut": 0,
    },
    Document: _DOCUMENT,
}

STREAM: Final = "".join(
    f"{place}event: {name}\ndata: {wire.encode(OF[kind]).decode()}\n\n"
    for place, name, kind in (
        (f"id: {_NOW}\n", "ready", wire.events.Ready),
        (f"id: {_NOW + 1}\n", "document", wire.events.DocumentChanged),
        ("", "end", wire.events.Ended),
    )
)


def without_blob(example: dict[str, Any]) -> dict[str, Any]:
    """The example of a vault without the fields of a blob."""
    if "vaults" in example:
        return {"vaults": [without_blob(vault) for vault in example["vaults"]]}
    return {key: value for key, value in example.items() if key not in {"data", "salt"}}


def refusal(kind: type[Refusal]) -> dict[str, Any]:
    """The example of an error response."""
    error: dict[str, Any] = {"code": kind.code, "message": kind.sentence, "requestId": "8f14e45fceea167a5a36dedd"}
    if kind is errors.Invalid:
        error["details"] = {"fields": {"name": "is required"}}
    elif kind is errors.BatchConflict:
        why = {"code": errors.DocumentConflict.code, "message": errors.DocumentConflict.sentence}
        error["details"] = {
            "operations": [{"index": 1, "op": "put", "uid": _UID, **why, "version": 3, "updatedAt": _NOW}]
        }
    elif kind is errors.SecondFactorRequired:
        error["details"] = {"ticket": "srt_" + "x" * 43, "expiresAt": _NOW + 300_000, "methods": ["totp"]}
    elif issubclass(kind, errors.Conflict):
        error["details"] = {"version": 3, "updatedAt": _NOW}
    return {"error": error}
