"""Reload on SIGHUP: which settings take effect, and the log messages about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from strongroom.options import TABLE
from strongroom.server.settings import WEAK_SECRET_BYTES

if TYPE_CHECKING:
    from strongroom.server.settings import Settings

RELOADABLE: Final = (  # all others need a restart
    "JWT_SECRET",
    "JWT_SECRET_PREVIOUS",
    "SECOND_FACTOR_SECRET",
    "SECOND_FACTOR_SECRET_PREVIOUS",
    "METRICS_TOKEN",
)


def renewed(running: Settings, read: Settings) -> Settings:
    """The running settings, with the reloadable ones of those that were read."""
    return structs.replace(running, **{name.lower(): getattr(read, name.lower()) for name in RELOADABLE})


def summary(running: Settings, read: Settings, *, certificate: bool) -> str:
    """A log message that names the settings that changed; never their values."""
    names = [name for name in _changed(running, read) if name in RELOADABLE] + ["the certificate"] * certificate
    changed = f"Changed: {', '.join(names)}." if names else "Nothing has changed."
    return f"Secrets and certificate were read anew. {changed}"


def warnings(running: Settings, read: Settings) -> list[str]:
    """Warnings for the operator: a weak new secret, and settings that need a restart, by name."""
    changed = _changed(running, read)
    left = [name for name in changed if name not in RELOADABLE]
    found = []
    found += [
        f"The new {name} is shorter than {WEAK_SECRET_BYTES} bytes; 'strongroom init' makes a good one."
        for name in ("JWT_SECRET", "SECOND_FACTOR_SECRET")
        if name in changed and 0 < len(getattr(read, name.lower())) < WEAK_SECRET_BYTES
    ]
    if left:
        found.append(f"Changed in the settings, and not taken before a restart: {', '.join(left)}.")
    return found


def _changed(running: Settings, read: Settings) -> list[str]:
    named = [(option.variable, option.variable.lower()) for option in TABLE]
    return [variable for variable, field in named if getattr(running, field) != getattr(read, field)]
