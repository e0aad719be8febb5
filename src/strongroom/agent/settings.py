"""Which account of which server is used here: a file without secrets; and what a login leaves on the disk."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from strongroom.agent import paths
from strongroom.agent.protocol import Failed


def read_settings() -> dict[str, Any]:
    """Which account of which server is used here."""
    try:
        descriptor = os.open(paths.account(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        raise Failed("not_logged_in", "Nobody is logged in here; run: strongroom login") from None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("url"), str) or not isinstance(found.get("email"), str):
        raise Failed("invalid", f"The file {paths.account()} is damaged; remove it, and run: strongroom login")
    return found


def write_settings(settings: dict[str, Any]) -> None:
    """Keep which account is used here, in one step."""
    part = f"{paths.account()}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(part)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(json.dumps(settings, indent=2).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, paths.account())


def remove_everything() -> None:
    """Delete what a login has left: the replica, the session, and which account it was."""
    names = [paths.replica() + end for end in ("", "-wal", "-shm", "-lock")]
    for path in [*names, paths.session(), f"{paths.session()}.lock", paths.account()]:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)


def options_of(settings: dict[str, Any]) -> dict[str, Any]:
    """The options of `Client` for connections, as they were given at the login."""
    return {name: settings[name] for name in ("insecure", "ca_file", "proxy") if settings.get(name)}
