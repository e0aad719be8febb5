"""Two releases on one PostgreSQL at once, as while nodes are upgraded one after the other."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.concurrent_clients import SHORT_ANSWER, Writer, stored
from tests.kit.network.event_stream import Parser
from tests.kit.people.one_time_codes import code
from tests.kit.requirements import skip_or_fail
from tests.kit.samples import rounds
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.upgrade import wheels

PASSWORD = "correct horse"


class Release(Server):
    """A server out of an unpacked wheel, and not out of the working tree."""

    def __init__(self, site: Path, home: Path, **settings: str) -> None:
        super().__init__(home, PYTHONPATH=str(site), **settings)
        self.site = site

    @property
    def schema(self) -> list[str]:
        """The steps of the schema that its program knows."""
        return sorted(path.name for path in (self.site / "strongroom/store/migrations").glob("*.sql"))


@pytest.fixture(scope="module", params=["without promises", *(["last release"] if wheels.last_release() else [])])
def sites(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A release before this one and this one, unpacked."""
    commit = wheels.without_promises() if request.param == "without promises" else wheels.last_release()
    if commit is None:
        skip_or_fail("That release is not in the history here. Clone without --depth.")
    folder = tmp_path_factory.mktemp("releases")
    return wheels.of_commit(commit, folder / "before"), wheels.unpacked(wheels.ROOT, folder / "now")


def serves_beside(old: Release, new: Release) -> bool:
    """Whether every step of the schema that the old release does not know promises that it may serve."""
    newest = max(int(name[:4]) for name in old.schema)
    steps = [new.site / "strongroom/store/migrations" / name for name in set(new.schema) - set(old.schema)]
    promises = [re.match(r"-- serves from (\d+)\n", step.read_text("utf-8")) for step in steps]
    return all(promise is not None and int(promise[1]) <= newest for promise in promises)


def reads_promises(release: Release) -> bool:
    """Whether its program knows what a promise is."""
    return "serves from" in (release.site / "strongroom/store/migrations/__init__.py").read_text("utf-8")


@pytest.fixture
def nodes(sites: tuple[Path, Path], tmp_path: Path) -> Iterator[tuple[Release, Release]]:
    """The old one serves already when the new one comes, and migrates."""
    where = {"DATABASE_URL": postgres().fresh()}
    old, new = (Release(site, tmp_path / name, **where) for site, name in zip(sites, ("old", "new"), strict=True))
    try:
        old.start()
        new.start()
        yield old, new
    finally:
        old.abandon()
        new.abandon()


def url(node: Server) -> str:
    return f"http://127.0.0.1:{node.port}"


def test_both_serve_one_database(nodes: tuple[Release, Release]) -> None:
    """What one writes the other reads, refuses to write over, sees in its list and sends to its followers."""
    old, new = nodes
    if reads_promises(old):
        assert set(old.schema) <= set(new.schema)
        assert old.connect().get("/ready").json()["status"] == "ready"
    else:
        assert set(old.schema) < set(new.schema)
        assert old.connect().get("/ready").status_code == 404
    assert new.connect().get("/ready").json()["status"] == "ready"
    body = {"email": "ann@example.com", "password": PASSWORD}
    token = old.connect().post("/auth/email/register", json=body).json()["accessToken"]
    for one, other in ((old, new), (new, old)):
        here, there = one.connect(token), other.connect(token)
        vault = here.post("/vault", json={"name": f"of {one.port}"}).json()
        uid = vault["uid"]
        assert there.get(f"/vault/{uid}").json()["name"] == vault["name"]
        with there.stream("GET", f"/vaults/{uid}/events") as stream:
            pieces = stream.iter_raw()
            parser = Parser()
            events = (event for piece in pieces for event in parser.feed(piece) if not event.comment)
            assert next(events).name == "ready"
            made = here.post(f"/vaults/{uid}/documents", json={"collection": "c", "data": "AAAA"}).json()
            assert next(events).data["uid"] == made["uid"]
        path = f"/vaults/{uid}/documents/{made['uid']}"
        changed = there.put(path, json={"data": "BBBB", "version": 1}).json()
        assert changed["version"] == 2
        assert changed["updatedAt"] > made["updatedAt"]
        refused = here.put(path, json={"data": "CCCC", "version": 1})
        assert (refused.status_code, refused.json()["error"]["code"]) == (409, "document_conflict")
        listed = here.get(f"/vaults/{uid}/documents?since={made['updatedAt']}").json()["documents"]
        assert [(one["uid"], one["data"]) for one in listed] == [(made["uid"], "BBBB")]
        assert there.delete(path).status_code == 200
        assert here.get(path).json()["deletedAt"] is not None
        key = here.post("/auth/api-keys", json={"name": "k"}).json()["key"]
        assert there.get("/vault", headers={"authorization": f"Bearer {key}"}).status_code == 200
        login = there.post("/auth/email/login", json=body).json()
        renewed = here.post("/auth/refresh", json={"refreshToken": login["refreshToken"]})
        assert renewed.status_code == 200
        assert there.get("/auth/me", headers={"authorization": f"Bearer {login['accessToken']}"}).status_code == 200


def test_the_old_one_lets_nobody_around_a_second_factor(nodes: tuple[Release, Release]) -> None:
    """One that does not know what that is takes no password of somebody who has one, and goes on for others."""
    old, new = nodes
    body = {"email": "ann@example.com", "password": PASSWORD}
    ann = new.connect(old.connect().post("/auth/email/register", json=body).json()["accessToken"])
    begun = ann.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}).json()
    first = {"code": code(begun["secret"], int(ann.get("/health").json()["timestamp"]))}
    assert ann.post("/auth/second-factor/totp/confirm", json=first).status_code == 201
    assert new.connect().post("/auth/email/login", json=body).json()["error"]["code"] == "second_factor_required"
    there = old.connect(ann.headers["authorization"].removeprefix("Bearer "))
    knows = there.get("/auth/second-factor").status_code == 200
    refused = old.connect().post("/auth/email/login", json=body)
    said = "second_factor_required" if knows else "invalid_credentials"
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, said)
    assert there.get("/auth/me").status_code == 200
    change = {"currentPassword": PASSWORD, "newPassword": "another horse"}
    assert there.put("/auth/password", json=change).status_code == 401
    assert there.request("DELETE", "/auth/me", json={"password": PASSWORD}).status_code == 401
    other = {**body, "email": "bob@example.com"}
    assert old.connect().post("/auth/email/register", json=other).status_code == 201
    assert old.connect().post("/auth/email/login", json=other).status_code == 200


def test_many_write_through_both_and_nothing_is_lost(nodes: tuple[Release, Release]) -> None:
    """Into one account from both sides: every moment is drawn once, and both show the same."""
    old, new = nodes
    body = {"email": "ann@example.com", "password": PASSWORD}
    token = new.connect().post("/auth/email/register", json=body).json()["accessToken"]
    vaults = [old.connect(token).post("/vault", json={"name": f"v{n}"}).json()["uid"] for n in range(2)]
    most = rounds(150, 2_000)
    writers = [Writer(url(node), token, vault) for node in nodes for vault in vaults for _ in range(2)]

    async def write() -> None:
        def enough() -> bool:
            return sum(len(writer.acknowledged) for writer in writers) < most

        await asyncio.gather(*(writer.run(enough) for writer in writers))

    asyncio.run(write())
    assert all(writer.acknowledged for writer in writers)
    assert not any(writer.refused for writer in writers)
    assert max(writer.slowest for writer in writers) < SHORT_ANSWER
    moments = [moment for writer in writers for moment, _, _ in writer.moments]
    assert len(set(moments)) == len(moments)
    for vault in vaults:
        kept = [asyncio.run(stored(url(node), token, vault)) for node in nodes]
        assert kept[0] == kept[1]
        for writer in writers:
            if writer._vault == vault:
                assert writer.acknowledged.items() <= kept[0].items()


def test_the_old_one_starts_again_only_where_it_was_promised(sites: tuple[Path, Path], tmp_path: Path) -> None:
    """A release that cannot read promises, or has none, refuses a newer schema with a sentence, and does not guess."""
    where = postgres().fresh()
    new = Release(sites[1], tmp_path / "new", DATABASE_URL=where)
    old = Release(sites[0], tmp_path / "old", DATABASE_URL=where)
    try:
        new.start()
        if reads_promises(old) and serves_beside(old, new):
            old.start()
            assert old.connect().get("/ready").json()["status"] == "ready"
        else:
            with pytest.raises(AssertionError, match="install a newer strongroom"):
                old.start()
    finally:
        new.abandon()
        old.abandon()
