"""The stories of docs/operating.md: the first day, every day and the bad day, typed command for command."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from strongroom.client import Client
from strongroom.server.backup_schedule import list_backups
from tests.kit.people import one_time_codes
from tests.kit.programs import processes
from tests.kit.servers.populated_database import damage
from tests.kit.waiting import until
from tests.operating.installation import (
    ADA,
    IN_A_CONTAINER,
    PAGE,
    PASSWORD,
    STORIES,
    Installation,
    blocks,
    enrol,
    invitation_in,
)

Begin = Callable[..., Installation]


def the_first_day_and_every_day(begin: Begin, engine: str) -> None:
    """A server that backs itself up, one who was invited, no stranger; a rehearsal beside it."""
    installation = begin(engine)
    _, check, shut, invite = blocks(PAGE["First day"])
    look, by_hand = blocks(PAGE["Every day"])
    installation.install()
    installation.type(check)
    installation.type(shut)
    code = invitation_in(installation.type(invite))
    stranger = {"email": "eve@example.com", "password": PASSWORD, "invitation": code}  # which is for another email
    assert installation.connect().post("/auth/email/register", json=stranger).status_code == 403
    with Client(f"http://127.0.0.1:{installation.port}") as client:
        client.register(ADA, PASSWORD, invitation=code)
        token = str(client._core.session._access)
    assert installation.connect(token).post("/vault", json={"name": "first"}).status_code == 201
    until(lambda: list_backups(installation.backups), "the first backup", 60)
    installation.type(look)
    installation.type(by_hand)
    assert (installation.backups / "before-the-change.backup").is_file()
    assert not (installation.backups / "rehearsal").exists()
    assert installation.vaults(token) == ["first"]


def something_is_gone(begin: Begin, engine: str) -> None:
    """What was deleted after the backup is there again, under another epoch."""
    installation = begin(engine)
    [script] = blocks(STORIES["Something is gone"])
    token = installation.settle()
    http = installation.connect(token)
    [vault] = http.get("/vault").json()["vaults"]
    assert http.delete(f"/vault/{vault['uid']}").status_code == 200
    epoch = http.get("/health").json()["epoch"]
    installation.type(script)
    assert installation.vaults(token) == ["first"]
    assert installation.connect().get("/health").json()["epoch"] != epoch


def the_secret_has_leaked(begin: Begin, engine: str) -> None:
    """Every token is worth nothing at once, keys and one-time codes go on; then one person's sessions and key end."""
    installation = begin(engine)
    *everybody, one = blocks(STORIES["The secret has leaked"])
    old = installation.settle()
    key = installation.connect(old).post("/auth/api-keys", json={"name": "k"}).json()
    assert installation.connect(old).get("/vault").status_code == 200
    bob = {"email": "bob@example.com", "password": PASSWORD}
    secret = enrol(installation, installation.connect().post("/auth/email/register", json=bob).json()["accessToken"])
    installation.type(everybody[installation.way])
    ticket = installation.login(email=bob["email"]).json()["error"]["details"]["ticket"]
    next_code = one_time_codes.code(secret, time.time_ns() // 1_000_000, 1)  # the one of the enrolment counts no more
    body = {"ticket": ticket, "secondFactor": {"code": next_code}}
    finished = installation.connect().post("/auth/email/login/second", json=body)
    assert finished.status_code == (503 if installation.way == IN_A_CONTAINER else 200)  # which needs a change by hand
    assert installation.connect(old).get("/vault").status_code == 401
    assert installation.vaults(key["key"]) == ["first"]
    token = installation.login().json()["accessToken"]
    assert installation.vaults(token) == ["first"]
    installation.type(one, KEY=key["uid"])
    assert installation.connect(token).get("/vault").status_code == 401
    assert installation.connect(key["key"]).get("/vault").status_code == 401
    assert installation.login().status_code == 200


def the_disk_is_full(begin: Begin) -> None:
    """Writes are refused; with what lay beside the database gone, they are taken again, without a restart."""
    installation = begin("sqlite")
    [script] = blocks(STORIES["The disk is full"])
    data = installation.data
    data.mkdir(mode=0o700)
    small = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", str(data)]
    if processes.run(small, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        token = installation.settle()
        (data / "vault.db.before-20260301T060000Z").write_bytes(bytes(22 << 20))
        http = installation.connect(token)
        [vault] = http.get("/vault").json()["vaults"]
        body = {"collection": "c", "data": "A" * 100_000}

        def write() -> int:
            return http.post(f"/vaults/{vault['uid']}/documents", json=body).status_code

        def renew() -> int:
            return installation.connect().post("/auth/refresh", json={"refreshToken": refresh}).status_code

        refresh = installation.login().json()["refreshToken"]
        key = http.post("/auth/api-keys", json={"name": "k"}).json()["key"]
        assert until(lambda: write() == 507, "a full disk", 60)
        assert until(
            lambda: installation.login().status_code == 507, "a disk too full for a login", 60
        )  # which takes less
        assert until(lambda: renew() == 507, "a disk too full for new tokens", 60)  # which take still less
        assert (installation.vaults(token), installation.vaults(key)) == (["first"], ["first"])
        installation.type(script, faults=1)
        assert write() == 201
        assert renew() == 200
        assert installation.end() == 0
    finally:
        installation.abandon()
        processes.run(["umount", "--lazy", str(data)], check=False)


def the_file_is_damaged(begin: Begin) -> None:
    """The server refuses it and says what to do, the doctor names it, the restore mends it and keeps the old file."""
    installation = begin("sqlite")
    script, salvaging = blocks(STORIES["The file is damaged"])
    token = installation.settle()
    assert installation.end() == 0
    damage(installation.data / "vault.db")
    assert installation.launched().wait(20) == 2
    assert "is damaged" in installation.log()
    assert "'strongroom restore FILE'" in installation.log()
    installation.type(script, faults=1)
    assert installation.vaults(token) == ["first"]
    assert list(installation.data.glob("vault.db.before-*"))
    assert installation.end() == 0
    damage(installation.data / "vault.db")
    installation.type(salvaging)
    assert installation.vaults(token) == ["first"]


def the_owner_is_locked_out(begin: Begin, engine: str) -> None:
    """By wrong passwords, by a shut account, by a phone that is lost, by a password that is forgotten."""
    installation = begin(engine)
    throttled, shut, lost, forgotten = blocks(STORIES["The owner is locked out"])
    installation.settle()
    for _ in range(10):
        assert installation.login("wrong horse").status_code == 401
    assert installation.login().status_code == 429
    installation.type(throttled)
    assert installation.login().status_code == 200
    installation.type(f"strongroom users disable {ADA} --yes")
    assert installation.login().status_code == 403
    installation.type(shut)
    token = installation.login().json()["accessToken"]
    enrol(installation, token)
    assert installation.login().json()["error"]["code"] == "second_factor_required"
    installation.type(lost)
    assert installation.login().status_code == 200
    body = {
        "email": "ada.again@example.com",
        "password": PASSWORD,
        "invitation": invitation_in(installation.type(forgotten)),
    }
    assert installation.connect().post("/auth/email/register", json=body).status_code == 201


def the_machine_is_gone(begin: Begin, engine: str) -> None:
    """On another machine, and on the other engine, with the old secret: sessions go on."""
    old = begin(engine)
    [script] = blocks(STORIES["The machine is gone"])
    token = old.settle()
    assert old.end() == 0
    new = begin({"sqlite": "postgres", "postgres": "sqlite"}[engine], "another")
    new.take_over(old)
    new.type(script.replace("vault.backup", new.receive(list_backups(old.backups)[-1].path)))
    assert new.vaults(token) == ["first"]
