"""`strongroom invite`, beside a running server that is closed for sign-ups, on both engines."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client
from strongroom.rules import DAY, MINUTE
from tests.kit.programs.command_line import in_json, place_of, strongroom
from tests.kit.servers.process import Server

Run = Callable[..., "subprocess.CompletedProcess[str]"]
PASSWORD = "correct horse battery staple"
CODE = re.compile(r"SRI(-[0-9A-HJKMNP-TV-Z]{5}){5}")


@pytest.fixture
def server(tmp_path: Path, where: str) -> Iterator[Server]:
    """A server that takes registrations by invitation only, and logs all that it can."""
    running = Server(tmp_path / "home", SIGNUPS="closed", LOG_LEVEL="debug", **place_of(where))
    try:
        yield running.start()
    finally:
        running.abandon()


@pytest.fixture
def run(tmp_path: Path, where: str) -> Run:
    """Run a command where the server's data is."""
    return lambda *arguments, given="": strongroom(tmp_path, *arguments, input=given, **place_of(where))


def registered(server: Server, email: str, code: str) -> Any:
    body = {"email": email, "password": PASSWORD, "invitation": code}
    return server.connect().post("/auth/email/register", json=body)


def test_from_the_invitation_to_the_account(server: Server, run: Run) -> None:
    """Created, used with the client, listed with the one who used it; the code is shown once, and kept nowhere."""
    made = in_json(run("invite", "create", " Ada@Example.com", "--note", "Ada, of accounting", "--json"))
    assert CODE.fullmatch(made["code"])
    assert (made["email"], made["note"]) == ("ada@example.com", "Ada, of accounting")
    assert registered(server, "eve@example.com", made["code"]).json()["error"]["code"] == "invalid_invitation"
    with Client(f"http://127.0.0.1:{server.port}") as client:
        user = client.register("ada@example.com", PASSWORD, invitation=made["code"])
        assert client.vault("hers", create=True)
    [listed] = in_json(run("invite", "list", "--json"))["invitations"]
    assert (listed["uid"], listed["state"], listed["usedBy"]) == (made["uid"], "used", user.id)
    assert (listed["usedByEmail"], listed["takenEmails"]) == ("ada@example.com", 0)
    shown = run("invite", "list").stdout
    assert all(word in shown for word in (made["uid"], "used", "Ada, of accounting", "ada@example.com"))
    refused = run("invite", "revoke", made["uid"], "--yes")
    assert refused.returncode == 2
    assert "ada@example.com has registered with this invitation; nothing was done." in refused.stderr
    assert in_json(run("users", "delete", "ada@example.com", "--yes", "--json"))["deleted"]
    assert in_json(run("invite", "list", "--json")) == {"invitations": []}
    secret = made["code"].removeprefix("SRI-")
    assert secret not in shown + json.dumps(listed) + server.log()


def test_in_words(server: Server, run: Run) -> None:
    """The code stands on a line of its own; the sentence says for whom, for how long, and how to revoke it."""
    for email, whom in ((["ada@example.com"], "ada@example.com"), ([], "any email")):
        done = run("invite", "create", *email, "--expires", "2h")
        code, sentence = done.stdout.rstrip("\n").split("\n")
        assert CODE.fullmatch(code)
        assert sentence.startswith(f"Invites {whom} to register once, until ")
        uid = re.findall(r"'strongroom invite revoke (\S+)'", sentence)[0]
        asked = run("invite", "revoke", uid)
        assert (asked.returncode, asked.stdout) == (4, "")
        assert uid in asked.stderr
        assert run("invite", "revoke", uid.upper(), "--yes").stdout.startswith(f"Revoked the invitation {uid}.")
        assert registered(server, "ada@example.com", code).status_code == 403
        gone = run("invite", "revoke", uid, "--yes")
        assert (gone.returncode, gone.stderr) == (3, f"strongroom: There is no invitation {uid}.\n")


def test_it_lives_as_long_as_it_was_told(run: Run) -> None:
    """Seven days, if nothing is said."""
    run("db", "migrate")
    lives = {(): 7 * DAY, ("--expires", "1m"): MINUTE, ("--expires", "52w"): 364 * DAY}
    for options in lives:
        run("invite", "create", *options)
    listed = in_json(run("invite", "list", "--json"))["invitations"]
    assert [one["expiresAt"] - one["createdAt"] for one in listed] == list(lives.values())
    assert {one["state"] for one in listed} == {"open"}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("nobody",), "email must be an email address"),
        (("a@example.com", "--expires", "0m"), "expires must be a number and m, h, d or w"),
        (("a@example.com", "--expires", "59s"), "expires must be"),
        (("a@example.com", "--expires", "367d"), "expires must be"),
        (("a@example.com", "--expires", "soon"), "expires must be"),
        (("a@example.com", "--note", "two\nlines"), "note must be 1 to 255 characters"),
        (("a@example.com", "--note", "n" * 256), "note must be 1 to 255 characters"),
        (("ada@example.com",), "There is already an account ada@example.com; nothing was done."),
        (("a@example.com", "--note", "\udcff"), "A value is not text in UTF-8; nothing was done."),
    ],
)
@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_what_cannot_be_is_refused_in_a_sentence(run: Run, arguments: tuple[str, ...], told: str) -> None:
    """Exit code 2, and nothing is stored."""
    run("db", "migrate")
    run("users", "add", "ada@example.com", given=f"{PASSWORD}\n")
    done = run("invite", "create", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert in_json(run("invite", "list", "--json")) == {"invitations": []}


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
def test_what_an_operator_should_know(run: Run) -> None:
    """That sign-ups are open, and what kind of account `users add` makes; JSON has no such words."""
    run("db", "migrate")
    made = run("invite", "create")
    assert "Sign-ups are open: anyone can register without an invitation too." in made.stderr
    assert run("invite", "create", "--json").stderr == ""
    added = run("users", "add", "ada@example.com", given=f"{PASSWORD}\n").stdout
    helped = " ".join(run("users", "add", "--help").stdout.split())
    for words in (added, helped):
        assert "adopt_account" in words
        assert "strongroom invite create" in words
    assert "This server knows its password" in added
