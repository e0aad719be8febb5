"""Settings that cannot be parsed."""

from __future__ import annotations

import pytest

from strongroom.server.settings import BadSetting, resolve
from tests.conftest import SECRET


@pytest.mark.parametrize("text", ["nonsense", "10.0.0.1/8", "10.0.0.1, 300.1.1.1", "unix, x"])
def test_a_list_of_networks_that_is_none_is_explained(text: str) -> None:
    """The sentence names the variable and shows what it takes."""
    with pytest.raises(BadSetting, match="TRUSTED_PROXIES must be addresses or networks separated by commas, like"):
        resolve({"JWT_SECRET": SECRET, "TRUSTED_PROXIES": text})
