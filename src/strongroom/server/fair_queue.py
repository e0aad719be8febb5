"""A queue in which addresses take turns, and the accounts of an address among themselves."""

from __future__ import annotations

from collections import Counter
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")
REMEMBERED: Final = 4_096  # addresses that had a turn; others had none


class Place(NamedTuple):
    """Where work waits: with that of its address, and there with that of its account."""

    address: str  # as limits count it: an IPv6 address is its /64 network
    account: str


class FairQueue(Generic[T]):
    """Work by address and account. The turn is that of the address whose last turn is the longest ago.

    So an address that sends much waits for its own work, and one that sends something now and then for nobody's.
    """

    def __init__(self, per_account: int = 0) -> None:
        self._per_account = per_account
        self._lines: dict[str, dict[str, list[T]]] = {}  # by address, then by account in the order of turns
        self._turns: dict[str, int] = {}  # the last one of each address, the oldest first
        self._turn = 0
        self._of_address: Counter[str] = Counter()
        self._of_account: Counter[str] = Counter()

    def __len__(self) -> int:
        return self._of_address.total()

    def count(self, address: str) -> int:
        """How much of this address waits."""
        return self._of_address[address]

    @property
    def longest(self) -> int:
        """How much waits of the address of which the most waits."""
        return max(self._of_address.values(), default=0)

    def admits(self, place: Place) -> bool:
        """Whether the account has less than its share.

        It has one place at each address beyond it: others cannot keep its owner out from elsewhere.
        """
        here = self._lines.get(place.address, {})
        return place.account not in here or self._of_account[place.account] < self._per_account

    def add(self, place: Place, work: T) -> None:
        """Let work wait for its turn."""
        self._lines.setdefault(place.address, {}).setdefault(place.account, []).append(work)
        self._of_address[place.address] += 1
        self._of_account[place.account] += 1

    def next(self) -> T | None:
        """The work whose turn it is."""
        if not self._lines:
            return None
        address = min(self._lines, key=lambda one: self._turns.get(one, 0))
        accounts = self._lines[address]
        account = next(iter(accounts))
        work = accounts[account][0]
        self._remove(Place(address, account), 0)
        if account in accounts:
            accounts[account] = accounts.pop(account)
        self._remember(address)
        return work

    def remove_longest(self) -> T:
        """Take out the newest work of the account that has the most at the address that has the most."""
        address = max(self._of_address, key=lambda one: self._of_address[one])
        accounts = self._lines[address]
        account = max(accounts, key=lambda one: len(accounts[one]))
        work = accounts[account][-1]
        self._remove(Place(address, account), -1)
        return work

    def discard(self, place: Place, work: T) -> None:
        """Take out work that nobody waits for any more, if it is still there."""
        works = self._lines.get(place.address, {}).get(place.account, [])
        if work in works:
            self._remove(place, works.index(work))

    def _remember(self, address: str) -> None:
        """Note the turn of an address, and forget the oldest one."""
        self._turns.pop(address, None)
        self._turn += 1
        self._turns[address] = self._turn
        if len(self._turns) > REMEMBERED:
            del self._turns[next(iter(self._turns))]

    def _remove(self, place: Place, at: int) -> None:
        """Take out one, and leave nothing behind of an address or an account without work."""
        accounts = self._lines[place.address]
        del accounts[place.account][at]
        if not accounts[place.account]:
            del accounts[place.account]
        if not accounts:
            del self._lines[place.address]
        for counts, name in ((self._of_address, place.address), (self._of_account, place.account)):
            counts[name] -= 1
            if not counts[name]:
                del counts[name]
