"""`strongroom import` and `export`, as a person runs them: a dry run, once and not twice, and nothing secret shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.items import corpora
from tests.items.encrypted_exports import protected
from tests.kit.people.command_line_user import CommandLineUser
from tests.kit.people.password_store import PasswordStore, needs_gpg

CANARY = "pomelo-9042"


def exported(path: Path, *names: str) -> Path:
    """A file of Bitwarden with logins of these names."""
    items = [{"id": f"id-{name}", "type": 1, "name": name, "login": {"password": f"{CANARY} {name}"}} for name in names]
    path.write_text(json.dumps({"encrypted": False, "items": items}))
    return path


def test_a_dry_run_then_once_and_not_twice(ada: CommandLineUser, tmp_path: Path) -> None:
    """The dry run writes nothing, the import adds everything, and the second one nothing."""
    file = tmp_path / "export.json"
    file.write_text(json.dumps(corpora.bitwarden(11, 120)))
    would = ada.json("import", str(file), "--vault", "Old", "--dry-run")
    assert (would["format"], would["new"], would["known"], would["problems"]) == ("bitwarden", 120, 0, [])
    assert sum(would["types"].values()) == 120
    assert "Old" not in {one["vault"] for one in ada.json("list")}
    assert ada.json("import", str(file), "--vault", "Old") == would | {"dryRun": False}
    assert len(ada.json("list", "--vault", "Old")) == 120
    again = ada.json("import", str(file), "--vault", "Old")
    assert (again["new"], again["known"]) == (0, 120)
    for name in ("cxf", "bitwarden"):
        target = tmp_path / f"{name}.json"
        assert ada.json("export", str(target), "--format", name, "--vault", "Old", "--yes")["items"] == 120
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        back = ada.json("import", str(target), "--vault", "Old")
        assert (back["new"], back["known"], back["problems"]) == (0, 120, [])
        fresh = ada.json("import", str(target), "--vault", f"New {name}")
        assert (fresh["new"], fresh["types"]) == (120, would["types"])
    written = json.loads((tmp_path / "bitwarden.json").read_text())
    original = json.loads(file.read_text())
    assert {one["id"]: one for one in written["items"]} == {one["id"]: one for one in original["items"]}


def test_problems_are_told_and_values_are_not(ada: CommandLineUser, tmp_path: Path) -> None:
    """A bad item is named on standard error; no secret of the file is shown by the import."""
    file = exported(tmp_path / "export.json", "Good one", "Bad one")
    whole = json.loads(file.read_text())
    whole["items"][1]["login"] = [CANARY]
    whole["items"].append({"type": 2, "name": "", "notes": CANARY})
    file.write_text(json.dumps(whole))
    done = ada.run("import", str(file), "--vault", "Problems")
    assert done.returncode == 0
    assert "'Bad one' is not an item of Bitwarden" in done.stderr
    assert done.stdout == "Added 2 items to the vault 'Problems': 1 login, 1 note. Problems: 1.\n"
    assert CANARY not in done.stdout + done.stderr
    assert {one["title"] for one in ada.json("list", "--vault", "Problems")} == {"Good one", "Untitled"}
    assert ada.said("get", "Good one") == f"{CANARY} Good one\n"


def test_an_encrypted_file(ada: CommandLineUser, tmp_path: Path) -> None:
    """Its password comes from the terminal or by standard input, never as an argument."""
    plain = json.loads(exported(tmp_path / "plain.json", "Sealed").read_text())
    file = tmp_path / "sealed.json"
    file.write_text(json.dumps(protected(plain, "file password", {"kdfType": 0, "kdfIterations": 1000})))
    words = ("import", str(file), "--vault", "Sealed")
    wrong = ada.run(*words, "--password", "-", stdin="another\n")
    assert (wrong.returncode, "password is wrong" in wrong.stderr) == (6, True)
    assert ada.run(*words, "--password", "file password").returncode == 2
    assert ada.run(*words).returncode == 5
    assert "Added 1 items" in ada.said(*words, "--password", "-", stdin="file password\n")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("x.json", "{}", "not recognised"),
        ("x.json", '{"encrypted": true}', "only be opened by the Bitwarden account"),
        ("x.json", '{"encrypted": false, "items": 5}', "no list of items"),
        ("x.xml", "<!DOCTYPE x><KeePassFile/>", "document type"),
        ("x.1pux", "PK\x03\x04", "not a whole zip file"),
        ("missing", None, "Cannot read the file"),
    ],
)
def test_a_file_that_is_refused(
    ada: CommandLineUser, tmp_path: Path, name: str, content: str | None, told: str
) -> None:
    """One sentence, exit code 2, and nothing is added."""
    if content is not None:
        (tmp_path / name).write_text(content)
    done = ada.run("import", str(tmp_path / name), "--vault", "Refused")
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr
    assert "Traceback" not in done.stderr
    assert "Refused" not in {one["vault"] for one in ada.json("list")}


def test_standard_input_and_other_formats(ada: CommandLineUser) -> None:
    """A file may be piped in, so that a decrypted one never lies on a disk."""
    told = ada.json("import", "-", "--format", "dotenv", "--vault", "Piped", stdin="TOKEN=abc\n")
    assert (told["new"], told["types"]) == (1, {"secret": 1})
    chrome = "name,url,username,password\nSite,https://s.example,ada,p\n"
    assert ada.json("import", "-", "--vault", "Piped", stdin=chrome)["format"] == "chrome"
    assert ada.said("get", "sr://Piped/Site") == "p\n"


def test_an_export_is_asked_for_and_replaces_nothing(ada: CommandLineUser, tmp_path: Path) -> None:
    """Without a terminal it needs --yes; a file that is there stays."""
    for vault in ("One", "Two"):
        ada.said("import", "-", "--format", "dotenv", "--vault", vault, stdin="KEPT=kept\n")
    target = tmp_path / "items.json"
    assert ada.run("export", str(target)).returncode == 4
    assert not target.exists()
    target.write_text("mine")
    assert ada.run("export", str(target), "--yes").returncode == 2
    assert target.read_text() == "mine"
    whole = json.loads(ada.said("export", "-", "--yes"))
    titles = {one["title"] for one in whole["accounts"][0]["collections"]}
    assert titles >= {"One", "Two"}  # several vaults: each is the outermost folder of its items


@needs_gpg
def test_a_password_store(ada: CommandLineUser, tmp_path: Path) -> None:
    """The entries of `pass`, decrypted by the real gpg; links in the store are told, and not followed."""
    made = PasswordStore(tmp_path)
    store, environment = made.path, made.environment
    made.add(store / "web" / "site.gpg", f"{CANARY}\nuser: ada\n")
    made.add(tmp_path / "elsewhere.gpg", "not for us\n")
    (store / "plain.txt").write_text("not encrypted")
    (store / ".gpg-id").write_text("ada@example.com\n")
    (tmp_path / "folder").mkdir()
    links = {"alias.gpg": "web/site.gpg", "outside.gpg": "../elsewhere.gpg", "nothing.gpg": "none", "far": "../folder"}
    for name, target in links.items():
        (store / name).symlink_to(target)
    told = ada.json("import", str(store), "--vault", "Pass", **environment)
    assert (told["format"], told["types"]) == ("pass", {"login": 1})
    away = "was left out: it leads out of the store, or to nothing."
    assert sorted(told["problems"]) == [
        "The file 'plain.txt' is not encrypted with gpg, and was left out.",
        "The link 'alias' was left out; it leads to 'web/site', which has its own name.",
        f"The link 'far' {away}",
        f"The link 'nothing' {away}",
        f"The link 'outside' {away}",
    ]
    for name in ("plain.txt", *links):
        (store / name).unlink()
    assert ada.said("get", "sr://Pass/site/username") == "ada\n"
    assert ada.said("get", "sr://Pass/site") == f"{CANARY}\n"
    (store / "bad.gpg").write_bytes(b"no message")
    again = ada.json("import", str(store), "--vault", "Pass", **environment)
    assert (again["new"], again["known"], again["problems"]) == (
        0,
        1,
        ["The item 'bad' cannot be decrypted, and was left out."],
    )
    (store / "web" / "site.gpg").unlink()
    for name in ("a", "b"):
        (store / f"{name}.gpg").write_bytes(b"no message")
    done = ada.run("import", str(store), "--vault", "Pass", **environment)
    assert (done.returncode, "gpg decrypts none" in done.stderr) == (1, True)
    made.close()
