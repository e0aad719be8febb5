"""How people's commands ask the agent: the password is asked for where it is locked, and what fails is one sentence."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from strongroom.agent import connection
from strongroom.agent.protocol import Failed
from strongroom.cli import prompts, terminal
from strongroom.cli.exit_codes import exit_code

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator


# What can be asked again where the agent has ended before it replied. A change may have been made all the same.
_READS: Final = frozenset(
    {"conflicts", "export", "find", "get", "history", "item", "items", "read", "sources", "tokens", "totp", "trash"}
)


def ask(operation: str, /, *, unlocks: bool = True, **members: Any) -> Any:
    """The result of an operation. Where the agent is locked, the password is asked for at the terminal first."""
    with failures():
        try:
            return _ask(operation, members)
        except Failed as failed:
            repeatable = failed.code == "locked" or (failed.code == "agent_ended" and operation in _READS)
            if not repeatable or not unlocks:
                raise
        unlock()
        return _ask(operation, members)


def is_locked() -> bool:
    """Whether there are no keys in memory."""
    with failures():
        return not connection.is_running() or bool(connection.ask("status")["locked"])


def unlock() -> None:
    """Ask for the master password at the terminal, and unlock; a sentence where there is no terminal."""
    from strongroom.agent.settings import read_settings

    with failures():
        email = read_settings()["email"]
        if not prompts.has_terminal():
            raise Failed("locked", "strongroom is locked, and there is no terminal to ask for the password.")
        password = prompts.ask_secret(f"Master password of {email}")
        _ask("unlock", {"password": password})


def _ask(operation: str, members: dict[str, Any]) -> Any:
    bar = terminal.Bar()
    try:
        return connection.ask(
            operation,
            question=_question,
            notice=terminal.print_error,
            progress=lambda told: _show(bar, told),
            **members,
        )
    finally:
        bar.clear()


def _show(bar: terminal.Bar, told: dict[str, Any]) -> None:
    doing = {"pull": "Fetching", "push": "Sending"}.get(told["phase"], told["phase"])
    bar.show(doing, told["done"], told["total"] or told["done"], of="items")


def _question(question: dict[str, Any]) -> str | None:
    if not prompts.has_terminal():
        return None
    if question["kind"] == "code":
        terminal.print_error(question["message"])
        return prompts.ask("Code") or None
    return prompts.ask_secret(question["message"]) or None


@contextmanager
def failures() -> Iterator[None]:
    """What fails ends the command with its sentence and its exit code."""
    try:
        yield
    except Failed as failed:
        raise terminal.CommandFailed(terminal.plain(failed.message), exit_code(failed.code)) from None


@contextmanager
def refusals() -> Iterator[None]:
    """A refusal of something that was typed ends the command with its sentence."""
    from strongroom.errors import Refusal

    try:
        yield
    except Refusal as refusal:
        raise terminal.CommandFailed(terminal.plain(str(refusal)), exit_code(refusal.code)) from None


def show(options: argparse.Namespace, value: Any, sentence: str) -> int:
    """Print a result, as JSON or as a sentence; the exit code."""
    if options.json:
        show_json(value)
    else:
        terminal.print_line(sentence)
    return 0


def show_json(value: Any) -> None:
    """Print JSON."""
    import json

    text = json.dumps(value, ensure_ascii=not terminal.has_unicode(), indent=2)
    # Controls of terminals, and what turns the direction of a text, which JSON itself would let pass.
    text = re.sub("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]", lambda found: f"\\u{ord(found[0]):04x}", text)
    terminal.print_line(text)


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the option --json."""
    parser.add_argument("--json", action="store_true", help="print JSON")
