"""Passwords, tokens, API keys, invitations, tickets: the secrets that the server verifies. None of them decrypts."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import math
import os
import re
import secrets
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from string import ascii_lowercase, ascii_uppercase, whitespace
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec
from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from msgspec import Struct

from strongroom.identifiers import new_uid

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = Literal["access", "refresh"]
CLOCK_LEEWAY: Final = 366 * 86_400_000  # in ms: a clock that is set back by less logs nobody out

# Passwords: Argon2id with OWASP's parameters.
_MEMORY, _PASSES, _LANES, _SALT, _LENGTH = 19_456, 2, 1, 16, 32
HASHING_THREADS: Final = 2

_PARAMETERS: Final = f"$argon2id$v=19$m={_MEMORY},t={_PASSES},p={_LANES}$"

# A hash that no password matches, with real parameters: a login with an unknown email costs the same work.
DUMMY_HASH: Final = f"{_PARAMETERS}bm9ib2R5LW5vYm9keS0xNg$" + "A" * 43


def hash_password(password: str) -> str:
    """The Argon2id hash of a password, as a PHC string."""
    kdf = Argon2id(salt=os.urandom(_SALT), length=_LENGTH, iterations=_PASSES, lanes=_LANES, memory_cost=_MEMORY)
    return kdf.derive_phc_encoded(password.encode())


def is_outdated(stored: str) -> bool:
    """Whether a hash has other parameters than the current ones, and is replaced at the next login."""
    return not stored.removeprefix(_MARK).startswith(_PARAMETERS)


def password_matches(password: str, stored: str) -> bool:
    """Whether the password matches this stored hash: a PHC string, with or without the mark of a second factor."""
    try:
        Argon2id.verify_phc_encoded(password.encode(), stored.removeprefix(_MARK))
    except InvalidKey:
        return False
    return True


# The mark before the password hash of an account with a second factor. It is read together with the hash, so the login
# of an account without one costs no further statement. And every change of it is a change of the hash: a login or a
# proof of the password that began before the enrolment, and asked for no second factor, fails.
_MARK: Final = "second-factor:"


def needs_second_factor(stored: str | None) -> bool:
    """Whether a password alone is not enough for the account with this stored hash."""
    return stored is not None and stored.startswith(_MARK)


def marked(stored: str, *, second_factor: bool) -> str:
    """A stored hash with or without the mark of a second factor."""
    phc = stored.removeprefix(_MARK)
    return _MARK + phc if second_factor else phc


def hashing_pool(on_refusal: Callable[[OSError], None] = lambda _: None) -> ThreadPoolExecutor:
    """A pool of two threads of low priority: a burst of logins slows down logins, not other requests.

    If the system refuses the lower priority, as a system call filter may, they hash at normal priority.
    """
    return ThreadPoolExecutor(
        max_workers=HASHING_THREADS,
        thread_name_prefix="argon2",
        initializer=_lower_priority,
        initargs=(on_refusal,),
    )


def _lower_priority(on_refusal: Callable[[OSError], None]) -> None:
    if hasattr(os, "setpriority"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        except OSError as error:
            on_refusal(error)


# Tokens: JWS compact serialisation, HS256 only. Written out because the rules are narrower than any library's: one
# algorithm, one header, one encoding, seven claims, no leeway. docs/decisions/0004 has the reasons.


class Claims(Struct, frozen=True, forbid_unknown_fields=False, omit_defaults=True):
    """The claims of a token. All seven are required; `nbf`, which this server never issues, is honoured."""

    iss: str
    sub: str
    sid: str
    jti: str
    iat: int | float
    exp: int | float
    typ: Kind
    nbf: int | float = 0

    def is_valid_at(self, now: int) -> bool:
        """Whether `now` (milliseconds) is between `nbf` and `exp`, and not long before `iat`."""
        return self.nbf * 1000 <= now < self.exp * 1000 and self.iat * 1000 <= now + CLOCK_LEEWAY


def _b64(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


_HEADER = {"alg": "HS256", "typ": "JWT"}
_HEADER_TEXT = _b64(msgspec.json.encode(_HEADER))
_SHAPE = re.compile(rb"[A-Za-z0-9_-]{1,512}\.[A-Za-z0-9_-]{1,4096}\.[A-Za-z0-9_-]{43}")
_CACHE_SIZE = 20_000
_LATEST = (2**63 - 1) // 1000  # the last second that fits into 64 bits of milliseconds
_encode = msgspec.json.Encoder().encode
_decode_claims = msgspec.json.Decoder(Claims).decode


class TokenSigner:
    """Signs and verifies tokens; caches the claims of verified ones until they expire."""

    def __init__(self, secret: bytes, issuer: str, previous: bytes = b"") -> None:
        self._secrets = (secret, previous) if previous else (secret,)
        self._issuer = issuer
        self._cache: dict[bytes, Claims] = {}

    def __repr__(self) -> str:
        return "TokenSigner(...)"

    def sign(self, claims: Claims) -> str:
        """The signed token with these claims."""
        text = _HEADER_TEXT + b"." + _b64(_encode(claims))
        return (text + b"." + _signature(self._secrets[0], text)).decode()

    def claims(self, token: str, kind: Kind, now: int) -> Claims | None:
        """The claims of a token, if its signature, kind and times are valid at `now` (milliseconds); else None."""
        claims = self._verified(token)
        return claims if claims is not None and claims.typ == kind and claims.is_valid_at(now) else None

    def signed(self, token: str) -> bool:
        """Whether its signature is valid under an accepted secret; it may be expired."""
        return self._verified(token) is not None

    def cached(self, header: bytes, now: int) -> Claims | None:
        """The cached claims of an authorization header, if they are still valid."""
        claims = self._cache.get(header)
        if claims is not None and not claims.is_valid_at(now):
            del self._cache[header]
            return None
        return claims

    def cache(self, header: bytes, claims: Claims) -> None:
        """Cache the claims of an authorization header whose access token was verified."""
        if len(self._cache) >= _CACHE_SIZE:
            del self._cache[next(iter(self._cache))]
        self._cache[header] = claims

    def _verified(self, token: str) -> Claims | None:
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
        if not claims.jti or claims.iss != self._issuer or "\0" in claims.sub + claims.sid + claims.jti:
            return None  # PostgreSQL cannot store NUL, and no query is sent with one
        if not all(0 <= time <= _LATEST for time in (claims.iat, claims.exp, claims.nbf)):
            return None
        return claims


def _signature(secret: bytes, text: bytes) -> bytes:
    return _b64(hmac.digest(secret, text, "sha256"))


class Lifetime(NamedTuple):
    """The lifetime of a token in milliseconds. `exact`: the claims have fractions of a second."""

    milliseconds: int
    exact: bool = False

    def validity(self, now: int) -> tuple[int | float, int | float]:
        """`iat` and `exp` of a token that is issued now."""
        if self.exact:
            return now / 1000, (now + self.milliseconds) / 1000
        return now // 1000, now // 1000 + self.milliseconds // 1000


class TokenPair(Struct, frozen=True):
    """An access and a refresh token of one session, and what the database stores about them."""

    session_id: str
    access_token: str
    refresh_token: str
    jti: str
    refresh_expires_at: int
    session_expires_at: int
    access_expires_at: int

    def __repr__(self) -> str:
        return f"TokenPair(session_id={self.session_id!r})"


class TokenIssuer:
    """Issues pairs of access and refresh tokens."""

    def __init__(self, tokens: TokenSigner, issuer: str, access: Lifetime, refresh: Lifetime) -> None:
        self._tokens = tokens
        self._issuer = issuer
        self._access = access
        self._refresh = refresh

    def __repr__(self) -> str:
        return "TokenIssuer(...)"

    def pair(self, user_id: str, session_id: str, now: int) -> TokenPair:
        """A new pair for this session, which lasts until both tokens have expired."""
        access, _, access_until = self._token(user_id, session_id, "access", self._access, now)
        refresh, jti, refresh_until = self._token(user_id, session_id, "refresh", self._refresh, now)
        until = max(access_until, refresh_until)
        return TokenPair(session_id, access, refresh, jti, refresh_until, until, access_until)

    def _token(self, user_id: str, session_id: str, kind: Kind, life: Lifetime, now: int) -> tuple[str, str, int]:
        issued, expires = life.validity(now)
        jti = new_uid(now)
        claims = Claims(self._issuer, user_id, session_id, jti, issued, expires, kind)
        return self._tokens.sign(claims), jti, math.ceil(expires * 1000)


def _unb64(text: bytes) -> bytes:
    data = base64.urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    if _b64(data) != text:
        raise binascii.Error("not canonical base64url")
    return data


# API keys: srk_ and 48 characters of base64url, which hold 32 random bytes and a CRC-32 of them. The checksum lets a
# scanner recognise a leaked key, and lets the server refuse a typo without a query; it is no secret.

KEY_PREFIX: Final = "srk_"
_KEY_SHAPE = re.compile(r"srk_[A-Za-z0-9_-]{48}")


def new_api_key() -> str:
    """A new API key."""
    secret = os.urandom(32)
    return KEY_PREFIX + _b64(secret + _checksum(secret)).decode()


def api_key_hash(key: str) -> str | None:
    """The hash under which a key is stored, or None if it is malformed."""
    if not _KEY_SHAPE.fullmatch(key):
        return None
    data = base64.urlsafe_b64decode(key.removeprefix(KEY_PREFIX))
    if _checksum(data[:32]) != data[32:]:
        return None
    return hashlib.sha256(key.encode()).hexdigest()


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(KEY_PREFIX.encode() + data).to_bytes(4, "big")


# Crockford's alphabet, which has no I, L, O and U, for what people read out and type.

_SIGNS: Final = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TYPED: Final = str.maketrans(ascii_lowercase, ascii_uppercase, f"{whitespace}-")
_READ_AS: Final = str.maketrans("OIL", "011")


def _random_signs(length: int) -> str:
    return "".join(secrets.choice(_SIGNS) for _ in range(length))


def _groups(signs: str, size: int) -> list[str]:
    return [signs[at : at + size] for at in range(0, len(signs), size)]


def _signs_of(typed: str, length: int, prefix: str = "") -> str | None:
    """The signs of a typed code, or None. Case, spaces and hyphens do not count, and O, I, L are read as 0, 1, 1."""
    signs = typed.translate(_TYPED).removeprefix(prefix).translate(_READ_AS)
    return signs if len(signs) == length and set(signs) <= set(_SIGNS) else None


# Invitations: SRI and 25 signs, which are 125 random bits.

_INVITATION_PREFIX: Final = "SRI"
_INVITATION_LENGTH: Final = 25


def new_invitation() -> tuple[str, str]:
    """A new invitation code, and the hash under which it is stored."""
    signs = _random_signs(_INVITATION_LENGTH)
    return "-".join([_INVITATION_PREFIX, *_groups(signs, 5)]), _hash_of_signs(signs)


def invitation_hash(code: str) -> str | None:
    """The hash under which an invitation is stored, or None if it is malformed."""
    signs = _signs_of(code, _INVITATION_LENGTH, _INVITATION_PREFIX)
    return None if signs is None else _hash_of_signs(signs)


def _hash_of_signs(signs: str) -> str:
    return hashlib.sha256(f"{_INVITATION_PREFIX}{signs}".encode()).hexdigest()


# Recovery codes of the second factor: 16 signs, which are 80 random bits.

RECOVERY_CODES: Final = 10  # that an account gets at a time
_RECOVERY_LENGTH: Final = 16


def new_recovery_codes(user_id: str) -> dict[str, str]:
    """New recovery codes of an account, each with the hash under which it is stored."""
    made = [_random_signs(_RECOVERY_LENGTH) for _ in range(RECOVERY_CODES)]
    return {"-".join(_groups(signs, 4)): _recovery_hash(user_id, signs) for signs in made}


def recovery_code_hash(user_id: str, code: str) -> str | None:
    """The hash under which a recovery code of this account is stored, or None if it is malformed."""
    signs = _signs_of(code, _RECOVERY_LENGTH)
    return None if signs is None else _recovery_hash(user_id, signs)


def _recovery_hash(user_id: str, signs: str) -> str:
    return hashlib.sha256(f"recovery code {user_id} {signs}".encode()).hexdigest()


# Tickets of a login whose second factor is still to come: srt_ and 32 random bytes in base64url.

_TICKET_PREFIX: Final = "srt_"
_TICKET_SHAPE = re.compile(rf"{_TICKET_PREFIX}[A-Za-z0-9_-]{{43}}")


def new_ticket() -> tuple[str, str]:
    """A new ticket, and the hash under which it is stored."""
    ticket = _TICKET_PREFIX + _b64(os.urandom(32)).decode()
    return ticket, _hash_of_ticket(ticket)


def ticket_hash(ticket: str) -> str | None:
    """The hash under which a ticket is stored, or None if it is malformed."""
    return _hash_of_ticket(ticket) if _TICKET_SHAPE.fullmatch(ticket) else None


def _hash_of_ticket(ticket: str) -> str:
    return hashlib.sha256(ticket.encode()).hexdigest()


def password_binding(stored: str) -> str:
    """What binds a ticket to the stored password hash that was verified."""
    return hashlib.sha256(f"ticket {stored}".encode()).hexdigest()


def certificate_expiry(pem: bytes) -> float:
    """When the first of these certificates expires, in seconds since 1970; ValueError if there is none."""
    from cryptography import x509  # imported here: it takes a fifth of the start-up time, and few processes need it

    return x509.load_pem_x509_certificates(pem)[0].not_valid_after_utc.timestamp()
