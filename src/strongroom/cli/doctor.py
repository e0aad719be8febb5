"""`strongroom doctor`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from strongroom.cli import terminal
from strongroom.options import TABLE

if TYPE_CHECKING:
    import argparse

_DOCTOR = """
Look at the database, the disk, the files and the settings, and say of each whether it is ok, a warning or a fault, and
what to do about it. Nothing is changed, and the server may run meanwhile. The exit code is 1 if there is a fault.
Settings are read as for 'strongroom serve'.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """What `strongroom doctor` takes."""
    from strongroom.cli import serving

    parser.description = _DOCTOR
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    serving.add_options(parser)
    parser.set_defaults(run=doctor)


def doctor(options: argparse.Namespace) -> int:
    """Say what is wrong; the exit code."""
    from msgspec.structs import replace

    from strongroom.cli.serving import ENV_FILE, environment
    from strongroom.model import Verdict
    from strongroom.server import doctor as examining
    from strongroom.server.settings import BadSetting, resolve

    given = {option.option: getattr(options, option.variable) for option in TABLE}
    values = environment(os.environ)
    missing = not values.get("JWT_SECRET") and given["--jwt-secret-file"] is None
    try:
        settings = resolve({"JWT_SECRET": "missing", **values}, given)
    except BadSetting as error:
        raise terminal.Stop(str(error)) from None
    settings = replace(settings, jwt_secret=b"") if missing else settings
    env_file = Path(ENV_FILE)
    named = [given[option.option] or values.get(f"{option.variable}_FILE") for option in TABLE if option.is_secret]
    secret_files = [Path(name) for name in named if name]
    findings = examining.examine(settings, env_file if env_file.exists() else None, secret_files, values)
    if options.json:
        import msgspec

        terminal.say(msgspec.json.format(msgspec.json.encode({"findings": findings})).decode())
    else:
        for finding in findings:
            todo = f"\n{'':9}{'':13}→ {finding.todo}" if finding.todo else ""
            terminal.say(f"{finding.verdict.value:9}{finding.check:13}{finding.says}{todo}")
    return int(any(finding.verdict is Verdict.FAULT for finding in findings))
