"""An encoder that loses a part of a keyring, and damages nothing: that keyring is not sent."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from strongroom.client.errors import Tampered
from strongroom.client.format import account, keyring, keyring_body

VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
MADE = account.register("ada@example.com", "correct horse battery staple")
FIRST = keyring.seal(MADE.keyring.with_vault(VAULT, "personal", sealed=True))[1]
RING = msgspec.structs.replace(FIRST.rotated(), extra={"heads": [1]})
[ENTRY] = RING.vaults
LOSSES: dict[str, dict[str, Any]] = {
    "a vault": {"vaults": ()},
    "the end of a name": {"vaults": (msgspec.structs.replace(ENTRY, name="person"),)},
    "an older key": {"vaults": (msgspec.structs.replace(ENTRY, keys=ENTRY.keys[-1:]),)},
    "an older identity": {"identity": RING.identity[-1:], "storage": RING.storage[-1:]},
    "a member that this client does not know": {"extra": {}},
}


@pytest.mark.parametrize("loss", LOSSES)
def test_a_keyring_that_lacks_something_is_not_sent(monkeypatch: pytest.MonkeyPatch, loss: str) -> None:
    """The box opens, and what is in it is well formed: only a comparison with what was to be sealed tells."""
    assert keyring.seal(RING, password=MADE.password)[1].vaults == RING.vaults
    encode = keyring_body.encode
    monkeypatch.setattr(keyring_body, "encode", lambda body: encode(msgspec.structs.replace(body, **LOSSES[loss])))
    with pytest.raises(Tampered, match="nothing was sent"):
        keyring.seal(RING, password=MADE.password)
