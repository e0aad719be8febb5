"""The chapter of passkeys: what follows from a PRF output, and keyrings that passkeys open."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec

from strongroom.client.format import derive, encoding, keyring, keyring_body, public_box
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.encoding import items, label
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.passkey import PasskeySecret
from strongroom.client.format.public_box import KeyPair
from tests.vectors.basics import LOW_ORDER, MASTER, OTHER_MASTER
from tests.vectors.book import ACCOUNT, OTHER_ACCOUNT, VAULT, Book, Stream, flipped, flipped_text
from tests.vectors.operations import Given
from tests.vectors.rings import BODY, PARTS, START, _ring, refusal_of_keyring

HOST = "vault.example.com"
OTHER_HOST = "vault.example.org"


def _given(secret: PasskeySecret) -> Given:
    passkey = secret.passkey
    return {"prf": secret.output.hex(), "rpId": passkey.rp_id, "credential": passkey.credential.hex()}


class Scene:
    """An account with a password and passkeys, through the versions of its keyring."""

    def __init__(self, book: Book) -> None:
        random = Stream("passkeys")
        self.book = book
        self.password = derive.split(MASTER)
        self.descriptor = Descriptor.new(random)
        self.one, self.two = (PasskeySecret.of(HOST, random(length), random(32)) for length in (32, 64))
        self.text, ring = keyring.seal(
            Keyring.new(self.password, self.descriptor, random), random, password=self.password
        )
        self.account, self.key, self.texts = ring.account, ring.key, [self.text]

    @property
    def ring(self) -> Keyring:
        return keyring.reopen(self.text, self.key)

    def change(self, title: str, /, **change: Any) -> None:
        """The next version, which the vectors hold as a writer's case."""
        given = {"accountKey": self.key.hex(), "keyring": self.text, "change": change}
        self.text = self.book.write(title, "change-keyring", given)["keyring"]
        self.texts.append(self.text)
        if change["do"] == "rotate":
            self.key = bytes.fromhex(self.book.cases[-1]["given"]["random"][3])

    def opens(self, name: str, secret: PasskeySecret) -> None:
        opened = self.book.good(name, "unlock-keyring", {**_given(secret), "keyring": self.text})
        assert opened["accountKey"] == self.key.hex()

    def refuses(self, name: str, secret: PasskeySecret | None = None, **change: Any) -> None:
        """A reader that is given this refuses it."""
        error = change.pop("error", "tampered")
        given = {**_given(secret or self.one), "keyring": self.text, **change}
        self.book.bad(name, "unlock-keyring", given, error)


def passkeys() -> Book:
    """Passkeys, good and bad."""
    book = Book(
        "Passkeys. `prf` is the output of the authenticator for the constant input, `credential` the credential id. "
        "`random` is as for keyrings; a slot draws four bytes that choose its place, and its id."
    )
    book.good("the constant input, and the salt of CTAP that follows from it", "passkey-input", {})
    _derived(book)
    scene = Scene(book)
    wrap = scene.password.wrap.hex()
    scene.refuses("a passkey opens nothing before it is added")
    scene.change("a passkey is added", do="add passkey", wrap=wrap, **_given(scene.one))
    scene.opens("it opens the keyring", scene.one)
    scene.refuses("another credential opens nothing", scene.two)
    scene.change("another passkey is added", do="add passkey", wrap=wrap, **_given(scene.two))
    scene.opens("the first opens it still", scene.one)
    scene.opens("the second opens it too", scene.two)
    scene.change("the same credential is added again", do="add passkey", wrap=wrap, **_given(scene.two))
    assert len(scene.ring.passkeys()) == 2
    scene.opens("it has one slot", scene.two)
    scene.change("a vault is entered: the slots are copied", do="add vault", uid=VAULT, name="personal", sealed=True)
    scene.opens("both passkeys open that", scene.one)
    scene.change("all keys are rotated", do="rotate", wrap=wrap)
    assert scene.ring.passkeys() == ()
    scene.refuses("no passkey opens the new generation", scene.one)
    scene.refuses("nor does the second", scene.two)
    scene.change("the first is touched", do="add passkey", wrap=wrap, **_given(scene.one))
    scene.opens("then it opens the new generation", scene.one)
    scene.change("and the second", do="add passkey", wrap=wrap, **_given(scene.two))
    scene.opens("and that does too", scene.two)
    other = derive.split(OTHER_MASTER)
    descriptor = Descriptor.new(Stream("passkeys, another password"))
    by_other = {"wrap": other.wrap.hex(), "descriptor": descriptor.spelled()}
    scene.change("another password", do="password", **by_other)
    scene.opens("passkeys outlive a change of password", scene.one)
    scene.change("a recovery key is set", do="recovery", secret="07" * 20, **by_other)
    scene.opens("and a new recovery key", scene.two)
    _mistakes(book, scene)
    _server(book, scene)
    _damage(scene)
    _insider(book, scene)
    before = scene.text
    two = {"rpId": HOST, "credential": scene.two.passkey.credential.hex()}
    scene.change("a passkey is removed", do="remove passkey", wrap=by_other["wrap"], **two)
    scene.refuses("then it opens nothing", scene.two)
    scene.opens("the other one does", scene.one)
    _joined(scene, before)
    _full(scene, by_other)
    return book


def _derived(book: Book) -> None:
    """What follows from an output, for other items each time."""
    random = Stream("passkey outputs")
    given = {"account": ACCOUNT, "prf": random(32).hex(), "rpId": HOST, "credential": random(32).hex()}
    wraps = set()
    for name, change in {
        "a passkey": {},
        "the same in another account": {"account": OTHER_ACCOUNT},
        "the same with another rp id": {"rpId": OTHER_HOST},
        "the same with a local name": {"rpId": "localhost"},
        "the same with another credential": {"credential": random(16).hex()},
        "the shortest credential id": {"credential": "00"},
        "the longest credential id": {"credential": random(1023).hex()},
        "the longest rp id": {"rpId": "a" * 61 + ".b" * 96},
        "another output": {"prf": random(32).hex()},
        "an output of zeros": {"prf": "00" * 32},
    }.items():
        wraps.add(book.good(f"the keys of {name}", "passkey-keys", {**given, **change})["wrap"])
    assert len(wraps) == 10
    for name, change in _wrong().items():
        book.bad(name, "passkey-keys", {**given, **change}, "validation_error")


def _wrong() -> dict[str, Given]:
    """What no passkey has."""
    return {
        "an empty output": {"prf": ""},
        "an output of 31 bytes": {"prf": "01" * 31},
        "an output of 33 bytes": {"prf": "01" * 33},
        "two outputs": {"prf": "01" * 64},
        "an empty credential id": {"credential": ""},
        "a credential id of 1,024 bytes": {"credential": "01" * 1024},
        "an empty rp id": {"rpId": ""},
        "an rp id of 254 characters": {"rpId": "a" * 254},
        "an rp id in capitals": {"rpId": "Vault.example.com"},
        "an rp id with a port": {"rpId": f"{HOST}:443"},
        "an origin as rp id": {"rpId": f"https://{HOST}"},
        "an rp id with a space": {"rpId": f"{HOST} "},
        "an rp id with a line feed": {"rpId": f"{HOST}\n"},
        "an rp id with a letter from outside ASCII": {"rpId": "vält.example.com"},
        "an rp id with a digit from outside ASCII": {"rpId": "vault\u0661.example.com"},
        "an rp id with a zero byte": {"rpId": f"{HOST}\0"},
    }


def _mistakes(book: Book, scene: Scene) -> None:
    """What a program gives that cannot be a passkey."""
    for name, change in _wrong().items():
        scene.refuses(f"a reader is given {name}", error="validation_error", **change)
        given = {"accountKey": scene.key.hex(), "keyring": scene.text, "random": []}
        added = {"do": "add passkey", "wrap": scene.password.wrap.hex(), **_given(scene.one), **change}
        book.bad(f"a writer is given {name}", "change-keyring", given | {"change": added}, "validation_error")


def _server(book: Book, scene: Scene) -> None:
    """What a server may try with a passkey that was not made for this."""
    one, two, random = scene.one, scene.two, Stream("passkey strangers")
    credential = one.passkey.credential
    scene.refuses("the rp id of another server", rpId=OTHER_HOST)
    scene.refuses("the domain above the rp id", rpId="example.com")
    scene.refuses("a host below the rp id", rpId=f"a.{HOST}")
    scene.refuses("the rp id with a dot at its end", rpId=f"{HOST}.")
    scene.refuses("the output of another credential", prf=two.output.hex())
    scene.refuses("the id of another credential", credential=two.passkey.credential.hex())
    scene.refuses("a credential id that is cut", credential=credential[:-1].hex())
    scene.refuses("a credential id that is prolonged", credential=(credential + b"\0").hex())
    scene.refuses(
        "a character moves from the rp id to the credential", rpId=HOST[:-1], credential=(b"m" + credential).hex()
    )
    scene.refuses("another output", prf=random(32).hex())
    scene.refuses("an output of zeros", prf="00" * 32)
    for at in (0, 15, 31):
        scene.refuses(f"an output with another bit in byte {at}", prf=flipped(one.output, at).hex())
    theirs = Keyring.new(scene.password, scene.descriptor, random)
    stranger, _ = keyring.seal(theirs, random, password=scene.password)
    scene.refuses("the keyring of another account", keyring=stranger)
    added, _ = keyring.seal(theirs.with_passkey(one, random), random, password=scene.password)
    raw, their_raw = encoding.from_base64(scene.text), encoding.from_base64(added)
    book.good("the same passkey in another account", "unlock-keyring", {**_given(one), "keyring": added})
    for name, mixed in {
        "another account's id over the own keyring": raw[:2] + their_raw[2:18] + raw[18:],
        "the own account's id over another's keyring": their_raw[:2] + raw[2:18] + their_raw[18:],
        "another account's slots": raw[:START] + their_raw[START:BODY] + raw[BODY:],
        "another account's body": raw[:BODY] + their_raw[BODY:],
    }.items():
        scene.refuses(f"the server joins {name}", keyring=encoding.to_base64(mixed))
    # A server that knows the public key of the slot, and makes an account key of its own.
    slot = next(slot for slot in scene.ring.slots if slot.associated == one.passkey.slot(scene.account))
    payload = encoding.generation_bytes(scene.ring.generation) + random(32)
    made = public_box.seal(KeyPair.of(one.wrap(scene.account)).public, payload, slot.associated, random)
    start = START + 148 * slot.slot
    scene.refuses(
        "the server adds a slot with a key of its own",
        keyring=encoding.to_base64(raw[:start] + made + raw[start + 148 :]),
    )


def _damage(scene: Scene) -> None:
    place = next(slot.slot for slot in scene.ring.slots if slot.associated == scene.one.passkey.slot(scene.account))
    start, raw = START + 148 * place, encoding.from_base64(scene.text)
    for at in (0, 31, 32, 63, 64, 95, 96, 131, 132, 147):
        text = flipped_text(scene.text, start + at, at % 8)
        scene.refuses(f"bit {at % 8} of byte {at} of the passkey's slot", keyring=text)
    for part, at in PARTS.items():
        error = refusal_of_keyring(flipped(raw, at))
        scene.refuses(f"a bit of the keyring's {part}", keyring=flipped_text(scene.text, at, 0), error=error)
    for at, point in enumerate(LOW_ORDER):
        text = encoding.to_base64(raw[:start] + point + raw[start + 32 :])
        scene.refuses(f"a point of low order {at} in the passkey's slot", keyring=text)
    random = Stream("passkey fillers")
    filled = raw[:start] + public_box.filler(148, random) + raw[start + 148 :]
    scene.refuses("a filler in the place of the passkey's slot", keyring=encoding.to_base64(filled))


def _insider(book: Book, scene: Scene) -> None:
    """Bodies and slots that somebody with the account key made, against the format."""
    ring, account = scene.ring, scene.account
    good = keyring_body.to_json(ring)
    passkeys_ = [at for at, slot in enumerate(ring.slots) if slot.type == "passkey"]
    host, credential = HOST.encode(), b"\7" * 16  # of no other slot: what is wrong is only what the case says
    slot = label("slot-passkey")
    bad: dict[str, bytes] = {
        "nothing": b"",
        "bytes that are no list": b"anything",
        "a list without a label": items(account, host, credential),
        "the label of a recovery key": items(label("slot-recovery"), account, host, credential),
        "no account": items(slot, host, credential),
        "another account": items(slot, bytes.fromhex(OTHER_ACCOUNT), host, credential),
        "no rp id": items(slot, account, credential),
        "an empty rp id": items(slot, account, b"", credential),
        "an rp id in capitals": items(slot, account, host.upper(), credential),
        "an rp id that is no text": items(slot, account, b"\xff\xfe", credential),
        "an rp id of 254 characters": items(slot, account, b"a" * 254, credential),
        "no credential id": items(slot, account, host),
        "an empty credential id": items(slot, account, host, b""),
        "a credential id of 1,024 bytes": items(slot, account, host, bytes(1024)),
        "a fifth item": items(slot, account, host, credential, b""),
        "a list that is cut": items(slot, account, host, credential)[:-1],
        "a list with a byte after it": items(slot, account, host, credential) + b"\0",
        "a list that is longer than it says": items(slot, account, host, credential) + bytes(3),
    }
    spoil: dict[str, Callable[[Any], object]] = {
        "no public key": lambda one: one.update(public=None),
        "a short public key": lambda one: one.update(public=encoding.to_base64(bytes(31))),
        "a type that is null": lambda one: one.update(type=None),
        "associated data that is null": lambda one: one.update(associated=None),
    }

    def refuse(name: str, body: Any) -> None:
        given = {"accountKey": ring.key.hex(), "keyring": _ring(ring, body)}
        book.bad(f"a key holder wrote a passkey's slot with {name}", "reopen-keyring", given)
        scene.refuses(f"a key holder wrote a passkey's slot with {name}", keyring=given["keyring"])

    body = copy.deepcopy(good)
    body["slots"][passkeys_[0]]["associated"] = encoding.to_base64(items(slot, account, host, credential))
    given = {"accountKey": ring.key.hex(), "keyring": _ring(ring, body)}
    book.good("a key holder wrote a passkey's slot for another credential", "reopen-keyring", given)
    for name, associated in bad.items():
        body = copy.deepcopy(good)
        body["slots"][passkeys_[0]]["associated"] = encoding.to_base64(associated)
        refuse(name, body)
    for name, change in spoil.items():
        body = copy.deepcopy(good)
        change(body["slots"][passkeys_[0]])
        refuse(name, body)
    body = copy.deepcopy(good)
    body["slots"][passkeys_[0]]["associated"] = body["slots"][passkeys_[1]]["associated"]
    refuse("the credential of another one", body)
    for generation in (ring.generation - 1, ring.generation + 1):
        payload, random = encoding.generation_bytes(generation) + ring.key, Stream(f"passkey's slot {generation}")
        slots = [public_box.filler(148, random) for _ in range(8)]
        place = ring.slots[passkeys_[0]]
        slots[place.slot] = public_box.seal(place.public or b"", payload, place.associated, random)
        text = _ring(msgspec.structs.replace(ring, sealed_slots=b"".join(slots)), good)
        opens = next(one for one in (scene.one, scene.two) if one.passkey.slot(account) == place.associated)
        scene.refuses(f"a key holder wrote a passkey's slot of generation {generation}", opens, keyring=text)


def _joined(scene: Scene, before: str) -> None:
    """A server that shows the slots of an earlier keyring."""
    newest = encoding.from_base64(scene.text)
    older = encoding.from_base64(before)
    first = encoding.from_base64(scene.texts[1])
    for name, mixed in {
        "the slots of before it was removed": newest[:START] + older[START:BODY] + newest[BODY:],
        "the head of before it was removed": older[:BODY] + newest[BODY:],
        "the body of before it was removed": newest[:BODY] + older[BODY:],
        "all of before it was removed but the number": older[:18] + newest[18:62] + older[62:],
        "the slots of before a rotation": newest[:START] + first[START:BODY] + newest[BODY:],
    }.items():
        text = encoding.to_base64(mixed)
        scene.refuses(f"the server joins {name}", scene.two, keyring=text)
        scene.refuses(f"the server joins {name}, for the other passkey", keyring=text)


def _full(scene: Scene, password: Given) -> None:
    """Eight ways in, and no more."""
    random = Stream("many passkeys")
    given = {"do": "add passkey", "wrap": password["wrap"]}
    for number in range(4, 9):
        secret = PasskeySecret.of(HOST, random(16), random(32))
        scene.change(f"the way in of number {number}", **given, **_given(secret))
        scene.opens("it opens the keyring", secret)
    assert len(scene.ring.slots) == 8
    change = {**given, **_given(PasskeySecret.of(HOST, random(16), random(32)))}
    full = {"accountKey": scene.key.hex(), "keyring": scene.text, "change": change, "random": []}
    scene.book.bad("no ninth way in", "change-keyring", full, "validation_error")
