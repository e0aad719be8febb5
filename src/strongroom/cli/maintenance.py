"""`strongroom stats`, `strongroom vacuum` and `strongroom config`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom.cli import backup_settings, common, configuration, serve, terminal
from strongroom.cli.common import settings_of, show_result, size
from strongroom.options import TABLE, Option

if TYPE_CHECKING:
    import argparse


def add_stats(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom stats`."""
    parser.description = "Count what a service holds. It reads whole tables."
    common.add_options(parser)
    parser.set_defaults(run=stats)


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom vacuum`."""
    parser.description = (
        "Reclaim the disk space of deleted data. A SQLite file is rewritten: that needs free disk space of twice its "
        "size, and writes wait meanwhile, or get 503 after 5 seconds. On PostgreSQL writes do not wait."
    )
    common.add_options(parser, asks=True)
    parser.set_defaults(run=vacuum)


def add_config(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom config`."""
    parser.description = (
        "Show every setting, its value, and its source; secrets are not shown. It has the options of "
        "'strongroom serve'."
    )
    serve.add_options(parser, common.WHERE)
    parser.epilog = f"{parser.epilog} {terminal.exit_codes('a server would start with these settings')}"
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=config)


def stats(options: argparse.Namespace) -> int:
    """Count what a service holds."""
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        found = operations.stats(settings)
    if options.json:
        terminal.show_json(found)
        return 0
    for name, value in found.items():
        words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
        shown = "unknown" if value is None else f"{value:,}" if isinstance(value, int) else value
        terminal.print_line(
            f"{words:18}  {shown}" + (f"  ({size(value)})" if "ytes" in name and value is not None else "")
        )
    return 0


def vacuum(options: argparse.Namespace) -> int:
    """Reclaim the disk space of deleted data."""
    from strongroom.errors import StorageFull
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        where = operations.existing_location(settings)
        terminal.confirm(f"Vacuum {where}? Writes to a file wait meanwhile.", yes=options.yes)
        try:
            before, after = operations.vacuum(settings)
        except StorageFull:
            raise terminal.CommandFailed(
                f"There is not enough free space on the disk of {where} to rewrite it; nothing was changed. Free twice "
                "its size, for example by moving old backups away."
            ) from None
    result = {"data": where, "before": before, "after": after}
    return show_result(options, result, f"{where} had {size(before)} and has {size(after)} now.")


def config(options: argparse.Namespace) -> int:
    """Print every setting, and its source."""
    from strongroom.server.settings import BadSetting

    configured = configuration.read(options)
    shown = [_setting(option, configured.values[option.variable]) for option in TABLE]
    by_name = {row["variable"]: row for row in shown}
    if by_name["JWT_ISSUER"]["source"] == "default" and by_name["VAULT_VARIANT"]["value"] == "blob":
        by_name["JWT_ISSUER"]["value"] = "strongbox"
    file = None if configured.file is None else str(configured.file)
    if options.json:
        terminal.show_json({"settingsFile": file, "settings": shown, "warnings": configured.warnings})
    else:
        rows = [(row["variable"], row["value"] if row["value"] is not None else "-", row["source"]) for row in shown]
        terminal.table(("setting", "value", "from"), rows)
        terminal.print_line(f"settings file: {file or 'none was found'}")
        for warning in configured.warnings:
            terminal.print_error(f"warning: {warning}")
    try:
        backup_settings.refuse_impossible_backups(configured.settings())
    except BadSetting as error:
        raise terminal.CommandFailed(str(error)) from None
    return 0


def _setting(option: Option, given: configuration.Value) -> dict[str, Any]:
    """A setting as JSON: its value unless it is secret, and its source."""
    return {
        "variable": option.variable,
        "option": option.option,
        "value": _shown(option, given),
        "source": given.source,
    }


def _shown(option: Option, given: configuration.Value) -> str | None:
    """The value to show: of a secret only that it is set, or its file."""
    if not given.text:
        return None
    if not option.is_secret:
        return given.text
    return "set, not shown" if given.name == option.variable else f"in {given.text}"
