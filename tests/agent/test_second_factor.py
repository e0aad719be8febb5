"""An account with one-time codes: the code is asked for at the terminal, once for each device."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from strongroom.client import Client
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.people.one_time_codes import code
from tests.kit.terminals.shell_terminal import at_terminal


@pytest.mark.production_hashing  # the agent hashes so, and this process must get the same
def test_a_code_is_asked_for_once_and_not_at_every_unlock(person: CommandLineUser, tmp_path: Path) -> None:
    """A login asks for it; unlocking goes on with that session, until it is ended from another device."""
    with Client(person.url) as client:
        client.login(person.email, PASSWORD)
        secret = client.second_factor.enrol(PASSWORD).secret
        spare, last, *_ = client.second_factor.confirm(code(secret, time.time_ns() // 1_000_000))
        other = CommandLineUser(tmp_path / "second" / "home", person.url, person.email, production_hashing=True)
        done = other.run("login", other.email, "--server", other.url, "--password", "-", stdin=f"{PASSWORD}\n")
        assert done.returncode == 6
        with at_terminal(other) as terminal:
            terminal.type(f"strongroom login {other.email} --server {other.url}")
            terminal.shows("Master password:")
            terminal.type(PASSWORD)
            terminal.shows("Code:")
            terminal.type("000000")
            terminal.shows("wrong or was used")
            terminal.type(spare)
            terminal.shows("Logged in as")
        before = {one.id for one in client.sessions()}
        other.lock()
        other.unlock()
        other.add("After the lock", "two")
        other.said("sync")
        assert {one.id for one in client.sessions()} == before
        for one in client.sessions():
            if not one.current:
                client.end_session(one.id)
        other.lock()
        other.unlock()
        assert other.run("sync").returncode == 6
        assert other.said("get", "After the lock") == "two\n"
        with at_terminal(other) as terminal:
            terminal.type("strongroom sync")
            terminal.shows("Code:")
            terminal.type(last)
            terminal.shows("Fetched")
        other.lock()
        other.unlock()
        other.said("sync")
    other.close()
