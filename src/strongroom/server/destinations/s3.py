"""Backup destination: S3 storage. An object appears completely or not at all, and the storage verifies its checksum.

Blocking calls are used on purpose: nothing else runs in the process that sends, and the threads of the library's
asynchronous calls can abort Python at exit.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, Final, Self

from strongroom.server.destinations.protocol import PIECE, CannotSend, read_edges

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from urllib.parse import SplitResult

# Variables with their usual meaning; without a key the library uses the role of the machine.
_VARIABLES: Final = {
    "AWS_ACCESS_KEY_ID": "access_key_id",
    "AWS_SECRET_ACCESS_KEY": "secret_access_key",
    "AWS_SESSION_TOKEN": "session_token",
    "AWS_DEFAULT_REGION": "region",
    "AWS_REGION": "region",
    "AWS_ENDPOINT_URL": "endpoint",
    "AWS_ENDPOINT_URL_S3": "endpoint",
}
_USER_INFO: Final = re.compile(r"//[^/@\s]*@")  # of an address, which may hold a password
_STATUS: Final = re.compile(r"status code: (\d{3})\b")
_TIMEOUT: Final = "300s"  # for one request, which sends 5 MiB at the most


class S3:
    """A bucket, or a prefix in it."""

    def __init__(self, url: SplitResult, variables: Mapping[str, str]) -> None:
        self._bucket, self._prefix = url.netloc, url.path.strip("/")
        self._config = {key: variables[name] for name, key in _VARIABLES.items() if variables.get(name)}
        self.label = f"s3://{self._bucket}/{self._prefix}".rstrip("/")
        self._store: Any = None

    async def __aenter__(self) -> Self:
        """Create a client; it connects on its first request."""
        store = _obstore().store
        with self._translate_errors():
            self._store = store.S3Store(
                self._bucket,
                prefix=self._prefix or None,
                config={"region": "us-east-1", "checksum_algorithm": "SHA256", **self._config},
                client_options={
                    "timeout": _TIMEOUT,
                    "connect_timeout": "30s",
                    "allow_http": self._config.get("endpoint", "").startswith("http://"),
                },
            )
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing to close."""

    async def sizes(self) -> dict[str, int]:
        """The objects directly below the prefix."""
        with self._translate_errors():
            listed = _obstore().list_with_delimiter(self._store)
        return {meta["path"].rpartition("/")[2]: meta["size"] for meta in listed["objects"]}

    async def has(self, path: Path) -> bool:
        """Compare the start and the end. The library shows no checksum, and not every storage has one as ETag.

        Two archives differ there: in the manifest or the key of the encryption, and in the checksum at the end. The
        storage has verified what it received, and must keep it intact.
        """
        with self._translate_errors():
            for offset, piece in read_edges(path).items():
                found = _obstore().get_range(self._store, path.name, start=offset, length=len(piece))
                if bytes(found) != piece:
                    return False
        return True

    async def put(self, path: Path) -> None:
        """Upload a file in parts, each with its checksum; then verify its size."""
        with self._translate_errors():
            _obstore().put(self._store, path.name, path)
            meta = _obstore().head(self._store, path.name)
        if meta["size"] != path.stat().st_size:  # noqa: ASYNC240 - nothing else runs in this process
            raise CannotSend(f"{path.name} has a different size in {self.label} than here.")

    async def get(self, name: str, file: IO[bytes]) -> None:
        """Fetch an object."""
        with self._translate_errors():
            found = _obstore().get(self._store, name)
            for piece in found.stream(min_chunk_size=PIECE):
                file.write(piece)

    async def delete(self, name: str) -> None:
        """Delete an object."""
        with self._translate_errors():
            _obstore().delete(self._store, name)

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        exceptions = _obstore().exceptions
        try:
            yield
        except (exceptions.BaseError, OSError) as error:
            status = _STATUS.search(str(error))  # a refused list is a general error to the library
            if isinstance(error, exceptions.NotFoundError) or (status is not None and status[1] == "404"):
                raise CannotSend(f"{self.label} has no such bucket or object.") from None
            if status is not None and status[1] in {"401", "403"}:
                raise CannotSend(
                    f"{self.label} denies access with this key; check AWS_ACCESS_KEY_ID and its permissions."
                ) from None
            reason = _USER_INFO.sub("//", str(error).partition("\n")[0])[:200]
            raise CannotSend(f"{self.label} fails: {reason.rstrip('.')}.") from None


def _obstore() -> Any:
    try:
        import obstore
        import obstore.exceptions
        import obstore.store
    except ImportError:
        raise CannotSend("S3 needs a library that is not installed; run: pip install 'strongroom[s3]'") from None
    return obstore
