"""Backup destination: an SFTP server, with a known host key and a private key in a file."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager, suppress
from posixpath import join
from typing import IO, TYPE_CHECKING, Any, Final, Self

from strongroom.server.destinations.protocol import PARTIAL_SUFFIX, CannotSend, read_edges
from strongroom.server.timeouts import timeout

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path
    from urllib.parse import SplitResult

_SECONDS: Final = 30  # timeout of the connection, and of the login
_STALLED: Final = 60  # timeout for one piece
_PIECE: Final = 256 * 1024
_ALIVE: Final = 15  # seconds between keepalives; four missed ones end the connection


class Sftp:
    """A folder on an SFTP server."""

    def __init__(self, url: SplitResult, key: str, known_hosts: str) -> None:
        self._host, self._port, self._user = url.hostname or "", url.port or 22, url.username
        self._folder = url.path[3:] or "." if url.path.startswith("/~/") else url.path or "."
        self._key, self._known_hosts = key, known_hosts
        self.label = f"sftp://{self._host}{url.path}"
        self._connection: Any = None
        self._sftp: Any = None

    async def __aenter__(self) -> Self:
        """Connect and log in."""
        ssh = _asyncssh()
        options: dict[str, Any] = {"username": self._user} if self._user else {}
        if self._key:
            options["client_keys"] = [self._key]
        if self._known_hosts:
            options["known_hosts"] = self._known_hosts
        async with self._translate_errors():
            self._connection = await ssh.connect(
                self._host,
                self._port,
                config=None,
                connect_timeout=_SECONDS,
                login_timeout=_SECONDS,
                keepalive_interval=_ALIVE,
                keepalive_count_max=4,
                **options,
            )
            self._sftp = await self._connection.start_sftp_client()
            await self._sftp.makedirs(self._folder, exist_ok=True)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        if self._connection is not None:
            self._connection.close()
            with suppress(Exception):
                await self._connection.wait_closed()

    async def sizes(self) -> dict[str, int]:
        """The regular files there."""
        regular = _asyncssh().FILEXFER_TYPE_REGULAR
        async with self._translate_errors():
            entries = await self._sftp.readdir(self._folder.encode())  # as bytes: any name may be there
        sizes = {entry.filename: entry.attrs.size or 0 for entry in entries if entry.attrs.type == regular}
        return {name.decode("utf-8", "replace"): size for name, size in sizes.items()}

    async def has(self, path: Path) -> bool:
        """Compare the start and the end. SFTP has no checksum, and every start would download the whole file.

        Two archives differ there: in the manifest or the key of the encryption, and in the checksum at the end.
        """
        async with self._translate_errors(), self._sftp.open(self._path_of(path.name), "rb") as file:
            for offset, piece in read_edges(path).items():
                async with await timeout(_STALLED):
                    if await file.read(len(piece), offset) != piece:
                        return False
        return True

    async def put(self, path: Path) -> None:
        """Upload a file under a temporary name, verify it by reading it back, then rename it."""
        ssh = _asyncssh()
        partial, digest = self._path_of(f".{path.name}{PARTIAL_SUFFIX}"), hashlib.sha256()
        async with self._translate_errors():
            with suppress(ssh.SFTPNoSuchFile):
                await self._sftp.remove(partial)
            private = ssh.SFTPAttrs(permissions=0o600)
            async with self._sftp.open(partial, "wb", private) as target:
                with path.open("rb") as source:
                    while piece := source.read(_PIECE):
                        digest.update(piece)
                        async with await timeout(_STALLED):
                            await target.write(piece)
                with suppress(ssh.SFTPOpUnsupported):
                    async with await timeout(_STALLED):
                        await target.fsync()
            if await self._digest_of(partial) != digest.digest():
                await self._sftp.remove(partial)
                raise CannotSend(f"{path.name} does not read back from {self.label} as it was sent.")
            try:
                await self._sftp.posix_rename(partial, self._path_of(path.name))
            except ssh.SFTPOpUnsupported:
                await self._sftp.rename(partial, self._path_of(path.name))

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Fetch a file."""
        async with self._translate_errors(), self._sftp.open(self._path_of(name), "rb") as source:
            while piece := await self._read_piece(source):
                file.write(piece)

    async def delete(self, name: str) -> None:
        """Delete a file."""
        async with self._translate_errors():
            with suppress(_asyncssh().SFTPNoSuchFile):
                await self._sftp.remove(self._path_of(name))

    async def _digest_of(self, path: str) -> bytes:
        digest = hashlib.sha256()
        async with self._sftp.open(path, "rb") as file:
            while piece := await self._read_piece(file):
                digest.update(piece)
        return digest.digest()

    async def _read_piece(self, file: Any) -> bytes:
        async with await timeout(_STALLED):
            piece: bytes = await file.read(_PIECE)
        return piece

    def _path_of(self, name: str) -> str:
        return join(self._folder, name)

    @asynccontextmanager
    async def _translate_errors(self) -> AsyncIterator[None]:
        ssh = _asyncssh()
        try:
            yield
        except ssh.HostKeyNotVerifiable:
            raise CannotSend(
                f"{self.label} presents a host key that {self._known_hosts or '~/.ssh/known_hosts'} does not have; "
                "compare its fingerprint, then add it there (BACKUP_SSH_HOSTS names another file)."
            ) from None
        except TimeoutError:
            raise CannotSend(f"{self.label} has not responded for {_STALLED} seconds.") from None
        except ssh.PermissionDenied:
            raise CannotSend(f"{self.label} denies access to this user; check BACKUP_SSH_KEY.") from None
        except (ssh.Error, ssh.KeyImportError, OSError) as error:
            reason = str(getattr(error, "reason", "") or error).partition("\n")[0] or type(error).__name__
            raise CannotSend(f"{self.label} fails: {reason.rstrip('.')}.") from None


def _asyncssh() -> Any:
    try:
        import asyncssh
    except ImportError:
        raise CannotSend("SFTP needs a library that is not installed; run: pip install 'strongroom[sftp]'") from None
    return asyncssh
