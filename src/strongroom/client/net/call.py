"""An API call as a value: what is sent, how its response is decoded, what its errors mean."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct

from strongroom.client.net.effects import Upload
from strongroom.errors import Refusal

T = TypeVar("T")

SMALL: Final = 1 << 20  # bytes of a response without ciphertext
LARGE: Final = 1 << 31  # of one with documents or a blob

encode = msgspec.json.Encoder().encode


class Call(Struct, Generic[T], frozen=True, kw_only=True):
    """An API call: a request, and how its response is read.

    `idempotent`: a retry is safe. `already_done`: the errors of a retry whose first attempt succeeded without a
    response. `authenticated`: a token or an API key is sent. `secrets`: what must not appear in an error.
    `keyring_version`: of the keyring whose keys the body is sealed with; a server with a newer one refuses it.
    """

    method: str
    path: str
    decode: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | Upload | None = None
    accept: str = "application/json"
    refusals: Mapping[int, type[Refusal]] = {}
    idempotent: bool = True
    authenticated: bool = True
    secrets: tuple[str, ...] = ()
    already_done: tuple[type[Refusal], ...] = ()
    max_bytes: int = SMALL
    wait: float = 0.0
    keyring_version: int | None = None

    def __repr__(self) -> str:
        return f"Call({self.method}, ...)"


class Factor(Struct, frozen=True):
    """A second factor as it is sent: a one-time code, a recovery code, or the assertion of a passkey."""

    sent: dict[str, Any]

    def spelled(self) -> dict[str, Any]:
        """As plain data for JSON."""
        return {name: str(value) if isinstance(value, str) else value for name, value in self.sent.items()}

    def __repr__(self) -> str:
        return "Factor(...)"


def with_factor(body: dict[str, Any], factor: Factor | None) -> dict[str, Any]:
    """A body with the second factor beside the password, if there is one."""
    return body if factor is None else body | {"secondFactor": factor.spelled()}


def proof(password: str, factor: Factor | None) -> bytes:
    """A body with nothing but the proof that the caller may change the account."""
    return encode(with_factor({"currentPassword": str(password)}, factor))


def factor_secrets(factor: Factor | None) -> tuple[str, ...]:
    """What must not appear in an error of a request with this second factor."""
    return () if factor is None else tuple(value for value in factor.sent.values() if isinstance(value, str))


def path_part(text: str) -> str:
    """A text as one part of a path."""
    return quote(text, safe="")
