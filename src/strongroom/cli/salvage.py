"""`strongroom salvage`: copies what can be read of a damaged SQLite file into a new one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.cli import terminal

if TYPE_CHECKING:
    import argparse

_SALVAGE = """
Copy what can be read of a damaged SQLite file into a new one, and say how many rows of each table were read, lost and
refused. The number of lost rows is a lower bound: rows that an index still lists, and documents that the counts of an
account or a vault include. SOURCE is not changed; a log beside it (SOURCE-wal) is read with it. Stop the server first.
A recent backup is better: salvage cannot detect what damage has changed within a row. Afterwards check TARGET with
'strongroom doctor --db-path TARGET', replace the damaged file with it, or set DB_PATH, and start the server: clients
notice the new epoch and send again what they have. Accounts that were rebuilt have no password.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom salvage`."""
    parser.description = _SALVAGE
    parser.add_argument("source", metavar="SOURCE", help="the damaged file")
    parser.add_argument("target", metavar="TARGET", help="the new file; it must not exist")
    parser.add_argument("--log", metavar="FILE", help="a damaged log of SOURCE that a server has set aside")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.epilog = terminal.exit_codes("everything was read", "1 something is lost or refused; TARGET is made")
    parser.set_defaults(run=salvage)


def salvage(options: argparse.Namespace) -> int:
    """Salvage a file; the exit code."""
    from strongroom.server.admin import operations
    from strongroom.store.file_owners import run_as_owner
    from strongroom.store.maintenance.endpoint_protocol import CannotCopy

    source, target = Path(options.source), Path(options.target)
    log = None if options.log is None else Path(options.log)
    if log is not None and not log.is_file():
        raise terminal.CommandFailed(f"There is no file {log}.")
    try:
        outcomes = operations.salvage(source, target, log)
    except CannotCopy as error:
        raise terminal.CommandFailed(str(error)) from None
    except PermissionError as error:
        raise terminal.CommandFailed(f"Cannot read {source}: {error.strerror}. {run_as_owner(source)}") from None
    missing = any(one.lost or one.refused or one.rebuilt for one in outcomes.values())
    if options.json:
        from msgspec import to_builtins

        terminal.show_json({"target": str(target), "tables": to_builtins(outcomes)})
        return int(missing)
    rows = [
        (name, f"{one.read:,}", f"{one.lost:,}", f"{one.refused:,}", f"{one.rebuilt:,}")
        for name, one in outcomes.items()
    ]
    terminal.table(("table", "read", "lost, at least", "refused", "rebuilt"), rows)
    terminal.print_line(f"wrote {target}, and checked it; it has a new epoch.")
    terminal.print_line(
        "The lost rows are those that an index still lists, and documents that the counts of an account or a vault "
        "include; there may be more."
    )
    terminal.print_line(
        "Sessions and API keys are those that were found: set a new JWT_SECRET unless you trust them all. "
        "Then start the server on the new file."
    )
    return int(missing)
