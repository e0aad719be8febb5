"""Settings that cannot be parsed."""

from __future__ import annotations

import pytest

from strongroom.server.settings import BadSetting, resolve
from tests.kit.servers.secret import SECRET


@pytest.mark.parametrize("text", ["nonsense", "10.0.0.1/8", "10.0.0.1, 300.1.1.1", "unix, x"])
def test_a_list_of_networks_that_is_none_is_explained(text: str) -> None:
    """The sentence names the variable and shows what it takes."""
    with pytest.raises(BadSetting, match="TRUSTED_PROXIES must be addresses or networks separated by commas, like"):
        resolve({"JWT_SECRET": SECRET, "TRUSTED_PROXIES": text})


def test_a_pooler_alone_is_not_enough() -> None:
    """Locks and notifications need PostgreSQL itself; a file that is named wins over both."""
    given = {"JWT_SECRET": SECRET, "DATABASE_POOLER_URL": "postgresql://u:secret@pooler/strongroom"}
    with pytest.raises(BadSetting, match="DATABASE_POOLER_URL is set and DATABASE_URL is not") as refused:
        resolve(given)
    assert "secret" not in str(refused.value)
    assert resolve(given, {"--db-path": "vault.db"}).database == "vault.db"
    assert resolve({**given, "DATABASE_URL": "postgresql://db/strongroom"}).database_pooler_url.endswith("/strongroom")
