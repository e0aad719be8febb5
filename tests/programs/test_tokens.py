"""What a token in the environment opens for a program."""

from __future__ import annotations

import pytest

from strongroom.agent.protocol import Failed
from strongroom.agent.secrets import open_secrets
from tests.kit.people.machine import SECRETS, World


def test_a_token_of_one_collection_needs_the_name_of_its_vault(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot know the name: a sentence says which variable gives it, and with that the items are read."""
    monkeypatch.setenv("STRONGROOM_URL", world.url)
    monkeypatch.setenv("STRONGROOM_TOKEN", world.items.token("part"))
    for name in ("STRONGROOM_TOKEN_FILE", "STRONGROOM_VAULT"):
        monkeypatch.delenv(name, raising=False)
    with open_secrets() as secrets, pytest.raises(Failed, match="Set STRONGROOM_VAULT to the name of the vault"):
        secrets.items()
    monkeypatch.setenv("STRONGROOM_VAULT", "office")
    with open_secrets() as secrets:
        read = secrets.read(["sr://office/Wiki/password"])
    assert read == {"sr://office/Wiki/password": SECRETS["Wiki"]}
