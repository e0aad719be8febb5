"""Live events: each change once, in order, to every client that may know of it."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from typing import Any

import pytest

from strongroom.server.live import change_source, channel, follower
from tests.kit.asynchronous import async_test
from tests.kit.clock import Clock
from tests.kit.network.event_stream import Event, Follow, following
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.kit.servers.internals import context_of


def events_of(vault: dict[str, Any]) -> str:
    return f"/vaults/{vault['uid']}/events"


def changes(events: list[Event]) -> list[tuple[str, int]]:
    return [(event.data["uid"], event.data["version"]) for event in events]


async def put(person: Person, vault: dict[str, Any], document: dict[str, Any], data: str = "BBBB") -> dict[str, Any]:
    path = f"/vaults/{vault['uid']}/documents/{document['uid']}"
    done = await person("PUT", path, {"data": data, "version": document["version"]})
    assert done.status_code == 200, done.text
    changed: dict[str, Any] = done.json()
    return changed


async def delete(person: Person, vault: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    done = await person("DELETE", f"/vaults/{vault['uid']}/documents/{document['uid']}")
    assert done.status_code == 200, done.text
    tombstone: dict[str, Any] = done.json()
    return tombstone


@async_test
async def test_streams_that_catch_up_read_one_page_in_each_round(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many one account opens: other requests are served between any two pages."""
    rounds, read, page = 0, [], change_source.VaultChanges.page

    async def counted(changes: change_source.VaultChanges) -> Any:
        read.append(rounds)
        return await page(changes)

    async def count() -> None:
        nonlocal rounds
        while True:
            await asyncio.sleep(0)
            rounds += 1

    monkeypatch.setattr(change_source.VaultChanges, "page", counted)
    async with open_server() as server, contextlib.AsyncExitStack() as streams:
        ann = await server.person()
        vault = await ann.vault()
        operations = [{"op": "create", "collection": "c", "data": "AAAA"}] * 300
        assert (await ann("POST", f"/vaults/{vault['uid']}/batch", {"operations": operations})).status_code == 200
        counting = asyncio.create_task(count())
        made = [Follow(server.app, f"{events_of(vault)}?since=0", ann.access) for _ in range(8)]
        await asyncio.gather(*(streams.enter_async_context(stream) for stream in made))
        for stream in made:
            assert await stream.ready() == 0
            assert len(await stream.take(300)) == 300
        counting.cancel()
        behind = [number for number in read if number]
        assert len(behind) >= 8 * 3
        most = max(Counter(behind).values())
        assert most <= 2, f"{most} pages in one round"  # of a stream; and of the channel, when notified


@async_test
async def test_each_change_is_one_event(open_server: OpenServer) -> None:
    """Create, replace, delete, revive: in order, with the moment as id, and without ciphertext."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with Follow(server.app, events_of(vault), ann.access) as stream:
            assert stream.status == 200
            assert stream.headers["content-type"] == "text/event-stream"
            assert stream.headers["cache-control"] == "no-store"
            assert stream.headers["x-accel-buffering"] == "no"
            assert "content-length" not in stream.headers
            assert await stream.ready() == vault["updatedAt"]
            done = [await ann.document(vault, collection="notes", data="c2VjcmV0", hmac="sum")]
            done.append(await put(ann, vault, done[-1]))
            done.append(await delete(ann, vault, done[-1]))
            done.append(await put(ann, vault, done[-1]))
            for document in done:
                event = await stream.next()
                fields = ("uid", "vaultUid", "collection", "version", "updatedAt", "deletedAt")
                assert event == Event("document", document["updatedAt"], {name: document[name] for name in fields})
            assert done[2]["deletedAt"] == done[2]["updatedAt"]
            assert b"c2VjcmV0" not in stream.body
            assert stream.body.startswith(b": strongroom\nretry: 2000\n\n")


@pytest.mark.parametrize("how", ["query", "header", "both"])
@async_test
async def test_a_stream_goes_on_where_it_was(open_server: OpenServer, how: str) -> None:
    """Without a gap and without a repeat, in whichever way the place is given; the header counts before the query."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        made = [await ann.document(vault) for _ in range(5)]
        moment = str(made[1]["updatedAt"])
        path = events_of(vault) + {"query": f"?since={moment}", "header": "", "both": "?since=0"}[how]
        headers = {} if how == "query" else {"last_event_id": moment}
        async with Follow(server.app, path, ann.access, **headers) as stream:
            assert await stream.ready() == int(moment)
            assert changes(await stream.take(3)) == [(one["uid"], 1) for one in made[2:]]
            later = await ann.document(vault)
            assert changes([await stream.next()]) == [(later["uid"], 1)]
        async with following(server, ann, f"{events_of(vault)}?since={later['updatedAt']}") as stream:
            last = await ann.document(vault)
            assert changes([await stream.next()]) == [(last["uid"], 1)]
        async with following(server, ann, f"{events_of(vault)}?since=0") as stream:
            assert changes(await stream.take(7)) == [(one["uid"], 1) for one in [*made, later, last]]


@pytest.mark.parametrize("bad", ["-1", "x", "1.5", "", "%2B1", "1e3"])
@async_test
async def test_a_place_that_is_none_is_refused(open_server: OpenServer, bad: str) -> None:
    """With a sentence for each that is wrong; and a number beyond all numbers is only far away."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        for path in (events_of(vault), "/events"):
            refused = await ann("GET", f"{path}?since={bad}")
            assert refused.status_code == 400
            assert set(refused.json()["error"]["details"]["fields"]) == {"since"}
            refused = await ann("GET", f"{path}?since={bad}", headers={"last-event-id": "no"})
            assert set(refused.json()["error"]["details"]["fields"]) == {"since", "Last-Event-ID"}
            async with following(server, ann, f"{path}?since={'9' * 40}") as stream:
                await ann.document(vault)
                assert stream.waiting == []


@async_test
async def test_a_head_begins_no_stream(open_server: OpenServer) -> None:
    """The headers alone, and the same refusals."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        for path in (events_of(vault), f"/vault/{vault['uid']}/events", "/events"):
            answer = await ann("HEAD", path)
            assert (answer.status_code, answer.headers["content-type"]) == (200, "text/event-stream")
        assert (await ann("HEAD", f"/vaults/{ann.id}/events")).status_code == 404


@async_test
async def test_whoever_is_far_behind_catches_up_and_joins(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages of three, many writers meanwhile: all of it, in order, once."""
    monkeypatch.setattr("strongroom.server.live.change_source.PAGE", 3)
    async with open_server() as server:
        ann = await server.person()
        vault, other = await ann.vault(), await ann.vault()
        made = [await ann.document(vault) for _ in range(20)]
        writing = [asyncio.create_task(ann.document(vault)) for _ in range(20)]
        streams = [
            Follow(server.app, f"{path}?since={vault['updatedAt']}", ann.access)
            for path in (events_of(vault), "/events")
        ]
        for stream in streams:
            await stream.__aenter__()
            await stream.ready()
        made += await asyncio.gather(*writing)
        made += [await ann.document(vault) for _ in range(3)]
        made.sort(key=lambda one: int(one["updatedAt"]))
        for stream in streams:
            found = [event for event in await stream.take(43 + (stream is streams[1])) if event.name == "document"]
            assert changes(found) == [(one["uid"], 1) for one in made]
            assert stream.waiting == []
            await stream.__aexit__()
        assert other


@async_test
async def test_who_does_not_read_is_never_buffered_for_and_misses_nothing(
    open_server: OpenServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond a number of bytes it falls behind; when it reads again, it has all of it, once."""
    monkeypatch.setattr(follower, "MAX_BYTES", 2_000)
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with following(server, ann, events_of(vault)) as slow, following(server, ann, events_of(vault)) as quick:
            await ann.document(vault)
            await slow.next()
            [held] = [one for one in followers(server) if one._sent == one._cursor][:1]
            slow.open.clear()
            made = [await ann.document(vault) for _ in range(40)]
            assert changes((await quick.take(41))[1:]) == [(one["uid"], 1) for one in made]
            assert max(one._bytes for one in followers(server)) <= 2_000
            assert any(one._behind for one in followers(server))
            assert held
            slow.open.set()
            assert changes(await slow.take(40)) == [(one["uid"], 1) for one in made]
            last = await ann.document(vault)
            assert changes([await slow.next()]) == changes([await quick.next()]) == [(last["uid"], 1)]


def followers(server: InProcessServer) -> list[Any]:
    """Everybody who follows anything."""
    accounts = context_of(server.app).live._accounts.values()
    return [one for account in accounts for found in account.channels.values() for one in found.followers]


@async_test
async def test_a_comment_keeps_proxies_awake(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nothing happens."""
    monkeypatch.setattr(follower, "COMMENT_SECONDS", 0.05)
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with following(server, ann, events_of(vault)) as stream:
            before = stream.comments
            await stream._until(lambda: stream.comments >= before + 3)
            assert stream.waiting == []


@async_test
async def test_a_key_follows_what_it_reaches(open_server: OpenServer) -> None:
    """Its vaults, its collections, and only if it may read."""
    async with open_server() as server:
        ann = await server.person()
        inside, outside = await ann.vault(), await ann.vault()
        writer = await ann.key(permissions=["write", "delete"])
        of_vault = await ann.key(vaultUids=[inside["uid"]])
        of_collection = await ann.key(collections=["in"], permissions=["read"])
        for path in (events_of(inside), "/events"):
            assert (await ann("GET", path, bearer=writer)).status_code == 403
        assert (await ann("GET", events_of(outside), bearer=of_vault)).status_code == 404
        paths = {"vault": events_of(inside), "account": "/events"}
        streams = {
            (who, where): Follow(server.app, path, key)
            for who, key in (("vault", of_vault), ("collection", of_collection), ("user", ann.access))
            for where, path in paths.items()
        }
        for stream in streams.values():
            await stream.__aenter__()
            await stream.ready()
        made = [
            await ann.document(vault, collection=collection)
            for vault in (inside, outside)
            for collection in ("in", "out", "in")
        ]
        inside_in, inside_out, inside_in2, outside_in, outside_out, outside_in2 = (one["uid"] for one in made)
        wanted = {
            ("vault", "vault"): [inside_in, inside_out, inside_in2],
            ("vault", "account"): [inside_in, inside_out, inside_in2],
            ("collection", "vault"): [inside_in, inside_in2],
            ("collection", "account"): [inside_in, inside_in2, outside_in, outside_in2],
            ("user", "vault"): [inside_in, inside_out, inside_in2],
            ("user", "account"): [inside_in, inside_out, inside_in2, outside_in, outside_out, outside_in2],
        }
        end = await ann.document(inside, collection="in")
        for name, stream in streams.items():
            uids = [event.data["uid"] for event in await stream.take(len(wanted[name]) + 1)]
            assert uids == [*wanted[name], end["uid"]], name
            await stream.__aexit__()
            for key, path in (
                (of_vault, paths[name[1]]),
                (of_collection, paths[name[1]]),
                (ann.access, paths[name[1]]),
            ):
                if key == stream._sent[1][1].decode().removeprefix("Bearer "):
                    async with following(server, ann, f"{path}?since={outside['updatedAt']}", bearer=key) as again:
                        caught = [event.data["uid"] for event in await again.take(len(wanted[name]) + 1)]
                        assert caught == [*wanted[name], end["uid"]], name


@async_test
async def test_an_account_is_followed_with_its_vaults(open_server: OpenServer) -> None:
    """Created, renamed, blob set, deleted: between the documents, at the moment at which it was."""
    async with open_server() as server:
        ann, bob = await server.person(), await server.person()
        first = await ann.vault()
        async with following(server, ann, "/events") as stream, following(server, bob, "/events") as foreign:
            second = await ann.vault(name="second")
            one = await ann.document(first)
            renamed = (await ann("PUT", f"/vault/{second['uid']}", {"name": "2nd", "version": 1})).json()
            two = await ann.document(second)
            blob = (await ann("PUT", f"/vault/{second['uid']}", {"data": "blob", "salt": ""})).json()
            assert [(event.name, event.data) for event in await stream.take(5)] == [
                ("vault", told(second, "created")),
                ("document", told_of(one)),
                ("vault", told(renamed, "renamed")),
                ("document", told_of(two)),
                ("vault", told(blob, "blob")),
            ]
            await ann("DELETE", f"/vault/{second['uid']}")
            three = await ann.document(first)
            assert [(event.name, event.data) for event in await stream.take(2)] == [
                ("vault", {**told(blob, "deleted"), "updatedAt": three["updatedAt"] - 1}),
                ("document", told_of(three)),
            ]
            own = await bob.vault()
            assert (await foreign.next()).data == told(own, "created")
        async with following(server, ann, f"/events?since={first['updatedAt']}") as stream:
            found = [(event.name, event.data.get("kind")) for event in await stream.take(6)]
            assert [kind or name for name, kind in found] == [
                "created",
                "document",
                "renamed",
                "blob",
                "deleted",
                "document",
            ]


def told(vault: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"uid": vault["uid"], "kind": kind} | {name: vault[name] for name in ("name", "version", "updatedAt")}


def told_of(document: dict[str, Any]) -> dict[str, Any]:
    return {name: document[name] for name in ("uid", "vaultUid", "collection", "version", "updatedAt", "deletedAt")}


@async_test
async def test_a_key_of_collections_learns_of_no_blob(open_server: OpenServer) -> None:
    """It sees that the vault changed, as its version tells it too; a key of other vaults sees nothing."""
    async with open_server() as server:
        ann = await server.person()
        vault, other = await ann.vault(), await ann.vault()
        of_collection = await ann.key(collections=["in"])
        of_other = await ann.key(vaultUids=[other["uid"]])
        async with (
            following(server, ann, "/events", bearer=of_collection) as limited,
            following(server, ann, "/events", bearer=of_other) as elsewhere,
        ):
            blob = (await ann("PUT", f"/vault/{vault['uid']}", {"data": "blob", "salt": ""})).json()
            assert (await limited.next()).data == told(blob, "renamed")
            shown = await ann.document(other)
            assert (await elsewhere.next()).data["uid"] == shown["uid"]


@pytest.mark.parametrize("variant", ["document", "blob"])
@async_test
async def test_a_narrowed_server_tells_what_it_serves(open_server: OpenServer, variant: str) -> None:
    """One of blob vaults has no stream of a vault, and shows no documents that are there from before."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault(data="blob", salt="")
        await ann.document(vault)
    async with open_server(variant=variant, jwt_issuer="strongroom") as server:
        ann.http = server.http
        async with following(server, ann, f"/events?since={vault['updatedAt'] - 1}") as stream:
            assert (await stream.next()).name == "vault"
            if variant == "blob":
                assert (await ann("GET", events_of(vault))).status_code == 404
                again = (await ann("PUT", f"/vault/{vault['uid']}", {"data": "new", "salt": ""})).json()
                assert (await stream.next()).data == told({**again}, "blob")
            else:
                assert (await stream.next()).name == "document"


@async_test
async def test_a_deleted_vault_ends_its_streams(open_server: OpenServer) -> None:
    """Also if another one has its uid at once; and who is behind is told the same."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with following(server, ann, events_of(vault)) as stream, following(server, ann, events_of(vault)) as slow:
            slow.open.clear()
            await ann.document(vault)
            await stream.next()
            await ann("DELETE", f"/vault/{vault['uid']}")
            again = await ann.vault(uid=vault["uid"])
            assert await stream.reason() == "vault_deleted"
            slow.open.set()
            assert (await slow.next()).name in {"document", "end"}
        assert (await ann("GET", f"/vaults/{server.clock.now}/events")).status_code == 404
        async with following(server, ann, events_of(again)) as stream:
            made = await ann.document(again)
            assert changes([await stream.next()]) == [(made["uid"], 1)]


@async_test
async def test_a_token_that_expires_ends_its_stream(open_server: OpenServer, clock: Clock) -> None:
    """Nothing is shown from that moment on, whatever wakes the stream."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        key = await ann.key(expiresAt=clock.now + 60_000)
        async with (
            following(server, ann, events_of(vault)) as by_token,
            following(server, ann, events_of(vault), bearer=key) as by_key,
        ):
            clock.pass_(59_999)
            await ann.document(vault)
            assert (await by_key.next()).name == (await by_token.next()).name == "document"
            clock.pass_(1)
            await ann.document(vault)
            assert await by_key.reason() == "key_expired"
            assert (await by_token.next()).name == "document"
            clock.pass_(14 * 60_000)
            renewed = (await server.login(ann.email)).json()["accessToken"]
            await ann("POST", f"/vaults/{vault['uid']}/documents", {"collection": "c", "data": "AAAA"}, bearer=renewed)
            assert await by_token.reason() == "token_expired"


@async_test
async def test_random_comings_and_goings_miss_nothing(open_server: OpenServer) -> None:
    """A reader that is cut off again and again, in the middle of anything, sees each change once."""
    chance = random.Random(5)  # noqa: S311 - to be repeated
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        written: list[tuple[str, int]] = []

        async def write() -> None:
            for _ in range(60):
                document = await ann.document(vault)
                written.append((document["uid"], 1))
                if chance.random() < 0.3:
                    document = await put(ann, vault, document)
                    written.append((document["uid"], 2))
                await asyncio.sleep(chance.random() * 0.003)
            last = await ann.document(vault, collection="the end")
            written.append((last["uid"], 1))

        async def read(path: str) -> list[tuple[str, int]]:
            seen: list[tuple[str, int]] = []
            cursor = vault["updatedAt"]
            over = False
            while not over:
                async with Follow(server.app, path, ann.access, last_event_id=str(cursor)) as stream:
                    assert await stream.ready() == cursor
                    for _ in range(chance.randrange(1, 9)):
                        event = await stream.next()
                        assert event.id is not None
                        assert event.id > cursor
                        cursor = event.id
                        seen.append((event.data["uid"], event.data["version"]))
                        over = event.data["collection"] == "the end"
                        if over:
                            break
            return seen

        reading = [asyncio.create_task(read(path)) for path in (events_of(vault), "/events", events_of(vault))]
        await write()
        for seen in await asyncio.gather(*reading):
            latest = dict(sorted(seen, key=lambda change: change[1]))
            assert latest == dict(sorted(written, key=lambda change: change[1]))
            assert len(seen) == len(set(seen))


@async_test
async def test_nothing_is_left_of_those_who_went(open_server: OpenServer) -> None:
    """No channel, no follower, no timer."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        for _ in range(3):
            async with following(server, ann, events_of(vault)), following(server, ann, "/events"):
                await ann.document(vault)
        hub = context_of(server.app).live
        assert hub._accounts == {}


@async_test
async def test_a_burst_is_one_read_for_all(open_server: OpenServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten who follow one vault: the channel reads once a wake, and looks once at who they are."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        streams = [Follow(server.app, events_of(vault), ann.access) for _ in range(10)]
        for stream in streams:
            await stream.__aenter__()
            await stream.ready()
        await ann.document(vault)
        for stream in streams:
            await stream.next()
        looks = 0
        access_status = channel.Channel.access_status

        async def counted(self: channel.Channel) -> Any:
            nonlocal looks
            looks += 1
            return await access_status(self)

        monkeypatch.setattr(channel.Channel, "access_status", counted)
        await ann.document(vault)
        for stream in streams:
            await stream.next()
        assert looks == 1
        for stream in streams:
            await stream.__aexit__()


@async_test
async def test_a_change_of_a_vault_that_was_seen_is_not_told_again(open_server: OpenServer) -> None:
    """Whoever goes on after the id of an event, of a vault or of a document, gets what came after it."""
    async with open_server() as server:
        ann = await server.person()
        vault = await ann.vault()
        async with Follow(server.app, "/events?since=0", ann.access) as stream:
            await stream.ready()
            seen = await stream.next()
            assert (seen.name, seen.id) == ("vault", vault["updatedAt"])
        async with Follow(server.app, f"/events?since={seen.id}", ann.access) as stream:
            await stream.ready()
            document = await ann.document(vault)
            assert (await stream.next()).id == document["updatedAt"]
