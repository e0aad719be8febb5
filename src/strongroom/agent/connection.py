"""How a command asks the agent. The agent is started when there is none and the operation needs one."""

from __future__ import annotations

import _socket as socket  # the module above it imports more than all else here together
import os
import sys

from strongroom.agent import paths
from strongroom.agent.peers import peer_user
from strongroom.agent.protocol import PROTOCOL, Failed, Lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_MAX_PATH = 100  # bytes of the path of a socket: the least limit of the systems that have them is 104
# What opens the account. All else needs keys that are in memory already, so a fresh agent could not do it.
_STARTS = frozenset({"login", "login_with_passkey", "register", "adopt", "recover", "unlock"})
_LOCKED = "strongroom is locked; run: strongroom unlock"


def ask(
    operation: str,
    /,
    *,
    question: Callable[[dict[str, Any]], str | None] | None = None,
    notice: Callable[[str], None] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
    waiting: Callable[[], None] | None = None,
    **members: Any,
) -> Any:
    """The result of an operation of the agent. Where it fails, Failed is raised; `locked` where there are no keys.

    `question` is asked for what only a person knows, such as a one-time code; it may return None. `notice` is told what
    a person must do, and `progress` how far a sync is. `waiting` is called when the agent has begun to work, before
    anything that it replies is read.
    """
    connected = _connect(start=operation in _STARTS)
    if connected is None:
        raise Failed("locked", _LOCKED)
    lines = Lines(connected)
    try:
        lines.send({"protocol": PROTOCOL, "operation": operation, **members})
        if waiting is not None:
            waiting()
        while (message := lines.receive()) is not None:
            if "result" in message:
                return message["result"]
            if "error" in message:
                error = message["error"]
                raise Failed(error["code"], error["message"], error.get("details"))
            if "question" in message:
                lines.send({"reply": None if question is None else question(message["question"])})
            elif "notice" in message and notice is not None:
                notice(message["notice"])
            elif "progress" in message and progress is not None:
                progress(message["progress"])
    except (BrokenPipeError, ConnectionResetError):
        pass
    finally:
        connected.close()
    if operation == "lock":  # the end of the agent is the reply
        return {"locked": True}
    raise Failed("agent_ended", "The agent has ended before it replied; look whether it was done, and unlock again.")


def is_running() -> bool:
    """Whether there is an agent."""
    connected = _connect(start=False)
    if connected is not None:
        connected.close()
    return connected is not None


def _connect(*, start: bool) -> socket.socket | None:
    connected = _try_connect()
    if connected is None and start:
        _start()
        connected = _try_connect()
        if connected is None:
            raise Failed("no_agent", "The agent was started and has ended at once; see its log: " + paths.log())
    return connected


def _try_connect() -> socket.socket | None:
    """A connection to the agent of this user, or None where there is none."""
    try:
        folder = paths.open_folder(paths.runtime())
    except FileNotFoundError:
        return None
    try:
        connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connected.connect(address(paths.socket(), folder))
            _require_own(connected)
        except (FileNotFoundError, ConnectionRefusedError):
            connected.close()
            return None
        except BaseException:
            connected.close()
            raise
    except OSError as error:
        raise Failed("no_agent", f"The agent's socket {paths.socket()} cannot be used: {error.strerror}.") from None
    finally:
        os.close(folder)
    return connected


def _require_own(connected: socket.socket) -> None:
    if peer_user(connected) != os.geteuid():
        raise Failed("folder", f"Another user of this machine listens at {paths.socket()}; nothing was sent.")


def address(path: str, folder: int) -> str:
    """The address of a socket in an open folder. A path that is too long goes by the folder's descriptor."""
    if len(os.fsencode(path)) <= _MAX_PATH:
        return path
    if not os.path.isdir("/proc/self/fd"):
        raise Failed("folder", f"The path {path} is too long for a socket; set STRONGROOM_HOME to a shorter one.")
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"


def _start() -> None:
    """Start an agent; it goes into the background, and its first process ends when it listens."""
    import subprocess

    flags = ["-S"] if sys.flags.no_site else []
    # -P: Python would look for modules in the current folder, and run whatever lies there.
    command = [sys.executable, "-P", *flags, "-m", "strongroom.agent"]
    done = subprocess.run(  # noqa: S603
        command, env=_environment(), cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()
        raise Failed("no_agent", said[-1] if said else "The agent cannot be started.")


_KEPT = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "TMPDIR", "TZ", "USER", "DBUS_SESSION_BUS_ADDRESS", paths.HOME})
_KEPT_PREFIXES = ("LC_", "PYTHON", "SSL_CERT_", "XDG_")
_PROXIES = frozenset({"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})


def _environment() -> dict[str, str]:
    """What the agent needs of the environment: whatever else is in it, secrets too, stays out."""
    found = {
        name: value
        for name, value in os.environ.items()
        if name in _KEPT or name.startswith(_KEPT_PREFIXES) or name.upper() in _PROXIES
    }
    if paths.HOME in found:
        found[paths.HOME] = paths.home()
    return found
