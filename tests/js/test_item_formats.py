"""Files of other programs: the TypeScript client reads and writes the same as the Python one, item by item."""

from __future__ import annotations

import base64
import io
import json
from pathlib import Path
from typing import Any

from strongroom.items import Item
from strongroom.items.formats import READERS, WRITERS, FileRefused, Problem, guess, make_plan
from tests.items import corpora
from tests.items import sample_files as samples
from tests.items.encrypted_exports import protected
from tests.items.full_items import fulls
from tests.items.hostile_files import SAMPLES, File, changed, heavy_files, hostile_files, mistyped, of_xml, of_zip
from tests.items.sample_files import UNFIT, Stored, stored
from tests.js.items_program import asked
from tests.js.tab import Tab
from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import served
from tests.kit.samples import SEED, rounds

NOW = 1_800_000_000


def here(file: File) -> dict[str, Any]:
    """What Python makes of a file, as the program for items tells it."""
    found: list[dict[str, Any]] = []
    password = file.password
    try:
        for one in READERS[file.format](io.BytesIO(file.data), None if password is None else lambda: password):
            told = {"problem": one.sentence} if isinstance(one, Problem) else {"item": one.to_stored()}
            found.append(told)
    except FileRefused as refused:
        return {"refused": type(refused).__name__, "sentence": str(refused), "found": found}
    return {"found": json.loads(json.dumps(found))}


def there(folder: Path, files: list[File]) -> list[dict[str, Any]]:
    """What TypeScript makes of files."""
    told = []
    for number, file in enumerate(files):
        path = folder / f"{number}"
        path.write_bytes(file.data)
        told.append({"format": file.format, "path": str(path), "password": file.password})
    out = folder / "out.json"
    given = folder / "given.json"
    given.write_text(json.dumps({"files": told, "out": str(out)}))
    assert asked("read", given) == len(files)
    found: list[dict[str, Any]] = json.loads(out.read_text())
    return found


def compare(folder: Path, files: list[File]) -> None:
    """Every file gives the same items, problems and refusals in both languages, in the same order."""
    for number, (file, other) in enumerate(zip(files, there(folder, files), strict=True)):
        mine = here(file)
        assert [*mine] == [*other], (number, file.format, mine.get("sentence"), other.get("sentence"))
        assert mine.get("sentence") == other.get("sentence"), (number, file.format)
        assert len(mine["found"]) == len(other["found"]), (number, file.format)
        for one, two in zip(mine["found"], other["found"], strict=True):
            assert one == two, (number, file.format)


def corpus(seed: int, count: int) -> list[File]:
    """Files of every format, made from their schemas."""
    plain = corpora.bitwarden(seed, count)
    kdf = {"kdfType": 0, "kdfIterations": 1000}
    return [
        File("cxf", json.dumps(corpora.cxf(seed, count)).encode()),
        File("bitwarden", json.dumps(plain).encode()),
        File("bitwarden", json.dumps(protected(plain, "correct horse", kdf)).encode(), "correct horse"),
        File("cxf", json.dumps(corpora.with_shared_ids(corpora.cxf(seed, count))).encode()),
        File("bitwarden", json.dumps(corpora.with_shared_ids(corpora.bitwarden(seed, count))).encode()),
        File("1pux", corpora.onepassword(seed, count)),
        File("keepass-xml", corpora.keepass(seed, count).encode()),
        File("keepass-csv", samples.KEEPASS_CSV.encode()),
        File("chrome", samples.CHROME.encode()),
        File("firefox", samples.FIREFOX.encode()),
        File("safari", samples.SAFARI.encode()),
        File("dotenv", samples.DOTENV.encode()),
    ]


def test_the_corpora_are_read_alike(tmp_path: Path) -> None:
    """Items with their ids, what was kept, folders and problems."""
    compare(tmp_path, [*corpus(9, 80), *corpus(10, 80)])


def test_hostile_files_are_refused_alike(tmp_path: Path) -> None:
    """Each has its sentence, which is the same in both; one bad item never fails the file."""
    compare(tmp_path, hostile_files())


def test_damaged_files_are_read_alike(tmp_path: Path) -> None:
    """Bytes changed, cut out or doubled, in files of every format; values of other types, in those of JSON."""
    files: list[File] = []
    for seed in range(SEED, SEED + rounds(1, 20)):
        files += [file for name, made in SAMPLES.items() for file in changed(name, made(), 25, seed)]
        files += [file for name in ("cxf", "bitwarden", "1pux") for file in mistyped(name, rounds(25, 200), seed)]
    compare(tmp_path, files)


def test_heavy_files_take_little(tmp_path: Path) -> None:
    """What would take much memory or time is refused with the same sentence, and takes little of both."""
    heavy = heavy_files()
    compare(tmp_path, heavy)
    given = json.loads((tmp_path / "given.json").read_text())
    given["files"].pop()  # the last one is read, as far as it may be
    (tmp_path / "given.json").write_text(json.dumps(given))
    told = asked("usage", tmp_path / "given.json")
    assert told["peak"] < 400 << 10
    assert told["seconds"] < 200 * told["reference"]


def written(folder: Path, lists: list[tuple[str, list[tuple[str, Any]]]]) -> list[str]:
    """The files that TypeScript writes of documents, each with its uid."""
    given, out = folder / "lists.json", folder / "written.json"
    told = [{"format": name, "items": rows, "now": NOW} for name, rows in lists]
    (folder / "rows.json").write_text(json.dumps(told))
    given.write_text(json.dumps({"path": str(folder / "rows.json"), "out": str(out)}))
    assert asked("write", given) == len(lists)
    made: list[str] = json.loads(out.read_text())
    return made


def documents(file: File) -> list[tuple[str, Any]]:
    """The documents that a file becomes, with uids."""
    found = READERS[file.format](io.BytesIO(file.data), lambda: file.password or "")
    return [(uid, item.to_stored()) for uid, item in stored([one for one in found if isinstance(one, Item)])]


def test_items_are_written_alike(tmp_path: Path) -> None:
    """Items of every format, edited ones, and documents that do not fit, in both formats, member by member."""
    rows = [documents(file) for file in corpus(9, 60)]
    rows.append([(uid, item.to_stored()) for uid, item in stored(fulls())])
    new = {"title": "new", "notes": "", "urls": ["https://new.example"], "totp": None, "username": "new", "number": "1"}
    edited = [(uid, Item.from_stored(raw | new).to_stored()) for uid, raw in rows[0] + rows[1]]
    rows.append(edited)
    rows.append([(f"0198c0de-0000-7000-8000-{number:012x}", raw) for number, raw in enumerate(UNFIT)])
    rows.append([(f"{uid}-{copy}", raw) for copy in (1, 2) for uid, raw in rows[0] + rows[1]])  # of two vaults
    rows.append([("no-uuid ü", {"type": "note", "title": "x", "folders": ["a/b%2Fc", "d"]}), *ssh_keys()])
    ids = ["X", "X", "X#2", "X#2", "", "Y#", "X"]
    for name in WRITERS:
        shared = [{"type": "note", "title": "t", "source": {"format": name, "id": one}} for one in ids]
        rows.append([(f"0198c0de-0000-7000-8000-00000000ee{number:02x}", raw) for number, raw in enumerate(shared)])
    lists = [(name, one) for name in WRITERS for one in rows]
    for (name, one), made in zip(lists, written(tmp_path, lists), strict=True):
        mine = json.loads(WRITERS[name]([(uid, Item.from_stored(raw)) for uid, raw in one], NOW))
        assert json.loads(made) == mine


def ssh_keys() -> list[tuple[str, Any]]:
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
    from cryptography.hazmat.primitives.serialization import (
        BestAvailableEncryption,
        Encoding,
        NoEncryption,
        PrivateFormat,
    )

    made: list[Any] = [
        ed25519.Ed25519PrivateKey.generate(),
        rsa.generate_private_key(65537, 1024),  # noqa: S505 - only its shape counts
        *(ec.generate_private_key(curve()) for curve in (ec.SECP256R1, ec.SECP384R1, ec.SECP521R1)),
    ]
    found: list[str] = []
    for key in made:
        found.append(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
        found.append(key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()).decode())
        if not isinstance(key, ed25519.Ed25519PrivateKey):
            found.append(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode())
    found.append(made[0].private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x")).decode())
    cut = found[1].splitlines()
    found.append("-----BEGIN PRIVATE KEY-----" + "\n" * 50_000 + "!")
    found += [
        "",
        "not a key",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n",
        "\n".join(cut[:2] + cut[-1:]),
    ]
    uid = "0198c0de-0000-7000-8000-00000000ff{:02x}".format
    return [(uid(number), {"type": "ssh-key", "title": "k", "privateKey": text}) for number, text in enumerate(found)]


def test_a_plan_is_made_alike(tmp_path: Path) -> None:
    """What is new, known, and cannot come: for an empty vault, for one with a part of it, and for a second run."""
    rows = [file for file in corpus(11, 30) if file.password is None]
    rows.append(File("chrome", b"name,url,username,password\n,https://a.example/x,ada,p\n,,ada,p\n,,,p\n  ,,,q\n"))
    told = []
    expected = []
    for number, file in enumerate(rows):
        found = [*READERS[file.format](io.BytesIO(file.data), None)]
        whole = documents(file)
        (tmp_path / f"{number}").write_bytes(file.data)
        for present in (
            [],
            whole[::2],
            whole,
            [("0198c0de-0000-7000-8000-000000000001", {"type": "login", "source": 5})],
        ):
            told.append({"format": file.format, "path": str(tmp_path / f"{number}"), "present": present})
            again = READERS[file.format](io.BytesIO(file.data), None)
            plan = make_plan(again, [Stored(uid, Item.from_stored(raw)) for uid, raw in present])
            new = [item.to_stored() for item in plan.new]
            expected.append([new, plan.known, plan.problems, plan.counts, len(found)])
    (tmp_path / "given.json").write_text(json.dumps(told))
    assert asked("plan", tmp_path / "given.json") == json.loads(json.dumps(expected))


def test_a_format_is_guessed_alike() -> None:
    """By the name and the first bytes of a file."""
    heads = [made()[:400] for made in SAMPLES.values()] + [
        b"",
        b"{}",
        b"<a>",
        b"x",
        b'"Account","Login Name","Password"\r\n',
    ]
    names = ["a.csv", "x/.env.local", "prod.env", ".ENV", "export.json"]
    cases = [(name, head) for head in heads for name in names]
    told = [[name, base64.b64encode(head).decode()] for name, head in cases]
    assert asked("guess", told) == [guess(name, head) for name, head in cases]


def test_ten_thousand_items(tmp_path: Path) -> None:
    """A file of 10,000 items is planned with progress, and others have their turn meanwhile; half as many take half."""
    path, half = tmp_path / "0", tmp_path / "1"
    for file, count in ((path, 10_000), (half, 5_000)):
        file.write_text(json.dumps(corpora.bitwarden(1, count)))
    told = asked("many", {"format": "bitwarden", "path": str(path), "half": str(half)})
    assert (told["new"], told["last"], told["problems"]) == (10_000, 10_000, 0)
    assert told["turns"] > 5
    assert told["seconds"] < 100 * told["reference"]
    assert told["seconds"] < 3 * told["halfSeconds"]  # with a square of the size, four times


def test_files_are_read_in_a_browser() -> None:
    """Under a strict policy, with the browser's own unpacking and encryption, and Argon2id in the client's worker."""
    lanes = {"kdfType": 1, "kdfIterations": 2, "kdfMemory": 16, "kdfParallelism": 4}
    files = [file for file in corpus(12, 12) if file.format != "dotenv"]
    files.append(File("bitwarden", json.dumps(protected(corpora.bitwarden(3, 5), "ü", lanes)).encode(), "ü"))
    files += [*of_zip(), *list(of_xml())[-14:]]
    with served() as url, private_window() as page:
        tab = Tab(page, url, "items")
        for file in files:
            assert tab.call("found", file.format, base64.b64encode(file.data).decode(), file.password) == here(file)
