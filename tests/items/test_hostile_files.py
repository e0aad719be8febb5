"""Hostile and broken files: a sentence each, bounded memory, and one bad item never fails the file."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from strongroom.items import Card, Item, SshKey
from strongroom.items.formats import READERS, WRITERS, FileRefused, PasswordNeeded, Problem, pass_store
from strongroom.items.formats.common import read_all
from tests.items import corpora
from tests.items.encrypted_exports import protected
from tests.items.hostile_files import BAD_ITEMS, CANARY, NO_FORMAT, SAMPLES, changed, damaged, mistyped, packed
from tests.items.sample_files import read
from tests.kit.calibration import assert_linear, assert_within


def sentence(name: str, data: bytes | str, password: str | None = None) -> str:
    """Why a file is refused."""
    with pytest.raises(FileRefused) as told:
        read(name, data, password)
    assert str(told.value).endswith(".")
    return str(told.value)


def problems(name: str, data: bytes | str) -> list[str]:
    return [one.sentence for one in read(name, data) if isinstance(one, Problem)]


@pytest.mark.parametrize("name", sorted(READERS))
def test_what_is_not_the_format(name: str) -> None:
    """Any bytes are refused with a sentence, or give problems and no items."""
    for data in NO_FORMAT:
        try:
            found = read(name, data)
        except FileRefused as refused:
            assert str(refused).endswith("."), data
        else:
            assert not any(isinstance(one, Item) for one in found), data


@pytest.mark.parametrize("name", ["cxf", "bitwarden"])
def test_deep_json(name: str) -> None:
    """A million brackets are a sentence, in the file or in one item."""
    assert "nested too deeply" in sentence(name, '{"items": ' + "[" * 1_000_000)
    deep: Any = "x"
    for _ in range(400):
        deep = [deep]
    if name == "cxf":
        whole: Any = {
            "accounts": [{"items": [{"id": "YQ", "title": "Deep", "x": deep}, {"id": "Yg", "title": "Good"}]}]
        }
    else:
        whole = {"encrypted": False, "items": [{"name": "Deep", "type": 2, "x": deep}, {"name": "Good", "type": 2}]}
    found = read(name, json.dumps(whole))
    assert [one.sentence for one in found if isinstance(one, Problem)] == [
        "The item 'Deep' is nested too deeply, and was left out."
    ]
    assert [one.title for one in found if isinstance(one, Item)] == ["Good"]


@pytest.mark.parametrize(("told", "bad"), BAD_ITEMS)
def test_one_bad_item_never_fails_the_file(told: str, bad: Any) -> None:
    """The others come in, and the sentence names the bad one without its values."""
    whole = {"encrypted": False, "items": [{"name": "A", "type": 2}, bad, {"name": "B", "type": 1}]}
    found = read("bitwarden", json.dumps(whole))
    assert [one.title for one in found if isinstance(one, Item)] == ["A", "B"]
    [problem] = [one.sentence for one in found if isinstance(one, Problem)]
    assert told in problem
    assert CANARY not in problem


def test_broken_utf8_in_one_item() -> None:
    """Bytes that are not UTF-8 cost the item that they are in, in JSON and in CSV."""
    data = b'{"encrypted": false, "items": [{"name": "A", "type": 2, "notes": "\xff"}, {"name": "B", "type": 2}]}'
    assert [type(one).__name__ for one in read("bitwarden", data)] == ["Problem", "Note"]
    rows = b"name,url,username,password\nA,u,ada,\xff\nB,u,ada,p\n"
    assert problems("chrome", rows) == ["The item 'A' has text that is not valid Unicode, and was left out."]
    assert [one.title for one in read("chrome", rows) if isinstance(one, Item)] == ["B"]


def test_titles_in_sentences() -> None:
    """A title cannot write to the terminal, nor flood it."""
    whole = {"encrypted": False, "items": [{"name": "\x1b[2J" + "x" * 10_000, "type": 1, "login": 5}]}
    [told] = problems("bitwarden", json.dumps(whole))
    assert "\x1b" not in told
    assert len(told) < 200


def test_entity_bombs() -> None:
    """A document type is refused before an entity is expanded or a file is read."""
    bomb = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    for level in range(20):
        bomb += f'<!ENTITY a{level} "{"&a" * 10}">'
    assert "document type" in sentence("keepass-xml", bomb + "]><KeePassFile>&a9;</KeePassFile>")
    outside = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><KeePassFile><Root>&a;</Root></KeePassFile>'
    assert "document type" in sentence("keepass-xml", outside)
    assert "nested too deeply" in sentence("keepass-xml", "<a>" * 500)
    assert "too many" in sentence("keepass-xml", "<a>" + "<b/>" * 5_000_000)


@pytest.mark.parametrize("encoding", ["gbk", "shift_jis", "utf-7", "base64", "idna", "none-such", "koi8-r"])
def test_encodings_of_xml(encoding: str) -> None:
    """A file that names an encoding of its own is refused with a sentence, whatever codecs there are."""
    whole = f"<?xml version='1.0' encoding='{encoding}'?><KeePassFile><Root/></KeePassFile>"
    assert "an encoding" in sentence("keepass-xml", whole)
    for known in ("UTF-8", "us-ascii", "ISO-8859-1"):
        assert read("keepass-xml", whole.replace(encoding, known)) == []


def test_protected_values_of_keepass() -> None:
    """An entry whose values are still encrypted is named and left out: it would come without its password."""
    title = "<String><Key>Title</Key><Value>Bank</Value></String>"
    secret = '<String><Key>Password</Key><Value Protected="True">AAAA</Value></String>'
    good = "<Entry><String><Key>Title</Key><Value>Good</Value></String></Entry>"
    whole = f"<Group><Name>x</Name><Entry>{secret}{title}</Entry><Entry>{secret}</Entry>{good}</Group>"
    named, nameless, item = read("keepass-xml", f"<KeePassFile><Root>{whole}</Root></KeePassFile>")
    assert isinstance(named, Problem)
    assert named.sentence.startswith("The item 'Bank' has values that are still encrypted")
    assert isinstance(nameless, Problem)
    assert isinstance(item, Item)
    assert item.title == "Good"


def test_protected_files_of_keepass() -> None:
    """A file that is still encrypted is told, not taken for its content."""
    title = "<String><Key>Title</Key><Value>Bank</Value></String>"
    entry = f'<Entry>{title}<Binary><Key>x</Key><Value Protected="True">AAAA</Value></Binary></Entry>'
    told, item = read("keepass-xml", f"<KeePassFile><Root><Group>{entry}</Group></Root></KeePassFile>")
    assert isinstance(told, Problem)
    assert "'Bank'" in told.sentence
    assert isinstance(item, Item)
    assert item.files == []


def test_zip_bombs_and_paths() -> None:
    """Sizes are counted while a zip file is read, and names in it never become paths."""
    assert "export.data" in sentence("1pux", corpora.zipped({"export.data": b" " * (80 << 20)}))
    assert "too large" in problems("keepass-xml", packed(1, 10 << 20).data)[0]
    assert "damaged" in sentence("1pux", damaged(corpora.onepassword(1, 3)))
    assert "zip file" in sentence("1pux", corpora.onepassword(1, 3)[:-30])


def test_files_of_1password_are_named_by_the_item_alone(tmp_path: Path) -> None:
    """A document id with a way out of the folder finds nothing: nothing on the disk is read or written."""
    (tmp_path / "secret").write_text(CANARY)
    about = {"fileName": "secret", "documentId": f"../../../../{tmp_path}/", "decryptedSize": 1}
    item = {"uuid": "u", "categoryUuid": "006", "overview": {"title": "T"}, "details": {"documentAttributes": about}}
    whole = json.dumps({"accounts": [{"vaults": [{"attrs": {"name": "V"}, "items": [item]}]}]}).encode()
    found = read("1pux", corpora.zipped({"export.data": whole, "../../evil": b"x"}))
    assert [type(one).__name__ for one in found] == ["Problem", "File"]
    assert CANARY not in repr([one.to_stored() for one in found if isinstance(one, Item)])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret"]


@pytest.mark.parametrize("text", ["a,b\n1,2\n", "name,url\nx,y\n", "", "name\n"])
@pytest.mark.parametrize("name", ["chrome", "firefox", "safari", "keepass-csv"])
def test_csv_of_another_kind(name: str, text: str) -> None:
    """Missing columns are named before anything is taken over; a head alone has no items."""
    try:
        assert read(name, text) == []
    except FileRefused as refused:
        assert str(refused).endswith(".")


def test_csv_faults() -> None:
    """A row with too many columns is told by its line; a quotation without an end does not swallow silently."""
    head = "name,url,username,password\n"
    assert problems("chrome", head + "A,u,ada,p,too,many\nB,u,ada,p\n") == ["Line 2 has more columns than the head."]
    assert "is not CSV" in problems("chrome", head + 'A,u,ada,"p"x\nB,u,ada,p\n')[0]
    assert "null characters" in sentence("chrome", head + "A,u,ada,\0\n")


def test_faults_of_variables() -> None:
    """Lines that are no variables are told by their number, and the others come in."""
    text = "A=1\nno variable\nB=\"no end\nC='x' y\nD=4\n"
    assert problems("dotenv", text) == [
        "Line 2 is no variable.",
        "Line 3 has a quotation mark without an end.",
        "Line 4 goes on after its value.",
    ]
    assert [one.title for one in read("dotenv", text) if isinstance(one, Item)] == ["A", "D"]


@pytest.mark.parametrize(
    "kdf",
    [{"kdfType": 0, "kdfIterations": 1000}, {"kdfType": 1, "kdfIterations": 1, "kdfMemory": 8, "kdfParallelism": 1}],
)
def test_encrypted_bitwarden(kdf: dict[str, int]) -> None:
    """A file with a password is opened by it alone; a changed one is told."""
    plain = corpora.bitwarden(3, 20)
    file = protected(plain, "correct horse", kdf)
    assert read("bitwarden", json.dumps(file), "correct horse") == read("bitwarden", json.dumps(plain))
    with pytest.raises(PasswordNeeded, match="give its password"):
        read("bitwarden", json.dumps(file))
    with pytest.raises(PasswordNeeded, match="wrong"):
        read("bitwarden", json.dumps(file), "wrong horse")
    kind, data, mac = file["data"].split("|")
    flipped = ("A" if data[0] != "A" else "B") + data[1:]
    assert "changed" in sentence("bitwarden", json.dumps(file | {"data": f"{kind}|{flipped}|{mac}"}), "correct horse")


@pytest.mark.parametrize(
    "change",
    [
        {"kdfIterations": 10**12},
        {"kdfType": 1, "kdfIterations": 3, "kdfMemory": 10**6, "kdfParallelism": 4},
        {"kdfType": 1, "kdfIterations": 3, "kdfMemory": 64, "kdfParallelism": 10**6},
        {"kdfType": 7},
        {"kdfIterations": True},
        {"salt": 5},
    ],
)
def test_encrypted_bitwarden_that_asks_for_too_much(change: dict[str, Any]) -> None:
    """A file cannot hold up the machine by the work that it asks for."""
    file = protected({"items": []}, "p", {"kdfType": 0, "kdfIterations": 1000}) | change
    assert "key derivation" in sentence("bitwarden", json.dumps(file), "p")


def test_an_export_that_only_its_account_opens() -> None:
    """The sentence says what to export instead."""
    assert "Password protected" in sentence("bitwarden", json.dumps({"encrypted": True, "items": []}), "p")


def test_a_file_has_a_largest_size() -> None:
    """One of just this size is read."""
    assert read_all(io.BytesIO(b"x" * 10), 10) == b"x" * 10
    with pytest.raises(FileRefused, match="larger than"):
        read_all(io.BytesIO(b"x" * 11), 10)


def test_a_text_of_one_gigabyte(tmp_path: Path) -> None:
    """A field of 1 GB is refused by every reader, in little memory."""
    program = (
        "import sys, io\n"
        "from strongroom.items.formats import READERS, FileRefused\n"
        "class Endless(io.RawIOBase):\n"
        "    def __init__(self, head): self.left, self.at = head, 0\n"
        "    def readable(self): return True\n"
        "    def seekable(self): return False\n"
        "    def read(self, size=-1):\n"
        "        if size < 0: raise MemoryError\n"
        "        size = min(size, (1 << 30) - self.at)\n"
        "        self.at += size\n"
        "        return self.left[:size] + b'x' * (size - len(self.left))\n"
        "heads = {'bitwarden': b'{\"items\": [{\"notes\": \"', 'keepass-xml': b'<KeePassFile><a>'}\n"
        "for name, reader in READERS.items():\n"
        "    try: print(name, list(reader(Endless(heads.get(name, b'name,url,username,password\\n')), None)))\n"
        "    except FileRefused as told: print(name, told)\n"
        # not ru_maxrss: a new process begins with the one of the process that started it
        "lines = open('/proc/self/status').read().splitlines()\n"
        "print(next(int(line.split()[1]) // 1024 for line in lines if line.startswith('VmHWM:')))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    *told, peak = done.stdout.splitlines()
    assert len(told) == len(READERS)
    assert sum("larger than 64 MiB" in one for one in told) == len(READERS) - 1  # 1PUX is no zip file at all
    assert int(peak) < 500


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_damaged_files(name: str) -> None:
    """Files with bytes changed, cut out or doubled are read or refused with a sentence: never anything else."""
    for file in changed(name, SAMPLES[name](), 60, 7):
        try:
            for one in read(name, file.data):
                assert isinstance(one, Item | Problem)
        except FileRefused as refused:
            assert str(refused).endswith(".")


@pytest.mark.parametrize("name", ["cxf", "bitwarden", "1pux"])
def test_members_of_wrong_types(name: str) -> None:
    """Each value of a file in turn is replaced by one of another type: an item is read, or is a problem."""
    for file in mistyped(name, 250, 8):
        try:
            read(name, file.data)
        except FileRefused as refused:
            assert str(refused).endswith(".")


def test_pass_entries() -> None:
    """A name is a title and folders, whatever it holds; a text that is too large is told."""
    found = list(pass_store.read([("../../etc/x", b"p"), ("", b""), ("big", b"x" * 5_000_000)]))
    assert [type(one).__name__ for one in found] == ["Secret", "Secret", "Problem"]


def test_ten_thousand_items() -> None:
    """A file of 10,000 items is planned with progress, in some times the time of its JSON; twice as many take twice."""
    from strongroom.items.formats import make_plan

    files = {count: json.dumps(corpora.bitwarden(1, count)) for count in (1_250, 5_000, 10_000)}

    def planned(count: int) -> None:
        seen: list[int] = []
        plan = make_plan(read("bitwarden", files[count]), [], seen.append)
        assert (len(plan.new), seen[-1], plan.problems) == (count, count, [])
        assert sum(plan.counts.values()) == count

    assert_within(20, len(files[1_250]), lambda: planned(1_250))
    assert_linear(planned, 10_000)


def test_null_among_the_items() -> None:
    """Null is a bad item like any other, in every format of JSON."""
    note: dict[str, Any] = {"id": "YQ", "title": "Good", "name": "Good", "type": 2, "overview": {"title": "Good"}}
    vault = {"attrs": {"name": "V"}, "items": [None, {"item": None}, note]}
    files: dict[str, bytes] = {
        "cxf": json.dumps({"accounts": [{"items": [None, 5, note]}]}).encode(),
        "bitwarden": json.dumps({"encrypted": False, "items": [None, 5, note]}).encode(),
        "1pux": corpora.zipped({"export.data": json.dumps({"accounts": [{"vaults": [vault]}]}).encode()}),
    }
    for name, data in files.items():
        first, second, good = read(name, data)
        assert isinstance(first, Problem)
        assert isinstance(second, Problem)
        assert "number 1 is not an item" in first.sentence
        assert "number 2 is not an item" in second.sentence
        assert isinstance(good, Item)
        assert good.title == "Good"


def test_texts_and_numbers_in_odd_places() -> None:
    """A version that is a list, a salt and a password that are not Unicode, a month of 5,000 digits."""
    assert "later version" in sentence("cxf", json.dumps({"version": {"major": []}, "accounts": []}))
    assert read("cxf", json.dumps({"version": {"major": 0}, "accounts": []})) == []
    assert "later version" in sentence("cxf", json.dumps({"version": {"major": 2}, "accounts": []}))
    file = protected({"items": []}, "p", {"kdfType": 0, "kdfIterations": 1000})
    assert "wrong" in sentence("bitwarden", json.dumps(file), "\ud800")
    for kdf in ({"kdfType": 0}, {"kdfType": 1, "kdfIterations": 1, "kdfMemory": 8, "kdfParallelism": 1}):
        assert "key derivation" in sentence("bitwarden", json.dumps(file | kdf | {"salt": "\ud800"}), "p")
    card = Card(title="C", expiry_date="2030-" + "9" * 5_000)
    [again] = read("bitwarden", WRITERS["bitwarden"]([("0198c0de-0000-7000-8000-000000000001", card)], 0))
    assert isinstance(again, Card)
    assert again.expiry_date == card.expiry_date


def test_a_key_of_spaces_is_looked_at_once() -> None:
    """A text that only begins like a key takes no time that grows with its square, in an export."""

    def key(length: int) -> str:
        return "-----BEGIN PRIVATE KEY-----" + "\n" * length + "!"

    def written(length: int) -> bytes:
        item = SshKey(title="K", private_key=key(length))
        return WRITERS["cxf"]([("0198c0de-0000-7000-8000-000000000001", item)], 0)

    assert_linear(written, 4_000)
    [again] = read("cxf", written(50_000))
    assert isinstance(again, SshKey)
    assert again.private_key == key(50_000)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_in_a_zip_file(method: int) -> None:
    """They cannot be unpacked in parts of bounded size: a small entry takes all memory. No export has them."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export.data", json.dumps({"accounts": []}))
        archive.writestr("files/x", b"x" * 1000, method)
    assert "compressed in a way" in sentence("1pux", made.getvalue())


def test_many_entries_with_one_file_of_keepass() -> None:
    """What is unpacked is counted for the whole file, however many entries name it."""
    found = read("keepass-xml", packed(80, 2_500_000).data)
    files = [file for one in found if isinstance(one, Item) for file in one.files]
    assert 40 < len(files) < 60
    assert sum(isinstance(one, Item) for one in found) == 80
    assert sum(isinstance(one, Problem) and "too large" in one.sentence for one in found) == 80 - len(files)
