"""Scenarios of documents: fields, versions, lists, and uids that clients choose."""

from .scenarios import Scenario

DOCUMENTS = "/vaults/{my.vault}/documents"
CHANGED = "/vaults/{my.vault}/documents/{my.changed_document}"  # at version 2

FIELDS = [
    Scenario("a document without fields", "POST", DOCUMENTS, 400, "validation_error",
             json={}, bad_fields=("collection", "data")),
    Scenario("every bad field of a document", "POST", DOCUMENTS, 400, "validation_error",
             json={"collection": "", "data": "not base64!", "hmac": 7, "uid": "no uuid"},
             bad_fields=("collection", "data", "hmac", "uid")),
    Scenario("every bad field of an update", "PUT", DOCUMENTS + "/{my.document}", 400, "validation_error",
             json={"data": "", "hmac": [], "version": "1"}, bad_fields=("data", "hmac", "version")),
    Scenario("an update without hmac forgets the old one", "PUT", DOCUMENTS + "/{my.document}", 200,
             json={"data": "REVG", "version": 1}, fields={"hmac": None}),
]  # fmt: skip

VERSIONS = [
    Scenario("an update without a version", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3"}, bad_fields=("version",)),
    Scenario("an update at the version null", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": None}, bad_fields=("version",)),
    Scenario("an update at a version in text", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": "2"}, bad_fields=("version",)),
    Scenario("an update at half a version", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": 2.5}, bad_fields=("version",)),
    Scenario("an update at the version true", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": True}, bad_fields=("version",)),
    Scenario("an update at a list of versions", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": [2]}, bad_fields=("version",)),
    Scenario("an update at an object for a version", "PUT", CHANGED, 400, "validation_error",
             json={"data": "bmV3", "version": {}}, bad_fields=("version",)),
    Scenario("an ETag shows nobody else's document", "GET", "/vaults/{ann.vault}/documents/{ann.document}",
             404, "vault_not_found", sent_by="bob", headers={"If-None-Match": "{ann.etag}"}),
]  # fmt: skip

LISTS = [
    Scenario("a list of nothing", "GET", DOCUMENTS, 200, body={"documents": [], "hasMore": False, "next": 0}),
    Scenario("sync of nothing", "GET", DOCUMENTS + "/sync", 200, fields={"syncedAt": 0}),
    Scenario("sync of nothing new", "GET", DOCUMENTS + "/sync?since=77", 200, fields={"syncedAt": 77}),
    Scenario("since twice", "GET", DOCUMENTS + "?since=1&since=2", 400, "validation_error"),
    Scenario("the same since twice", "GET", DOCUMENTS + "?since=1&since=1", 400, "validation_error"),
    Scenario("limit twice", "GET", DOCUMENTS + "?limit=1&limit=2", 400, "validation_error"),
    Scenario("collection twice", "GET", DOCUMENTS + "?collection=a&collection=b", 400, "validation_error"),
    Scenario("the same includeDeleted twice", "GET", DOCUMENTS + "?includeDeleted=true&includeDeleted=true",
             400, "validation_error"),
]  # fmt: skip

UIDS = [
    Scenario(f"a {noun} under {kind}", "POST", path, 400, "validation_error",
             json={**body, "uid": uid}, bad_fields=("uid",))
    for noun, path, body in [
        ("vault", "/vault", {"name": "x"}),
        ("document", DOCUMENTS, {"collection": "a", "data": "QQ"}),
    ]
    for kind, uid in [
        ("a uid that is a word", "not-a-uuid"),
        ("an empty uid", ""),
        ("a uid that is a number", 7),
        ("a uid that is a list", []),
        ("a uid that is a path", "../../etc"),
    ]
]  # fmt: skip
