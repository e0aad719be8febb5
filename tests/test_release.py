"""`make release` in a clone of the project: everything, or nothing; and what was built can be built again."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.kit.project import ROOT
from tests.kit.requirements import skip_or_fail
from tests.kit.samples import LONG

PLANTED = "def test_planted() -> None:\n    assert {}\n"
QUICK = """from tests.upgrade import wheels
def test_planted() -> None:
    assert wheels.last_release() == "v0.1.0"
    assert len(wheels.older_releases()) == 2
    assert '"97.0.0"' in (wheels.ROOT / "src/strongroom/_version.py").read_text()
"""
IDENTITY = {f"GIT_{role}_{what}": "a@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


def run(root: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command in a clone, whose own sources come first."""
    places = f"{root / 'src'}{os.pathsep}{root}"
    hidden = {name for name in os.environ if name.startswith(("GIT_", "MAKE", "PYTEST_"))}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    environment = {**kept, **IDENTITY, "PYTHONPATH": places, **variables}
    return subprocess.run(words, cwd=root, env=environment, capture_output=True, text=True, check=False)


def git(root: Path, *words: str) -> str:
    done = run(root, "git", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make(root: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A target of the clone's Makefile, with the programs of this environment; `check` is taken for done."""
    programs = Path(sys.executable).parent
    return run(root, "make", "-o", "check", "-o", ".venv/.dev", f"BIN={programs}", *words, **variables)


def state(root: Path) -> tuple[object, ...]:
    """All that a release could change: files, ignored ones too, commits, tags, branches, worktrees."""
    files = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".git" not in path.relative_to(root).parts and "__pycache__" not in path.parts
    }
    return files, git(root, "for-each-ref"), git(root, "worktree", "list"), git(root, "symbolic-ref", "HEAD")


def commit(root: Path, name: str, text: str) -> None:
    (root / name).write_text(text, "utf-8")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", f"Change {name}")


def with_packages(root: Path) -> None:
    """Let a clone use the packages of web/ that are installed here; skips the test where they are not."""
    if not (ROOT / "web/node_modules/.done").exists():
        skip_or_fail("The packages of web/ are not installed. `make web` installs them.")
    (root / "web" / "node_modules").symlink_to(ROOT / "web" / "node_modules")


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project as it stands, committed, with something to release."""
    root = tmp_path / "clone"
    if run(ROOT, "git", "clone", "--quiet", "--no-tags", str(ROOT), str(root)).returncode != 0:
        skip_or_fail("There is no Git here, or no history.")
    git(root, "checkout", "--quiet", "-B", "main")  # a commit may be checked out here, and no branch
    for name in git(ROOT, "ls-files", "--cached", "--others", "--exclude-standard").splitlines():
        if (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
        else:
            (root / name).unlink(missing_ok=True)
    with_packages(root)
    log = (root / "CHANGELOG.md").read_text("utf-8")
    commit(root, "CHANGELOG.md", re.sub(r"^## Unreleased\n", "\\g<0>\n- Planted.\n", log, count=1, flags=re.MULTILINE))
    return root


def without_upgrade_test(root: Path, *, fails: bool = False) -> None:
    """Put a quick test in the place of the upgrade test."""
    commit(root, "tests/upgrade/test_mixed_versions.py", PLANTED.format(not fails))


def test_a_release_is_committed_built_and_tagged(clone: Path, tmp_path: Path) -> None:
    """Version, changelog, tag and wheel agree; the upgrade was tested from the last release; the bytes come again."""
    if not LONG:  # `make soak` runs the true one
        commit(clone, "tests/upgrade/test_mixed_versions.py", QUICK)
    git(clone, "tag", "v0.1.0", "HEAD")
    commit(clone, "note", "one more change\n")
    before = git(clone, "rev-parse", "HEAD")
    done = make(clone, "release", "VERSION=97.0.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^\.+ +\[100%\]$", done.stdout, re.MULTILINE), done.stdout  # all passed, and none was skipped
    assert git(clone, "rev-parse", "HEAD^") == before
    assert git(clone, "rev-parse", "v97.0.0^{commit}") == git(clone, "rev-parse", "HEAD")
    assert git(clone, "cat-file", "-t", "v97.0.0") == "tag"
    assert git(clone, "status", "--porcelain") == ""
    assert "tree" not in git(clone, "worktree", "list").partition("\n")[2]
    assert git(clone, "diff", "--name-only", before).split() == [
        "CHANGELOG.md",
        "pyproject.toml",
        "src/strongroom/_version.py",
    ]
    assert run(clone, sys.executable, "-m", "strongroom", "--version").stdout.startswith("strongroom 97.0.0")
    log = (clone / "CHANGELOG.md").read_text("utf-8")
    assert re.search(r"^## Unreleased\n\n## 97\.0\.0 - \d{4}-\d\d-\d\d\n\n- Planted\.$", log, re.MULTILINE)
    wheel, sdist = clone / "dist/strongroom-97.0.0-py3-none-any.whl", clone / "dist/strongroom-97.0.0.tar.gz"
    with zipfile.ZipFile(wheel) as content:
        assert b'"97.0.0"' in content.read("strongroom/_version.py")
        app = "strongroom/server/web/static/"
        manifest = json.loads(content.read(f"{app}manifest.json"))
        carried = {name.removeprefix(app) for name in content.namelist() if name.startswith(app)}
        assert carried == {*manifest["files"], "manifest.json"}
        assert manifest["version"] == "97.0.0"
        for name, expected in manifest["files"].items():
            assert hashlib.sha256(content.read(app + name)).hexdigest() == expected
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        assert not [name for name in names if "__pycache__" in name or "node_modules" in name]
        assert {f"strongroom-97.0.0/src/{app}{name}" for name in carried} <= set(names)
    again = tmp_path / "again"
    git(clone, "clone", "--quiet", "--branch", "v97.0.0", str(clone), str(again))
    with_packages(again)
    (again / "docs" / "junk.md").write_text("not tracked")
    os.utime(again / "README.md", (0, 0))
    (again / "README.md").chmod(0o600)
    rebuilt = make(again, "build", TZ="Asia/Tokyo")
    assert rebuilt.returncode == 0, rebuilt.stderr
    for built in (wheel, sdist):
        assert (again / "dist" / built.name).read_bytes() == built.read_bytes()


def test_a_version_that_is_not_newer_is_refused(clone: Path) -> None:
    """Nothing has changed after it."""
    without_upgrade_test(clone)
    for version, sentence in {
        "": "Say which version",
        "1.0": "is not a version",
        "1.0.0rc1": "is not a version",
        "0.0.9": "is older than",
    }.items():
        refused_without_a_trace(clone, f"VERSION={version}", sentence)
    git(clone, "tag", "v98.0.0", "HEAD~1")
    git(clone, "tag", "v9.0.0", "HEAD~1")
    for version in ("98.0.0", "97.9.9"):
        refused_without_a_trace(clone, f"VERSION={version}", "is not newer than 98.0.0")


def test_an_unclean_tree_is_refused(clone: Path) -> None:
    """Whatever is not committed would not be in the release: a changed file, and a new one."""
    without_upgrade_test(clone)
    (clone / "new").write_text("untracked\n")
    refused_without_a_trace(clone, "VERSION=97.0.0", "uncommitted changes or untracked files")
    (clone / "new").unlink()
    (clone / "README.md").write_text("changed\n")
    refused_without_a_trace(clone, "VERSION=97.0.0", "uncommitted changes or untracked files")


FAULTS = [
    ("CHANGELOG.md", r"(?s)^## Unreleased\n.*?(?=^## |\Z)", "## Unreleased\n\n", "nothing under Unreleased"),
    ("CHANGELOG.md", r"^## Unreleased$", "## Later", "does not begin with a section Unreleased"),
    ("pyproject.toml", r"^version = .*$", 'version = "0.1.0"\nversion = "0.1.0"', "lines with the version"),
    ("tests/upgrade/previous", r"^[0-9a-f]+$", "0" * 40, "No older release"),
    ("pyproject.toml", r"^readme = .*$", 'readme = "missing.md"', "failed, and nothing was released"),
    ("requirements.lock", r"^flit-core==\S+", "flit-core==1.0", "flit_core is not 1.0"),
]


def test_what_cannot_be_released_leaves_no_trace(clone: Path) -> None:
    """A changelog without news, a version that is not where it should be, no history, a failing build or upgrade."""
    without_upgrade_test(clone)
    for name, pattern, replacement, sentence in FAULTS:
        before = (clone / name).read_text("utf-8")
        after = re.sub(pattern, replacement, before, flags=re.MULTILINE)
        assert after != before
        commit(clone, name, after)
        refused_without_a_trace(clone, "VERSION=97.0.0", sentence)
        git(clone, "reset", "--quiet", "--hard", "HEAD~1")
    without_upgrade_test(clone, fails=True)
    refused_without_a_trace(clone, "VERSION=97.0.0", "The upgrade test failed: nothing was released.")


def test_a_commit_made_meanwhile_is_not_overwritten(clone: Path) -> None:
    """The tag that was made already is taken back."""
    without_upgrade_test(clone)
    hook = "import subprocess\ndef test_planted() -> None:\n    subprocess.run(['git', '-C', {!r}, 'commit', "
    hook += "'--quiet', '--allow-empty', '--message', 'meanwhile'], check=True)\n"
    commit(clone, "tests/upgrade/test_mixed_versions.py", hook.format(str(clone)))
    done = make(clone, "release", "VERSION=97.0.0")
    assert done.returncode != 0
    assert "committed or checked out meanwhile" in done.stderr
    assert git(clone, "tag") == ""
    assert git(clone, "log", "-1", "--format=%s") == "meanwhile"
    assert not (clone / "dist").exists()


def refused_without_a_trace(root: Path, version: str, sentence: str) -> None:
    before = state(root)
    done = make(root, "release", version)
    assert done.returncode != 0, done.stdout
    assert sentence in done.stderr, done.stderr
    assert state(root) == before
