"""Keeps the memory of a process that holds secrets out of core dumps, and from other processes of the same user.

Every command of people waits for this module, so it imports little: `ctypes` alone would take longer than all else.
"""

from __future__ import annotations

import resource
import sys

_SET_DUMPABLE = 4  # PR_SET_DUMPABLE of Linux
_callers: tuple[int, int] | None = None  # the limits of core dumps that this process was started with


def protect_memory() -> None:
    """No core dump of this process, and on Linux no debugger of the same user.

    A program that it starts may have a debugger. It has the limit 0 too, and may raise it again; see LimitsOfCaller.
    """
    global _callers  # noqa: PLW0603 - the limits belong to the whole process
    if _callers is None:
        _callers = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, _callers[1]))
    if sys.platform != "linux":
        return
    try:
        import _ctypes

        program = _ctypes.dlopen(None, 0)  # type: ignore[arg-type]  # None is the program itself
        prctl = _ctypes.dlsym(program, "prctl")
        _ctypes.call_function(prctl, (_SET_DUMPABLE, 0, 0, 0, 0))
    except (ImportError, OSError):
        pass  # a Python without it: the limit alone


class LimitsOfCaller:
    """While a program is started that belongs to the caller and not to us: the limits that the caller had."""

    def __enter__(self) -> None:
        if _callers is not None:
            resource.setrlimit(resource.RLIMIT_CORE, _callers)

    def __exit__(self, *_: object) -> None:
        if _callers is not None:
            resource.setrlimit(resource.RLIMIT_CORE, (0, _callers[1]))
