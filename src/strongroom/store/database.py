"""The protocol of a database: what an engine promises, and its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from strongroom.store.change_notifications import ChangeNotifications
    from strongroom.store.commit_metrics import CommitMetrics
    from strongroom.store.session_check import SessionCheck
    from strongroom.store.statement import Sql

T = TypeVar("T")
R = TypeVar("R")
P = ParamSpec("P")


def is_postgres(where: str) -> bool:
    """Whether this is the URL of a PostgreSQL database, and not the path of a SQLite file."""
    return where.startswith(("postgresql://", "postgres://"))


class Tx(Protocol):
    """A transaction. On SQLite an `await` on it never suspends, so nothing else may be awaited inside one."""

    @property
    def now(self) -> int:
        """The moment of this transaction, in milliseconds."""

    async def one(self, kind: type[T], sql: Sql, /, **parameters: Any) -> T | None:
        """The row that the statement gives, or None."""

    async def all(self, kind: type[T], sql: Sql, /, **parameters: Any) -> list[T]:
        """All rows; only for what is known to be few."""

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        """Run the statement; how many rows it changed."""

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: tuple[str, ...]) -> list[bool]:
        """Run the statement for each of these rows of parameters, in order; whether each changed anything.

        The columns `by` of what it changes are the parameters of those names. Together they must tell each row from
        all others, of other accounts too; where they do not, the outcomes mean nothing.
        """

    def pages(
        self, kind: type[T], sql: Sql, /, after: str, by: str, **parameters: Any
    ) -> AsyncGenerator[list[T], None]:
        """All rows in pages of bounded bytes, each read when it is asked for; the last may be empty.

        The statement is ordered by the column `by` and takes a `limit`; an engine that reads page by page goes on with
        the last row's `by` as the parameter `after`.
        """

    def notify(self, user_id: str, vault_uid: str | None) -> None:
        """Once this is committed, notify followers of this vault, or (None) the requests of this account."""


class Database(Protocol):
    """A place to keep things, whichever engine is behind it."""

    @property
    def waits(self) -> bool:
        """Whether a read, too, is to be waited for; where it is not, it is done when the call returns."""

    @property
    def notifications(self) -> ChangeNotifications:
        """How to learn of commits."""

    @property
    def commit_metrics(self) -> CommitMetrics:
        """What the engine has counted of its work."""

    @property
    def describe(self) -> str:
        """Where the data lies, in a few words for the operator."""

    warn: Callable[[str], None]  # what the operator must know while it is served, such as that a row cannot be read

    @property
    def is_damaged(self) -> bool:
        """Whether pages were met that cannot be read; it stays so until the process starts anew."""

    @property
    def notice(self) -> str | None:
        """What the operator must know of how it was opened: that something is missing, for instance."""

    def at_start(self, action: Callable[[Tx], Awaitable[R]]) -> R:
        """Run an action in a transaction before anybody is served, with or without a loop; CannotOpen if it fails."""

    def examine(self) -> None:
        """Refuse a database that is damaged, with CannotOpen, as far as a few seconds of looking can tell."""

    async def read(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> R:
        """Run a short action that only reads. Statements that must agree on one moment belong in a snapshot."""

    async def read_checked(
        self, check: SessionCheck, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> R:
        """The same, where the one who asks is still to be proven; refused if he is not, whatever the action says."""

    async def write(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> R:
        """Run an action in a transaction; when this returns, what it wrote is on disk."""

    async def write_for(
        self,
        owner: str,
        check: SessionCheck | None,
        action: Callable[Concatenate[Tx, P], Awaitable[R]],
        *args: P.args,
        **kw: P.kwargs,
    ) -> R:
        """The same, for a caller of the account `owner`: its writes may share transactions.

        If there is a session check, a caller that does not pass it is refused before anything is written.
        """

    async def write_long(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> R:
        """The same, for an action that may touch many rows: it must not hold up those who read."""

    async def write_long_checked(
        self, check: SessionCheck, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> R:
        """A long write of one who is still to be proven."""

    def snapshot(
        self, *, steady: bool = False, release: Callable[[], None] | None = None
    ) -> AbstractAsyncContextManager[Tx]:
        """A transaction that only reads, and shows one moment for as long as it is open.

        Each list is one moment in any case; if it is `steady`, so are all that is read in it together. An engine whose
        log cannot be emptied while it is open calls `release`: who reads is to leave it soon, if that is possible.
        """

    async def truncate_log(self) -> bool:
        """Leave nothing of what was deleted in the engine's log; False where somebody still reads from there.

        Then it is tried again in the background, for as long as the database is open.
        """

    @property
    def waiting(self) -> int:
        """How many wait for their turn to write, or for a connection."""

    @property
    def free_bytes(self) -> int | None:
        """How much room is left where the data lies; None where this machine cannot know."""

    async def size(self) -> int:
        """How many bytes the database takes."""

    def release_memory(self) -> None:
        """Give up what is cached in this process and not in use; it is read again when it is needed."""

    async def vacuum(self) -> None:
        """Give back the room that deleted things left. May take long, and keep those waiting who write."""

    async def close(self) -> None:
        """Finish what is under way and let go of the database."""
