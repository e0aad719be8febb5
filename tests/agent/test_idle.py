"""When the agent locks for want of use: what counts as use, and by which clock."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import CommandLineUser
from tests.kit.waiting import until

pytestmark = pytest.mark.production_hashing  # agents that are true starts hash so

AGENT = """
import sys, time
from pathlib import Path
from strongroom.agent import operations, process
def read(clock):
    awake, asleep = map(float, Path(sys.argv[1]).read_text().split())
    return {time.CLOCK_MONOTONIC: awake, time.CLOCK_BOOTTIME: awake + asleep}[clock]
def logged(*given, run=operations.Operations.run):
    with open(sys.argv[2], "a", 1) as log:
        log.write("begun\\n")
        try:
            return run(*given)
        finally:
            log.write("done\\n")
time.clock_gettime = read
operations.Operations.run = logged
process.serve(lambda: None)
"""
SetClock = Callable[[float, float], None]


@pytest.fixture
def set_clock(person: CommandLineUser, tmp_path: Path) -> Iterator[SetClock]:
    """Sets for how many seconds the machine has been awake, and asleep; an agent that lives by that has a secret."""
    person.add("GitHub", "hunter2")
    person.lock()
    clock, log = tmp_path / "clock", tmp_path / "log"
    log.touch()

    def is_at_rest() -> bool:
        lines = log.read_text()
        return lines.count("begun\n") == lines.count("done\n")

    def write(awake: float, asleep: float) -> None:
        until(is_at_rest, "the agent to be done with its requests: the time of their end is that of the last use")
        new = tmp_path / "new"
        new.write_text(f"{awake} {asleep}")
        new.replace(clock)

    write(1000, 0)
    with subprocess.Popen([sys.executable, "-c", AGENT, str(clock), str(log)], env=person.environment()) as agent:
        until((person.home / "agent.sock").exists, "the agent to listen")
        yield write
        person.lock()
        assert agent.wait(60) == 0


def is_locked(person: CommandLineUser) -> bool:
    """Whether a secret cannot be read."""
    return person.run("get", "GitHub").returncode == 5


def test_asking_for_the_status_is_no_use(person: CommandLineUser, set_clock: SetClock) -> None:
    """A prompt that asks all the time does not keep the keys; reading a secret does."""
    person.unlock("--lock-after", "30m")
    set_clock(2200, 0)
    assert not is_locked(person)
    for now in (3000, 3800):
        set_clock(now, 0)
        assert person.json("status")["locked"] is False
    set_clock(4600, 0)
    assert is_locked(person)
    assert "not used" in (person.home / "agent.log").read_text()


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="a system with one clock for both")
def test_time_asleep_counts_towards_the_lock(person: CommandLineUser, set_clock: SetClock) -> None:
    """A sleep that is too short to lock at once is time in which nobody used the keys."""
    person.unlock("--lock-after", "4s")
    set_clock(1003, 0.5)
    assert not is_locked(person)
    set_clock(1006, 2)
    assert is_locked(person)
    assert "not used" in (person.home / "agent.log").read_text()
