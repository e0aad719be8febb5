"""The chapter of wrapping: keyrings, descriptors with a sealed auth key, and what a device remembers of them."""

from __future__ import annotations

from strongroom.client.format import box, derive, encoding, padding, recovery
from strongroom.client.format.derive import Descriptor
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import AccountKey
from strongroom.client.format.padding import Content
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.operations import rollback
from tests.vectors.book import (
    ACCOUNT_KEY,
    EMAIL,
    OTHER_ACCOUNT_KEY,
    OTHER_VAULT,
    VAULT,
    Book,
    Stream,
    flipped_text,
    spellings,
)
from tests.vectors.operations import Given

MASTER = bytes(range(64, 96))
OTHER_MASTER = bytes(range(96, 128))
PARTS = {"format": 0, "kind": 1, "account": 2, "version": 18, "password": 26, "recovery": 138, "body": 250}


class Scene:
    """An account with a recovery key and two vaults, in four versions of its keyring."""

    def __init__(self) -> None:
        random = Stream("wrapping")
        self.random = random
        self.keys = AccountKey.of(bytes.fromhex(ACCOUNT_KEY))
        self.password = derive.split(MASTER)
        self.recovery = RecoveryKey(random(20))
        plain = Descriptor.new(random)
        self.descriptor = recovery.seal_auth(self.recovery.auth(), EMAIL, plain, self.password, random)
        self.rings = [Keyring.new(self.keys, self.password, self.descriptor, random)]
        self.rings.append(self.rings[-1].with_recovery(self.recovery, random))
        self.rings.append(self.rings[-1].with_vault(VAULT, "personal", sealed=True))
        self.rings.append(self.rings[-1].with_vault(OTHER_VAULT, "Wörk", sealed=False))
        self.texts = [ring.sealed(random) for ring in self.rings]


def wrapping() -> Book:
    """Keyrings, good and bad."""
    book = Book("Keyrings and descriptors: wrapped keys that open in one way, for one account, in one piece.")
    scene = Scene()
    newest = scene.texts[-1]
    by_password = {"wrap": scene.password.wrap.hex(), "descriptor": scene.descriptor.spelled()}
    by_recovery = {"recoveryKey": scene.recovery.printed()}
    by_key = {"accountKey": ACCOUNT_KEY}
    for version, text in enumerate(scene.texts, 1):
        book.good(f"version {version} opens with the password", "open-keyring", {**by_password, "keyring": text})
    book.good("it opens with the recovery key", "recover-keyring", {**by_recovery, "keyring": newest})
    book.good("it opens with the account key", "reopen-keyring", {**by_key, "keyring": newest})
    book.bad("without a recovery key, none opens it", "recover-keyring", {**by_recovery, "keyring": scene.texts[0]})

    def refuse(name: str, text: str) -> None:
        book.bad(f"{name} (by password)", "open-keyring", {**by_password, "keyring": text})
        book.bad(f"{name} (by account key)", "reopen-keyring", {**by_key, "keyring": text})

    size = len(encoding.from_base64(newest))
    ends = [*list(PARTS.values())[1:], size]
    for (part, start), end in zip(PARTS.items(), ends, strict=True):
        for at in sorted({start, (start + end) // 2, end - 1}):
            refuse(f"bit {at % 8} of byte {at} is turned over ({part})", flipped_text(newest, at, at % 8))
    raw = encoding.from_base64(newest)
    before = encoding.from_base64(scene.texts[-2])
    first = encoding.from_base64(scene.texts[0])
    for name, mixed in {
        "an older body under a newer head": raw[:250] + before[250:],
        "an older head over a newer body": before[:250] + raw[250:],
        "the recovery part of the first version": raw[:138] + first[138:250] + raw[250:],
        "both wrapped keys exchanged": raw[:26] + raw[138:250] + raw[26:138] + raw[250:],
        "a later version number": raw[:25] + b"\5" + raw[26:],
        "no body": raw[:250],
        "a cut body": raw[:-1],
        "a byte more": raw + b"\0",
        "nothing at all": b"",
    }.items():
        refuse(f"the server joins {name}", encoding.to_base64(mixed))
    for name, other in spellings(newest).items():
        book.bad(f"a keyring is spelled {name}", "reopen-keyring", {**by_key, "keyring": other})
    _strangers(book, scene)
    _insider(book, scene)
    _sealed_auth(book, scene)
    _remembered(book, scene)
    return book


def _strangers(book: Book, scene: Scene) -> None:
    """Another account's keys and keyrings."""
    random = Stream("strangers")
    other = AccountKey.of(bytes.fromhex(OTHER_ACCOUNT_KEY))
    their_keys = derive.split(OTHER_MASTER)
    theirs = Keyring.new(other, their_keys, scene.descriptor, random).sealed(random)
    mine: Given = {"wrap": scene.password.wrap.hex(), "descriptor": scene.descriptor.spelled()}
    raw, their_raw = encoding.from_base64(scene.texts[-1]), encoding.from_base64(theirs)
    for name, given in {
        "another account's keyring": {**mine, "keyring": theirs},
        "another password": {**mine, "wrap": their_keys.wrap.hex(), "keyring": scene.texts[-1]},
        "the auth key instead of the wrap key": {**mine, "wrap": scene.password.auth.hex(), "keyring": scene.texts[-1]},
        "another account's id over the own keys": {
            **mine,
            "keyring": encoding.to_base64(raw[:2] + their_raw[2:18] + raw[18:]),
        },
        "the own wrapped key over another's body": {
            **mine,
            "keyring": encoding.to_base64(their_raw[:26] + raw[26:138] + their_raw[138:]),
        },
        "a descriptor with another salt": {
            **mine,
            "descriptor": {**mine["descriptor"], "salt": encoding.to_base64(bytes(16))},
            "keyring": scene.texts[-1],
        },
        "a descriptor with more passes": {
            **mine,
            "descriptor": {**mine["descriptor"], "passes": 4},
            "keyring": scene.texts[-1],
        },
        "a descriptor with more memory": {
            **mine,
            "descriptor": {**mine["descriptor"], "memory": 65_537},
            "keyring": scene.texts[-1],
        },
    }.items():
        book.bad(f"the keyring meets {name}", "open-keyring", given)
    reopened = {"accountKey": OTHER_ACCOUNT_KEY, "keyring": scene.texts[-1]}
    book.bad("another account's key", "reopen-keyring", reopened)
    stranger = {"recoveryKey": RecoveryKey(bytes(20)).printed(), "keyring": scene.texts[-1]}
    book.bad("another recovery key", "recover-keyring", stranger)
    joined = encoding.to_base64(raw[:138] + random(112) + raw[250:])
    book.bad(
        "a recovery part that is noise", "recover-keyring", {"recoveryKey": scene.recovery.printed(), "keyring": joined}
    )


def _insider(book: Book, scene: Scene) -> None:
    """Bodies that somebody with the account key made, against the format."""
    entry = '{"uid":"%s","name":"%s","sealed":false}'
    a, b = entry % (VAULT, "a"), entry % (OTHER_VAULT, "b")
    bodies = {
        "not JSON": "{",
        "a list": "[]",
        "nothing": "{}",
        "no vaults": '{"recovery":null}',
        "an unknown member": '{"recovery":null,"vaults":[],"more":1}',
        "a vault with an unknown member": f'{{"recovery":null,"vaults":[{a[:-1]},"x":1}}]}}',
        "a vault twice": f'{{"recovery":null,"vaults":[{a},{a}]}}',
        "a name twice": f'{{"recovery":null,"vaults":[{a},{entry % (OTHER_VAULT, "a")}]}}',
        "vaults out of order": f'{{"recovery":null,"vaults":[{b},{a}]}}',
        "a uid in capitals": f'{{"recovery":null,"vaults":[{entry % (VAULT.upper(), "a")}]}}',
        "an empty name": f'{{"recovery":null,"vaults":[{entry % (VAULT, "")}]}}',
        "a control character in a name": f'{{"recovery":null,"vaults":[{entry % (VAULT, chr(92) + "u0007")}]}}',
        "a name that is no text": f'{{"recovery":null,"vaults":[{a}]}}'.replace('"a"', "1"),
        "a recovery key that is too short": '{"recovery":"AAAA","vaults":[]}',
        "a recovery key that is no base64": '{"recovery":"!","vaults":[]}',
    }
    head = encoding.from_base64(scene.texts[-1])[:250]
    for name, body in bodies.items():
        text = _ring(scene, head, Content(padding.JSON, body.encode()))
        book.bad(
            f"a key holder wrote a directory with {name}",
            "reopen-keyring",
            {"accountKey": ACCOUNT_KEY, "keyring": text},
        )
    good = Content(padding.BYTES, b'{"recovery":null,"vaults":[]}')
    given = {"accountKey": ACCOUNT_KEY, "keyring": _ring(scene, head, good)}
    book.bad("a key holder wrote a directory as bytes", "reopen-keyring", given)
    zero = head[:18] + bytes(8) + head[26:]
    empty = Content(padding.JSON, b'{"recovery":null,"vaults":[]}')
    given = {"accountKey": ACCOUNT_KEY, "keyring": _ring(scene, zero, empty)}
    book.bad("a key holder wrote version 0", "reopen-keyring", given)
    other = AccountKey.of(bytes.fromhex(OTHER_ACCOUNT_KEY)).account
    given = {"accountKey": ACCOUNT_KEY, "keyring": _ring(scene, head[:2] + other + head[18:], empty)}
    book.bad("a key holder wrote another account's id", "reopen-keyring", given)
    for name, start in {"format 0": b"\0\4", "format 2": b"\2\4", "kind 3": b"\1\3", "kind 5": b"\1\5"}.items():
        given = {"accountKey": ACCOUNT_KEY, "keyring": _ring(scene, start + head[2:], empty)}
        book.bad(f"a key holder wrote {name}", "reopen-keyring", given)


def _ring(scene: Scene, head: bytes, content: Content) -> str:
    associated = encoding.items(encoding.label("keyring"), head)
    return encoding.to_base64(head + box.seal(scene.keys.keyring(), scene.random(32), padding.pad(content), associated))


def _sealed_auth(book: Book, scene: Scene) -> None:
    """The auth key, sealed in the descriptor for the recovery key."""
    spelled = scene.descriptor.spelled()
    given: Given = {"recoveryKey": scene.recovery.printed(), "email": EMAIL, "descriptor": spelled}
    gives = book.good("the recovery key opens the auth key", "open-auth", given)
    assert gives["auth"] == scene.password.auth.hex()
    book.good("however the email is spelled", "open-auth", given | {"email": " Ada@EXAMPLE.com "})
    book.bad("for another email it does not", "open-auth", given | {"email": "eve@example.com"})
    book.bad("another recovery key does not", "open-auth", given | {"recoveryKey": RecoveryKey(bytes(20)).printed()})
    for at in (0, 31, 32, 63, 64, 95, 96, 111):
        changed = spelled | {"recovery": flipped_text(spelled["recovery"], at, at % 8)}
        book.bad(f"bit {at % 8} of byte {at} of it is turned over", "open-auth", given | {"descriptor": changed})
    changes: dict[str, Given] = {
        "another salt": {"salt": encoding.to_base64(bytes(16))},
        "more passes": {"passes": 4},
        "more memory": {"memory": 70_000},
        "noise instead": {"recovery": encoding.to_base64(scene.random(112))},
    }
    for name, change in changes.items():
        book.bad(f"the descriptor has {name}", "open-auth", given | {"descriptor": spelled | change})


def _remembered(book: Book, scene: Scene) -> None:
    """What a device remembers of an account."""

    def seen(at: int, *, memory_: int = 65_536, passes: int = 3, account: bytes | None = None) -> Given:
        now = rollback.next_account(None, scene.rings[at], scene.texts[at], scene.descriptor)
        return {
            "account": encoding.to_url(account) if account else now.account,
            "version": now.version,
            "digest": now.digest,
            "memory": memory_,
            "passes": passes,
        }

    def given(before: Given, at: int) -> Given:
        return {
            "accountKey": ACCOUNT_KEY,
            "keyring": scene.texts[at],
            "descriptor": scene.descriptor.spelled(),
            "seen": before,
        }

    book.good("a device sees the same keyring again", "remember-account", given(seen(3), 3))
    book.good("a device sees a newer keyring", "remember-account", given(seen(2), 3))
    book.bad("a device is shown an older keyring", "remember-account", given(seen(3), 2), "rolled_back")
    book.bad("a device is shown the first keyring", "remember-account", given(seen(3), 0), "rolled_back")
    again = scene.rings[3].sealed(scene.random)
    book.bad(
        "a device is shown another keyring of one version", "remember-account", given(seen(3), 3) | {"keyring": again}
    )
    other = AccountKey.of(bytes.fromhex(OTHER_ACCOUNT_KEY)).account
    book.bad("a device has seen another account", "remember-account", given(seen(3, account=other), 3))
    for name, before in {"more memory": seen(3, memory_=131_072), "more passes": seen(3, passes=4)}.items():
        book.bad(f"a device has seen {name}", "remember-account", given(before, 3), "weak_parameters")
