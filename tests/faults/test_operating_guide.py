"""The first day, every day and the bad day of docs/operating.md, typed in command for command on real servers."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from strongroom.client import Client
from strongroom.server.backup_schedule import backup_name, list_backups
from tests.kit.network.ports import free_port
from tests.kit.people import one_time_codes
from tests.kit.programs import processes
from tests.kit.servers.populated_database import damage
from tests.kit.servers.postgres import postgres
from tests.kit.servers.process import Server
from tests.kit.waiting import until
from tests.test_documents import environment, fences, sections, text_of

ADA, PASSWORD = "ada@example.com", "correct horse"
IN_A_CONTAINER = 2  # as `Place.way`
PAGE = sections(text_of("docs/operating.md"), 2)
STORIES = sections(PAGE["Bad day"], 3)


class Typed(NamedTuple):
    """A command, how it ended and what it said."""

    command: str
    code: int
    said: str


class Place(Server):
    """A folder where a server runs, and where an operator types commands."""

    way = 0  # the column of the page's table that this is

    def __init__(self, home: Path, engine: str) -> None:
        super().__init__(home)
        where = {"DATABASE_URL": postgres().fresh()} if engine == "postgres" else {"DB_PATH": "data/vault.db"}
        self.settings = {"PORT": str(free_port()), "READY_FREE_BYTES": "1000000", **where}
        self.data, self.backups = home / "data", home / "backups"
        self.named = {"DATA": "./data", "BACKUPS": "./backups"}  # what the page tells to say first

    def write_env(self, **settings: str) -> None:
        """Write settings into .env."""
        with (self.home / ".env").open("a") as file:
            file.writelines(f"{name}={value}\n" for name, value in settings.items())
        (self.home / ".env").chmod(0o600)

    def type(self, script: str, faults: int = 0, **words: str) -> str:
        """Type the commands of a block, one after the other; what they print.

        Each ends well, but so often the doctor finds a fault.
        """
        done = []
        for line in script.strip().splitlines():
            command = line
            for word, meant in words.items():
                command = re.sub(rf"\b{word}\b", meant, command)
            done.append(Typed(line, *self._typed(command)))
        found = [one for one in done if one.command == "strongroom doctor" and one.code == 1]
        assert [one for one in done if one.code and one not in found] == []
        assert len(found) == faults, found
        return "".join(one.said for one in done)

    def _typed(self, command: str) -> tuple[int, str]:
        match = re.fullmatch(r"(?:systemctl|docker compose) (start|stop|reload|kill --signal HUP) strongroom", command)
        if match is None:
            done = self.shell(command)
            return done.returncode, done.stdout + done.stderr
        if match[1] == "start":
            self.start()
        elif match[1] == "stop":
            assert self.end() == 0
        else:
            before = self.log().count("read anew")
            self.process.send_signal(signal.SIGHUP)
            until(lambda: self.log().count("read anew") > before, "a line in the log about it")
        return 0, ""

    def shell(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a line in a shell, where the page says that it is typed."""
        return processes.run(
            ["bash", "-c", command],
            cwd=self.home,
            env=environment(self.home, **self.settings, **self.named),
            input=f"{PASSWORD}\n",
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def prepare(self) -> None:
        """Have settings with a secret, and no server yet."""
        self.write_env(JWT_SECRET=uuid.uuid4().hex)

    def install(self) -> None:
        """Do what the first day says for this way, up to a server that runs."""
        self.type(blocks(PAGE["First day"])[0])

    def take_over(self, old: Place) -> None:
        """Bring the settings of a machine that is gone."""
        shutil.copy(old.home / ".env", self.home / ".env")

    def receive(self, path: Path) -> str:
        """Bring a file that was kept elsewhere; its name in the guide's commands."""
        shutil.copy(path, self.home / "vault.backup")
        return "vault.backup"

    def login(self, password: str = PASSWORD, email: str = ADA) -> Any:
        """Try to log in."""
        return self.connect().post("/auth/email/login", json={"email": email, "password": password})

    def settle(self) -> str:
        """Have an account with a vault, and a backup of it; the token."""
        self.prepare()
        self.start()
        self.type(f"strongroom users add {ADA}")
        token: str = self.login().json()["accessToken"]
        assert self.connect(token).post("/vault", json={"name": "first"}).status_code == 201
        self.type('mkdir -p -m 0700 "$BACKUPS"')
        self.type(f'strongroom backup "$BACKUPS/{backup_name(time.time_ns() // 1_000_000)}"')
        self.write_env(BACKUP_DIR=self.named["BACKUPS"])
        return token

    def vaults(self, token: str) -> list[str]:
        """The names of the vaults that a token sees."""
        return [vault["name"] for vault in self.connect(token).get("/vault").json()["vaults"]]


Begin = Callable[..., Place]
ON_EACH_ENGINE = pytest.mark.parametrize("engine", ["sqlite", "postgres"])


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    """Makes places, and leaves no server behind."""
    made: list[Place] = []

    def new(engine: str, name: str = "home") -> Place:
        made.append(Place(tmp_path / name, engine))
        return made[-1]

    yield new
    for place in made:
        place.abandon()


def blocks(text: str) -> list[str]:
    """What is to be typed."""
    return [body for language, body in fences(text) if language == "sh"]


def invitation_in(printed: str) -> str:
    """The code that `strongroom invite create` printed."""
    [code] = re.findall(r"^SRI-[0-9A-Z-]+$", printed, re.MULTILINE)
    return str(code)


def enrol(place: Place, token: str) -> str:
    """Give somebody one-time codes; their secret."""
    http = place.connect(token)
    secret: str = http.post("/auth/second-factor/totp", json={"currentPassword": PASSWORD}).json()["secret"]
    first = {"code": one_time_codes.code(secret, time.time_ns() // 1_000_000)}
    assert http.post("/auth/second-factor/totp/confirm", json=first).status_code == 201
    return secret


@ON_EACH_ENGINE
def test_the_first_day_and_every_day(begin: Begin, engine: str) -> None:
    """A server that backs itself up, one who was invited, no stranger; a rehearsal beside it."""
    place = begin(engine)
    _, check, shut, invite = blocks(PAGE["First day"])
    look, by_hand = blocks(PAGE["Every day"])
    place.install()
    place.type(check)
    place.type(shut)
    code = invitation_in(place.type(invite))
    stranger = {"email": "eve@example.com", "password": PASSWORD, "invitation": code}  # which is for another email
    assert place.connect().post("/auth/email/register", json=stranger).status_code == 403
    with Client(f"http://127.0.0.1:{place.port}") as client:
        client.register(ADA, PASSWORD, invitation=code)
        token = str(client._core.session._access)
    assert place.connect(token).post("/vault", json={"name": "first"}).status_code == 201
    until(lambda: list_backups(place.backups), "the first backup", 60)
    place.type(look)
    place.type(by_hand)
    assert (place.backups / "before-the-change.backup").is_file()
    assert not (place.backups / "rehearsal").exists()
    assert place.vaults(token) == ["first"]


@ON_EACH_ENGINE
def test_something_is_gone(begin: Begin, engine: str) -> None:
    """What was deleted after the backup is there again, under another epoch."""
    place = begin(engine)
    [script] = blocks(STORIES["Something is gone"])
    token = place.settle()
    http = place.connect(token)
    [vault] = http.get("/vault").json()["vaults"]
    assert http.delete(f"/vault/{vault['uid']}").status_code == 200
    epoch = http.get("/health").json()["epoch"]
    place.type(script)
    assert place.vaults(token) == ["first"]
    assert place.connect().get("/health").json()["epoch"] != epoch


@ON_EACH_ENGINE
def test_the_secret_has_leaked(begin: Begin, engine: str) -> None:
    """Every token is worth nothing at once, keys and one-time codes go on; then one person's sessions and key end."""
    place = begin(engine)
    *everybody, one = blocks(STORIES["The secret has leaked"])
    old = place.settle()
    key = place.connect(old).post("/auth/api-keys", json={"name": "k"}).json()
    assert place.connect(old).get("/vault").status_code == 200
    bob = {"email": "bob@example.com", "password": PASSWORD}
    secret = enrol(place, place.connect().post("/auth/email/register", json=bob).json()["accessToken"])
    place.type(everybody[place.way])
    ticket = place.login(email=bob["email"]).json()["error"]["details"]["ticket"]
    next_code = one_time_codes.code(secret, time.time_ns() // 1_000_000, 1)  # the one of the enrolment counts no more
    body = {"ticket": ticket, "secondFactor": {"code": next_code}}
    finished = place.connect().post("/auth/email/login/second", json=body)
    assert finished.status_code == (503 if place.way == IN_A_CONTAINER else 200)  # which needs a change by hand
    assert place.connect(old).get("/vault").status_code == 401
    assert place.vaults(key["key"]) == ["first"]
    token = place.login().json()["accessToken"]
    assert place.vaults(token) == ["first"]
    place.type(one, KEY=key["uid"])
    assert place.connect(token).get("/vault").status_code == 401
    assert place.connect(key["key"]).get("/vault").status_code == 401
    assert place.login().status_code == 200


def test_the_disk_is_full(begin: Begin) -> None:
    """Writes are refused; with what lay beside the database gone, they are taken again, without a restart."""
    place = begin("sqlite")
    [script] = blocks(STORIES["The disk is full"])
    data = place.data
    data.mkdir(mode=0o700)
    small = ["mount", "-t", "tmpfs", "-o", "size=32m,mode=0700", "tmpfs", str(data)]
    if processes.run(small, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        token = place.settle()
        (data / "vault.db.before-20260301T060000Z").write_bytes(bytes(22 << 20))
        http = place.connect(token)
        [vault] = http.get("/vault").json()["vaults"]
        body = {"collection": "c", "data": "A" * 100_000}

        def write() -> int:
            return http.post(f"/vaults/{vault['uid']}/documents", json=body).status_code

        def renew() -> int:
            return place.connect().post("/auth/refresh", json={"refreshToken": refresh}).status_code

        refresh = place.login().json()["refreshToken"]
        key = http.post("/auth/api-keys", json={"name": "k"}).json()["key"]
        assert until(lambda: write() == 507, "a full disk", 60)
        assert until(lambda: place.login().status_code == 507, "a disk too full for a login", 60)  # which takes less
        assert until(lambda: renew() == 507, "a disk too full for new tokens", 60)  # which take still less
        assert (place.vaults(token), place.vaults(key)) == (["first"], ["first"])
        place.type(script, faults=1)
        assert write() == 201
        assert renew() == 200
        assert place.end() == 0
    finally:
        place.abandon()
        processes.run(["umount", "--lazy", str(data)], check=False)


def test_the_file_is_damaged(begin: Begin) -> None:
    """The server refuses it and says what to do, the doctor names it, the restore mends it and keeps the old file."""
    place = begin("sqlite")
    script, salvaging = blocks(STORIES["The file is damaged"])
    token = place.settle()
    assert place.end() == 0
    damage(place.data / "vault.db")
    assert place.launched().wait(20) == 2
    assert "is damaged" in place.log()
    assert "'strongroom restore FILE'" in place.log()
    place.type(script, faults=1)
    assert place.vaults(token) == ["first"]
    assert list(place.data.glob("vault.db.before-*"))
    assert place.end() == 0
    damage(place.data / "vault.db")
    place.type(salvaging)
    assert place.vaults(token) == ["first"]


@ON_EACH_ENGINE
def test_the_owner_is_locked_out(begin: Begin, engine: str) -> None:
    """By wrong passwords, by a shut account, by a phone that is lost, by a password that is forgotten."""
    place = begin(engine)
    throttled, shut, lost, forgotten = blocks(STORIES["The owner is locked out"])
    place.settle()
    for _ in range(10):
        assert place.login("wrong horse").status_code == 401
    assert place.login().status_code == 429
    place.type(throttled)
    assert place.login().status_code == 200
    place.type(f"strongroom users disable {ADA} --yes")
    assert place.login().status_code == 403
    place.type(shut)
    token = place.login().json()["accessToken"]
    enrol(place, token)
    assert place.login().json()["error"]["code"] == "second_factor_required"
    place.type(lost)
    assert place.login().status_code == 200
    body = {"email": "ada.again@example.com", "password": PASSWORD, "invitation": invitation_in(place.type(forgotten))}
    assert place.connect().post("/auth/email/register", json=body).status_code == 201


@ON_EACH_ENGINE
def test_the_machine_is_gone(begin: Begin, engine: str) -> None:
    """On another machine, and on the other engine, with the old secret: sessions go on."""
    old = begin(engine)
    [script] = blocks(STORIES["The machine is gone"])
    token = old.settle()
    assert old.end() == 0
    new = begin({"sqlite": "postgres", "postgres": "sqlite"}[engine], "another")
    new.take_over(old)
    new.type(script.replace("vault.backup", new.receive(list_backups(old.backups)[-1].path)))
    assert new.vaults(token) == ["first"]


def test_every_part_of_the_guide_is_run_here() -> None:
    """A story that is added to the bad day needs a test above, by its name."""
    tests = {name.removeprefix("test_").replace("_", " ") for name in globals() if name.startswith("test_")}
    assert {story.lower() for story in STORIES} <= tests
    assert len(STORIES) == 6
