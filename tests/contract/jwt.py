"""JSON Web Tokens made by hand, valid and forged."""

import base64
import hashlib
import hmac
import json
from typing import Any

from tests.kit.network.responses import Json
from tests.kit.servers.secret import SECRET

HEADER: Json = {"alg": "HS256", "typ": "JWT"}


def spell(data: bytes) -> str:
    """Bytes in base64url without padding, as a token spells them."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unspell(text: str) -> bytes:
    """The bytes behind one segment of a token."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def head(token: str) -> Json:
    """A token's header."""
    read: Json = json.loads(unspell(token.split(".", maxsplit=1)[0]))
    return read


def claims(token: str) -> Json:
    """A token's claims."""
    read: Json = json.loads(unspell(token.split(".")[1]))
    return read


def seal(header: str, payload: str, secret: str = SECRET, digest: str = "sha256") -> str:
    """Two spelled segments with the signature that belongs to them."""
    body = f"{header}.{payload}"
    return f"{body}.{spell(hmac.digest(secret.encode(), body.encode(), digest))}"


def signed(payload: Any, header: Json | None = None, secret: str = SECRET, digest: str = "sha256") -> str:
    """A token with this payload, an object or raw bytes."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload, separators=(",", ":")).encode()
    top = json.dumps(HEADER if header is None else header, separators=(",", ":")).encode()
    return seal(spell(top), spell(raw), secret, digest)


def resigned(token: str, **changes: Any) -> str:
    """The token with some claims changed and a signature that fits; its header stays letter for letter."""
    raw = json.dumps(claims(token) | changes, separators=(",", ":")).encode()
    return seal(token.split(".", maxsplit=1)[0], spell(raw))


def stripped(token: str, name: str) -> str:
    """The token without one of its claims, and a signature that fits."""
    kept = {key: value for key, value in claims(token).items() if key != name}
    return seal(token.split(".", maxsplit=1)[0], spell(json.dumps(kept, separators=(",", ":")).encode()))


def verifies(token: str, secret: str = SECRET) -> bool:
    """Whether the token's signature is the HMAC-SHA256 of its first two segments."""
    header, payload, signature = token.split(".")
    digest = hashlib.sha256
    wanted = hmac.new(secret.encode(), f"{header}.{payload}".encode(), digest).digest()
    return hmac.compare_digest(wanted, unspell(signature))
