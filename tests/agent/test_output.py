"""Output that cannot be written, and characters that an encoding does not have: a sentence, or an escape."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.kit.people.command_line_user import PASSWORD, CommandLineUser
from tests.kit.programs.command_line import STRONGROOM

TITLE = "Gr\u00fc\u00dfe \u65e5\u672c \U0001f511"
FULL = "strongroom: The output cannot be written: No space left on device.\n"


@pytest.fixture(scope="module", autouse=True)
def _items(ada: CommandLineUser) -> None:
    ada.add("GitHub", "hunter2")
    ada.add(TITLE, "p\u00e4ss")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        *(["get", "GitHub"], ["list"]),
        *(["status", "--json"], ["get", "GitHub", "-n"], ["export", "-", "--yes"], ["generate"]),
        *(["--version"], ["completion", "bash"], ["list", "--help"]),
    ],
    ids=" ".join,
)
def test_a_full_disk_is_told(ada: CommandLineUser, words: list[str]) -> None:
    """With the exit code 1, and in one sentence, whether Python buffers what is written or not."""
    for unbuffered in ("", "1"):
        environment = ada.environment(PYTHONUNBUFFERED=unbuffered)
        with Path("/dev/full").open("wb") as full:
            done = subprocess.run(
                [*STRONGROOM, *words], env=environment, stdout=full, stderr=subprocess.PIPE, text=True, check=False
            )
        assert (done.returncode, done.stderr) == (1, FULL)


@pytest.mark.production_hashing  # the agent is a true start, with a limit of its own
def test_a_full_disk_of_the_account_is_told(person: CommandLineUser) -> None:
    """A change that cannot be stored: in a sentence, and what is there can still be read."""
    person.add("Kept", "hunter2")
    person.lock()
    shell = 'ulimit -f 600; exec "$@"'  # in KiB, of each file
    command = ["bash", "-c", shell, "bash", *STRONGROOM, "unlock", "--password", "-"]
    subprocess.run(command, env=person.environment(), input=f"{PASSWORD}\n".encode(), check=True, capture_output=True)
    done = person.run("add", "note", "Large", stdin="x" * 1_500_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "strongroom: The copy of the account cannot be written: the disk is full, or has a fault. "
        "What was stored is still there; free some space, and run this again.\n"
    )
    assert person.said("get", "Kept") == "hunter2\n"
    person.add("Small", "fits")


def test_what_is_no_title_and_no_store_is_refused(ada: CommandLineUser, tmp_path: Path) -> None:
    """A title of spaces, a directory without entries, and a server that is named as no server can be."""
    done = ada.run("add", "login", "  ", "password=-", stdin="x")
    assert (done.returncode, done.stderr) == (2, "strongroom: An item needs a title.\n")
    (tmp_path / "notes.txt").write_text("x")
    done = ada.run("import", str(tmp_path))
    assert (done.returncode, done.stderr) == (
        2,
        f"strongroom: {tmp_path} is not a directory of pass: it has no entries.\n",
    )
    stranger = CommandLineUser(tmp_path / "other" / "home", "http://vault.example.com")
    done = stranger.run("login", "a@b.example", "--server", stranger.url, "--password", "-", stdin="x\n")
    told = (
        "The server's address must begin with https://, or the connection can be read on its way; --insecure allows it."
    )
    assert (done.returncode, done.stderr) == (2, f"strongroom: {told}\n")
    stranger.close()


def test_an_encoding_without_some_characters(ada: CommandLineUser) -> None:
    """Titles are shown with escapes, JSON stays JSON, and a value is in UTF-8 in any case."""

    def said(*words: str) -> bytes:
        env = ada.environment(PYTHONIOENCODING="latin-1")
        return subprocess.run([*STRONGROOM, *words], env=env, capture_output=True, check=True).stdout

    assert "Gr\u00fc\u00dfe \\u65e5\\u672c \\U0001f511".encode("latin-1") in said("list")
    titles = {one["title"] for one in json.loads(said("list", "--json").decode("ascii"))}
    assert titles == {"GitHub", TITLE}
    assert said("get", TITLE) == "p\u00e4ss\n".encode()
