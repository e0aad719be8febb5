"""Example of a contract test: requests over HTTP to a server process, on each engine."""

from tests.kit.network.responses import good, refused
from tests.kit.people.api_user import ApiUser


def test_a_vault_belongs_to_its_owner(ann: ApiUser, bob: ApiUser) -> None:
    """Its owner finds it; for another account it does not exist."""
    vault = ann.vault()
    assert good(ann.http.get(f"/vault/{vault['uid']}"))["name"] == vault["name"]
    refused(bob.http.get(f"/vault/{vault['uid']}"), 404, "vault_not_found")
