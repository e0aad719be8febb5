"""Secrets that the server checks: passwords, tokens, API keys. It never makes or sees a key that decrypts."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import os
import re
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from msgspec import Struct

from strongroom.identifiers import new_uid

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["access", "refresh"]

# Passwords: Argon2id with OWASP's parameters.
_MEMORY, _PASSES, _LANES, _SALT, _LENGTH = 19_456, 2, 1, 16, 32

_PARAMETERS: Final = f"$argon2id$v=19$m={_MEMORY},t={_PASSES},p={_LANES}$"

# A hash that no password matches, with the parameters of a real one: an unknown email costs the same work.
DUMMY_HASH: Final = f"{_PARAMETERS}bm9ib2R5LW5vYm9keS0xNg$" + "A" * 43


def hash_password(password: str) -> str:
    """A PHC string for this password."""
    kdf = Argon2id(salt=os.urandom(_SALT), length=_LENGTH, iterations=_PASSES, lanes=_LANES, memory_cost=_MEMORY)
    return kdf.derive_phc_encoded(password.encode())


def is_outdated(phc: str) -> bool:
    """Whether a hash was made with other parameters than today's, and is to be made anew at the next login."""
    return not phc.startswith(_PARAMETERS)


def password_matches(password: str, phc: str) -> bool:
    """Whether the password is the one behind this PHC string."""
    try:
        Argon2id.verify_phc_encoded(password.encode(), phc)
    except InvalidKey:
        return False
    return True


def hashing_pool(on_refusal: Callable[[OSError], None] = lambda _: None) -> ThreadPoolExecutor:
    """Two threads below normal priority: a storm of logins slows logins, not everybody.

    Where the system refuses the lower priority, as a filter on system calls may, they hash all the same.
    """
    return ThreadPoolExecutor(
        max_workers=2, thread_name_prefix="argon2", initializer=_lower_priority, initargs=(on_refusal,)
    )


def _lower_priority(on_refusal: Callable[[OSError], None]) -> None:
    if hasattr(os, "setpriority"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        except OSError as error:
            on_refusal(error)


# Tokens: JWS compact serialisation, HS256 only. Written out because the rules are narrower than any library's: one
# algorithm, one header, one spelling, seven claims, no leeway. docs/decisions/0004 has the reasons.


class Claims(Struct, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """What a token says. All seven are required; `nbf`, which we never write, is honoured."""

    iss: str
    sub: str
    sid: str
    jti: str
    iat: int | float
    exp: int | float
    typ: Kind
    nbf: int | float = 0

    def in_force(self, now: int) -> bool:
        """Whether it counts at `now` (milliseconds)."""
        return self.nbf * 1000 <= now < self.exp * 1000


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


_HEADER = {"alg": "HS256", "typ": "JWT"}
_HEADER_TEXT = _b64(msgspec.json.encode(_HEADER))
_SHAPE = re.compile(rb"[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{43}")
_REMEMBERED = 20_000
_LATEST = (2**63 - 1) // 1000  # the last second that a clock of milliseconds holds
_encode = msgspec.json.Encoder().encode
_decode_claims = msgspec.json.Decoder(Claims).decode


class TokenSigner:
    """Signs tokens and checks them; remembers those that were good until they expire."""

    def __init__(self, secret: bytes, issuer: str, previous: bytes = b"") -> None:
        self._secrets = (secret, previous) if previous else (secret,)
        self._issuer = issuer
        self._good: dict[bytes, Claims] = {}

    def __repr__(self) -> str:
        return "TokenSigner(...)"

    def sign(self, claims: Claims) -> str:
        """The token that says these claims."""
        text = _HEADER_TEXT + b"." + _b64(_encode(claims))
        return (text + b"." + _signature(self._secrets[0], text)).decode()

    def claims(self, token: str, kind: Kind, now: int) -> Claims | None:
        """What a token says, if we signed it, it is of this kind, and it is in force at `now` (milliseconds)."""
        claims = self._checked(token)
        return claims if claims is not None and claims.typ == kind and claims.in_force(now) else None

    def signed(self, token: str) -> bool:
        """Whether we signed it, with a secret that we still accept, however long ago."""
        return self._checked(token) is not None

    def cached(self, header: bytes, now: int) -> Claims | None:
        """What a header says that carried a good access token before, if it is in force still."""
        claims = self._good.get(header)
        if claims is not None and not claims.in_force(now):
            del self._good[header]
            return None
        return claims

    def cache(self, header: bytes, claims: Claims) -> None:
        """Remember a header whose access token was found to be good."""
        if len(self._good) >= _REMEMBERED:
            del self._good[next(iter(self._good))]
        self._good[header] = claims

    def _checked(self, token: str) -> Claims | None:
        try:
            raw = token.encode("ascii")
        except UnicodeEncodeError:
            return None
        if not _SHAPE.fullmatch(raw):
            return None
        text, _, signature = raw.rpartition(b".")
        if not any(hmac.compare_digest(signature, _signature(secret, text)) for secret in self._secrets):
            return None
        header, _, payload = text.partition(b".")
        try:
            if header != _HEADER_TEXT and msgspec.json.decode(_unb64(header)) != _HEADER:
                return None
            claims = _decode_claims(_unb64(payload))
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if claims.iss != self._issuer or "\0" in claims.sub + claims.sid + claims.jti:
            return None  # no engine is asked for a name that it cannot store
        if not all(0 <= moment <= _LATEST for moment in (claims.iat, claims.exp, claims.nbf)):
            return None
        return claims


def _signature(secret: bytes, text: bytes) -> bytes:
    return _b64(hmac.digest(secret, text, "sha256"))


class Lifetime(NamedTuple):
    """How long a token lives, in milliseconds. Claims in whole seconds would cut a short life: those are `exact`."""

    milliseconds: int
    exact: bool = False

    def validity(self, now: int) -> tuple[int | float, int | float]:
        """`iat` and `exp` for a token that is issued now."""
        if self.exact:
            return now / 1000, (now + self.milliseconds) / 1000
        return now // 1000, now // 1000 + self.milliseconds // 1000


class TokenPair(Struct, frozen=True):
    """An access and a refresh token of one session, and what is recorded of them."""

    session_id: str
    access_token: str
    refresh_token: str
    jti: str
    refresh_expires_at: int
    session_expires_at: int

    def __repr__(self) -> str:
        return f"TokenPair(session_id={self.session_id!r})"


class TokenIssuer:
    """Issues pairs of tokens."""

    def __init__(self, tokens: TokenSigner, issuer: str, access: Lifetime, refresh: Lifetime) -> None:
        self._tokens = tokens
        self._issuer = issuer
        self._access = access
        self._refresh = refresh

    def __repr__(self) -> str:
        return "TokenIssuer(...)"

    def pair(self, user_id: str, session_id: str, now: int) -> TokenPair:
        """A fresh pair for this session. The session outlives whichever of the two lives longer."""
        access, _, access_until = self._token(user_id, session_id, "access", self._access, now)
        refresh, jti, refresh_until = self._token(user_id, session_id, "refresh", self._refresh, now)
        return TokenPair(session_id, access, refresh, jti, refresh_until, max(access_until, refresh_until))

    def _token(self, user_id: str, session_id: str, kind: Kind, life: Lifetime, now: int) -> tuple[str, str, int]:
        issued, expires = life.validity(now)
        jti = new_uid(now)
        claims = Claims(self._issuer, user_id, session_id, jti, issued, expires, kind)
        return self._tokens.sign(claims), jti, math.ceil(expires * 1000)


def _unb64(text: bytes) -> bytes:
    data = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if _b64(data) != text:
        raise binascii.Error("another spelling")
    return data


# API keys: srk_ and 48 characters of base64url, which hold 32 random bytes and a CRC-32 of them. The checksum lets a
# scanner recognise a leaked key, and lets us refuse a typo without a query; it is no secret.

KEY_PREFIX: Final = "srk_"
_KEY_SHAPE = re.compile(r"srk_[A-Za-z0-9_-]{48}")


def new_api_key() -> str:
    """A fresh API key."""
    secret = os.urandom(32)
    return KEY_PREFIX + _b64(secret + _checksum(secret)).decode()


def api_key_hash(key: str) -> str | None:
    """What is stored of a key, or None if it cannot be one."""
    if not _KEY_SHAPE.fullmatch(key):
        return None
    data = base64.urlsafe_b64decode(key.removeprefix(KEY_PREFIX))
    if _checksum(data[:32]) != data[32:]:
        return None
    return hashlib.sha256(key.encode()).hexdigest()


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(KEY_PREFIX.encode() + data).to_bytes(4, "big")


def certificate_expiry(pem: bytes) -> float:
    """When the first of these certificates ends, in seconds since 1970; ValueError if there is none."""
    from cryptography import x509  # which takes a fifth of the start of a process, and most need it not

    return x509.load_pem_x509_certificates(pem)[0].not_valid_after_utc.timestamp()
