"""The one rule: imports point inward. Only server/ knows HTTP, only store/ knows SQL, only client/ knows keys."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.project import SOURCE
from tests.kit.rows import each_row

# Which rooms a room may look into. A room is the first part of a module's name below the package.
MAY_IMPORT: dict[str, set[str]] = {
    "": {"_version", "server"},  # the package itself loads the server when it is asked for
    "_version": set(),
    "__main__": {"cli"},
    "descriptors": set(),
    "errors": set(),
    "export_rows": set(),
    "identifiers": set(),
    "keyring_head": set(),
    "model": set(),
    "one_time_codes": set(),
    "web_release": set(),
    "webauthn": set(),
    "options": set(),
    "rules": {"errors", "model"},
    "wire": {"descriptors", "errors", "export_rows", "identifiers", "model", "rules", "wire"},
    "credentials": {"identifiers"},
    "archive": set(),
    "sealing": {"archive"},
    "store": {"archive", "errors", "export_rows", "model", "store"},
    "actions": {
        "actions",
        "credentials",
        "descriptors",
        "errors",
        "export_rows",
        "identifiers",
        "keyring_head",
        "model",
        "one_time_codes",
        "rules",
        "store",
        "wire",
    },
    "server": {
        "_version",
        "actions",
        "archive",
        "credentials",
        "descriptors",
        "errors",
        "export_rows",
        "identifiers",
        "model",
        "one_time_codes",
        "options",
        "rules",
        "server",
        "store",
        "web_release",
        "webauthn",
        "wire",
    },
    "foreign_encryption": set(),
    "items": {"errors", "foreign_encryption", "items"},  # shapes and formats alone: neither client nor server
    "client": {"_version", "client", "errors", "export_rows", "identifiers", "items", "model", "rules", "wire"},
    "programs": {"agent", "items", "programs"},
    "mcp": {"_version", "agent", "client", "errors", "items", "mcp", "programs"},
    "agent": {"agent", "client", "errors", "items"},
    "cli": {
        "_version",
        "agent",
        "archive",
        "cli",
        "client",
        "errors",
        "items",
        "mcp",
        "model",
        "options",
        "programs",
        "sealing",
        "server",
        "store",
        "web_release",
    },
}
# Where a library may be imported. Authenticated encryption belongs to the client; and to one module that encrypts whole
# archives to a key of the operator's, which only the command line may import. One module of the server seals the
# secrets of one-time codes, which are the server's own: no data of a user. A decoy descriptor begins with a public key,
# and that is all that the server makes of what clients make. One module opens encrypted exports of other programs, for
# importers, and nothing of ours.
ONLY_IN: dict[str, set[str]] = {
    "apsw": {"store", "client"},  # the client's replica is a file of its own, on another machine
    "asyncpg": {"store"},
    "httptools": {"server"},
    "uvloop": {"server"},
    "dotenv": {"cli"},
    "httpx2": {"client"},
    "keyring": {"client"},
    # items converts SSH keys between OpenSSH and PKCS#8
    "cryptography": {
        "credentials",
        "client",
        "descriptors",
        "foreign_encryption",
        "items",
        "one_time_codes",
        "sealing",
        "webauthn",
    },
    "fido2": {"client", "webauthn"},
    "cryptography.hazmat.primitives.ciphers": {"client", "foreign_encryption", "one_time_codes", "sealing"},
    "pyrage": {"sealing"},
    "opentelemetry": {"server"},
    "asyncssh": {"server"},
    "obstore": {"server"},
    "mcp": {"mcp"},
    "mcp_types": {"mcp"},
}
FORBIDDEN = {"sqlite3", "pickle"}


def room_of(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return "" if parts == ("__init__",) else parts[0]


@functools.cache
def nodes_of(source: str) -> list[ast.AST]:
    """Every node of a module's syntax tree; parsed once for all tests."""
    return list(ast.walk(ast.parse(source)))


def imports_of(source: str) -> Iterator[str]:
    for node in nodes_of(source):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            for alias in node.names:
                yield f"{node.module}.{alias.name}"


def faults_in(room: str, source: str) -> list[str]:
    found = []
    for name in imports_of(source):
        if name == "strongroom" or name.startswith("strongroom."):
            inner = name.split(".")[1] if "." in name else ""
            inner = inner if inner in MAY_IMPORT else ""  # a name of the package itself
            if inner not in MAY_IMPORT[room]:
                found.append(f"{room or 'strongroom'} imports {name}")
            continue
        if name.split(".")[0] in FORBIDDEN:
            found.append(f"{room} imports {name}")
        for library, rooms in ONLY_IN.items():
            if (name == library or name.startswith(library + ".")) and room not in rooms:
                found.append(f"{room} imports {name}")
    return found


@each_row("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_point_inward(path: Path) -> None:
    """No module looks into a room that its own may not look into."""
    assert faults_in(room_of(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("room", "planted"),
    [
        ("actions", "from strongroom.client import Client"),
        ("server", "import strongroom.client"),
        ("server", "from strongroom import sealing"),
        ("store", "from strongroom.sealing import Sealer"),
        ("cli", "from cryptography.hazmat.primitives.ciphers.aead import AESGCM"),
        ("descriptors", "from cryptography.hazmat.primitives.ciphers.aead import AESGCM"),
        ("keyring_head", "from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey"),
        ("actions", "from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey"),
        ("server", "from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey"),
        ("keyring_head", "from strongroom.client.format import keyring"),
        ("server", "from strongroom import keyring_head"),
        ("server", "from fido2.server import Fido2Server"),
        ("actions", "from strongroom import webauthn"),
        ("archive", "import pyrage"),
        ("store", "from strongroom.actions import documents"),
        ("model", "from strongroom import wire"),
        ("items", "from strongroom.client import Client"),
        ("items", "from strongroom import wire"),
        ("server", "from strongroom import foreign_encryption"),
        ("actions", "from strongroom.items import Item"),
        ("items", "from cryptography.hazmat.primitives.ciphers import Cipher"),
        ("wire", "from strongroom.server import request"),
        ("actions", "import apsw"),
        ("server", "from apsw import Connection"),
        ("store", "import sqlite3"),
        ("actions", "import httptools"),
        ("credentials", "from cryptography.hazmat.primitives.ciphers.aead import AESGCM"),
        ("server", "from cryptography.hazmat.primitives.ciphers import Cipher"),
    ],
)
def test_a_planted_import_is_caught(room: str, planted: str) -> None:
    """The rule above can fail."""
    assert faults_in(room, planted)


def uses_the_database(source: str) -> bool:
    """Whether a module takes the database from what all requests share."""
    return any(isinstance(node, ast.Attribute) and node.attr == "db" for node in nodes_of(source))


@pytest.mark.parametrize("path", sorted((SOURCE / "server" / "routes").glob("*.py")), ids=lambda path: path.stem)
def test_a_route_reaches_the_database_through_its_request(path: Path) -> None:
    """The request proves the caller's session before it writes, and with what it reads; the database does not."""
    assert not uses_the_database(path.read_text())


def test_a_planted_way_around_the_request_is_caught() -> None:
    """A handler that tries to write without its caller being proven."""
    tries = "async def delete(request):\n    await request.context.db.write(vaults.delete, request.actor, 'uid')\n"
    assert uses_the_database((SOURCE / "server" / "routes" / "vaults.py").read_text() + tries)


# What raises, or does nothing, where no task runs (docs/decisions/0013-requests-are-not-tasks.md). gather, shield and
# wait make tasks of what they are given and need none themselves.
NEEDS_A_TASK = {"current_task", "TaskGroup", "timeout", "timeout_at", "wait_for"}
RUNS_AS_A_TASK = {
    SOURCE / "server" / "timeouts.py",  # makes one first
    *(SOURCE / "store" / "postgres").glob("*.py"),  # where the database is waited for, every request is one
}
IN_A_REQUEST = [
    path
    for path in sorted(SOURCE.rglob("*.py"))
    if room_of(path) not in {"cli", "client", "mcp"} and path not in RUNS_AS_A_TASK
]


def needs_a_task(source: str) -> set[str]:
    """What a module uses that a coroutine may use only within a task; context variables, which tasks keep apart."""
    found = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Attribute) and ast.unparse(node.value).partition(".")[0] == "asyncio":
            found |= {node.attr} & NEEDS_A_TASK
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("asyncio") and alias.asname}
    for name in imports_of(source):
        library, _, last = name.rpartition(".")
        if library.startswith("asyncio"):
            found |= {last} & {*NEEDS_A_TASK, "*"}
        elif "contextvars" in {library, last}:
            found.add(name)
    return found


@each_row("path", IN_A_REQUEST, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_request_uses_nothing_that_needs_a_task(path: Path) -> None:
    """A request is not always a task: timeouts come from `server/timeouts.py`, which makes one first."""
    assert needs_a_task(path.read_text()) == set()


@pytest.mark.parametrize(
    "planted",
    [
        "import asyncio\nasync def f():\n    async with asyncio.timeout(1): ...",
        "import asyncio\nasync def f():\n    async with asyncio.timeout_at(1): ...",
        "import asyncio\nasync def f():\n    await asyncio.wait_for(g(), 1)",
        "import asyncio\nasync def f():\n    async with asyncio.TaskGroup() as group: ...",
        "import asyncio\nasync def f():\n    asyncio.current_task().cancel()",
        "import asyncio\nasync def f():\n    async with asyncio.timeouts.timeout(1): ...",
        "import asyncio as aio\nasync def f():\n    async with aio.timeout(1): ...",
        "from asyncio import wait_for",
        "from asyncio import *",
        "from asyncio.tasks import current_task",
        "import contextvars",
        "from contextvars import ContextVar",
    ],
)
def test_a_planted_need_of_a_task_is_caught(planted: str) -> None:
    """Each of these would fail in some requests, or mix up their variables."""
    assert needs_a_task(planted)


@each_row("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_only_the_store_speaks_sql(path: Path) -> None:
    """A statement outside store/ is a second way to the data. A replica is the client's own data, in one file."""
    if room_of(path) == "store" or path.parent == SOURCE / "client" / "replica" / "store":
        return
    statements = re.compile(r"\b(SELECT\s.+\sFROM|INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM)\b", re.DOTALL)
    for node in nodes_of(path.read_text()):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            assert not statements.search(node.value)


def test_help_loads_no_server() -> None:
    """The command line starts without the server's modules: help is instant."""
    code = (
        "import sys, contextlib, io\n"
        "from strongroom.cli import main\n"
        "with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):\n"
        "    main(['serve', '--help'])\n"
        "heavy = ('strongroom.server', 'strongroom.store', 'httptools', 'apsw', 'cryptography', 'msgspec')\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
