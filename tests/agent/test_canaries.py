"""Secrets go through every command: none is seen in a list of processes, in a log, or in a file that stays."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.items.corpora import zipped
from tests.items.encrypted_exports import protected
from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.people.password_store import PasswordStore, needs_gpg
from tests.kit.samples import LONG
from tests.kit.waiting import until

COUNT = 50 if LONG else 16


class Watch:
    """Reads the arguments and the environments of all processes, again and again."""

    def __init__(self, canaries: list[str]) -> None:
        self._canaries = [one.encode() for one in canaries]
        self._ended = threading.Event()
        self.looks = 0
        self.seen: set[str] = set()

    def _look(self) -> None:
        while not self._ended.is_set():
            self.looks += 1
            time.sleep(0.01)
            for process in os.scandir("/proc"):
                if not process.name.isdigit() or process.name == str(os.getpid()):
                    continue
                for what in ("cmdline", "environ"):
                    with contextlib.suppress(OSError):
                        text = Path(process.path, what).read_bytes()
                        self.seen |= {f"{what}: {one!r}" for one in self._canaries if one in text}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        thread = threading.Thread(target=self._look)
        thread.start()
        try:
            yield
        finally:
            self._ended.set()
            thread.join()


def holding(folder: Path, canaries: list[str]) -> list[str]:
    """The files below a folder that hold one of the secrets."""
    wanted = [one.encode() for one in canaries]
    return [
        path.name for path in folder.rglob("*") if path.is_file() and any(one in path.read_bytes() for one in wanted)
    ]


@pytest.mark.production_hashing  # agents that are true starts hash so
def test_no_secret_is_seen_outside(person: CommandLineUser, tmp_path: Path) -> None:
    """Secrets of many types (fifty in the soak), the master password, a token, by editor and by clipboard too."""
    canaries = [f"canary-{number:02}-{os.urandom(6).hex()}" for number in range(COUNT)]
    temporary, programs = tmp_path / "temporary", tmp_path / "programs"
    temporary.mkdir()
    programs.mkdir()
    clipboard = tmp_path / "clipboard"
    (programs / "xclip").write_text(f'#!/bin/sh\ncase "$*" in *-o*) cat {clipboard} ;; *) cat > {clipboard} ;; esac\n')
    editor = programs / "editor"
    editor.write_text(f'#!/bin/sh\ncp "$1" "$1~"; sed -i s/{canaries[0]}/{canaries[1]}/ "$1"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    place = {"TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(temporary), "EDITOR": str(editor), "DISPLAY": ":9"}
    place["PATH"] = f"{programs}:{os.environ['PATH']}"
    place["PYTHONNODEBUGRANGES"] = "1"  # a true start: commands and the agent have arguments and variables of their own
    watch = Watch([*canaries[2:], PASSWORD])  # the editor of this test has two of them in its own program
    person.lock()
    with watch.watching():
        person.said("unlock", "--password", "-", stdin=f"{PASSWORD}\n", **place)
        assert b"strongroom.agent" in Path(f"/proc/{person.pid}/cmdline").read_bytes()
        person.said("add", "login", "Edited", "password=-", stdin=canaries[0], **place)
        person.said("edit", "Edited", **place)
        assert person.said("get", "Edited", **place).strip() == canaries[1]
        person.said("add", "note", "Note", stdin=canaries[2], **place)
        person.said("add", "card", "Card", "number=-", stdin=canaries[3], **place)
        person.said("add", "api-credential", "Api", "key=-", stdin=canaries[4], **place)
        person.said("add", "secret", "Own", "value=-", stdin=canaries[5], **place)
        person.said("edit", "Own", "extra=-", stdin=canaries[6], **place)
        for number, one in enumerate(canaries[7:]):
            person.said("add", "secret", f"Secret {number}", "value=-", stdin=one, **place)
        for number, one in enumerate(canaries[7:12]):
            assert person.said("get", f"Secret {number}", **place).strip() == one
        person.said("copy", "Own", "--clear-after", "1", **place)
        assert clipboard.read_text() == canaries[5]
        until(lambda: not clipboard.read_text(), "the clipboard to be cleared")
        person.said("copy", "Own", "--clear-after", "1", **place)
        clipboard.write_text("something else")
        token = person.said("share-token", "Personal", "--name", "ci", **place).strip()
        for words in (["list"], ["search", "own"], ["history", "Own"], ["conflicts"], ["sync"], ["status"]):
            told = person.said(*words, **place)
            assert not [one for one in canaries if one in told], words
        person.said("rm", "Own", "--yes", **place)
        assert "canary" not in person.said("list", "--deleted", **place)
        person.said("restore", "sr://Personal/Own", **place)
        person.lock()
        person.said("unlock", "--password", "-", stdin=f"{PASSWORD}\n", **place)
    assert watch.looks > 10
    assert clipboard.read_text() == "something else"  # it is not ours to clear
    assert watch.seen == set()
    canaries += [PASSWORD, token]
    assert holding(person.home, canaries) == []
    assert holding(temporary, canaries) == []
    assert [*temporary.iterdir()] == []


def bitwarden(values: list[str]) -> dict[str, Any]:
    """A plain export, with an item that is none."""
    good = [{"id": one[:9], "type": 1, "name": "B", "login": {"password": one, "totp": one}} for one in values[1:]]
    return {"encrypted": False, "items": [*good, {"type": 1, "name": ["B"], "login": {"password": values[0]}}]}


def cxf(values: list[str]) -> str:
    """A file of CXF."""
    items = []
    for one in values:
        password = {"fieldType": "concealed-string", "value": one}
        items.append({"id": one[:9], "title": "C", "credentials": [{"type": "basic-auth", "password": password}]})
    return json.dumps({"accounts": [{"items": [*items, {"title": 5, "credentials": values[0]}]}]})


def onepassword(values: list[str]) -> bytes:
    """A file of 1Password, with a secret in a field and in an attached file."""
    items = []
    for one in values:
        field = {"designation": "password", "fieldType": "P", "value": one}
        details = {"loginFields": [field], "documentAttributes": {"fileName": "f", "documentId": "d"}}
        items.append({"uuid": one[:9], "categoryUuid": "001", "overview": {"title": "O"}, "details": details})
    data = json.dumps({"accounts": [{"vaults": [{"attrs": {"name": "V"}, "items": items}]}]})
    return zipped({"export.data": data.encode(), "files/d__f": values[0].encode()})


def keepass(values: list[str]) -> str:
    """XML of KeePass."""
    told = "".join(
        f"<Entry><UUID>{one[:9]}</UUID><String><Key>Password</Key><Value>{one}</Value></String></Entry>"
        for one in values
    )
    return f"<KeePassFile><Root><Group><Name>D</Name>{told}</Group></Root></KeePassFile>"


FILES: dict[str, Callable[[list[str]], str | bytes]] = {
    "bitwarden": lambda values: json.dumps(bitwarden(values)),
    "bitwarden, encrypted": lambda values: json.dumps(
        protected(bitwarden(values), PASSWORD, {"kdfType": 0, "kdfIterations": 1000})
    ),
    "cxf": cxf,
    "1pux": onepassword,
    "keepass-xml": keepass,
    "keepass-csv": lambda values: "Title,Username,Password\n" + "".join(f"K,u{one[:9]},{one}\n" for one in values),
    "chrome": lambda values: "name,url,username,password\n" + "".join(f"S,h,{one[:9]},{one}\n" for one in values),
    "firefox": lambda values: (
        "url,username,password,guid\n" + "".join(f"https://a.example,u,{one},{one[:9]}\n" for one in values)
    ),
    "safari": lambda values: (
        "Title,URL,Username,Password,Notes,OTPAuth\n"
        + "".join(f"T,https://a.example,{one[:9]},{one},{one},{one}\n" for one in values)
    ),
    "dotenv": lambda values: "".join(f"V{number}={one}\n" for number, one in enumerate(values)) + f"bad {values[0]}\n",
}


@pytest.mark.parametrize("name", FILES)
def test_no_secret_of_an_importer_is_seen_outside(person: CommandLineUser, tmp_path: Path, name: str) -> None:
    """Fifty in a file of each format: a dry run, the import and an export; also of what cannot be imported."""
    canaries = [f"canary-{number:02}-{os.urandom(6).hex()}" for number in range(50)]
    data = FILES[name](canaries)
    given = tmp_path / "given"
    given.write_bytes(data if isinstance(data, bytes) else data.encode())
    words = ["import", str(given), "--format", name.partition(",")[0]]
    words += ["--password", "-"] if "encrypted" in name else []
    imported(person, tmp_path / "temporary", canaries, words)


@needs_gpg
def test_no_secret_of_a_password_store_is_seen_outside(person: CommandLineUser, tmp_path: Path) -> None:
    """Fifty in the store of `pass`, in the first line, in a member or in the text; gpg is a process of its own."""
    canaries = [f"canary-{number:02}-{os.urandom(6).hex()}" for number in range(50)]
    store = PasswordStore(tmp_path)
    for number in range(0, 50, 5):
        first, user, member, *text = canaries[number : number + 5]
        told = f"{first}\nuser: {user}\npin: {member}\n" + "\n".join(text)
        store.add(store.path / "web" / f"site {number}.gpg", told)
    words = ["import", str(store.path)]
    imported(person, tmp_path / "temporary", canaries, words, **store.environment)
    assert holding(tmp_path, canaries) == []
    store.close()


def imported(person: CommandLineUser, temporary: Path, canaries: list[str], words: list[str], **more: str) -> None:
    """Import by a command, export all items, and look for the secrets meanwhile and afterwards."""
    temporary.mkdir()
    place = {"TMPDIR": str(temporary), "XDG_RUNTIME_DIR": str(temporary), "PYTHONNODEBUGRANGES": "1", **more}
    watch = Watch([*canaries, PASSWORD])
    with watch.watching():
        told = [person.run(*words, *more, stdin=f"{PASSWORD}\n", **place) for more in (["--dry-run"], [], ["--json"])]
        out = person.said("export", "-", "--yes", **place)
    assert [done.returncode for done in told] == [0, 0, 0]
    assert [one for one in canaries for done in told if one in done.stdout + done.stderr] == []
    assert sum(one in out for one in canaries) >= 49  # one is in what was left out
    assert watch.seen == set()
    assert watch.looks > 3
    assert holding(person.home, [*canaries, PASSWORD]) == []
    assert [*temporary.iterdir()] == []


def test_the_watch_can_see(tmp_path: Path) -> None:
    """A secret in an argument, in a variable or in a file is found: the test above can fail."""
    watch = Watch(["canary-in-argv", "canary-in-environ"])
    with watch.watching():
        command = [sys.executable, "-S", "-c", "input()", "canary-in-argv"]
        with subprocess.Popen(command, env={"X": "canary-in-environ"}, stdin=subprocess.PIPE) as child:
            try:
                until(lambda: len(watch.seen) == 2, "both are seen")
            finally:
                child.kill()
    (tmp_path / "log").write_text("a canary-in-argv")
    assert holding(tmp_path, ["canary-in-argv"]) == ["log"]


def test_the_editors_file_is_private_and_wiped_when_the_command_is_ended(
    person: CommandLineUser, tmp_path: Path
) -> None:
    """While the editor is open, only the owner can read the file; after a signal it is gone."""
    person.add("GitHub", "hunter2")
    editor, told = tmp_path / "editor", tmp_path / "told"
    editor.write_text(
        f'#!/bin/sh\nstat -c "%a %n" "$1" "$(dirname "$1")" > {told}.part; mv {told}.part {told}; exec sleep 60\n'
    )
    editor.chmod(0o755)
    command = [sys.executable, "-m", "strongroom", "edit", "GitHub"]
    with subprocess.Popen(command, env=person.environment(EDITOR=str(editor)), stdin=subprocess.DEVNULL) as editing:
        text = until(lambda: told.exists() and told.read_text(), "the editor")
        (mode, file), (folder_mode, folder) = (line.split(" ", 1) for line in str(text).splitlines())
        assert (mode, folder_mode) == ("600", "700")
        assert "hunter2" in Path(file).read_text()
        editing.terminate()
        assert editing.wait(60) == 128 + signal.SIGTERM
    assert not Path(folder).exists()
