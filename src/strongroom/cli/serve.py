"""`strongroom serve` and `strongroom init`."""

from __future__ import annotations

import argparse
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strongroom.cli import backup_settings, configuration, terminal
from strongroom.cli.configuration import ENV_FILE
from strongroom.options import TABLE

if TYPE_CHECKING:
    from collections.abc import Collection

    from strongroom.server.monitoring.log import Log
    from strongroom.server.settings import Settings

# The common settings, which --help shows; --help-all shows the others too.
COMMON = (
    "JWT_SECRET",
    "DB_PATH",
    "DATABASE_URL",
    "HOST",
    "PORT",
    "TLS_CERT_FILE",
    "TLS_KEY_FILE",
    "PUBLIC_URL",
    "SIGNUPS",
    "BACKUP_DIR",
    "WORKERS",
    "LOG_LEVEL",
)
_MORE = (
    "These are the common options; there is one for each setting, and --help-all shows them all. The variable in "
    "brackets sets the same, in the environment or as a line NAME=value of the settings file. An option wins over the "
    "environment, and the environment over the file. docs/settings.md explains every setting."
)
_METAVARS = {"BACKUP_DIR": "DIR", "HOST": "ADDRESS", "PORT": "PORT", "PUBLIC_URL": "URL", "WORKERS": "N"}


def add_options(parser: argparse.ArgumentParser, common: Collection[str] = COMMON) -> None:
    """Add an option for each setting. --help shows the common ones, --help-all shows all."""
    parser.usage = "%(prog)s [OPTION ...]"
    parser.epilog = _MORE
    rare: list[tuple[argparse.Action, str]] = []
    parser.add_argument(
        "--help-all", action=_HelpAll, const=rare, nargs=0, help="show this help with every option, and exit"
    )
    configuration.add_option(parser)
    for setting in TABLE:
        default = f" (default: {setting.default})" if setting.default else ""
        variables = " or ".join(filter(None, (setting.variable, setting.file_variable)))
        meaning = f"{setting.meaning}{default} [{variables}]".replace("%", "%%")
        shown = setting.variable in common
        added = parser.add_argument(
            setting.option,
            dest=setting.variable,
            metavar=_METAVARS.get(setting.variable, "FILE" if setting.is_secret or setting.is_path else "VALUE"),
            help=meaning if shown else argparse.SUPPRESS,
        )
        if not shown:
            rare.append((added, meaning))


class _HelpAll(argparse.Action):
    """Shows the help with all options."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        for action, meaning in self.const:
            action.help = meaning
        parser.print_help()
        parser.exit()


def serve(options: argparse.Namespace) -> int:
    """Run the server."""
    from strongroom.server import open_server
    from strongroom.server.monitoring.log import to_stderr
    from strongroom.server.settings import WEAK_SECRET_BYTES, BadSetting
    from strongroom.store import CannotOpen

    log: Log | None = None
    first_worker = os.getpid()  # of several workers, only the first logs warnings

    def reread() -> Settings:
        try:
            again = configuration.read(options)
        except terminal.CommandFailed as stop:
            raise BadSetting(str(stop)) from None
        for sentence in again.warnings if os.getpid() == first_worker else ():
            if log is not None:
                log.say("warning", sentence)
            else:
                with suppress(terminal.OutputClosed):
                    terminal.print_error(f"warning: {sentence}")
        return again.settings()

    try:
        configured = configuration.read(options)
        for warning in configured.warnings:
            terminal.print_error(f"warning: {warning}")
        settings = configured.settings()
        backup_settings.refuse_impossible_backups(settings)
        if len(settings.jwt_secret) < WEAK_SECRET_BYTES:
            terminal.print_error(
                f"warning: JWT_SECRET is shorter than {WEAK_SECRET_BYTES} bytes; 'strongroom init' creates a good one."
            )
        if settings.workers > 1:
            from strongroom.server import workers

            return workers.run(settings, reread, migrate=not options.no_migrate)
        log = to_stderr(settings.log_level, settings.log_format)
        wait = settings.db_wait_seconds
        open_server(settings, log=log, migrate=not options.no_migrate, wait=wait).listen(reread=reread)
    except (BadSetting, CannotOpen) as error:
        raise terminal.CommandFailed(str(error)) from None
    return 0


def init(_options: argparse.Namespace) -> int:
    """Write a .env with a new secret."""
    try:
        descriptor = os.open(ENV_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _add_secret(Path(ENV_FILE))
    except OSError as error:
        raise terminal.CommandFailed(f"Cannot write {ENV_FILE}: {error.strerror}.") from None
    with os.fdopen(descriptor, "w") as file:
        file.write(f"JWT_SECRET={secrets.token_hex(32)}\n")
    terminal.print_line(
        f"Wrote {Path(ENV_FILE).absolute()} with a new secret. Keep it: without it, all users must log in again."
    )
    return 0


def _add_secret(path: Path) -> int:
    """Add a new secret to a .env that has none; one that exists is kept."""
    from dotenv import dotenv_values

    try:
        given = dotenv_values(path, interpolate=False)
        if given.get("JWT_SECRET") or given.get("JWT_SECRET_FILE"):
            terminal.print_line(f"{path} exists already and has a secret; nothing was changed.")
            return 0
        text = path.read_text("utf-8")
        with path.open("a", encoding="utf-8") as file:
            file.write(("" if text.endswith("\n") or not text else "\n") + f"JWT_SECRET={secrets.token_hex(32)}\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise terminal.CommandFailed(f"Cannot add a secret to {path}: {reason}.") from None
    terminal.print_line(f"Added a new secret to {path.absolute()}. Keep it: without it, all users must log in again.")
    return 0
