"""Programs of Debian that tests run: installed on this machine, or unpacked into .venv by `make unpack`."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path
from typing import Final

UNPACKED: Final = Path(__file__).parents[3] / ".venv" / "unpacked"
_POSTGRES: Final = "/usr/lib/postgresql/15/bin"
ZSH_FUNCTIONS: Final = "/usr/share/zsh/functions"
FISH_FUNCTIONS: Final = "/usr/share/fish/functions"
FAKETIME: Final = f"/usr/lib/{platform.machine()}-linux-gnu/faketime/libfaketime.so.1"

# The programs that tests run, by the package that has them. Those of PostgreSQL have a path, for pgBackRest must know
# their version.
PACKAGES: Final[dict[str, tuple[str, ...]]] = {
    "caddy": ("caddy",),
    "nginx": ("nginx",),
    "haproxy": ("haproxy",),
    "pgbouncer": ("pgbouncer",),
    "pgbackrest": ("pgbackrest",),
    "postgresql-15": (f"{_POSTGRES}/initdb", f"{_POSTGRES}/pg_ctl", f"{_POSTGRES}/postgres"),
    "postgresql-client-15": (f"{_POSTGRES}/psql",),
    "prometheus": ("promtool",),
    "libfaketime": (FAKETIME,),
    "zsh": ("zsh",),
    "zsh-common": (ZSH_FUNCTIONS,),
    "fish": ("fish",),
    "fish-common": (FISH_FUNCTIONS,),
}


def find(name: str) -> Path | None:
    """The program, the library or the folder, installed or unpacked."""
    if name.startswith("/") and Path(name).exists():
        return Path(name)
    installed = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin")))
    if installed is not None:
        return Path(installed)
    places = [UNPACKED / place for place in (name.lstrip("/"), f"bin/{name}", f"usr/bin/{name}", f"usr/sbin/{name}")]
    return next((place for place in places if place.exists()), None)


def environment(program: Path) -> dict[str, str]:
    """What a program is run with: one that was unpacked finds its libraries beside it."""
    given = {name: value for name, value in os.environ.items() if name in {"PATH", "LANG"}}
    if UNPACKED in program.parents:
        beside = [str(folder) for lib in ("lib", "usr/lib") for folder in (UNPACKED / lib).glob("*-linux-*")]
        given["LD_LIBRARY_PATH"] = os.pathsep.join(beside)
    return given
