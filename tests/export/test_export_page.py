"""docs/export.md is true: an account of the Python client and one of any client move by the commands that it shows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import httpx2

from tests.export.files import imported, lines
from tests.kit.asynchronous import async_test
from tests.kit.documents import differences, fences, sections, text_of, values
from tests.kit.people.keyrings import keyring
from tests.kit.programs import processes
from tests.kit.programs.command_line import isolated_environment
from tests.kit.servers.documented_server import serving
from tests.kit.servers.in_process import OpenServer
from tests.kit.waiting import PATIENCE

OLD, NEW = "https://old.example.com", "https://new.example.com"
PAGE = text_of("docs/export.md")
KDF = {"kdf": "argon2id", "memory": 65_536, "salt": "AAAA"}


def ran(home: Path, program: str, text: str, old: str, new: str) -> str:
    """What a program prints whose text names the two servers of the page."""
    assert OLD in text
    assert NEW in text
    (home / "moving").write_text(text.replace(OLD, old).replace(NEW, new))
    done = processes.run(
        [program, "moving"],
        cwd=home,
        env=isolated_environment(home),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def furnish(http: httpx2.Client) -> None:
    """What the page's curl finds on the old server: a keyring, a vault, two documents, one of them changed."""
    account = {"email": "ada@example.com", "password": "correct horse battery staple", "kdf": KDF, "keyring": keyring()}
    http.headers["authorization"] = f"Bearer {_created(http, '/auth/email/register', account)['accessToken']}"
    uid = _created(http, "/vault", {"name": "personal"})["uid"]
    documents = f"/vaults/{uid}/documents"
    _created(http, documents, {"collection": "notes", "data": "AAAA"})
    note = _created(http, documents, {"collection": "notes", "data": "BBBB"})
    assert http.put(f"{documents}/{note['uid']}", json={"data": "CCCC", "version": 1}).status_code == 200


def _created(http: httpx2.Client, path: str, body: Any) -> Any:
    made = http.post(path, json=body)
    assert made.status_code == 201, made.text
    return made.json()


def test_the_page_runs_word_for_word(tmp_path: Path) -> None:
    """The Python block moves an account of the client; the shell blocks move one of any client, with its keys."""
    [python] = [body for language, body in fences(PAGE) if language == "python"]
    shell = fences(sections(PAGE, 3)["With curl, for any client"])
    script = "set -euo pipefail\n" + "printf '\\036'\n".join(body for language, body in shell if language == "sh")
    shown = [values(body) for language, body in shell if language == "json"]
    register = (
        "import sys\nfrom strongroom.client import Client\nwith Client(sys.argv[1]) as client:\n"
        "    client.register('grace@example.com', 'correct horse battery staple')\n"
        "    client.vault('personal', create=True).collection('notes').create('moved')\n"
    )
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    started = ("-m", "strongroom", "serve")
    with serving(tmp_path / "old", *started) as old, serving(tmp_path / "new", *started) as new:
        (tmp_path / "register.py").write_text(register)
        words = [sys.executable, "register.py", old]
        processes.run(words, cwd=tmp_path, env=isolated_environment(tmp_path), timeout=PATIENCE, check=True)
        assert ran(tmp_path, sys.executable, python, old, new) == "['personal']\n"
        with httpx2.Client(base_url=old, trust_env=False) as http:
            furnish(http)
        told = [values(part) for part in ran(tmp_path, "bash", script, old, new).split("\x1e")]
        for expected, real in zip(shown, told, strict=True):
            assert differences(expected, real) == []
        with httpx2.Client(base_url=new, trust_env=False) as http:
            login = {"email": "ada@example.com", "password": "correct horse battery staple"}
            token = http.post("/auth/email/login", json=login).json()["accessToken"]
            stored = http.get("/auth/keyring", headers={"authorization": f"Bearer {token}"}).json()
        assert (stored["keyring"], stored["kdf"]) == (keyring(), KDF)


@async_test
async def test_the_file_of_the_page_is_imported(open_server: OpenServer) -> None:
    """The example of a whole file is one, to the checksum."""
    [file] = [body for language, body in fences(PAGE) if language == "json" and '"kind":"header"' in body]
    async with open_server() as server:
        server.clock.now = lines(file.encode())[0]["exportedAt"]
        answer = await imported(await server.person(), file.encode())
        assert answer.status_code == 200, answer.text
