"""Unpacks programs from Debian's packages into a folder, without root and without installing anything.

`make unpack`, a step of `make soak`, runs it. A program that is installed is left alone. Package lists are fetched into
a folder as well, so that those of the machine need not be there or fresh; apt checks signatures.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kit.programs.debian_programs import PACKAGES, UNPACKED, environment, find

_STEPS = 3  # of libraries that need libraries


class _Cannot(Exception):  # noqa: N818 - said to people in one line
    """Why a package cannot be unpacked here."""


def _run(*command: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Cannot(f"{command[0]}: {error}") from None
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or ["it failed"]
        raise _Cannot(f"{command[0]}: {said[-1]}")
    return done.stdout


class _Apt:
    """apt with lists of its own in a folder, which needs no root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for name in ("lists/partial", "cache/archives/partial", "packages"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self._packages = folder / "packages"
        self._options: tuple[str, ...] = ("-o", f"Dir::State::Lists={folder}/lists", "-o", f"Dir::Cache={folder}/cache")
        if os.geteuid() == 0:  # apt's own user may not write into this folder
            self._options += ("-o", "APT::Sandbox::User=root")
        _run("apt-get", "update", *self._options)

    def unpack(self, package: str) -> None:
        """Fetch a package and lay its files into the folder."""
        for old in self._packages.glob(f"{package}_*.deb"):
            old.unlink()
        _run("apt-get", "download", package, *self._options, cwd=self._packages)
        [fetched] = self._packages.glob(f"{package}_*.deb")
        _run("dpkg-deb", "-x", str(fetched), str(UNPACKED))

    def libraries(self, package: str) -> set[str]:
        """The libraries that a package depends on, the C library aside."""
        told = _run("apt-cache", "depends", "--no-recommends", "--no-suggests", package, *self._options)
        named = set(re.findall(r"^ *\|?Depends: (lib[a-z0-9+.-]+)$", told, re.MULTILINE))
        return named - {"libc6", "libgcc-s1"}


def _missing(package: str) -> list[str]:
    """What the programs of a package lack: themselves, or libraries of those that were unpacked."""
    missing = []
    for name in PACKAGES[package]:
        program = find(name)
        if program is None:
            missing.append(name)
        elif UNPACKED in program.parents and program.is_file():
            told = _run("ldd", str(program), env=environment(program))
            missing += re.findall(r"^\s*(\S+) => not found", told, re.MULTILINE)
    return missing


def _unpack(apt: _Apt, package: str) -> None:
    apt.unpack(package)
    packages, seen = {package}, {package}
    for _ in range(_STEPS):
        if not _missing(package):
            return
        packages = {library for known in packages for library in apt.libraries(known)} - seen
        seen |= packages
        for library in sorted(packages):
            apt.unpack(library)
    if missing := _missing(package):
        raise _Cannot(f"{package} needs {', '.join(missing)}")


def main() -> None:
    """Unpack what is neither installed nor unpacked; say one line for each package."""
    apt: _Apt | None = None
    with TemporaryDirectory() as folder:
        for package, programs in PACKAGES.items():
            try:
                if _missing(package):
                    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
                        raise _Cannot("this machine has no apt")  # noqa: TRY301
                    apt = apt or _Apt(Path(folder))
                    _unpack(apt, package)
                sys.stdout.write(f"{package}: {', '.join(str(find(name)) for name in programs)}\n")
            except _Cannot as why:
                sys.stdout.write(f"{package}: cannot be unpacked here ({why})\n")


if __name__ == "__main__":
    main()
