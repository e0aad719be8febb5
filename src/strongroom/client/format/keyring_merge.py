"""The merge of two keyrings of one account that were made without knowing of each other (docs/format.md).

Every rule treats both alike, so that two devices that merge the same two come to the same content.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from strongroom.client.errors import Tampered
from strongroom.client.format import names
from strongroom.client.format.encoding import PARENT, to_base64
from strongroom.client.format.keyring import Keyring, latest_gone
from strongroom.client.format.keyring_body import MERGED, MOST_PAST, Extra, Gone, MergedKeyring, VaultEntry, to_json

_SAME: Final = ("account", "slots", "recovery", "identity", "storage")  # in both


def merge(one: Keyring, other: Keyring) -> Keyring:
    """The keyring after both, not sealed yet; Tampered where no rule decides between them."""
    first, second = sorted([one, other], key=lambda ring: (-ring.version, ring.digest))
    mine, theirs = to_json(first), to_json(second)
    if (
        first.generation != second.generation
        or first.sealed_slots != second.sealed_slots
        or any(not _is_same(mine[name], theirs[name]) for name in _SAME)
    ):
        raise Tampered
    gone = _gone(first, second)
    uids = {entry.uid for entry in gone}
    entries = {entry.uid: entry for entry in second.vaults} | {entry.uid: entry for entry in first.vaults}
    for entry in second.vaults:
        if entries[entry.uid] is not entry:
            entries[entry.uid] = _vault(entries[entry.uid], entry)
    made = first.with_directory([])
    return msgspec.structs.replace(
        made,
        vaults=tuple(_named([entry for uid, entry in sorted(entries.items()) if uid not in uids])),
        gone=gone,
        merged=_branches(made, first, second),
        must=tuple(sorted({*first.must, *second.must, MERGED})),
        extra=_extra(first.extra, second.extra),
    )


def _gone(one: Keyring, other: Keyring) -> tuple[Gone, ...]:
    """What either says was deleted is deleted, at the higher of two versions."""
    found = {entry.uid: entry for entry in other.gone}
    for entry in one.gone:
        before = found.get(entry.uid, entry)
        version, extra = max(entry.version, before.version), _extra(entry.extra, before.extra)
        found[entry.uid] = Gone(uid=entry.uid, version=version, extra=extra)
    return latest_gone(list(found.values()))


def _vault(one: VaultEntry, other: VaultEntry) -> VaultEntry:
    """The keys of both, which must agree on each generation; the higher of two names, and of two floors."""
    keys = dict(one.keys) | dict(other.keys)
    if any(keys[generation] != key for generation, key in one.keys) or one.sealed != other.sealed:
        raise Tampered
    extras = {
        generation: _extra(one.key_extras.get(generation, {}), other.key_extras.get(generation, {}))
        for generation in {*one.key_extras, *other.key_extras}
    }
    return VaultEntry(
        uid=one.uid,
        name=max(one.name, other.name),
        sealed=one.sealed,
        made=one.made or other.made,
        floor=max(one.floor, other.floor),
        keys=tuple(sorted(keys.items())),
        extra=_extra(one.extra, other.extra),
        key_extras=extras,
    )


def _named(entries: list[VaultEntry]) -> list[VaultEntry]:
    """Names that stand once: of two vaults with one name, the one with the higher uid gets a number."""
    taken: dict[str, VaultEntry] = {}
    wanted = {entry.name for entry in entries}
    found = []
    for entry in entries:
        name = entry.name
        if name in taken:
            name = names.free_name(name, lambda free: free if free in taken or free in wanted else None)
        taken[name] = entry
        found.append(entry if name == entry.name else msgspec.structs.replace(entry, name=name))
    return found


def _branches(made: Keyring, first: Keyring, second: Keyring) -> tuple[MergedKeyring, ...]:
    """The keyrings of both pasts that the merged one does not name in its past."""
    line = {second.version: second.digest[:PARENT]}
    line |= {second.version - before: digest for before, digest in enumerate(reversed(second.past), 1)}
    joined = [MergedKeyring(version=version, digest=digest) for version, digest in line.items()]
    found: dict[tuple[int, bytes], MergedKeyring] = {}
    for one in (*joined, *second.merged, *first.merged):
        place = (one.version, one.digest)
        before = found.get(place, one)
        found[place] = msgspec.structs.replace(one, extra=_extra(one.extra, before.extra))
    reached = [one for one in found.values() if one.version >= made.version - MOST_PAST]
    others = [one for one in reached if made.past[one.version - made.version] != one.digest]
    return tuple(sorted(others, key=lambda one: (one.version, to_base64(one.digest)))[-MOST_PAST:])


def _extra(one: Extra, other: Extra) -> dict[str, Any]:
    """Members that this client does not know: those of both, where they do not differ."""
    if any(name in other and not _is_same(other[name], value) for name, value in one.items()):
        raise Tampered
    return {**other, **one}


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where true is not 1."""
    return msgspec.json.encode(one, order="sorted") == msgspec.json.encode(other, order="sorted")
