"""Changes as server-sent events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import wire

if TYPE_CHECKING:
    from strongroom.actions.change_feed import View
    from strongroom.model import Change

Frame = tuple[int, bytes]  # the timestamp of a change, and its bytes
COMMENT: Final = b":\n\n"  # keeps proxies awake, and means nothing
RETRY_MS: Final = 2_000  # how long a client is to wait before it comes again


def ready(cursor: int, epoch: str) -> bytes:
    """The first event: a client that is cut off right after it comes back to this very place."""
    data = wire.encode(wire.events.Ready(cursor, epoch))
    return b": strongroom\nretry: %d\n\nid: %d\nevent: ready\ndata: %s\n\n" % (RETRY_MS, cursor, data)


def of(change: Change) -> bytes:
    """One change."""
    shown: wire.events.DocumentChanged | wire.events.VaultChanged
    if change.kind:
        kind, shown = (
            b"vault",
            wire.events.VaultChanged(change.vault_uid, change.kind, change.name, change.version, change.updated_at),
        )
    else:
        kind, shown = (
            b"document",
            wire.events.DocumentChanged(
                change.uid, change.vault_uid, change.name, change.version, change.updated_at, change.deleted_at
            ),
        )
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (change.updated_at, kind, wire.encode(shown))


def end(reason: wire.events.Ending) -> bytes:
    """The last event. It has no id: who comes back goes on after the last change."""
    return b"event: end\ndata: %s\n\n" % wire.encode(wire.events.Ended(reason))


def framed(changes: list[Change], view: View, made: dict[int, bytes]) -> list[Frame]:
    """What a view shows of these changes, as frames. `made` keeps those that others may see as well."""
    found: list[Frame] = []
    for change in changes:
        shown = view.shown(change)
        if shown is change:
            frame = made.get(change.updated_at)
            if frame is None:
                frame = made[change.updated_at] = of(change)
            found.append((change.updated_at, frame))
        elif shown is not None:
            found.append((change.updated_at, of(shown)))
    return found
