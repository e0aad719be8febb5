"""`strongroom invite`: invites people to register, also where sign-ups are closed, beside a running server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.cli import common, terminal
from strongroom.cli.common import format_time, settings_of, show_change

if TYPE_CHECKING:
    import argparse


def add_commands(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands of `strongroom invite`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    creating = commands.add_parser(
        "create",
        help="create an invitation, for one registration",
        description="Create an invitation, and print its code once; only a hash of it is stored. The person registers "
        "with it and with a password of their own, which the server does not learn from strongroom.client: "
        "client.register(email, password, invitation=CODE).",
    )
    creating.add_argument("email", metavar="EMAIL", nargs="?", help="the only email that may register with it")
    creating.add_argument(
        "--expires", metavar="TIME", default="7d", help="when it expires, from now: a number and m, h, d or w (7d)"
    )
    creating.add_argument("--note", metavar="TEXT", help="a note for the list, which the person does not see")
    common.add_options(creating)
    creating.set_defaults(run=create)
    listing = commands.add_parser(
        "list",
        help="list invitations",
        description="List the invitations, oldest first, and who used them. Codes are not stored. One that was used, "
        "or has expired, leaves the list after 30 days.",
    )
    common.add_options(listing)
    listing.set_defaults(run=list_)
    revoking = commands.add_parser(
        "revoke", help="revoke an invitation", description="Revoke an invitation that was not used, at once."
    )
    revoking.add_argument("uid", metavar="INVITATION", help="its uid, as 'strongroom invite list' shows it")
    common.add_options(revoking, asks=True)
    revoking.set_defaults(run=revoke)


def create(options: argparse.Namespace) -> int:
    """Create an invitation, and print its code."""
    from strongroom.errors import EmailAlreadyExists
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        try:
            made, code = operations.create_invitation(settings, options.email, options.note, options.expires)
        except EmailAlreadyExists:
            raise terminal.CommandFailed(f"There is already an account {options.email}; nothing was done.") from None
    value = {"uid": made.uid, "code": code, "email": made.email, "note": made.note, "expiresAt": made.expires_at}
    whom = "any email" if made.email is None else made.email
    show_change(
        options,
        settings,
        value,
        f"{code}\nInvites {whom} to register once, until {format_time(made.expires_at)} UTC. "
        f"The code is not shown again; 'strongroom invite revoke {made.uid}' revokes it.",
    )
    if settings.signups and not options.json:
        terminal.print_error("Sign-ups are open: anyone can register without an invitation too. See SIGNUPS.")
    return 0


def list_(options: argparse.Namespace) -> int:
    """List invitations."""
    import msgspec

    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        found = operations.list_invitations(settings)
    if options.json:
        terminal.show_json({"invitations": [{**msgspec.to_builtins(one), "state": state} for one, state in found]})
        return 0
    rows = [
        (
            one.uid,
            state,
            one.email or "any email",
            one.note or "-",
            format_time(one.created_at),
            format_time(one.expires_at) if one.used_at is None else "-",
            one.used_by_email or "-",
        )
        for one, state in found
    ]
    terminal.table(("uid", "state", "for", "note", "created", "expires", "used by"), rows)
    return 0


def revoke(options: argparse.Namespace) -> int:
    """Revoke an invitation."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        one = operations.find_invitation(settings, options.uid)
        if one.used_at is not None:
            raise terminal.CommandFailed(
                f"{one.used_by_email} has registered with this invitation; nothing was done. "
                f"'strongroom users disable {one.used_by_email}' disables the account."
            )
        about = ", ".join(filter(None, (f"for {one.email}" if one.email else "for any email", one.note)))
        terminal.confirm(f"Revoke the invitation {one.uid} ({about})?", yes=options.yes)
        operations.revoke_invitation(settings, one)
    return show_change(options, settings, {"uid": one.uid, "revoked": True}, f"Revoked the invitation {one.uid}.")
