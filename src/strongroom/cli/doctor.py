"""`strongroom doctor`: diagnostics of a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.cli import backup_settings, configuration, terminal

if TYPE_CHECKING:
    import argparse

_DOCTOR = """
Check the database, the disk, the files and the settings; report for each whether it is ok, a warning or a fault, and
what to do. Nothing is changed, and the server may run meanwhile.
Settings are read as for 'strongroom serve'.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `strongroom doctor`."""
    from strongroom.cli import common, serve

    parser.description = _DOCTOR
    parser.add_argument("--json", action="store_true", help="print JSON")
    serve.add_options(parser, common.WHERE)
    parser.epilog = f"{parser.epilog} {terminal.exit_codes('no fault was found', '1 there is a fault')}"
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    """Print all findings; the exit code."""
    from strongroom.server.admin import doctor as examining
    from strongroom.store.findings import Verdict, fault

    configured = configuration.read(options)
    settings = configuration.checked(configured, () if configured.values["JWT_SECRET"].text else ("JWT_SECRET",))
    findings = examining.examine(settings, configured.origin)
    findings += [
        fault("backup", sentence, "correct it: no server starts with it, and no backup is made")
        for sentence in backup_settings.bad_recipient(settings)
    ]
    if options.json:
        import msgspec

        terminal.print_line(msgspec.json.format(msgspec.json.encode({"findings": findings})).decode())
    else:
        for finding in findings:
            todo = f"\n{'':9}{'':13}→ {finding.todo}" if finding.todo else ""
            terminal.print_line(f"{finding.verdict.value:9}{finding.check:13}{finding.says}{todo}")
    return int(any(finding.verdict is Verdict.FAULT for finding in findings))
