"""The policy file of `strongroom mcp`: what a model may see, run, fill and remember. Without one, nothing.

It is TOML. Whatever is not known is refused, and so is a file that somebody else could have written.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from strongroom.items import InvalidReference, Reference, parse_reference
from strongroom.mcp import arguments
from strongroom.programs.private_files import FileRefused, read_trusted
from strongroom.programs.templates import PREFIX

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ALL: Final = "*"


class Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command that a model may run. References in its environment are replaced; the model sees none of the values."""

    argv: list[str]
    description: str = ""
    environment: dict[str, str] = {}
    folder: str = "/"
    timeout: Annotated[int, Meta(ge=1, le=3600)] = 60  # seconds
    output_bytes: Annotated[int, Meta(ge=1, le=1 << 20)] = 1 << 16

    def fits(self, given: Sequence[str]) -> bool:
        """Whether a command line fits the pattern."""
        return arguments.fits([arguments.compile_word(word) for word in self.argv], given)


class Template(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A template that a model may have filled: from which file, into which file, and with which references."""

    name: str
    source: str
    target: str
    references: list[str]
    description: str = ""


class Memory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The collection of the sealed memory: the server's address, and a file with a token for one collection.

    The file `state_file` holds what earlier calls have seen.
    """

    url: str
    token_file: str
    ca_file: str | None = None
    state_file: str | None = None


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model may do."""

    items: list[str] = []
    reveal: list[str] = []
    command: list[Command] = []
    template: list[Template] = []
    memory: Memory | None = None

    def shows(self, vault: str, item_id: str, title: str) -> bool:
        """Whether the name of an item may be shown."""
        return any(
            one.vault in {_ALL, vault} and one.item in {_ALL, item_id, title}
            for one in map(parse_reference, self.items)
        )

    def revealed(self, reference: str) -> str | None:
        """The reference as the policy names it under `reveal`; None where the value may not be shown."""
        wanted = parse_reference(reference)
        return next((one for one in self.reveal if parse_reference(one) == wanted), None)


def load(path: str) -> Policy:
    """The policy in a file; FileRefused where it cannot be used."""
    text = read_trusted(path)
    try:
        policy = msgspec.convert(tomllib.loads(text), Policy)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise FileRefused(f"The policy {path} is not valid: {error}.") from None
    problems = _problems(policy)
    if problems:
        raise FileRefused(f"The policy {path} is not valid: {' '.join(problems)}")
    return policy


def _problems(policy: Policy) -> list[str]:
    found = [
        *(_reference_problem("items", one, field=False) for one in policy.items),
        *(_reference_problem("reveal", one) for one in policy.reveal),
    ]
    for number, command in enumerate(policy.command, 1):
        found += [f"Command {number}: {one}" for one in _command_problems(command)]
    for template in policy.template:
        found += [f"Template {template.name!r}: {one}" for one in _template_problems(template)]
    names = [one.name for one in policy.template]
    if len(set(names)) < len(names):
        found.append("Two templates have the same name.")
    if policy.memory is not None:
        found += _path_problems("token_file", policy.memory.token_file)
        found += _path_problems("ca_file", policy.memory.ca_file or "/")
    return [one for one in found if one]


def _reference_problem(place: str, text: str, *, field: bool = True) -> str:
    """What is wrong with a reference, or nothing."""
    try:
        parsed = parse_reference(text)
    except InvalidReference as error:
        return f"{place}: {text!r} is no reference. {error}"
    if field and not parsed.field:
        return f"{place}: {text!r} must name a field."
    if not field and parsed.field:
        return f"{place}: {text!r} must have the form sr://vault/item; * stands for all."
    if field and _ALL in _parts(parsed):
        return f"{place}: {text!r} must name one field; * is for the list of items only."
    return ""


def _parts(reference: Reference) -> set[str]:
    return {reference.vault, reference.item, reference.field, reference.section}


def _command_problems(command: Command) -> list[str]:
    if not command.argv:
        return ["argv is empty."]
    program = command.argv[0]
    found = _path_problems("argv", program)
    if "{" in program:
        found.append("the first word of argv is the program, and has no placeholder.")
    for word in command.argv:
        if PREFIX in word:
            found.append("a reference in argv would be seen by other programs; use environment.")
        if "\0" in word:
            found.append("argv contains a NUL character.")
        try:
            arguments.compile_word(word)
        except arguments.UnknownPlaceholderError as error:
            found.append(f"{error} is no placeholder; there are {', '.join(arguments.PLACEHOLDERS)}.")
    for name, value in command.environment.items():
        if not _VARIABLE.fullmatch(name):
            found.append(f"{name!r} is no name of a variable.")
        elif value.startswith(PREFIX):
            found.append(_reference_problem(name, value))
        elif "\0" in value or PREFIX in value:
            found.append(f"the value of {name} must be a reference, or a text without one.")
    return [one for one in found + _path_problems("folder", command.folder) if one]


def _template_problems(template: Template) -> list[str]:
    found = [_reference_problem("references", one) for one in template.references]
    if not _NAME.fullmatch(template.name):
        found.append("a name has 1 to 64 small letters, digits, - and _.")
    found += _path_problems("source", template.source) + _path_problems("target", template.target)
    if template.source == template.target:
        found.append("source and target are the same file.")
    return [one for one in found if one]


def _path_problems(place: str, path: str) -> list[str]:
    if path.startswith("/") and os.path.normpath(path) == path and "\0" not in path:
        return []
    return [f"{place} must be an absolute path without '..': {path!r}."]
