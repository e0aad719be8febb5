"""The command line `strongroom`. Each command imports only what it needs, so that help is fast."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom._version import __version__
from strongroom.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SERVER_LIBRARIES: Final = ("asyncpg", "dotenv", "httptools")


class _Command(NamedTuple):
    """A command: its name, its line in the help, and the function that adds its options."""

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None]


class _Version(argparse.Action):
    """Shows the release and the schema version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        from strongroom.server.admin import operations

        terminal.print_line(f"strongroom {__version__} (schema {operations.newest_schema()})")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    terminal.open_closed_streams()
    with terminal.exit_when_output_closes():
        if any(find_spec(name) is None for name in _SERVER_LIBRARIES):
            terminal.print_error(
                "this command runs and manages a server, and only the client is installed; "
                "run: pip install 'strongroom[server]' (in a clone: pip install '.[server]')"
            )
            return 2
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    chosen = next((word for word in words if not word.startswith("-")), None)  # no option before it takes a value
    parser = argparse.ArgumentParser(
        prog="strongroom",
        description="A backend for end-to-end encrypted data, which the operator of the server cannot read.",
        epilog="'strongroom COMMAND --help' explains a command. All commands read the same settings: options, "
        "environment variables and a settings file; 'strongroom config' shows them.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the release and its schema, and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    alone = [one for one in _COMMANDS if [one.name] == list(words[:1])]
    for one in alone or _COMMANDS:  # to add all of them takes longer than most commands run
        command = commands.add_parser(one.name, help=one.summary)
        if one.name == chosen:
            one.add_options(command)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except terminal.CommandFailed as stop:
        terminal.print_error(str(stop))
        return stop.code
    return code


def _serve(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import serve

    parser.description = "Run the server until SIGTERM or SIGINT. SIGHUP reloads secrets and certificate."
    serve.add_options(parser)
    ends = terminal.exit_codes("ended by a signal", "1 the disk or a worker failed", "74 the database is damaged")
    parser.epilog = f"{parser.epilog} {ends}"
    parser.add_argument(
        "--no-migrate",
        action="store_true",
        help="refuse a database whose schema is not up to date, instead of migrating it; "
        "'strongroom db migrate' migrates it",
    )
    parser.set_defaults(run=serve.serve)


def _init(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import serve

    parser.description = "Write a .env file with a new JWT_SECRET, readable by you only. A secret that exists is kept."
    parser.epilog = terminal.exit_codes()
    parser.set_defaults(run=serve.init)


def _backup(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import backup

    backup.add_backup(parser)


def _restore(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import backup

    backup.add_restore(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import doctor

    doctor.add_options(parser)


def _salvage(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import salvage

    salvage.add_options(parser)


def _db(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import database

    parser.description = (
        "Copy a whole service to another database, migrate the schema of its database, or begin a "
        "new epoch (new-epoch), which tells clients that the database went back in time."
    )
    database.add_commands(parser)


def _users(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import users

    parser.description = "Manage the accounts of a service."
    users.add_commands(parser)


def _keys(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import keys

    parser.description = "Manage the API keys of a service."
    keys.add_commands(parser)


def _invite(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import invite

    parser.description = "Invite people to register, also where sign-ups are closed."
    invite.add_commands(parser)


def _stats(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import maintenance

    maintenance.add_stats(parser)


def _vacuum(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import maintenance

    maintenance.add_vacuum(parser)


def _config(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import maintenance

    maintenance.add_config(parser)


def _ready(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import configuration, ready

    parser.description = "Ask the server that runs on this machine with these settings whether it is ready."
    parser.epilog = terminal.exit_codes("it is ready", "1 it is not ready, or does not respond")
    configuration.add_option(parser)
    parser.set_defaults(run=ready.ready)


def _systemd(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import systemd

    parser.description = "Print a hardened systemd unit; its first lines say how to install it."
    parser.epilog = terminal.exit_codes()
    parser.set_defaults(run=systemd.systemd)


_COMMANDS: Final = (
    _Command("serve", "run the server", _serve),
    _Command("init", "write a settings file .env with a new secret", _init),
    _Command("backup", "write a backup of the whole service, while it runs", _backup),
    _Command("restore", "replace the service with a backup", _restore),
    _Command("doctor", "diagnose a service, and say what to do", _doctor),
    _Command("salvage", "copy what can be read of a damaged SQLite file into a new one", _salvage),
    _Command("db", "copy a service to another database, migrate its schema, or begin a new epoch", _db),
    _Command("invite", "invite people to register", _invite),
    _Command("users", "manage accounts", _users),
    _Command("keys", "manage API keys", _keys),
    _Command("stats", "count what a service holds", _stats),
    _Command("vacuum", "reclaim the disk space of deleted data", _vacuum),
    _Command("config", "show every setting, and where it came from", _config),
    _Command("ready", "ask a running server whether it is ready", _ready),
    _Command("systemd", "print a systemd unit", _systemd),
)
