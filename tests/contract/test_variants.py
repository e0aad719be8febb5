"""What VAULT_VARIANT leaves in, and what it leaves out."""

import uuid

from tests.kit.network.responses import good, made
from tests.kit.people.api_user import ApiUser

from .checks import BLOB, VAULT_FIELDS, refused_fields


def test_document_server_ignores_blobs(dora: ApiUser) -> None:
    """On a server of Variant A data and salt are unknown fields, even where they make no sense."""
    for odd in (BLOB, {"data": "alone"}, {"salt": 7, "data": []}, {"data": ""}):
        vault = dora.vault(**odd)
        assert not {"data", "salt"} & set(vault)
        assert not {"data", "salt"} & set(good(dora.http.get(f"/vault/{vault['uid']}")))


def test_document_server_only_renames(dora: ApiUser) -> None:
    """On a server of Variant A a PUT of a vault renames it, and sets no blob."""
    vault = dora.vault()
    path = f"/vault/{vault['uid']}"
    refused_fields(dora.http.put(path, json=BLOB), "name")
    renamed = good(dora.http.put(path, json={"name": str(uuid.uuid4()), "version": 1, **BLOB}))
    assert renamed["version"] == 2
    assert not {"data", "salt"} & set(renamed)


def test_both_keeps_either(ann: ApiUser) -> None:
    """By default a vault is bare or carries a blob, as it was made."""
    bare, full = ann.vault(), ann.vault(**BLOB)
    assert not {"data", "salt"} & set(bare)
    assert set(bare) >= VAULT_FIELDS
    assert {"data", "salt"} <= set(full)
    listed = {v["uid"]: v for v in good(ann.http.get("/vault"))["vaults"]}
    assert listed[bare["uid"]] == bare
    assert listed[full["uid"]] == full


def test_both_holds_documents_beside_a_blob(ann: ApiUser) -> None:
    """By default one vault may carry a blob and hold documents; neither disturbs the other."""
    vault = ann.vault(**BLOB)
    document = ann.document(vault)
    changed = good(ann.http.put(f"/vault/{vault['uid']}", json={"data": "more", "salt": ""}))
    assert changed["version"] == 2
    assert changed["updatedAt"] > document["updatedAt"]
    assert ann.read(vault, document) == document


def test_both_gives_a_bare_vault_a_blob(ann: ApiUser) -> None:
    """By default a bare vault is given a blob by a PUT, and renaming it keeps the blob."""
    vault = ann.vault()
    path = f"/vault/{vault['uid']}"
    full = good(ann.http.put(path, json=BLOB))
    assert {"data": full["data"], "salt": full["salt"]} == BLOB
    renamed = good(ann.http.put(path, json={"name": str(uuid.uuid4()), "version": full["version"]}))
    assert {"data": renamed["data"], "salt": renamed["salt"]} == BLOB


def test_document_server_has_documents_and_keys(dora: ApiUser) -> None:
    """A server of Variant A serves documents and API keys."""
    vault = dora.vault()
    document = dora.document(vault)
    assert good(dora.http.get(f"/vaults/{vault['uid']}/documents"))["documents"] == [document]
    http = dora.with_key()
    assert good(http.get(f"/vaults/{vault['uid']}/documents/{document['uid']}")) == document
    made(http.post(f"/vaults/{vault['uid']}/documents", json={"collection": "a", "data": "QQ"}))
