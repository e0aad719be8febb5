"""What is measured: one row each, with the requests that its clients send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from bench.dataset import ACCOUNTS, LISTED, MOST_CLIENTS, PAGE, PAYLOAD_BYTES, SIZES, WRITERS, payload
from bench.load import Plan
from bench.peer_requests import request_template
from bench.peers.base import Peer

_DOCUMENT = PAYLOAD_BYTES + 20  # an answer with one document has at least this many bytes
TIMES = "\N{MULTIPLICATION SIGN}"
_EMPTY = 400  # an answer without documents has at most this many


@dataclass(frozen=True)
class Scenario:
    """One row of the table."""

    name: str
    title: str
    plan: Callable[[Peer], Plan]
    clients: tuple[int, ...] = ()  # the numbers of clients that it is made for; none: those of the run
    rounds: int | None = None  # None: those of the run


def _get(peer: Peer) -> Plan:
    large = peer.data.large
    step = max(1, len(large.uids) // 997)
    asks = [peer.get(large.vault, uid) for uid in large.uids[::step]]
    return Plan(peer.host, [[request_template(ask, peer.host, least=_DOCUMENT) for ask in asks]])


def _create(peer: Peer) -> Plan:
    """Each client writes into a vault of its own, as clients do."""
    return Plan(
        peer.host,
        [
            [
                request_template(peer.create(seeded.vault, payload(number)), peer.host, least=_DOCUMENT)
                for number in range(16)
            ]
            for seeded in peer.data.created
        ],
    )


def _update(peer: Peer) -> Plan:
    """Each client replaces its own documents in turn, always naming the version that it saw last."""
    lanes, values = [], []
    for seeded in peer.data.updated:
        asks = [
            (slot, peer.update(seeded.vault, uid, payload(slot + turn * 7 + 1)))
            for turn in (0, 1)
            for slot, uid in enumerate(seeded.uids)
        ]
        lanes.append([request_template(ask, peer.host, slot=slot, least=_DOCUMENT) for slot, ask in asks])
        values.append([peer.first_version(seeded.vault, uid).encode() for uid in seeded.uids])
    return Plan(peer.host, lanes, values, peer.marker_version)


def _list(peer: Peer) -> Plan:
    one = request_template(peer.list_(peer.data.listed.vault), peer.host, least=LISTED * PAYLOAD_BYTES)
    return Plan(peer.host, [[one]])


def _since(peer: Peer) -> Plan:
    ask = peer.since(peer.data.large.vault).filled(peer.data.large.end)
    return Plan(peer.host, [[request_template(ask, peer.host, most=_EMPTY)]])


def _login(peer: Peer) -> Plan:
    asks = [peer.login(number) for number in range(ACCOUNTS)]
    return Plan(peer.host, [[request_template(ask, peer.host, least=100) for ask in asks]])


def _mixed(peer: Peer) -> Plan:
    """Each client keeps a vault of its own in sync: nine times it asks what is new, once it writes."""
    lanes, values = [], []
    for seeded in peer.data.mixed:
        asked = request_template(peer.since(seeded.vault), peer.host, slot=0)
        written = [
            request_template(peer.create(seeded.vault, payload(number)), peer.host, least=_DOCUMENT)
            for number in range(8)
        ]
        lanes.append([one for write in written for one in (*[asked] * 9, write)])
        values.append([seeded.end.encode()])
    return Plan(peer.host, lanes, values, peer.marker_cursor)


def _accounts(peer: Peer) -> Plan:
    """Each request is of another account than the one before on its connection, in a vault of that account."""
    lanes = [
        [request_template(peer.create_as(number, payload(number)), peer.host, least=_DOCUMENT) for number in numbers]
        for numbers in (range(first, WRITERS, MOST_CLIENTS) for first in range(MOST_CLIENTS))
    ]
    return Plan(peer.host, lanes)


def _list_large(peer: Peer) -> Plan:
    """Each client reads the whole large vault in pages, each page from the cursor of the one before; then once more."""
    large = peer.data.large
    sizes = [min(PAGE, large.count - done) for done in range(0, large.count, PAGE)]
    ask, begin = peer.page(large.vault), peer.first_cursor.encode()
    lane = [
        request_template(
            ask,
            peer.host,
            slot=0,
            least=size * PAYLOAD_BYTES,
            first=None if number else begin,
            last=number == len(sizes) - 1,
        )
        for number, size in enumerate(sizes)
    ]
    values = [[begin] for _ in range(MOST_CLIENTS)]
    return Plan(peer.host, [lane], values, peer.marker_page, [0] * MOST_CLIENTS)


def _get_sized(size: int, peer: Peer) -> Plan:
    seeded = peer.data.sized[size]
    asks = [peer.get(seeded.vault, uid) for uid in seeded.uids]
    return Plan(peer.host, [[request_template(ask, peer.host, least=size) for ask in asks]])


def _create_sized(size: int, peer: Peer) -> Plan:
    """As `create`, with few different bodies: the load keeps them all in memory."""
    vaults = [seeded.vault for seeded in peer.data.created]
    lanes = [
        [request_template(peer.create(vault, payload(number, size)), peer.host, least=size)]
        for number, vault in enumerate(vaults)
    ]
    return Plan(peer.host, lanes)


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        Scenario("get", "get one document (1 KB)", _get),
        Scenario("create", "create (1 KB)", _create),
        Scenario("update", "update (1 KB)", _update),
        Scenario("list", f"list 1,000 {TIMES} 1 KB", _list),
        Scenario("since", "`since`, nothing new, vault of 100,000", _since),
        Scenario("login", "login", _login),
        Scenario("mixed", "sync: 90 % `since`, 10 % writes", _mixed),
        Scenario("accounts", f"create (1 KB) as {WRITERS:,} accounts", _accounts, (64,)),
        Scenario("list-large", f"list 100,000 {TIMES} 1 KB in pages of {PAGE:,}", _list_large, (16,), 1),
        *(
            Scenario(f"{name}-{size}", f"{name} ({title})", partial(plan, size), (16,))
            for title, size in SIZES.items()
            for name, plan in (("get", _get_sized), ("create", _create_sized))
        ),
    )
}
