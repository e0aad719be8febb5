"""What the operators' commands share: where the data lies, how an answer is shown, what an end means."""

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
NOT_THERE = 3
CODES = terminal.exit_codes("done", f"{NOT_THERE} nothing of that name", f"{terminal.NOT_CONFIRMED} not confirmed")


def add_options(parser: argparse.ArgumentParser, *, asks: bool = False) -> None:
    """Where the data lies and how to answer; for a command that asks first, that it should not."""
    configuration.add_option(parser)
    for option in TABLE:
        if option.variable in WHERE:
            parser.add_argument(option.option, dest=option.variable, metavar="FILE", help=option.meaning)
    parser.add_argument("--json", action="store_true", help="answer in JSON")
    if asks:
        parser.add_argument("--yes", action="store_true", help="do it without asking")
    parser.epilog = CODES


@contextmanager
def settings_of(options: argparse.Namespace) -> Iterator[Settings]:
    """The settings of a command; whatever goes wrong with them is one sentence."""
    from strongroom.errors import Refusal
    from strongroom.server.admin.operations import DoesNotExist
    from strongroom.store import CannotOpen

    try:
        yield configuration.settings_of(options)
    except CannotOpen as error:
        raise terminal.Stop(str(error)) from None
    except DoesNotExist as error:
        raise terminal.Stop(str(error), NOT_THERE) from None
    except Refusal as refusal:
        fields = (refusal.details or {}).get("fields", {})
        said = "; ".join(f"{name} {what}" for name, what in fields.items()) or refusal.message
        raise terminal.Stop(f"{said.rstrip('.')}.") from None


def answer(options: argparse.Namespace, value: Any, sentence: str) -> int:
    """Show what came of it: as JSON, or in a sentence."""
    terminal.show_json(value) if options.json else terminal.say(sentence)
    return 0


def changed(options: argparse.Namespace, settings: Settings, value: dict[str, Any], sentence: str) -> int:
    """Show what was changed, and in which service."""
    from strongroom.server.admin import operations

    where = operations.location(settings)
    return answer(options, {**value, "data": where}, f"{sentence} [{where}]")


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
