"""Credential helpers for git and docker. A file says which item is for which host; no other host gets anything."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from strongroom.agent import paths
from strongroom.agent.secrets import open_secrets
from strongroom.cli import agent_requests, terminal

if TYPE_CHECKING:
    import argparse

_FILE: Final = "credentials.toml"
_NOT_FOUND: Final = "credentials not found in native keychain"  # docker knows this sentence
_THIS_MACHINE: Final = {"localhost", "127.0.0.1", "::1"}
_MOST: Final = 1 << 16  # bytes of a request


class _File(msgspec.Struct, forbid_unknown_fields=True):
    git: dict[str, str] = {}
    docker: dict[str, str] = {}


class _Credential(NamedTuple):
    username: str
    password: str


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `credential`."""
    parser.description = (
        f"The credential helper of git and of docker. The file {_FILE} in ~/.local/share/strongroom, or in "
        "STRONGROOM_HOME, says which item is for which host; docs/agents.md has an example."
    )
    parser.add_argument("program", choices=["git", "docker"])
    parser.add_argument("operation", metavar="OPERATION", help="get; git and docker also call store, erase and list")
    parser.set_defaults(run=_run)


def git() -> int:
    """The program `git-credential-strongroom`."""
    return _as_helper("git")


def docker() -> int:
    """The program `docker-credential-strongroom`."""
    return _as_helper("docker")


def _as_helper(program: str) -> int:
    from strongroom.cli import main

    return main(["credential", program, *sys.argv[1:]])


def _run(options: argparse.Namespace) -> int:
    return _git(options.operation) if options.program == "git" else _docker(options.operation)


def _git(operation: str) -> int:
    """Reply to git. What it wants to store or erase is not taken: items are changed by people."""
    if operation != "get":
        return 0
    request = _members(_request())
    item = _mapping("git").get(request.get("host", "").lower())
    if item is None or request.get("protocol") != "https":
        return 0
    credential = _credential(item)
    if request.get("username", credential.username) != credential.username:
        return 0
    if any(sign in part for part in credential for sign in "\n\0\r"):
        raise terminal.CommandFailed("The username or the password has a line break, which git cannot take.", 1)
    terminal.print_line(f"username={credential.username}\npassword={credential.password}")
    return 0


def _members(text: str) -> dict[str, str]:
    """The members of git's request; none of a request that could be read in two ways, by us and by git.

    A line ends with a line feed alone. Other line ends are part of a value, which a hostile server or URL may have
    chosen.
    """
    lines = [line.partition("=") for line in text.split("\n") if line]
    found = {name: value for name, _, value in lines if not name.endswith("[]")}
    single = [name for name, _, _ in lines if not name.endswith("[]")]
    if len(single) != len(found) or not all(value.isprintable() for value in found.values()):
        return {}
    return found


def _docker(operation: str) -> int:
    mapping = _mapping("docker")
    if operation == "list":
        terminal.print_line(json.dumps({host: _credential(item).username for host, item in mapping.items()}))
        return 0
    if operation != "get":
        raise terminal.CommandFailed("Credentials are kept in the vault; change the item with strongroom edit.", 1)
    server = _request().strip()
    item = mapping.get(_host(server))
    if item is None:
        terminal.print_line(_NOT_FOUND)
        return 1
    credential = _credential(item)
    terminal.print_line(
        json.dumps({"ServerURL": server, "Username": credential.username, "Secret": credential.password})
    )
    return 0


def _request() -> str:
    return sys.stdin.buffer.read(_MOST).decode("utf-8", "replace")


def _host(server: str) -> str:
    """The host of an address with https or without a scheme; empty for one with another, where a password is read.

    What is sent to this machine itself passes no network: there docker speaks http.
    """
    with suppress(ValueError):
        url = urlsplit(server if "://" in server else f"https://{server}")
        if url.scheme == "https" or (url.scheme == "http" and url.hostname in _THIS_MACHINE):
            return url.netloc.rpartition("@")[2].lower()
    return ""


def _mapping(program: str) -> dict[str, str]:
    """The item of each host."""
    from strongroom.items import InvalidReference, parse_reference
    from strongroom.programs.private_files import FileRefused, read_trusted

    with agent_requests.failures():
        path = Path(paths.home(), _FILE)
    if not os.path.lexists(path):
        return {}
    try:
        hosts: dict[str, str] = getattr(msgspec.convert(tomllib.loads(read_trusted(path)), _File), program)
        wrong = [host for host, item in hosts.items() if parse_reference(item).field]
    except (FileRefused, InvalidReference, tomllib.TOMLDecodeError, msgspec.ValidationError) as problem:
        raise terminal.CommandFailed(f"The file {path} cannot be used: {problem}") from None
    if wrong:
        raise terminal.CommandFailed(f"The file {path} must name an item for {wrong[0]}, as sr://vault/item.")
    return {host.lower(): item for host, item in hosts.items()}


def _credential(item: str) -> _Credential:
    username, password = f"{item}/username", f"{item}/password"
    with agent_requests.failures(), open_secrets(unlock=agent_requests.unlock) as secrets:
        values = secrets.read([username, password])
    return _Credential(values[username], values[password])
