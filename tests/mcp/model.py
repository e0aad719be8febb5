"""A model's side of the protocol: the official SDK's client, and a record of every byte that went over the wire.

The SDK takes a second to import, and is so only where a model is used: each process that runs tests reads all files.
"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple, Self

import anyio.from_thread

from tests.kit.people.machine import World
from tests.kit.programs.command_line import clean_environment


class Reply(NamedTuple):
    """What a tool replied."""

    text: str
    refused: bool

    @property
    def value(self) -> Any:
        """What it gave, as JSON."""
        assert not self.refused, self.text
        return json.loads(self.text)


class Model:
    """A session with `strongroom mcp` over standard input and output."""

    def __init__(self, folder: Path, environment: Mapping[str, str], *options: str) -> None:
        from mcp import StdioServerParameters

        folder.mkdir(exist_ok=True)
        self._folder = folder
        command = shlex.join([sys.executable, "-m", "strongroom", "mcp", *options])
        self._server = StdioServerParameters(
            command="sh",
            args=["-c", f"tee received | {command} 2> errors | tee sent"],
            env=clean_environment(**environment),
            cwd=folder,
        )

    def __enter__(self) -> Self:
        from mcp import Client

        with ExitStack() as stack:
            portal = stack.enter_context(anyio.from_thread.start_blocking_portal())
            self._portal = portal
            self._client = stack.enter_context(portal.wrap_async_context_manager(Client(self._server)))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def tools(self) -> dict[str, dict[str, Any]]:
        """The tools that are offered, with the schemas of their arguments."""
        found = self._portal.call(self._client.list_tools).tools
        return {tool.name: tool.input_schema for tool in found}

    def call(self, tool: str, /, **arguments: Any) -> Reply:
        """Call a tool."""
        result = self._portal.call(self._client.call_tool, tool, arguments)
        [content] = result.content
        assert content.type == "text"
        return Reply(content.text, bool(result.is_error))

    def messages(self) -> bytes:
        """Everything that went over the wire so far, and what the server has said besides."""
        return b"".join((self._folder / name).read_bytes() for name in ("received", "sent", "errors"))


def model_of(world: World, name: str, policy: str | None, **environment: str) -> Model:
    """A model with this policy, at a machine."""
    options = [] if policy is None else ["--policy", str(world.file(f"{name}.toml", policy))]
    return Model(world.home / name, world.environment | environment, *options, "--log", str(world.home / f"{name}.log"))
