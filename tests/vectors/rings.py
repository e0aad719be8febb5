"""The chapter of keyrings: slots, the body, changes and rotation, and what a device remembers of an account."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client.format import (
    box,
    derive,
    encoding,
    keyring,
    keyring_body,
    keyring_merge,
    padding,
    primitives,
    public_box,
)
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import keyring_key
from strongroom.client.format.padding import Content
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from tests.vectors.basics import LOW_ORDER, MASTER, OTHER_MASTER
from tests.vectors.book import (
    OTHER_ACCOUNT,
    OTHER_VAULT,
    VAULT,
    Book,
    Stream,
    damaged,
    flipped,
    flipped_text,
    refusal_of,
    spellings,
)
from tests.vectors.operations import Given

# Where each part of a keyring begins.
START, BODY = 65, 1249
PARTS = {"format": 0, "kind": 1, "account id": 2, "version": 18, "generation": 26, "previous": 30}
PARTS |= {"number of slots": 62, "size of a slot": 63}
PARTS |= {f"slot {place}": START + 148 * place for place in range(8)}
PARTS |= {"salt": BODY, "commitment": BODY + 32, "ciphertext": BODY + 64}
FIGURES = bytes((8, 0, 148))  # number and size of the slots
_KINDS = ("password", "recovery")
MAIL_VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f8"


def refusal_of_keyring(data: bytes) -> str:
    """How bytes are refused that begin as a keyring does: other slots than this client knows are `unsupported`."""
    figures = data[62:START]
    others = data[:2] == b"\2\4" and len(figures) == len(FIGURES) and figures != FIGURES
    return "unsupported" if others else refusal_of(data)


class Scene:
    """An account with a password and a recovery key, through the versions of its keyring."""

    def __init__(self, book: Book) -> None:
        random = Stream("keyrings")
        self.book = book
        self.password = derive.split(MASTER)
        self.new_password = derive.split(OTHER_MASTER)
        self.recovery = RecoveryKey(random(20))
        self.descriptors = [Descriptor.new(random) for _ in range(3)]
        ring = Keyring.new(self.password, self.descriptors[0], random)
        self.account, self.key = ring.account, ring.key
        self.texts = [
            book.write(
                "a new account's keyring is sealed",
                "seal-keyring",
                {
                    "accountKey": ring.key.hex(),
                    "account": ring.account.hex(),
                    "version": 1,
                    "generation": 1,
                    "previous": "00" * 32,
                    "slots": "",
                    "wrap": self.password.wrap.hex(),
                    "body": keyring_body.to_json(ring),
                },
            )["keyring"]
        ]
        self.keys = [ring.key]
        self.owners = [(self.password, self.descriptors[0])]

    @property
    def newest(self) -> Keyring:
        return keyring.reopen(self.texts[-1], self.keys[-1])

    def change(self, title: str, /, **change: Any) -> str:
        """The next version, which the vectors hold as a writer's case."""
        given = {"accountKey": self.keys[-1].hex(), "keyring": self.texts[-1], "change": change}
        text: str = self.book.write(title, "change-keyring", given)["keyring"]
        key = self.keys[-1]
        if change["do"] == "rotate":
            key = bytes.fromhex(self.book.cases[-1]["given"]["random"][3])
        if change["do"] == "password":
            self.owners.append((self.new_password, self.descriptors[2]))
        elif change["do"] == "recovery":
            self.owners.append((self.password, self.descriptors[1]))
        else:
            self.owners.append(self.owners[-1])
        self.texts.append(text)
        self.keys.append(key)
        return text


def _spelled(password: derive.PasswordKeys, descriptor: Descriptor) -> Given:
    return {"wrap": password.wrap.hex(), "descriptor": descriptor.spelled()}


def keyrings() -> Book:
    """Keyrings, good and bad."""
    book = Book(
        "Keyrings. `random` is what each draw gives, in order. First what the change draws: a vault's key; of a "
        "rotation, the Ed25519 seed, the X25519 key, the account key and the vaults' keys; of a slot, four bytes that "
        "modulo the number of free places choose one, and its id (a recovery key's before the password's). Then, where "
        "slots are made anew, each from 0 to 7; then the salt of the body."
    )
    scene = Scene(book)
    scene.change("a vault is entered", do="add vault", uid=VAULT, name="personal", sealed=True)
    scene.change("it was made on the server", do="made", uid=VAULT)
    with_recovery = {"secret": scene.recovery.secret.hex(), **_spelled(scene.password, scene.descriptors[1])}
    scene.change("a recovery key is set, and the password with it", do="recovery", **with_recovery)
    scene.change("another vault", do="add vault", uid=OTHER_VAULT.upper(), name="Wörk", sealed=False)
    scene.change("a vault with another uid", do="add vault", uid="\U0001f5c4 \uff5e", name="Archiv", sealed=False)
    scene.change("a vault that sorts before it", do="add vault", uid="\uff5e", name="~", sealed=False)
    scene.change("a vault gets another name", do="rename", uid=OTHER_VAULT, name="Arbeit")
    scene.change("a vault's key is rotated", do="rotate vault", uid=VAULT)
    scene.change("a vault is deleted", do="delete vault", uid=OTHER_VAULT)
    scene.change("all keys are rotated", do="rotate", wrap=scene.password.wrap.hex())
    scene.change("and again", do="rotate", wrap=scene.password.wrap.hex())
    changed = _spelled(scene.new_password, scene.descriptors[2])
    scene.change("another password", do="password", **changed)
    scene.change("a vault after the rotations", do="add vault", uid=MAIL_VAULT, name="mail", sealed=True)
    scene.change("a floor rises, when all is encrypted again", do="floor", uid=VAULT, floor=3)
    gone = scene.newest
    assert [one.uid for one in gone.gone] == [OTHER_VAULT]
    assert gone.generation == 3
    _readable(book, scene)
    _unknown(book, scene)
    _without_recovery(book, scene)
    _damage(book, scene)
    _joins(book, scene)
    _merges(book, scene)
    _strangers(book, scene)
    _insider(book, scene)
    _slots(book, scene)
    _remembered(book, scene)
    return book


def _readable(book: Book, scene: Scene) -> None:
    by_recovery = {"recoveryKey": scene.recovery.printed()}
    for version, text in enumerate(scene.texts, 1):
        given = {**_spelled(*scene.owners[version - 1]), "keyring": text}
        opened = book.good(f"version {version} opens with the password", "open-keyring", given)
        assert opened["version"] == version
        if version >= 4:
            again = book.good(
                f"version {version} opens with the recovery key", "recover-keyring", {**by_recovery, "keyring": text}
            )
            assert again == opened
        else:
            book.bad("without a recovery key, none opens it", "recover-keyring", {**by_recovery, "keyring": text})
        key = {"accountKey": scene.keys[version - 1].hex(), "keyring": text}
        assert book.good(f"version {version} opens with the account key", "reopen-keyring", key) == opened
        if scene.keys[version - 1] != scene.keys[-1]:
            older = {"accountKey": scene.keys[version - 1].hex(), "keyring": scene.texts[-1]}
            book.bad("an account key of before a rotation opens nothing newer", "reopen-keyring", older)
    old = {**_spelled(*scene.owners[0]), "keyring": scene.texts[-1]}
    book.bad("the password of before opens nothing newer", "open-keyring", old)


def _unknown(book: Book, scene: Scene) -> None:
    """Members that a reader does not know are kept, unless it has to understand them."""
    ring = scene.newest
    body: Any = json.loads(json.dumps(keyring_body.to_json(ring)))
    body["slots"][0] = {"since": 5, **body["slots"][0]}
    body["slots"].append(
        {
            "slot": next(at for at in range(8) if at not in {slot.slot for slot in ring.slots}),
            "type": "device",
            "id": encoding.to_base64(b"\1" * 16),
            "public": encoding.to_base64(KeyPair.of(b"\2" * 32).public),
            "associated": encoding.to_base64(b"anything"),
        }
    )
    body["slots"].sort(key=lambda slot: slot["slot"])
    body["identity"][0] = {"card": None, **body["identity"][0]}
    body["storage"][0] = {"where": "here", **body["storage"][0]}
    body["vaults"][0] = {"colour": {"r": 0.5, "é": ["\u2028", "", True]}, **body["vaults"][0]}
    body["vaults"][0]["keys"][0] = {"retired": False, **body["vaults"][0]["keys"][0]}
    body["gone"][0] = {"why": "\u0001", **body["gone"][0]}
    body = {"heads": {"a": [1, 2.5, -3, 9007199254740991]}, "__proto__": "kept", **body}
    body["must"] = ["vaults", "gone", "vaults", "floor"]
    body["past"].append(encoding.to_base64(ring.digest[:16]))
    unsealed = _given(ring, body, scene.texts[-1], scene.new_password)
    text = book.write("a keyring with members of a later edition", "seal-keyring", unsealed)
    given = {"accountKey": ring.key.hex(), "keyring": text["keyring"]}
    opened = book.good("a reader of this edition opens it", "reopen-keyring", given)
    assert opened["body"] == body
    for name, change in {
        "changes it": {"do": "made", "uid": MAIL_VAULT},
        "rotates it": {"do": "rotate", "wrap": scene.new_password.wrap.hex()},
        "sets a password in it": {"do": "password", **_spelled(scene.password, scene.descriptors[0])},
    }.items():
        written = book.write(f"a reader of this edition {name}", "change-keyring", given | {"change": change})
        key = book.cases[-1]["given"]["random"][3] if change["do"] == "rotate" else given["accountKey"]
        opened = book.good("what it does not know is kept", "reopen-keyring", {"accountKey": key, **written})
        assert opened["body"]["heads"] == body["heads"]
        assert opened["body"]["vaults"][0]["colour"] == body["vaults"][0]["colour"]
        assert opened["body"]["vaults"][0]["keys"][0]["retired"] is False
        slot = next(slot for slot in opened["body"]["slots"] if slot["type"] == "device")
        raw = encoding.from_base64(written["keyring"])
        start = START + 148 * slot["slot"]
        sealed = {"secret": "02" * 32, "associated": b"anything".hex(), "slot": raw[start : start + 148].hex()}
        if change["do"] != "made":
            assert book.good("a slot of an unknown type is sealed anew", "open-slot", sealed)["accountKey"] == key
    for name, must in {"one": ["heads"], "several": ["vaults", "quorum"]}.items():
        odd = _ring(ring, {**body, "must": must})
        refused = {"accountKey": ring.key.hex(), "keyring": odd}
        book.bad(f"a keyring with {name} that must be understood", "reopen-keyring", refused, "unsupported")
    odd = _ring(ring, {"must": ["another"], "vaults": {"here": "they are an object"}})
    refused = {"accountKey": ring.key.hex(), "keyring": odd}
    book.bad("what must be understood is looked at first", "reopen-keyring", refused, "unsupported")


def _merges(book: Book, scene: Scene) -> None:
    """Two keyrings that were made without knowing of each other, after a restore."""
    ring, random = scene.newest, Stream("merges")
    given = {"accountKey": ring.key.hex()}
    taken = ring.vaults[0].uid
    new = ["0192f0c1-2b3c-7d4e-8f90-a1b2c3d40001", "0192f0c1-2b3c-7d4e-8f90-a1b2c3d40002"]

    def after(*changes: Callable[[Keyring], Keyring]) -> Keyring:
        made = ring
        for change in changes:
            made = keyring.seal(change(made), random)[1]
        return made

    def add(uid: str, name: str) -> Callable[[Keyring], Keyring]:
        return lambda one: one.with_vault(uid, name, sealed=True, random=random)

    def text(made: Keyring) -> str:
        sealed, again = keyring.seal(msgspec.structs.replace(made, digest=b""), random)
        return sealed if again.version == made.version else ""

    changes: dict[str, tuple[list[Callable[[Keyring], Keyring]], list[Callable[[Keyring], Keyring]]]] = {
        "a vault each": ([add(new[0], "one")], [add(new[1], "two")]),
        "a vault each of one name": ([add(new[0], "same")], [add(new[1], "same")]),
        "one went on for longer": (
            [add(new[0], "one"), lambda one: one.with_entry(new[0], made=True)],
            [add(new[1], "b")],
        ),
        "a deletion and a rename": (
            [lambda one: one.without_vault(taken)],
            [lambda one: one.with_entry(taken, name="renamed")],
        ),
        "two names of one vault": (
            [lambda one: one.with_entry(taken, name="Zebra")],
            [lambda one: one.with_entry(taken, name="zebra \U0001f993")],
        ),
        "a rotated vault and another one": (
            [lambda one: one.with_rotated_vault(taken, random)],
            [add(new[1], "two")],
        ),
        "a floor that rose and another name": (
            [lambda one: one.with_rotated_vault(taken, random), lambda one: _raised(one, taken)],
            [lambda one: one.with_entry(taken, name="Zebra")],
        ),
    }
    for name, (mine, theirs) in changes.items():
        one, other = text(after(*mine)), text(after(*theirs))
        made = book.good(f"{name}, merged", "merge-keyrings", given | {"keyrings": [one, other]})
        assert book.good(f"{name}, the other way round", "merge-keyrings", given | {"keyrings": [other, one]}) == made
        assert made["body"]["merged"]
        assert "merged" in made["body"]["must"]
    merged, _ = _sealed_merge(after(add(new[0], "one")), after(add(new[1], "two")), random)
    again = book.good("a merged keyring opens", "reopen-keyring", given | {"keyring": merged})
    kept = {"keyring": merged, "change": {"do": "made", "uid": MAIL_VAULT}}
    book.write("a change of a merged keyring keeps what it names", "change-keyring", given | kept)
    third = text(after(add(new[1].replace("40002", "40003"), "third")))
    book.good("a third branch", "merge-keyrings", given | {"keyrings": [merged, third]})
    turned = [text(after(lambda one: one.with_rotated_vault(taken, random))) for _ in range(2)]
    book.bad("two keys of one generation", "merge-keyrings", given | {"keyrings": turned})
    before = scene.texts[-4]
    assert keyring.slots_of(before) != keyring.slots_of(scene.texts[-1])
    book.bad("other slots", "merge-keyrings", given | {"keyrings": [before, scene.texts[-1]]})
    branches = [
        keyring.seal(change(keyring.reopen(merged, ring.key)), random)[1]
        for change in (add(f"{new[0]}4", "four"), add(f"{new[0]}5", "five"))
    ]
    _unknown_merges(book, *branches)
    odd = {
        "that is named twice": [*again["body"]["merged"], again["body"]["merged"][0]],
        "of its own version": [{"version": again["version"], "digest": encoding.to_base64(bytes(16))}],
        "with a short digest": [{"version": 2, "digest": encoding.to_base64(bytes(15))}],
        "without a digest": [{"version": 2}],
        "of version 0": [{"version": 0, "digest": encoding.to_base64(bytes(16))}],
        "that is in its past": [{"version": again["version"] - 1, "digest": again["body"]["past"][-1]}],
        "that is a text": ["no"],
    }
    opened = keyring.reopen(merged, ring.key)
    for name, value in odd.items():
        body = {**again["body"], "merged": value}
        book.bad(f"a merged keyring {name}", "reopen-keyring", given | {"keyring": _ring(opened, body)})
    body = {**again["body"], "must": []}
    book.bad("merged keyrings that need not be understood", "reopen-keyring", given | {"keyring": _ring(opened, body)})


def _raised(ring: Keyring, uid: str) -> Keyring:
    """The keyring with the floor of a vault at its newest generation."""
    entry = ring.entry(uid)
    assert entry is not None
    raised = ring.with_floors({uid: entry.keys[-1][0]})
    assert raised is not None
    return raised


def _unknown_merges(book: Book, *branches: Keyring) -> None:
    """Members that a reader does not know, in two keyrings that are merged."""
    bodies = [json.loads(json.dumps(keyring_body.to_json(one))) for one in branches]
    given = {"accountKey": branches[0].key.hex()}

    def merging(mine: Given, theirs: Given) -> Given:
        return given | {"keyrings": [_ring(branches[0], mine), _ring(branches[1], theirs)]}

    def places(body: Any) -> list[Any]:
        vault = next(one for one in body["vaults"] if one["uid"] == MAIL_VAULT)
        found = [body, vault, vault["keys"][0], body["gone"][0], *body["merged"][:1]]
        return [*found, body["slots"][0], body["identity"][0], body["storage"][0]]

    shared, fixed = len(places(bodies[0])) - 3, len(places(bodies[0]))
    for at in range(shared):
        mine, theirs = (json.loads(json.dumps(body)) for body in bodies)
        places(mine)[at].update({"x": [1, {"a": True}], "both": {"a": 1, "b": [None, 2.5]}})
        places(theirs)[at].update({"y": "\u2028", "both": {"b": [None, 2.5], "a": 1}})
        made = book.good("members that a reader does not know, merged", "merge-keyrings", merging(mine, theirs))
        assert {"x", "y", "both"} <= set(places(made["body"])[at])
    for at in range(fixed):
        for one, other in ((True, 1), (1, 2), ([], {}), ({"__proto__": {}}, {}), ("", None))[: 1 if at else None]:
            mine, theirs = (json.loads(json.dumps(body)) for body in bodies)
            places(mine)[at]["x"], places(theirs)[at]["x"] = one, other
            book.bad("members that a reader does not know, and that differ", "merge-keyrings", merging(mine, theirs))


def _sealed_merge(one: Keyring, other: Keyring, random: Any) -> tuple[str, Keyring]:
    return keyring.seal(keyring_merge.merge(one, other), random)


def _without_recovery(book: Book, scene: Scene) -> None:
    change = {"do": "no recovery", **_spelled(scene.password, scene.descriptors[0])}
    given = {"accountKey": scene.keys[-1].hex(), "keyring": scene.texts[-1], "change": change}
    text = book.write("the recovery key is removed", "change-keyring", given)["keyring"]
    book.bad("then it opens nothing", "recover-keyring", {"recoveryKey": scene.recovery.printed(), "keyring": text})
    other = RecoveryKey(b"\5" * 20)
    renewed = {"do": "recovery", "secret": other.secret.hex(), **_spelled(scene.password, scene.descriptors[0])}
    text = book.write("the recovery key is replaced", "change-keyring", given | {"change": renewed})["keyring"]
    book.good("the new one opens it", "recover-keyring", {"recoveryKey": other.printed(), "keyring": text})
    old = {"recoveryKey": scene.recovery.printed(), "keyring": text}
    book.bad("the replaced one does not", "recover-keyring", old)


def _given(ring: Keyring, body: Given, before: str, password: derive.PasswordKeys) -> Given:
    """What a writer is given for a keyring after this one."""
    return {
        "accountKey": ring.key.hex(),
        "account": ring.account.hex(),
        "version": ring.version + 1,
        "generation": ring.generation,
        "previous": keyring.digest_of(before).hex(),
        "slots": "",
        "wrap": password.wrap.hex(),
        "body": body,
    }


def _damage(book: Book, scene: Scene) -> None:
    first = encoding.from_base64(scene.texts[0])
    by_first = {"accountKey": scene.keys[0].hex()}
    for name, other in damaged(first, PARTS | {"tag": len(first) - 16}):
        given = {**by_first, "keyring": encoding.to_base64(other)}
        book.bad(f"a keyring: {name}", "reopen-keyring", given, refusal_of_keyring(other))
    for text in ("AQ==", "Aw==", encoding.to_base64(b"\3" + bytes(40)), encoding.to_base64(b"\x01" + first[1:])):
        book.bad("a keyring of another format", "reopen-keyring", {**by_first, "keyring": text}, "unsupported")
    newest = scene.texts[-1]
    raw = encoding.from_base64(newest)
    by_key = {"accountKey": scene.keys[-1].hex()}
    by_password = _spelled(*scene.owners[-1])
    for at in (0, 1, 2, 17, 18, 25, 26, 29, 30, 61, 62, 63, 64, BODY, 1300, len(raw) - 1):
        spoilt = {"keyring": flipped_text(newest, at, at % 8)}
        error = refusal_of_keyring(flipped(raw, at, at % 8))
        book.bad(f"bit {at % 8} of byte {at}", "open-keyring", {**by_password, **spoilt}, error)
        by_print = {"recoveryKey": scene.recovery.printed(), **spoilt}
        book.bad(f"bit {at % 8} of byte {at}", "recover-keyring", by_print, error)
    used = {slot.type: START + 148 * slot.slot for slot in scene.newest.slots}
    for at in (0, 31, 32, 64, 96, 131, 147):
        spoilt = {"keyring": flipped_text(newest, used["password"] + at, at % 8)}
        book.bad(f"bit {at % 8} of byte {at} of the password's slot", "open-keyring", {**by_password, **spoilt})
        spoilt = {"keyring": flipped_text(newest, used["recovery"] + at, at % 8)}
        by_print = {"recoveryKey": scene.recovery.printed(), **spoilt}
        book.bad(f"bit {at % 8} of byte {at} of the recovery key's slot", "recover-keyring", by_print)
    for name, text in spellings(newest).items():
        book.bad(f"a keyring is spelled {name}", "reopen-keyring", {**by_key, "keyring": text})
    long = {**by_key, "keyring": "A" * 262_148}
    book.bad("a keyring of too many characters", "reopen-keyring", long)


def _joins(book: Book, scene: Scene) -> None:
    """Parts of two keyrings, joined by a server."""
    newest, before, first = (encoding.from_base64(scene.texts[at]) for at in (-1, -2, 0))
    rotated, unrotated = (encoding.from_base64(scene.texts[at]) for at in (10, 9))
    used = {slot.type: START + 148 * slot.slot for slot in scene.newest.slots}
    place, other = used["password"], used["recovery"]
    free = next(start for start in PARTS.values() if start >= START and start not in {place, other})
    slot = newest[place : place + 148]
    order = newest[START:BODY]
    by_password = _spelled(*scene.owners[-1])
    for name, mixed in {
        "an older body under a newer head": newest[:BODY] + before[BODY:],
        "an older head over a newer body": before[:BODY] + newest[BODY:],
        "the slots of the first version": newest[:START] + first[START:BODY] + newest[BODY:],
        "the slots in another order": newest[:START] + order[148:] + order[:148] + newest[BODY:],
        "the password's slot in two places": newest[:free] + slot + newest[free + 148 :],
        "the password's slot over the recovery key's": newest[:other] + slot + newest[other + 148 :],
        "another previous": newest[:30] + before[30:62] + newest[62:],
        "no previous": newest[:30] + bytes(32) + newest[62:],
        "a later version number": newest[:25] + bytes([newest[25] + 1]) + newest[26:],
        "an earlier generation": newest[:29] + b"\2" + newest[30:],
        "no body": newest[:BODY],
        "a body without a tag": newest[:-16],
    }.items():
        text = encoding.to_base64(mixed)
        book.bad(f"the server joins {name}", "open-keyring", {**by_password, "keyring": text})
    owner = _spelled(*scene.owners[9])
    for name, mixed in {
        "the slots of before a rotation and the rest of after it": rotated[:START]
        + unrotated[START:BODY]
        + rotated[BODY:],
        "all of before a rotation but the number": unrotated[:18] + rotated[18:62] + unrotated[62:],
    }.items():
        text = encoding.to_base64(mixed)
        book.bad(f"the server joins {name}", "open-keyring", {**owner, "keyring": text})


def _strangers(book: Book, scene: Scene) -> None:
    """Other keys and other accounts' keyrings."""
    random = Stream("strangers")
    password, descriptor = scene.owners[-1]
    mine = _spelled(password, descriptor)
    theirs, _ = keyring.seal(Keyring.new(password, descriptor, random), random, password=password)
    text = scene.texts[-1]
    raw, their_raw = encoding.from_base64(text), encoding.from_base64(theirs)
    book.good("another account with the same password has keys of its own", "open-keyring", {**mine, "keyring": theirs})
    for name, given in {
        "another password": {**mine, "wrap": random(32).hex(), "keyring": text},
        "the auth key instead of the wrap key": {**mine, "wrap": password.auth.hex(), "keyring": text},
        "another account's id over the own keys": {
            **mine,
            "keyring": encoding.to_base64(raw[:2] + their_raw[2:18] + raw[18:]),
        },
        "the own slots over another's body": {
            **mine,
            "keyring": encoding.to_base64(their_raw[:START] + raw[START:BODY] + their_raw[BODY:]),
        },
    }.items():
        book.bad(f"the keyring meets {name}", "open-keyring", given)
    changes: dict[str, Given] = {
        "another salt": {"salt": encoding.to_base64(bytes(16))},
        "more passes": {"passes": 4},
        "more memory": {"memory": 65_537},
    }
    for name, change in changes.items():
        spelled = mine | {"descriptor": descriptor.spelled() | change}
        book.bad(f"the keyring meets a descriptor with {name}", "open-keyring", {**spelled, "keyring": text})
    other_box = descriptor.spelled() | {"recovery": encoding.to_base64(random(144))}
    spelled = mine | {"descriptor": other_box}
    book.good("the sealed auth key does not matter here", "open-keyring", {**spelled, "keyring": text})
    weak = mine | {"descriptor": descriptor.spelled() | {"passes": 1}}
    book.bad("a weak descriptor comes first", "open-keyring", {**weak, "keyring": text}, "weak_parameters")
    book.bad("another account's key", "reopen-keyring", {"accountKey": random(32).hex(), "keyring": text})
    stranger = {"recoveryKey": RecoveryKey(bytes(20)).printed(), "keyring": text}
    book.bad("another recovery key", "recover-keyring", stranger)
    typed = {"recoveryKey": "SR2-", "keyring": text}
    book.bad("a recovery key with a slip", "recover-keyring", typed, "validation_error")
    noise = encoding.to_base64(raw[:START] + b"".join(public_box.filler(148, random) for _ in range(8)) + raw[BODY:])
    book.bad("fillers in every place", "open-keyring", {**mine, "keyring": noise})


def _ring(ring: Keyring, body: Any, *, kind: int = padding.JSON, **head: Any) -> str:
    """A keyring that somebody with the account key made, whatever is in it."""
    sealed = ring.sealed_slots
    first = bytes(head.get("start", (2, 4))) + head.get("account", ring.account)
    first += head.get("version", ring.version).to_bytes(8, "big")
    first += head.get("generation", ring.generation).to_bytes(4, "big")
    whole = first + head.get("previous", ring.previous) + bytes(head.get("figures", FIGURES)) + sealed
    raw = body if isinstance(body, bytes) else msgspec.json.encode(body)
    padded = head.get("padded") or padding.pad(Content(kind, raw))
    salt = primitives.sha256(whole + raw + bytes([kind]))
    return encoding.to_base64(whole + box.seal(keyring_key(ring.key), salt, padded, keyring._whole(whole)))


def _insider(book: Book, scene: Scene) -> None:
    """Heads and bodies that somebody with the account key made, against the format."""
    ring = scene.newest
    good = keyring_body.to_json(ring)

    def refuse(name: str, text: str, error: str = "tampered") -> None:
        given = {"accountKey": ring.key.hex(), "keyring": text}
        book.bad(f"a key holder wrote {name}", "reopen-keyring", given, error)

    book.good(
        "what a key holder writes is read",
        "reopen-keyring",
        {"accountKey": ring.key.hex(), "keyring": _ring(ring, good)},
    )
    doubled = msgspec.json.encode(good)[:-1] + b',"must":[]}'
    refuse("a member twice", _ring(ring, doubled))
    spelled = msgspec.json.encode(good)
    for name, more in {
        "a member twice, once with an escape": rb'"mus\u0074":[]',
        "an unknown member twice": b'"x":1,"x":1',
        "a member twice, deep in an unknown one": b'"x":[[{"y":{"a":1,"b":2,"a":1}}]]',
        "an empty name twice": b'"":1,"":1',
        "an integer of 2^53 in an unknown member": b'"x":9007199254740992',
        "an integer of -2^53 in an unknown member": b'"x":[-9007199254740992]',
        "an integer of 30 digits in an unknown member": b'"x":{"y":1' + b"0" * 29 + b"}",
        "a number of 10^20 in an unknown member": b'"x":1e20',
        "a number of 10^300 in an unknown member": b'"x":-1e300',
        "an unknown member that is too deep": b'"x":' + b"[" * 32 + b"]" * 32,
        "an unknown member that is far too deep": b'"x":' + b"[" * 3_000 + b"]" * 3_000,
        "objects that are too deep": b'"x":' + b'{"x":' * 31 + b"{}" + b"}" * 31,
    }.items():
        refuse(name, _ring(ring, spelled[:-1] + b"," + more + b"}"))
    for name, more in {
        "names that stand twice in different objects": b'"x":[{"a":1},{"a":1,"x":{"a":1}}]',
        "a colon, a quotation mark and a backslash in a text": rb'"x":"a\":\\",":":":"',
        "the largest integers": b'"x":[9007199254740991,-9007199254740991]',
        "an integer with a fraction": b'"x":[1.0,-0.0,5e2]',
        "fractions": b'"x":[0.5,1e-9,-2.25]',
        "lists as deep as may be": b'"x":' + b"[" * 31 + b"]" * 31,
    }.items():
        given = {"accountKey": ring.key.hex(), "keyring": _ring(ring, spelled[:-1] + b"," + more + b"}")}
        book.good(f"a key holder wrote {name}", "reopen-keyring", given)
    number = f'"version":{good["gone"][0]["version"]}'.encode()
    assert spelled.count(number) == 1
    given = {"accountKey": ring.key.hex(), "keyring": _ring(ring, spelled.replace(number, number + b".0"))}
    book.good("a key holder wrote a version with a fraction of zero", "reopen-keyring", given)
    refuse("a version with a fraction", _ring(ring, spelled.replace(number, number + b".5")))
    for name, raw in {
        "no JSON": b"{",
        "a list": b"[]",
        "null": b"null",
        "nothing": b"",
        "an empty object": b"{}",
        "two objects": msgspec.json.encode(good) * 2,
        "a byte order mark": b"\xef\xbb\xbf" + msgspec.json.encode(good),
        "no UTF-8": msgspec.json.encode(good).replace(b"personal", b"\xff\xfeersonal"),
        "a lone surrogate": msgspec.json.encode(good).replace(b"personal", b"\\\\ud800".replace(b"\\\\", b"\\")),
        "a number that is not finite": msgspec.json.encode(good)[:-1] + b',"x":1e999}',
    }.items():
        refuse(name, _ring(ring, raw))
    refuse("bytes", _ring(ring, good, kind=padding.BYTES))
    refuse("no padding", _ring(ring, good, padded=padding.pad(Content(1, b"{}"))[:-1]))
    heads: dict[str, Given] = {
        "version 0": {"version": 0},
        "version 2^53": {"version": 2**53},
        "version 1 with a keyring before it": {"version": 1},
        "generation 0": {"generation": 0},
        "the next generation without its identity": {"generation": ring.generation + 1},
        "a later version with none before it": {"previous": bytes(32)},
        "another account's id": {"account": bytes.fromhex(OTHER_ACCOUNT)},
        "format 0": {"start": (0, 4)},
        "format 1": {"start": (1, 4)},
        "format 3": {"start": (3, 4)},
        "kind 3": {"start": (2, 3)},
        "kind 5": {"start": (2, 5)},
        "no slots": {"figures": (0, 0, 148)},
        "seven slots": {"figures": (7, 0, 148)},
        "nine slots": {"figures": (9, 0, 148)},
        "255 slots": {"figures": (255, 0, 148)},
        "slots of no bytes": {"figures": (8, 0, 0)},
        "slots of 147 bytes": {"figures": (8, 0, 147)},
        "slots of 404 bytes": {"figures": (8, 1, 148)},
        "slots of 1,236 bytes": {"figures": (8, 4, 212)},
        "slots of 65,535 bytes": {"figures": (8, 255, 255)},
        "nine slots, in kind 5": {"start": (2, 5), "figures": (9, 0, 148)},
        "nine slots, and version 0": {"version": 0, "figures": (9, 0, 148)},
    }
    for name, head in heads.items():
        text = _ring(ring, good, **head)
        refuse(name, text, refusal_of_keyring(encoding.from_base64(text)))
    larger = msgspec.structs.replace(ring, sealed_slots=Stream("larger slots")(8 * 1_236))
    refuse("larger slots, all there", _ring(larger, good, figures=(8, 4, 212)), "unsupported")
    whole = encoding.from_base64(scene.texts[-1])
    refuse("nothing after the figures", encoding.to_base64(whole[:START]))
    refuse("other figures, and nothing after them", encoding.to_base64(whole[:62] + b"\t\0\x94"), "unsupported")
    refuse("figures that are cut off", encoding.to_base64(whole[:62] + b"\t\0"))
    first = keyring.reopen(scene.texts[0], scene.key)
    text = _ring(first, keyring_body.to_json(first), previous=bytes([1] * 32))
    given = {"accountKey": first.key.hex(), "keyring": text}
    book.bad("a key holder wrote a first version that follows on another", "reopen-keyring", given)
    for name, change in _changes(ring).items():
        body = copy.deepcopy(good)
        change(body)
        refuse(f"a body with {name}", _ring(ring, body))
    for generation in (ring.generation - 1, ring.generation + 1):
        payload, random = encoding.generation_bytes(generation) + ring.key, Stream(f"slot {generation}")
        own = KeyPair.of(scene.owners[-1][0].wrap).public
        slots = [public_box.seal(slot.public or own, payload, slot.associated, random) for slot in ring.slots]
        fill = [public_box.filler(148, random) for _ in range(8 - len(slots))]
        changed = msgspec.structs.replace(ring, sealed_slots=b"".join([*slots, *fill]))
        text = _ring(changed, good)
        book.good("the account key alone opens it", "reopen-keyring", {"accountKey": ring.key.hex(), "keyring": text})
        given = {**_spelled(*scene.owners[-1]), "keyring": text}
        book.bad(f"a key holder wrote slots of generation {generation}", "open-keyring", given)
        by_print = {"recoveryKey": scene.recovery.printed(), "keyring": text}
        book.bad(f"a key holder wrote slots of generation {generation}", "recover-keyring", by_print)
    for member in good:
        refuse(f"a body without {member}", _ring(ring, {name: value for name, value in good.items() if name != member}))
    refuse("a lone surrogate that is spelled without three digits", _ring(ring, spelled[:-1] + b',"x":"\\udbff"}'))
    full = {**good, "past": [encoding.to_base64(bytes(16))] * (keyring_body.MOST_PAST - 1) + [good["past"][-1]]}
    refuse("version 2^53 with a past that is full", _ring(ring, full, version=2**53))
    refuse("a lone surrogate in the name of a member", _ring(ring, spelled[:-1] + b',"\\udbff":1}'))


def _changes(ring: Keyring) -> dict[str, Callable[[Given], object]]:
    """Ways to spoil the body of a keyring."""

    def put(*path: str | int, to: Any) -> Callable[[Given], object]:
        def change(body: Any) -> None:
            for step in path[:-1]:
                body = body[step]
            body[path[-1]] = to

        return change

    def drop(*path: str | int) -> Callable[[Given], object]:
        def change(body: Any) -> None:
            for step in path[:-1]:
                body = body[step]
            del body[path[-1]]

        return change

    mine, theirs = (next(at for at, slot in enumerate(ring.slots) if slot.type == kind) for kind in _KINDS)
    short, other = encoding.to_base64(bytes(31)), encoding.to_base64(bytes.fromhex(OTHER_ACCOUNT))
    return {
        "another account's id": put("account", to=other),
        "a short account id": put("account", to=encoding.to_base64(ring.account[:15])),
        "an account id that is no base64": put("account", to="!"),
        "an account id that is null": put("account", to=None),
        "slots that are an object": put("slots", to={}),
        "a slot that is a text": put("slots", 0, to="x"),
        "a slot 8": put("slots", -1, "slot", to=8),
        "a slot -1": put("slots", 0, "slot", to=-1),
        "a slot and a half": put("slots", 0, "slot", to=0.5),
        "a slot that is true": put("slots", 0, "slot", to=True),
        "slots out of order": lambda body: body["slots"].reverse(),
        "a slot twice": lambda body: body["slots"].insert(0, body["slots"][0]),
        "two slots with one id": lambda body: body["slots"][1].update(id=body["slots"][0]["id"]),
        "a slot with a short id": put("slots", 0, "id", to=short),
        "a slot with an empty type": put("slots", mine, "type", to=""),
        "a slot with a type that is a number": put("slots", 0, "type", to=1),
        "a slot with a short public key": put("slots", theirs, "public", to=short),
        "a password's slot with its public key": put("slots", mine, "public", to=encoding.to_base64(bytes(32))),
        "a password's slot without a public key's place": drop("slots", mine, "public"),
        "a recovery key's slot without its public key": put("slots", theirs, "public", to=None),
        "a slot of an unknown type without its public key": put("slots", mine, "type", to="device"),
        "a slot whose associated data is no base64": put("slots", 0, "associated", to="A"),
        "a slot without an id": drop("slots", 0, "id"),
        "a slot without associated data": drop("slots", 0, "associated"),
        "two slots for passwords": lambda body: (
            [slot.update(type="password", public=None) for slot in body["slots"]] and body.update(recovery=None)
        ),
        "two slots for recovery keys": lambda body: [
            slot.update(type="recovery", public=encoding.to_base64(bytes(32))) for slot in body["slots"]
        ],
        "no slot for its recovery key": put("slots", theirs, "type", to="other"),
        "a slot for a recovery key and no public key of it": put("recovery", to=None),
        "a short recovery key": put("recovery", to=short),
        "a recovery key that is no base64": put("recovery", to="!"),
        "a recovery key that is a number": put("recovery", to=1),
        "no identity": put("identity", to=[]),
        "identities out of order": lambda body: body["identity"].reverse(),
        "an identity twice": lambda body: body["identity"].insert(0, body["identity"][0]),
        "an identity of generation 0": put("identity", 0, "generation", to=0),
        "a later identity than the head's": put("identity", -1, "generation", to=9),
        "an identity less than the head's": drop("identity", -1),
        "an identity with a short seed": put("identity", 0, "sign", to=short),
        "an identity with a long key": put("identity", 0, "agree", to=encoding.to_base64(bytes(33))),
        "an identity without a key": drop("identity", 0, "agree"),
        "no storage seed": put("storage", to=[]),
        "no storage at all": drop("storage"),
        "storage seeds out of order": lambda body: body["storage"].reverse(),
        "a storage seed twice": lambda body: body["storage"].insert(0, body["storage"][0]),
        "a storage seed of another generation": put("storage", -1, "generation", to=9),
        "a storage seed less than identities": drop("storage", 0),
        "a short storage seed": put("storage", 0, "seed", to=short),
        "a storage seed that is a number": put("storage", 0, "seed", to=1),
        "vaults that are null": put("vaults", to=None),
        "a vault twice": lambda body: body["vaults"].insert(0, body["vaults"][0]),
        "a name twice": lambda body: body["vaults"][1].update(name=body["vaults"][0]["name"]),
        "vaults out of order": lambda body: body["vaults"].reverse(),
        "vaults in the order of UTF-16": lambda body: body["vaults"].__setitem__(
            slice(-2, None), body["vaults"][:-3:-1]
        ),
        "a uid in capitals": put("vaults", 0, "uid", to=VAULT.upper()),
        "an empty uid": put("vaults", 0, "uid", to=""),
        "a uid of 256 characters": put("vaults", 0, "uid", to="0" * 256),
        "an empty name": put("vaults", 0, "name", to=""),
        "a name of 256 characters": put("vaults", 0, "name", to="x" * 256),
        "a control character in a name": put("vaults", 0, "name", to="\u0085"),
        "a name that is a number": put("vaults", 0, "name", to=1),
        "a vault without a name": drop("vaults", 0, "name"),
        "a vault that may be sealed": put("vaults", 0, "sealed", to=None),
        "a vault that is sealed by 1": put("vaults", 0, "sealed", to=1),
        "a vault that was made by text": put("vaults", 0, "made", to="true"),
        "a vault without made": drop("vaults", 0, "made"),
        "a vault without a floor": drop("vaults", 0, "floor"),
        "a vault with a floor of 0": put("vaults", 0, "floor", to=0),
        "a vault with a floor above its newest key": put("vaults", 0, "floor", to=9),
        "a vault with a floor that is null": put("vaults", 0, "floor", to=None),
        "a vault with a floor that is true": put("vaults", 0, "floor", to=True),
        "a vault with a floor that is a text": put("vaults", 0, "floor", to="1"),
        "a vault with a floor of 1.5": put("vaults", 0, "floor", to=1.5),
        "a vault without keys": put("vaults", 0, "keys", to=[]),
        "a vault whose keys are missing": drop("vaults", 0, "keys"),
        "a vault whose keys are texts": put("vaults", 0, "keys", to=["x"]),
        "a vault's keys out of order": lambda body: body["vaults"][0]["keys"].reverse(),
        "a vault's key twice": lambda body: body["vaults"][0]["keys"].insert(0, body["vaults"][0]["keys"][0]),
        "a vault's key of generation 0": put("vaults", 0, "keys", 0, "generation", to=0),
        "a vault's key of generation 2^32": put("vaults", 0, "keys", -1, "generation", to=2**32),
        "a vault's key that is short": put("vaults", 0, "keys", 0, "key", to=short),
        "a vault's key that is missing": drop("vaults", 0, "keys", 0, "key"),
        "a vault that is gone and is not": put("gone", 0, "uid", to=VAULT),
        "a vault gone at version 0": put("gone", 0, "version", to=0),
        "a vault gone at a later version": put("gone", 0, "version", to=ring.version + 1),
        "a vault gone at version true": put("gone", 0, "version", to=True),
        "a vault gone without a version": drop("gone", 0, "version"),
        "a vault gone in capitals": put("gone", 0, "uid", to=OTHER_VAULT.upper()),
        "a vault gone twice": lambda body: body["gone"].insert(0, body["gone"][0]),
        "too many vaults gone": put("gone", to=[{"uid": f"{at:04}", "version": 1} for at in range(1001)]),
        "gone that is an object": put("gone", to={}),
        "a past that is an object": put("past", to={}),
        "a past that is null": put("past", to=None),
        "no past": put("past", to=[]),
        "a past with one too few": drop("past", 0),
        "a past with one too many": lambda body: body["past"].insert(0, body["past"][0]),
        "a past in another order": lambda body: body["past"].reverse(),
        "a past that ends in another keyring": put("past", -1, to=encoding.to_base64(bytes(16))),
        "a past with a number": put("past", 0, to=1),
        "a past with a short digest": put("past", 0, to=encoding.to_base64(bytes(15))),
        "a past with a whole digest": put("past", 0, to=encoding.to_base64(bytes(32))),
        "a past that is no base64": put("past", 0, to="!"),
        "must that is null": put("must", to=None),
        "must that is a text": put("must", to="vaults"),
        "must with a number": put("must", to=[1]),
        "a slot that is null": put("slots", 0, to=None),
        "a vault that is a list": put("vaults", 0, to=[]),
        "one slot more, of an empty type": lambda body: body["slots"].append(
            {**body["slots"][theirs], "slot": 7, "type": "", "id": encoding.to_base64(bytes(keyring_body.SLOT_ID))}
        ),
    }


def _slots(book: Book, scene: Scene) -> None:
    """A slot by itself."""
    ring = scene.newest
    raw = encoding.from_base64(scene.texts[-1])
    slot = next(slot for slot in ring.slots if slot.type == "password")
    other = next(slot for slot in ring.slots if slot.type == "recovery")
    start = START + 148 * slot.slot
    made = raw[start : start + 148]
    secret = scene.owners[-1][0].wrap
    given = {"secret": secret.hex(), "associated": slot.associated.hex()}
    book.good("the password's slot opens", "open-slot", {**given, "slot": made.hex()})
    theirs = raw[START + 148 * other.slot :][:148]
    for_recovery = {"secret": scene.recovery.wrap().hex(), "associated": other.associated.hex()}
    book.good("the recovery key's slot opens", "open-slot", {**for_recovery, "slot": theirs.hex()})

    def refuse(name: str, spoilt: bytes, **change: str) -> None:
        book.bad(f"a slot: {name}", "open-slot", {**given, **change, "slot": spoilt.hex()})

    for name, spoilt in damaged(made, {"point": 0, "salt": 32, "commitment": 64, "ciphertext": 96, "tag": 132}):
        refuse(name, spoilt)
    for at in range(2, 148, 7):
        refuse(f"bit 2 of byte {at}", flipped(made, at, 2))
    for at, point in enumerate(LOW_ORDER):
        refuse(f"a point of low order {at}", point + made[32:])
    refuse("the recovery key's", theirs)
    refuse("another's point", theirs[:32] + made[32:])
    refuse("another's box", made[:32] + theirs[32:])
    refuse("for another purpose", made, associated=other.associated.hex())
    refuse("for nothing", made, associated="")
    account = bytes.fromhex(OTHER_ACCOUNT)
    bound = scene.owners[-1][1]
    refuse("for another account", made, associated=keyring.password_slot(account, bound).hex())
    older = scene.owners[0][1]
    refuse("for an older descriptor", made, associated=keyring.password_slot(ring.account, older).hex())
    refuse("with the recovery key", made, secret=scene.recovery.wrap().hex())
    refuse("with the private key as the secret", made, secret=KeyPair.of(secret).private.hex())
    random = Stream("slots")
    for length in (147, 148, 149):
        refuse(f"a filler of {length} bytes", public_box.filler(length, random))
    for name, payload in {
        "a key without a generation": ring.key,
        "a byte more": bytes(4) + ring.key + b"\0",
        "nothing": b"",
    }.items():
        spoilt = public_box.seal(KeyPair.of(secret).public, payload, slot.associated, random)
        refuse(f"a key holder sealed {name}", spoilt)


def _remembered(book: Book, scene: Scene) -> None:
    """What a device remembers of an account."""
    ask = "remember-account"

    def given(before: Given | None, at: int, descriptor: Given | None = None) -> Given:
        return {
            "accountKey": scene.keys[at].hex(),
            "keyring": scene.texts[at],
            "descriptor": descriptor or scene.owners[at][1].spelled(),
            "seen": before,
        }

    seen = [
        book.good(f"a device sees version {at + 1} first", ask, given(None, at))["seen"]
        for at in range(len(scene.texts))
    ]
    last = len(seen) - 1
    book.good("a device sees the same keyring again", ask, given(seen[last], last))
    book.good("a device sees the next keyring", ask, given(seen[last - 1], last))
    book.good("a device sees a keyring after a rotation", ask, given(seen[9], 10))
    book.good("a device sees a much newer keyring", ask, given(seen[0], last))
    book.bad("a device is shown an older keyring", ask, given(seen[last], last - 1), "rolled_back")
    book.bad("a device is shown the first keyring", ask, given(seen[last], 0), "rolled_back")
    ring = scene.newest
    again, _ = keyring.seal(msgspec.structs.replace(ring, digest=b""), Stream("again"))
    book.bad("a device is shown another keyring of one version", ask, given(seen[last], last) | {"keyring": again})
    past = (*ring.past[:-1], b"\1" * 16)
    forked, _ = keyring.seal(
        msgspec.structs.replace(ring, previous=b"\1" * 32, past=past, digest=b""), Stream("forked")
    )
    book.bad(
        "a device is shown a keyring that follows on another", ask, given(seen[last - 1], last) | {"keyring": forked}
    )
    for name, at in {"the first": 0, "the one before the last": last - 1}.items():
        other = (*ring.past[:at], b"\2" * 16, *ring.past[at + 1 :])
        changes = {"past": other, "previous": other[-1] + bytes(16), "digest": b""}
        forked, _ = keyring.seal(msgspec.structs.replace(ring, **changes), Stream(f"forked at {at}"))
        shown = {"keyring": forked}
        book.bad(f"a device has seen {name}, which the newest does not name", ask, given(seen[at], last) | shown)
    _long_past(book, scene, given(seen[0], last))
    other = seen[last] | {"account": encoding.to_url(bytes.fromhex(OTHER_ACCOUNT))}
    book.bad("a device has seen another account", ask, given(other, last))
    for name, change in {"more memory": {"memory": 131_072}, "more passes": {"passes": 4}}.items():
        book.bad(f"a device has seen {name}", ask, given(seen[last] | change, last), "weak_parameters")
    _former(book, scene, given(seen[last], last))


def _long_past(book: Book, scene: Scene, given: Given) -> None:
    """A keyring names the hundred before it. What a device has seen before that, it cannot compare."""
    ring, random = scene.newest, Stream("long past")
    for version in (101, 102):
        past = tuple(random(16) for _ in range(100))
        previous = past[-1] + random(16)
        if version == 101:
            past = (encoding.from_url(given["seen"]["digest"])[:16], *past[1:])
        changes = {"version": version, "past": past, "previous": previous, "digest": b""}
        text, sealed = keyring.seal(msgspec.structs.replace(ring, **changes), random)
        which = "a hundred" if version == 101 else "more than a hundred"
        book.good(f"a device sees a keyring {which} after the last", "remember-account", given | {"keyring": text})
        change = {"accountKey": ring.key.hex(), "keyring": text, "change": {"do": "made", "uid": MAIL_VAULT}}
        book.write("the oldest of a hundred is dropped", "change-keyring", change)
        assert sealed.version == version


def _former(book: Book, scene: Scene, given: Given) -> None:
    """Keyrings that a server makes together with somebody who has had the keys of an earlier generation."""
    then, now = keyring.reopen(scene.texts[9], scene.keys[9]), scene.newest
    assert then.generation < now.generation
    random = Stream("former")
    past = (*now.past, now.digest[:16])
    follows = {"version": now.version + 1, "previous": now.digest, "past": past, "digest": b""}
    old, _ = keyring.seal(msgspec.structs.replace(then, **follows), random)
    book.bad(
        "a newer keyring under keys of before a rotation",
        "remember-account",
        given | {"keyring": old, "accountKey": then.key.hex()},
    )
    for name, generation in {"the same": now.generation, "the next": now.generation + 1}.items():
        identity = [
            *then.identity,
            *(
                msgspec.structs.replace(then.identity[0], generation=at, sign=random(32), agree=random(32))
                for at in range(then.generation + 1, generation + 1)
            ),
        ]
        storage = tuple(
            msgspec.structs.replace(then.storage[0], generation=one.generation, seed=random(32)) for one in identity
        )
        changes = {"key": random(32), "generation": generation, "identity": tuple(identity), "storage": storage}
        forged = msgspec.structs.replace(then, **changes, sealed_slots=b"", **follows)
        text, _ = keyring.seal(forged, random, password=scene.password)
        book.bad(
            f"keys that were made up for {name} generation",
            "remember-account",
            given | {"keyring": text, "accountKey": forged.key.hex()},
        )
