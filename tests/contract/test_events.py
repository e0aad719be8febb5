"""Live events over real connections: streams, long polls, and what ends them."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.kit.calibration import measured
from tests.kit.network.paths import docs
from tests.kit.network.responses import Json, good, refused
from tests.kit.people.api_user import ApiUser
from tests.kit.servers.process import Server
from tests.kit.waiting import until

from .checks import refused_fields
from .jwt import claims

FIELDS = {"uid", "vaultUid", "collection", "version", "updatedAt", "deletedAt"}


class Event(NamedTuple):
    """One event of a stream."""

    name: str
    id: int | None
    data: Json


class Stream:
    """A stream that is being read."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.answer = answer
        self._lines = answer.iter_lines()
        first = self.next()
        assert first.name == "ready"
        self.cursor = first.id

    def next(self) -> Event:
        """The next event; fails where the stream has ended."""
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if name:
                fields[name] = value
            elif "event" in fields:
                place = int(fields["id"]) if "id" in fields else None
                return Event(fields["event"], place, json.loads(fields["data"]))
        pytest.fail("the stream has ended")

    def reason(self) -> str:
        """Why it ends; after that, nothing comes."""
        event = self.next()
        assert event.name == "end", event
        assert not any(self._lines)
        return str(event.data["reason"])


@contextmanager
def following(http: httpx2.Client, path: str, **headers: str) -> Iterator[Stream]:
    """A stream, for as long as the block lasts."""
    with http.stream("GET", path, headers={name.replace("_", "-"): text for name, text in headers.items()}) as answer:
        assert answer.status_code == 200, answer.read()
        yield Stream(answer)


def events(vault: Json, spelling: str = "vaults") -> str:
    """Where a vault is followed."""
    return f"/{spelling}/{vault['uid']}/events"


@pytest.mark.parametrize("spelling", ["vaults", "vault"])
def test_a_vault_is_followed(ann: ApiUser, vault: Json, spelling: str) -> None:
    """Each change is one event: its moment is the id, and no ciphertext comes along."""
    with following(ann.http, events(vault, spelling)) as stream:
        assert stream.answer.headers["content-type"].startswith("text/event-stream")
        assert stream.cursor == vault["updatedAt"]
        made = ann.document(vault)
        changed = good(ann.put(vault, made))
        tombstone = ann.delete(vault, changed)
        for document in (made, changed, tombstone):
            event = stream.next()
            assert (event.name, event.id) == ("document", document["updatedAt"])
            assert event.data == {name: document[name] for name in FIELDS}


def test_a_stream_is_resumed_by_header_or_query(ann: ApiUser, vault: Json) -> None:
    """Neither a gap nor a repeat."""
    for by_header in (False, True):
        made = [ann.document(vault) for _ in range(3)]
        moment = str(made[0]["updatedAt"])
        path = events(vault) if by_header else f"{events(vault)}?since={moment}"
        headers = {"last_event_id": moment} if by_header else {}
        with following(ann.http, path, **headers) as stream:
            made.append(ann.document(vault))
            assert [stream.next().data["uid"] for _ in range(3)] == [one["uid"] for one in made[1:]]
    refused_fields(ann.http.get(f"{events(vault)}?since=x"), "since")
    refused_fields(ann.http.get(events(vault), headers={"last-event-id": "-1"}), "Last-Event-ID")


def test_an_account_is_followed(newcomer: ApiUser) -> None:
    """Vaults that come, change and go, and the documents in all of them."""
    with following(newcomer.http, "/events") as stream:
        vault = newcomer.vault()
        assert stream.next() == Event("vault", vault["updatedAt"], told(vault, "created"))
        document = newcomer.document(vault)
        assert stream.next().data == {name: document[name] for name in FIELDS}
        path = f"/vault/{vault['uid']}"
        renamed = good(newcomer.http.put(path, json={"name": "other", "version": 1}))
        assert stream.next() == Event("vault", renamed["updatedAt"], told(renamed, "renamed"))
        blob = good(newcomer.http.put(path, json={"data": "blob", "salt": ""}))
        assert stream.next() == Event("vault", blob["updatedAt"], told(blob, "blob"))
        assert newcomer.http.delete(path).status_code == 200
        event = stream.next()
        assert (event.name, event.data["kind"], event.data["uid"]) == ("vault", "deleted", vault["uid"])


def told(vault: Json, kind: str) -> Json:
    """What an event says of a vault."""
    return {"uid": vault["uid"], "kind": kind} | {name: vault[name] for name in ("name", "version", "updatedAt")}


def test_a_stream_ends_when_its_token_does(brief: Server) -> None:
    """At that moment, with the word for it."""
    with measured(time.monotonic) as requests:
        person = ApiUser.register(brief)
        vault = person.vault()
    with following(person.http, events(vault)) as stream:
        assert stream.reason() == "token_expired"
        late = time.time() - claims(person.access)["exp"]
        assert -0.05 <= late < 30 * requests.seconds  # a second on an idle machine; a comment comes after 12 or more


def test_a_stream_ends_with_its_session(newcomer: ApiUser) -> None:
    """On whichever connection the session is ended."""
    vault = newcomer.vault()
    other = newcomer.login()
    with following(other.http, events(vault)) as stream, following(newcomer.http, "/events") as own:
        assert other.http.post("/auth/logout").status_code == 200
        assert stream.reason() == "session_revoked"
        key = newcomer.key()
        with following(newcomer.server.connect(key["key"]), events(vault)) as by_key:
            assert newcomer.http.delete(f"/auth/api-keys/{key['uid']}").status_code == 200
            assert by_key.reason() == "key_revoked"
        assert newcomer.document(vault)["uid"] == own.next().data["uid"]
        assert newcomer.http.delete(f"/vault/{vault['uid']}").status_code == 200


def test_a_stream_ends_with_its_vault(ann: ApiUser, vault: Json) -> None:
    """A vault that is gone, or was never there, is followed by nobody."""
    with following(ann.http, events(vault)) as stream:
        assert ann.http.delete(f"/vault/{vault['uid']}").status_code == 200
        assert stream.reason() == "vault_deleted"
    refused(ann.http.get(events(vault)), 404, "vault_not_found")


def test_a_stream_is_open_to_browsers(ann: ApiUser, vault: Json, stranger: httpx2.Client) -> None:
    """Any origin by default; the header that resumes is allowed."""
    origin = {"origin": "https://app.example"}
    with following(ann.http, events(vault), **origin) as stream:
        assert stream.answer.headers["access-control-allow-origin"] == "*"
    asked = origin | {"access-control-request-method": "GET", "access-control-request-headers": "last-event-id"}
    answer = stranger.options(events(vault), headers=asked)
    assert "last-event-id" in answer.headers["access-control-allow-headers"].lower()


def test_a_long_poll_answers_with_the_change(ann: ApiUser, vault: Json) -> None:
    """As soon as it is there, and not before; in vain, after the time that was asked for."""
    path = f"{docs(vault)}?since={vault['updatedAt']}&wait=30"
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(ann.http.get(path)))
    thread.start()
    made = ann.document(vault)
    thread.join(20)
    assert [one["uid"] for one in good(answers[0])["documents"]] == [made["uid"]]
    began = time.monotonic()
    empty = good(ann.http.get(f"{docs(vault)}/sync?since={made['updatedAt']}&wait=1"))
    assert time.monotonic() - began >= 1
    assert (empty["documents"], empty["next"], empty["syncedAt"]) == ([], made["updatedAt"], made["updatedAt"])
    refused_fields(ann.http.get(f"{docs(vault)}?since=0&wait=61"), "wait")
    refused_fields(ann.http.get(f"{docs(vault)}?wait=1"), "since")


def test_a_stream_goes_on_after_a_restart(lone: Server) -> None:
    """The server says that it stops, and is not kept by those who follow; the last id leads on. One line in the log."""
    person = ApiUser.register(lone.start())
    vault = person.vault()
    with following(person.http, events(vault)) as stream:
        first = person.document(vault)
        cursor = stream.next().id
        assert cursor == first["updatedAt"]
        lone.process.terminate()
        assert stream.reason() == "server_stopping"
        assert lone.process.wait(20) == 0
    lines = [json.loads(line) for line in lone.log().splitlines() if '"event":"stream"' in line]
    assert [(line["route"], line["status"], line["ended"]) for line in lines] == [
        ("/vaults/{vaultUid}/events", 200, "server_stopping")
    ]
    lone.start()
    http = lone.connect(person.access)
    with following(http, events(vault), last_event_id=str(cursor)) as stream:
        assert stream.cursor == cursor
        made = http.post(docs(vault), json={"collection": "c", "data": "AAAA"}).json()
        assert stream.next().data["uid"] == made["uid"]
    until(lambda: '"ended":"client_gone"' in lone.log(), "the line of a stream that was left")
