"""Lies that change no byte: the same keyring, blob, descriptor or row in a spelling that is not the one of base64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tests.client.hostile.attack import Tampered, attack, read
from tests.client.hostile.lying_proxy import Lie, Talk
from tests.client.hostile.on_accounts import KEYRING, PRELOGIN, login, reload
from tests.client.hostile.on_documents import changes, gone_elsewhere, last_in_order, note
from tests.client.hostile.on_vaults import get_blob, new_blob
from tests.client.hostile.scenario import Row, Stage, about, about_vault, with_

SIGNS: Final = {"one sign": "=", "a group": "===="}
both: dict[str, Any] = {"client": Tampered, "replica": Tampered}


def longer(signs: str) -> Callable[[str], str]:
    """The same text, with superfluous padding."""
    return lambda text: text + signs


def padded_keyring(signs: str) -> Callable[[Stage], Lie]:
    """The newest keyring, and signs after it."""
    return lambda _stage: about(*KEYRING, lambda talk: talk.say(talk.told | {"keyring": talk.told["keyring"] + signs}))


def padded_descriptor(member: str) -> Callable[[Stage], Lie]:
    """The descriptor, and a sign after one of its members."""

    def change(talk: Talk) -> None:
        kdf: Row = talk.told["kdf"]
        talk.say({"kdf": kdf | {member: kdf[member] + "="}})

    return lambda _stage: about(*PRELOGIN, change)


def padded_notice(stage: Stage) -> Lie:
    """A true notice, and a sign after its data, which its proof does not cover."""
    return last_in_order(stage, stage.gone.uid, lambda row: row | {"data": row["data"] + "="})


for count, signs in SIGNS.items():
    attack(f"a keyring with {count} of padding too many, at login", padded_keyring(signs), client=Tampered, act=login)
    attack(f"a keyring with {count} of padding too many", padded_keyring(signs), act=reload, **both)
    for field in ("data", "hmac", "collection"):
        lie = note(with_(**{field: longer(signs)}))
        attack(f"{field} of a document with {count} of padding too many", lie, act=read, **both)
for member in ("salt", "recovery"):
    attack(f"a descriptor whose {member} has padding too much", padded_descriptor(member), client=Tampered, act=login)
for field in ("data", "salt"):

    def padded_blob(stage: Stage, field: str = field) -> Lie:
        return about_vault(stage, with_(**{field: longer("=")}))

    attack(f"{field} of a blob with padding too much", padded_blob, act=get_blob, sync=new_blob(padded_blob), **both)
attack(
    "data of a deletion with padding too much",
    padded_notice,
    act=changes,
    sync=gone_elsewhere(padded_notice),
    **both,
)
