"""An account's steps: registration, another password, recovery; names, tokens, and nothing that prints a secret."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom import client
from strongroom.client.errors import Locked, RolledBack, Tampered, WeakParameters
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
    recovery,
    seal,
    tokens,
)
from strongroom.client.format.derive import Descriptor, Floor
from strongroom.client.format.keys import AccountKey, CollectionKey
from strongroom.client.format.recovery import RecoveryKey
from strongroom.client.operations import rollback
from strongroom.errors import Invalid, Refusal, VaultAlreadyExists

EMAIL, PASSWORD, OTHER = "ada@example.com", "correct horse battery staple", "another password"
VAULT = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"
KEYS = AccountKey.new()
MADE = account.register(EMAIL, PASSWORD)


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
    for secret in (ring.keys.key, MADE.password.wrap, ring.keys.keyring()):
        for spelled in (secret.hex(), encoding.to_base64(secret).strip("="), encoding.to_url(secret), repr(secret)):
            assert spelled not in sent
    assert PASSWORD not in sent
    guessed = derive.PasswordKeys(auth=MADE.password.auth, wrap=MADE.password.auth)
    with pytest.raises(Tampered):
        keyring.open_with_password(MADE.sealed, guessed, MADE.descriptor)


def test_another_password_wraps_the_same_key() -> None:
    """After a change of password the old one opens nothing that is stored, and every key is as before."""
    old = MADE.keyring.with_vault(VAULT, "personal", sealed=True)
    changed = account.change_password(old, EMAIL, OTHER, MADE.descriptor)
    assert changed.descriptor.salt != MADE.descriptor.salt
    opened = keyring.open_with_password(changed.sealed, changed.password, changed.descriptor)
    assert (opened.keys, opened.vaults, opened.version) == (old.keys, old.vaults, old.version + 1)
    with pytest.raises(Tampered):
        keyring.open_with_password(changed.sealed, MADE.password, MADE.descriptor)


def test_a_change_of_password_keeps_the_work() -> None:
    """A stronger derivation stays as strong."""
    strong = Descriptor.new(memory=70_000, passes=4)
    changed = account.change_password(MADE.keyring, EMAIL, OTHER, strong)
    assert (changed.descriptor.memory, changed.descriptor.passes) == (70_000, 4)


def test_recovery_outlives_a_change_of_password() -> None:
    """The printed key logs in and opens the keyring, before and after the password changes; an older print does not."""
    first, prepared = account.set_recovery(MADE.keyring, EMAIL, MADE.password, MADE.descriptor)
    second, prepared = account.set_recovery(prepared.keyring, EMAIL, MADE.password, prepared.descriptor)
    changed = account.change_password(prepared.keyring, EMAIL, OTHER, prepared.descriptor)
    for stored in (prepared, changed):
        typed = RecoveryKey.read(second.printed())
        assert account.recovery_password(typed, EMAIL, stored.descriptor) == stored.password.password
        assert keyring.open_with_recovery(stored.sealed, typed) == stored.keyring
        with pytest.raises(Tampered):
            account.recovery_password(first, EMAIL, stored.descriptor)
        with pytest.raises(Tampered):
            keyring.open_with_recovery(stored.sealed, first)
    removed = changed.keyring.without_recovery()
    with pytest.raises(Tampered):
        keyring.open_with_recovery(removed.sealed(), second)
    again = account.change_password(removed, EMAIL, "one more good password", changed.descriptor)
    with pytest.raises(Tampered):  # whoever found the print cannot log in with it after the next change
        account.recovery_password(second, EMAIL, again.descriptor)


def test_nobody_can_tell_who_has_a_recovery_key() -> None:
    """With and without one, descriptor and keyring have the same lengths."""
    _, prepared = account.set_recovery(MADE.keyring, EMAIL, MADE.password, MADE.descriptor)
    assert len(prepared.sealed) == len(MADE.sealed)
    assert len(prepared.descriptor.recovery) == len(MADE.descriptor.recovery)


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025, "\ud800" * 9])
def test_a_new_password_has_a_length(password: str) -> None:
    """Too short, too long, or no text at all: refused before any work."""
    with pytest.raises(Invalid):
        account.register(EMAIL, password)


def test_every_flipped_bit_of_a_keyring_is_seen() -> None:
    """Each single bit of the keyring turned over: refused, by whichever key it is opened."""
    raw = bytearray(encoding.from_base64(MADE.sealed))
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        changed = encoding.to_base64(bytes(raw))
        with pytest.raises(Tampered):
            keyring.reopen(changed, MADE.keyring.keys)
        raw[at // 8] ^= 1 << at % 8
    for at in range(26 * 8 + 112 * 8):
        raw[at // 8] ^= 1 << at % 8
        with pytest.raises(Tampered):
            keyring.open_with_password(encoding.to_base64(bytes(raw)), MADE.password, MADE.descriptor)
        raw[at // 8] ^= 1 << at % 8


@pytest.mark.parametrize("at", [0, 40, 70, -1])
def test_a_keyring_that_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    """Where the machine turns a bit over while wrapping or sealing, nothing is handed out."""
    real = box.seal

    def faulty(key: bytes, salt: bytes, plaintext: bytes, associated: bytes) -> bytes:
        made = bytearray(real(key, salt, plaintext, associated))
        made[at] ^= 1
        return bytes(made)

    monkeypatch.setattr(box, "seal", faulty)
    for attempt in (
        MADE.keyring.sealed,
        lambda: MADE.keyring.with_password(MADE.password, MADE.descriptor),
        lambda: MADE.keyring.with_recovery(RecoveryKey.new()),
        lambda: recovery.seal_auth(bytes(32), EMAIL, MADE.descriptor, MADE.password),
    ):
        with pytest.raises(Tampered):
            attempt()


def test_a_name_that_is_sealed_wrongly_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for names."""
    real = primitives.encrypt
    monkeypatch.setattr(primitives, "encrypt", lambda *given: bytes(byte ^ 1 for byte in real(*given)))
    with pytest.raises(Tampered):
        names.seal_vault_name(KEYS, "personal")


def test_the_directory_knows_each_vault_once() -> None:
    """A vault is renamed in place; a name that is taken is refused; a vault that is gone is gone."""
    ring = MADE.keyring.with_vault(VAULT.upper(), "personal", sealed=True)
    renamed = ring.with_vault(VAULT, "private", sealed=False)
    assert renamed.vault("personal") is None
    entry = renamed.vault("private")
    assert entry is not None
    assert (entry.uid, entry.sealed) == (VAULT, False)
    with pytest.raises(VaultAlreadyExists):
        renamed.with_vault("0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f7", "private", sealed=True)
    assert renamed.without_vault(VAULT).vaults == ()
    assert [each.version for each in (ring, renamed)] == [2, 3]


def test_a_directory_that_is_too_large_is_refused() -> None:
    """Before it is sent, in words that say what to do."""
    ring = MADE.keyring
    for at in range(700):
        ring = ring.with_vault(f"0192f0c1-2b3c-7d4e-8f90-{at:012x}", f"{at}" + "n" * 240, sealed=False)
    with pytest.raises(Invalid, match=r"details\.fields"):
        ring.sealed()


def test_a_device_remembers() -> None:
    """What was seen is the floor: of the keyring's version, of its content, of the account, of the work."""
    later = MADE.keyring.with_vault(VAULT, "personal", sealed=True)
    sealed = later.sealed()
    seen = rollback.next_account(None, later, sealed, MADE.descriptor)
    assert rollback.next_account(seen, later, sealed, MADE.descriptor) == seen
    with pytest.raises(RolledBack):
        rollback.next_account(seen, MADE.keyring, MADE.sealed, MADE.descriptor)
    with pytest.raises(Tampered):
        rollback.next_account(seen, later, later.sealed(), MADE.descriptor)
    other = account.register(EMAIL, PASSWORD)
    with pytest.raises(Tampered):
        rollback.next_account(seen, other.keyring, other.sealed, other.descriptor)
    assert seen.floor == Floor(derive.MEMORY, derive.PASSES)
    with pytest.raises(WeakParameters):
        Descriptor.read(MADE.descriptor.spelled(), Floor(derive.MEMORY, derive.PASSES + 1))


@given(name=st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=127))
def test_names_are_sealed_the_same_way_each_time(name: str) -> None:
    """A name opens to itself, fits the contract, and looks different in each place."""
    if len(name.encode()) > names.LONGEST or names.is_sealed(name):
        with pytest.raises(Invalid):
            names.seal_vault_name(KEYS, name)
        return
    vaults = [KEYS.vault(VAULT), KEYS.vault(VAULT.replace("6", "7"))]
    sealed = [names.seal_vault_name(KEYS, name), *(names.seal_collection_name(vault, name) for vault in vaults)]
    assert sealed[0] == names.seal_vault_name(KEYS, name)
    assert len(set(sealed)) == 3
    assert max(map(len, sealed)) <= 255
    assert names.open_vault_name(KEYS, sealed[0]) == name
    assert [names.open_collection_name(*pair) for pair in zip(vaults, sealed[1:], strict=True)] == [name, name]
    with pytest.raises(Tampered):
        names.open_collection_name(vaults[1], sealed[1])


def test_every_flipped_bit_of_a_name_is_seen() -> None:
    """Each single bit of a sealed name turned over: refused."""
    sealed = names.seal_vault_name(KEYS, "personal")
    raw = bytearray(sealed, "ascii")
    for at in range(len(raw) * 8):
        raw[at // 8] ^= 1 << at % 8
        with pytest.raises(Tampered):
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
    changed = "SR1" + body[:at] + sign + body[at + 1 :]
    if sign != body[at]:
        try:
            assert RecoveryKey.read(changed).secret != secret
        except Invalid:
            return


def test_a_token_opens_what_it_names() -> None:
    """A token of a collection holds no key of another, and nothing that leads to the vault's."""
    vault = KEYS.vault(VAULT)
    whole = tokens.read(tokens.Token(api_key="srk_key", keys=vault, name="Büro").spelled())
    assert whole.collection("notes") == vault.collection("notes")
    part = tokens.read(tokens.Token(api_key="srk_key", keys=vault.collection("notes")).spelled())
    assert isinstance(part.keys, CollectionKey)
    assert part.collection("notes") == vault.collection("notes")
    with pytest.raises(Locked):
        part.collection("letters")


@pytest.mark.parametrize(("length", "is_too_long"), [(65_535, False), (65_536, True)])
def test_a_part_of_a_token_has_a_length_of_two_bytes(length: int, *, is_too_long: bool) -> None:
    """What is longer is refused in a sentence of its own, and no other error."""
    with pytest.raises(Invalid) as refused:
        tokens.Token(api_key="a" * length, keys=KEYS.vault(VAULT)).spelled()
    assert ("too long" in str(refused.value.details)) == is_too_long


@pytest.mark.parametrize("api_key", ["", "with space", "line\nfeed", "é", "x" * 1025])
def test_a_token_carries_only_what_a_header_can(api_key: str) -> None:
    """An API key that could break a header is not bundled."""
    with pytest.raises(Invalid):
        tokens.Token(api_key=api_key, keys=KEYS.vault(VAULT)).spelled()


def test_no_secret_prints() -> None:
    """Neither repr nor str of anything shows a key, a password, a name or content."""
    key, prepared = account.set_recovery(
        MADE.keyring.with_vault(VAULT, "CANARY-name", sealed=True), EMAIL, MADE.password, MADE.descriptor
    )
    vault = MADE.keyring.keys.vault(VAULT)
    collection = vault.collection("CANARY-name")
    value = content.to_content("CANARY-content")
    opened = seal.Opened(uid="u", version=1, deleted=False, purged=False, content=value)
    token = tokens.Token(api_key="CANARY-api", keys=collection, name="CANARY-name")
    things = [
        *(key, prepared, prepared.keyring, prepared.password, prepared.keyring.keys, prepared.keyring.vaults),
        *(vault, collection, value, opened, token),
    ]
    secrets = [
        key.secret,
        prepared.password.auth,
        prepared.password.wrap,
        vault.key,
        collection.key,
        MADE.keyring.keys.key,
    ]
    for thing in things:
        shown = f"{thing!r} {thing}"
        assert "CANARY" not in shown
        assert not any(repr(secret)[2:20] in shown or secret.hex() in shown for secret in secrets)


def test_errors_speak_like_the_servers() -> None:
    """Each refusal has a code and a sentence, and is a Refusal like the server's own."""
    for kind in (Tampered, RolledBack, WeakParameters, Locked):
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
    descriptor = recovery.seal_auth(key.auth(), EMAIL, MADE.descriptor, MADE.password)
    assert recovery.open_auth(key, EMAIL, descriptor) == MADE.password.auth
    with pytest.raises(Tampered):
        recovery.open_auth(key, "eve@example.com", descriptor)
