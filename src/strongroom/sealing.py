"""Encryption of whole archives, to a passphrase or to an age recipient of the operator's.

This is independent of the ciphertext that accounts store, which stays encrypted inside. Only the command line imports
this module: the server holds no key that decrypts. docs/archive.md has the format.
"""

from __future__ import annotations

import os
import struct
import threading
import zlib
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

from strongroom.archive import BadArchive

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from strongroom.archive import Sink, Source

MAGIC: Final = b"strongroom sealed 1\n"
AGE_MAGIC: Final = b"age-encryption.org/v1\n"
CHUNK: Final = 64 * 1024
_TAG: Final = 16
_PREFIX: Final = 7  # of a nonce: this, the number of the chunk, whether it is the last
_HEAD = struct.Struct(">16s7sIII")  # salt, beginning of the nonces; memory in KiB, passes and lanes of Argon2id
_MEMORY, _PASSES, _LANES = 65_536, 3, 4  # RFC 9106, the second recommendation
_MOST: Final = (262_144, 16, 16)  # the most that an archive may demand: 256 MiB, and a few seconds


class CannotSeal(Exception):  # noqa: N818 - said to the operator in one sentence
    """The archive cannot be encrypted or opened; the message is a sentence for the operator."""


class Sealer:
    """A sink that encrypts to a passphrase: AES-256-GCM in chunks, by the STREAM construction."""

    def __init__(self, sink: Sink, passphrase: str) -> None:
        salt, prefix = os.urandom(16), os.urandom(_PREFIX)
        self._head = _headed(_HEAD.pack(salt, prefix, _MEMORY, _PASSES, _LANES))
        self._cipher = AESGCM(_key(passphrase, salt, _MEMORY, _PASSES, _LANES))
        self._prefix = prefix
        self._sink = sink
        self._number = 0
        self._buffer = bytearray()
        sink.write(self._head)

    def write(self, data: bytes) -> None:
        """Encrypt these bytes; a chunk is written once more than one is buffered."""
        self._buffer += data
        at = 0
        while len(self._buffer) - at > CHUNK:
            self._write_chunk(bytes(self._buffer[at : at + CHUNK]), last=False)
            at += CHUNK
        del self._buffer[:at]

    def close(self) -> None:
        """Write the last chunk, which is marked as the last."""
        self._write_chunk(bytes(self._buffer), last=True)

    def _write_chunk(self, chunk: bytes, *, last: bool) -> None:
        self._sink.write(self._cipher.encrypt(_nonce(self._prefix, self._number, last=last), chunk, self._head))
        self._number += 1


class Opener:
    """A source that decrypts what a Sealer wrote; refuses chunks that were changed, moved, removed or added."""

    def __init__(self, source: Source, passphrase: str) -> None:
        self._source = source
        body = source.read(_HEAD.size + 4)
        self._head = MAGIC + body
        if len(body) != _HEAD.size + 4 or self._head != _headed(body[:-4]):
            raise BadArchive("The archive is damaged: its head does not match its checksum. Take another one.")
        salt, self._prefix, memory, passes, lanes = _HEAD.unpack(body[:-4])
        if memory > _MOST[0] or passes > _MOST[1] or lanes > _MOST[2]:
            raise BadArchive("The archive asks for more work to open it than any archive of strongroom does.")
        self._cipher = AESGCM(_key(passphrase, salt, memory, passes, lanes))
        self._number = 0
        self._next = source.read(CHUNK + _TAG)
        self._ready = bytearray()
        self._ended = False

    def read(self, size: int) -> bytes:
        """Read this many bytes; fewer only at the end."""
        while len(self._ready) < size and not self._ended:
            self._open_next()
        taken = bytes(self._ready[:size])
        del self._ready[:size]
        return taken

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _open_next(self) -> None:
        chunk, self._next = self._next, self._source.read(CHUNK + _TAG)
        self._ended = not self._next
        try:
            plain = self._cipher.decrypt(_nonce(self._prefix, self._number, last=self._ended), chunk, self._head)
        except (InvalidTag, ValueError):
            if self._number == 0:
                raise BadArchive("The passphrase is wrong, or the archive is damaged.") from None
            raise BadArchive(
                f"The archive is damaged: chunk {self._number + 1} does not open. Take another one."
            ) from None
        self._number += 1
        self._ready += plain


def _headed(body: bytes) -> bytes:
    return MAGIC + body + zlib.crc32(body).to_bytes(4)


def _key(passphrase: str, salt: bytes, memory: int, passes: int, lanes: int) -> bytes:
    try:
        kdf = Argon2id(salt=salt, length=32, iterations=passes, lanes=lanes, memory_cost=memory)
        return kdf.derive(passphrase.encode())
    except (ValueError, OverflowError):
        raise BadArchive("The archive is damaged: its head makes no sense. Take another one.") from None
    except MemoryError:
        raise BadArchive(f"There is not enough memory to open the archive; it takes {memory // 1024} MiB.") from None


def _nonce(prefix: bytes, number: int, *, last: bool) -> bytes:
    return prefix + number.to_bytes(4) + (b"\1" if last else b"\0")


# age: the library reads and writes files by itself, so it runs in a thread behind a pipe.


class AgeSealer:
    """A sink that encrypts to age recipients."""

    def __init__(self, sink: Sink, recipients: Sequence[str]) -> None:
        pyrage = _pyrage()
        to = [_recipient(pyrage, text) for text in recipients]
        self._out = out = _RecordingSink(sink)
        self._pipe = _PipeThread(lambda pipe: pyrage.encrypt_io(pipe, out, to), reads=True)

    def write(self, data: bytes) -> None:
        """Encrypt these bytes."""
        try:
            self._pipe.ours.write(data)
        except BrokenPipeError:
            with suppress(BrokenPipeError):
                self._pipe.ours.close()
            self._join()
            raise

    def close(self) -> None:
        """Write what is buffered, and wait for the end of the thread."""
        with suppress(BrokenPipeError):
            self._pipe.ours.close()
        self._join()

    def _join(self) -> None:
        """Wait for the thread; an error of the sink is raised as it was, not as the library's error."""
        try:
            self._pipe.join()
        except Exception:
            if self._out.error is not None:
                raise self._out.error from None
            raise


class AgeOpener:
    """A source that decrypts with an age identity."""

    def __init__(self, source: Source, identities: str) -> None:
        pyrage = _pyrage()
        keys = [_identity(pyrage, line) for line in identities.splitlines() if line.strip() and line[0] != "#"]
        if not keys:
            raise CannotSeal("The identity file holds no line that begins with AGE-SECRET-KEY-.")
        self._error = (pyrage.DecryptError, OSError)
        self._pipe = _PipeThread(lambda pipe: pyrage.decrypt_io(_PrefixedSource(source), pipe, keys), reads=False)

    def read(self, size: int) -> bytes:
        """Read this many bytes; fewer only at the end."""
        data = self._pipe.ours.read(size)
        if len(data) < size:
            try:
                self._pipe.join()
            except self._error:
                raise BadArchive("The archive is damaged, or not encrypted to this identity.") from None
        return data

    def close(self) -> None:
        """Stop reading, and wait for the end of the thread."""
        self._pipe.ours.close()
        with suppress(BaseException):
            self._pipe.join()


class _PipeThread:
    """A thread at the other end of a pipe."""

    def __init__(self, work: Callable[[Any], None], *, reads: bool) -> None:
        incoming, outgoing = os.pipe()
        self.ours: IO[bytes] = os.fdopen(outgoing, "wb") if reads else os.fdopen(incoming, "rb")
        theirs: IO[bytes] = os.fdopen(incoming, "rb") if reads else os.fdopen(outgoing, "wb")
        self._error: BaseException | None = None

        def run() -> None:
            try:
                work(_FileLike(theirs))
            except BaseException as error:  # noqa: BLE001 - raised again by join
                self._error = error
            finally:
                with suppress(OSError):
                    theirs.close()

        self._thread = threading.Thread(target=run, name="age", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread to end; raises what it raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error


class _FileLike:
    """The least of a file object, without what would let the library take it for a file on disk."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def read(self, size: int = -1) -> bytes:
        data: bytes = self._inner.read(size)
        return data

    def write(self, data: bytes) -> int:
        self._inner.write(data)
        return len(data)

    def flush(self) -> None:
        pass


class _RecordingSink(_FileLike):
    """A sink that records its error, which the library would replace by its own."""

    error: OSError | None = None

    def write(self, data: bytes) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


class _PrefixedSource(_FileLike):
    """A source whose first line was read already, to detect its format."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self._prefix_left = AGE_MAGIC

    def read(self, size: int = -1) -> bytes:
        if not self._prefix_left:
            return super().read(size)
        taken, self._prefix_left = self._prefix_left[:size], self._prefix_left[size:]
        return taken


def _pyrage() -> Any:
    try:
        import pyrage
    except ImportError:
        raise CannotSeal("age needs a library that is not installed; run: pip install 'strongroom[age]'") from None
    return pyrage


def check_recipient(text: str) -> None:
    """Refuse an invalid age recipient, and age if its library is not installed."""
    _recipient(_pyrage(), text)


def _recipient(pyrage: Any, text: str) -> Any:
    if text.startswith("AGE-SECRET-KEY-"):
        raise CannotSeal("that is an age identity, which is secret; its recipient begins with age1: age-keygen -y FILE")
    try:
        kind = pyrage.ssh if text.startswith("ssh-") else pyrage.x25519
        return kind.Recipient.from_str(text)
    except pyrage.RecipientError:
        raise CannotSeal(f"{text!r} is not an age recipient; it begins with age1, or with ssh-.") from None


def _identity(pyrage: Any, line: str) -> Any:
    try:
        return pyrage.x25519.Identity.from_str(line.strip())
    except pyrage.IdentityError:
        raise CannotSeal("The identity file holds a line that is no age identity.") from None
