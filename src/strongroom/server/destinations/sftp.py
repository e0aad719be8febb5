"""Backups on another machine, by SFTP. Its host key must be known, and the key to it lies in a file."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager, suppress
from posixpath import join
from typing import IO, TYPE_CHECKING, Any, Final, Self

from strongroom.server.destinations.protocol import HALF, CannotSend, edges_of
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from urllib.parse import SplitResult

_SECONDS: Final = 30  # to connect, and again to log in
_STALLED: Final = 60  # seconds in which a piece must have arrived
_PIECE: Final = 256 * 1024
_ALIVE: Final = 15  # seconds between signs of life; a server that owes four is given up


class Sftp:
    """A folder on a server of SFTP."""

    def __init__(self, url: SplitResult, key: str, known_hosts: str) -> None:
        self._host, self._port, self._user = url.hostname or "", url.port or 22, url.username
        self._folder = url.path[3:] or "." if url.path.startswith("/~/") else url.path or "."
        self._key, self._known_hosts = key, known_hosts
        self.named = f"sftp://{self._host}{url.path}"
        self._connection: Any = None
        self._sftp: Any = None

    async def __aenter__(self) -> Self:
        """Connect and log in."""
        ssh = _asyncssh()
        given: dict[str, Any] = {"username": self._user} if self._user else {}
        if self._key:
            given["client_keys"] = [self._key]
        if self._known_hosts:
            given["known_hosts"] = self._known_hosts
        async with self._in_words():
            self._connection = await ssh.connect(
                self._host,
                self._port,
                config=None,
                connect_timeout=_SECONDS,
                login_timeout=_SECONDS,
                keepalive_interval=_ALIVE,
                keepalive_count_max=4,
                **given,
            )
            self._sftp = await self._connection.start_sftp_client()
            await self._sftp.makedirs(self._folder, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Say goodbye."""
        if self._connection is not None:
            self._connection.close()
            with suppress(Exception):
                await self._connection.wait_closed()

    async def sizes(self) -> dict[str, int]:
        """The files that lie there."""
        regular = _asyncssh().FILEXFER_TYPE_REGULAR
        async with self._in_words():
            entries = await self._sftp.readdir(self._folder)
        return {entry.filename: entry.attrs.size or 0 for entry in entries if entry.attrs.type == regular}

    async def has(self, path: Path) -> bool:
        """Compare the beginning and the end. SFTP has no checksum, and every start would fetch the whole of it.

        Two archives differ there: in the manifest or the key of the encryption, and in the checksum at the end.
        """
        async with self._in_words(), self._sftp.open(self._of(path.name), "rb") as file:
            for offset, piece in edges_of(path).items():
                async with await timeout(_STALLED):
                    if await file.read(len(piece), offset) != piece:
                        return False
        return True

    async def put(self, path: Path) -> None:
        """Send a file under another name, read it back, then give it its name."""
        ssh = _asyncssh()
        half, digest = self._of(f".{path.name}{HALF}"), hashlib.sha256()
        async with self._in_words():
            with suppress(ssh.SFTPNoSuchFile):
                await self._sftp.remove(half)
            private = ssh.SFTPAttrs(permissions=0o600)
            async with self._sftp.open(half, "wb", private) as target:
                with path.open("rb") as source:
                    while piece := source.read(_PIECE):
                        digest.update(piece)
                        async with await timeout(_STALLED):
                            await target.write(piece)
                with suppress(ssh.SFTPOpUnsupported):
                    async with await timeout(_STALLED):
                        await target.fsync()
            if await self._digest_of(half) != digest.digest():
                await self._sftp.remove(half)
                raise CannotSend(f"{path.name} does not read back from {self.named} as it was sent.")
            try:
                await self._sftp.posix_rename(half, self._of(path.name))
            except ssh.SFTPOpUnsupported:
                await self._sftp.rename(half, self._of(path.name))

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Fetch a file."""
        async with self._in_words(), self._sftp.open(self._of(name), "rb") as source:
            while piece := await self._piece_of(source):
                file.write(piece)

    async def delete(self, name: str) -> None:
        """Delete a file."""
        async with self._in_words():
            with suppress(_asyncssh().SFTPNoSuchFile):
                await self._sftp.remove(self._of(name))

    async def _digest_of(self, path: str) -> bytes:
        digest = hashlib.sha256()
        async with self._sftp.open(path, "rb") as file:
            while piece := await self._piece_of(file):
                digest.update(piece)
        return digest.digest()

    async def _piece_of(self, file: Any) -> bytes:
        async with await timeout(_STALLED):
            piece: bytes = await file.read(_PIECE)
        return piece

    def _of(self, name: str) -> str:
        return join(self._folder, name)

    @asynccontextmanager
    async def _in_words(self) -> AsyncIterator[None]:
        ssh = _asyncssh()
        try:
            yield
        except ssh.HostKeyNotVerifiable:
            raise CannotSend(
                f"{self.named} shows a host key that {self._known_hosts or '~/.ssh/known_hosts'} does not have; "
                "add it there when you have compared its fingerprint (BACKUP_SSH_HOSTS names another file)."
            ) from None
        except TimeoutError:
            raise CannotSend(f"{self.named} has not answered for {_STALLED} seconds.") from None
        except ssh.PermissionDenied:
            raise CannotSend(f"{self.named} does not let this user in; see BACKUP_SSH_KEY.") from None
        except (ssh.Error, ssh.KeyImportError, OSError) as error:
            reason = str(getattr(error, "reason", "") or error).partition("\n")[0] or type(error).__name__
            raise CannotSend(f"{self.named} fails: {reason.rstrip('.')}.") from None


def _asyncssh() -> Any:
    try:
        import asyncssh
    except ImportError:
        raise CannotSend("SFTP needs a library that is not installed; run: pip install 'strongroom[sftp]'") from None
    return asyncssh
