"""A mount namespace in which an unprivileged user may run this Python and read this project."""

from __future__ import annotations

import functools
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

UID = 10001
_ROOT = Path(__file__).parents[3]
_TOOLS = ("unshare", "nsenter", "setpriv", "mount")


class Machine:
    """A process that keeps the namespace, and what is run in it. Mounts of the tests are gone when it ends."""

    def __init__(self, *mounts: str, user: str | int = UID) -> None:
        self._user = ("setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", "--no-new-privs")
        script = " && ".join(["mount --make-rprivate /", *_reachable(), *mounts, "echo ready", "exec sleep infinity"])
        self._holder = subprocess.Popen(
            ["unshare", "--mount", "sh", "-c", script],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self._holder.stdout is not None
        said = self._holder.stdout.readline()
        if said != "ready\n":
            said += self._holder.stdout.read()
            self.close()
            raise OSError(f"no mount namespace here: {said}")

    def command(self, command: Sequence[str], cwd: Path | str, *, root: bool = False) -> list[str]:
        """How to run a command in it. The folder is entered as root, as sudo leaves one where one was."""
        become = () if root else (*self._user, "--bounding-set=-all")
        inside = f"cd {shlex.quote(str(cwd))} && exec {shlex.join([*become, *command])}"
        return ["nsenter", "--mount", "--target", str(self._holder.pid), "sh", "-c", inside]

    def run(
        self, command: Sequence[str], cwd: Path | str, env: Mapping[str, str], *, root: bool = False, given: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            self.command(command, cwd, root=root),
            env=dict(env),
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def close(self) -> None:
        """End it, and its mounts with it."""
        self._holder.kill()
        self._holder.wait(20)
        assert self._holder.stdout is not None
        self._holder.stdout.close()


def _reachable() -> list[str]:
    """Mounts after which anybody may run this Python: of a closed folder that it lies in, it alone is shown."""
    lines = []
    for needed in dict.fromkeys([Path(sys.base_prefix).resolve(), Path(sys.prefix).resolve(), _ROOT]):
        closed = next((path for path in reversed(needed.parents) if not path.stat().st_mode & 0o001), None)
        if closed is None:
            continue
        lines += [
            f"kept=$(mktemp -d) && mount --bind {needed} $kept",
            f"mount -t tmpfs -o mode=0755 tmpfs {closed} && mkdir -p {needed}",
            f"mount --move $kept {needed} && rmdir $kept",
        ]
    return lines


@functools.cache
def is_possible() -> bool:
    """Whether another user can be taken here, in a namespace in which it can read this Python."""
    if os.name != "posix" or os.geteuid() != 0 or not all(map(shutil.which, _TOOLS)):
        return False
    try:
        machine = Machine()
    except OSError:
        return False
    done = machine.run([sys.executable, "-c", "import strongroom.cli"], "/", {"PATH": os.environ["PATH"]})
    machine.close()
    return done.returncode == 0


needs_another_user = pytest.mark.usefixtures("namespace_of_another_user")
