"""Writes of single documents in a form that an engine may combine: many of one account in one statement.

An action that has such a form is registered with a function that makes it from the action's arguments. The form holds
what the action would write if nothing stands against it; wherever something does, the engine runs the action itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.model import AccountLimits, Document

A = TypeVar("A", bound="Callable[..., Any]")


class NewDocument(Struct, frozen=True):
    """A document that is to be created. `args` are the action's arguments, with the uid that was chosen for it."""

    args: tuple[Any, ...]
    limits: AccountLimits
    keyring_version: int | None
    uid: str
    vault_uid: str
    collection: str
    data: str
    hmac: str | None
    version: int
    size: int
    row_bytes: int
    most_row_bytes: int | None  # of the rows of the account's documents; None does not limit

    def result(self, document: Document) -> tuple[Document, bool]:
        """What the action returns of a document that was stored: that, and that it is new."""
        return document, True


class Replacement(Struct, frozen=True):
    """A live document that is to be replaced, at the version that the client saw; `new_version` None: the next one."""

    args: tuple[Any, ...]
    limits: AccountLimits
    keyring_version: int | None
    uid: str
    vault_uid: str
    data: str
    hmac: str | None
    version: int
    new_version: int | None
    size: int
    most_retained: int | None  # bytes of trash and history of the account; None does not limit

    def result(self, document: Document) -> Document:
        """What the action returns of a document that was stored."""
        return document


Form: TypeAlias = NewDocument | Replacement
_forms: dict[Callable[..., Any], Callable[..., Form | None]] = {}


def combinable(form: Callable[..., Form | None]) -> Callable[[A], A]:
    """Register the form of an action; the function gets the time and the action's arguments."""

    def register(action: A) -> A:
        _forms[action] = form
        return action

    return register


def form_of(action: Callable[..., Any], now: int, args: tuple[Any, ...]) -> Form | None:
    """The form of a write; None if it has none."""
    make = _forms.get(action)
    return None if make is None else make(now, *args)
