"""Secrets are masked in a program's output, however it is cut, and in the encodings that programs use."""

from __future__ import annotations

import base64
import json
import random
import re
import shlex
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strongroom.programs.masking import MASK, SHORTEST, Masker

SECRET = 'pa$$ w/örd+"quoted" & <more>?'
PEM = (
    "-----BEGIN PRIVATE KEY-----\n" + "\n".join("MIIE" + f"{line:02}" * 28 for line in range(20)) + "\n-----END-----\n"
)


def in_pieces(masker: Masker, text: bytes, size: int) -> bytes:
    """The masked text, fed in pieces of this size."""
    one = masker.filter()
    return b"".join(one.feed(text[at : at + size]) for at in range(0, len(text), size)) + one.end()


@pytest.mark.parametrize("size", [1, 2, 7, 10**6])
def test_a_secret_is_masked_wherever_the_output_is_cut(size: int) -> None:
    """A secret that comes in two reads, or one byte at a time, is replaced; all else is as it was."""
    masker = Masker([SECRET, "hunter2"])
    text = f"a {SECRET} b hunter2hunter2, hunter\nhunter2".encode()
    assert in_pieces(masker, text, size) == b"a <masked> b <masked>, hunter\n<masked>"


ENCODED = {
    "plain": SECRET,
    "base64": base64.b64encode(SECRET.encode()).decode(),
    "base64 for URLs": base64.urlsafe_b64encode(SECRET.encode()).decode().rstrip("="),
    "url": quote(SECRET, safe=""),
    "url with slashes": quote(SECRET),
    "url in small letters": re.sub("%..", lambda match: match[0].lower(), quote(SECRET, safe="")),
    "form": quote_plus(SECRET),
    "json": json.dumps(SECRET),
    "json as it is": json.dumps(SECRET, ensure_ascii=False),
    "json of Go": json.dumps(SECRET, ensure_ascii=False).translate({ord(s): f"\\u{ord(s):04x}" for s in "<>&"}),
    "shell": shlex.quote(SECRET),
    "double quotes": SECRET.replace("$", "\\$").replace('"', '\\"'),
    "repr": repr(SECRET),
}


@pytest.mark.parametrize("name", ENCODED)
def test_encoded_forms_are_masked(name: str) -> None:
    """Each encoding that programs commonly use."""
    shown = Masker([SECRET])(f"x {ENCODED[name]} y".encode())
    assert b"x " in shown
    assert MASK in shown
    assert b"rd" not in shown


@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("after", ["", "\n", ":x", "@ho"])
def test_a_secret_inside_a_longer_base64_text_is_masked(before: str, after: str) -> None:
    """As in a header `Authorization: Basic`, which encodes the user with the password: at most a few bits are left."""
    secret = "correct-horse-battery"
    text = base64.b64encode(f"{before}{secret}{after}".encode())
    shown = Masker([secret])(text)
    assert MASK in shown
    left = shown.replace(MASK, b"")
    assert len(left) <= len(base64.b64encode((before + after).encode())) + 4
    assert base64.b64encode(secret.encode())[4:20] not in shown


def test_the_lines_of_a_secret_are_masked_one_by_one() -> None:
    """A key in PEM form, as it is, indented, with other line ends, as JSON and as base64 with line breaks."""
    masker = Masker([PEM])
    lines = PEM.split()
    for text in (
        PEM,
        PEM.replace("\n", "\r\n"),
        "".join(f"    {line}\n" for line in PEM.splitlines()),
        json.dumps({"key": PEM}),
        base64.b64encode(PEM.encode()).decode(),
        base64.encodebytes(PEM.encode()).decode(),
    ):
        shown = in_pieces(masker, text.encode(), 11)
        assert MASK in shown
        assert not any(line.encode() in shown for line in lines if len(line) > 10)
        assert not any(base64.b64encode(PEM.encode())[at : at + 24] in shown for at in range(0, 1000, 8))


def test_secrets_that_overlap_or_touch_are_masked_whole() -> None:
    """Of two secrets that share letters, no end is left."""
    masker = Masker(["abcdef", "defghi", "abcd", "secret", "secret-and-more"])
    for size in (1, 3, 100):
        assert in_pieces(masker, b"x abcdefghi y", size) == b"x <masked> y"
        assert in_pieces(masker, b"secret-and-more", size) == MASK
        assert in_pieces(masker, b"secret-and-less ", size) == b"<masked>-and-less "


def test_the_beginning_of_a_secret_at_the_end_is_masked() -> None:
    """Output that ends in the middle of a secret, because the program was killed, does not show its first half."""
    assert Masker(["correct-horse-battery"])(b"key: correct-horse-b") == b"key: <masked>"
    assert Masker(["correct-horse-battery"])(b"key: cor") == b"key: cor"


def test_short_values_are_not_masked() -> None:
    """Fewer than four characters stand everywhere; masking them would make every output unreadable."""
    masker = Masker(["abc", "", "é" * (SHORTEST - 1)])
    assert masker("abc ééé".encode()) == "abc ééé".encode()
    assert Masker(["abcd"])(b"abcd") == MASK


def test_ordinary_output_is_shown_at_once() -> None:
    """A prompt without a line end is not held back, unless a secret begins with its end."""
    one = Masker(["correct-horse"]).filter()
    assert one.feed(b"Continue? ") == b"Continue? "
    assert one.feed(b"corr") == b""
    assert one.feed(b"idor") == b"corridor"


def test_memory_is_bounded() -> None:
    """Long secrets, and output that repeats the beginning of one, hold back little."""
    long = "".join(random.Random(1).choices("abcdefgh", k=100_000))  # noqa: S311
    one = Masker([long, "aaaa", "a" * 300]).filter()
    for text in (long.encode(), b"a" * 100_000):
        for at in range(0, len(text), 4096):
            one.feed(text[at : at + 4096])
            assert len(one._held) < 512
    assert long.encode()[:600] not in Masker([long])(b"x" + long.encode())
    assert Masker([long])(b"x" + long.encode() + b"y") == b"x<masked>y"


def test_a_masker_shows_nothing_of_its_secrets() -> None:
    """Neither its repr nor its filter's."""
    masker = Masker(["hunter2hunter2"])
    assert "hunter2" not in repr(masker) + repr(masker.filter())


@given(
    st.lists(st.text("ab'\"/ \\é%\n", min_size=SHORTEST, max_size=12), min_size=1, max_size=4),
    st.lists(st.one_of(st.integers(0, 3), st.text("ab'\"/ \\é%", max_size=6)), max_size=12),
    st.integers(1, 9),
)
def test_no_cut_lets_a_secret_through(secrets: list[str], parts: list[int | str], size: int) -> None:
    """Whatever is printed and wherever it is cut: the same is shown as for the whole, without a one-line secret."""
    text = "".join(part if isinstance(part, str) else secrets[part % len(secrets)] for part in parts).encode()
    masker = Masker(secrets)
    shown = in_pieces(masker, text, size)
    assert shown.replace(MASK + MASK, MASK) == masker(text).replace(MASK + MASK, MASK)
    for secret in secrets:
        if "\n" not in secret:
            assert not any(secret.encode() in part for part in shown.split(MASK))


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("length", [99, 100, 200])  # that leave each rest of a division by three
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_wrapped_base64_of_a_long_secret_is_masked(
    width: int, length: int, end: str, encode: Callable[[bytes], bytes]
) -> None:
    """As openssl and base64 print it, of a value alone and as `echo` gives it: no line is left, not even the last."""
    secret = "".join(random.Random(1).choices("abcdefghijklmnop?~>", k=length))  # noqa: S311
    whole = encode((secret + end).encode())
    text = b"".join(whole[at : at + width] + b"\n" for at in range(0, len(whole), width))
    for masked in (secret, f"{secret}\n"):
        shown = in_pieces(Masker([masked]), b"x " + text + b"and more", 11)
        assert (shown[:10], shown[-8:]) == (b"x <masked>", b"and more")
        assert not any(whole[at : at + 6] in shown for at in range(len(whole) - 5))


@pytest.mark.parametrize("secret", ["correct-horse-bat", "correct-horse-batt", "correct-horse-batte", SECRET])
@pytest.mark.parametrize("size", [1, 10**6])
def test_a_secret_that_ends_with_a_newline_is_masked_without_it(secret: str, size: int) -> None:
    """Programs strip what they read: its encoded forms are masked too where more follows, and not at the end alone."""
    masker = Masker([f"{secret}\n"])
    encoded = base64.b64encode(secret.encode()).decode()
    assert in_pieces(masker, f"x {encoded} and more".encode(), size).replace(b"=", b"") == b"x <masked> and more"
    for url in (quote(secret, safe=""), quote_plus(secret)):
        assert in_pieces(masker, f"x {url} and more".encode(), size) == b"x <masked> and more"
