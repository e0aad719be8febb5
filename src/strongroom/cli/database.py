"""`strongroom db copy`, `strongroom db migrate` and `strongroom db new-epoch`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.cli import common, terminal

if TYPE_CHECKING:
    import argparse

_COPY = """
Copy a whole service into an empty database: from SQLite to PostgreSQL, back, or between two of a kind.
SOURCE and TARGET are each the path of a SQLite file or an address like postgresql://user:password@host/name.
What stands on a command line stands in everybody's list of processes, so write an address that holds a password
into a file that only you can read, and give @FILE: the address is then read from there.
Stop the server first; one that still runs cannot write while the copy is made.
Interrupted, the same command goes on where it was. At the end both sides are compared row by row.
"""


_NEW_EPOCH = """
Give the database another epoch. Do so whenever it went back in time by other means than 'strongroom restore', which
does it by itself: a copy of the file, a snapshot of the machine, a recovery of PostgreSQL to a point in time. Without
it no client notices, and what they have seen since and what they write next do not fit together. Stop the server first,
on all nodes. Nothing else is changed; clients compare what they have with the server and send what it lost.
"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """The commands below `strongroom db`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    copying = commands.add_parser("copy", help="copy a whole service into an empty database", description=_COPY)
    copying.add_argument("source", metavar="SOURCE", help="where the service is: a path, a URL, or @FILE")
    copying.add_argument("target", metavar="TARGET", help="an empty database: a path, a URL, or @FILE")
    copying.epilog = terminal.exit_codes()
    copying.set_defaults(run=copy)
    migrating = commands.add_parser(
        "migrate",
        help="bring the schema up to date",
        description="Bring the schema of the database up to date, or make it. 'strongroom serve' does the same by "
        "itself, unless it is told --no-migrate. Beside a file a copy of it is kept as it was.",
    )
    common.add_options(migrating)
    migrating.set_defaults(run=migrate)
    renewing = commands.add_parser(
        "new-epoch", help="tell clients that the database went back in time", description=_NEW_EPOCH
    )
    common.add_options(renewing, asks=True)
    renewing.set_defaults(run=new_epoch)


def copy(options: argparse.Namespace) -> int:
    """Copy a service."""
    import asyncio

    from strongroom.store import CannotOpen
    from strongroom.store.maintenance import copy as store

    watcher = _CopyProgress()
    work = store.copy(_address(options.source), _address(options.target), _clock, watcher)
    try:
        asyncio.run(work)
    except (store.CannotCopy, CannotOpen) as error:
        raise terminal.Stop(str(error)) from None
    except KeyboardInterrupt:
        raise terminal.Stop("Interrupted; run the same command again to go on.") from None
    finally:
        watcher.bar.clear()
    return 0


def migrate(options: argparse.Namespace) -> int:
    """Bring the schema up to date."""
    from strongroom.server.admin import operations

    with common.settings_of(options) as settings:
        where, taken = operations.migrate(settings)
    did = f"took {common.plural(len(taken), 'step')}, up to {taken[-1]}" if taken else "is up to date already"
    return common.answer(options, {"data": where, "steps": taken}, f"{where} {did}.")


def new_epoch(options: argparse.Namespace) -> int:
    """Begin a new epoch."""
    from strongroom.server.admin import operations
    from strongroom.store.maintenance.endpoint_protocol import CannotCopy

    with common.settings_of(options) as settings:
        terminal.confirm(
            "Give the database a new epoch, so that every client compares all that it has with the server?",
            yes=options.yes,
        )
        try:
            where, before, after = operations.begin_new_epoch(settings)
        except CannotCopy as error:
            raise terminal.Stop(str(error)) from None
    value = {"data": where, "epochBefore": before, "epoch": after}
    return common.answer(options, value, f"{where}: the epoch was {before} and is {after} now.")


class _CopyProgress:
    """Shows at the terminal how the copy goes."""

    def __init__(self) -> None:
        self.bar = terminal.Bar()

    def moved(self, doing: str, done: int, total: int) -> None:
        """Move the bar."""
        self.bar.show(doing, done, total)

    def said(self, sentence: str) -> None:
        """Say it, and draw the bar below."""
        self.bar.clear()
        terminal.say(sentence)

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        """Show how many rows of each table both sides hold."""
        from strongroom.store.maintenance.copy import LEFT_OUT

        self.bar.clear()
        rows = [("table", "source", "target"), *((name, f"{a:,}", f"{b:,}") for name, (a, b) in counts.items())]
        widths = [max(len(row[column]) for row in rows) for column in range(3)]
        for name, source, target in rows:
            terminal.say(f"{name:{widths[0]}}  {source:>{widths[1]}}  {target:>{widths[2]}}")
        terminal.say("verified: every row is the same on both sides.")
        for name, reason in LEFT_OUT.items():
            terminal.say(f"not copied: {name} ({reason})")


def _address(given: str) -> str:
    """The address itself, or what the file holds that is named after an @."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise terminal.Stop(f"Cannot read the file {given[1:]}: {reason}.") from None


def _clock() -> int:
    return time.time_ns() // 1_000_000
