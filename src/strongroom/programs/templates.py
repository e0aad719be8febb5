"""References in texts: `{{ sr://vault/item/field }}` in a template, or a whole value of an environment."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PREFIX: Final = "sr://"
_PLACE: Final = re.compile(r"\{\{[ \t]*(sr://[^\r\n]*?)[ \t]*\}\}")
_BEGIN: Final = re.compile(r"\{\{[ \t]*sr://")


class Reader(Protocol):
    """Gives the values of references; NotFilled where one or more cannot be had."""

    def read(self, references: Sequence[str]) -> Mapping[str, str]:
        """The value of each reference."""
        ...


class NotFilled(Exception):  # noqa: N818 - an outcome that is told to a person
    """References that cannot be replaced, with a sentence for each. `code` is that of the first; no value is in it."""

    def __init__(self, sentences: Sequence[str], code: str = "invalid") -> None:
        super().__init__("\n".join(sentences))
        self.sentences = list(sentences)
        self.code = code


def references_in(text: str) -> list[str]:
    """The references of a template, in order. `{{` that no reference follows is left alone."""
    found = _PLACE.findall(text)
    if len(found) != len(_BEGIN.findall(text)):
        whole = {match.start() for match in _PLACE.finditer(text)}
        open_ones = (match.start() for match in _BEGIN.finditer(text) if match.start() not in whole)
        lines = (text.count("\n", 0, at) + 1 for at in open_ones)
        raise NotFilled([f"Line {line}: '{{{{ sr://' is not closed by '}}}}' on the same line." for line in lines])
    return found


def fill(text: str, values: Mapping[str, str]) -> str:
    """A template with the value of each reference in its place. Values are not searched for references again."""
    return _PLACE.sub(lambda match: values[match[1]], text)


class Filled:
    """An environment whose references are replaced. `secrets` are the values that were put in, by reference."""

    def __init__(self, variables: dict[str, str], secrets: dict[str, str]) -> None:
        self.variables = variables
        self.secrets = secrets

    def __repr__(self) -> str:
        return "Filled(...)"  # not its values


def fill_environment(variables: Mapping[str, str], reader: Reader) -> Filled:
    """Replace the references in values: `sr://…` as the whole value, or `{{ sr://… }}` within it."""
    problems: list[str] = []
    wanted: dict[str, list[str]] = {}
    for name, value in variables.items():
        try:
            wanted[name] = [value] if value.startswith(PREFIX) else references_in(value)
        except NotFilled:
            problems.append(f"The variable {name} has '{{{{ sr://' that is not closed by '}}}}'.")
    if problems:
        raise NotFilled(problems)
    references = list(dict.fromkeys(one for each in wanted.values() for one in each))
    secrets = dict(reader.read(references)) if references else {}
    filled = dict(variables)
    for name, each in wanted.items():
        if each:
            value = variables[name]
            filled[name] = secrets[value] if value.startswith(PREFIX) else fill(value, secrets)
            if "\0" in filled[name]:
                problems.append(f"The variable {name} would contain a NUL character, which no environment can.")
    if problems:
        raise NotFilled(problems)
    return Filled(filled, secrets)
