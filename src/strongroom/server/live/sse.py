"""Server-sent events: the encoding of changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from strongroom import wire

if TYPE_CHECKING:
    from strongroom.actions.change_feed import View
    from strongroom.model import Change

Frame = tuple[int, bytes]  # the timestamp of a change, and its bytes
COMMENT: Final = b":\n\n"  # keeps the connection open in proxies; clients ignore it
RETRY_MS: Final = 2_000  # before a client reconnects


def ready(cursor: int, epoch: str) -> bytes:
    """The first event: a client that is cut off right after it resumes at this cursor."""
    data = wire.encode(wire.events.Ready(cursor, epoch))
    return b": strongroom\nretry: %d\n\nid: %d\nevent: ready\ndata: %s\n\n" % (RETRY_MS, cursor, data)


def of(change: Change) -> bytes:
    """The event of one change."""
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
    """The last event. It has no id: a client that reconnects resumes after the last change."""
    return b"event: end\ndata: %s\n\n" % wire.encode(wire.events.Ended(reason))


def framed(changes: list[Change], view: View, shared_frames: dict[int, bytes]) -> list[Frame]:
    """The frames of the changes that a view shows. `shared_frames` caches those that are the same for every view."""
    found: list[Frame] = []
    for change in changes:
        shown = view.shown(change)
        if shown is change:
            frame = shared_frames.get(change.updated_at)
            if frame is None:
                frame = shared_frames[change.updated_at] = of(change)
            found.append((change.updated_at, frame))
        elif shown is not None:
            found.append((change.updated_at, of(shown)))
    return found
