"""API keys: made once, shown once, listed, used, expired, revoked."""

import re

import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import fresh_address
from tests.kit.waiting import until

from .checks import is_uuid7, now


def listed(person: ApiUser, key: Json) -> Json | None:
    """A key as its owner's list shows it."""
    keys: list[Json] = good(person.http.get("/auth/api-keys"))["keys"]
    return next((entry for entry in keys if entry["uid"] == key["uid"]), None)


def test_create(ann: ApiUser) -> None:
    """A new key has a uid, its name, its secret in the promised form, and its times."""
    before = now()
    key = made(ann.http.post("/auth/api-keys", json={"name": "laptop"}))
    assert {"uid", "name", "key", "expiresAt", "createdAt"} <= set(key)
    assert is_uuid7(key["uid"])
    assert key["name"] == "laptop"
    assert re.fullmatch(r"srk_[A-Za-z0-9_-]{44,}", key["key"])
    assert key["expiresAt"] is None
    assert before - 1000 <= key["createdAt"] <= now() + 1000


def test_secrets_differ(ann: ApiUser) -> None:
    """No two keys share a secret, nor a uid, even under one name."""
    keys = [ann.key(name="twin") for _ in range(5)]
    assert len({key["key"] for key in keys}) == len({key["uid"] for key in keys}) == 5


def test_list(ann: ApiUser) -> None:
    """The list shows a key without its secret."""
    expiry = now() + 3_600_000
    key = ann.key(name="listed", expiresAt=expiry)
    answer = ann.http.get("/auth/api-keys")
    entry = listed(ann, key)
    assert entry is not None
    assert {"uid", "name", "expiresAt", "createdAt", "lastUsedAt"} <= set(entry)
    assert entry["name"] == "listed"
    assert entry["expiresAt"] == expiry == key["expiresAt"]
    assert entry["createdAt"] == key["createdAt"]
    assert entry["lastUsedAt"] is None
    assert "key" not in entry
    assert key["key"] not in answer.text
    assert "srk_" not in answer.text


def test_list_is_the_owners(ann: ApiUser, bob: ApiUser) -> None:
    """A user's list holds no key of another's."""
    assert listed(bob, ann.key()) is None


def test_full_access(ann: ApiUser) -> None:
    """A key without scopes may do with vaults and documents what its owner may."""
    http = ann.with_key()
    vault = made(http.post("/vault", json={"name": f"by key {now()} {ann.id}"}))
    assert vault in good(ann.http.get("/vault"))["vaults"]
    document = made(http.post(docs(vault), json={"collection": "a", "data": "QQ"}))
    changed = good(http.put(docs(vault, document), json={"data": "QR", "version": 1}))
    assert good(http.get(docs(vault)))["documents"] == [changed]
    good(http.delete(docs(vault, document)))
    renamed = good(http.put(f"/vault/{vault['uid']}", json={"name": f"{vault['name']}!", "version": 1}))
    assert good(http.get(f"/vault/{vault['uid']}"))["name"] == renamed["name"]
    good(http.delete(f"/vault/{vault['uid']}"))


def test_key_does_not_revoke_itself(ann: ApiUser) -> None:
    """Not even itself can a key revoke."""
    key = ann.key()
    http = ann.server.connect(key["key"], fresh_address())
    refused(http.delete(f"/auth/api-keys/{key['uid']}"), 403, "insufficient_scope")
    assert listed(ann, key)


def test_me(ann: ApiUser) -> None:
    """A key that asks who it is learns its owner, and its own name, scopes and expiry."""
    vault, expiry = ann.vault(), now() + 3_600_000
    scopes = {
        "permissions": ["read"],
        "vaultUids": [vault["uid"]],
        "collections": ["a", "b"],
        "expiresAt": expiry,
    }
    body = good(ann.with_key(name="who", **scopes).get("/auth/me"))
    assert body["user"]["id"] == ann.id
    assert body["user"]["email"] == ann.email
    mine = body["apiKey"]
    assert mine["name"] == "who"
    assert mine["expiresAt"] == expiry
    assert mine["permissions"] == ["read"]
    assert mine["vaultUids"] == [vault["uid"]]
    assert sorted(mine["collections"]) == ["a", "b"]


def test_me_without_scopes(ann: ApiUser) -> None:
    """A key without scopes says so."""
    answer = ann.with_key(name="plain").get("/auth/me")
    mine = good(answer)["apiKey"]
    assert mine["name"] == "plain"
    for scope in ("vaultUids", "collections", "expiresAt"):
        assert mine.get(scope) is None
    assert "srk_" not in answer.text


def test_last_used(ann: ApiUser) -> None:
    """Once used, a key shows when, to the minute."""
    key = ann.key()
    http = ann.server.connect(key["key"])
    assert http.get("/vault").status_code == 200
    used = until(lambda: (listed(ann, key) or {})["lastUsedAt"], "lastUsedAt to be shown", 10)
    assert type(used) is int
    assert abs(now() - used) <= 61_000


def test_revoke(ann: ApiUser) -> None:
    """A revoked key is refused from that moment, is listed no more, and is revoked once."""
    key = ann.key()
    http = ann.server.connect(key["key"], fresh_address())
    assert http.get("/vault").status_code == 200
    assert good(ann.http.delete(f"/auth/api-keys/{key['uid']}"))["success"] is True
    refused(http.get("/vault"), 401, "unauthorized")
    assert listed(ann, key) is None
    refused(ann.http.delete(f"/auth/api-keys/{key['uid']}"), 404, "api_key_not_found")


def test_revoke_foreign(ann: ApiUser, bob: ApiUser) -> None:
    """Another user's key cannot be told from an unknown one, and stays good."""
    key = ann.key()
    refused(bob.http.delete(f"/auth/api-keys/{key['uid']}"), 404, "api_key_not_found")
    assert ann.server.connect(key["key"]).get("/vault").status_code == 200


def test_expiry(ann: ApiUser) -> None:
    """A key is good until its time has come, and then no longer."""
    expiry = now() + 1200
    http = ann.with_key(expiresAt=expiry)
    accepted = []

    def expired() -> bool:
        sent, answer = now(), http.get("/vault")
        if answer.status_code == 200:
            accepted.append(sent)
        return answer.status_code == 401

    until(expired, "the key to expire")
    refused(http.get("/vault"), 401, "unauthorized")
    assert accepted
    assert accepted[-1] <= expiry


@pytest.mark.parametrize("place", [4, 10, 25, 40, -3, -1])
def test_typo(ann: ApiUser, place: int) -> None:
    """A key with one wrong letter is refused."""
    letters = list(ann.key()["key"])
    letters[place] = "A" if letters[place] != "A" else "B"
    refused(ann.server.connect("".join(letters), fresh_address()).get("/vault"), 401, "unauthorized")


def test_cut_and_glued(ann: ApiUser) -> None:
    """A key that lost its end, its prefix or its manners is refused."""
    key: str = ann.key()["key"]
    http = ann.server.connect(address=fresh_address())
    for wrong in (key[:-1], key[4:], key + "A", key.upper(), key.replace("srk_", "SRK_"), f"{key}.{key}"):
        refused(http.get("/vault", headers={"Authorization": f"Bearer {wrong}"}), 401, "unauthorized")


def test_malformed_vault_in_scope(ann: ApiUser) -> None:
    """A key is not made for a vault that cannot be."""
    answer = ann.http.post("/auth/api-keys", json={"name": "x", "vaultUids": ["malformed"]})
    assert answer.status_code in (400, 404)


def test_null_is_absent(ann: ApiUser) -> None:
    """A scope or expiry of null is no scope and no expiry."""
    http = ann.with_key(permissions=None, vaultUids=None, collections=None, expiresAt=None)
    made(http.post("/vault", json={"name": f"null {now()} {ann.id}"}))
