"""The operators' commands, beside a running server, on both engines."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from strongroom.options import TABLE
from tests.kit.network.event_stream import Event, Parser
from tests.kit.programs import processes
from tests.kit.programs.command_line import STRONGROOM, clean_environment, in_json, place_of, strongroom
from tests.kit.servers.process import Server
from tests.kit.servers.secret import SECRET

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PASSWORD = "correct horse"


@pytest.fixture
def server(tmp_path: Path, where: str) -> Iterator[Server]:
    """A server that runs while the commands do."""
    running = Server(tmp_path / "home", **{"DATABASE_URL": "", **place_of(where)})
    try:
        yield running.start()
    finally:
        running.abandon()


@pytest.fixture
def run(tmp_path: Path, where: str) -> Run:
    """Run a command where the server's data is."""
    return lambda *arguments, given="": strongroom(tmp_path, *arguments, input=given, **place_of(where))


def stream(http: httpx2.Client, path: str) -> Iterator[Event]:
    """The events of a stream, until it ends; the first one says that it has begun."""
    parser = Parser()
    with http.stream("GET", path) as answer:
        assert answer.status_code == 200
        for piece in answer.iter_raw():
            yield from (event for event in parser.feed(piece) if not event.comment)


def test_streams_end_when_their_account_is_shut(server: Server, run: Run) -> None:
    """With a session and with a key, of a vault and of everything; another's stream goes on, and so do both later."""
    people = {}
    for name in ("ann", "bob"):
        body = {"email": f"{name}@example.com", "password": PASSWORD}
        people[name] = server.connect(server.connect().post("/auth/email/register", json=body).json()["accessToken"])
    ann, bob = people["ann"], people["bob"]
    vault = ann.post("/vault", json={"name": "v"}).json()["uid"]
    keyed = server.connect(ann.post("/auth/api-keys", json={"name": "script"}).json()["key"])
    hers = [stream(ann, "/events"), stream(ann, f"/vaults/{vault}/events"), stream(keyed, "/events")]
    his = stream(bob, "/events")
    assert [next(one).name for one in (*hers, his)] == ["ready"] * 4

    in_json(run("users", "disable", "ann@example.com", "--yes", "--json"))
    for one in hers:
        assert [(event.name, event.data["reason"]) for event in one] == [("end", "account_disabled")]
    made = bob.post("/vault", json={"name": "v"}).json()["uid"]
    assert next(his).data["uid"] == made
    assert ann.get("/events").json()["error"]["code"] == "account_disabled"

    in_json(run("users", "enable", "ann@example.com", "--json"))
    again = stream(ann, "/events")
    assert next(again).name == "ready"


def test_the_life_of_an_account(server: Server, run: Run) -> None:
    """Added, listed, shut, opened, signed out, freed of its failures, deleted; the server notices each at once."""
    http = server.connect()

    def login(password: str = PASSWORD) -> Any:
        return http.post("/auth/email/login", json={"email": "ada@example.com", "password": password})

    added = in_json(run("users", "add", "ada@example.com", "--json", given=f"{PASSWORD}\n"))
    signed_in = login().json()
    assert signed_in["user"]["id"] == added["id"]
    ada = server.connect(signed_in["accessToken"])
    vault = ada.post("/vault", json={"name": "v"}).json()["uid"]
    for _ in range(3):
        assert ada.post(f"/vaults/{vault}/documents", json={"collection": "c", "data": "AAAA"}).status_code == 201
    key = ada.post("/auth/api-keys", json={"name": "script"}).json()

    [listed] = in_json(run("users", "list", "--json"))["accounts"]
    assert (listed["email"], listed["documents"], listed["bytes"], listed["vaults"]) == ("ada@example.com", 3, 12, 1)
    assert (listed["sessions"], listed["keys"], listed["disabledAt"]) == (1, 1, None)
    assert "ada@example.com" in run("users", "list").stdout

    for who in ("Ada@Example.com ", added["id"].upper()):
        assert in_json(run("users", "disable", who, "--yes", "--json"))["id"] == added["id"]
    assert ada.get("/vault").json()["error"]["code"] == "account_disabled"
    assert server.connect(key["key"]).get("/vault").status_code == 403
    assert login().status_code == 403
    assert in_json(run("users", "enable", "ada@example.com", "--json"))["changed"] is True
    assert in_json(run("users", "enable", "ada@example.com", "--json"))["changed"] is False
    assert ada.get("/vault").status_code == 200

    ended = in_json(run("users", "sign-out", "ada@example.com", "--yes", "--json"))
    assert (ended["id"], ended["ended"]) == (added["id"], 1)
    assert ada.get("/vault").status_code == 401
    assert server.connect(key["key"]).get("/vault").status_code == 200

    assert [login("wrong horse").status_code for _ in range(11)][-1] == 429
    assert in_json(run("users", "reset-throttle", "ada@example.com", "--json"))["forgotten"] == 10
    assert login("wrong horse").status_code == 401
    assert in_json(run("users", "reset-throttle", "--address", "127.0.0.1", "--json"))["forgotten"] == 1
    assert login().status_code == 200

    [shown] = in_json(run("keys", "list", "--json"))["keys"]
    assert (shown["uid"], shown["email"], shown["name"]) == (key["uid"], "ada@example.com", "script")
    assert key["key"] not in json.dumps(shown)
    assert in_json(run("keys", "list", "ada@example.com", "--json"))["keys"] == [shown]
    assert run("keys", "revoke", "ada@example.com", key["uid"], "--yes").returncode == 0
    assert server.connect(key["key"]).get("/vault").status_code == 401
    assert run("keys", "revoke", "ada@example.com", key["uid"], "--yes").returncode == 3

    counted = in_json(run("stats", "--json"))
    assert {name: counted[name] for name in ("accounts", "documents", "bytes", "vaults", "keys", "sessions")} == {
        "accounts": 1,
        "documents": 3,
        "bytes": 12,
        "vaults": 1,
        "keys": 0,
        "sessions": 1,
    }
    assert counted["epoch"] == http.get("/health").json()["epoch"]
    assert "documents" in run("stats").stdout

    assert run("users", "delete", "ada@example.com", "--yes").returncode == 0
    assert login().status_code == 401
    assert in_json(run("users", "list", "--json")) == {"accounts": []}
    assert in_json(run("stats", "--json"))["documents"] == 0


def test_nothing_is_done_unasked(run: Run) -> None:
    """Without --yes and without a terminal: exit code 4, a sentence that names the thing, and all is as it was."""
    run("db", "migrate")
    run("users", "add", "ada@example.com", given=f"{PASSWORD}\n")
    for command in ("disable", "delete", "sign-out"):
        done = run("users", command, "ada@example.com")
        assert done.returncode == 4
        assert "ada@example.com" in done.stderr
        assert done.stderr.count("\n") == 1
    [account] = in_json(run("users", "list", "--json"))["accounts"]
    assert account["disabledAt"] is None
    assert run("vacuum").returncode == 4


def test_what_is_not_there_is_exit_code_3(run: Run) -> None:
    """And a sentence, whichever command asks for it."""
    run("db", "migrate")
    run("users", "add", "ada@example.com", given=f"{PASSWORD}\n")
    for command in (
        *(("users", name, "bob@example.com", "--yes") for name in ("disable", "delete", "sign-out")),
        ("users", "enable", "bob@example.com"),
        ("keys", "list", "bob@example.com"),
        ("keys", "revoke", "bob@example.com", "x", "--yes"),
    ):
        done = run(*command)
        assert (done.returncode, done.stderr) == (3, "strongroom: There is no account bob@example.com.\n")
    assert run("keys", "revoke", "ada@example.com", "x", "--yes").returncode == 3
    assert run("users", "reset-throttle").returncode == 2
    assert run("users", "add", "ada@example.com", given=f"{PASSWORD}\n").returncode == 2


def test_to_ask_makes_no_database(tmp_path: Path) -> None:
    """A mistyped path is a sentence, and no file."""
    done = strongroom(tmp_path, "users", "list", "--db-path", "nowhere.db")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert f"There is no database {tmp_path / 'nowhere.db'}." in done.stderr


def test_vacuum_gives_room_back(server: Server, run: Run, where: str) -> None:
    """Beside a running server, which goes on; on PostgreSQL the room may be kept for what comes."""
    http = server.connect()
    made = http.post("/auth/email/register", json={"email": "ada@example.com", "password": PASSWORD}).json()
    ada = server.connect(made["accessToken"])
    vault = ada.post("/vault", json={"name": "v"}).json()["uid"]
    for _ in range(20):
        ada.post(f"/vaults/{vault}/documents", json={"collection": "c", "data": "A" * 100_000})
    assert ada.delete(f"/vault/{vault}").status_code == 200
    told = in_json(run("vacuum", "--yes", "--json"))
    if "://" not in where:
        assert told["after"] < told["before"] / 2
        assert str(told["data"]) == where
    assert ada.post("/vault", json={"name": "w"}).status_code == 201


def asked_at_a_terminal(folder: Path, answer: str, *arguments: str) -> tuple[int, str]:
    """Run a command at a terminal and answer its question; its exit code, and all that was seen."""
    near, far = pty.openpty()
    process = processes.Popen(
        [*STRONGROOM, *arguments],
        cwd=folder,
        env=clean_environment(DB_PATH=str(folder / "vault.db")),
        stdin=far,
        stdout=far,
        stderr=far,
    )
    os.close(far)
    seen = b""
    while b") " not in seen.partition(b"?")[2]:
        seen += os.read(near, 4096)
    os.write(near, answer.encode() + b"\n")
    code = process.wait(30)
    os.close(near)
    return code, seen.decode()


def test_a_deletion_is_confirmed_by_the_name_itself(tmp_path: Path) -> None:
    """A careless y is not enough."""
    for command in ("db migrate", "users add ada@example.com", "users add bob@example.com"):
        done = strongroom(tmp_path, *command.split(), "--db-path", "vault.db", input=f"{PASSWORD}\n")
        assert done.returncode == 0, done.stderr
    code, seen = asked_at_a_terminal(tmp_path, "y", "users", "delete", "ada@example.com")
    assert code == 4
    assert "Delete the account ada@example.com" in seen
    assert "0 vaults, 0 documents" in seen
    assert asked_at_a_terminal(tmp_path, "bob@example.com", "users", "delete", "ada@example.com")[0] == 4
    assert asked_at_a_terminal(tmp_path, "ada@example.com", "users", "delete", "ada@example.com")[0] == 0
    assert asked_at_a_terminal(tmp_path, "n", "users", "disable", "bob@example.com")[0] == 4
    assert asked_at_a_terminal(tmp_path, "y", "users", "disable", "bob@example.com")[0] == 0


def test_config_tells_every_setting_and_where_it_came_from(tmp_path: Path) -> None:
    """An option, the environment, .env, the default, in that order; a secret is never shown."""
    (tmp_path / ".env").write_text(f"JWT_SECRET={SECRET}\nPORT=1\nSIGNUPS=closed\n")
    (tmp_path / "token").write_text("a-token-that-nobody-may-see")
    settings = {"PORT": "2", "DATABASE_URL": "postgresql://u:hunter2@h/d", "VAULT_VARIANT": "blob"}

    def config(*options: str) -> subprocess.CompletedProcess[str]:
        return strongroom(tmp_path, "config", *options, **settings)

    done = config("--json", "--host", "0.0.0.0", "--metrics-token-file", "token")
    told = {row["variable"]: (row["value"], row["source"]) for row in in_json(done)["settings"]}
    assert list(told) == [option.variable for option in TABLE]
    assert told["HOST"] == ("0.0.0.0", "--host")
    assert told["PORT"] == ("2", "environment")
    assert told["SIGNUPS"] == ("closed", ".env")
    assert told["WORKERS"] == ("1", "default")
    assert told["JWT_ISSUER"] == ("strongbox", "default")
    assert told["JWT_SECRET"] == ("set, not shown", ".env")
    assert told["METRICS_TOKEN"] == ("in token", "--metrics-token-file")
    plain = config("--metrics-token-file", "token")
    assert plain.returncode == 0
    for secret in (SECRET, "hunter2", "a-token-that-nobody-may-see"):
        assert secret not in done.stdout + plain.stdout + done.stderr + plain.stderr
    assert "environment" in plain.stdout
    bad = config("--port", "x")
    assert bad.returncode == 2
    assert "--port must be a whole number" in bad.stderr
