"""Which endpoint a path leads to."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from strongroom.errors import MethodNotAllowed, NotFound
from strongroom.model import Variant
from strongroom.server.routes import router
from strongroom.server.routing import LONGEST_PATH
from tests.kit.rows import each_row

U = "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6"


@each_row(
    ("method", "path", "template", "parts"),
    [
        ("GET", b"/vault", "/vault", {}),
        ("GET", b"/vault/", "/vault", {}),
        ("HEAD", b"/vault", "/vault", {}),
        ("GET", f"/vault/{U}".encode(), "/vault/{uid}", {"uid": U}),
        ("PUT", f"/vault/{U}/".encode(), "/vault/{uid}", {"uid": U}),
        ("GET", b"/vault/by-name/a%2Fb", "/vault/by-name/{name*}", {"name": "a/b"}),
        ("GET", b"/vault/by-name/a%2F", "/vault/by-name/{name*}", {"name": "a/"}),
        ("GET", b"/vault/by-name/a/", "/vault/by-name/{name*}", {"name": "a"}),
        ("GET", b"/vault/by-name/a/b", "/vault/by-name/{name*}", {"name": "a/b"}),
        ("GET", b"/vault/by-name/documents", "/vault/by-name/{name*}", {"name": "documents"}),
        ("GET", b"/vault/by-name/%C3%A9%3F", "/vault/by-name/{name*}", {"name": "é?"}),
        ("GET", b"/vault/by-name/%FF", "/vault/by-name/{name*}", {"name": ""}),
        ("GET", b"/vault/by-name", "/vault/{uid}", {"uid": "by-name"}),
        ("POST", b"/vault/by-name/documents", "/vaults/{vaultUid}/documents", {"vaultUid": "by-name"}),
        ("GET", b"/vaults/x/documents/sync", "/vaults/{vaultUid}/documents/sync", {"vaultUid": "x"}),
        ("PUT", b"/vaults/x/documents/sync", "/vaults/{vaultUid}/documents/{uid}", {"vaultUid": "x", "uid": "sync"}),
        ("GET", b"/vault/x/documents/y", "/vaults/{vaultUid}/documents/{uid}", {"vaultUid": "x", "uid": "y"}),
        ("GET", b"/v%61ult", "/vault", {}),
        ("GET", b"/", "/", {}),
    ],
)
def test_where_a_path_leads(method: str, path: bytes, template: str, parts: dict[str, str]) -> None:
    """Literal before variable; a trailing slash changes nothing; %2F belongs to its name."""
    endpoint, found = router(Variant.BOTH).find(method, path)
    assert (endpoint.path, found) == (template, parts)


@pytest.mark.parametrize(
    "path", [b"/nope", b"//vault", b"/vault//", b"/vaults", b"/vault/x/y", b"/auth", b"/vaults//documents"]
)
def test_where_nothing_is(path: bytes) -> None:
    """An empty segment is not a uid."""
    with pytest.raises(NotFound):
        router(Variant.BOTH).find("GET", path)


def test_a_path_is_as_long_as_its_longest_name() -> None:
    """A name of 255 characters of four bytes fits; what is longer is not even decoded."""
    name = "\U0001f511" * 255
    path = b"/vault/by-name/" + quote(name).encode()
    assert router(Variant.BOTH).find("GET", path)[1] == {"name": name}
    for long in (b"%41" * 20_000, b"/%41" * 16_000, b"a" * LONGEST_PATH):
        with pytest.raises(NotFound):
            router(Variant.BOTH).find("GET", b"/vault/by-name/" + long)


def test_a_wrong_method_names_the_right_ones() -> None:
    """All of those that the path has, under every reading of it."""
    with pytest.raises(MethodNotAllowed) as refused:
        router(Variant.BOTH).find("PATCH", b"/vaults/x/documents/sync")
    assert set(refused.value.allowed) == {"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}
