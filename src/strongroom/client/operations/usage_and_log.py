"""The account's usage and its log, as the server says: nothing of this can be proven."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from strongroom.client.errors import Tampered
from strongroom.client.net import requests
from strongroom.errors import InsufficientScope

if TYPE_CHECKING:
    from strongroom.client.net.effects import Effects
    from strongroom.client.operations.core import Core
    from strongroom.model import Event

_NO_USAGE: Final = "The server does not say what the account uses."
_ORDER: Final = "The server's log of the account is not in order, or shows an entry twice."


class Usage(Struct, frozen=True, kw_only=True):
    """What the account uses and may use, as the server says.

    `documents` and `bytes` count what is not deleted, `kept` the bytes of trash and history. A limit of None does not
    limit.
    """

    documents: int
    bytes: int
    kept: int
    max_documents: int | None
    max_bytes: int | None


def usage(core: Core) -> Effects[Usage]:
    """The account's usage and limits."""
    me = yield from core.session.send(requests.accounts.me())
    if core.token is not None and me.usage is None:
        raise InsufficientScope("A token for one vault or collection does not see the account's usage.")
    if me.usage is None or me.limits is None:
        raise Tampered(_NO_USAGE)
    return Usage(
        documents=me.usage.documents,
        bytes=me.usage.bytes,
        kept=me.usage.kept,
        max_documents=me.limits.documents,
        max_bytes=me.limits.bytes,
    )


class LogPages:
    """A cursor over the account's log, page by page, newest first."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._before: str | None = None
        self.more = True

    def page(self) -> Effects[list[Event]]:
        """The next entries; `more` says whether there are older ones."""
        page = yield from self._core.session.send(requests.accounts.log(self._before))
        self._check_order([entry.id for entry in page.events])
        if page.has_more and not page.events:
            raise Tampered(_ORDER)
        self._before = page.events[-1].id if page.events else self._before
        self.more = page.has_more
        return page.events

    def _check_order(self, ids: list[str]) -> None:
        """Refuse entries that do not go back in time from the one before them."""
        before = [] if self._before is None else [self._before]
        if any(older >= newer for newer, older in pairwise([*before, *ids])):
            raise Tampered(_ORDER)
