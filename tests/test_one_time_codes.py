"""One-time codes by the vectors of their standards, and the box that seals their secrets."""

from __future__ import annotations

import base64

import pytest

from strongroom import one_time_codes
from strongroom.one_time_codes import STEP, SealedSecret, SecretBox
from tests.kit.people.one_time_codes import code

SECRET = b"12345678901234567890"  # of RFC 4226 and RFC 6238
OLD, NEW = b"the secret of last year, 32 bytes long", b"the secret of this year, 32 bytes long"


@pytest.mark.parametrize(
    ("step", "expected"),
    list(
        enumerate(["755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489"])
    ),
)
def test_the_vectors_of_hotp(step: int, expected: str) -> None:
    """RFC 4226, appendix D."""
    assert one_time_codes.code_at(SECRET, step) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (59, "94287082"),
        (1111111109, "07081804"),
        (1111111111, "14050471"),
        (1234567890, "89005924"),
        (2000000000, "69279037"),
        (20000000000, "65353130"),
    ],
)
def test_the_vectors_of_totp(seconds: int, expected: str) -> None:
    """RFC 6238, appendix B: of the eight digits there, the last six. The app of the tests agrees."""
    found = one_time_codes.code_at(SECRET, seconds * 1000 // STEP)
    assert found == expected[-6:] == code(one_time_codes.spelled(SECRET), seconds * 1000)
    assert one_time_codes.matching_step(SECRET, found, seconds * 1000, 0) == seconds // 30


def test_a_secret_is_new_and_long_enough() -> None:
    """160 bits, spelled without padding."""
    made = {one_time_codes.new_secret() for _ in range(50)}
    assert len(made) == 50
    assert all(base64.b32decode(one_time_codes.spelled(secret)) == secret for secret in made)
    assert {len(secret) for secret in made} == {20}


def test_a_sealed_secret_opens_for_its_account_only() -> None:
    """Under its key, unchanged; what is sealed shows nothing, and is never the same twice."""
    box = SecretBox(OLD)
    one, two = box.seal("ann", SECRET), box.seal("ann", SECRET)
    assert box.open("ann", one) == SECRET
    assert one.text != two.text
    assert SECRET not in base64.b64decode(one.text)
    assert box.open("bob", one) is None
    assert SecretBox(NEW).open("ann", one) is None
    data = base64.b64decode(one.text)
    for at in range(len(data)):
        changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
        assert box.open("ann", SealedSecret(one.key_id, base64.b64encode(changed).decode())) is None
    for text in ("", "A", "not base64!", base64.b64encode(data[:11]).decode(), base64.b64encode(data[:20]).decode()):
        assert box.open("ann", SealedSecret(one.key_id, text)) is None


def test_the_first_secret_seals_and_all_of_them_open() -> None:
    """Each row names its key; the same secret has the same name, wherever it stands."""
    before, during = SecretBox(OLD), SecretBox(NEW, OLD)
    sealed = before.seal("ann", SECRET)
    assert during.knows(sealed.key_id)
    assert during.open("ann", sealed) == SECRET
    anew = during.seal("ann", SECRET)
    assert anew.key_id == SecretBox(NEW).key_id != sealed.key_id
    assert SecretBox(NEW).open("ann", anew) == SECRET
    assert not SecretBox(NEW).knows(sealed.key_id)
    assert SecretBox(NEW, NEW, OLD).key_id == SecretBox(NEW).key_id


def test_nothing_is_shown() -> None:
    """Neither a key nor a secret is in what is printed of the box."""
    assert repr(SecretBox(OLD, NEW)) == "SecretBox(...)"


@pytest.mark.parametrize("steps", [-1, 0, 1])
def test_a_code_is_valid_after_the_last_step_that_counted(steps: int) -> None:
    """Not again at that step, and not at an earlier one."""
    now = 1_000 * STEP
    given = one_time_codes.code_at(SECRET, 1_000 + steps)
    matches = [one_time_codes.matching_step(SECRET, given, now, last) for last in range(998, 1_003)]
    assert matches == [1_000 + steps if last < 1_000 + steps else None for last in range(998, 1_003)]
