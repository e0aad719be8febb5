"""Boxes: one opens under one key only, and one that is sealed to a public key for its private key only."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import ECB

from strongroom.client.errors import Tampered
from strongroom.client.format import box, primitives, public_box
from strongroom.client.format.public_box import KeyPair

POLYNOMIAL = 0xE1 << 120


def times(left: int, right: int) -> int:
    """A product in GCM's field."""
    product = 0
    for bit in range(127, -1, -1):
        if right >> bit & 1:
            product ^= left
        left = left >> 1 ^ (POLYNOMIAL if left & 1 else 0)
    return product


def inverse(value: int) -> int:
    """One divided by a value in GCM's field: its power to 2^128 - 2."""
    result, power = 1 << 127, value
    for _ in range(127):
        power = times(power, power)
        result = times(result, power)
    return result


def block(key: bytes, data: bytes) -> int:
    """One block through AES."""
    encryptor = Cipher(AES(key), ECB()).encryptor()  # noqa: S305 - the cipher itself, to take GCM apart
    return int.from_bytes(encryptor.update(data) + encryptor.finalize(), "big")


def two_way(first: bytes, second: bytes) -> bytes:
    """A ciphertext of two blocks with a tag that fits under both keys, for zero bytes as nonce and no associated data.

    The tag under a key is (C1·H³ + C2·H² + L·H) + E(nonce, 1). C1 is free, and C2 solves the equation of both tags.
    """
    chosen = int.from_bytes(b"the first block.", "big")
    lengths = 256  # bits of ciphertext, with none of associated data before them
    rest, squares = 0, 0
    for key in (first, second):
        h = block(key, bytes(16))
        square = times(h, h)
        rest ^= times(chosen, times(square, h)) ^ times(lengths, h) ^ block(key, bytes(12) + b"\0\0\0\1")
        squares ^= square
    last = times(rest, inverse(squares))
    h = block(first, bytes(16))
    square = times(h, h)
    tag = times(chosen, times(square, h)) ^ times(last, square) ^ times(lengths, h)
    tag ^= block(first, bytes(12) + b"\0\0\0\1")
    return b"".join(part.to_bytes(16, "big") for part in (chosen, last, tag))


def test_a_box_opens_under_one_key() -> None:
    """Somebody who knows two keys makes a ciphertext that both decrypt; the box opens for the one it commits to."""
    salt = primitives.random(32)
    keys = [primitives.random(32), primitives.random(32)]
    fresh = [primitives.hkdf(key, salt, box._INFO, 64) for key in keys]
    sealed = two_way(fresh[0][:32], fresh[1][:32])
    plain = [primitives.decrypt(each[:32], sealed, b"") for each in fresh]
    assert None not in plain
    assert plain[0] != plain[1]
    for mine, yours in ((0, 1), (1, 0)):
        made = salt + fresh[mine][32:] + sealed
        assert box.open_(keys[mine], made, b"") == plain[mine]
        with pytest.raises(Tampered):
            box.open_(keys[yours], made, b"")


@pytest.mark.parametrize(("key", "salt"), [(bytes(31), bytes(32)), (bytes(32), bytes(31)), (b"", bytes(32))])
def test_keys_and_salts_have_one_length(key: bytes, salt: bytes) -> None:
    """A shorter key or salt is a fault of the program."""
    with pytest.raises(ValueError, match="32 bytes"):
        box.seal(key, salt, b"", b"")


def test_what_is_sealed_to_a_public_key_opens_for_its_private_key() -> None:
    """For nobody else, for no other associated data, and with no bit turned over, not even one that X25519 ignores."""
    pair, other = KeyPair.of(primitives.random(32)), KeyPair.of(primitives.random(32))
    sealed = bytearray(public_box.seal(pair.public, b"secret", b"here", primitives.random))
    assert public_box.open_(pair, bytes(sealed), b"here") == b"secret"
    for reader, associated in ((other, b"here"), (pair, b"")):
        with pytest.raises(Tampered):
            public_box.open_(reader, bytes(sealed), associated)
    for at in range(len(sealed) * 8):
        sealed[at // 8] ^= 1 << at % 8
        with pytest.raises(Tampered):
            public_box.open_(pair, bytes(sealed), b"here")
        sealed[at // 8] ^= 1 << at % 8


@pytest.mark.parametrize("point", [bytes(32), b"\1" + bytes(31)], ids=["zero", "one"])
def test_nothing_is_sealed_to_a_point_of_low_order(point: bytes) -> None:
    """Its shared secret would be zero, whoever sealed it."""
    with pytest.raises(Tampered):
        public_box.seal(point, b"secret", b"", primitives.random)
    with pytest.raises(Tampered):
        public_box.open_(KeyPair.of(bytes(32)), point + bytes(80), b"")


def test_what_is_sealed_wrongly_to_a_public_key_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody here could open it, and nobody would notice until the day that it is needed."""
    real: Callable[..., bytes] = box.seal
    monkeypatch.setattr(box, "seal", lambda *given: bytes([real(*given)[0] ^ 1]) + real(*given)[1:])
    with pytest.raises(Tampered):
        public_box.seal(KeyPair.of(bytes(32)).public, b"secret", b"", primitives.random)


def test_a_filler_looks_like_a_sealed_box() -> None:
    """It begins with a public key: a number below the field's prime, without the bit that X25519 ignores."""
    fillers = [public_box.filler(148, primitives.random) for _ in range(200)]
    points = [int.from_bytes(one[:32], "little") for one in fillers]
    assert all(point < 2**255 - 19 for point in points)
    assert {len(one) for one in fillers} == {148}
    assert len({one[:32] for one in fillers}) == len({one[32:] for one in fillers}) == 200
