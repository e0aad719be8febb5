"""Decoding of request bodies: names every bad field at once, in time proportional to the size of the body.

A body is first decoded as a whole, into its type. One that does not pass, or that may hold longer lists than it should,
is read again in layers: its fields are found but not built (`msgspec.Raw`), then the items of a list, up to its longest
length, then the fields of each item. So nothing is built that is not wanted, however much of it was sent.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Raw, inspect

from strongroom import rules
from strongroom.errors import Invalid
from strongroom.wire.requests import Body

FAULTS: Final = 100  # explained in one answer
_COMMAS: Final = 8_192  # in a body whose lists are built at once; a full batch has about 6,000
_STEP_BYTES: Final = 256 * 1024  # of a field, after which others can have their turn
_STEP_ITEMS: Final = 64
_TAG: Final = "op"  # names the kind of a body in a list

T = TypeVar("T", bound=Body)
_REFUSED: Final = (msgspec.MsgspecError, ValueError, RecursionError)  # what a decoder says no with
_skip = msgspec.json.Decoder(Raw).decode
_text = msgspec.json.Decoder(str).decode
_keys = msgspec.json.Decoder(dict[str, Raw]).decode
_scalar = msgspec.json.Decoder(str | int).decode


def decode(kind: type[T], body: bytes | bytearray) -> T:
    """Decode a body, or refuse it with every bad field named at once."""
    value = _at_once(kind, body)
    if value is None:
        steps = _in_layers(kind, body)
        while True:
            try:
                next(steps)
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
    return value


def decode_in_steps(kind: type[T], body: bytes | bytearray) -> Generator[None, None, T]:
    """The same as a generator that yields between steps, to let other requests run."""
    value = _at_once(kind, body)
    if value is None:
        yield
        value = yield from _in_layers(kind, body)
    return value


def _at_once(kind: type[T], body: bytes | bytearray) -> T | None:
    """The fast path: the whole body in one step; None if it needs the slow one."""
    plan = _plan(kind)
    if not body.isascii():
        try:
            body.decode()  # msgspec does not look into the strings of fields that it skips
        except UnicodeDecodeError:
            raise Invalid({"body": "must be text in UTF-8"}, "The request body is not UTF-8.") from None
    if plan.holds_containers and body.count(b",") > _COMMAS:
        return None
    try:
        value: T = plan.whole.decode(body or b"{}")
    except _REFUSED:
        return None
    for name, good in kind.checks.items():
        field = getattr(value, name)
        if field is not None and not good(field):
            return None
    if kind.together is not Body.together and kind.together(msgspec.to_builtins(value)):
        return None
    return value


def _in_layers(kind: type[T], body: bytes | bytearray) -> Generator[None, None, T]:
    """The slow path: the body field by field, or the refusal that names each bad one.

    It may be good though it did not pass at once: of a key that is given twice the last counts, and the first may have
    been nonsense.
    """
    given = _fields(_plan(kind).shallow, body)
    yield
    faults = _Faults()
    try:
        value = yield from _read(kind, given, "", faults)
    except _TooManyFaultsError:
        more = f"The request is not valid; see details.fields for the first {FAULTS} things to change."
        raise Invalid(faults.told, more, more=True) from None
    if faults.told or value is None:
        raise Invalid(faults.told)
    return value


class _TooManyFaultsError(Exception):
    """There are more faults than are reported."""


class _Faults:
    """The faults of a body, by field."""

    def __init__(self) -> None:
        self.told: dict[str, str] = {}

    def add(self, name: str, sentence: str) -> None:
        """One more of them; of one field the first counts."""
        if name in self.told:
            return
        if len(self.told) == FAULTS:
            raise _TooManyFaultsError
        self.told[name] = sentence


class _Field(NamedTuple):
    """The decoder of one field of a body."""

    name: str
    wire_name: str
    required: bool
    annotation: Any
    decoder: msgspec.json.Decoder[Any]
    items: msgspec.json.Decoder[Any] | None = None  # of a list: its items, none of them built, as many as there may be
    shallow: msgspec.json.Decoder[Any] | None = None  # of a list of bodies: the fields of an item, none of them built
    is_object: bool = False


class _Plan(NamedTuple):
    """The decoders of one kind of body, cached."""

    whole: msgspec.json.Decoder[Any]
    shallow: msgspec.json.Decoder[Any]  # its fields, none of them built
    fields: tuple[_Field, ...]
    holds_containers: bool


@cache
def _plan(kind: type[Body]) -> _Plan:
    fields = tuple(_field(kind, field) for field in msgspec.structs.fields(kind))
    holds_containers = any(field.items is not None or field.is_object for field in fields)
    return _Plan(msgspec.json.Decoder(kind), _shallow(kind), fields, holds_containers)


def _field(kind: type[Body], field: msgspec.structs.FieldInfo) -> _Field:
    plain = _Field(field.name, field.encode_name, field.required, field.type, msgspec.json.Decoder(field.type))
    declared = inspect.type_info(field.type)
    for part in declared.types if isinstance(declared, inspect.UnionType) else (declared,):
        told = part.type if isinstance(part, inspect.Metadata) else part
        if isinstance(told, inspect.ListType) and told.max_length is not None:
            bodies = kind.lists.get(field.name, {})
            return plain._replace(items=_items(told.max_length), shallow=_shallow(*bodies.values()) if bodies else None)
        if isinstance(told, inspect.DictType):
            return plain._replace(is_object=True)
    return plain


def _shallow(*kinds: type[Body]) -> msgspec.json.Decoder[Any]:
    """Finds the fields of an object that is one of these bodies, and builds none of them."""
    names = {field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)} | {_TAG}
    return msgspec.json.Decoder(msgspec.defstruct("Fields", [(name, Raw, UNSET) for name in sorted(names)]))


def _items(most: int) -> msgspec.json.Decoder[Any]:
    """Finds the items of a list, and builds none of them; it stops where there are more than `most`."""
    names = [(f"item{number}", Raw, UNSET) for number in range(most)]
    return msgspec.json.Decoder(msgspec.defstruct("Items", names, array_like=True, forbid_unknown_fields=True))


def _fields(shallow: msgspec.json.Decoder[Any], body: bytes | bytearray | Raw) -> dict[str, Raw]:
    """The fields of a body by name, none of them built; or the sentence that says why it is no object."""
    try:
        found = shallow.decode(body or b"{}")
    except RecursionError:
        raise _too_deep() from None
    except _REFUSED:
        try:
            _skip(body)
        except RecursionError:
            raise _too_deep() from None
        except _REFUSED:
            raise Invalid({"body": "must be well-formed JSON"}, "The request body is not well-formed JSON.") from None
        raise Invalid({"body": "must be a JSON object"}, "The request body must be a JSON object.") from None
    return {name: raw for name in found.__struct_fields__ if (raw := getattr(found, name)) is not UNSET}


def _too_deep() -> Invalid:
    return Invalid({"body": "is nested too deeply"}, "The request body is nested too deeply.")


def _read(kind: type[T], given: dict[str, Raw], path: str, faults: _Faults) -> Generator[None, None, T | None]:
    """The body that has these fields, or None; what is wrong with them is added to the faults."""
    before = len(faults.told)
    values: dict[str, Any] = {}
    present: dict[str, Any] = {}
    for field in _plan(kind).fields:
        raw = given.get(field.wire_name)
        if raw is None:
            if field.required:
                faults.add(path + field.wire_name, "is required")
            continue
        present[field.wire_name] = ...  # there is something, good or bad
        try:
            value = yield from _value(kind, field, raw, path + field.wire_name, faults)
        except _REFUSED:
            faults.add(path + field.wire_name, says(field.annotation))
            continue
        values[field.name] = present[field.wire_name] = value
        if len(memoryview(raw)) > _STEP_BYTES:
            yield
    for name, sentence in kind.together(present).items():
        faults.add(path + name, sentence)
    return kind(**values) if len(faults.told) == before else None


def _value(kind: type[Body], field: _Field, raw: Raw, name: str, faults: _Faults) -> Generator[None, None, Any]:
    """The value of one field; raises if it is not good. Faults within its items are added to the faults."""
    starts = bytes(memoryview(raw)[:1])
    if field.is_object and bytes(raw).count(b",") > rules.MAX_KDF:
        raise ValueError("more fields than fit into the longest that is taken")
    if field.items is not None and starts == b"[":
        found = field.items.decode(raw)  # refuses a list that is too long
        if field.shallow is not None:
            items = [item for place in found.__struct_fields__ if (item := getattr(found, place)) is not UNSET]
            if not items:
                raise ValueError("an empty list")
            return (yield from _bodies(kind.lists[field.name], field.shallow, items, name, faults))
    try:
        value = field.decoder.decode(raw)
    except msgspec.ValidationError:
        if not field.is_object or starts != b"{":
            raise
        last = {key: _scalar(each) for key, each in _keys(raw).items()}  # one of its keys may be given twice
        value = msgspec.convert(last, field.annotation)
    check = kind.checks.get(field.name)
    if value is not None and check is not None and not check(value):
        raise ValueError("not what the field is for")
    return value


def _bodies(
    kinds: dict[str, type[Body]], shallow: msgspec.json.Decoder[Any], items: list[Raw], name: str, faults: _Faults
) -> Generator[None, None, list[Body]]:
    """The bodies of a list; what is wrong with each is told under names like `operations[3].data`."""
    found: list[Body] = []
    for at, raw in enumerate(items):
        if at % _STEP_ITEMS == _STEP_ITEMS - 1:
            yield
        if bytes(memoryview(raw)[:1]) != b"{":
            faults.add(f"{name}[{at}]", "must be an object")
            continue
        given = _fields(shallow, raw)
        kind = _kind(kinds, given.get(_TAG))
        if kind is None:
            faults.add(f"{name}[{at}].{_TAG}", "must be one of " + ", ".join(map(repr, kinds)))
            continue
        body = yield from _read(kind, given, f"{name}[{at}].", faults)
        if body is not None:
            found.append(body)
    return found


def _kind(kinds: dict[str, type[Body]], tag: Raw | None) -> type[Body] | None:
    try:
        return None if tag is None else kinds.get(_text(tag))
    except msgspec.ValidationError:
        return None


def says(annotation: Any) -> str:
    """The sentence that explains a field's type."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, Meta) and note.extra:
                return str(note.extra["says"])
    return "is not valid"
