"""Makes a release: `make release VERSION=x.y.z`.

Writes the version and the changelog, commits, builds, runs the upgrade test against older releases, and tags. All of
that happens in a Git worktree in a temporary folder. The checked-out branch, its files and dist/ change at the very
end, and only if everything went well. Nothing is pushed.
"""

from __future__ import annotations

import datetime as dt
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.upgrade import wheels
from tools.build import ROOT, build, git

_HEADING = re.compile(r"^## (.+)\n", re.MULTILINE)
_VERSION = re.compile(r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)")
_PLACES = {"src/strongroom/_version.py": "__version__", "pyproject.toml": "version"}


def _number(version: str) -> tuple[int, ...]:
    if _VERSION.fullmatch(version) is None:
        raise SystemExit(f"{version!r} is not a version: say VERSION=x.y.z, three numbers.")
    return tuple(int(part) for part in version.split("."))


def released() -> list[str]:
    """The versions that have a tag, newest first."""
    tags = (tag.removeprefix("v") for tag in git("tag", "--list", "v*").split())
    return sorted((tag for tag in tags if _VERSION.fullmatch(tag)), key=_number, reverse=True)


def check(version: str) -> str:
    """Refuse what cannot be released; give the branch that is checked out."""
    wanted = _number(version)
    for before in released()[:1]:
        if wanted <= _number(before):
            raise SystemExit(f"{version} is not newer than {before}, the newest release.")
    [current] = re.findall(r'^__version__ = "(.+)"$', (ROOT / "src/strongroom/_version.py").read_text(), re.MULTILINE)
    if wanted < _number(current):
        raise SystemExit(f"{version} is older than {current}, the version of this tree.")
    if git("status", "--porcelain"):
        raise SystemExit("There are uncommitted changes or untracked files: commit or remove them first.")
    branch = git("branch", "--show-current")
    if not branch:
        raise SystemExit("No branch is checked out: the release would be on none.")
    if not wheels.older_releases():
        raise SystemExit("No older release is in this history to test the upgrade from: fetch all of it, with tags.")
    return branch


def changelog(text: str, version: str, day: str) -> str:
    """The changelog with its Unreleased section under the new version, and an empty one above."""
    headings = list(_HEADING.finditer(text))
    if not headings or headings[0][1] != "Unreleased":
        raise SystemExit("CHANGELOG.md does not begin with a section Unreleased.")
    end = headings[1].start() if len(headings) > 1 else len(text)
    if not re.search(r"^- ", text[headings[0].end() : end], re.MULTILINE):
        raise SystemExit("CHANGELOG.md has nothing under Unreleased: there is nothing to release.")
    return _HEADING.sub(f"## Unreleased\n\n## {version} - {day}\n", text, count=1)


def write(root: Path, version: str, day: str) -> None:
    """Write the version and the changelog into a tree."""
    for name, variable in _PLACES.items():
        path = root / name
        text, count = re.subn(
            rf'^{variable} = "[^"]*"$', f'{variable} = "{version}"', path.read_text("utf-8"), flags=re.MULTILINE
        )
        if count != 1:
            raise SystemExit(f"{name} has {count} lines with the version, and must have one.")
        path.write_text(text, "utf-8")
    path = root / "CHANGELOG.md"
    path.write_text(changelog(path.read_text("utf-8"), version, day), "utf-8")


@contextmanager
def _worktree() -> Iterator[Path]:
    """The checked-out commit once more, in a folder that is gone afterwards."""
    with TemporaryDirectory() as folder:
        tree = Path(folder) / "tree"
        git("worktree", "add", "--detach", str(tree), "HEAD")
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def _test_upgrade(tree: Path) -> None:
    """Run the new release beside older ones, as nodes are upgraded one after the other."""
    variables = {**os.environ, "PYTHONPATH": f"{tree / 'src'}{os.pathsep}{tree}"}
    done = subprocess.run([sys.executable, "-m", "pytest", "tests/upgrade"], cwd=tree, env=variables, check=False)
    if done.returncode != 0:
        raise SystemExit("The upgrade test failed: nothing was released.")


def release(version: str, day: str) -> None:
    """Everything, or nothing."""
    branch, start = check(version), git("rev-parse", "HEAD")
    with _worktree() as tree:
        write(tree, version, day)
        git("commit", "--all", "--no-verify", "--message", f"Release {version}", root=tree)
        commit = git("rev-parse", "HEAD", root=tree)
        built = build(tree, tree.parent / "dist")
        _test_upgrade(tree)
        git("tag", "--annotate", "--message", f"strongroom {version}", f"v{version}", commit)
        try:
            if git("rev-parse", "HEAD") != start or git("branch", "--show-current") != branch:
                raise SystemExit("Something else was committed or checked out meanwhile: nothing was released.")  # noqa: TRY301
            git("merge", "--ff-only", commit)
        except BaseException:
            git("tag", "--delete", f"v{version}")
            raise
        (ROOT / "dist").mkdir(exist_ok=True)
        for path in built:
            shutil.copy(path, ROOT / "dist")
            sys.stdout.write(f"dist/{path.name}\n")
    sys.stdout.write(f"Released {version} on {branch}, tagged v{version}. `git push --follow-tags` publishes it.\n")


def main() -> None:
    """Take the version from the command line."""
    if len(sys.argv) != 2:
        raise SystemExit("Say which version: make release VERSION=x.y.z")
    try:
        release(sys.argv[1], dt.datetime.now(dt.UTC).date().isoformat())
    except subprocess.CalledProcessError as error:
        said = (error.stderr or "").strip() if isinstance(error.stderr, str) else ""
        raise SystemExit(f"{' '.join(map(str, error.cmd[:5]))} failed, and nothing was released. {said}") from None


if __name__ == "__main__":
    main()
