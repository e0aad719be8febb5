"""`strongroom serve` and `strongroom init`."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.cli import terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from strongroom.server.settings import Settings

ENV_FILE = ".env"


def add_options(parser: argparse.ArgumentParser) -> None:
    """One option for each setting."""
    for setting in TABLE:
        default = f" (default: {setting.default})" if setting.default else ""
        parser.add_argument(
            setting.option,
            dest=setting.variable,
            metavar="FILE" if setting.is_secret else "VALUE",
            help=f"{setting.meaning}{default} [{setting.variable}]".replace("%", "%%"),
        )


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables, over those of the .env file in this folder; an empty one counts as absent."""
    from dotenv import dotenv_values

    values = dotenv_values(ENV_FILE, interpolate=False) | dict(variables)
    return {name: value for name, value in values.items() if value}


def serve(options: argparse.Namespace) -> int:
    """Run the server."""
    from strongroom.server import open_server
    from strongroom.server.observe import to_stderr
    from strongroom.server.settings import WEAK_SECRET_BYTES, BadSetting, resolve
    from strongroom.store import CannotOpen

    given = {setting.option: getattr(options, setting.variable) for setting in TABLE}

    def read() -> Settings:
        return resolve(environment(os.environ), given)

    try:
        settings = read()
        if len(settings.jwt_secret) < WEAK_SECRET_BYTES:
            terminal.complain(
                f"warning: JWT_SECRET is shorter than {WEAK_SECRET_BYTES} bytes; 'strongroom init' makes a good one."
            )
        if settings.workers > 1:
            from strongroom.server import workers

            return workers.run(settings, read, migrate=not options.no_migrate)
        log = to_stderr(settings.log_level, settings.log_format)
        wait = settings.db_wait_seconds
        open_server(settings, log=log, migrate=not options.no_migrate, wait=wait).listen(reread=read)
    except (BadSetting, CannotOpen) as error:
        raise terminal.Stop(str(error)) from None
    return 0


def init(_options: argparse.Namespace) -> int:
    """Write a .env with a fresh secret."""
    try:
        descriptor = os.open(ENV_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        terminal.say(f"{ENV_FILE} exists already; left as it is.")
        return 0
    except OSError as error:
        raise terminal.Stop(f"Cannot write {ENV_FILE}: {error.strerror}.") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"JWT_SECRET={secrets.token_hex(32)}\n")
    terminal.say(
        f"Wrote {Path(ENV_FILE).absolute()} with a fresh secret. Keep it: without it, everybody must log in again."
    )
    return 0
