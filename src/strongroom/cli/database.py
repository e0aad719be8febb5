"""`strongroom db copy`, `strongroom db migrate` and `strongroom db new-epoch`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from strongroom.cli import common, terminal

if TYPE_CHECKING:
    import argparse

_COPY = """
Copy a whole service into an empty database: from SQLite to PostgreSQL, back, or between two of a kind.
SOURCE and TARGET are each the path of a SQLite file or an address like postgresql://user:password@host/name.
Other users can see command lines in the list of processes. So write an address that holds a password into a file
that only you can read, and give @FILE: the address is then read from there.
Stop the server first; one that still runs cannot write while the copy is made.
After an interruption, run the same command again to continue. At the end both sides are compared row by row.
"""


_NEW_EPOCH = """
Begin a new epoch. Do so whenever the database went back in time by other means than 'strongroom restore', which does
it by itself: a copy of the file, a snapshot of the machine, a point-in-time recovery of PostgreSQL. Without it clients
do not notice, and what they have seen since conflicts with what they write next. Stop the server first, on all nodes.
Nothing else is changed; clients compare what they have with the server and send what it lost.
"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `strongroom db`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    copying = commands.add_parser("copy", help="copy a whole service into an empty database", description=_COPY)
    copying.add_argument("source", metavar="SOURCE", help="the database of the service: a path, a URL, or @FILE")
    copying.add_argument("target", metavar="TARGET", help="an empty database: a path, a URL, or @FILE")
    copying.epilog = terminal.exit_codes()
    copying.set_defaults(run=copy)
    migrating = commands.add_parser(
        "migrate",
        help="migrate the schema",
        description="Migrate the schema of the database, or create it. 'strongroom serve' does the same by "
        "itself, unless it has --no-migrate. A copy of a SQLite file is kept beside it.",
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
        raise terminal.CommandFailed(str(error)) from None
    except KeyboardInterrupt:
        raise terminal.CommandFailed("Interrupted; run the same command again to continue.") from None
    finally:
        watcher.bar.clear()
    return 0


def migrate(options: argparse.Namespace) -> int:
    """Migrate the schema."""
    from strongroom.server.admin import operations

    with common.settings_of(options) as settings:
        where, taken = operations.migrate(settings)
    did = f"ran {common.plural(len(taken), 'migration')}, up to {taken[-1]}" if taken else "is up to date already"
    return common.show_result(options, {"data": where, "steps": taken}, f"{where} {did}.")


def new_epoch(options: argparse.Namespace) -> int:
    """Begin a new epoch."""
    from strongroom.server.admin import operations
    from strongroom.store.maintenance.endpoint_protocol import CannotCopy

    with common.settings_of(options) as settings:
        terminal.confirm(
            "Begin a new epoch, so that every client compares all its data with the server?",
            yes=options.yes,
        )
        try:
            where, before, after = operations.begin_new_epoch(settings)
        except CannotCopy as error:
            raise terminal.CommandFailed(str(error)) from None
    value = {"data": where, "epochBefore": before, "epoch": after}
    return common.show_result(options, value, f"{where}: the epoch was {before} and is now {after}.")


class _CopyProgress(terminal.Progress):
    """Shows the progress of a copy, and its counts."""

    def verified(self, counts: dict[str, tuple[int, int]]) -> None:
        """Print the rows of each table on both sides."""
        from strongroom.store.maintenance.copy import LEFT_OUT

        self.bar.clear()
        rows = ((name, f"{source:,}", f"{target:,}") for name, (source, target) in counts.items())
        terminal.table(("table", "source", "target"), rows, right={1, 2})
        terminal.print_line("verified: every row is the same on both sides.")
        for name, reason in LEFT_OUT.items():
            terminal.print_line(f"not copied: {name} ({reason})")


def _address(given: str) -> str:
    """The address of a database, or the content of the file that is named after an @."""
    if not given.startswith("@"):
        return given
    return terminal.read_text(given[1:]).strip()


def _clock() -> int:
    return time.time_ns() // 1_000_000
