"""What an operator does beside a running server, as an operator types it."""

from __future__ import annotations

import json

from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server

TYPED = "given by the operator"


def invite(server: Server, *arguments: str) -> str:
    """Create an invitation; its code."""
    done = strongroom(server.home, "invite", "create", "--json", *arguments, DB_PATH=server.settings["DB_PATH"])
    code: str = json.loads(done.stdout)["code"]
    return code


def add_account(server: Server, email: str) -> None:
    """Add an account whose password the server knows: TYPED."""
    done = strongroom(server.home, "users", "add", email, DB_PATH=server.settings["DB_PATH"], input=f"{TYPED}\n")
    assert done.returncode == 0, done.stderr
