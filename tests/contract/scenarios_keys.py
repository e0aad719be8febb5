"""Scenarios of API keys: how one is made, what it may not do, and what it does not reveal."""

from tests.kit.network.responses import Json

from .checks import UNKNOWN
from .scenarios import Scenario

KEYS = [
    Scenario("a key opens no vault of another", "GET", "/vault/{bob.vault}", 404, "vault_not_found",
             sent_by="anns_key"),
    Scenario("a key lists no documents of another", "GET", "/vaults/{bob.vault}/documents", 404, "vault_not_found",
             sent_by="anns_key"),
    Scenario("a key sees no keys", "GET", "/auth/api-keys", 403, "insufficient_scope",
             sent_by="anns_key", json={"name": "child"}),
    Scenario("a key makes no keys", "POST", "/auth/api-keys", 403, "insufficient_scope",
             sent_by="anns_key", json={"name": "child"}),
    Scenario("a key revokes no keys", "DELETE", "/auth/api-keys/{unknown}", 403, "insufficient_scope",
             sent_by="anns_key", json={"name": "child"}),
    Scenario("a key logs nobody out", "POST", "/auth/logout", 403, "insufficient_scope",
             sent_by="anns_key", json={"name": "child"}),
    Scenario("an unknown key is not revoked", "DELETE", "/auth/api-keys/{unknown}", 404, "api_key_not_found"),
    Scenario("a key whose uid is a word is not revoked", "DELETE", "/auth/api-keys/not-a-uuid",
             404, "api_key_not_found"),
    Scenario("a key whose uid is NUL is not revoked", "DELETE", "/auth/api-keys/%00", 404, "api_key_not_found"),
    Scenario("a key for an unknown vault", "POST", "/auth/api-keys", 404, "vault_not_found",
             json={"name": "x", "vaultUids": ["{my.vault}", "{unknown}"]}),
    Scenario("a key for a vault of another", "POST", "/auth/api-keys", 404, "vault_not_found",
             json={"name": "x", "vaultUids": ["{my.vault}", "{bob.vault}"]}),
    Scenario("a key without a name", "POST", "/auth/api-keys", 400, "validation_error", json={}, bad_fields=("name",)),
    Scenario("every bad field of a key", "POST", "/auth/api-keys", 400, "validation_error",
             json={"name": "", "permissions": [], "expiresAt": "x"}, bad_fields=("name", "permissions", "expiresAt")),
]  # fmt: skip

BAD_SCOPES: dict[str, Json] = {
    "expiresAt in the past": {"expiresAt": 1_000_000},
    "expiresAt in seconds": {"expiresAt": 1_900_000_000},
    "expiresAt negative": {"expiresAt": -1},
    "expiresAt text": {"expiresAt": "2099-01-01"},
    "expiresAt fraction": {"expiresAt": 4102444800000.5},
    "expiresAt true": {"expiresAt": True},
    "permissions empty": {"permissions": []},
    "permissions unknown": {"permissions": ["read", "admin"]},
    "permissions text": {"permissions": "read"},
    "permissions number": {"permissions": [1]},
    "vaultUids empty": {"vaultUids": []},
    "vaultUids text": {"vaultUids": UNKNOWN},
    "vaultUids number": {"vaultUids": [7]},
    "collections empty": {"collections": []},
    "collections text": {"collections": "notes"},
    "collections number": {"collections": [7]},
    "collections blank": {"collections": [""]},
    "collections control": {"collections": ["a\nb"]},
    "collections long": {"collections": ["x" * 256]},
    "collections of too many bytes": {"collections": ["\N{KEY}" * 129]},
}

SCOPES = [
    Scenario(f"a key with {name}", "POST", "/auth/api-keys", 400, "validation_error",
             json={"name": "bad", **scope}, bad_fields=tuple(scope))
    for name, scope in BAD_SCOPES.items()
]  # fmt: skip

COLLECTIONS = [
    Scenario(f"a key for another collection: {road}", "GET", "/vaults/{ann.shelf}/documents" + road,
             403, "insufficient_scope", sent_by="anns_clerk")
    for road in [
        "?collection=closed",
        "?collection=nowhere",
        "?since=0&collection=closed",
        "?since=0&collection=nowhere",
        "/sync?collection=closed",
        "/sync?collection=nowhere",
    ]
]  # fmt: skip
