"""Decisions that need no database."""

from __future__ import annotations

import pytest

from strongroom import rules


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("", True),
        ("A", True),
        ("AAAA", True),
        ("AA==", True),
        ("AAA=", True),
        ("+/-_", True),
        ("=", False),
        ("==", False),
        ("AA===", False),
        ("A=A=", False),
        ("=AAA", False),
        ("AA A", False),
        ("AAAA\n", False),
        ('{"a":1}', False),
        ("é", False),
        ("AAAA\x00", False),
    ],
)
def test_base64(text: str, *, good: bool) -> None:
    """Only the two alphabets, and at most two signs of padding at the end of something."""
    assert rules.is_base64(text) is good


@pytest.mark.parametrize("length", [32767, 32768, 32769, 65535, 65536, 65537, 65538, 100_000])
def test_base64_of_long_texts(length: int) -> None:
    """A long text, which is looked at in parts: one bad character anywhere, padding across the end of a part."""
    text = "A" * length
    assert rules.is_base64(text)
    assert rules.is_base64(text[:-2] + "==")
    assert not rules.is_base64(text[:-3] + "===")
    for at in {0, 1, length - 32769, length - 32768, length - 32767, 32767, 32768, length - 3, length - 1} & {
        *range(length)
    }:
        for bad in (" ", "=A"):
            assert not rules.is_base64(text[:at] + bad + text[at + len(bad) :] + "A")


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("a@b", True),
        (" A@B ", True),
        ("a@" + "b" * 252, True),
        ("a@" + "b" * 253, False),
        ("@b", False),
        ("a@", False),
        ("ab", False),
        ("a@b@c", False),
        ("a\x00@b", False),
        ("jürgen@example.com", True),
    ],
)
def test_emails(text: str, *, good: bool) -> None:
    """Three to 254 characters, one @ with text on both sides."""
    assert rules.is_email(rules.normalise_email(text)) is good
