"""Files that a forge, an editor or a package index reads agree with the Makefile, pyproject.toml and the sources."""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kit.project import ROOT, SOURCE
from tests.kit.requirements import skip_or_fail

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
TARGETS = set(re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE))


def workflow() -> dict[Any, Any]:
    """The workflow that tests, as a forge reads it."""
    read: dict[Any, Any] = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text("utf-8"))
    return read


# The workflow


def test_the_workflow_runs_every_supported_python() -> None:
    """Those of the classifiers, without a gap, from the oldest that pyproject.toml requires."""
    pythons = workflow()["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: "
    assert [f"{prefix}{version}" for version in pythons] == PROJECT["project"]["classifiers"]
    minors = [int(version.removeprefix("3.")) for version in pythons]
    assert minors == list(range(minors[0], minors[-1] + 1))
    assert PROJECT["project"]["requires-python"] == f">={pythons[0]}"
    assert f"strongroom needs Python {pythons[0]} or newer" in MAKEFILE
    assert PROJECT["tool"]["mypy"]["python_version"] == pythons[0]
    assert PROJECT["tool"]["ruff"]["target-version"] == f"py{pythons[0].replace('.', '')}"
    assert f"--python-version {pythons[0]} " in MAKEFILE


def test_the_workflow_runs_on_both_processors() -> None:
    """On x86-64 and on aarch64."""
    runners = workflow()["jobs"]["test"]["strategy"]["matrix"]["runner"]
    assert sorted(runner.endswith("-arm") for runner in runners) == [False, True]


def test_the_workflow_runs_what_must_be_green() -> None:
    """All commands of .ci/run, in that order; whatever else it runs is a command of the Makefile too."""
    commands = [step["run"] for step in workflow()["jobs"]["test"]["steps"] if "run" in step]
    needed = re.findall(r"^make [a-z-]+$", (ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE)
    assert needed
    assert [command for command in commands if command in needed] == needed
    assert all(re.fullmatch(r"make [a-z-]+", command) and command[5:] in TARGETS for command in commands)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: str(path.name))
def test_a_workflow_has_no_more_rights_than_it_needs(path: Path) -> None:
    """It may read the repository and nothing else, keeps no credentials, and pins actions to a major version."""
    read = yaml.safe_load(path.read_text("utf-8"))
    assert read["permissions"] == {"contents": "read"}
    for job in read["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 60
        used = [step for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"actions/[a-z-]+@v[0-9]+", step["uses"]) for step in used)
        [checkout] = [step for step in used if step["uses"].startswith("actions/checkout@")]
        assert checkout["with"]["persist-credentials"] is False
        assert checkout["with"]["fetch-depth"] == 0  # or tests/upgrade would be skipped


# Hooks, editors, the menu


def test_hooks_download_nothing() -> None:
    """Every hook of pre-commit is a command of the Makefile."""
    repositories = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
    assert [repository["repo"] for repository in repositories] == ["local"]
    for hook in repositories[0]["hooks"]:
        assert hook["language"] == "system"
        assert re.fullmatch(r"make [a-z]+", hook["entry"])
        assert hook["entry"][5:] in TARGETS


def test_files_are_as_the_editor_is_told() -> None:
    """Files that Git tracks have Unix line ends, no spaces at the end of a line, and a last line that ends."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        skip_or_fail("There is no Git here, or no history.")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        data = path.read_bytes() if path.is_file() else b""
        if not data or b"\0" in data or fnmatch.fnmatch(name, "tests/vectors/wycheproof/*"):
            continue
        assert b"\r" not in data, name
        assert data.endswith(b"\n"), name
        assert not re.search(rb"[ \t]$", data, re.MULTILINE), name
        if path.name not in {"Caddyfile", "Makefile"} and path.suffix != ".md":
            assert not re.search(rb"^\t", data, re.MULTILINE), name


def test_the_menu_has_every_command() -> None:
    """The text that `make` prints names every target for people, and no other."""
    menu = "".join(re.findall(r"^#   .*\n", MAKEFILE, re.MULTILINE))
    [phony] = (set(line.split()) for line in re.findall(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE))
    lines = set(re.findall(r"^#   make ([a-z]+)", menu, re.MULTILINE))
    assert lines == {name for name in phony if "-" not in name} - {"help"}
    assert [name for name in phony if not re.search(rf"\b{name}\b", menu)] == []
    assert phony <= TARGETS


# Upper bounds


def bounds(requirements: list[str]) -> dict[str, str]:
    """The upper bounds in a list of requirements, by package."""
    found = (re.match(r"([\w-]+)[^;]*<([0-9.]+)", line) for line in requirements)
    return {match[1]: match[2] for match in found if match is not None}


def asked_for() -> list[str]:
    """All requirements of the package, of its extras, and of its build."""
    extras = PROJECT["project"]["optional-dependencies"].values()
    lists = [PROJECT["project"]["dependencies"], *extras, PROJECT["build-system"]["requires"]]
    return [requirement for each in lists for requirement in each]


def test_every_upper_bound_has_a_reason() -> None:
    """The bounds of pyproject.toml are those of record 0005."""
    [record] = (ROOT / "docs" / "decisions").glob("0005-*.md")
    told = re.findall(r"^- `([\w-]+)` below ([0-9.]+): \S", record.read_text("utf-8"), re.MULTILINE)
    assert dict(told) == bounds(asked_for())


def subclassed(text: str) -> set[str]:
    """The packages whose classes a module subclasses, as far as it names them with their package."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    bases = [base for node in classes for base in node.bases]
    return {ast.unparse(base).partition(".")[0] for base in bases if isinstance(base, ast.Attribute)}


def test_what_is_subclassed_is_bounded() -> None:
    """A class of a library that is made to be subclassed is msgspec's Struct; any other may change at any release."""
    packages = {re.match(r"[\w-]+", line)[0].partition("-")[0] for line in asked_for()}  # type: ignore[index]
    found = {name for path in SOURCE.rglob("*.py") for name in subclassed(path.read_text("utf-8"))}
    assert "asyncio" in found
    assert subclassed("class Planted(httptools.HttpRequestParser): ...") == {"httptools"}
    assert (found & packages) - {"msgspec"} <= bounds(asked_for()).keys()


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: str(path.name))
def test_the_locks_are_within_the_bounds(path: Path) -> None:
    """A bound that the lock does not keep would be found only by a stranger who installs from the lock."""
    pinned = dict(re.findall(r"^([\w-]+)==([0-9.]+)", path.read_text("utf-8"), re.MULTILINE))
    for name, bound in bounds(asked_for()).items():
        version = pinned.get(name.replace("_", "-"))
        if version is not None:
            assert [int(part) for part in version.split(".")] < [int(part) for part in bound.split(".")]
