"""What lies in deploy/ agrees with the program: figures, settings, options, files."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from strongroom.cli.configuration import SYSTEM_FILE
from strongroom.options import SETTINGS_FILE, TABLE
from strongroom.server.monitoring.metrics import FAMILIES
from strongroom.server.settings import resolve
from tests.kit.programs import processes
from tests.kit.project import ROOT
from tests.kit.requirements import needs
from tools import web

DEPLOY = ROOT / "deploy"


def told() -> set[str]:
    """The names of all samples."""
    names = {name for name, _, _ in FAMILIES}
    histograms = {name for name, kind, _ in FAMILIES if kind == "histogram"}
    return names | {f"{name}{ending}" for name in histograms for ending in ("_bucket", "_sum", "_count")}


def test_the_dashboard_shows_every_figure_and_no_other() -> None:
    """A figure that was renamed would leave an empty panel, which looks like peace."""
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    asked = " ".join(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])
    asked += dashboard["templating"]["list"][1]["query"]
    named = set(re.findall(r"\b(?:strongroom|process)_\w+", asked))
    assert named <= told()
    shown = {name for name, _, _ in FAMILIES if any(found.startswith(name) for found in named)}
    assert shown == {name for name, _, _ in FAMILIES}


def test_the_figures_are_explained() -> None:
    """Every figure has a row in the operator's page, and every row is a figure."""
    page = (ROOT / "docs" / "operating.md").read_text("utf-8")
    assert set(re.findall(r"^\| `((?:strongroom|process)_\w+)` \|", page, re.MULTILINE)) == {
        name for name, _, _ in FAMILIES
    }


COMPOSED = sorted(DEPLOY.glob("compose*.yaml"))
SETTINGS = {name for option in TABLE for name in (option.variable, option.file_variable) if name}


def test_there_is_something_composed() -> None:
    """The search for files finds them."""
    assert [path.name for path in COMPOSED] == ["compose.caddy.yaml", "compose.postgres.yaml", "compose.yaml"]


@pytest.mark.parametrize("path", COMPOSED, ids=lambda path: path.name)
def test_a_composed_service_is_locked_in_and_knows_its_options(path: Path) -> None:
    """No capabilities, no writable root; settings and options that exist, secrets that are declared, files there."""
    text = path.read_text()
    composed = yaml.safe_load(text)
    assert set(composed) <= {"services", "networks", "volumes", "secrets"}
    service = composed["services"]["strongroom"]
    assert service["read_only"] is True
    assert (service["cap_drop"], service["security_opt"]) == (["ALL"], ["no-new-privileges:true"])
    assert "command" not in service  # what stands there would be unknown to the commands that people type
    given = {
        name: re.sub(r"\$\{.*?\}", "vault.example.com", value) for name, value in service.get("environment", {}).items()
    }
    assert given.keys() <= SETTINGS
    files = {name: value for name, value in given.items() if value.startswith("/run/secrets/")}
    assert set(files.values()) == {f"/run/secrets/{name}" for name in service["secrets"]}
    others = {name: value for name, value in given.items() if name not in files}
    resolve({"JWT_SECRET": "a secret of the tests, 32 bytes or more", **others})
    for each in composed["services"].values():
        assert set(each.get("secrets", [])) <= composed["secrets"].keys()
        named = [volume.partition(":")[0] for volume in each.get("volumes", [])]
        assert {name for name in named if not name.startswith(".")} <= (composed.get("volumes") or {}).keys()
        assert all((DEPLOY / name).exists() for name in named if name.startswith("."))
        assert set(each.get("depends_on", {})) <= composed["services"].keys()
        assert set(each.get("networks", [])) <= (composed.get("networks") or {}).keys()
        for needed in each.get("depends_on", {}):
            assert needed == "strongroom" or "healthcheck" in composed["services"][needed]
    told = set(re.findall(r"/run/secrets/([a-z-]+)", text))
    assert told == composed["secrets"].keys()
    assert all(value == {"file": name} for name, value in composed["secrets"].items())
    assert all(f"> {name}" in text or f"Make {name}" in text for name in told)


def test_the_linter_finds_nothing_in_the_dockerfile(tmp_path: Path) -> None:
    """hadolint, with no rule switched off; and it can find something."""
    hadolint = Path(sys.executable).with_name("hadolint")

    def found(path: Path) -> list[str]:
        done = processes.run(
            [hadolint, "--format", "json", "--no-color", path], capture_output=True, text=True, check=False
        )
        return [f"{one['code']} {one['message']}" for one in json.loads(done.stdout)]

    assert found(ROOT / "Dockerfile") == []
    assert "hadolint ignore" not in (ROOT / "Dockerfile").read_text()
    bad = tmp_path / "Dockerfile"
    bad.write_text("FROM python\nRUN cd /x && sudo pip install y\nUSER root\n")
    assert len(found(bad)) > 3


@needs("systemd-analyze")
def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    """It knows every line, and finds little that is exposed."""
    printed = processes.run(
        [sys.executable, "-m", "strongroom", "systemd"], capture_output=True, text=True, check=True
    ).stdout
    unit = tmp_path / "strongroom.service"
    unit.write_text(printed)
    done = processes.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    told = [line for line in done.stderr.splitlines() if "strongroom.service" in line]
    assert (done.returncode, told) == (0, [])
    unit.write_text(printed.replace("ProtectClock", "ProtectWatch"))
    done = processes.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert "ProtectWatch" in done.stderr


def test_the_image_is_made_of_what_is_there() -> None:
    """Every file that is copied exists and is not ignored; settings exist; it does not run as root."""
    text = (ROOT / "Dockerfile").read_text()
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    copied = [name for line in re.findall(r"^COPY ([^-].*)$", text, re.MULTILINE) for name in line.split()[:-1]]
    assert copied
    for name in copied:
        assert (ROOT / name).exists()
        assert f"!{name}" in ignored
    env = text[text.index("\nENV ") :].partition("USER")[0]
    assert set(re.findall(r"\b([A-Z_]+)=", env)) - {"PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"} <= SETTINGS
    assert re.search(r"^USER 10001:10001$", text, re.MULTILINE)
    assert 'CMD ["strongroom", "ready"]' in text
    assert "--platform" not in text


def test_the_image_carries_the_web_app(tmp_path: Path) -> None:
    """What the build of the app reads is copied, before it is built; and that before the package is installed."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    building = text[: text.rindex("\nFROM ")]
    kept = shutil.ignore_patterns("node_modules", "__pycache__", "static")  # as .dockerignore leaves them out
    left_out = set((ROOT / ".dockerignore").read_text().splitlines())
    assert {"**/node_modules", "**/__pycache__", "src/strongroom/server/web/static"} <= left_out
    before_the_build = building[: building.index("RUN python -m tools.web --strict\n")]
    copied = re.findall(r"^COPY ([^-].*)$", before_the_build, re.MULTILINE)
    for name in [name for line in copied for name in line.split()[:-1]]:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tmp_path / name, ignore=kept)
        else:
            shutil.copy(ROOT / name, tmp_path / name)
    assert web.sources(tmp_path) == web.sources(ROOT)
    assert (tmp_path / "requirements-dev.lock").is_file()  # which has Node.js
    assert "install --no-cache-dir --no-deps --no-build-isolation ." in building[len(before_the_build) :]
    for path in COMPOSED:
        assert yaml.safe_load(path.read_text())["services"]["strongroom"]["build"] == ".."


def test_the_lock_has_wheels_for_every_processor() -> None:
    """A package with one hash would be a source that the image would have to compile, or be for one processor only."""
    text = (ROOT / "requirements.lock").read_text()
    for name in ("apsw", "asyncpg", "cryptography", "httptools", "msgspec", "uvloop"):
        block = re.search(rf"^{name}==(?:.*\\\n)+", text, re.MULTILINE)
        assert block is not None, name
        assert block[0].count("--hash=") > 8


def test_the_unit_starts_this_program_and_locks_it_in() -> None:
    """Its options and settings exist, and a signal ends it in order."""
    printed = processes.run(
        [sys.executable, "-m", "strongroom", "systemd"], capture_output=True, text=True, check=True
    ).stdout
    [start] = re.findall(r"^ExecStart=(.*)$", printed, re.MULTILINE)
    assert Path(start.split()[0]).exists()
    assert start.split()[-1] == "serve"
    assert re.findall(r"^Environment.*$", printed, re.MULTILINE) == [f"Environment={SETTINGS_FILE}={SYSTEM_FILE}"]
    written = re.findall(r"^#   echo ([A-Z_]+)=\S+ >>? /etc/strongroom/settings$", printed, re.MULTILINE)
    assert written == ["DB_PATH", "JWT_SECRET_FILE", "BACKUP_DIR"]
    assert set(written) <= SETTINGS
    for line in ("User=strongroom", "ProtectSystem=strict", "NoNewPrivileges=yes", "CapabilityBoundingSet="):
        assert f"\n{line}\n" in printed
    assert "ExecReload=/bin/kill -HUP $MAINPID" in printed
    assert "\nKillMode=mixed\n" in printed  # the one that watches ends the others
