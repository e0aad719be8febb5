"""run, read, inject, env: secrets for programs, by reference."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from strongroom.cli import agent_requests, terminal
from strongroom.cli.exit_codes import exit_code
from strongroom.programs.templates import NotFilled

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping

    from strongroom.programs.reference_values import ReferenceReader
    from strongroom.programs.templates import Filled

_STREAM: Final = "-"


def add_run(parser: argparse.ArgumentParser) -> None:
    """Add the options of `run`."""
    parser.usage = "%(prog)s [--env-file FILE] [--no-masking] -- COMMAND …"
    parser.description = (
        "Run a command. Values of its environment that are references (sr://vault/item/field, or {{ sr://… }} within a "
        "value) are replaced for this one process. If one cannot be replaced, the command is not started. "
        "In its output, the secrets are replaced by <masked>."
    )
    parser.add_argument(
        "--env-file", metavar="FILE", action="append", default=[], help="a file with lines NAME=value; may be repeated"
    )
    parser.add_argument("--no-masking", action="store_true", help="show the output as it is")
    parser.add_argument("command", nargs="...", metavar="COMMAND", help="the command and its arguments, after --")
    parser.epilog = "The exit code is that of the command; 126 or 127 if it cannot be started."
    parser.set_defaults(run=_run)


def add_read(parser: argparse.ArgumentParser) -> None:
    """Add the options of `read`."""
    parser.description = "Print the value that a reference names."
    parser.add_argument("reference", metavar="REFERENCE", help="sr://vault/item/field")
    parser.add_argument("-n", "--no-newline", action="store_true", help="print no newline after the value")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_read)


def add_inject(parser: argparse.ArgumentParser) -> None:
    """Add the options of `inject`."""
    parser.description = (
        "Fill a template: every {{ sr://vault/item/field }} is replaced by its value. All else stays as it is."
    )
    parser.add_argument(
        "-i", "--in-file", metavar="FILE", default=_STREAM, help="the template; standard input if missing"
    )
    parser.add_argument(
        "-o",
        "--out-file",
        metavar="FILE",
        default=_STREAM,
        help="the file to write, with mode 0600, when it is whole; standard output if missing",
    )
    parser.set_defaults(run=_inject)


def add_env(parser: argparse.ArgumentParser) -> None:
    """Add the options of `env`."""
    parser.description = (
        "Print the variables of a file, with references replaced, as lines of a shell script. "
        'For direnv, write into .envrc: eval "$(strongroom env app.env)"'
    )
    parser.add_argument("file", nargs="+", metavar="FILE", help="a file with lines NAME=value")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_env)


def _run(options: argparse.Namespace) -> int:
    from strongroom.agent.secrets import TOKEN, TOKEN_FILE
    from strongroom.programs import child
    from strongroom.programs.masking import SHORTEST, Masker, is_maskable

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise terminal.CommandFailed("Say which command to run: strongroom run -- COMMAND …")
    filled = _filled({**os.environ, **_variables(options.env_file)})
    # The program gets the secrets that it was given, and not what opens all others.
    environment = {name: value for name, value in filled.variables.items() if name not in {TOKEN, TOKEN_FILE}}
    try:
        if options.no_masking or not filled.secrets:
            child.replace_process(command, environment)
        for reference, value in filled.secrets.items():
            if not is_maskable(value):
                terminal.print_error(f"{reference}: not masked, because it has fewer than {SHORTEST} characters.")
        return child.end_like(child.run_masked(command, environment, Masker(filled.secrets.values())))
    except child.CannotStart as problem:
        raise terminal.CommandFailed(str(problem), problem.code) from None


def _read(options: argparse.Namespace) -> int:
    with _reader() as reader:
        value = reader.read([options.reference])[options.reference]
    if options.json:
        agent_requests.show_json({"reference": options.reference, "value": value})
    else:
        terminal.print_bytes((value if options.no_newline else value + "\n").encode())
    return 0


def _inject(options: argparse.Namespace) -> int:
    from strongroom.programs.private_files import FileRefused, write_private
    from strongroom.programs.templates import fill, references_in

    text = _template(options.in_file)
    with _reader() as reader:
        wanted = list(dict.fromkeys(references_in(text)))
        data = fill(text, reader.read(wanted) if wanted else {}).encode()
    if options.out_file == _STREAM:
        terminal.print_bytes(data)
        return 0
    try:
        write_private(options.out_file, data)
    except FileRefused as problem:
        raise terminal.CommandFailed(str(problem), 1) from None
    return 0


def _env(options: argparse.Namespace) -> int:
    import shlex

    filled = _filled(_variables(options.file))
    if options.json:
        agent_requests.show_json(filled.variables)
    else:
        lines = (f"export {name}={shlex.quote(value)}\n" for name, value in filled.variables.items())
        terminal.print_bytes("".join(lines).encode("utf-8", "surrogateescape"))
    return 0


def _variables(paths: list[str]) -> dict[str, str]:
    """The variables of files; those of a later file replace those of an earlier one."""
    from strongroom.programs import env_file

    found: dict[str, str] = {}
    with _problems():
        for path in paths:
            found |= env_file.parse(terminal.read_text(path), path)
    return found


def _filled(variables: Mapping[str, str]) -> Filled:
    from strongroom.programs.templates import fill_environment

    with _reader() as reader:
        return fill_environment(variables, reader)


@contextmanager
def _reader() -> Iterator[ReferenceReader]:
    """Reads references; a person is asked for the password where the agent is locked."""
    from strongroom.agent.secrets import open_secrets
    from strongroom.programs.reference_values import ReferenceReader

    with agent_requests.failures(), _problems(), open_secrets(unlock=agent_requests.unlock) as secrets:
        yield ReferenceReader(secrets)


@contextmanager
def _problems() -> Iterator[None]:
    """What cannot be replaced ends the command, with a line for each."""
    try:
        yield
    except NotFilled as problem:
        first, *others = map(terminal.plain, problem.sentences)
        raise terminal.CommandFailed(
            "\n".join([first, *(f"strongroom: {one}" for one in others)]), exit_code(problem.code)
        ) from None


def _template(path: str) -> str:
    """A template, with its line ends as they are."""
    try:
        data = sys.stdin.buffer.read() if path == _STREAM else Path(path).read_bytes()
        return data.decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        name = "standard input" if path == _STREAM else f"the file {path}"
        raise terminal.CommandFailed(f"Cannot read {name}: {reason}.") from None
