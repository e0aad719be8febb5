"""Builds sdist and wheel of the checked-out commit into dist/: `make build`.

Only files that Git tracks are built, and the web app from them, with the time of the commit, the locked flit_core and
the locked packages of web/: whoever builds the same commit gets the same bytes.
"""

from __future__ import annotations

import importlib.metadata
import io
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tools import web

ROOT: Final = Path(__file__).parent.parent
_BUILD: Final = (
    "import sys; from flit_core import buildapi; buildapi.build_sdist(sys.argv[1]); buildapi.build_wheel(sys.argv[1])"
)


def git(*words: str, root: Path = ROOT) -> str:
    """What a command of Git prints; CalledProcessError if it fails."""
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603, S607


def build(root: Path, folder: Path) -> list[Path]:
    """Build the commit that is checked out in `root` into a folder."""
    [pinned] = re.findall(r"^flit-core==(\S+)", (root / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    if importlib.metadata.version("flit_core") != pinned:
        raise SystemExit(f"flit_core is not {pinned}, as requirements.lock has it: run make clean, then try again.")
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as place:
        archive = subprocess.run(["git", "-C", str(root), "archive", "HEAD"], capture_output=True, check=True).stdout  # noqa: S603, S607
        with tarfile.open(fileobj=io.BytesIO(archive)) as tracked:
            tracked.extractall(place, filter="data")
        _build_web_app(Path(place), root)
        (Path(place) / "dist").mkdir()
        variables = {**os.environ, "SOURCE_DATE_EPOCH": git("show", "--no-patch", "--format=%ct", "HEAD", root=root)}
        subprocess.run([sys.executable, "-c", _BUILD, "dist"], cwd=place, env=variables, check=True)  # noqa: S603
        made = []
        for built in sorted((Path(place) / "dist").iterdir()):
            made.append(folder / built.name)
            made[-1].write_bytes(built.read_bytes())
    return made


def _build_web_app(tree: Path, root: Path) -> None:
    """Build the web app in the tree, with the packages of the clone where they are installed."""
    link = tree / "web" / "node_modules"
    for packages in (root, ROOT):
        if not link.is_symlink():
            web.link_packages(tree, packages)
    try:
        web.build(tree)
    except web.CannotBuild as reason:
        raise SystemExit(f"The web app cannot be built, and a release carries it: {reason}.") from None


def main() -> None:
    """Build into dist/."""
    for made in build(ROOT, ROOT / "dist"):
        sys.stdout.write(f"{made.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
