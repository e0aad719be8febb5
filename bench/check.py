"""Right answers before fast ones: what a peer must do before it is timed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from bench.dataset import PAGE, SIZES, payload
from bench.peer_requests import PeerRequest, WrongAnswer, expect, send
from bench.peers.base import Peer


def _require(*, true: bool, otherwise: str) -> None:
    if not true:
        raise WrongAnswer(otherwise)


def _refused(peer: Peer, ask: PeerRequest) -> None:
    for stranger in peer.strangers(ask):
        reply = send(peer.host, stranger)
        shown = f"{ask.method} {ask.path} answers a stranger with {reply.status}"
        _require(true=peer.refuses(reply), otherwise=shown)


def _get(peer: Peer) -> None:
    large = peer.data.large
    for number in (0, 1, large.count // 2, large.count - 1):
        ask = peer.get(large.vault, large.uids[number])
        found = peer.document(expect(peer.host, ask))
        _require(true=found == (large.uids[number], payload(number)), otherwise="get gives another document")
    _refused(peer, ask)


def _create(peer: Peer) -> None:
    vault = peer.data.created[-1].vault
    ask = peer.create(vault, payload(77))
    uid, data = peer.document(expect(peer.host, ask))
    _require(true=data == payload(77), otherwise="create answers with other data")
    kept = peer.document(expect(peer.host, peer.get(vault, uid)))
    _require(true=kept == (uid, payload(77)), otherwise="what was created is not there")
    another, _ = peer.document(expect(peer.host, ask))
    _require(true=another != uid, otherwise="two documents have one id")
    _refused(peer, ask)


def _update(peer: Peer) -> None:
    """Replaces a document that the load does not touch, and sees an old version refused."""
    vault = peer.data.created[-1].vault
    uid, _ = peer.document(expect(peer.host, peer.create(vault, payload(1))))
    version = peer.first_version(vault, uid)
    ask = peer.update(vault, uid, payload(2)).filled(version)
    _refused(peer, ask)
    _require(true=peer.document(expect(peer.host, ask)) == (uid, payload(2)), otherwise="update gives other data")
    kept = peer.document(expect(peer.host, peer.get(vault, uid)))
    _require(true=kept == (uid, payload(2)), otherwise="what was updated is not there")
    status = send(peer.host, peer.update(vault, uid, payload(3)).filled(version)).status
    _require(true=status == peer.stale_status, otherwise=f"an update with an old version gets {status}")
    kept = peer.document(expect(peer.host, peer.get(vault, uid)))
    _require(true=kept == (uid, payload(2)), otherwise="an update with an old version was written")


def _list(peer: Peer) -> None:
    listed = peer.data.listed
    ask = peer.list_(listed.vault)
    wanted = [(uid, payload(number)) for number, uid in enumerate(listed.uids)]
    _require(true=peer.documents(expect(peer.host, ask)) == wanted, otherwise="the list is not what was put in")
    _refused(peer, ask)


def _since(peer: Peer) -> None:
    """Nothing is new at the end; after one more document exactly that one is."""
    large, vault = peer.data.large, peer.data.mixed[-1]
    ask = peer.since(large.vault).filled(large.end)
    _require(true=peer.documents(expect(peer.host, ask)) == [], otherwise="since the end, something is new")
    _refused(peer, ask)
    again = peer.since(vault.vault).filled(vault.end)
    before = peer.documents(expect(peer.host, again))
    new = peer.document(expect(peer.host, peer.create(vault.vault, payload(5))))
    found = peer.documents(expect(peer.host, again))
    _require(true=found == [*before, new], otherwise=f"since shows {len(found)} documents, not one more than before")


def _login(peer: Peer) -> None:
    ask = peer.login(1)
    _require(true=peer.works(expect(peer.host, ask)), otherwise="what a login gives does not work")
    wrong = PeerRequest(ask.method, ask.path, (ask.body or "").replace("horse", "cow"), ask.headers)
    _require(true=send(peer.host, wrong).status in {400, 401}, otherwise="a wrong password is accepted")


def _accounts(peer: Peer) -> None:
    """An account writes into its own vault, and not into that of another."""
    mine, other = peer.create_as(0, payload(9)), peer.create_as(1, payload(9))
    _require(true=mine.headers != other.headers, otherwise="two accounts write as one")
    _require(true=peer.document(expect(peer.host, mine))[1] == payload(9), otherwise="create answers with other data")
    crossed = PeerRequest(mine.method, mine.path, mine.body, other.headers, mine.status)
    _require(true=peer.refuses(send(peer.host, crossed)), otherwise="an account writes into the vault of another")


def _list_large(peer: Peer) -> None:
    """The first pages are the first documents, in order, and each begins where the one before ended."""
    large, cursor, found = peer.data.large, peer.first_cursor, []
    for _ in range(3):
        reply = expect(peer.host, peer.page(large.vault).filled(cursor))
        found += peer.documents(reply)
        cursor = peer.next_cursor(reply)
    wanted = [(uid, payload(number)) for number, uid in enumerate(large.uids[: 3 * PAGE])]
    _require(true=found == wanted, otherwise="the pages are not what was put in")


def _get_sized(size: int, peer: Peer) -> None:
    seeded = peer.data.sized[size]
    found = peer.document(expect(peer.host, peer.get(seeded.vault, seeded.uids[-1])))
    _require(true=found == (seeded.uids[-1], seeded.payload(seeded.count - 1)), otherwise="get gives another document")


def _create_sized(size: int, peer: Peer) -> None:
    vault = peer.data.created[-1].vault
    uid, _ = peer.document(expect(peer.host, peer.create(vault, payload(3, size))))
    kept = peer.document(expect(peer.host, peer.get(vault, uid)))
    _require(true=kept == (uid, payload(3, size)), otherwise="what was created is not there")


CHECKS: dict[str, tuple[Callable[[Peer], None], ...]] = {
    "get": (_get,),
    "create": (_create,),
    "update": (_update,),
    "list": (_list,),
    "since": (_since,),
    "login": (_login,),
    "mixed": (_since, _create),
    "accounts": (_accounts,),
    "list-large": (_list_large,),
    **{f"get-{size}": (partial(_get_sized, size),) for size in SIZES.values()},
    **{f"create-{size}": (partial(_create_sized, size),) for size in SIZES.values()},
}


def check(peer: Peer, scenario: str) -> None:
    """Raise WrongAnswer unless the peer answers this scenario's requests rightly."""
    for one in CHECKS[scenario]:
        one(peer)
