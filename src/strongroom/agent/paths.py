"""Where the files of a person's command line are. Every folder belongs to its user and can be entered by nobody else.

`STRONGROOM_HOME` names one folder for everything: one account each. Otherwise data is in `$XDG_DATA_HOME/strongroom`
(`~/.local/share/strongroom`), and the socket in `$XDG_RUNTIME_DIR/strongroom`, or with the data where there is none.
"""

from __future__ import annotations

import os
import stat

from strongroom.agent.protocol import Failed

HOME = "STRONGROOM_HOME"


def home() -> str:
    """The folder with what outlives a start of the machine."""
    return _named(HOME) or os.path.join(_base("XDG_DATA_HOME") or _in_home(".local", "share"), "strongroom")


def runtime() -> str:
    """The folder with the socket."""
    base = None if _named(HOME) else _base("XDG_RUNTIME_DIR")
    return home() if base is None else os.path.join(base, "strongroom")


def socket() -> str:
    """The socket of the agent."""
    return os.path.join(runtime(), "agent.sock")


def lock() -> str:
    """The lock that a running agent holds."""
    return os.path.join(runtime(), "agent.lock")


def account() -> str:
    """Which account of which server is used: no secret."""
    return os.path.join(home(), "account.json")


def session() -> str:
    """The saved session, sealed under the account's key."""
    return os.path.join(home(), "session")


def replica() -> str:
    """The local copy of the account, encrypted."""
    return os.path.join(home(), "replica")


def log() -> str:
    """The log of the agent."""
    return os.path.join(home(), "agent.log")


def make_folder(path: str) -> None:
    """Make a folder for one user, with those above it; refuse one that others own or can enter."""
    try:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise unusable(f"The folder {path} cannot be made", error) from None
    os.close(open_folder(path))


def unusable(what: str, error: OSError) -> Failed:
    """The failure to use a folder or a file in it: what happened, and what to do."""
    import errno  # not at the top: `strongroom get` loads as little as it can

    if error.errno in {errno.ENOTDIR, errno.EEXIST}:
        advice = "A file is in the place of a folder; set STRONGROOM_HOME to a folder."
    elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
        advice = "What was stored is still there; free some space, and run this again."
    elif error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        advice = "strongroom needs a folder that you can write to; STRONGROOM_HOME can name another one."
    else:
        advice = ""
    return Failed("folder", f"{what}: {error.strerror}. {advice}".rstrip())


def open_folder(path: str) -> int:
    """A descriptor of a folder that only this user can enter. FileNotFoundError where there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        if os.path.islink(path):
            reason = "it is a symbolic link; name the folder itself"
            raise Failed("folder", f"The folder {path} cannot be used: {reason}.") from None
        raise unusable(f"The folder {path} cannot be used", error) from None
    found = os.fstat(descriptor)
    if found.st_uid == os.geteuid() and not stat.S_IMODE(found.st_mode) & 0o077:
        return descriptor
    os.close(descriptor)
    if found.st_uid != os.geteuid():
        raise Failed("folder", f"The folder {path} belongs to another user of this machine; nothing was done.")
    mode = stat.S_IMODE(found.st_mode)
    raise Failed("folder", f"Others can enter the folder {path} (mode {mode:o}); run: chmod 700 {path}")


def _named(variable: str) -> str | None:
    found = os.environ.get(variable)
    return os.path.abspath(found) if found else None


def _base(variable: str) -> str | None:
    """A base folder of the XDG specification, which says that a relative one is ignored."""
    found = os.environ.get(variable, "")
    return found if os.path.isabs(found) else None


def _in_home(*parts: str) -> str:
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise Failed("folder", "There is no home folder for this user; set STRONGROOM_HOME to a folder.")
    return os.path.join(home, *parts)
