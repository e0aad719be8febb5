"""`strongroom users`: what an operator does with accounts, beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom.cli import common, terminal
from strongroom.cli.common import changed, format_time, plural, settings_of, size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_WHO = "the email or the id of the account"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """The commands below `strongroom users`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[..., int], says: str, more: str = "", *, asks: bool = False) -> Any:
        made = commands.add_parser(name, help=says, description=f"{says[0].upper()}{says[1:]}. {more}")
        common.add_options(made, asks=asks)
        made.set_defaults(run=run)
        return made

    command("list", list_, "list the accounts", "Oldest first, with how much each keeps and when it was last used.")
    command(
        "add",
        add,
        "add an account",
        "Also where sign-ups are closed. The password is asked for, or read from standard input.",
    ).add_argument("email", metavar="EMAIL", help="the email of the new account")
    command("enable", enable, "open an account that was shut", "Its sessions and keys are as they were.").add_argument(
        "who", metavar="ACCOUNT", help=_WHO
    )
    for name, run, says, more in (
        ("disable", disable, "shut an account", "Its sessions and keys are refused at once. Nothing is lost."),
        (
            "delete",
            delete,
            "delete an account and everything of it",
            "At once and for good.",
        ),
        ("sign-out", sign_out, "end every session of an account", "API keys go on; see 'strongroom keys'."),
    ):
        command(name, run, says, more, asks=True).add_argument("who", metavar="ACCOUNT", help=_WHO)
    reset = command("reset-throttle", reset_throttle, "forget the failures that count against an account or an address")
    reset.add_argument("email", metavar="EMAIL", nargs="?", help="the email that was tried, with an account or not")
    reset.add_argument("--address", metavar="ADDRESS", help="the address that failed too often")


def list_(options: argparse.Namespace) -> int:
    """List the accounts."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        found = operations.list_users(settings)
    if options.json:
        terminal.show_json({"accounts": found})
        return 0
    rows = [
        (
            account.email,
            account.id,
            format_time(account.created_at),
            format_time(account.last_used_at),
            f"{account.documents:,}",
            size(account.bytes),
            "open" if account.disabled_at is None else "disabled",
        )
        for account in found
    ]
    terminal.table(("email", "id", "created", "last used", "documents", "size", "state"), rows, right={4, 5})
    return 0


def add(options: argparse.Namespace) -> int:
    """Add an account."""
    from strongroom.errors import EmailAlreadyExists
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        try:
            user_id = operations.add_user(settings, options.email, terminal.ask_secret("Password"))
        except EmailAlreadyExists:
            raise terminal.Stop(f"There is an account {options.email} already; nothing was changed.") from None
    return changed(options, settings, {"id": user_id, "email": options.email}, f"Added {options.email} as {user_id}.")


def disable(options: argparse.Namespace) -> int:
    """Shut an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        terminal.confirm(f"Disable the account {account.email} ({account.id})?", yes=options.yes)
        done = operations.disable(settings, account)
    said = "is disabled; its sessions and keys are refused" if done else "was disabled already"
    return changed(options, settings, {"id": account.id, "disabled": True, "changed": done}, f"{account.email} {said}.")


def enable(options: argparse.Namespace) -> int:
    """Enable an account that was disabled."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        done = operations.enable(settings, account)
    said = "is enabled; its sessions and keys are as they were" if done else "was not disabled"
    return changed(
        options, settings, {"id": account.id, "disabled": False, "changed": done}, f"{account.email} {said}."
    )


def delete(options: argparse.Namespace) -> int:
    """Delete an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        holds = f"{plural(account.vaults, 'vault')}, {plural(account.documents, 'document')}, {size(account.bytes)}"
        terminal.confirm(
            f"Delete the account {account.email} ({account.id}) with {holds}? This cannot be undone.",
            yes=options.yes,
            word=account.email,
        )
        operations.delete(settings, account)
    return changed(
        options, settings, {"id": account.id, "deleted": True}, f"Deleted {account.email} and everything of it."
    )


def sign_out(options: argparse.Namespace) -> int:
    """End every session of an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        open_ = plural(account.sessions, "session")
        terminal.confirm(f"End {open_} of {account.email} ({account.id})?", yes=options.yes)
        ended = operations.sign_out(settings, account)
    return changed(
        options, settings, {"id": account.id, "ended": ended}, f"Ended {plural(ended, 'session')} of {account.email}."
    )


def reset_throttle(options: argparse.Namespace) -> int:
    """Forget the failures that count against an account or an address."""
    from strongroom.server.admin import operations

    if options.email is None and options.address is None:
        raise terminal.Stop("Name an email, or an address with --address.")
    if options.address is not None and not _is_address(options.address):
        raise terminal.Stop(f"--address must be an address of IP like 203.0.113.7, not {options.address!r}.")
    with settings_of(options) as settings:
        forgotten = operations.reset_throttle(settings, options.email, options.address)
    return changed(options, settings, {"forgotten": forgotten}, f"Forgot {plural(forgotten, 'failure')}.")


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text in {"unix", "unknown"}  # what callers without one are counted by
    return True
