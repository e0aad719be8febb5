"""Reading a body: every bad field is named at once, and nothing breaks the reader."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Meta

from strongroom.errors import Invalid
from strongroom.wire.bodies import Body

T = TypeVar("T", bound=Body)
_decoders: dict[type[Body], msgspec.json.Decoder[Any]] = {}


def decode(kind: type[T], body: bytes) -> T:
    """Read a body, or refuse it with every bad field named at once."""
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    try:
        if not body.isascii():
            body.decode()  # msgspec does not look into the strings of fields that it skips
        value: T = decoder.decode(body or b"{}")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _second_look(kind, body)
    for name, good in kind.checks.items():
        field = getattr(value, name)
        if field is not None and not good(field):
            return _second_look(kind, body)
    if kind.together is not Body.together and kind.together(msgspec.to_builtins(value)):
        return _second_look(kind, body)
    return value


def _second_look(kind: type[T], body: bytes) -> T:
    """Go field by field through a body that did not pass at once.

    It may be good all the same: of a key that is given twice the last counts, and the first may have been nonsense.
    """
    given = _object(body)
    bad = _faults(kind, given)
    if bad:
        raise Invalid(bad)
    return msgspec.convert(given, kind)


def _faults(kind: type[Body], given: dict[str, Any]) -> dict[str, str]:
    """What is wrong with each field."""
    bad: dict[str, str] = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name not in given:
            if field.required:
                bad[field.encode_name] = "is required"
            continue
        value = given[field.encode_name]
        if field.name in kind.lists and isinstance(value, list):
            within = _faults_within(field.encode_name, kind.lists[field.name], value)
            if within:
                bad |= within
                continue
        try:
            value = msgspec.convert(value, field.type)
        except (msgspec.ValidationError, ValueError):
            bad[field.encode_name] = says(field.type)
            continue
        check = kind.checks.get(field.name)
        if check is not None and value is not None and not check(value):
            bad[field.encode_name] = says(field.type)
    for name, sentence in kind.together(given).items():
        bad.setdefault(name, sentence)
    return bad


def _faults_within(name: str, kinds: dict[str, type[Body]], given: list[Any]) -> dict[str, str]:
    """What is wrong with each field of each body in a list, under names like `operations[3].data`."""
    bad: dict[str, str] = {}
    for at, item in enumerate(given):
        if not isinstance(item, dict):
            bad[f"{name}[{at}]"] = "must be an object"
            continue
        tag = item.get("op")
        kind = kinds.get(tag) if isinstance(tag, str) else None
        if kind is None:
            bad[f"{name}[{at}].op"] = "must be one of " + ", ".join(map(repr, kinds))
            continue
        bad |= {f"{name}[{at}].{field}": sentence for field, sentence in _faults(kind, item).items()}
    return bad


def _object(body: bytes) -> dict[str, Any]:
    """A body as plain data, or the sentence that says why it is none."""
    try:
        given = msgspec.json.decode(body.decode() or "{}")
    except UnicodeDecodeError:
        raise Invalid({"body": "must be text in UTF-8"}, "The request body is not UTF-8.") from None
    except RecursionError:
        raise Invalid({"body": "is nested too deeply"}, "The request body is nested too deeply.") from None
    except (msgspec.MsgspecError, ValueError):
        raise Invalid({"body": "must be well-formed JSON"}, "The request body is not well-formed JSON.") from None
    if not isinstance(given, dict):
        raise Invalid({"body": "must be a JSON object"}, "The request body must be a JSON object.")
    return given


def says(annotation: Any) -> str:
    """The sentence that explains a field's type."""
    for part in (annotation, *getattr(annotation, "__args__", ())):
        for note in getattr(part, "__metadata__", ()):
            if isinstance(note, Meta) and note.extra:
                return str(note.extra["says"])
    return "is not valid"
