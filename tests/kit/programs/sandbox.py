"""Runs a command as systemd would under a unit: its system-call filter, file systems, user and limits.

    python -m tests.kit.programs.sandbox UNIT STATE CONFIG COMMAND...

UNIT is the unit's file; STATE and CONFIG are the folders that the command sees as /var/lib/strongroom and
/etc/strongroom. The filters are real (libseccomp); `systemd-analyze syscall-filter` says which calls a set has. The
file systems are a mount namespace, which needs root; without it the command runs under the filters and limits alone.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

USER_ID: Final = 64_111
STATE: Final = Path("/var/lib/strongroom")
CONFIG: Final = Path("/etc/strongroom")
CODE: Final = [Path(__file__).parents[3], Path(sys.prefix), Path(sys.base_prefix)]
HOMES: Final = [Path("/home"), Path("/root"), Path("/run/user")]
DEVICES: Final = ("null", "zero", "full", "random", "urandom", "tty")
FAMILIES: Final = {"AF_UNIX": 1, "AF_INET": 2, "AF_INET6": 10}

# Lines of a unit that are played here, and lines that need no playing: they name no limit on the process, or one that
# those above include for a process without privileges.
FILTERED: Final = {
    "MemoryDenyWriteExecute",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "RestrictSUIDSGID",
    "SystemCallErrorNumber",
    "SystemCallFilter",
}
PLAYED: Final = FILTERED | {
    *("Environment", "EnvironmentFile", "ExecStart", "LimitNOFILE", "NoNewPrivileges", "UMask", "User"),
    *("CapabilityBoundingSet", "AmbientCapabilities", "PrivateDevices", "PrivateTmp", "ProcSubset", "ProtectHome"),
    *("ProtectProc", "ProtectSystem", "RuntimeDirectory", "RuntimeDirectoryMode", "StateDirectory"),
    *("StateDirectoryMode", "WorkingDirectory"),
}
UNPLAYED: Final = {
    *("ExecReload", "KillMode", "NotifyAccess", "RemoveIPC", "Restart", "RestartSec", "RestartSteps"),
    "RestartPreventExitStatus",
    *("RestartMaxDelaySec", "TimeoutStartSec", "TimeoutStopSec", "Type", "WatchdogSec"),
    *("LockPersonality", "ProtectClock", "ProtectControlGroups", "ProtectHostname", "ProtectKernelLogs"),
    *("ProtectKernelModules", "ProtectKernelTunables", "RestrictRealtime", "SystemCallArchitectures"),
}

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_LESS, _EQUAL, _GREATER, _MASKED = 2, 4, 6, 7
_WRITE, _EXECUTE, _SHM_EXECUTE = 2, 4, 0o100000
_NAMESPACES = (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x80)
_SET_IDS = (0o4000, 0o2000)
_CHANGES_MODE = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "mkdir": 1, "mkdirat": 2, "mknodat": 2, "openat": 3}
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 32, 4096, 16384, 1 << 18
_NEW_MOUNTS, _NO_NEW_PRIVILEGES, _DROP_BOUND = 0x20000, 38, 24

Unit = dict[str, list[str]]


def service(text: str) -> Unit:
    """The lines of the section [Service] of a unit, by name."""
    found: Unit = {}
    section = text.partition("\n[Service]\n")[2].partition("\n[")[0]
    for name, value in re.findall(r"^(\w+)=(.*)$", section, re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def environment(unit: Unit, config: Path) -> dict[str, str]:
    """The variables that a unit gives its process; files beneath /etc/strongroom lie in `config`."""
    given = dict(line.partition("=")[::2] for line in unit.get("Environment", []))
    for name in unit.get("EnvironmentFile", []):
        file = config / Path(name.removeprefix("-")).relative_to(CONFIG)
        lines = file.read_text().splitlines() if file.exists() else []
        given |= dict(line.partition("=")[::2] for line in lines if "=" in line and not line.startswith("#"))
    return given | {"PATH": "/usr/bin:/bin", "HOME": str(STATE), "USER": "strongroom", "LANG": "C.UTF-8"}


def why_not() -> str | None:
    """Why no filter can be made here; None if it can."""
    if shutil.which("systemd-analyze") is None:
        return "systemd-analyze is not installed"
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return "libseccomp is not installed"
    return None


# System calls


class _Compare(ctypes.Structure):
    _fields_ = (("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64))


class _Filter:
    """A filter that is being made."""

    def __init__(self, default: int) -> None:
        lib = self._lib = ctypes.CDLL("libseccomp.so.2")
        lib.seccomp_init.restype = ctypes.c_void_p
        lib.seccomp_init.argtypes = (ctypes.c_uint32,)
        rule = lib.seccomp_rule_add_array
        rule.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.c_void_p)
        lib.seccomp_load.argtypes = (ctypes.c_void_p,)
        self._made = lib.seccomp_init(default)

    def number(self, name: str) -> int:
        number: int = self._lib.seccomp_syscall_resolve_name(name.encode())
        return number

    def add(self, action: int, name: str, *conditions: tuple[int, int, int, int]) -> None:
        """What happens at a call, if all of these hold of its arguments. A call that is unknown here is passed over."""
        number = self.number(name)
        if number < 0:
            return
        compared = (_Compare * len(conditions))(*(_Compare(*one) for one in conditions))
        code = self._lib.seccomp_rule_add_array(self._made, action, number, len(conditions), compared)
        assert code in (0, -errno.EEXIST, -errno.EACCES), (name, code)  # EACCES: it is the default action

    def load(self) -> None:
        code = self._lib.seccomp_load(self._made)
        assert code == 0, code


def _sets() -> dict[str, set[str]]:
    """Every set of calls that systemd knows, with the calls in it."""
    told = subprocess.run(["systemd-analyze", "syscall-filter"], capture_output=True, text=True, check=True).stdout
    raw: dict[str, set[str]] = {}
    name = ""
    for line in re.sub(r"\x1b\[[0-9;]*m", "", told).splitlines():
        if line.startswith("@"):
            name = line.strip()
            raw[name] = set()
        elif line.startswith("    ") and not line.strip().startswith("#"):
            raw[name].add(line.strip())
        elif line.startswith("#"):
            name = ""
            raw.setdefault(name, set())

    def flat(one: str) -> set[str]:
        return {call for part in raw[one] for call in (flat(part) if part.startswith("@") else {part})}

    return {one: flat(one) for one in raw if one}


def _allowed(lines: Iterable[str], sets: dict[str, set[str]]) -> set[str]:
    """The calls that are left: lines add, and with ~ take away, in their order."""
    found = set(sets["@default"])
    for line in lines:
        named = {call for word in line.removeprefix("~").split() for call in sets.get(word, {word})}
        found = found - named if line.startswith("~") else found | named
    return found


def install_filters(unit: Unit) -> None:
    """Let the kernel refuse from now on what the unit refuses."""
    sets = _sets()
    refusal = _ERRNO | getattr(errno, unit["SystemCallErrorNumber"][0])
    allowed = _allowed(unit["SystemCallFilter"], sets)
    known = _Filter(_ERRNO | errno.ENOSYS)
    for name in sorted(sets["@known"]):
        known.add(_ALLOW if name in allowed else refusal, name)
    details = _Filter(_ALLOW)
    denied = _ERRNO | errno.EPERM
    if unit.get("MemoryDenyWriteExecute") == ["yes"]:
        details.add(denied, "mmap", (2, _MASKED, _EXECUTE | _WRITE, _EXECUTE | _WRITE))
        for name in ("mprotect", "pkey_mprotect"):
            details.add(denied, name, (2, _MASKED, _EXECUTE, _EXECUTE))
        details.add(denied, "shmat", (2, _MASKED, _SHM_EXECUTE, _SHM_EXECUTE))
    if unit.get("RestrictNamespaces") == ["yes"]:
        details.add(_ERRNO | errno.ENOSYS, "clone3")  # its flags cannot be seen, so systemd refuses it
        details.add(denied, "setns")
        for flag in _NAMESPACES:
            details.add(denied, "unshare", (0, _MASKED, flag, flag))
            details.add(denied, "clone", (0, _MASKED, flag, flag))
    if unit.get("RestrictSUIDSGID") == ["yes"]:
        details.add(_ERRNO | errno.ENOSYS, "openat2")
        for name, place in _CHANGES_MODE.items():
            created = ((2, _MASKED, os.O_CREAT, os.O_CREAT),) if name == "openat" else ()
            for bit in _SET_IDS:
                details.add(denied, name, (place, _MASKED, bit, bit), *created)
    families = sorted(FAMILIES[name] for line in unit.get("RestrictAddressFamilies", []) for name in line.split())
    if families:
        other = _ERRNO | errno.EAFNOSUPPORT
        details.add(other, "socket", (0, _GREATER, families[-1], 0))
        for family in set(range(families[-1])) - set(families):
            details.add(other, "socket", (0, _EQUAL, family, 0))
    details.load()  # this one first: the other takes away what is needed to load more
    known.load()


# File systems


def _libc(name: str, *arguments: Any) -> None:
    if getattr(ctypes.CDLL(None, use_errno=True), name)(*arguments) != 0:
        raise OSError(ctypes.get_errno(), name, str(arguments))


def _mount(source: str, target: Path, kind: str | None, flags: int = 0, options: str = "") -> None:
    named = kind and kind.encode()
    _libc("mount", source.encode(), os.fsencode(target), named, ctypes.c_ulong(flags), options.encode())


def _tmpfs(target: Path, mode: str = "0755") -> None:
    _mount("tmpfs", target, "tmpfs", 0, f"mode={mode}")


def _bind(held: int, target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    _mount(f"/proc/self/fd/{held}", target, None, _BIND | _RECURSIVE)


def enter_file_systems(state: Path, config: Path) -> None:
    """What the unit lets its process see and write, in a mount namespace of its own. Needs root."""
    os.chown(state, USER_ID, USER_ID)
    state.chmod(0o700)
    _libc("unshare", _NEW_MOUNTS)
    _mount("none", Path("/"), None, _RECURSIVE | _PRIVATE)
    held = {STATE: os.open(state, os.O_PATH)} | {place: os.open(place, os.O_PATH) for place in CODE}
    _copied_etc(config)
    _devices()
    for home in filter(Path.exists, HOMES):
        _tmpfs(home)
    for place in (Path("/tmp"), Path("/var/tmp")):  # noqa: S108 - of its own
        _tmpfs(place, "1777")
    for place in (STATE.parent, Path("/run")):
        _tmpfs(place)
    for place, descriptor in held.items():
        if place == STATE or not place.exists():
            _bind(descriptor, place)
        os.close(descriptor)
    Path("/run/strongroom").mkdir()
    _tmpfs(Path("/run/strongroom"), "0750")
    os.chown("/run/strongroom", USER_ID, USER_ID)
    _mount("proc", Path("/proc"), "proc", 0, "hidepid=invisible,subset=pid")
    writable = {STATE, Path("/tmp"), Path("/var/tmp"), Path("/run/strongroom")}  # noqa: S108
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        place = Path(line.split()[4].replace("\\040", " "))
        if place not in writable and not place.is_relative_to("/proc") and not place.is_relative_to("/dev"):
            try:
                _mount("none", place, None, _REMOUNT | _BIND | _READ_ONLY)
            except OSError as error:
                if error.errno not in {errno.EINVAL, errno.ENOENT, errno.EACCES}:  # another is mounted over it
                    raise


def _copied_etc(config: Path) -> None:
    """A copy of /etc with the user and the folder of the service."""
    stage = config.parent / "etc"
    stage.mkdir()
    _tmpfs(stage)
    shutil.copytree("/etc", stage, symlinks=True, dirs_exist_ok=True, ignore_dangling_symlinks=True)
    with (stage / "passwd").open("a") as users:
        users.write(f"strongroom:x:{USER_ID}:{USER_ID}::/nonexistent:/usr/sbin/nologin\n")
    shutil.rmtree(stage / "strongroom", ignore_errors=True)
    shutil.copytree(config, stage / "strongroom")
    for path in (stage / "strongroom", *(stage / "strongroom").rglob("*")):
        os.chown(path, 0, USER_ID)
        path.chmod(0o750 if path.is_dir() else 0o640)
    _mount(str(stage), Path("/etc"), None, _BIND)
    _libc("umount2", os.fsencode(stage), 2)
    stage.rmdir()


def _devices() -> None:
    held = {name: os.open(f"/dev/{name}", os.O_PATH) for name in DEVICES}
    _tmpfs(Path("/dev"))
    for name, descriptor in held.items():
        Path("/dev", name).touch()
        _mount(f"/proc/self/fd/{descriptor}", Path("/dev", name), None, _BIND)
        os.close(descriptor)
    Path("/dev/shm").mkdir()  # noqa: S108
    _tmpfs(Path("/dev/shm"), "1777")  # noqa: S108
    Path("/dev/fd").symlink_to("/proc/self/fd")


def _give_up_privileges() -> None:
    for capability in range(64):
        ctypes.CDLL(None).prctl(_DROP_BOUND, capability, 0, 0, 0)
    os.setgroups([])
    os.setresgid(USER_ID, USER_ID, USER_ID)
    os.setresuid(USER_ID, USER_ID, USER_ID)


def main(unit_file: str, state: str, config: str, *command: str) -> None:
    """Enter, then become the command."""
    unit = service(Path(unit_file).read_text())
    variables = environment(unit, Path(config))
    kept = {name: value for name, value in os.environ.items() if name in {"NOTIFY_SOCKET", "WATCHDOG_USEC"}}
    library = ctypes.CDLL("libseccomp.so.2")  # read while it can be
    folder = Path(state)
    if os.geteuid() == 0:
        enter_file_systems(folder, Path(config))
        folder = STATE
    for value in unit.get("LimitNOFILE", []):
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(value), int(value)))
    os.umask(int(unit["UMask"][0], 8))
    os.chdir(folder)
    if os.geteuid() == 0:
        _give_up_privileges()
    _libc("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    install_filters(unit)
    del library
    os.execve(command[0], list(command), variables | kept)  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
