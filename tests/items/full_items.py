"""Items of each type with a value in every member."""

from __future__ import annotations

from typing import Any

import msgspec

from strongroom import items
from strongroom.items import Field, FileContent, Item


def fulls() -> list[Item]:
    """An item of each type with a value in every member."""
    made = [_full(kind) for kind in items.TYPES.values()]
    for item in made:
        item.source.id = item.type
    return made


def _full(kind: Any) -> Any:
    made = kind()
    for member in msgspec.structs.fields(kind):
        if member.name in kind.NOT_STORED:
            continue
        setattr(made, member.name, _value(member.name, member.type))
    return made


def _value(name: str, kind: Any) -> Any:
    samples: dict[str, Any] = {
        "urls": ["https://example.com/"],
        "apps": [{"bundleId": "com.example"}],
        "tags": ["a", "b"],
        "folders": ["Work/Clients"],
        "credentials": [{"type": "wifi", "ssid": {"fieldType": "string", "value": "net"}}],
        "rest": {"kept": [1, None]},
        "changes": [{"at": ["x", 1], "to": None}],
        "order": ["note"],
        "fields": [Field(label="PIN", value="1", type="concealed-string", section="More", extra={"id": "eA"})],
        "files": [FileContent(name="a.txt", content=b"\0\xff")],
    }
    if name in samples and kind is not str:
        return samples[name]
    inner = next((part for part in getattr(kind, "__args__", ()) if hasattr(part, "NOT_STORED")), None)
    if inner is not None:
        return _full(inner)
    return {bool: True, str: f"{name}!"}.get(kind, 7)
