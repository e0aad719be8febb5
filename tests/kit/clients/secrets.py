"""What a client must not show: its keys, and a search for them in an error's traceback."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any

from strongroom.client import Client
from strongroom.client.format.encoding import to_base64, to_url


def frames(error: BaseException) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and local variables of every frame of this package that an error leads to, its causes included."""
    found: BaseException | None = error
    while found is not None:
        traced: TracebackType | None = found.__traceback__
        while traced is not None:
            frame = traced.tb_frame
            if "/strongroom/" in frame.f_code.co_filename:
                yield frame.f_code.co_qualname, frame.f_locals
            traced = traced.tb_next
        found = found.__cause__ or found.__context__


def spellings(secret: bytes | str) -> list[str]:
    """How a secret may look in a repr."""
    if isinstance(secret, str):
        return [secret]
    return [repr(bytes(secret))[2:-1], secret.hex(), to_base64(secret), to_url(secret)]


def assert_hidden(error: BaseException, secrets: list[bytes | str]) -> None:
    """No local variable shows a secret, as a tool that prints tracebacks with them would show it."""
    seen = 0
    for where, values in frames(error):
        for name, value in values.items():
            seen += 1
            shown = repr(value)
            for secret in secrets:
                assert not any(one in shown for one in spellings(secret)), (where, name)
    assert seen > 5


def secrets_of(client: Client) -> list[bytes | str]:
    """Every key that a client holds."""
    ring = client._core.keyring()
    found: list[bytes | str] = [ring.key, *(key for entry in ring.vaults for _, key in entry.keys)]
    for entry in ring.vaults:
        keys = ring.vault_keys(entry).newest
        collection = keys.collection("notes")
        found += [keys.blob(), keys.names(), collection.key, collection.sealing, collection.proving]
    session = client._core.session
    return [*found, str(session._access), str(session._refresh)]
