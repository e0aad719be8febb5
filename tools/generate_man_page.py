"""Writes docs/strongroom.1, the man page, from the parsers of the command line: `make generate`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

from strongroom.cli.commands import OPERATORS, PEOPLE, Command

PAGE: Final = Path(__file__).parent.parent / "docs" / "strongroom.1"
_HEAD: Final = """\
.\\" Generated from src/strongroom/cli by `make generate`. Do not edit.
.TH STRONGROOM 1
.SH NAME
strongroom \\- end-to-end encrypted storage for people, scripts and operators of a server
.SH SYNOPSIS
.B strongroom
.I COMMAND
[\\fIOPTIONS\\fR]
.SH DESCRIPTION
People keep passwords, notes, keys and other secrets in an account on a server that cannot read them. An agent process
holds the keys while it is unlocked. An item is named by its title, by VAULT/TITLE, by its id, or by a reference:
sr://VAULT/ITEM/FIELD. The page docs/command-line.md has a first five minutes, the exit codes and all variables.
"""
_EXIT_CODES: Final = (
    (0, "done"),
    (1, "failed"),
    (2, "wrong use"),
    (3, "no such item, vault, field, version or token"),
    (4, "not confirmed"),
    (5, "locked without a terminal, or nobody is logged in"),
    (6, "refused: a wrong password or code, a token that may not do this"),
    (7, "several have this name"),
    (8, "the server cannot be reached"),
    (9, "conflict"),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD, ".SH COMMANDS FOR PEOPLE", *(_command(one) for one in PEOPLE)]
    parts += [".SH COMMANDS FOR OPERATORS OF A SERVER", *(_command(one) for one in OPERATORS)]
    parts.append(".SH EXIT STATUS\nOf people's commands; those of operators say theirs in their help.")
    parts += [f".TP\n.B {code}\n{_text(meaning)}" for code, meaning in _EXIT_CODES]
    return "\n".join(part.rstrip("\n") for part in parts) + "\n"


def _command(command: Command) -> str:
    parser = argparse.ArgumentParser(prog=f"strongroom {command.name}", add_help=False)
    command.add(parser)
    lines = [f".SS {_text(command.name)}", _text(parser.description or f"{command.summary}.")]
    for action in parser._actions:  # noqa: SLF001 - argparse has no other way
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            lines += [f".TP\n.B {_text(name)}\n{_text(_summary(action, name))}" for name in action.choices]
        else:
            lines.append(f".TP\n{_heading(action)}\n{_text(_help(action))}")
    if parser.epilog:
        lines.append(f".PP\n{_text(parser.epilog)}")
    return "\n".join(lines)


def _heading(action: argparse.Action) -> str:
    value = action.metavar if isinstance(action.metavar, str) else (action.dest or "").upper()
    if action.choices is not None and not action.metavar:
        value = ",".join(str(one) for one in action.choices)
    if not action.option_strings:
        return f".I {_text(value)}"
    names = ", ".join(action.option_strings)
    return f".B {_text(names)}" if action.nargs == 0 else f'.BI "{_text(names)} " {_quoted(value)}'


def _quoted(value: str) -> str:
    return f'"{_text(value)}"'


def _help(action: argparse.Action) -> str:
    told = (action.help or "") % {"prog": "strongroom", "default": action.default}
    return f"{told[:1].upper()}{told[1:]}."


def _summary(action: argparse._SubParsersAction[argparse.ArgumentParser], name: str) -> str:
    for choice in action._choices_actions:  # noqa: SLF001
        if choice.dest == name and choice.help:
            return f"{choice.help}."
    return ""


def _text(text: str) -> str:
    """Plain text for roff."""
    spelled = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{spelled}" if spelled[:1] in {".", "'"} else spelled


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
