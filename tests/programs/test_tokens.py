"""What a token in the environment opens for a program."""

from __future__ import annotations

import json
from pathlib import Path

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


def test_a_machine_with_a_state_file_notices_what_is_older(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The value is not given out; the error says what to do where the server was restored."""
    state, reference = tmp_path / "state", "sr://office/Wiki/password"
    monkeypatch.setenv("STRONGROOM_URL", world.url)
    monkeypatch.setenv("STRONGROOM_TOKEN", world.items.token("part"))
    monkeypatch.delenv("STRONGROOM_TOKEN_FILE", raising=False)
    monkeypatch.setenv("STRONGROOM_VAULT", "office")
    monkeypatch.setenv("STRONGROOM_STATE", str(state))
    with open_secrets() as secrets:
        assert secrets.read([reference]) == {reference: SECRETS["Wiki"]}
    assert state.stat().st_mode & 0o777 == 0o600
    seen = json.loads(state.read_text())
    [place] = seen["places"].values()
    for row in place["rows"].values():
        row[0] += 1  # as if a later version had been seen
    state.write_text(json.dumps(seen))
    with open_secrets() as secrets, pytest.raises(Failed, match=f"restored it from a backup, delete {state}") as failed:
        secrets.read([reference])
    assert failed.value.code == "rolled_back"


def test_a_state_file_that_cannot_be_written_is_an_error(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """And no program is started with what was read."""
    monkeypatch.setenv("STRONGROOM_URL", world.url)
    monkeypatch.setenv("STRONGROOM_TOKEN", world.items.token("part"))
    monkeypatch.setenv("STRONGROOM_VAULT", "office")
    monkeypatch.setenv("STRONGROOM_STATE", str(tmp_path / "state"))
    secrets = open_secrets()
    secrets.items()
    (tmp_path / "state.part").mkdir()
    with pytest.raises(Failed, match="cannot be written"):
        secrets.close()
