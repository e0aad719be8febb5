"""The commands of `strongroom`: people's and operators'. Each imports only what it needs, so that help is fast."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from strongroom._version import __version__
from strongroom.agent.protection import protect_memory
from strongroom.cli import terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

_SERVER_LIBRARIES: Final = ("asyncpg", "dotenv", "httptools")


class Command(NamedTuple):
    """A command: its name, its line in the help, and the function that adds its options: itself, or its place."""

    name: str
    summary: str
    add_options: Callable[[argparse.ArgumentParser], None] | str

    def add(self, parser: argparse.ArgumentParser) -> None:
        """Add its options to a parser."""
        if isinstance(self.add_options, str):
            module, _, function = self.add_options.partition(":")
            getattr(import_module(f"strongroom.cli.{module}"), function)(parser)
        else:
            self.add_options(parser)


class _Version(argparse.Action):
    """Shows the release and the schema version, which is looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print the version and exit."""
        schema = ""
        if _has_server():
            from strongroom.server.admin import operations

            schema = f" (schema {operations.newest_schema()})"
        terminal.print_line(f"strongroom {__version__}{schema}")
        parser.exit()


class _Parser(argparse.ArgumentParser):
    """A parser that fails where its help cannot be written; argparse passes over that."""

    def _print_message(self, message: str, file: Any = None) -> None:
        if message:
            terminal.write_text(file or sys.stderr, message)


class _Menu(argparse.RawDescriptionHelpFormatter):
    """Help without the long list of commands in its usage: the two groups below have it."""

    def add_usage(
        self,
        usage: str | None,
        actions: Iterable[argparse.Action],
        groups: Iterable[argparse._MutuallyExclusiveGroup],
        prefix: str | None = None,
    ) -> None:
        """Add the line of usage."""
        super().add_usage(usage or "%(prog)s [--help] [--version] COMMAND …", actions, groups, prefix)


def main(words: Sequence[str]) -> int:
    """Run a command; its exit code."""
    terminal.open_closed_streams()
    terminal.show_all_characters()
    with terminal.exit_when_output_closes():
        try:
            return _run(words)
        except terminal.CommandFailed as stop:
            terminal.print_error(str(stop))
            return stop.code
        except KeyboardInterrupt:
            terminal.print_error("interrupted")
            return 130


def _run(words: Sequence[str]) -> int:
    chosen = next((word for word in words if not word.startswith("-")), None)  # no option before it takes a value
    group = _group_of(chosen, words)
    parser = _Parser(
        prog="strongroom",
        description=f"End-to-end encrypted storage, which the operator of its server cannot read.\n\n{_menu()}",
        epilog="'strongroom COMMAND --help' explains a command.",
        formatter_class=_Menu,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the release and its schema, and exit")
    commands = parser.add_subparsers(prog="strongroom", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    alone = [one for one in group if [one.name] == list(words[:1])]
    if alone and group is OPERATORS:
        _require_server()
    for one in alone or {one.name: one for one in (*OPERATORS, *PEOPLE)}.values():  # to add all of them takes longer
        command = commands.add_parser(one.name, help=one.summary)
        if one.name == chosen:
            one.add(command)
    if not words:
        parser.error("say which command; 'strongroom --help' lists all of them")
    options = parser.parse_args(words)
    if group is PEOPLE:
        protect_memory()
    code: int = options.run(options)
    return code


def _group_of(chosen: str | None, words: Sequence[str]) -> tuple[Command, ...]:
    """The group of a command. `restore` is in both: an item is named by a reference, a backup by its file."""
    if chosen == "restore":
        return PEOPLE if any(word.startswith("sr://") for word in words) else OPERATORS
    return PEOPLE if any(one.name == chosen for one in PEOPLE) else OPERATORS


def _menu() -> str:
    """All commands in two groups."""
    width = max(len(one.name) for one in (*PEOPLE, *OPERATORS)) + 2
    lines = []
    for title, group in (("commands for people", PEOPLE), ("commands for operators of a server", OPERATORS)):
        lines += [f"{title}:", *(f"    {one.name:{width}}{one.summary}" for one in group), ""]
    return "\n".join(lines).rstrip()


def _has_server() -> bool:
    return all(find_spec(name) is not None for name in _SERVER_LIBRARIES)


def _require_server() -> None:
    """Refuse an operator's command where only the client is installed."""
    if not _has_server():
        raise terminal.CommandFailed(
            "this command runs and manages a server, and only the client is installed; "
            "run: pip install 'strongroom[server]' (in a clone: pip install '.[server]')"
        )


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


OPERATORS: Final = (
    Command("serve", "run the server", _serve),
    Command("init", "write a settings file .env with a new secret", _init),
    Command("backup", "write a backup of the whole service, while it runs", _backup),
    Command("restore", "replace the service with a backup", _restore),
    Command("doctor", "diagnose a service, and say what to do", _doctor),
    Command("salvage", "copy what can be read of a damaged SQLite file into a new one", _salvage),
    Command("db", "copy a service to another database, migrate its schema, or begin a new epoch", _db),
    Command("invite", "invite people to register", _invite),
    Command("users", "manage accounts", _users),
    Command("keys", "manage API keys", _keys),
    Command("stats", "count what a service holds", _stats),
    Command("vacuum", "reclaim the disk space of deleted data", _vacuum),
    Command("config", "show every setting, and where it came from", _config),
    Command("ready", "ask a running server whether it is ready", _ready),
    Command("systemd", "print a systemd unit", _systemd),
)
# The commands of people ask the agent. The place of each is a module of this package and a function in it.
PEOPLE: Final = (
    Command("login", "log in, or register", "login:add_login"),
    Command("logout", "log out, and delete the copy on this device", "login:add_logout"),
    Command("unlock", "open the account with the master password", "login:add_unlock"),
    Command("lock", "forget every key", "login:add_lock"),
    Command("status", "say who is logged in, and what waits", "login:add_status"),
    Command("list", "list items, without their values", "items:add_list"),
    Command("search", "find items by title, username, address or tag", "items:add_search"),
    Command("get", "print a field of an item", "items:add_get"),
    Command("totp", "print the one-time code of an item", "items:add_totp"),
    Command("copy", "copy a field to the clipboard, for 30 seconds", "items:add_copy"),
    Command("add", "add an item", "item_changes:add_add"),
    Command("edit", "change an item, in your editor or field by field", "item_changes:add_edit"),
    Command("rm", "delete an item", "items:add_rm"),
    Command("restore", "restore a deleted item or an older version: sr://VAULT/ITEM", "items:add_restore"),
    Command("history", "list the versions of an item", "items:add_history"),
    Command("generate", "generate a password or a passphrase", "generator:add_generate"),
    Command("sync", "send and fetch changes now", "account:add_sync"),
    Command("conflicts", "list and decide conflicts between devices", "account:add_conflicts"),
    Command("import", "add the items of another password manager", "transfer:add_import"),
    Command("export", "write all items to a file, not encrypted", "transfer:add_export"),
    Command("share-token", "make a token for a program or a machine", "account:add_share_token"),
    Command("recovery", "make a recovery key, for a lost master password", "account:add_recovery"),
    Command("passwd", "change the master password", "account:add_passwd"),
    Command("rotate", "make new keys for everything", "account:add_rotate"),
    Command("web", "check the web app of a server", "web:add_options"),
    Command("completion", "print the completion script of a shell", "completion:add_options"),
    Command("agent", "say where the agent is, or run it in the foreground", "account:add_agent"),
    Command("run", "run a program with secrets in its environment", "programs:add_run"),
    Command("read", "print the value of a reference", "programs:add_read"),
    Command("inject", "fill a template with secrets", "programs:add_inject"),
    Command("env", "print variables with secrets, for a shell", "programs:add_env"),
    Command("credential", "the credential helper of git and docker", "credentials:add_options"),
    Command("mcp", "let a model use secrets that it does not see", "mcp:add_options"),
)
