"""The protocol of a database: what an engine promises, and its transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from strongroom.model import Document
    from strongroom.store.change_notifications import ChangeNotifications
    from strongroom.store.commit_metrics import CommitMetrics
    from strongroom.store.session_check import SessionCheck
    from strongroom.store.statement import Sql
    from strongroom.store.write_forms import Form

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
        """The timestamp of this transaction, in milliseconds."""

    async def one(self, kind: type[T], sql: Sql, /, **parameters: Any) -> T | None:
        """The row that the statement gives, or None."""

    async def all(self, kind: type[T], sql: Sql, /, **parameters: Any) -> list[T]:
        """All rows; only for what is known to be few."""

    async def few(self, kind: type[T], sql: Sql, /, **parameters: Any) -> list[T] | None:
        """All rows of a statement that gives few; None where one cannot be read, and perhaps where one is large."""

    async def value(self, sql: Sql, /, **parameters: Any) -> Any:
        """The first column of the first row, or None."""

    async def run(self, sql: Sql, /, **parameters: Any) -> int:
        """Run the statement; how many rows it changed."""

    async def each(self, sql: Sql, rows: Sequence[dict[str, Any]], /, by: tuple[str, ...]) -> list[bool]:
        """Run the statement for each of these rows of parameters, in order; whether each changed anything.

        The columns `by` of what it changes are the parameters of those names. Together they must identify a row, also
        among those of other accounts; where they do not, the outcomes mean nothing.
        """

    async def combine(self, user_id: str, groups: Sequence[Sequence[Form]]) -> list[list[Document]] | None:
        """Write documents of one account, each group of one kind with few statements, in order.

        The documents of each group as they are stored; None, and nothing written, if one of them is to be refused. No
        two have the same uid.
        """

    def pages(
        self, kind: type[T], sql: Sql, /, after: str, by: str, mean_bytes: int | None = None, **parameters: Any
    ) -> AsyncGenerator[list[T], None]:
        """All rows in pages of bounded bytes, each read when it is needed; the last may be empty.

        The statement is ordered by the column `by` and takes a `limit`; an engine that reads page by page goes on with
        the last row's `by` as the parameter `after`. `mean_bytes` is about how large the data of a row is, where it is
        known: small ones may be read in a quicker way.
        """

    def notify(self, user_id: str, vault_uid: str | None) -> None:
        """Once this is committed, notify followers of this vault, or (None) the requests of this account."""


class Database(Protocol):
    """A database, whichever engine is behind it."""

    @property
    def waits(self) -> bool:
        """Whether a read suspends; where it does not, it is done when the call returns."""

    @property
    def notifications(self) -> ChangeNotifications:
        """The change notifications of the engine."""

    @property
    def commit_metrics(self) -> CommitMetrics:
        """The metrics of the engine."""

    @property
    def describe(self) -> str:
        """The location of the data, in a few words for the operator."""

    warn: Callable[[str], None]  # what the operator must know while it is served, such as that a row cannot be read

    @property
    def is_damaged(self) -> bool:
        """Whether pages were met that cannot be read; it stays so until the process starts anew."""

    @property
    def notice(self) -> str | None:
        """A notice for the operator about how it was opened, such as that something is missing."""

    def at_start(self, action: Callable[[Tx], Awaitable[R]]) -> R:
        """Run an action before the server accepts requests, with or without an event loop; CannotOpen if it fails."""

    async def begin_serving(self, epoch: str) -> None:
        """Keep restores away from now on, and serve no database of another epoch than this one."""

    def examine(self) -> None:
        """Refuse a database that is damaged, with CannotOpen, as far as a check of a few seconds shows."""

    async def read(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> R:
        """Run a short action that only reads. Statements that must read the same state belong in a snapshot."""

    async def read_checked(
        self, check: SessionCheck, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> R:
        """Run a short read for a caller whose session is still to be checked; refused if the check does not pass."""

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
        """Run a write for a caller of the account `owner`: writes of one owner may share a transaction.

        If there is a session check, a caller that does not pass it is refused before anything is written.
        """

    async def write_long(self, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs) -> R:
        """Run a write that may touch many rows, without delaying readers."""

    async def write_long_checked(
        self, check: SessionCheck, action: Callable[Concatenate[Tx, P], Awaitable[R]], *args: P.args, **kw: P.kwargs
    ) -> R:
        """Run a long write for a caller whose session is still to be checked; refused if the check does not pass."""

    def snapshot(
        self, *, steady: bool = False, release: Callable[[], None] | None = None
    ) -> AbstractAsyncContextManager[Tx]:
        """A read-only transaction that reads one snapshot for as long as it is open.

        Each list is one snapshot in any case; `steady` makes one of all that is read. An engine whose log cannot be
        truncated while it is open calls `release`: the reader is to leave it soon, if that is possible.
        """

    async def truncate_log(self) -> bool:
        """Truncate the engine's log, so that nothing deleted is left in it; False where a reader still needs it.

        Then it is tried again in the background, for as long as the database is open.
        """

    @property
    def is_truncation_overdue(self) -> bool:
        """Whether the log was to be truncated for long, and is still read: then no further export begins."""

    @property
    def waiting(self) -> int:
        """How many writes wait, or how many requests wait for a connection."""

    @property
    def free_bytes(self) -> int | None:
        """Free disk space where the data lies; None where this machine cannot know."""

    async def size(self) -> int:
        """The size of the database, in bytes."""

    def release_memory(self) -> None:
        """Free caches of this process that are not in use."""

    async def vacuum(self) -> None:
        """Give the space of deleted rows back to the system. May take long, and writers may wait for it."""

    async def close(self) -> None:
        """Finish what is under way, and close the database."""
