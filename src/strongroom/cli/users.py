"""`strongroom users`: manages accounts, beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom.cli import common, terminal
from strongroom.cli.common import format_time, plural, settings_of, show_change, size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

_WHO = "the email or the id of the account"


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `strongroom users`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, run: Callable[..., int], summary: str, more: str = "", *, asks: bool = False) -> Any:
        made = commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}. {more}")
        common.add_options(made, asks=asks)
        made.set_defaults(run=run)
        return made

    command("list", list_, "list the accounts", "Oldest first, with the size of its data and when it was last used.")
    command(
        "add",
        add,
        "add an account whose password this server knows",
        "For clients that send the password as typed. Works also where sign-ups are closed. The password is prompted "
        "for, or read from standard input. For people who use strongroom.client, 'strongroom invite create' is better: "
        "they register with a password that the server does not learn. The client opens an account that was added "
        "with adopt_account(email, password, new_password), once.",
    ).add_argument("email", metavar="EMAIL", help="the email of the new account")
    command("enable", enable, "enable a disabled account", "Its sessions and keys are valid again.").add_argument(
        "who", metavar="ACCOUNT", help=_WHO
    )
    for name, run, summary, more in (
        ("disable", disable, "disable an account", "Its sessions and keys are refused at once. No data is lost."),
        (
            "delete",
            delete,
            "delete an account and all its data",
            "At once and permanently.",
        ),
        ("sign-out", sign_out, "end every session of an account", "API keys stay valid; see 'strongroom keys'."),
        (
            "reset-second-factor",
            reset_second_factor,
            "delete the second factors of an account",
            "The password alone is enough then. Make sure that it is the owner who asks; the owner's log shows it.",
        ),
    ):
        command(name, run, summary, more, asks=True).add_argument("who", metavar="ACCOUNT", help=_WHO)
    reset = command(
        "reset-throttle", reset_throttle, "clear the failed logins that count against an account or an address"
    )
    reset.add_argument(
        "email", metavar="EMAIL", nargs="?", help="the email that was tried; it need not have an account"
    )
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
            raise terminal.CommandFailed(f"There is already an account {options.email}; nothing was changed.") from None
    return show_change(
        options,
        settings,
        {"id": user_id, "email": options.email},
        f"Added {options.email} as {user_id}. This server knows its password: strongroom.client must call "
        "adopt_account once, which sets another. 'strongroom invite create' needs no such step.",
    )


def disable(options: argparse.Namespace) -> int:
    """Disable an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        terminal.confirm(f"Disable the account {account.email} ({account.id})?", yes=options.yes)
        done = operations.disable(settings, account)
    state = "is disabled; its sessions and keys are refused" if done else "was disabled already"
    return show_change(
        options, settings, {"id": account.id, "disabled": True, "changed": done}, f"{account.email} {state}."
    )


def enable(options: argparse.Namespace) -> int:
    """Enable an account that was disabled."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        done = operations.enable(settings, account)
    state = "is enabled; its sessions and keys are valid again" if done else "was not disabled"
    return show_change(
        options, settings, {"id": account.id, "disabled": False, "changed": done}, f"{account.email} {state}."
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
    return show_change(
        options, settings, {"id": account.id, "deleted": True}, f"Deleted {account.email} and all its data."
    )


def sign_out(options: argparse.Namespace) -> int:
    """End every session of an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        open_ = plural(account.sessions, "session")
        terminal.confirm(f"End {open_} of {account.email} ({account.id})?", yes=options.yes)
        ended = operations.sign_out(settings, account)
    return show_change(
        options, settings, {"id": account.id, "ended": ended}, f"Ended {plural(ended, 'session')} of {account.email}."
    )


def reset_second_factor(options: argparse.Namespace) -> int:
    """Delete the second factors of an account."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        terminal.confirm(
            f"Delete the second factors of {account.email} ({account.id})? Its password alone opens it then.",
            yes=options.yes,
        )
        done = operations.reset_second_factor(settings, account)
    state = "has no second factor any more; its password is enough" if done else "had no second factor"
    return show_change(options, settings, {"id": account.id, "changed": done}, f"{account.email} {state}.")


def reset_throttle(options: argparse.Namespace) -> int:
    """Clear the failed logins that count against an account or an address."""
    from strongroom.server.admin import operations

    if options.email is None and options.address is None:
        raise terminal.CommandFailed("Name an email, or an address with --address.")
    if options.address is not None and not _is_address(options.address):
        raise terminal.CommandFailed(f"--address must be an IP address like 203.0.113.7, not {options.address!r}.")
    with settings_of(options) as settings:
        forgotten = operations.reset_throttle(settings, options.email, options.address)
    return show_change(options, settings, {"forgotten": forgotten}, f"Cleared {plural(forgotten, 'failure')}.")


def _is_address(text: str) -> bool:
    import ipaddress

    try:
        ipaddress.ip_address(text)
    except ValueError:
        return text in {"unix", "unknown"}  # the addresses of callers without an IP address
    return True
