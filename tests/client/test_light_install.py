"""The two installations: the client brings no server, the server no client, and each has all that it needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from tests.kit.programs.command_line import clean_environment
from tests.kit.servers.process import Server
from tests.upgrade.wheels import unpacked

ROOT = Path(__file__).parents[2]
CLIENT_LOCK, SERVER_LOCK = ROOT / "requirements-client.lock", ROOT / "requirements.lock"
URL = "http://127.0.0.1:3000"
# What a program waits for before its first line runs. Only what it uses is loaded, and only then.
NOT_AT_IMPORT = (
    *("asyncio", "ssl", "http.client", "email", "concurrent.futures", "logging", "sqlite3"),
    *("apsw", "httpx2", "httpcore2", "anyio", "h11", "idna", "truststore"),
    *("asyncpg", "httptools", "uvloop", "dotenv", "pydantic"),
    *("strongroom.server", "strongroom.store", "strongroom.actions", "strongroom.cli"),
    *("strongroom.client.async_client", "strongroom.client.replica"),
)
OFFLINE = """
with Client("http://127.0.0.1:3000") as client:
    client.login("grace@example.com", "correct horse battery staple")
    with client.open_replica("replica") as replica:
        replica.sync()
        replica.vault("personal").collection("notes").create({"title": "Offline"})
        print(replica.sync().pushed)
"""


def pinned(lock: Path) -> dict[str, str]:
    """The packages of a lock and their versions, without those of other platforms."""
    found = re.findall(r"^([\w-]+)==([^ ]+)(?: ; (.*))? \\$", lock.read_text("utf-8"), re.MULTILINE)
    installed = {re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower() for one in metadata.distributions()}
    return {name: version for name, version, marker in found if not marker or name in installed}


def site(lock: Path, folder: Path) -> Path:
    """A folder of packages as an install from a lock would make it: links to what is installed here, and the wheel."""
    place = folder / "site"
    place.mkdir(parents=True)
    for name, version in pinned(lock).items():
        found = metadata.distribution(name)
        assert found.version == version, f"{name} is {found.version} here; run make .venv/.dev"
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            (place / top).symlink_to(Path(str(found.locate_file(top))))
    for made in unpacked(ROOT, folder / "wheel").iterdir():
        (place / made.name).symlink_to(made)
    return place


def python(home: Path, place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these packages and no others."""
    command = [sys.executable, "-S", *words]
    variables = clean_environment(PYTHONPATH=str(place))
    return subprocess.run(command, cwd=home, env=variables, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture(scope="module")
def light(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of an install of the client."""
    return site(CLIENT_LOCK, tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def heavy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of an install of the server."""
    return site(SERVER_LOCK, tmp_path_factory.mktemp("server"))


def five_lines(address: str) -> str:
    """The README's program, and one that works offline."""
    text = (ROOT / "README.md").read_text("utf-8")
    [lines] = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    return (str(lines) + OFFLINE).replace(URL, address)


def test_the_locks_hold_no_more_than_each_side_needs() -> None:
    """The client's lock has no library of the server, and the other way round."""
    server, client = pinned(SERVER_LOCK).keys(), pinned(CLIENT_LOCK).keys()
    assert not {"asyncpg", "httptools", "python-dotenv", "uvloop"} & client
    assert not {"httpx2", "httpcore2", "anyio"} & server
    assert {"apsw", "cryptography", "msgspec"} <= server & client


def test_the_five_lines_run_on_a_light_install(light: Path, heavy: Path, tmp_path: Path) -> None:
    """The client with nothing but its lock talks to a server with nothing but its own; a replica works too."""
    server = Server(tmp_path / "server", PYTHONPATH=str(heavy))
    server.program = ("-S", "-m", "strongroom")
    server.start()
    try:
        (tmp_path / "example.py").write_text(five_lines(f"http://127.0.0.1:{server.port}"))
        done = python(tmp_path, light, "example.py")
    finally:
        assert server.end() == 0
    assert (done.stdout, done.stderr) == ("{'title': 'Hello again'}\n1\n", "")


@pytest.mark.parametrize("words", [("serve",), ("restore", "backup"), ("users", "list")])
def test_an_operators_command_says_what_to_install(light: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    """Without the server's libraries there is one sentence and no traceback, whatever the operator's command."""
    done = python(tmp_path, light, "-m", "strongroom", *words)
    assert done.returncode == 2
    assert "pip install 'strongroom[server]'" in done.stderr
    assert done.stderr.count("\n") == 1


def test_mcp_says_what_to_install(light: Path, tmp_path: Path) -> None:
    """Its library is an extra of its own."""
    done = python(tmp_path, light, "-m", "strongroom", "mcp")
    assert (done.returncode, done.stderr.count("\n"), "pip install 'strongroom[mcp]'" in done.stderr) == (2, 1, True)


def test_peoples_commands_need_only_the_client(light: Path, tmp_path: Path) -> None:
    """Help, the version and the status come from an install of the client alone; so does a whole first use."""
    (tmp_path / "home").mkdir(mode=0o700)
    server = Server(tmp_path / "server")
    server.start()

    def run(*words: str, given: str = "") -> str:
        variables = clean_environment(PYTHONPATH=str(light), STRONGROOM_HOME=str(tmp_path / "home"))
        command = [sys.executable, "-S", "-m", "strongroom", *words]
        done = subprocess.run(
            command, cwd=tmp_path, env=variables, input=given, capture_output=True, text=True, check=False, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, ""), words
        return done.stdout

    try:
        assert "commands for people" in run("--help")
        assert run("--version").startswith("strongroom ")
        address = f"http://127.0.0.1:{server.port}"
        run("login", "light@example.com", "--server", address, "--register", "--password", "-", given="a b c d e f\n")
        run("add", "secret", "Light", "value=-", given="feather")
        assert run("get", "Light") == "feather\n"
        assert run("inject", given="{{ sr://Personal/Light/value }}") == "feather"
        run("lock")
    finally:
        assert server.end() == 0


def test_a_server_without_the_client_says_what_to_install(heavy: Path, tmp_path: Path) -> None:
    """A program on the server's install is told what it lacks when it makes a client."""
    done = python(tmp_path, heavy, "-c", f"from strongroom.client import Client; Client({URL!r})")
    assert "pip install 'strongroom[client]'" in done.stderr.splitlines()[-1]


def loaded(first: str) -> set[str]:
    """The modules that a program has after its first line."""
    code = f"import sys; before = set(sys.modules); {first}; print(*set(sys.modules) - before)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_the_import_loads_little() -> None:
    """`from strongroom.client import Client` loads neither HTTP, SQLite, asyncio nor anything of the server."""
    found = loaded("from strongroom.client import Client, Collection, Document, DocumentConflict")
    assert [name for name in NOT_AT_IMPORT if name in found] == []
    assert {"strongroom.client.client", "msgspec", "cryptography"} <= found


def test_the_rest_is_loaded_when_it_is_named() -> None:
    """What the test above misses is there for a program that asks for it, by name or by `import *`."""
    found = loaded("from strongroom.client import Replica, keep_both")
    assert {"apsw", "strongroom.client.replica"} <= found
    assert "asyncio" not in found
    assert {"asyncio", "strongroom.client.async_client"} <= loaded("from strongroom.client import AsyncClient")
    assert "asyncio" in loaded("from strongroom.client import *")
    assert "httpx2" not in loaded("from strongroom.client import *")


@pytest.mark.soak  # installs from the package index
def test_an_empty_environment_is_installed_from_the_lock(tmp_path: Path) -> None:
    """With pip, the lock and the wheel go into an empty environment, nothing is missing, and the program runs there."""
    bin_folder = tmp_path / "venv" / "bin"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    unpacked(ROOT, tmp_path / "wheel")
    [wheel] = (tmp_path / "wheel").glob("*.whl")
    base = str(getattr(sys, "_base_executable", sys.executable))
    pip = [base, "-m", "pip", "--python", str(bin_folder / "python"), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--require-hashes", "--requirement", str(CLIENT_LOCK)], check=True)
    subprocess.run([*pip, "install", "--no-index", f"strongroom[client] @ {wheel.as_uri()}"], check=True)
    subprocess.run([*pip, "check"], check=True)
    server = Server(tmp_path / "server")
    server.start()
    try:
        (tmp_path / "example.py").write_text(five_lines(f"http://127.0.0.1:{server.port}"))
        command = [str(bin_folder / "python"), "example.py"]
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=120)
    finally:
        assert server.end() == 0
    assert (done.stdout, done.stderr) == ("{'title': 'Hello again'}\n1\n", "")
    told = subprocess.run([bin_folder / "strongroom", "serve"], capture_output=True, text=True, check=False)
    assert (told.returncode, "pip install 'strongroom[server]'" in told.stderr) == (2, True)
