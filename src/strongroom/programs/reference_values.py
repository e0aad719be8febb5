"""Reads references for programs, and says of each one that cannot be read why."""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.agent.protocol import Failed
from strongroom.agent.secrets import Secrets
from strongroom.programs.templates import NotFilled

# What is wrong with one reference. Everything else, such as a locked agent, is wrong with all.
_OF_ONE = frozenset(
    {"invalid_reference", "ambiguous_name", "vault_not_found", "item_not_found", "field_not_found", "not_text"}
)


class ReferenceReader:
    """The values of references, from the agent or with a token."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets

    def read(self, references: Sequence[str]) -> dict[str, str]:
        """The value of each reference. NotFilled has a sentence for each that cannot be read."""
        try:
            return self._secrets.read(references)
        except Failed as failed:
            if failed.code not in _OF_ONE:
                raise
            first = failed
        sentences = [sentence for one in references if (sentence := self._problem(one))]
        raise NotFilled(sentences or [first.message], code=first.code)

    def _problem(self, reference: str) -> str:
        try:
            self._secrets.read([reference])
        except Failed as failed:
            if failed.code not in _OF_ONE:
                raise
            return failed.message
        return ""
