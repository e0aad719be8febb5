"""Scenarios of vaults: names, renaming, blobs, and what a server of one variant leaves out."""

from .checks import BLOB
from .scenarios import Scenario

EVERY_KIND = ("ann", "dora", "bill")  # on a server of both variants, of Variant A, of Variant B
RENAMING = ("ann", "dora")
WITH_BLOBS = ("ann", "bill")
ON_BLOB = ("bill", "stranger_of_blob")

VAULTS = [
    Scenario("a new account has no vaults", "GET", "/vault", 200, sent_by="newcomer", body={"vaults": []}),
    Scenario("a taken name", "POST", "/vault", 409, "vault_already_exists",
             sent_by=EVERY_KIND, json={"name": "{my.taken_name}", **BLOB}),
    Scenario("a vault without a name", "POST", "/vault", 400, "validation_error",
             sent_by=EVERY_KIND, json=BLOB, bad_fields=("name",)),
]  # fmt: skip

BY_NAME = [
    Scenario("an unknown name", "GET", "/vault/by-name/unknown", 404, sent_by="newcomer"),
    Scenario("a name that is NUL", "GET", "/vault/by-name/%00", 404, sent_by="newcomer"),
    Scenario("a name that is one byte of no UTF-8", "GET", "/vault/by-name/%FF", 404, sent_by="newcomer"),
    Scenario("a name that is no UTF-8", "GET", "/vault/by-name/%E2%28%A1", 404, sent_by="newcomer"),
    Scenario("a name of 2000 letters", "GET", "/vault/by-name/" + "x" * 2000, 404, sent_by="newcomer"),
    Scenario("a name that is a slash", "GET", "/vault/by-name/%2F", 404, sent_by="newcomer"),
    Scenario("a name that is half an escape", "GET", "/vault/by-name/%", 404, sent_by="newcomer"),
    Scenario("by no name", "GET", "/vault/by-name", 404, sent_by="newcomer"),
    Scenario("by an empty name", "GET", "/vault/by-name/", 404, sent_by="newcomer"),
]

RENAMES = [
    Scenario("a rename without a version", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new"}, bad_fields=("version",)),
    Scenario("a rename at a version in text", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new", "version": "1"}, bad_fields=("version",)),
    Scenario("a rename at half a version", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new", "version": 1.5}, bad_fields=("version",)),
    Scenario("a rename at the version true", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new", "version": True}, bad_fields=("version",)),
    Scenario("a rename at the version null", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new", "version": None}, bad_fields=("version",)),
    Scenario("a rename at a list of versions", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={"name": "new", "version": [1]}, bad_fields=("version",)),
    Scenario("a change that changes nothing", "PUT", "/vault/{my.vault}", 400, "validation_error",
             sent_by=RENAMING, json={}),
]  # fmt: skip

BLOBS = [
    Scenario("a new vault with data alone", "POST", "/vault", 400, "validation_error",
             sent_by=WITH_BLOBS, json={"name": "half", "data": BLOB["data"]}),
    Scenario("a new vault with salt alone", "POST", "/vault", 400, "validation_error",
             sent_by=WITH_BLOBS, json={"name": "half", "salt": BLOB["salt"]}),
    Scenario("an update with data alone", "PUT", "/vault/{my.blob_vault}", 400, "validation_error",
             sent_by=WITH_BLOBS, json={"data": BLOB["data"]}),
    Scenario("an update with salt alone", "PUT", "/vault/{my.blob_vault}", 400, "validation_error",
             sent_by=WITH_BLOBS, json={"salt": BLOB["salt"]}),
    Scenario("both halves of a bad blob", "POST", "/vault", 400, "validation_error",
             sent_by=WITH_BLOBS, json={"name": "bad", "data": "", "salt": "no base64!"}, bad_fields=("data", "salt")),
    Scenario("Variant B: a vault without a blob", "POST", "/vault", 400, "validation_error",
             sent_by="bill", json={"name": "bare"}, bad_fields=("data", "salt")),
    Scenario("Variant B: an update without a blob", "PUT", "/vault/{my.blob_vault}", 400, "validation_error",
             sent_by="bill", json={}, bad_fields=("data", "salt")),
]  # fmt: skip

NOT_IN_VARIANT_B = [
    Scenario(f"Variant B: no {method} {path}", method, path, 404, sent_by=ON_BLOB, json={})
    for method, path in [
        ("GET", "/vaults/{bill.blob_vault}/documents"),
        ("POST", "/vaults/{bill.blob_vault}/documents"),
        ("GET", "/vault/{bill.blob_vault}/documents"),
        ("POST", "/vault/{bill.blob_vault}/documents"),
        ("GET", "/vaults/{bill.blob_vault}/documents/sync"),
        ("GET", "/vaults/{bill.blob_vault}/documents/{unknown}"),
        ("PUT", "/vaults/{bill.blob_vault}/documents/{unknown}"),
        ("DELETE", "/vault/{bill.blob_vault}/documents/{unknown}"),
        ("GET", "/auth/api-keys"),
        ("POST", "/auth/api-keys"),
        ("DELETE", "/auth/api-keys/{unknown}"),
    ]
]
