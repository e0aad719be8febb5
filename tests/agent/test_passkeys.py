"""A login with a security key at the terminal: the agent asks the key, and the person for its PIN and a touch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fido2.hid import CtapHidDevice

from strongroom.client import Client, SecurityKey
from strongroom.items import Login
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.people.soft_ctap_device import SoftCtapDevice
from tests.kit.project import ROOT
from tests.kit.servers.process import Server
from tests.kit.terminals.shell_terminal import at_terminal

PIN = "4711-pin"
# The agent is a process of its own: the key is plugged in there, before its library is asked for keys.
PLUG = """
import pathlib
from fido2.hid import CtapHidDevice
from tests.kit.people.soft_ctap_device import SoftCtapDevice
path = pathlib.Path({path!r})
CtapHidDevice.list_devices = classmethod(lambda cls: iter([SoftCtapDevice.load(path)] if path.exists() else []))
"""


@pytest.fixture
def owner(named_server: Server, tmp_path: Path) -> Iterator[CommandLineUser]:
    """Somebody without an agent, whose account a key opens that is not plugged in yet."""
    made = CommandLineUser(tmp_path / "home", f"http://localhost:{named_server.port}", production_hashing=True)
    yield made
    made.close()


@pytest.mark.production_hashing  # the agent hashes so, and this process must get the same
def test_a_passkey_opens_the_account(owner: CommandLineUser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, a wrong PIN, the right one: no password is asked for, and the items are there."""
    device, saved = SoftCtapDevice(PIN), tmp_path / "key"
    monkeypatch.setattr(CtapHidDevice, "list_devices", classmethod(lambda _cls: iter([device])))
    with Client(owner.url) as client:
        client.register(owner.email, PASSWORD)
        client.items("Personal", create=True).create(Login(title="GitHub", password="hunter2"))
        added = client.passkeys.add("key", PASSWORD, SecurityKey(PIN))
        client.passkeys.enable_unlock(added.passkey, PASSWORD, SecurityKey(PIN))
    plug = tmp_path / "plug" / "sitecustomize.py"
    plug.parent.mkdir()
    plug.write_text(PLUG.format(path=str(saved)))
    place = {"PYTHONPATH": f"{plug.parent}:{ROOT}"}
    words = f"strongroom login --passkey {owner.email} --server {owner.url}"
    with at_terminal(owner, **place) as terminal:
        terminal.type(words)
        terminal.shows("No security key was found")
        device.save(saved)
        terminal.type(words)
        terminal.shows("PIN of the security key")
        terminal.type("0000")
        terminal.shows("is the PIN right")
        terminal.type(words)
        terminal.shows("PIN of the security key")
        terminal.type(PIN)
        terminal.shows("touch the security key")
        told = terminal.shows("Logged in as")
        assert "Master password" not in told
        assert PIN not in told
        terminal.type("strongroom get GitHub")
        terminal.shows("hunter2")
    done = owner.run(*words.split()[1:], **place)
    told = "There is no terminal to ask for the PIN of the security key, or none was typed."
    assert (done.returncode, done.stderr) == (5, f"strongroom: {told}\n")  # and no PIN was sent, which would count
    assert owner.said("get", "GitHub") == "hunter2\n"  # what was open stays open
