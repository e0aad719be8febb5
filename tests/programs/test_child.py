"""A program that is run with masked output behaves as it does without: terminal, signals, exit code, input."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.kit.terminals.terminal import PATIENCE, Terminal
from tests.kit.waiting import until

SECRET = "correct-horse-battery"
RUNNER = """
import os, sys
from strongroom.programs import child
from strongroom.programs.masking import Masker
environment = {**os.environ, "SECRET": sys.argv[1]}
try:
    sys.exit(child.end_like(child.run_masked(sys.argv[2:], environment, Masker([sys.argv[1]]))))
except child.CannotStart as problem:
    sys.stderr.write(str(problem))
    sys.exit(problem.code)
"""


def runner(*command: str) -> list[str]:
    """A command line that runs a command with a secret in its environment."""
    return [sys.executable, "-c", RUNNER, SECRET, *command]


def program(text: str) -> list[str]:
    """The same for a program in Python."""
    return runner(sys.executable, "-c", text)


def run(*command: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(runner(*command), capture_output=True, check=False, timeout=PATIENCE, **more)


def test_both_streams_are_masked_and_apart() -> None:
    """A secret is replaced in standard output and standard error, and each goes where it went."""
    done = run("sh", "-c", 'echo "out $SECRET"; echo "err $SECRET" >&2; exit 7')
    assert (done.stdout, done.stderr, done.returncode) == (b"out <masked>\n", b"err <masked>\n", 7)


def test_a_secret_in_two_writes_is_masked() -> None:
    """The second half comes only after the first was read: nothing of the secret is shown meanwhile."""
    text = (
        "import os, sys; s = os.environb[b'SECRET']; os.write(1, b'a ' + s[:9]); sys.stdin.read(1); os.write(1, s[9:])"
    )
    with subprocess.Popen(program(text), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert os.read(process.stdout.fileno(), 100) == b"a "
        process.stdin.write(b"x")
        process.stdin.close()
        assert process.stdout.read() == b"<masked>"


def test_standard_input_is_untouched() -> None:
    """Bytes of any kind, to the end."""
    data = bytes(range(256)) * 1000
    assert run("cat", input=data).stdout == data


def test_one_file_for_both_streams_keeps_their_order(tmp_path: Path) -> None:
    """As with `>log 2>&1`."""
    with (tmp_path / "log").open("wb") as log:
        subprocess.run(
            runner("sh", "-c", "for i in 1 2 3; do echo $i; echo $i >&2; done"), stdout=log, stderr=log, check=True
        )
    assert (tmp_path / "log").read_bytes() == b"1\n1\n2\n2\n3\n3\n"


def test_a_program_that_cannot_be_started_is_a_sentence() -> None:
    """With the exit codes of a shell."""
    for name, code, sentence in (
        ("no-such-program", 127, b"no such program"),
        ("/etc/passwd", 126, b"Permission denied"),
    ):
        done = run(name)
        assert (done.returncode, sentence in done.stderr, b"Traceback" in done.stderr) == (code, True, False)


def test_a_signal_that_ends_the_program_ends_this_one() -> None:
    """So that a shell sees how it ended."""
    assert run("sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM
    assert run("sh", "-c", "kill -KILL $$").returncode == 128 + signal.SIGKILL


def test_signals_are_passed_on() -> None:
    """Each once, also SIGINT, if a process sends it."""
    text = (
        "import signal, sys\n"
        "for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):\n"
        "    signal.signal(s, lambda n, _: print('got', n, flush=True) or (n == signal.SIGUSR1 and sys.exit(5)))\n"
        "print('ready', flush=True)\n"
        "while True: signal.pause()"
    )
    with subprocess.Popen(program(text), stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process.send_signal(number)
            assert process.stdout.readline() == b"got %d\n" % number
        assert process.stdout.read() == b""
        assert process.wait(PATIENCE) == 5


def test_the_program_notices_when_nobody_reads() -> None:
    """As with `| head -1`."""
    with subprocess.Popen(runner("yes"), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        assert process.wait(PATIENCE) == -signal.SIGPIPE


# At a terminal


def test_at_a_terminal_the_program_has_one() -> None:
    """All three streams, with the size of the true one, also when it changes; line ends are as without masking.

    The program waits for the signal itself: a handler of Python's would not run for one that comes just before input().
    """
    text = (
        "import os, signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})\n"
        "print([os.isatty(n) for n in (0, 1, 2)], os.get_terminal_size(1), os.environ['SECRET'], flush=True)\n"
        "size = 80\n"
        "while size == 80:\n"
        "    signal.sigwait({signal.SIGWINCH})\n"
        "    size = os.get_terminal_size(1).columns\n"
        "print(os.get_terminal_size(1), flush=True)\n"
        "input()"
    )
    with Terminal(program(text)) as terminal:
        assert terminal.wait_for(b"<masked>\r\n") == (
            b"[True, True, True] os.terminal_size(columns=80, lines=24) <masked>\r\n"
        )
        terminal.resize(40, 123)
        terminal.wait_for(b"columns=123, lines=40")
        terminal.press(b"\n")
        terminal.rest()
        assert terminal.process.returncode == 0


def test_keys_reach_the_program_once(tmp_path: Path) -> None:
    """Ctrl-C is a SIGINT for the program; this one goes on, and does not pass it on as a second one."""
    count = tmp_path / "count"
    text = (
        "import pathlib, signal, sys\n"
        f"count = pathlib.Path({str(count)!r})\n"
        "signal.signal(signal.SIGINT, lambda *_: count.write_text(count.read_text() + 'x'))\n"
        "signal.signal(signal.SIGUSR1, lambda *_: print('passed on', flush=True))\n"
        "count.write_text('')\n"
        "print('ready', flush=True)\n"
        "sys.exit(len(sys.stdin.readline()))"
    )
    with Terminal(program(text)) as terminal:
        terminal.wait_for(b"ready\r\n")
        terminal.process.send_signal(signal.SIGSTOP)  # or two signals could come at the same time, and be one
        terminal.press(b"\x03")
        until(lambda: count.read_text() == "x", "the signal of the key")
        terminal.process.send_signal(signal.SIGUSR1)
        terminal.process.send_signal(signal.SIGCONT)
        terminal.wait_for(b"passed on\r\n")  # and SIGINT, which has a lower number, would have been before it
        terminal.press(b"four\n")
        terminal.rest()
        assert (terminal.process.returncode, count.read_text()) == (5, "x")


def test_a_job_can_be_stopped_and_continued() -> None:
    """Ctrl-Z stops both, so that a shell takes over; what the program writes before it stops is shown before."""
    text = (
        "import os, signal, sys\n"
        "def stop(*_):\n"
        "    os.write(1, b'stopping ' * 1000 + b'now')\n"
        "    os.kill(os.getpid(), signal.SIGSTOP)\n"
        "    os.write(1, b'continued')\n"
        "signal.signal(signal.SIGTSTP, stop)\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()"
    )
    with Terminal(program(text)) as terminal:
        terminal.wait_for(b"ready\r\n")
        terminal.press(b"\x1a")
        terminal.wait_for(b"now")
        _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        os.killpg(terminal.process.pid, signal.SIGCONT)
        terminal.wait_for(b"continued")
        terminal.press(b"\n")
        terminal.rest()
        assert terminal.process.returncode == 0


def test_settings_of_the_output_are_those_of_the_terminal() -> None:
    """A program that draws on the whole screen sets no echo for its output; afterwards it is as it was."""
    text = (
        "import sys, termios\n"
        "s = termios.tcgetattr(1); s[3] &= ~termios.ECHO; termios.tcsetattr(1, termios.TCSANOW, s)\n"
        "print('drawn', flush=True)\n"
        "sys.stdin.readline()\n"
        "print('end', flush=True)"
    )
    with Terminal(program(text)) as terminal:
        terminal.wait_for(b"drawn\r\n")
        assert not terminal.echoes()
        terminal.press(b"typed\n")
        assert terminal.wait_for(b"end\r\n") == b"end\r\n"
        terminal.process.wait(PATIENCE)
        assert terminal.echoes()


def test_settings_of_the_input_are_left_as_the_program_leaves_them() -> None:
    """As without masking: `stty` is a program for that."""
    with Terminal(runner("sh", "-c", "stty -echo; echo done")) as terminal:
        terminal.wait_for(b"done\r\n")
        terminal.process.wait(PATIENCE)
        assert not terminal.echoes()


def test_a_caller_that_ignores_children_does_not_matter() -> None:
    """Signals that are ignored are inherited."""
    ignore = (
        "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    )
    command = [sys.executable, "-c", ignore, *runner("sh", "-c", "exit 4")]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 4
