"""One-time codes (RFC 6238) from a secret in base32 or an `otpauth://` URI, and the codes of Steam."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from strongroom.items.errors import InvalidTotp
from strongroom.items.types import OneTimeCode

ALGORITHMS: Final = {"sha1": "sha1", "sha256": "sha256", "sha512": "sha512", "steam": "sha1"}
_STEAM: Final = "23456789BCDFGHJKMNPQRTVWXY"  # the characters of Steam's codes
_STEAM_LENGTH: Final = 5
_LONGEST_PERIOD: Final = 86_400
_LONGEST_TEXT: Final = 10_000


def code(totp: OneTimeCode, now: float) -> str:
    """The code at `now`, in seconds since 1970."""
    secret, name = _checked(totp)
    digest = hmac.digest(secret, (int(now) // totp.period).to_bytes(8, "big"), name)
    at = digest[-1] & 15
    number = int.from_bytes(digest[at : at + 4], "big") & 0x7FFF_FFFF
    if totp.algorithm != "steam":
        return f"{number % 10**totp.digits:0{totp.digits}}"
    found = ""
    for _ in range(_STEAM_LENGTH):
        number, rest = divmod(number, len(_STEAM))
        found += _STEAM[rest]
    return found


def seconds_left(totp: OneTimeCode, now: float) -> int:
    """For how many seconds the code of `now` is still the current one."""
    _checked(totp)
    return totp.period - int(now) % totp.period


def parse(text: str) -> OneTimeCode:
    """What a text describes: an `otpauth://totp/…` URI, `steam://SECRET`, or a secret in base32."""
    text = text.strip()
    if len(text) > _LONGEST_TEXT:
        raise InvalidTotp
    scheme, separator, after = text.partition("://")
    if not separator:
        found = OneTimeCode(secret=_spelled(text))
    elif scheme.lower() == "steam":
        found = OneTimeCode(secret=_spelled(after), algorithm="steam", digits=_STEAM_LENGTH)
    elif scheme.lower() == "otpauth":
        found = _from_uri(text)
    else:
        raise InvalidTotp
    _checked(found)
    return found


def uri(totp: OneTimeCode) -> str:
    """The `otpauth://` URI, as apps read it from a QR code."""
    _checked(totp)
    label = quote(totp.username, safe="@")
    if totp.issuer:
        label = f"{quote(totp.issuer, safe='')}:{label}"
    parameters: dict[str, str | int] = {"secret": totp.secret}
    if totp.issuer:
        parameters["issuer"] = totp.issuer
    if totp.algorithm == "steam":
        parameters["encoder"] = "steam"
    elif totp.algorithm != "sha1":
        parameters["algorithm"] = totp.algorithm.upper()
    if totp.digits != 6 and totp.algorithm != "steam":
        parameters["digits"] = totp.digits
    if totp.period != 30:
        parameters["period"] = totp.period
    return f"otpauth://totp/{label}?{urlencode(parameters, quote_via=quote)}"


def _from_uri(text: str) -> OneTimeCode:
    try:
        parts = urlsplit(text)
        given = dict(parse_qsl(parts.query, keep_blank_values=True, max_num_fields=50))
        digits, period = int(given.get("digits") or 6), int(given.get("period") or 30)
    except ValueError:
        raise InvalidTotp("The otpauth URI cannot be read.") from None
    if parts.netloc.lower() != "totp":
        raise InvalidTotp("Only otpauth URIs of the kind totp are supported: the codes of hotp follow on a counter.")
    issuer, separator, username = unquote(parts.path.lstrip("/")).partition(":")
    if not separator:
        issuer, username = "", issuer
    algorithm = (given.get("algorithm") or "sha1").lower().replace("-", "")
    if given.get("encoder", "").lower() == "steam":
        algorithm, digits = "steam", _STEAM_LENGTH
    return OneTimeCode(
        secret=_spelled(given.get("secret", "")),
        algorithm=algorithm,
        digits=digits,
        period=period,
        issuer=given.get("issuer") or issuer.strip(),
        username=username.strip(),
    )


def _spelled(secret: str) -> str:
    """A secret as it is stored: without spaces, hyphens and padding, in capitals."""
    return re.sub(r"[\s=-]", "", secret).upper()


def _checked(totp: OneTimeCode) -> tuple[bytes, str]:
    """The secret and the name of its hash; refused where no code can be made."""
    name = ALGORITHMS.get(totp.algorithm)
    if name is None:
        raise InvalidTotp("The algorithm of one-time codes is sha1, sha256, sha512 or steam.")
    if totp.algorithm != "steam" and not 6 <= totp.digits <= 8:
        raise InvalidTotp("One-time codes have 6 to 8 digits.")
    if not 1 <= totp.period <= _LONGEST_PERIOD:
        raise InvalidTotp(f"The period of one-time codes is 1 to {_LONGEST_PERIOD} seconds.")
    spelled = _spelled(totp.secret)
    try:
        secret = base64.b32decode(spelled + "=" * (-len(spelled) % 8))
    except (binascii.Error, ValueError):
        secret = b""
    if not secret:
        raise InvalidTotp("The secret of one-time codes is not base32.")
    return secret, name
