"""Which account of which server is used here: a file without secrets; and what a login leaves on the disk."""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any, Final

from strongroom.agent import paths
from strongroom.agent.protocol import Failed

_REPLICA: Final = 1 << 18  # bytes: more than an empty replica has, with its log


def read_settings() -> dict[str, Any]:
    """Which account of which server is used here."""
    try:
        descriptor = os.open(paths.account(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            found = json.loads(file.read(1 << 20))
    except FileNotFoundError:
        raise Failed("not_logged_in", "Nobody is logged in here; run: strongroom login") from None
    except NotADirectoryError as error:
        raise paths.unusable(f"The folder {paths.home()} cannot be used", error) from None
    except PermissionError as error:
        raise paths.unusable(f"The file {paths.account()} cannot be read", error) from None
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("url"), str) or not isinstance(found.get("email"), str):
        raise Failed("invalid", f"The file {paths.account()} is damaged; remove it, and run: strongroom login")
    return found


def write_settings(settings: dict[str, Any]) -> None:
    """Keep which account is used here, in one step."""
    os.replace(_written(json.dumps(settings, indent=2).encode() + b"\n"), paths.account())


def require_space() -> None:
    """Refuse a login whose replica would not fit on the disk: before a server is asked for anything."""
    os.unlink(_written(bytes(_REPLICA)))


def _written(content: bytes) -> str:
    """A new file beside that of the settings, on disk."""
    part = f"{paths.account()}.part"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise paths.unusable(f"The folder {paths.home()} cannot be written to", error) from None
    return part


def remove_everything() -> None:
    """Delete what a login has left: the replica, the session, and which account it was."""
    names = [paths.replica() + end for end in ("", "-wal", "-shm", "-lock")]
    for path in [*names, paths.session(), f"{paths.session()}.lock", paths.account()]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise paths.unusable(f"The file {path} cannot be deleted", error) from None


def options_of(settings: dict[str, Any]) -> dict[str, Any]:
    """The options of `Client` for connections, as they were given at the login."""
    return {name: settings[name] for name in ("insecure", "ca_file", "proxy") if settings.get(name)}
