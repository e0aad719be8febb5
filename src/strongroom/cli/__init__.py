"""The command `strongroom`. Each command loads only what it needs, so that help is instant."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final, NamedTuple

from strongroom._version import __version__
from strongroom.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class _Command(NamedTuple):
    """A command, what the help says of it, and what adds its options."""

    name: str
    says: str
    add_options: Callable[[argparse.ArgumentParser], None]


class _Version(argparse.Action):
    """Shows the release and the schema; the latter is looked up only then, so that help stays instant."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print and end."""
        from strongroom.server.admin import operations

        terminal.say(f"strongroom {__version__} (schema {operations.newest_schema()})")
        parser.exit()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit code."""
    terminal.open_closed_streams()
    with terminal.quiet_when_nobody_reads():
        return _run(arguments)


def _run(arguments: Sequence[str] | None) -> int:
    words = sys.argv[1:] if arguments is None else arguments
    asked = next((word for word in words if not word.startswith("-")), None)  # no option before it takes a value
    parser = argparse.ArgumentParser(
        prog="strongroom",
        description="A backend for data that must stay unreadable to whoever runs the server.",
        epilog="'strongroom COMMAND --help' explains a command. All of them find the service by the same settings: "
        "options, variables of the environment, and a settings file; 'strongroom config' shows them.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the release and its schema, and exit")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    alone = [one for one in _COMMANDS if [one.name] == list(words[:1])]
    for one in alone or _COMMANDS:  # to make all of them takes longer than most commands
        command = commands.add_parser(one.name, help=one.says)
        if one.name == asked:
            one.add_options(command)
    options = parser.parse_args(arguments)
    try:
        code: int = options.run(options)
    except terminal.Stop as stop:
        terminal.complain(str(stop))
        return stop.code
    return code


def _serve(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import serve

    parser.description = "Run the server until SIGTERM or SIGINT. SIGHUP reads secrets and certificate anew."
    serve.add_options(parser)
    ends = terminal.exit_codes("ended by a signal", "1 the disk or a worker failed", "74 the database is damaged")
    parser.epilog = f"{parser.epilog} {ends}"
    parser.add_argument(
        "--no-migrate",
        action="store_true",
        help="refuse a database whose schema is not up to date, instead of bringing it up to date: "
        "'strongroom db migrate' does",
    )
    parser.set_defaults(run=serve.serve)


def _init(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import serve

    parser.description = (
        "Write a .env file with a fresh JWT_SECRET, readable by you only. An existing file is left alone."
    )
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
        "Copy a whole service to another database, bring the schema of its database up to date, or begin a "
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

    parser.description = "Ask the server that runs on this machine with these settings whether it can do its work."
    parser.epilog = terminal.exit_codes("it is ready", "1 it is not ready, or does not answer")
    configuration.add_option(parser)
    parser.set_defaults(run=ready.ready)


def _systemd(parser: argparse.ArgumentParser) -> None:
    from strongroom.cli import systemd

    parser.description = "Print a unit for systemd that locks the service in; its first lines say how to install it."
    parser.epilog = terminal.exit_codes()
    parser.set_defaults(run=systemd.systemd)


_COMMANDS: Final = (
    _Command("serve", "run the server", _serve),
    _Command("init", "write a settings file .env with a fresh secret", _init),
    _Command("backup", "write the whole service into an archive, while it runs", _backup),
    _Command("restore", "put an archive in the place of what is there", _restore),
    _Command("doctor", "say what is wrong, and what to do about it", _doctor),
    _Command("salvage", "bring what can be read of a damaged file into a new one", _salvage),
    _Command("db", "copy a service to another database, bring its schema up to date, or begin a new epoch", _db),
    _Command("users", "manage accounts", _users),
    _Command("keys", "manage API keys", _keys),
    _Command("stats", "count what a service holds", _stats),
    _Command("vacuum", "give back the room that deleted things left", _vacuum),
    _Command("config", "show every setting, and where it came from", _config),
    _Command("ready", "ask a running server whether it can do its work", _ready),
    _Command("systemd", "print a unit for systemd", _systemd),
)
