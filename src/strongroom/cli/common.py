"""What the admin commands share: options, settings, output, exit codes."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from strongroom.cli import configuration, terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from strongroom.server.settings import Settings

WHERE = ("DB_PATH", "DATABASE_URL")
NOT_FOUND = 3
EXIT_CODES = terminal.exit_codes(
    "done", f"{NOT_FOUND} no such account, key or invitation", f"{terminal.NOT_CONFIRMED} not confirmed"
)


def add_options(parser: argparse.ArgumentParser, *, asks: bool = False) -> None:
    """Add the options for the database and the output, and --yes for a command that asks for confirmation."""
    configuration.add_option(parser)
    for option in TABLE:
        if option.variable in WHERE:
            parser.add_argument(option.option, dest=option.variable, metavar="FILE", help=option.meaning)
    parser.add_argument("--json", action="store_true", help="print JSON")
    if asks:
        parser.add_argument("--yes", action="store_true", help="do it without confirmation")
    parser.epilog = EXIT_CODES


@contextmanager
def settings_of(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings of a command; errors in the block end it with one sentence."""
    from strongroom.errors import Refusal
    from strongroom.server.admin.operations import DoesNotExist
    from strongroom.store import CannotOpen

    try:
        yield configuration.settings_of(options)
    except CannotOpen as error:
        raise terminal.CommandFailed(str(error)) from None
    except DoesNotExist as error:
        raise terminal.CommandFailed(str(error), NOT_FOUND) from None
    except UnicodeEncodeError:
        raise terminal.CommandFailed("A value is not text in UTF-8; nothing was done.") from None
    except Refusal as refusal:
        fields = (refusal.details or {}).get("fields", {})
        reason = "; ".join(f"{name} {what}" for name, what in fields.items()) or refusal.message
        raise terminal.CommandFailed(f"{reason.rstrip('.')}.") from None


def show_result(options: argparse.Namespace, value: Any, sentence: str) -> int:
    """Print a result, as JSON or as a sentence; the exit code."""
    terminal.show_json(value) if options.json else terminal.print_line(sentence)
    return 0


def show_change(options: argparse.Namespace, settings: Settings, value: dict[str, Any], sentence: str) -> int:
    """Print what was changed, and in which service; the exit code."""
    from strongroom.server.admin import operations

    where = operations.location(settings)
    return show_result(options, {**value, "data": where}, f"{sentence} [{where}]")


def format_time(milliseconds: int | None) -> str:
    """A time for people, in UTC."""
    return "-" if milliseconds is None else time.strftime("%Y-%m-%d %H:%M", time.gmtime(milliseconds / 1000))


def size(count: int) -> str:
    """A number of bytes for people."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TiB"


def plural(count: int, noun: str) -> str:
    """A count and its noun, in the singular or the plural."""
    from strongroom.store import findings  # here, so that help stays instant

    return findings.plural(count, noun)
