"""The command `strongroom`. Each command loads only what it needs, so that help is instant."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from strongroom import __version__
from strongroom.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Sequence


class _Version(argparse.Action):
    """Shows the release and the schema; the latter is looked up only then, so that help stays instant."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and end."""
        from strongroom.server import operate

        terminal.say(f"strongroom {__version__} (schema {operate.newest_schema()})")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    terminal.open_closed_streams()
    with terminal.quiet_when_nobody_reads():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    parser = argparse.ArgumentParser(
        prog="strongroom",
        description="A backend for data that must stay unreadable to whoever runs the server.",
        epilog="'strongroom COMMAND --help' explains a command. All of them find the service by the same settings: "
        "options, variables of the environment, and a settings file; 'strongroom config' shows them.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the release and its schema, and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    serve = commands.add_parser(
        "serve",
        help="run the server",
        description="Run the server until SIGTERM or SIGINT. SIGHUP reads secrets and certificate anew.",
    )
    from strongroom.cli import serving

    serving.add_options(serve)
    ends = terminal.exit_codes("ended by a signal", "1 the disk or a worker failed", "74 the database is damaged")
    serve.epilog = f"{serve.epilog} {ends}"
    serve.add_argument(
        "--no-migrate",
        action="store_true",
        help="refuse a database whose schema is not up to date, instead of bringing it up to date: "
        "'strongroom db migrate' does",
    )
    serve.set_defaults(run=serving.serve)

    init = commands.add_parser(
        "init",
        help="write a settings file .env with a fresh secret",
        description="Write a .env file with a fresh JWT_SECRET, readable by you only. An existing file is left alone.",
        epilog=terminal.exit_codes(),
    )
    init.set_defaults(run=serving.init)

    from strongroom.cli import backup, doctor, salvage

    backup.add_backup(commands.add_parser("backup", help="write the whole service into an archive, while it runs"))
    backup.add_restore(commands.add_parser("restore", help="put an archive in the place of what is there"))
    doctor.add_options(commands.add_parser("doctor", help="say what is wrong, and what to do about it"))

    salvage.add_options(commands.add_parser("salvage", help="bring what can be read of a damaged file into a new one"))

    db = commands.add_parser(
        "db",
        help="copy a service to another database, bring its schema up to date, or begin a new epoch",
        description="Copy a whole service to another database, bring the schema of its database up to date, or begin a "
        "new epoch (new-epoch), which tells clients that the database went back in time.",
    )
    from strongroom.cli import database

    database.add_commands(db)

    from strongroom.cli import users

    people = commands.add_parser("users", help="manage accounts", description="Manage the accounts of a service.")
    users.add_commands(people)

    from strongroom.cli import keys, service

    secrets = commands.add_parser("keys", help="manage API keys", description="Manage the API keys of a service.")
    keys.add_commands(secrets)
    service.add_commands(commands)

    from strongroom.cli import asking, configuration, unit

    asks = commands.add_parser(
        "ready",
        help="ask a running server whether it can do its work",
        description="Ask the server that runs on this machine with these settings whether it can do its work.",
        epilog=terminal.exit_codes("it is ready", "1 it is not ready, or does not answer"),
    )
    configuration.add_option(asks)
    asks.set_defaults(run=asking.ready)

    systemd = commands.add_parser(
        "systemd",
        help="print a unit for systemd",
        description="Print a unit for systemd that locks the service in; its first lines say how to install it.",
        epilog=terminal.exit_codes(),
    )
    systemd.set_defaults(run=unit.systemd)

    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except terminal.Stop as stop:
        terminal.complain(str(stop))
        return stop.code
    return code
