"""The image's very steps without an engine: an empty venv, a fresh user, a read-only root."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.kit.waiting import until

ROOT = Path(__file__).parents[2]
USER = "10001"
TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
pytestmark = pytest.mark.soak  # installs from a registry


def reachable() -> str | None:
    """A Python that any user may run: not one in a home folder."""
    for path in (Path("/usr/local/bin/python3"), Path("/usr/bin/python3"), Path(sys.executable).resolve()):
        if path.exists() and all(parent.stat().st_mode & 0o001 for parent in path.resolve().parents):
            asked = "import sys, pip, venv; sys.exit(sys.version_info < (3, 11))"
            if subprocess.run([path, "-c", asked], capture_output=True, check=False).returncode == 0:
                return str(path)
    return None


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may enter; pytest's own is closed."""
    made = Path(tempfile.mkdtemp(prefix="strongroom-image-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made, ignore_errors=True)


def steps(stage: str, folder: Path, python: str) -> list[str]:
    """The RUN lines of a stage, in this folder in place of the root."""
    lines = re.findall(r"^RUN (.*)$", stage, re.MULTILINE)
    placed = [re.sub(r"(?<![\w.])/(opt/strongroom|data)\b", rf"{folder}/\1", line) for line in lines]
    return [re.sub(r"(^|&& *)python -m", rf"\1{python} -m", line) for line in placed]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can become another user")
def test_the_images_steps_make_a_server_that_serves(folder: Path) -> None:
    """Installed by the lock alone, it runs as the image's user and writes to /data and nowhere else."""
    python = reachable()
    if python is None:
        pytest.skip("no Python here that any user may run")
    building, running = re.split(r"^FROM .*$", TEXT, flags=re.MULTILINE)[1:]
    source = folder / "build"
    source.mkdir()
    for name in [name for line in re.findall(r"^COPY ([^-].*)$", building, re.MULTILINE) for name in line.split()[:-1]]:
        origin = ROOT / name
        if origin.is_dir():  # without what .dockerignore leaves out
            shutil.copytree(origin, source / name, ignore=shutil.ignore_patterns("node_modules", "__pycache__"))
        else:
            shutil.copy(origin, source / name)
    shutil.rmtree(source / "src/strongroom/server/web/static", ignore_errors=True)
    for step in steps(building, folder, python):
        done = subprocess.run(["/bin/sh", "-ec", step], cwd=source, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    [furnish] = steps(running, folder, python)
    assert furnish.startswith(f"useradd --system --uid {USER}")
    data = folder / "data"
    data.mkdir(mode=0o700)
    os.chown(data, int(USER), int(USER))
    assert subprocess.run([folder / "opt/strongroom/bin/python", "-c", "import flit_core"], check=False).returncode

    [settings] = re.findall(r"^ENV (.*)$", running, re.MULTILINE)
    pairs = [part.partition("=") for part in settings.split()]
    environment = {name: value.replace("/data", str(data)) for name, _, value in pairs}
    environment["PATH"] = f"{folder}/opt/strongroom/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    environment |= {"JWT_SECRET": "a secret of the tests, 32 bytes or more", "HOST": "127.0.0.1", "PORT": "0"}
    locked_in = (
        f"mount --bind {data} {data} && mount -o remount,bind,ro / && cd {data} && exec setpriv --reuid {USER} "
        f"--regid {USER} --clear-groups --no-new-privs --bounding-set -all strongroom"
    )

    def command(*arguments: str) -> list[str]:
        return ["unshare", "--mount", "/bin/sh", "-ec", f"{locked_in} {' '.join(arguments)}"]

    if subprocess.run(command("--version"), env=environment, capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces here")
    said = folder / "stdout"
    with said.open("wb") as stdout:
        server = subprocess.Popen(command("serve"), env=environment, stdout=stdout, stderr=subprocess.STDOUT)
    try:
        [port] = until(lambda: re.findall(r"listens on http://127\.0\.0\.1:(\d+)", said.read_text()), "the address", 60)
        url = f"http://127.0.0.1:{port}"
        body = {"email": "ann@example.com", "password": "correct horse"}
        assert httpx2.post(f"{url}/auth/email/register", json=body, trust_env=False).status_code == 201
        assert "<title>strongroom</title>" in httpx2.get(f"{url}/app/", trust_env=False).text
        health = re.search(r'^HEALTHCHECK .*CMD \["strongroom", "(\w+)"\]$', running, re.MULTILINE)
        assert health is not None
        asked = subprocess.run(command(health[1]), env=environment | {"PORT": port}, check=False)
        assert asked.returncode == 0
        assert min(path.name for path in data.iterdir()) == "vault.db"
        assert {path.stat().st_uid for path in data.iterdir()} == {int(USER)}
        server.terminate()
        assert server.wait(40) == 0
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
