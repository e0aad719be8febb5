"""SSH keys between text and PKCS#8, which CXF wants."""

from __future__ import annotations

import base64
import binascii
import re
import textwrap
from typing import Final

from strongroom.items.formats.encoding import b64url, from_b64url

_PKCS8: Final = re.compile(r"-----BEGIN PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END PRIVATE KEY-----\s*")


def pem(spelled: str) -> str | None:
    """A key of CXF as text in PEM form; None where it is none."""
    data = from_b64url(spelled)
    if not data:
        return None
    lines = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 64))
    return f"-----BEGIN PRIVATE KEY-----\n{lines}\n-----END PRIVATE KEY-----\n"


def pkcs8(text: str) -> str | None:
    """A private key in PEM form as CXF spells it; None for what cannot be converted, such as an encrypted key."""
    match = _PKCS8.fullmatch(text)
    if match is not None:
        try:
            return b64url(base64.b64decode("".join(match[1].split()), validate=True))
        except (binascii.Error, ValueError):
            return None
    if not text.startswith("-----BEGIN ") or len(text) > 100_000:
        return None
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    load = serialization.load_pem_private_key
    if "OPENSSH" in text[:40]:
        load = serialization.load_ssh_private_key
    try:
        key = load(text.encode(), None)
        return b64url(
            key.private_bytes(
                serialization.Encoding.DER, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return None


def algorithm(text: str, public_key: str) -> str:
    """The name of a key's algorithm, as SSH names it; empty where it cannot be told."""
    first = public_key.split(maxsplit=1)[:1]
    if first:
        return first[0]
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    spelled = pkcs8(text)
    data = from_b64url(spelled) if spelled else None
    try:
        key = serialization.load_der_private_key(data, None) if data else None
        if key is None:
            return ""
        public = key.public_key().public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        return ""
    return public.split()[0].decode()
