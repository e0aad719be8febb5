"""Refusals and bounds of the agent that need no server: its messages, its clock, its log, its files and tokens."""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from strongroom.agent import item_reads, log, paths, secrets, settings
from strongroom.agent.conversation import Conversation
from strongroom.agent.log import Log
from strongroom.agent.operations import Operation, Operations
from strongroom.agent.protocol import Failed, Lines, decode, encode
from strongroom.errors import Refusal
from tests.kit.programs.command_line import clean_environment
from tests.kit.waiting import until

CANARY = "canary-4b0c"


# Messages


def test_a_message_has_a_longest_length() -> None:
    """To send and to receive, with an end or without one; one of just this length goes through."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        longest = {"value": "x" * 7}
        assert len(encode(longest)) == 20
        Lines(theirs, limit=20).send(longest)
        assert Lines(ours, limit=20).receive() == longest
        with pytest.raises(Failed, match="too large"):
            Lines(ours, limit=20).send({"value": "x" * 20})
        theirs.sendall(b"x" * 30)
        with pytest.raises(Failed, match="too large"):
            Lines(ours, limit=20).receive()


def test_what_is_no_text_is_not_sent() -> None:
    """A lone surrogate, which would fail later and elsewhere."""
    for message in ({"value": "\ud800"}, {"value": ["\ud800"]}):
        with pytest.raises((Failed, UnicodeEncodeError)) as refused:
            encode(message)
        assert isinstance(refused.value, Failed)


def test_a_short_result_is_read_as_json_is() -> None:
    """The quick way of decoding gives what the other one gives, whatever a value looks like."""
    for value in ("plain", 'a"b', "a\\b", '","error":"x', "ä", '"}', "\n", ""):
        assert decode(encode({"result": value}).rstrip(b"\n")) == {"result": value}
    assert decode(b'{"result":"a","error":"b"}') == {"result": "a", "error": "b"}


# Operations


def replied(operation: Operation, folder: Path) -> dict[str, Any]:
    """What an agent replies whose operation `login` is this one."""
    held = Operations(Log(str(folder / "agent.log")), lambda: {"login": operation})
    ours, theirs = socket.socketpair()
    with ours:
        held.run("login", {"operation": "login"}, Conversation(theirs))
        return dict(json.loads(b"".join(iter(lambda: ours.recv(1 << 16), b""))))


def test_a_fault_tells_its_kind_and_no_value(tmp_path: Path) -> None:
    """Neither in the response nor in the log."""

    def fault(*_: Any) -> Any:
        raise RuntimeError(CANARY)

    told = replied(fault, tmp_path)
    assert told["error"]["code"] == "internal_error"
    assert "RuntimeError" in told["error"]["message"]
    assert CANARY not in json.dumps(told)
    assert "login: RuntimeError" in (tmp_path / "agent.log").read_text()
    assert CANARY not in (tmp_path / "agent.log").read_text()


def test_a_refusal_tells_no_ticket(tmp_path: Path) -> None:
    """A ticket opens a session with a second factor: it stays in the agent."""

    def refuse(*_: Any) -> Any:
        raise Refusal("No.", details={"ticket": CANARY, "expiresAt": 5, "kinds": ["totp"]})

    told = replied(refuse, tmp_path)
    assert told["error"] == {"code": "refused", "message": "No.", "details": {"kinds": ["totp"]}}


def test_a_file_that_is_no_text_is_not_told_as_one() -> None:
    """It would come out as something else."""
    with pytest.raises(Failed) as refused:
        item_reads.read_all(lambda _: b"\xff", ["sr://a/b/c"])
    assert (refused.value.code, "sr://a/b/c" in refused.value.message) == ("not_text", True)


# The clock

QUICK = """
from strongroom.agent import process
process._TIME_TO_ASK, process._WITHOUT_KEYS, process.MAX_LINE = 2.0, 9.0, 1000
process.serve(lambda: None)
"""


def test_an_agent_drops_what_is_slow_or_too_long_and_ends_if_nobody_unlocks_it(tmp_path: Path) -> None:
    """A connection that sends nothing, one that sends too much, and an agent that nobody uses."""
    home = tmp_path / "home"
    command = [sys.executable, "-c", QUICK]
    with subprocess.Popen(command, env=clean_environment(STRONGROOM_HOME=str(home))) as agent:
        place = home / "agent.sock"
        until(place.exists, "the agent to listen")
        with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as long:
            for one in (silent, long):
                one.settimeout(60)
                one.connect(str(place))
            long.sendall(b"x" * 1_100)
            assert ended(long)
            assert select.select([silent], [], [], 0)[0] == []  # it was not the time that ended the other one
            assert ended(silent)
        assert place.exists()  # the agent goes on for a while
        assert agent.wait(60) == 0
    assert "nobody has unlocked it" in (home / "agent.log").read_text()


def ended(connected: socket.socket) -> bool:
    """Whether the other end closes a connection without a word."""
    try:
        return connected.recv(100) == b""
    except ConnectionResetError:
        return True


# Files


def test_the_log_is_bounded_private_and_no_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The log before is kept once; a link is not followed."""
    monkeypatch.setattr(log, "_MOST", 200)
    place = tmp_path / "agent.log"
    before = os.umask(0)
    try:
        for number in range(20):
            Log(str(place)).write(f"line {number}")
    finally:
        os.umask(before)
    assert place.stat().st_size <= 250
    assert sorted(one.name for one in tmp_path.iterdir()) == ["agent.log", "agent.log.1"]
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    place.unlink()
    place.symlink_to(tmp_path / "other")
    Log(str(place)).write("not there")
    assert not (tmp_path / "other").exists()


def test_settings_that_are_damaged_or_a_link_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do about it."""
    monkeypatch.setenv("STRONGROOM_HOME", str(tmp_path))
    place = Path(paths.account())
    for text in ("", "[]", "{", '{"url": 5, "email": "a"}', '{"url": "x"}'):
        place.write_text(text)
        with pytest.raises(Failed, match="is damaged; remove it"):
            settings.read_settings()
    good = tmp_path / "good"
    good.write_text('{"url": "x", "email": "a"}')
    place.unlink()
    place.symlink_to(good)
    with pytest.raises(Failed, match="is damaged; remove it"):
        settings.read_settings()
    place.unlink()
    with pytest.raises(Failed, match="Nobody is logged in"):
        settings.read_settings()


def test_folders_of_variables_that_are_relative_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As their specification says; and a home that is none is a sentence."""
    monkeypatch.delenv("STRONGROOM_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "relative")
    assert paths.home() == paths.runtime() == str(tmp_path / ".local/share/strongroom")
    monkeypatch.setenv("HOME", "relative")
    with pytest.raises(Failed, match="no home folder"):
        paths.home()


# Tokens


def test_a_token_that_cannot_be_used_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of them, a file that others can read, one that is no text, one that is not there, and no server."""
    place = tmp_path / "token"
    place.write_text(f"{CANARY}\n")
    place.chmod(0o600)
    monkeypatch.setenv("STRONGROOM_TOKEN_FILE", str(place))
    monkeypatch.delenv("STRONGROOM_TOKEN", raising=False)
    assert secrets.token_of_environment() == CANARY
    monkeypatch.setenv("STRONGROOM_TOKEN", "srv_x")
    with pytest.raises(Failed, match="both set"):
        secrets.token_of_environment()
    monkeypatch.delenv("STRONGROOM_TOKEN")
    for mode in (0o640, 0o604):
        place.chmod(mode)
        with pytest.raises(Failed, match="Others can read") as refused:
            secrets.token_of_environment()
        assert CANARY not in str(refused.value)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))  # of systemd, which gives a service access by a list
    place.chmod(0o440)
    assert secrets.token_of_environment() == CANARY
    place.chmod(0o444)
    with pytest.raises(Failed, match="Others can read"):
        secrets.token_of_environment()
    place.chmod(0o600)
    place.write_bytes(b"\xff")
    with pytest.raises(Failed, match="is not text"):
        secrets.token_of_environment()
    place.unlink()
    with pytest.raises(Failed, match="cannot be read"):
        secrets.token_of_environment()
    monkeypatch.delenv("STRONGROOM_TOKEN_FILE")
    monkeypatch.delenv("STRONGROOM_URL", raising=False)
    monkeypatch.setenv("STRONGROOM_TOKEN", "srv_x")
    with pytest.raises(Failed, match="Set STRONGROOM_URL"):
        secrets.open_secrets()
