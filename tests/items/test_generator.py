"""Generated passwords and passphrases: their kinds, their bits, and that no two are the same."""

from __future__ import annotations

import itertools
import math
import string

import pytest

from strongroom.items import generator
from strongroom.items.generator import SYMBOLS, generate_passphrase, generate_password


@pytest.mark.parametrize("length", [8, 20, 256])
def test_a_password_has_every_kind(length: int) -> None:
    """Small letters, capitals, digits and symbols; without symbols only the others."""
    for _ in range(50):
        value = generate_password(length).value
        assert len(value) == length
        for kind in (string.ascii_lowercase, string.ascii_uppercase, string.digits, SYMBOLS):
            assert set(kind) & set(value)
        assert generate_password(length, symbols=False).value.isalnum()


def test_the_bits_are_the_logarithm_of_how_many_there_are() -> None:
    """Counted one by one where they are few; and a passphrase has those of its words."""
    kinds = ["ab", "CD", "1"]
    every = [one for one in itertools.product("abCD1", repeat=5) if all(set(kind) & set(one) for kind in kinds)]
    assert generator._bits(kinds, 5) == pytest.approx(math.log2(len(every)))
    assert 125 < generate_password(20).bits < 127
    assert generate_passphrase(5).bits == pytest.approx(5 * math.log2(17 * 5 * 17 * 5 * 17))


def test_a_passphrase_has_words_and_their_separator() -> None:
    """Five letters each."""
    words = generate_passphrase(6, separator=" ").value.split(" ")
    assert [len(word) for word in words] == [5] * 6


def test_no_two_are_the_same_and_none_is_shown() -> None:
    """A repr is in logs and tracebacks."""
    made = [generate_password() for _ in range(200)] + [generate_passphrase() for _ in range(200)]
    assert len({one.value for one in made}) == 400
    assert made[0].value not in repr(made[0])


def test_wrong_sizes_are_a_sentence() -> None:
    """Too short is refused and not made longer in silence."""
    for length in (0, 7, 257):
        with pytest.raises(ValueError, match="8 to 256 characters"):
            generate_password(length)
    with pytest.raises(ValueError, match="3 to 32 words"):
        generate_passphrase(2)
