"""Types of values: how a program's types become JSON or bytes, and how what is stored becomes them again.

`msgspec` reads and writes its own structs, dataclasses, and whatever else it knows; pydantic does it for its models. A
type with `to_stored` and `from_stored`, such as `strongroom.items.Item`, does it itself. No sentence about a value that
does not fit contains a part of the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, get_args

import msgspec
from msgspec import Struct

from strongroom.errors import Invalid

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    # Without a type, a value may be anything.
    T = TypeVar("T", default=Any)
    T_co = TypeVar("T_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    T = TypeVar("T")
    T_co = TypeVar("T_co", covariant=True)

_PLACE: Final = re.compile(r" - at `\$[\w.\[\]]*`$")
# What msgspec says about the type alone; its other sentences quote the value.
_SAFE: Final = re.compile(r"(Expected `|Object missing required field `|Invalid (?!enum value|value))")
_OWN_CHECK: Final = "a check of the type itself refuses it"


class Misfit(Struct, frozen=True):
    """What stands in the place of a value that does not fit: the name of the type, and what does not fit."""

    type: str
    problem: str


class ValueType(Struct, frozen=True):
    """The type of the values of a collection, and how they are written and read."""

    name: str
    to_stored: Callable[[Any], Any]
    from_stored: Callable[[Any], Any]
    describe: Callable[[Exception], str]

    def encode(self, value: Any) -> Any:
        """A value as JSON or bytes; refused if it would not be read again."""
        try:
            raw = self.to_stored(value)
            self.from_stored(raw)
        except Exception as error:  # noqa: BLE001 - a type's own checks may raise anything
            problem = self.describe(error)
        else:
            return raw
        raise Invalid(
            {"value": f"does not fit the type {self.name}: {problem}"},
            f"The value does not fit the type {self.name}: {problem}. Nothing was written.",
        )

    def decode(self, raw: Any) -> Any:
        """The value, or why it does not fit."""
        try:
            return self.from_stored(raw)
        except Exception as error:  # noqa: BLE001 - a type's own checks may raise anything
            return Misfit(self.name, self.describe(error))


@cache
def value_type(kind: Any) -> ValueType:
    """How values of a type are stored."""
    name = getattr(kind, "__name__", None) if not get_args(kind) else None
    name = name or str(kind)
    if kind is bytes:
        return ValueType(name, bytes, _read_bytes, _describe)
    if hasattr(kind, "from_stored"):
        return ValueType(name, lambda value: value.to_stored(), kind.from_stored, _describe)
    if _is_of_pydantic(kind):
        return _pydantic_type(kind, name)
    msgspec.json.Decoder(kind)  # raises TypeError for a type that it cannot read
    return ValueType(name, _to_builtins, lambda raw: msgspec.convert(raw, kind, str_keys=True), _describe)


def to_raw(value: Any) -> Any:
    """A value of a type of a program, as it is stored; any other value as it is."""
    kind: Any = type(value)
    if isinstance(value, Struct) or hasattr(kind, "__dataclass_fields__") or _is_of_pydantic(kind):
        return value_type(kind).encode(value)
    return value


def _to_builtins(value: Any) -> Any:
    return msgspec.to_builtins(value, str_keys=True)


def _read_bytes(raw: Any) -> bytes:
    if not isinstance(raw, bytes):
        raise msgspec.ValidationError("Expected `bytes`, got JSON")
    return raw


def _describe(error: Exception) -> str:
    """What msgspec says, without what it quotes."""
    text = str(error)
    place = _PLACE.search(text)
    where = place[0] if place is not None else ""
    if not isinstance(error, msgspec.ValidationError):
        return f"{type(error).__name__}, when it was converted"
    if error.__cause__ is not None:
        return _OWN_CHECK + where
    if _SAFE.match(text):
        return text
    if text.startswith("Object contains unknown field"):
        return f"it has a field that the type does not have{where}"
    return f"it has a value that is not one of those that the type allows{where}"


def _is_of_pydantic(kind: Any) -> bool:
    """Whether a type is a model of pydantic, or is made of one. A program that has one has imported pydantic."""
    return hasattr(kind, "__pydantic_core_schema__") or any(_is_of_pydantic(part) for part in get_args(kind))


def _pydantic_type(kind: Any, name: str) -> ValueType:
    from pydantic import TypeAdapter, ValidationError

    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    fields = getattr(kind, "model_fields", {})
    known = {*fields, *(field.alias for field in fields.values())}

    def to_stored(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings="error")

    def from_stored(raw: Any) -> Any:
        return adapter.validate_json(msgspec.json.encode(raw))

    def describe(error: Exception) -> str:
        if not isinstance(error, ValidationError):
            return f"{type(error).__name__}, when it was converted"
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        field = next((part for part in first["loc"][:1] if part in known), None)
        return first["type"] + ("" if field is None else f" - at `$.{field}`")

    return ValueType(name, to_stored, from_stored, describe)
