"""Lies of a server about an account that moves: what it exports, and what it has kept."""

from __future__ import annotations

from strongroom.client import HistoryLeftOut, RolledBack, Tampered
from strongroom.client.format.seal import read_proof
from strongroom.errors import Invalid, Refusal
from tests.client.moving_accounts import (
    DOCUMENT,
    Change,
    Json,
    alter_keyring,
    drop_first,
    swap,
)


def _older(*, below_the_floor: bool) -> Change:
    """A document as it was before its last change, with the time of the last; before the rotation, or after it."""

    def change(rows: list[Json]) -> list[Json]:
        kept = {(row["uid"], row["version"]): row for row in rows if row["kind"] == "version"}
        live = [n for n, row in enumerate(rows) if row["kind"] == DOCUMENT and "deletedAt" not in row]
        pairs = [(n, kept.get((rows[n]["uid"], rows[n]["version"] - 1))) for n in live]
        at, old = next(
            (n, old) for n, old in pairs if old and (_generation(old) < _generation(rows[n])) == below_the_floor
        )
        rows[at] = {**rows[at], **{name: old[name] for name in ("version", "data", "hmac")}}
        return [row for row in rows if row is not old]

    return change


def _generation(row: Json) -> int:
    return read_proof(row["hmac"]).generation


def _without(kind: str, *, deleted: bool = False) -> Change:
    def change(rows: list[Json]) -> list[Json]:
        at = next(n for n, row in enumerate(rows) if row["kind"] == kind and ("deletedAt" in row) == deleted)
        uid = rows[at]["uid"]
        return [row for n, row in enumerate(rows) if n != at and (row["kind"] != "version" or row["uid"] != uid)]

    return change


NOT_KEPT: dict[str, tuple[Change, type[Refusal]]] = {
    "a document less": (_without(DOCUMENT), Tampered),
    "a deletion less": (_without(DOCUMENT, deleted=True), Tampered),
    "an older document": (_older(below_the_floor=False), Tampered),
    "a document of before the rotation": (_older(below_the_floor=True), Tampered),
    "a version less": (drop_first("version"), HistoryLeftOut),
    "a blob less": (drop_first("blobVersion"), HistoryLeftOut),
    "a vault less": (drop_first("vault"), Tampered),
    "no keyring": (lambda rows: [row for row in rows if "keyring" not in row["kind"]], Tampered),
    "a keyring of before": (
        lambda rows: [rows[0], {**rows[2], "kind": "keyring"}, *(row for row in rows if "keyring" not in row)][:-1],
        Tampered,
    ),
    "a clock of before": (lambda rows: [{**rows[0], "clock": rows[0]["clock"] - 10**6}, *rows[1:]], Refusal),
    "a version of other content": (swap("version", "data"), Tampered),
    "a keyring of the history with another content": (alter_keyring, Tampered),
}
SEEN_NEWER: dict[str, tuple[Change, type[Refusal]]] = {
    "a document less": (_without(DOCUMENT), RolledBack),
    "an older document": (_older(below_the_floor=False), RolledBack),
    "a document of before the rotation": (_older(below_the_floor=True), Tampered),
    "a vault less": (drop_first("vault"), RolledBack),
    "contents exchanged": (swap(DOCUMENT, "data"), Tampered),
    "a keyring of before": (
        lambda rows: [rows[0], {**rows[2], "kind": "keyring"}, *(row for row in rows if "keyring" not in row)],
        RolledBack,
    ),
    "no keyring": (lambda rows: [row for row in rows if "keyring" not in row["kind"]], Invalid),
}
