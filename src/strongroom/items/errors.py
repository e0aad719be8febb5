"""What cannot be found or read among items. No sentence contains a value of a field."""

from __future__ import annotations

from collections.abc import Sequence

from strongroom.errors import NotFound, Refusal


class InvalidReference(Refusal):
    """A text that is no reference."""

    code = "invalid_reference"
    sentence = "A reference has the form sr://vault/item/field."


class InvalidTotp(Refusal):
    """A text that is neither a secret of one-time codes nor an otpauth URI."""

    code = "invalid_totp"
    sentence = "This is neither a secret in base32 nor an otpauth URI."


class ItemNotFound(NotFound):
    """No item has this title or uid."""

    code = "item_not_found"
    sentence = "There is no such item."


class FieldNotFound(NotFound):
    """The item has no field of this name, or it is empty."""

    code = "field_not_found"
    sentence = "The item has no such field."


class AmbiguousName(Refusal):
    """Several items, or several fields of an item, have this name. `candidates` says how to name each of them."""

    code = "ambiguous_name"
    sentence = "Several have this name."

    def __init__(self, message: str, candidates: Sequence[str]) -> None:
        super().__init__(message, details={"candidates": list(candidates)})
        self.candidates = list(candidates)
