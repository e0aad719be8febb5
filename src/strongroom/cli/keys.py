"""`strongroom keys`: lists and revokes API keys, beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.cli import common, terminal
from strongroom.cli.common import format_time, settings_of, show_change

if TYPE_CHECKING:
    import argparse


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `strongroom keys`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listing = commands.add_parser(
        "list", help="list API keys", description="List the API keys of an account, or of all. Secrets are not stored."
    )
    listing.add_argument("who", metavar="ACCOUNT", nargs="?", help="the email or the id of one account")
    common.add_options(listing)
    listing.set_defaults(run=list_)
    revoking = commands.add_parser(
        "revoke", help="revoke an API key", description="Revoke an API key, at once and permanently."
    )
    revoking.add_argument("who", metavar="ACCOUNT", help="the email or the id of its account")
    revoking.add_argument("uid", metavar="KEY", help="the uid of the key, as 'strongroom keys list' shows it")
    common.add_options(revoking, asks=True)
    revoking.set_defaults(run=revoke)


def list_(options: argparse.Namespace) -> int:
    """List API keys."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = None if options.who is None else operations.find_user(settings, options.who)
        found = operations.list_keys(settings, account)
    if options.json:
        terminal.show_json({"keys": found})
        return 0
    rows = [
        (
            key.email,
            key.uid,
            key.name,
            format_time(key.created_at),
            format_time(key.last_used_at),
            format_time(key.expires_at),
        )
        for key in found
    ]
    terminal.table(("account", "uid", "name", "created", "last used", "expires"), rows)
    return 0


def revoke(options: argparse.Namespace) -> int:
    """Revoke an API key."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        account = operations.find_user(settings, options.who)
        key = next((key for key in operations.list_keys(settings, account) if key.uid == options.uid.lower()), None)
        if key is None:
            raise terminal.CommandFailed(f"{account.email} has no API key {options.uid}.", common.NOT_FOUND)
        terminal.confirm(f"Revoke the API key {key.name!r} ({key.uid}) of {account.email}?", yes=options.yes)
        operations.revoke(settings, key)
    return show_change(
        options, settings, {"uid": key.uid, "revoked": True}, f"Revoked {key.name!r} of {account.email}."
    )
