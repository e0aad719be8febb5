"""The rule of each field, at its borders."""

from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, made
from tests.kit.people.api_user import PASSWORD, ApiUser, unique_email
from tests.kit.rows import each_row
from tests.kit.servers.process import Server

from .checks import refused_fields

KEY = "\N{KEY}"
LOCAL = "x" * 200

TEXTS: dict[str, tuple[Any, bool]] = {
    "one letter": ("x", True),
    "255 letters": ("x" * 255, True),
    "256 letters": ("x" * 256, False),
    "255 astral": (KEY * 255, True),
    "256 astral": (KEY * 256, False),
    "empty": ("", False),
    "newline": ("a\nb", False),
    "newline at the end": ("a\n", False),
    "tab": ("a\tb", False),
    "nul": ("a\0b", False),
    "escape": ("\x1b[31m", False),
    "delete": ("a\x7f", False),
    "C1 control": ("a\x85b", False),
    "null": (None, False),
    "number": (7, False),
    "true": (True, False),
    "list": (["x"], False),
    "object": ({}, False),
}

DATA: dict[str, tuple[Any, bool]] = {
    "one letter": ("A", True),
    "padded": ("QUI=", True),
    "unpadded": ("QUI", True),
    "url alphabet": ("-_-_", True),
    "plain alphabet": ("+/+/", True),
    "long": ("A" * 1_000_000, True),
    "empty": ("", False),
    "prose": ("Dear diary", False),
    "JSON": ('{"secret": 1}', False),
    "newline at the end": ("QUJD\n", False),
    "newline inside": ("QU\nJD", False),
    "space before": (" QUJD", False),
    "accent": ("QUJé", False),
    "full-width": ("\uff21\uff22", False),
    "Arabic digits": ("\u0661\u0662", False),
    "dot": ("a.b", False),
    "nul": ("QUJD\0", False),
    "null": (None, False),
    "number": (7, False),
    "list": (["QUJD"], False),
}

HMAC: dict[str, tuple[Any, bool]] = {
    "text": ("any text at all, ключ", True),
    "1024 letters": ("x" * 1024, True),
    "1024 astral": (KEY * 1024, True),
    "1025 letters": ("x" * 1025, False),
    "empty": ("", True),
    "null": (None, True),
    "number": (7, False),
    "true": (True, False),
    "list": ([], False),
}

SALT: dict[str, tuple[Any, bool]] = {
    "empty": ("", True),
    "padded": ("c2FsdA==", True),
    "url alphabet": ("-_-_", True),
    "1024 letters": ("A" * 1024, True),
    "1025 letters": ("A" * 1025, False),
    "prose": ("a salt!", False),
    "newline at the end": ("QUJD\n", False),
    "number": (7, False),
    "list": ([], False),
}

BLOB: dict[str, tuple[Any, bool]] = {
    "one letter": ("x", True),
    "prose": ("any text, ключ", True),
    "long": ("x" * 1_000_000, True),
    "empty": ("", False),
    "number": (7, False),
    "list": (["x"], False),
}

EMAIL: dict[str, tuple[Any, bool]] = {
    "three letters": ("a@b", True),
    "254 letters": (f"{LOCAL}@{'y' * 53}", True),
    "255 letters": (f"{LOCAL}@{'y' * 54}", False),
    "254 and spaces": (f"  {LOCAL}@{'z' * 53}  ", True),
    "unicode": ("почта@пример.рф", True),
    "plus": ("a+b@example.com", True),
    "no at": ("example.com", False),
    "two at": ("a@b@c", False),
    "nothing before": ("@example.com", False),
    "nothing after": ("somebody@", False),
    "spaces around at": (" @ ", False),
    "at alone": ("@", False),
    "empty": ("", False),
    "spaces": ("    ", False),
    "null": (None, False),
    "number": (7, False),
    "list": (["a@b.c"], False),
}

SECRET: dict[str, tuple[Any, bool]] = {
    "7 letters": ("1234567", False),
    "8 letters": ("12345678", True),
    "8 equal letters": ("aaaaaaaa", True),
    "7 astral": (KEY * 7, False),
    "8 astral": (KEY * 8, True),
    "1024 letters": ("x" * 1024, True),
    "1025 letters": ("x" * 1025, False),
    "spaces": (" " * 8, True),
    "empty": ("", False),
    "null": (None, False),
    "number": (12345678, False),
    "list": (["12345678"], False),
}


def rows(table: dict[str, tuple[Any, bool]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A table of values within one test."""
    return each_row(("value", "fits"), table.values(), ids=table.keys())


def judged(answer: httpx2.Response, field: str, value: object, *, fits: bool) -> None:
    """A value that fits is stored as it is, any other is named in a 400."""
    if fits:
        assert made(answer)[field] == value
    else:
        refused_fields(answer, field)


@pytest.fixture(scope="module")
def owner(both: Server) -> ApiUser:
    """Somebody with no vaults yet, so that no name is taken."""
    return ApiUser.register(both)


@pytest.fixture(scope="module")
def shelf(owner: ApiUser) -> Json:
    """A vault for documents."""
    return owner.vault()


@rows(TEXTS)
def test_vault_name(owner: ApiUser, value: object, *, fits: bool) -> None:
    """A vault's name has 1 to 255 characters, none of them a control character."""
    judged(owner.http.post("/vault", json={"name": value}), "name", value, fits=fits)


@rows(TEXTS)
def test_new_vault_name(owner: ApiUser, value: object, *, fits: bool) -> None:
    """A new name obeys the same rule as the first."""
    fresh = ApiUser.register(owner.server) if fits else owner
    answer = fresh.http.put(f"/vault/{fresh.vault()['uid']}", json={"name": value, "version": 1})
    if fits:
        assert good(answer)["name"] == value
    elif value is not None:
        refused_fields(answer, "name")


@rows(TEXTS)
def test_key_name(owner: ApiUser, value: object, *, fits: bool) -> None:
    """An API key's name obeys the rule of a vault's."""
    judged(owner.http.post("/auth/api-keys", json={"name": value}), "name", value, fits=fits)


COLLECTIONS: dict[str, tuple[Any, bool]] = {
    **TEXTS,
    "255 astral": (KEY * 255, False),
    "512 bytes of astral": (KEY * 128, True),
    "513 bytes of astral": (KEY * 128 + "x", False),
    "255 of two bytes": ("\N{CYRILLIC SMALL LETTER ZHE}" * 255, True),
}


@rows(COLLECTIONS)
def test_collection(owner: ApiUser, shelf: Json, value: object, *, fits: bool) -> None:
    """A collection has 1 to 255 characters, none of them a control character, and at most 512 bytes."""
    judged(owner.http.post(docs(shelf), json={"collection": value, "data": "QQ"}), "collection", value, fits=fits)


@rows(DATA)
def test_data(owner: ApiUser, shelf: Json, value: object, *, fits: bool) -> None:
    """A document's data is base64 of either alphabet; plaintext sent by mistake is refused."""
    judged(owner.http.post(docs(shelf), json={"collection": "a", "data": value}), "data", value, fits=fits)


@rows(DATA)
def test_new_data(owner: ApiUser, shelf: Json, value: object, *, fits: bool) -> None:
    """New data obeys the same rule as the first."""
    answer = owner.put(shelf, owner.document(shelf), data=value)
    if fits:
        assert good(answer)["data"] == value
    else:
        refused_fields(answer, "data")


@rows(HMAC)
def test_hmac(owner: ApiUser, shelf: Json, value: object, *, fits: bool) -> None:
    """An hmac is any text of up to 1,024 characters, or null."""
    body = {"collection": "a", "data": "QQ", "hmac": value}
    judged(owner.http.post(docs(shelf), json=body), "hmac", value, fits=fits)


@rows(SALT)
def test_salt(owner: ApiUser, value: object, *, fits: bool) -> None:
    """A salt is base64 of either alphabet, up to 1,024 characters, and may be empty."""
    body = {"name": unique_email(), "data": "x", "salt": value}
    judged(owner.http.post("/vault", json=body), "salt", value, fits=fits)


@rows(BLOB)
def test_blob(owner: ApiUser, value: object, *, fits: bool) -> None:
    """A blob is any text of one character or more."""
    body = {"name": unique_email(), "data": value, "salt": ""}
    judged(owner.http.post("/vault", json=body), "data", value, fits=fits)


@rows(EMAIL)
def test_email(stranger: httpx2.Client, value: object, *, fits: bool) -> None:
    """An email has 3 to 254 characters once trimmed, and one @ with text on both sides."""
    answer = stranger.post("/auth/email/register", json={"email": value, "password": PASSWORD})
    if fits:
        assert made(answer)["user"]["email"] == str(value).strip()
    else:
        refused_fields(answer, "email")


@rows(SECRET)
def test_password(stranger: httpx2.Client, value: object, *, fits: bool) -> None:
    """A password has 8 to 1,024 characters of any kind."""
    answer = stranger.post("/auth/email/register", json={"email": unique_email(), "password": value})
    if fits:
        made(answer)
    else:
        refused_fields(answer, "password")
