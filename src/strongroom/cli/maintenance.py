"""`strongroom stats`, `vacuum`, `config`: what an operator asks of a service as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from strongroom.cli import backup_settings, common, configuration, serve, terminal
from strongroom.cli.common import answer, settings_of, size
from strongroom.options import TABLE, Option

if TYPE_CHECKING:
    import argparse


def add_stats(parser: argparse.ArgumentParser) -> None:
    """What `strongroom stats` takes."""
    parser.description = "Count what a service holds. It reads whole tables."
    common.add_options(parser)
    parser.set_defaults(run=stats)


def add_vacuum(parser: argparse.ArgumentParser) -> None:
    """What `strongroom vacuum` takes."""
    parser.description = (
        "Give back the room that deleted things left. A file is written anew: that needs twice as much "
        "free disk as it has bytes, and whoever writes meanwhile waits, and is told to come again after 5 seconds. "
        "On PostgreSQL nobody waits."
    )
    common.add_options(parser, asks=True)
    parser.set_defaults(run=vacuum)


def add_config(parser: argparse.ArgumentParser) -> None:
    """What `strongroom config` takes."""
    parser.description = (
        "Show every setting, its value, and where it came from; secrets are not shown. It takes the "
        "options of 'strongroom serve'."
    )
    serve.add_options(parser, common.WHERE)
    parser.epilog = f"{parser.epilog} {terminal.exit_codes('a server would start with these settings')}"
    parser.add_argument("--json", action="store_true", help="answer in JSON")
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
        terminal.say(f"{words:18}  {shown}" + (f"  ({size(value)})" if "ytes" in name and value is not None else ""))
    return 0


def vacuum(options: argparse.Namespace) -> int:
    """Give back the room that deleted things left."""
    from strongroom.errors import StorageFull
    from strongroom.server.admin import operations

    with settings_of(options) as settings:
        where = operations.existing_location(settings)
        terminal.confirm(f"Vacuum {where}? Writes to a file wait meanwhile.", yes=options.yes)
        try:
            before, after = operations.vacuum(settings)
        except StorageFull:
            raise terminal.Stop(
                f"There is not enough room on the disk of {where} to write it anew; nothing was changed. Have twice "
                "its size free, or move old backups away first."
            ) from None
    told = {"data": where, "before": before, "after": after}
    return answer(options, told, f"{where} took {size(before)} and takes {size(after)}.")


def config(options: argparse.Namespace) -> int:
    """Show every setting, and where it came from."""
    from strongroom.server.settings import BadSetting

    configured = configuration.read(options)
    told = [_setting(option, configured.values[option.variable]) for option in TABLE]
    by_name = {row["variable"]: row for row in told}
    if by_name["JWT_ISSUER"]["source"] == "default" and by_name["VAULT_VARIANT"]["value"] == "blob":
        by_name["JWT_ISSUER"]["value"] = "strongbox"
    file = None if configured.file is None else str(configured.file)
    if options.json:
        terminal.show_json({"settingsFile": file, "settings": told, "warnings": configured.warnings})
    else:
        rows = [(row["variable"], row["value"] if row["value"] is not None else "-", row["source"]) for row in told]
        terminal.table(("setting", "value", "from"), rows)
        terminal.say(f"settings file: {file or 'none was found'}")
        for warning in configured.warnings:
            terminal.complain(f"warning: {warning}")
    try:
        backup_settings.refuse_impossible_backups(configured.settings())
    except BadSetting as error:
        raise terminal.Stop(str(error)) from None
    return 0


def _setting(option: Option, given: configuration.Value) -> dict[str, Any]:
    """One setting: its value, unless that is secret, and which of the places that may name it won."""
    return {
        "variable": option.variable,
        "option": option.option,
        "value": _shown(option, given),
        "source": given.source,
    }


def _shown(option: Option, given: configuration.Value) -> str | None:
    """A value as it may be seen: of a secret only that there is one, or the file that holds it."""
    if not given.text:
        return None
    if not option.is_secret:
        return given.text
    return "set, not shown" if given.name == option.variable else f"in {given.text}"
