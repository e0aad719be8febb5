"""Starting, refusing to start, and ending."""

import signal
import socket
from pathlib import Path

import pytest

from tests.kit.network.responses import good, made, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import Server, launch, on_a_file
from tests.kit.servers.secret import SECRET

from .checks import BLOB
from .jwt import claims, verifies

GOOD = {"JWT_SECRET": SECRET, "HOST": "127.0.0.1", "PORT": "0"}


def refuses(home: Path, *options: str, **settings: str) -> tuple[int, str]:
    """The exit code and the last words of a server that does not start."""
    wanted = {"DB_PATH": str(home / "vault.db")} | settings
    code = launch(home, wanted, *options).wait(20)
    words = (home / "stderr").read_text()
    assert code != 0
    assert "Traceback" not in words + (home / "stdout").read_text()
    return code, words


@pytest.mark.parametrize("settings", [{}, {"JWT_SECRET": ""}], ids=["missing", "empty"])
def test_no_secret(tmp_path: Path, settings: dict[str, str]) -> None:
    """Without a secret the server refuses to start, with code 2 and one line that tells how to make one."""
    code, words = refuses(tmp_path, PORT="0", **settings)
    assert code == 2
    lines = words.strip().splitlines()
    assert len(lines) == 1
    assert "JWT_SECRET" in lines[0]


@pytest.mark.parametrize("name", ["JWT_ACCESS_EXPIRY", "JWT_REFRESH_EXPIRY"])
@pytest.mark.parametrize("value", ["soon", "15", "15 minutes", "m", "15y"])
def test_bad_duration(tmp_path: Path, name: str, value: str) -> None:
    """A lifetime that is none stops the start, and the message names the variable."""
    _, words = refuses(tmp_path, **GOOD, **{name: value})
    assert name in words


@pytest.mark.parametrize("name", ["VAULT_VARIANT", "PORT", "MAX_BODY_BYTES"])
def test_bad_setting(tmp_path: Path, name: str) -> None:
    """A setting that makes no sense stops the start with a message."""
    _, words = refuses(tmp_path, **GOOD | {name: "nonsense"})
    assert words.strip()


@pytest.mark.parametrize("path", ["file/vault.db", "folder"], ids=["under a file", "a folder"])
def test_unusable_database(tmp_path: Path, path: str) -> None:
    """A database path that cannot be stops the start with a message."""
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "folder").mkdir()
    _, words = refuses(tmp_path, **GOOD, DB_PATH=str(tmp_path / path))
    assert words.strip()


def test_not_a_database(tmp_path: Path) -> None:
    """A file that is no database is neither served nor touched."""
    precious = tmp_path / "vault.db"
    precious.write_text("this is somebody's diary, not a database\n" * 100)
    _, words = refuses(tmp_path, **GOOD)
    assert words.strip()
    assert precious.read_text().startswith("this is somebody's diary")


def test_taken_port(tmp_path: Path) -> None:
    """A port that is taken stops the start with a message."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        _, words = refuses(tmp_path, **GOOD | {"PORT": str(other.getsockname()[1])})
    assert words.strip()


def test_short_secret_is_a_warning(lone: Server) -> None:
    """A short secret is warned of, and works."""
    lone.settings["JWT_SECRET"] = "short"
    server = lone.start()
    assert "secret" in server.log().lower()
    assert verifies(ApiUser.register(server).access, "short")
    assert server.end() == 0


@on_a_file
def test_bare_start(lone: Server) -> None:
    """With nothing but a secret in `.env`, the server keeps its database in `./data/vault.db`."""
    (lone.home / ".env").write_text(f'JWT_SECRET="{SECRET}"\n')
    del lone.settings["JWT_SECRET"], lone.settings["DB_PATH"]
    server = lone.start()
    assert verifies(ApiUser.register(server).access)
    assert (lone.home / "data" / "vault.db").is_file()
    assert server.end() == 0


def test_variant_option(lone: Server) -> None:
    """`--variant` narrows a server as VAULT_VARIANT does."""
    server = lone.start("--variant", "blob")
    person = ApiUser.register(server)
    assert claims(person.access)["iss"] == "strongbox"
    made(person.http.post("/vault", json={"name": "x", **BLOB}))
    refused(person.http.get("/auth/api-keys"), 404)
    assert server.end() == 0


def test_sigterm(lone: Server) -> None:
    """SIGTERM ends the server with code 0, even while a client holds a connection."""
    server = lone.start()
    http = server.connect()
    good(http.get("/health"))
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    assert "Traceback" not in server.log()
    server.start()
    assert server.end() == 0
