"""Finding a vault by its name, whatever the name is."""

from urllib.parse import quote

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.rows import each_row

from .checks import BLOB

NAMES = [
    "plain",
    "two words",
    "a/b",
    "/",
    "/leading",
    "trailing/",
    "a//b",
    "a/documents",
    "a%2Fb",
    "100%",
    "a+b",
    "?x=1",
    "#top",
    "by-name",
    "documents",
    "documents/sync",
    "ключ от дома",
    "金庫",
    "🗝️",
    "é",
    "e\u0301",
    'quo"te',
    "back\\slash",
    "semi;colon",
    "a&b=c",
    "...",
    "null",
    "'; DROP TABLE vaults; --",
    "x" * 255,
    "🗝" * 255,
]


@each_row("name", NAMES, ids=lambda name: ascii(name)[:40])
def test_any_name_is_found(ann: ApiUser, name: str) -> None:
    """A vault is found under its own name, percent-encoded, and under no other."""
    vault = ann.vault(name=name)
    found = good(ann.http.get(f"/vault/by-name/{quote(name, safe='')}"))
    assert found["uid"] == vault["uid"]
    assert found["name"] == name


def test_names_are_decoded_once(bob: ApiUser) -> None:
    """Names that differ only in their encoding are different names."""
    uids = {name: bob.vault(name=name)["uid"] for name in ("a/b", "a%2Fb", "a%252Fb", "a b", "a+b", "a%20b")}
    for name, uid in uids.items():
        assert good(bob.http.get(f"/vault/by-name/{quote(name, safe='')}"))["uid"] == uid


def test_by_name_in_every_variant(resident: ApiUser) -> None:
    """Each kind of server finds vaults by name."""
    vault = resident.vault(name=f"in/{resident.id}/ключ", **BLOB)
    assert good(resident.http.get(f"/vault/by-name/{quote(vault['name'], safe='')}")) == vault
    refused(resident.http.get("/vault/by-name/nothing"), 404, "vault_not_found")
