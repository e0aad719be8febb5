"""`strongroom users`: what an operator does with accounts, beside a running server."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from strongroom.cli import terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse

_WHERE = ("DB_PATH", "DATABASE_URL")


def add_commands(parser: argparse.ArgumentParser) -> None:
    """The commands below `strongroom users`."""
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    adding = commands.add_parser(
        "add",
        help="add an account",
        description="Add an account, also where sign-ups are closed. The password is asked for, or read from standard "
        "input. Where the data lies is told as for 'strongroom serve'.",
    )
    adding.add_argument("email", metavar="EMAIL", help="the email of the new account")
    for option in TABLE:
        if option.variable in _WHERE:
            metavar = "FILE" if option.is_secret else "PATH"
            adding.add_argument(option.option, dest=option.variable, metavar=metavar, help=option.meaning)
    adding.set_defaults(run=add)


def add(options: argparse.Namespace) -> int:
    """Add an account."""
    from strongroom.cli.serving import environment
    from strongroom.errors import Refusal
    from strongroom.server import operate
    from strongroom.server.settings import BadSetting, resolve
    from strongroom.store import CannotOpen

    given = {option.option: getattr(options, option.variable) for option in TABLE if option.variable in _WHERE}
    try:
        settings = resolve({"JWT_SECRET": "not needed here", **environment(os.environ)}, given)
        user_id = operate.add_user(settings, options.email, terminal.ask_secret("Password"))
    except (BadSetting, CannotOpen) as error:
        raise terminal.Stop(str(error)) from None
    except Refusal as refusal:
        fields = (refusal.details or {}).get("fields", {})
        said = "; ".join(f"{name} {what}" for name, what in fields.items()) or refusal.message
        raise terminal.Stop(f"{said.rstrip('.')}.") from None
    terminal.say(f"Added {options.email} as {user_id}.")
    return 0
