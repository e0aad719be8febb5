"""Exceptions of the store: why a database cannot be opened, and outcomes that an action turns into a refusal."""

from __future__ import annotations

from typing import Any


class CannotOpen(Exception):  # noqa: N818 - said to the operator in one sentence
    """The database cannot be opened; the message is a sentence for the operator."""


class CannotReach(CannotOpen):
    """The database server does not respond, or not yet: another attempt may succeed."""


class Duplicate(Exception):  # noqa: N818 - an outcome that the caller turns into a refusal
    """A statement met a unique index that holds this value already."""


class MissingParent(Exception):  # noqa: N818 - an outcome, seen when an account is deleted under a request
    """A statement refers to a row that is gone."""


class RollbackWith(Exception):  # noqa: N818 - a way to leave a transaction
    """Roll the transaction back, and return this result all the same."""

    def __init__(self, result: Any) -> None:
        self.result = result
        super().__init__("rolled back on purpose")


def reason(error: BaseException) -> str:
    """Why a database failed, in its own words; they name the user and the database, never the password."""
    if isinstance(error, TimeoutError):
        return "no answer"
    return (str(error).partition("\n")[0] or type(error).__name__).rstrip(".")


class OutcomeUnknown(Exception):  # noqa: N818 - not an error of ours
    """A commit was sent, and the connection was lost before its result came."""
