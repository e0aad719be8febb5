"""`make check` covers TypeScript: a fault that is planted in a copy of the sources turns it red."""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.requirements import skip_or_fail
from tools import node
from tools.check_typescript import checks

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")
# One fault for each project of the compiler, and two for Biome: a rule that is broken, and a line that it would write
# otherwise. The name of the file, its text, and how the fault is reported.
TYPE_FAULT = 'export const planted: number = "text";\n'
FAULTS = {
    "js/src/planted.ts": (TYPE_FAULT, r"js/src/planted\.ts.*error TS2322"),
    "web/src/planted.ts": (TYPE_FAULT, r"web/src/planted\.ts.*error TS2322"),
    "web/src/serviceWorker.ts": (TYPE_FAULT, r"web/src/serviceWorker\.ts.*error TS2322"),
    "examples/notes-js/planted.ts": (
        'import { Client } from "@strongroom/client";\n\nexport const planted: number = new Client("http://localhost");\n',
        r"examples/notes-js/planted\.ts.*error TS2322",
    ),
    "js/test/planted.ts": (
        "export const planted = (value: number): boolean => value === value;\n",
        r"js/test/planted\.ts:\S+ lint/suspicious/noSelfCompare",
    ),
    "web/src/shell/planted.ts": ("export const  planted = 1\n", r"web/src/shell/planted\.ts format"),
}
FORMAT_FAULT = "web/src/shell/planted.ts"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of all that the check reads, with the packages that are installed here."""
    root = tmp_path_factory.mktemp("tree")
    ignored = shutil.ignore_patterns("node_modules", "dist", "__pycache__")
    for name in ("js", "web", "examples", "tools"):
        shutil.copytree(ROOT / name, root / name, ignore=ignored)
    shutil.copy(ROOT / "biome.jsonc", root)
    for name in ("js", "web"):
        if not (ROOT / name / "node_modules/.done").exists():
            skip_or_fail(f"The packages of {name}/ are not installed. `make {name}` installs them.")
        (root / name / "node_modules").symlink_to((ROOT / name / "node_modules").resolve())
    return root


def check(root: Path, *options: str) -> tuple[int, str, list[str]]:
    """What `make check` runs: the exit code, what was reported, and the commands that failed."""
    command = [sys.executable, "-m", "tools.check_typescript", *options]
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False, timeout=600)
    failed = re.findall(r"^Failed: (.+)$", done.stderr, re.MULTILINE)
    return done.returncode, done.stdout + done.stderr, failed


def test_each_planted_fault_is_reported(tree: Path) -> None:
    """Faults of types, a rule that is broken and a line of another format, all at once: every command finds its own."""
    before = {name: (tree / name).read_text("utf-8") for name in FAULTS if (tree / name).exists()}
    try:
        for name, (text, _) in FAULTS.items():
            (tree / name).write_text(before.get(name, "") + text, "utf-8")
        code, told, failed = check(tree)
    finally:
        for name in FAULTS:
            (tree / name).unlink()
        for name, text in before.items():
            (tree / name).write_text(text, "utf-8")
    assert code == 1
    assert failed == [" ".join(command) for command in checks()]
    assert [name for name, (_, report) in FAULTS.items() if not re.search(report, told)] == []


def biome(tree: Path) -> subprocess.CompletedProcess[str]:
    """The command of the check that runs the linter and the formatter."""
    command = node.command("node", *checks()[-1])
    environment = {**node.environment(), "NO_COLOR": "1"}
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=600)


def test_a_warning_is_enough(tree: Path) -> None:
    """A rule of which Biome only warns, broken once in sources without another fault, fails."""
    path = tree / "examples/notes-js/planted.ts"
    path.write_text("export const planted = (value: any): unknown => value;\n", "utf-8")
    try:
        done = biome(tree)
    finally:
        path.unlink()
    told = done.stdout + done.stderr
    assert done.returncode != 0, told
    assert re.search(r"notes-js/planted\.ts:\S+ lint/suspicious/noExplicitAny", told)
    assert "Found 1 warning" in told
    assert "error" not in told.replace("--error-on-warnings", "")
    assert biome(tree).returncode == 0


def test_a_line_of_another_format_is_enough(tree: Path) -> None:
    """It fails alone, and `make format` mends it."""
    path = tree / FORMAT_FAULT
    path.write_text(FAULTS[FORMAT_FAULT][0], "utf-8")
    try:
        assert biome(tree).returncode != 0
        assert check(tree, "--fix")[0] == 0
        assert path.read_text("utf-8") == "export const planted = 1;\n"
    finally:
        path.unlink()


def test_the_makefile_runs_it() -> None:
    """`make check` checks, and `make format` mends; both install the packages first."""
    recipes = dict(re.findall(r"^(check|format): (.+\n(?:\t.+\n)+)", MAKEFILE, re.MULTILINE))
    assert "\t$(BIN)/python -m tools.check_typescript\n" in recipes["check"]
    assert "\t$(BIN)/python -m tools.check_typescript --fix\n" in recipes["format"]
    assert "js/node_modules/.done web/node_modules/.done\n" in recipes["check"]
    assert "js/node_modules/.done\n" in recipes["format"]


def test_without_a_registry_a_sentence_says_so(tmp_path: Path) -> None:
    """`make check` fails where npm can fetch nothing, and says of what."""
    for name in ("js", "web"):
        (tmp_path / name).mkdir()
        for file in ("package.json", "package-lock.json", ".npmrc"):
            shutil.copy(ROOT / name / file, tmp_path / name)
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "Makefile", tmp_path)
    alone = {"npm_config_offline": "true", "npm_config_cache": str(tmp_path / "cache")}
    command = ["make", "-o", ".venv/.dev", f"BIN={Path(sys.executable).parent}", "check"]
    done = subprocess.run(
        command, cwd=tmp_path, env={**os.environ, **alone}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode != 0
    assert "The packages of js/ cannot be installed: npm needs its registry" in done.stderr


def test_every_processor_has_its_program() -> None:
    """The lock has Biome for x86-64 and aarch64, in one version."""
    packages = json.loads((ROOT / "js/package-lock.json").read_text("utf-8"))["packages"]
    names = ["biome", "cli-linux-x64", "cli-linux-arm64"]
    assert len({packages[f"node_modules/@biomejs/{name}"]["version"] for name in names}) == 1


def test_the_formatter_does_as_editors_do() -> None:
    """Indents, the width of lines and their ends are those of .editorconfig."""
    parser = configparser.ConfigParser()
    parser.read_string("[DEFAULT]\n" + (ROOT / ".editorconfig").read_text("utf-8"))
    [kinds] = [name for name in parser.sections() if "tsx" in name]
    [line] = re.findall(r'"formatter": (\{.+\})', (ROOT / "biome.jsonc").read_text("utf-8"))
    assert {"ts", "tsx", "js", "css", "json", "jsonc"} <= {*re.findall(r"\w+", kinds)}
    assert json.loads(line) == {
        "indentStyle": parser["*"]["indent_style"],
        "indentWidth": int(parser[kinds]["indent_size"]),
        "lineWidth": int(parser["*"]["max_line_length"]),
        "lineEnding": parser["*"]["end_of_line"],
    }
