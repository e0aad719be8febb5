"""Items and references for programs: from the agent of a person, or with the token of a machine.

A machine has a token (`srv_…`) in `STRONGROOM_TOKEN`, or in the file that `STRONGROOM_TOKEN_FILE` names, and the
server's address in `STRONGROOM_URL`. Then no agent is asked. The file that `STRONGROOM_STATE` names holds what earlier
runs have seen.
"""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from strongroom.agent import connection
from strongroom.agent.protocol import Failed

if TYPE_CHECKING:
    from strongroom.agent.catalog import Catalog, Shelf
    from strongroom.client import Client

TOKEN: Final = "STRONGROOM_TOKEN"  # noqa: S105 - the name of a variable
TOKEN_FILE: Final = "STRONGROOM_TOKEN_FILE"  # noqa: S105
URL: Final = "STRONGROOM_URL"
VAULT: Final = "STRONGROOM_VAULT"
CA_FILE: Final = "STRONGROOM_CA_FILE"
STATE: Final = "STRONGROOM_STATE"
_MOST: Final = 1 << 16  # bytes of a token file
_RESTORED: Final = " If its operator has restored it from a backup, delete {}: this machine then has seen nothing yet."


class Secrets:
    """Which items there are, and the values of references. A context manager."""

    def items(self, vault: str | None = None) -> list[dict[str, Any]]:
        """The items without their values: id, type, title, vault, reference, and the names of their fields."""
        raise NotImplementedError

    def read(self, references: Sequence[str]) -> dict[str, str]:
        """The value of each reference. The first that cannot be read fails all, and is named."""
        raise NotImplementedError

    def field(self, name: str, field: str = "") -> bytes:
        """A field of an item, by names as a person types them: the main one where none is named."""
        raise NotImplementedError

    def close(self) -> None:
        """Forget keys and connections."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"


def open_secrets(*, unlock: Callable[[], None] | None = None) -> Secrets:
    """The secrets of the token in the environment, or else of the agent. Raises Failed.

    `unlock` is called where the agent is locked: it asks a person for the password, and unlocks. Without it, that is
    `locked`.
    """
    token = token_of_environment()
    return _OfAgent(unlock) if token is None else _OfToken(token)


def token_of_environment() -> str | None:
    """The token that the environment gives, if it gives one."""
    token, path = os.environ.get(TOKEN), os.environ.get(TOKEN_FILE)
    if token and path:
        raise Failed("invalid", f"{TOKEN} and {TOKEN_FILE} are both set; set one of them.")
    if path:
        return read_token_file(path)
    return token.strip() if token else None


def read_token_file(path: str) -> str:
    """A token from a file that only its owner can read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise Failed("file", f"The token file {path} cannot be read: {error.strerror}.") from None
    # systemd gives a service its credentials by an access list, which shows as a permission of the group.
    of_systemd = os.path.dirname(os.path.abspath(path)) == os.environ.get("CREDENTIALS_DIRECTORY")
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) & (0o007 if of_systemd else 0o077):
            raise Failed("file", f"Others can read the token file {path}; run: chmod 600 {path}")
        try:
            return file.read(_MOST).decode().strip()
        except UnicodeDecodeError:
            raise Failed("file", f"The token file {path} is not text.") from None


class _OfAgent(Secrets):
    """Asks the agent."""

    def __init__(self, unlock: Callable[[], None] | None) -> None:
        self._unlock = unlock

    def items(self, vault: str | None = None) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("items", vault=vault)
        return found

    def read(self, references: Sequence[str]) -> dict[str, str]:
        found: dict[str, str] = self._ask("read", references=list(references))
        return found

    def field(self, name: str, field: str = "") -> bytes:
        return base64.b64decode(self._ask("get", item=name, field=field, binary=True))

    def _ask(self, operation: str, **members: Any) -> Any:
        try:
            return connection.ask(operation, **members)
        except Failed as failed:
            if failed.code != "locked" or self._unlock is None:
                raise
        self._unlock()
        return connection.ask(operation, **members)


class _OfToken(Secrets):
    """Asks the server, with a token that opens one vault or one collection."""

    def __init__(self, token: str) -> None:
        from strongroom.client import Client
        from strongroom.errors import Refusal

        url = os.environ.get(URL)
        if not url:
            raise Failed("invalid", f"Set {URL} to the address of the server; a token does not say it.")
        self._state = os.environ.get(STATE) or None
        ca_file = os.environ.get(CA_FILE) or None
        try:
            self._client: Client = Client.with_token(url, token, state=self._state, ca_file=ca_file)
        except Refusal as refusal:
            raise Failed("invalid", f"The token of the environment cannot be used: {refusal}") from None
        self._catalog: Catalog | None = None

    def items(self, vault: str | None = None) -> list[dict[str, Any]]:
        return [one.shown() for one in self._opened(lambda: self._items().entries(vault))]

    def read(self, references: Sequence[str]) -> dict[str, str]:
        from strongroom.agent.item_reads import read_all

        return self._opened(lambda: read_all(self._items().read, list(references)))  # type: ignore[no-any-return]

    def field(self, name: str, field: str = "") -> bytes:
        found: bytes = self._opened(lambda: self._items().field(name, field))
        return found

    def close(self) -> None:
        self._opened(self._client.close)

    def _items(self) -> Catalog:
        from strongroom.agent.catalog import Catalog

        if self._catalog is None:
            shelf = self._shelf()
            self._catalog = Catalog(lambda: [shelf])
        return self._catalog

    def _shelf(self) -> Shelf:
        from strongroom.agent.catalog import Shelf
        from strongroom.client.errors import Locked

        try:
            vault = self._client.vault()
        except Locked:  # it is the token of one collection, and cannot know what its vault is called
            name = os.environ.get(VAULT)
            if not name:
                raise Failed(
                    "invalid", f"Set {VAULT} to the name of the vault; the token is for one collection."
                ) from None
            return Shelf(name, "", self._client.items())
        return Shelf(vault.name, vault.uid, vault.items())

    def _opened(self, run: Callable[[], Any]) -> Any:
        from strongroom.client.errors import RolledBack
        from strongroom.errors import Refusal

        try:
            return run()
        except (Failed, Refusal) as refusal:
            said = _RESTORED.format(self._state) if refusal.code == RolledBack.code and self._state else ""
            failed = Failed(refusal.code, f"{refusal}{said}", refusal.details if isinstance(refusal, Failed) else None)
        raise failed  # not in a handler: the error would lead to frames that hold secrets
