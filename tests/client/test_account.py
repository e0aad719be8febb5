"""An account's steps: registration, another password, recovery, rotation; names, tokens; nothing prints a secret."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import client
from strongroom.client.errors import Locked, RolledBack, Tampered, Unsupported, WeakParameters
from strongroom.client.format import (
    account,
    box,
    content,
    derive,
    encoding,
    keyring,
    names,
    padding,
    primitives,
    public_box,
    recovery,
    seal,
    tokens,
)
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.keyring import Keyring
from strongroom.client.format.keys import CollectionKeys, VaultKeys, keyring_key
from strongroom.client.format.public_box import KeyPair
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.operations import rollback
from strongroom.client.operations.device import Device
from strongroom.client.replica import unlock
from strongroom.client.replica.store.file import File
from strongroom.errors import Invalid, Refusal, VaultAlreadyExists
from tests.client.forged_keyrings import after

EMAIL, PASSWORD, OTHER = "ada@example.com", "correct horse battery staple", "another password"
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
OTHER_VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7"
ACCOUNT = primitives.random(16)
KEYS = VaultKeys.build(ACCOUNT, VAULT, [(1, primitives.random(32)), (2, primitives.random(32))])
MADE = account.register(EMAIL, PASSWORD)


def sealed_again(ring: Keyring) -> Keyring:
    return keyring.seal(ring, password=MADE.password)[1]


def test_a_registration_opens_again() -> None:
    """What is sent at registration is enough to log in and open the keyring on another device."""
    descriptor = Descriptor.read(MADE.descriptor.spelled())
    keys = derive.password_keys("Ada@Example.com", PASSWORD, descriptor)
    assert keys.password == MADE.password.password
    assert keyring.open_with_password(MADE.sealed, keys, descriptor) == MADE.keyring


def test_the_server_is_sent_nothing_that_opens() -> None:
    """The auth key opens nothing, and no secret stands in what is sent, in any spelling of bytes."""
    sent = f"{MADE.password.password} {MADE.descriptor.spelled()} {MADE.sealed}"
    ring = MADE.keyring
    secrets = (
        ring.key,
        MADE.password.wrap,
        keyring_key(ring.key),
        KeyPair.of(MADE.password.wrap).public,
        ring.identity[0].sign,
    )
    for secret in secrets:
        for spelled in (secret.hex(), encoding.to_base64(secret).strip("="), encoding.to_url(secret), repr(secret)):
            assert spelled not in sent
    assert PASSWORD not in sent
    guessed = derive.PasswordKeys(auth=MADE.password.auth, wrap=MADE.password.auth)
    with pytest.raises(Tampered):
        keyring.open_with_password(MADE.sealed, guessed, MADE.descriptor)


def test_another_password_wraps_the_same_key() -> None:
    """After a change of password the old one opens nothing that is stored, and every key is as before."""
    old = sealed_again(MADE.keyring.with_vault(VAULT, "personal", sealed=True))
    changed = account.change_password(old, EMAIL, OTHER, MADE.descriptor)
    assert changed.descriptor.salt != MADE.descriptor.salt
    opened = keyring.open_with_password(changed.sealed, changed.password, changed.descriptor)
    assert (opened.key, opened.vaults, opened.version) == (old.key, old.vaults, old.version + 1)
    assert (opened.previous, opened.identity) == (old.digest, old.identity)
    with pytest.raises(Tampered):
        keyring.open_with_password(changed.sealed, MADE.password, MADE.descriptor)


def test_a_change_of_password_keeps_the_work() -> None:
    """A stronger derivation stays as strong."""
    strong = Descriptor.new(least=Floor(70_000, 4))
    changed = account.change_password(MADE.keyring, EMAIL, OTHER, strong)
    assert (changed.descriptor.memory, changed.descriptor.passes) == (70_000, 4)


def test_recovery_outlives_a_change_of_password() -> None:
    """The printed key logs in and opens the keyring, before and after the password changes; an older print does not."""
    first, made = account.set_recovery(MADE.keyring, EMAIL, PASSWORD, MADE.descriptor)
    second, prepared = account.set_recovery(made.keyring, EMAIL, PASSWORD, made.descriptor)
    assert len({MADE.descriptor.salt, made.descriptor.salt, prepared.descriptor.salt}) == 3
    assert prepared.keyring.version == made.keyring.version + 1 == MADE.keyring.version + 2
    with pytest.raises(Tampered):  # an old descriptor opens only what the server does not take any more
        account.recovery_password(second, EMAIL, made.descriptor)
    assert account.recovery_password(first, EMAIL, made.descriptor) != prepared.password.password
    changed = account.change_password(prepared.keyring, EMAIL, OTHER, prepared.descriptor)
    for stored in (prepared, changed):
        typed = RecoveryKey.read(second.printed())
        assert account.recovery_password(typed, EMAIL, stored.descriptor) == stored.password.password
        assert keyring.open_with_recovery(stored.sealed, typed) == stored.keyring
        with pytest.raises(Tampered):
            account.recovery_password(first, EMAIL, stored.descriptor)
        with pytest.raises(Tampered):
            keyring.open_with_recovery(stored.sealed, first)
    removed = account.remove_recovery(changed.keyring, EMAIL, OTHER, changed.descriptor)
    assert removed.keyring.recovery is None
    with pytest.raises(Tampered):
        keyring.open_with_recovery(removed.sealed, second)
    with pytest.raises(Tampered):
        account.recovery_password(second, EMAIL, removed.descriptor)


def test_rotation_shuts_out_whoever_had_the_keys() -> None:
    """After it, the account key of before opens nothing, each way in opens everything, and old rows stay readable."""
    key, with_recovery = account.set_recovery(MADE.keyring, EMAIL, PASSWORD, MADE.descriptor)
    old = sealed_again(with_recovery.keyring.with_vault(VAULT, "personal", sealed=True))
    rotated = account.rotate(old, with_recovery.password, with_recovery.descriptor)
    ring = rotated.keyring
    assert keyring.open_with_password(rotated.sealed, with_recovery.password, with_recovery.descriptor) == ring
    assert keyring.open_with_recovery(rotated.sealed, key) == ring
    with pytest.raises(Tampered):
        keyring.reopen(rotated.sealed, old.key)
    assert (ring.generation, ring.version, ring.previous) == (2, old.version + 1, old.digest)
    assert ring.vaults[0].keys[:1] == old.vaults[0].keys
    assert [generation for generation, _ in ring.vaults[0].keys] == [1, 2]
    assert ring.identity[:1] == old.identity
    assert len({ring.key, old.key, *(key for _, key in ring.vaults[0].keys)}) == 4
    one = old.with_rotated_vault(VAULT)
    assert (one.generation, [generation for generation, _ in one.vaults[0].keys]) == (1, [1, 2])
    assert keyring.seal(one)[1].sealed_slots == old.sealed_slots


def test_a_server_can_neither_count_nor_tell_ways_in() -> None:
    """All slots are made anew, or none; their places are drawn; fillers have the form of the others."""
    places = set()
    for _ in range(40):
        ring = Keyring.new(MADE.password, MADE.descriptor)
        places.add(ring.slots[0].slot)
    assert len(places) >= 5
    key, made = account.set_recovery(MADE.keyring, EMAIL, PASSWORD, MADE.descriptor)
    before, after = (encoding.from_base64(text)[65:1249] for text in (MADE.sealed, made.sealed))
    for start in range(0, 1184, 148):
        assert before[start : start + 148] != after[start : start + 148]
        assert after[start + 31] < 128
    assert len({slot.id for slot in made.keyring.slots}) == 2
    assert keyring.seal(made.keyring.with_vault(VAULT, "personal", sealed=True))[1].sealed_slots == after
    assert key.secret not in encoding.from_base64(made.sealed)


def test_all_ways_in_may_be_taken() -> None:
    """A ninth way in is refused, in words; one that is replaced is not another."""
    ring = MADE.keyring
    for at in range(7):
        ring = ring._with_slot(f"device {at}", bytes([at]) * 32, b"", primitives.random)
    with pytest.raises(Invalid, match="all eight ways"):
        ring.with_recovery(RecoveryKey.new())
    assert len(ring.with_password(MADE.password, MADE.descriptor).slots) == 8
    made = sealed_again(ring)
    for at in range(7):
        pair, place = (
            KeyPair.of(bytes([at]) * 32),
            next(slot for slot in made.slots if slot.type == f"device {at}").slot,
        )
        opened = public_box.open_(pair, made.sealed_slots[148 * place : 148 * place + 148], b"")
        assert opened == bytes([0, 0, 0, 1]) + made.key


def test_what_a_client_does_not_know_is_kept() -> None:
    """Unknown members, at every place, survive each change; one that must be understood stops everything."""
    vault = MADE.keyring.with_vault(VAULT, "personal", sealed=True)
    entry = msgspec.structs.replace(vault.vaults[0], extra={"icon": "x"}, key_extras={1: {"retired": False}})
    ring = msgspec.structs.replace(vault, vaults=(entry,), extra={"heads": [1, {"a": None}]})
    ring = sealed_again(ring)
    changed = sealed_again(sealed_again(ring.rotated()).with_entry(VAULT, made=True))
    assert changed.extra == {"heads": [1, {"a": None}]}
    assert changed.vaults[0].extra == {"icon": "x"}
    assert changed.vaults[0].key_extras == {1: {"retired": False}}
    with pytest.raises(Unsupported, match="heads"):
        keyring.seal(msgspec.structs.replace(ring, must=("vaults", "heads")))


def test_nobody_can_tell_who_has_a_recovery_key() -> None:
    """With and without one, descriptor and keyring have the same lengths, and both begin with points of the curve."""
    _, prepared = account.set_recovery(MADE.keyring, EMAIL, PASSWORD, MADE.descriptor)
    assert len(encoding.from_base64(prepared.sealed)[:1249]) == len(encoding.from_base64(MADE.sealed)[:1249])
    assert len(prepared.descriptor.recovery) == len(MADE.descriptor.recovery)
    assert max(prepared.descriptor.recovery[31], MADE.descriptor.recovery[31]) < 128


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025, "\ud800" * 9])
def test_a_new_password_has_a_length(password: str) -> None:
    """Too short, too long, or no text at all: refused before any work."""
    with pytest.raises(Invalid):
        account.register(EMAIL, password)


def test_every_flipped_bit_of_a_keyring_is_seen() -> None:
    """Each single bit of the keyring turned over: refused, by whichever key it is opened."""
    raw = bytearray(encoding.from_base64(MADE.sealed))
    others = {*range(8), *range(62 * 8, 65 * 8)} - {1}  # of another format, or with other slots
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        with pytest.raises(Unsupported if at in others else Tampered):
            keyring.reopen(encoding.to_base64(bytes(raw)), MADE.keyring.key)
        raw[at // 8] ^= 1 << at % 8
    slot = 65 + 148 * MADE.keyring.slots[0].slot
    for at in [*range(65 * 8), *range(slot * 8, (slot + 148) * 8)]:
        raw[at // 8] ^= 1 << at % 8
        with pytest.raises(Unsupported if at in others else Tampered):
            keyring.open_with_password(encoding.to_base64(bytes(raw)), MADE.password, MADE.descriptor)
        raw[at // 8] ^= 1 << at % 8


@pytest.mark.parametrize("length", [0, 1, 2, 18, 62, 64, 65, 1249, 1328])
def test_a_keyring_that_is_cut_off_before_its_body_is_unreadable(length: int) -> None:
    """Not even its head is read."""
    with pytest.raises(Tampered):
        keyring.version_of(encoding.to_base64(encoding.from_base64(MADE.sealed)[:length]))


@pytest.mark.parametrize("at", [0, 40, 70, -1])
def test_a_keyring_that_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Where the machine turns a bit over while sealing a slot or the body, nothing is handed out."""
    real = box.seal

    def faulty(key: bytes, salt: bytes, plaintext: bytes, associated: bytes) -> bytes:
        made = bytearray(real(key, salt, plaintext, associated))
        made[at] ^= 1
        return bytes(made)

    monkeypatch.setattr(box, "seal", faulty)
    for attempt in (
        lambda: keyring.seal(MADE.keyring),
        lambda: sealed_again(MADE.keyring.with_password(MADE.password, MADE.descriptor)),
        lambda: sealed_again(MADE.keyring.with_recovery(RecoveryKey.new())),
        lambda: recovery.seal_auth(KeyPair.of(bytes(32)).public, EMAIL, MADE.descriptor, MADE.password),
    ):
        with pytest.raises(Tampered):
            attempt()


def test_a_slot_for_another_key_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a public key is spoilt before something is sealed to it, its owner would be shut out: nothing is sent."""
    real = KeyPair.of.__func__  # type: ignore[attr-defined]
    spoilt = [True]

    def once(cls: type[KeyPair], secret: bytes) -> KeyPair:
        made: KeyPair = real(cls, secret)
        return KeyPair(made.private, bytes(31) + b"\x09") if spoilt and spoilt.pop() else made

    monkeypatch.setattr(KeyPair, "of", classmethod(once))
    for attempt in (
        lambda: account.register(EMAIL, PASSWORD),
        lambda: account.change_password(MADE.keyring, EMAIL, OTHER, MADE.descriptor),
        lambda: account.set_recovery(MADE.keyring, EMAIL, PASSWORD, MADE.descriptor),
        lambda: account.rotate(MADE.keyring, MADE.password, MADE.descriptor),
        lambda: account.renew(MADE.keyring, EMAIL, OTHER, MADE.descriptor),
    ):
        spoilt[:] = [True]
        with pytest.raises(Tampered):
            attempt()


def test_a_name_that_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for names."""
    real = primitives.encrypt
    monkeypatch.setattr(primitives, "encrypt", lambda *given: bytes(byte ^ 1 for byte in real(*given)))
    with pytest.raises(Tampered):
        names.seal_vault_name(KEYS.newest, "personal")


def test_the_directory_knows_each_vault_once() -> None:
    """A vault is renamed in place; a name or a uid that is taken is refused; a vault that is deleted is said to be."""
    ring = sealed_again(MADE.keyring.with_vault(VAULT.upper(), "personal", sealed=True))
    renamed = sealed_again(ring.with_entry(VAULT, name="private"))
    assert renamed.vault("personal") is None
    entry = renamed.vault("private")
    assert entry is not None
    assert (entry.uid, entry.sealed, entry.made) == (VAULT, True, False)
    for uid, name in ((OTHER_VAULT, "private"), (VAULT, "another")):
        with pytest.raises(VaultAlreadyExists):
            renamed.with_vault(uid, name, sealed=True)
    with pytest.raises(VaultAlreadyExists):
        renamed.with_vault(OTHER_VAULT, "b", sealed=True).with_entry(OTHER_VAULT, name="private")
    with pytest.raises(Invalid):
        renamed.with_entry(OTHER_VAULT, made=True)
    deleted = sealed_again(renamed.without_vault(VAULT))
    assert deleted.vaults == ()
    assert deleted.is_gone(VAULT)
    assert [(one.uid, one.version) for one in deleted.gone] == [(VAULT, 4)]
    assert [each.version for each in (ring, renamed, deleted)] == [2, 3, 4]
    assert not sealed_again(deleted.with_vault(VAULT, "personal", sealed=True)).is_gone(VAULT)


def test_the_oldest_deletions_are_forgotten_first() -> None:
    """A thousand are kept."""
    ring = MADE.keyring
    for at in range(1001):
        ring = ring.without_vault(f"{2000 - at}")
        if at < 1000:
            ring = msgspec.structs.replace(ring, digest=b"\1" * 32)  # as if it was sealed
    made = sealed_again(ring)
    assert len(made.gone) == 1000
    assert not made.is_gone("2000")
    assert made.is_gone("1999")


def test_a_directory_that_is_too_large_is_refused() -> None:
    """Before it is sent, in words that say what to do; and by a reader, if somebody has sent it."""
    ring = MADE.keyring
    for at in range(700):
        ring = ring.with_vault(f"0192f0c1-2b3c-7d4e-8f90-{at:012x}", f"{at}" + "n" * 240, sealed=False)
    with pytest.raises(Invalid, match="use fewer vaults or shorter names"):
        keyring.seal(ring)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(keyring, "MOST", 2**20)
        sealed, _ = keyring.seal(ring)
        keyring.reopen(sealed, ring.key)
    with pytest.raises(Tampered):
        keyring.reopen(sealed, ring.key)


def test_a_device_remembers() -> None:
    """What was seen is the floor: of the keyring's version, of its content, of the account, of the work."""
    later = sealed_again(MADE.keyring.with_vault(VAULT, "personal", sealed=True))
    seen = rollback.next_account(None, later, MADE.descriptor)
    assert rollback.next_account(seen, later, MADE.descriptor) == seen
    assert (
        rollback.next_account(rollback.next_account(None, MADE.keyring, MADE.descriptor), later, MADE.descriptor)
        == seen
    )
    with pytest.raises(RolledBack):
        rollback.next_account(seen, MADE.keyring, MADE.descriptor)
    again = sealed_again(msgspec.structs.replace(later, digest=b""))
    with pytest.raises(Tampered):
        rollback.next_account(seen, again, MADE.descriptor)
    apart = sealed_again(again.with_entry(VAULT, made=True))
    with pytest.raises(Tampered):
        rollback.next_account(seen, apart, MADE.descriptor)
    other = account.register(EMAIL, PASSWORD)
    with pytest.raises(Tampered):
        rollback.next_account(seen, other.keyring, other.descriptor)
    assert seen.floor == derive.DEFAULT
    with pytest.raises(WeakParameters):
        Descriptor.read(MADE.descriptor.spelled(), Floor(derive.DEFAULT.memory, derive.DEFAULT.passes + 1))


def test_a_device_knows_a_former_key_holder() -> None:
    """Somebody with the keys of before a rotation, and the server's help, makes no keyring that a device takes."""
    then = sealed_again(MADE.keyring.with_vault(VAULT, "personal", sealed=True))
    now = account.rotate(then, MADE.password, MADE.descriptor).keyring
    seen = rollback.next_account(rollback.next_account(None, then, MADE.descriptor), now, MADE.descriptor)
    old_keys = after(then, now)
    made_up = after(then.rotated(), now)
    further = after(made_up.rotated(), now)
    for forged in (old_keys, made_up, further):
        sealed, _ = keyring.seal(forged, password=MADE.password)  # with the password too: nothing but memory refuses it
        opened = keyring.open_with_password(sealed, MADE.password, MADE.descriptor)
        with pytest.raises(Tampered):
            rollback.next_account(seen, opened, MADE.descriptor)
    rollback.next_account(seen, sealed_again(now.rotated()), MADE.descriptor)


def test_a_replica_knows_a_former_key_holder(tmp_path: Path) -> None:
    """Its file remembers the keys too: whoever logs in anew brings no keyring into it that was made without them."""
    now = account.rotate(MADE.keyring, MADE.password, MADE.descriptor)
    later = keyring.seal(now.keyring.with_vault(VAULT, "v", sealed=True))
    file = File(tmp_path / "replica")
    try:
        _keep(file, MADE.sealed, MADE.keyring)
        for sealed, ring in ((now.sealed, now.keyring), later):
            _keep(file, sealed, ring)
            assert file.fact("keyring") == sealed
            forged = after(MADE.keyring.rotated(), ring)
            with pytest.raises(Tampered, match="without the keys"):
                _keep(file, *keyring.seal(forged, password=MADE.password))
            assert file.fact("keyring") == sealed
    finally:
        file.close()


def _keep(file: File, sealed: str, ring: Keyring) -> None:
    core: Any = SimpleNamespace(ring=ring, sealed=sealed, descriptor=MADE.descriptor, email=EMAIL, device=Device())
    unlock.store_keys(core, file)


@given(name=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=127))
def test_names_are_sealed_the_same_way_each_time(name: str) -> None:
    """A name opens to itself, fits the contract, and looks different in each place."""
    if len(name.encode()) > names.LONGEST or names.is_sealed(name):
        with pytest.raises(Invalid):
            names.seal_vault_name(KEYS.newest, name)
        return
    there = VaultKeys.build(ACCOUNT, OTHER_VAULT, [(2, KEYS.newest.key)])
    made = [names.seal_vault_name(KEYS.newest, name)]
    made += [names.seal_collection_name(key, name) for key in (*KEYS.keys, there.newest)]
    assert made[0] == names.seal_vault_name(KEYS.newest, name)
    assert len(set(made)) == 4
    assert max(map(len, made)) <= 255
    assert names.open_vault_name(KEYS, made[0]) == name
    assert [names.open_collection_name(KEYS, one) for one in made[1:3]] == [name, name]
    assert names.open_collection_name(there, made[3]) == name
    with pytest.raises(Tampered):
        names.open_collection_name(KEYS, made[3])
    with pytest.raises(Tampered):
        names.open_collection_name(KEYS, made[0])


def test_every_flipped_bit_of_a_name_is_seen() -> None:
    """Each single bit of a sealed name turned over: refused."""
    sealed = names.seal_vault_name(KEYS.newest, "personal")
    raw = bytearray(sealed, "ascii")
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        with pytest.raises((Tampered, Locked, Unsupported) if at // 8 == 2 else (Tampered, Locked)):
            names.open_vault_name(KEYS, raw.decode("latin-1"))
        raw[at // 8] ^= 1 << at % 8


@given(
    secret=st.binary(min_size=20, max_size=20),
    at=st.integers(0, 35),
    sign=st.sampled_from("0123456789ABCDEFGHJKMNPQRSTVWXYZ"),
)
def test_a_recovery_key_is_typed(secret: bytes, at: int, sign: str) -> None:
    """A printed key reads as itself; with one sign changed, it is refused (but for one in a million)."""
    printed = RecoveryKey(secret).printed()
    assert RecoveryKey.read(printed.lower().replace("-", "  ")).secret == secret
    body = printed[4:].replace("-", "")
    changed = "SR2" + body[:at] + sign + body[at + 1 :]
    if sign != body[at]:
        try:
            assert RecoveryKey.read(changed).secret != secret
        except Invalid:
            return


def test_a_token_opens_what_it_names() -> None:
    """A token of a collection holds no key of another, and nothing that leads to the vault's."""
    for sealed in (True, False):
        whole = tokens.Token(api_key="srk_key", keys=KEYS, keyring=3, name="Büro", sealed=sealed)
        assert tokens.read(whole.spelled()) == whole
        notes = names.collection_keys(KEYS, "notes", sealed=sealed)
        part = tokens.Token(api_key="srk_key", keys=notes, keyring=3, name="notes")
        read = tokens.read(part.spelled())
        assert read == part
        assert isinstance(read.keys, CollectionKeys)
        assert [key.generation for key in read.keys.keys] == [1, 2]
        raw = encoding.from_url(part.spelled().removeprefix("srv_"))
        letters = names.collection_keys(KEYS, "letters", sealed=sealed)
        for secret in [*(key.key for key in KEYS.keys), *(key.key for key in letters.keys)]:
            assert secret not in raw
        with pytest.raises(Locked):
            read.keys.of(3)


def test_a_token_carries_no_key_of_before_the_floor() -> None:
    """But the keys of names of a vault: its collections may have older names on the wire."""
    keys = msgspec.structs.replace(KEYS, floor=2)
    whole = tokens.Token(api_key="srk_key", keys=keys.from_floor(), keyring=3, name="v")
    read = tokens.read(whole.spelled())
    assert read == whole
    assert isinstance(read.keys, VaultKeys)
    assert [key.generation for key in read.keys.keys] == [2]
    old = KEYS.keys[0]
    assert old.key not in encoding.from_url(whole.spelled().removeprefix("srv_"))
    assert names.open_collection_name(read.keys, names.seal_collection_name(old, "notes")) == "notes"
    assert names.collection_keys(read.keys, "notes", sealed=True).wires == (
        names.collection_keys(KEYS, "notes", sealed=True).wires
    )
    with pytest.raises(Locked, match="older keys"):
        read.keys.of(1)
    part = names.collection_keys(keys, "notes", sealed=True).from_floor()
    assert [key.generation for key in part.keys] == [2]
    assert len(part.wires) == 2


@pytest.mark.parametrize(("length", "is_too_long"), [(65_535, False), (65_536, True)])
def test_a_part_of_a_token_has_a_length_of_two_bytes(length: int, *, is_too_long: bool) -> None:
    """What is longer is refused in a sentence of its own, and no other error."""
    with pytest.raises(Invalid) as refused:
        tokens.Token(api_key="a" * length, keys=KEYS, keyring=3).spelled()
    assert ("too long" in str(refused.value.details)) == is_too_long


@pytest.mark.parametrize(("count", "said"), [(150, None), (200, "whole token"), (256, "too many keys")])
def test_a_token_carries_so_many_generations(count: int, said: str | None) -> None:
    """What does not fit is refused when the token is made, and never by its reader alone."""
    keys = VaultKeys.build(ACCOUNT, VAULT, [(at, bytes(32)) for at in range(1, count + 1)])
    token = tokens.Token(api_key="srk_key", keys=keys, keyring=3)
    if said is None:
        assert tokens.read(token.spelled()) == token
        return
    with pytest.raises(Invalid) as refused:
        token.spelled()
    assert said in str(refused.value.details)


@pytest.mark.parametrize("api_key", ["", "with space", "line\nfeed", "feed\n", "é", "x" * 1025])
def test_a_token_carries_only_what_a_header_can(api_key: str) -> None:
    """An API key that could break a header is not bundled."""
    with pytest.raises(Invalid):
        tokens.Token(api_key=api_key, keys=KEYS, keyring=3).spelled()


def test_no_secret_prints() -> None:
    """Neither repr nor str of anything shows a key, a password, a name or content."""
    key, prepared = account.set_recovery(
        sealed_again(MADE.keyring.with_vault(VAULT, "CANARY-name", sealed=True)), EMAIL, PASSWORD, MADE.descriptor
    )
    entry = prepared.keyring.vaults[0]
    vault = prepared.keyring.vault_keys(entry)
    collection = names.collection_keys(vault, "CANARY-name", sealed=True)
    pair = KeyPair.of(key.wrap())
    value = content.to_content("CANARY-content")
    opened = seal.Opened(uid="u", version=1, generation=1, parent=bytes(16), deleted=False, purged=False, content=value)
    token = tokens.Token(api_key="CANARY-api", keys=collection, keyring=3, name="CANARY-name")
    things = [
        *(key, prepared, prepared.keyring, prepared.password, prepared.keyring.vaults, prepared.keyring.identity),
        *(vault, vault.newest, collection, collection.newest, value, opened, token, pair),
    ]
    secrets = [
        key.secret,
        prepared.password.auth,
        prepared.password.wrap,
        vault.newest.key,
        *(collection.newest.key, collection.newest.sealing, collection.newest.proving),
        prepared.keyring.key,
        pair.private,
        *(prepared.keyring.identity[0].sign, prepared.keyring.identity[0].agree),
    ]
    for thing in things:
        shown = f"{thing!r} {thing}"
        assert "CANARY" not in shown
        assert not any(repr(secret)[2:20] in shown or secret.hex() in shown for secret in secrets)


def test_errors_speak_like_the_servers() -> None:
    """Each refusal has a code and a sentence, and is a Refusal like the server's own."""
    for kind in (Tampered, RolledBack, WeakParameters, Locked, Unsupported):
        assert issubclass(kind, Refusal)
        assert re.fullmatch(r"[a-z_]+", kind.code)
        assert kind().message.endswith(".")


def test_one_file_imports_cryptography() -> None:
    """The primitives are chosen in one place."""
    folder = Path(client.__file__).parent
    trees = {path.name: list(ast.walk(ast.parse(path.read_text()))) for path in folder.rglob("*.py")}
    importing = {
        file
        for file, nodes in trees.items()
        for node in nodes
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in [getattr(node, "module", None) or node.names[0].name]
        if name.split(".")[0] in {"cryptography", "hmac", "hashlib", "secrets"}
    }
    drawing = {
        file
        for file, nodes in trees.items()
        for node in nodes
        if isinstance(node, ast.Attribute) and node.attr in {"urandom", "getrandom", "randbytes", "SystemRandom"}
    }
    assert importing == drawing == {"primitives.py"}


def test_padding_limits_content() -> None:
    """Content beyond the format's limit is refused before it is copied."""

    class Huge(bytes):
        def __len__(self) -> int:
            return padding.MOST + 1

    with pytest.raises(Invalid):
        padding.pad(padding.Content(padding.BYTES, Huge()))


def test_recovery_seals_for_the_right_account() -> None:
    """The sealed auth key is bound to the email: another account's descriptor opens nothing."""
    key = RecoveryKey.new()
    descriptor = recovery.seal_auth(key.auth().public, EMAIL, MADE.descriptor, MADE.password)
    assert recovery.open_auth(key, EMAIL, descriptor) == MADE.password.auth
    with pytest.raises(Tampered):
        recovery.open_auth(key, "eve@example.com", descriptor)
