"""`strongroom mcp`: tools for a model."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.agent import paths
from strongroom.cli import agent_requests, terminal

if TYPE_CHECKING:
    import argparse

    from strongroom.mcp.policy import Policy

_POLICY: Final = "mcp.toml"
_LOG: Final = "mcp.log"
_FOLDER: Final = "~/.local/share/strongroom, or in STRONGROOM_HOME"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `mcp`."""
    parser.description = (
        "Serve tools to a model over the Model Context Protocol, on standard input and output: it runs commands with "
        "secrets that it never sees. A policy file says what it may do; without one, it may do nothing. "
        "docs/agents.md explains it."
    )
    parser.add_argument("--policy", metavar="FILE", help=f"the policy; if missing, {_POLICY} in {_FOLDER}")
    parser.add_argument("--log", metavar="FILE", help=f"the log of every use; if missing, {_LOG} in the same folder")
    parser.add_argument("--check", action="store_true", help="say what the policy allows, and end")
    parser.set_defaults(run=_mcp)


def _mcp(options: argparse.Namespace) -> int:
    if find_spec("mcp") is None:
        raise terminal.CommandFailed("This command needs the MCP library; run: pip install 'strongroom[mcp]'")
    from strongroom.mcp.use_log import UseLog
    from strongroom.programs.private_files import FileRefused

    try:
        with agent_requests.failures():
            policy = _policy(options.policy)
            if options.check:
                return _show(policy)
            home = paths.home()
            if options.log is None:
                paths.make_folder(home)
            log = UseLog(options.log or str(Path(home, _LOG)))
    except FileRefused as problem:
        raise terminal.CommandFailed(str(problem)) from None
    from strongroom.mcp.server import serve

    serve(policy, log)
    return 0


def _policy(path: str | None) -> Policy:
    from strongroom.mcp.policy import Policy, load

    if path is not None:
        return load(path)
    default = str(Path(paths.home(), _POLICY))
    if os.path.lexists(default):
        return load(default)
    terminal.print_error(f"There is no policy {default}; the model may do nothing.")
    return Policy()


def _show(policy: Policy) -> int:
    for command in policy.command:
        secrets = ", ".join(f"{name}={value}" for name, value in command.environment.items())
        terminal.print_line(
            terminal.plain(f"run      {' '.join(command.argv)}" + (f"  with {secrets}" if secrets else ""))
        )
    for template in policy.template:
        terminal.print_line(terminal.plain(f"fill     {template.name}: {template.source} into {template.target}"))
    for reference in policy.reveal:
        terminal.print_line(terminal.plain(f"reveal   {reference}"))
    for item in policy.items:
        terminal.print_line(terminal.plain(f"list     {item}"))
    if policy.memory is not None:
        terminal.print_line(terminal.plain(f"memory   at {policy.memory.url}"))
    if policy == type(policy)():
        terminal.print_line("The policy allows nothing.")
    return 0
