"""Terminal input and output: messages, tables, prompts, progress. Prompts of people are in prompts.py."""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

NOT_CONFIRMED: Final = 4
OUTPUT_CLOSED: Final = 141  # 128 + SIGPIPE, as a shell reports it


def exit_codes(done: str = "done", *others: str) -> str:
    """The line of help about exit codes; `others` are those besides 0 and 2, each with its number first."""
    refused = "2 wrong use, a bad setting, or a file or database that is refused"
    return f"Exit codes: {'; '.join([f'0 {done}', *sorted([refused, *others], key=lambda one: int(one.split()[0]))])}."


class OutputClosed(Exception):  # noqa: N818 - ends the command silently
    """The reader of the command's output closed its end."""


class CommandFailed(Exception):  # noqa: N818 - the message is shown without a traceback
    """The command failed; the message is a sentence for the user."""

    def __init__(self, message: str, code: int = 2) -> None:
        super().__init__(message)
        self.code = code


def open_closed_streams() -> None:
    """Open standard streams that the parent process closed as /dev/null.

    Otherwise the next file that is opened would get their descriptor, and messages would be written into it.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, os.O_RDWR)
            if descriptor != number:
                os.dup2(descriptor, number)
                os.close(descriptor)
            setattr(sys, name, os.fdopen(number, mode))


def show_all_characters() -> None:
    """Write characters as escapes that the encoding of standard output does not have; else they would end a command."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def print_line(text: str) -> None:
    """Print a line to standard output."""
    write_text(sys.stdout, text + "\n")


def print_error(text: str) -> None:
    """Print an error or a warning to standard error."""
    write_text(sys.stderr, f"strongroom: {text}\n")


def write_text(stream: TextIO, text: str) -> None:
    """Write a text to standard output or standard error; raise CommandFailed where it cannot be written."""
    with _writing(stream):
        stream.write(text)
        stream.flush()


def print_bytes(data: bytes) -> None:
    """Write bytes to standard output."""
    with _writing(sys.stdout):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


@contextmanager
def _writing(stream: TextIO) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        if stream is not sys.stderr:  # of that, nobody can be told
            raise _not_written(error) from None


def _not_written(error: OSError) -> CommandFailed:
    """The failure of a command whose output cannot be written: the disk is full. What is left of it is dropped."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes it at its end
    return CommandFailed(f"The output cannot be written: {error.strerror}.", 1)


@contextmanager
def exit_when_output_closes() -> Iterator[None]:
    """Exit silently with code 141 when the reader of the output closes its end: `… | head`."""
    try:
        yield
    except OutputClosed:
        raise _exit_silently() from None
    finally:
        try:
            sys.stdout.flush()  # what a library printed
        except BrokenPipeError:
            raise _exit_silently() from None
        except OSError as error:
            failed = _not_written(error)
            print_error(str(failed))
            raise SystemExit(failed.code) from None


def _exit_silently() -> SystemExit:
    """Redirect both streams to /dev/null, because Python flushes them at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            os.dup2(nowhere, stream.fileno())
    return SystemExit(OUTPUT_CLOSED)


def show_json(value: Any) -> None:
    """Print JSON."""
    import msgspec

    print_line(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def has_unicode() -> bool:
    """Whether standard output takes every character."""
    return (sys.stdout.encoding or "").lower().replace("-", "").replace("_", "") == "utf8"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], right: AbstractSet[int] = frozenset()) -> None:
    """Print a table; columns in `right` are right-aligned. Control characters in cells are replaced."""
    lines = [tuple(heads), *(tuple(plain(cell) for cell in row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(heads))]
    for line in lines:
        cells = [f"{cell:>{widths[at]}}" if at in right else f"{cell:{widths[at]}}" for at, cell in enumerate(line)]
        print_line("  ".join(cells).rstrip())


def plain(text: str) -> str:
    """A text without control characters, which could move the cursor or change what stands before."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def confirm(question: str, *, yes: bool, word: str = "y") -> None:
    """Ask for confirmation; fail unless the reply is the word."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise CommandFailed(
            f"Not done, because there is no terminal to confirm it: {question} Use --yes to do it.", NOT_CONFIRMED
        )
    wanted = "y or n" if word == "y" else f"type {word} to continue"
    sys.stderr.write(f"{plain(question)} ({wanted}) ")
    sys.stderr.flush()
    reply = sys.stdin.readline().strip()
    if reply != word and not (word == "y" and reply.lower() in {"y", "yes"}):
        raise CommandFailed("Nothing was done.", NOT_CONFIRMED)


def ask_secret(prompt: str, *, twice: bool = True, piped: bool = True) -> str:
    """Prompt for a secret: at a terminal, `twice` for a new one; from standard input if `piped` is allowed.

    Empty if there is no terminal.
    """
    if piped and not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    if not piped and not _has_a_terminal():
        return ""
    from getpass import getpass

    first = getpass(f"{prompt}: ")
    if twice and getpass(f"{prompt} again: ") != first:
        raise CommandFailed("The two entries do not match; nothing was done.")
    return first


def read_text(path: str) -> str:
    """The text of a file that the user named; the command fails if it cannot be read."""
    try:
        return Path(path).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise CommandFailed(f"Cannot read the file {path}: {reason}.") from None


def _has_a_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True


class Bar:
    """A progress bar: one line on standard error, redrawn; nothing without a terminal."""

    def __init__(self) -> None:
        self._drawn = ""

    def show(self, doing: str, done: int, total: int, *, of: str = "rows") -> None:
        """Draw the bar."""
        if not sys.stderr.isatty():
            return
        head, tail = f"{doing} ", f" {100 * done // max(total, 1):3} %  {done:,} of {total:,} {of}"
        width = max(0, min(40, shutil.get_terminal_size().columns - len(head) - len(tail) - 1))
        full = width * done // max(total, 1)
        self._draw(head + "█" * full + "░" * (width - full) + tail)

    def clear(self) -> None:
        """Erase the bar."""
        self._draw("")

    def _draw(self, line: str) -> None:
        if line != self._drawn:
            sys.stderr.write(f"\r{line}\x1b[K")
            sys.stderr.flush()
            self._drawn = line


class Progress:
    """Shows the progress of a copy, a backup or a restore, and keeps its messages."""

    def __init__(self) -> None:
        self.bar = Bar()
        self.sentences: list[str] = []

    def moved(self, doing: str, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.show(doing, done, total)

    def said(self, sentence: str) -> None:
        """Print a message above the bar."""
        self.bar.clear()
        print_line(sentence)
        self.sentences.append(sentence)

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        """The rows of each table on both sides; only a copy shows them."""
