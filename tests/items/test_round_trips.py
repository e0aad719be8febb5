"""Files of other programs in and out again: nothing is lost, nothing is imported twice, no old value comes back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from strongroom.items import Field, FileContent, Item, Login
from strongroom.items.formats import WRITERS, Problem, make_plan
from tests.items import corpora
from tests.items.sample_files import (
    NAMES,
    UNFIT,
    Stored,
    corpus,
    items,
    read,
    stored,
)

NOW = 1_800_000_000


@pytest.mark.parametrize("seed", range(4))
def test_cxf_in_and_out(seed: int) -> None:
    """Every item of a file is written as it came: members, order, ids, extensions, unknown credentials."""
    original = corpora.cxf(seed, 150)
    found = items(read("cxf", json.dumps(original)))
    written = json.loads(WRITERS["cxf"](stored(found), NOW))
    assert written["accounts"][0]["items"] == original["accounts"][0]["items"]
    assert {item.type for item in found} >= {"login", "card", "identity", "secret", "ssh-key", "note", "api-credential"}
    assert any("Outer/In%2Fner %25" in item.folders for item in found)
    again = items(read("cxf", json.dumps(written)))
    assert [one.to_stored() for one in again] == [one.to_stored() for one in found]


@pytest.mark.parametrize("seed", range(4))
def test_bitwarden_in_and_out(seed: int) -> None:
    """Every item of a file is written as it came: history, passkeys, matching of addresses, odd texts."""
    original = corpora.bitwarden(seed, 150)
    found = items(read("bitwarden", json.dumps(original)))
    written = json.loads(WRITERS["bitwarden"](stored(found), NOW))
    assert written["items"] == original["items"]
    assert {one["name"]: one["id"] for one in written["folders"]} == {
        one["name"]: one["id"] for one in original["folders"]
    }
    assert {item.type for item in found} == {"login", "note", "card", "identity", "ssh-key"}


@pytest.mark.parametrize("writer", ["cxf", "bitwarden"])
@pytest.mark.parametrize("name", NAMES)
def test_whatever_came_in_gets_out(name: str, writer: str) -> None:
    """Items of every format, written in either, are read again as the same items, source and rest included."""
    before = stored(corpus(name))
    after = items(read(writer, WRITERS[writer](before, NOW)))
    assert len(after) == len(before)
    for (uid, old), new in zip(before, after, strict=True):
        expected = old.to_stored()
        if old.source is None:
            expected["source"] = {"format": "strongroom", "id": uid}
        if old.source is not None and old.source.format == writer:
            assert new.source is not None
            expected["source"] = new.source.to_json()
        assert new.to_stored() == expected


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_imported_twice(name: str) -> None:
    """A second run of the same file adds nothing, nor does an export of the vault that it went to."""
    first = make_plan(corpus(name), [])
    present = [Stored(*pair) for pair in stored(first.new)]
    if name != "made here":
        assert len(first.new) == len(corpus(name)) > 0
        again = make_plan(corpus(name), present)
        assert (again.new, again.known) == ([], len(present))
    for writer in WRITERS:
        out = make_plan(read(writer, WRITERS[writer](present, NOW)), present)
        assert (out.new, out.known, out.problems) == ([], len(present), [])


def test_the_same_id_twice_is_two_items() -> None:
    """A file with an id twice loses neither, and a second run still adds nothing."""
    text = "name,url,username,password\nA,u,ada,one\nA,u,ada,two\n"
    first = make_plan(read("chrome", text), [])
    assert [item.password for item in first.new if isinstance(item, Login)] == ["one", "two"]
    assert make_plan(read("chrome", text), [Stored(*pair) for pair in stored(first.new)]).new == []


@pytest.mark.parametrize("name", ["cxf", "bitwarden"])
def test_no_old_value_comes_back(name: str) -> None:
    """An item that was edited after its import is written with its new values, and with what the program kept."""
    if name == "cxf":
        fields = {"username": {"fieldType": "email", "value": "stale@x", "id": "eA"}}
        fields |= {"password": {"fieldType": "concealed-string", "value": "stale", "label": "Kennwort", "id": "eQ"}}
        credentials = [
            {"type": "note", "content": {"fieldType": "string", "value": "stale"}},
            {"type": "basic-auth"} | fields,
        ]
        raw: Any = {"accounts": [{"items": [{"id": "aWQ", "title": "T", "credentials": credentials}]}]}
    else:
        login = {
            "username": "stale@x",
            "password": "stale",
            "totp": corpora.SECRET.lower(),
            "uris": [{"match": 3, "uri": "stale"}],
        }
        history = [{"password": "long gone", "lastUsedDate": "2020-01-01T00:00:00.000Z"}]
        raw = {
            "encrypted": False,
            "items": [{"id": "1", "type": 1, "name": "T", "login": login, "passwordHistory": history}],
        }
    [(uid, item)] = stored(items(read(name, json.dumps(raw))))
    assert isinstance(item, Login)
    item.username = item.password = "new"
    item.urls, item.totp, item.notes = ["https://new.example"], None, ""
    written = WRITERS[name]([(uid, item)], NOW).decode()
    assert "stale" not in written
    assert corpora.SECRET not in written.upper()
    assert '"match": 3' not in written  # it was said of another address
    assert ("Kennwort" in written) if name == "cxf" else ("long gone" in written)
    [again] = items(read(name, written))
    assert isinstance(again, Login)
    assert (again.username, again.password, again.urls, again.totp) == ("new", "new", ["https://new.example"], None)


def test_what_each_format_becomes() -> None:
    """A look at the mapping: fields land where people look for them."""
    [chrome, app] = corpus("chrome")
    assert (chrome.title, chrome.notes, app.title) == ("a.example", "hi", "com.example")
    [firefox] = corpus("firefox")
    assert firefox.source is not None
    assert (firefox.title, firefox.creation_at, firefox.source.rest["httpRealm"]) == ("a.example", 1700000000, "realm")
    [login, bare, binary] = corpus("pass")
    assert isinstance(login, Login)
    assert (login.username, login.folders, login.fields, login.notes) == (
        "ada",
        ["web"],
        [Field(label="pin", value="1", type="concealed-string")],
        "free text",
    )
    assert (bare.type, bare.to_stored()["value"], binary.files) == (
        "secret",
        "only",
        [FileContent(name="file", content=b"\xff\xfe\0")],
    )
    values = {item.title: item.to_stored().get("value", "") for item in corpus("dotenv")}
    assert values == {"A": "1", "B": "two words", "C": 'multi\nline "q" \n end', "D": "x", "E": ""}
    [entry, note] = corpus("keepass-csv")
    assert (entry.folders, note.type, entry.to_stored()["totp"]["secret"]) == (["Web"], "note", corpora.SECRET)
    onepassword = corpus("1pux")
    assert {item.type for item in onepassword} >= {"login", "card", "note", "identity", "secret", "file", "ssh-key"}
    assert all(item.files for item in onepassword if item.type == "file")
    assert {item.folders[0] for item in onepassword} == {"Private", "Shared"}


def test_variables_of_two_projects() -> None:
    """The same name with another value is another secret; the same file again adds nothing, and no id has a value."""
    first = make_plan(read("dotenv", "TOKEN=loquat\nSAME=1\n"), [])
    present = [Stored(*pair) for pair in stored(first.new)]
    second = make_plan(read("dotenv", "TOKEN=quince\nSAME=1\n"), present)
    assert ([item.to_stored()["value"] for item in second.new], second.known) == (["quince"], 1)
    assert make_plan(read("dotenv", "TOKEN=loquat\nSAME=1\n"), present).new == []
    assert not any("loquat" in item.source.id for item in first.new if item.source is not None)


@pytest.mark.parametrize("writer", ["cxf", "bitwarden"])
@pytest.mark.parametrize("raw", UNFIT)
def test_documents_that_do_not_fit_get_out(raw: dict[str, Any], writer: str) -> None:
    """One of them fails no export. It comes back as it was, and is known where it was."""
    uid = "0198c0de-0000-7000-8000-000000000001"
    written = WRITERS[writer]([(uid, Item.from_stored(raw)), *stored([Login(title="Good")])], NOW)
    again, good = items(read(writer, written))
    assert again.to_stored() == {"source": {"format": "strongroom", "id": uid}} | raw
    assert good.title == "Good"
    plan = make_plan([again], [Stored(uid, Item.from_stored(raw))])
    assert (plan.new, plan.known) == ([], 1)


@pytest.mark.parametrize("writer", ["cxf", "bitwarden"])
def test_a_document_with_a_source_that_is_none_gets_out(writer: str) -> None:
    """Its source becomes the document, so that it is known where it was."""
    uid = "0198c0de-0000-7000-8000-000000000001"
    present = Stored(uid, Item.from_stored({"type": "login", "title": "Unfit", "source": 5}))
    plan = make_plan(read(writer, WRITERS[writer]([present], NOW)), [present])
    assert (plan.new, plan.known, plan.problems) == ([], 1, [])


def test_escapes_of_keepass_csv() -> None:
    """KeePass writes a backslash before backslashes and quotation marks; KeePassXC doubles the quotation marks."""
    head = '"Account","Login Name","Password","Web Site","Comments"\n'
    rows = '"A","dom\\\\ada","p\\"1\\\\","https://a.example","two\nlines"\n"B","b","p2","",""\n'
    first, second = items(read("keepass-csv", head + rows))
    assert isinstance(first, Login)
    assert (first.username, first.password, first.notes) == ("dom\\ada", 'p"1\\', "two\nlines")
    assert second.title == "B"
    assert [type(one).__name__ for one in read("keepass-csv", head + rows + '"C","c","p","","","more"\n')][2:] == [
        "Problem"
    ]
    [other] = items(read("keepass-csv", '"Group","Title","Username","Password"\n"R","A","dom\\ada","p""1\\"\n'))
    assert isinstance(other, Login)
    assert (other.username, other.password) == ("dom\\ada", 'p"1\\')


def _twins(name: str, raw: dict[str, Any]) -> list[tuple[str, Item]]:
    """Two items that have one id in a file, as they are stored."""
    listed = [raw | {"title": "A", "name": "A"}, raw | {"title": "B", "name": "B"}] if raw else [{}, {}]
    whole: Any = {"encrypted": False, "items": listed} if name == "bitwarden" else {"accounts": [{"items": listed}]}
    if name == "cxf":
        collection = {"id": "Yw", "title": "Folder", "items": [{"item": raw.get("id")}]}
        whole["accounts"][0]["collections"] = [collection] if raw else []
    return stored(items(read(name, json.dumps(whole))))


@pytest.mark.parametrize("raw", [{"id": "WA"}, {}])
@pytest.mark.parametrize("name", ["cxf", "bitwarden"])
def test_items_of_one_id_are_written_with_two(name: str, raw: dict[str, Any]) -> None:
    """Each is known by its own source after an export, in any order and alone; ids in the export are unique."""
    twins = _twins(name, raw)
    for chosen in (twins, twins[::-1], twins[1:], twins[:1]):
        written = json.loads(WRITERS[name](chosen, NOW))
        listed = written["items"] if name == "bitwarden" else written["accounts"][0]["items"]
        ids = [one["id"] for one in listed if "id" in one]
        assert len(ids) == len(set(ids)) >= len(listed) - (0 if raw else 1)
        again = items(read(name, json.dumps(written)))
        assert [one.to_stored() for one in again] == [one.to_stored() for _, one in chosen]
        plan = make_plan(again, [Stored(*pair) for pair in twins])
        assert (plan.new, plan.known) == ([], len(chosen))


@pytest.mark.parametrize("name", ["cxf", "bitwarden"])
def test_copies_in_two_vaults_are_written_with_two_ids(name: str) -> None:
    """A file that was imported to two vaults: an export of both has unique ids, and every copy its own folders."""
    [(uid, one), (other, _)] = _twins(name, {"id": "WA"})
    copy = Item.from_stored(one.to_stored() | {"folders": ["Another"]})
    written = json.loads(WRITERS[name]([(uid, one), (other, copy)], NOW))
    listed = written["items"] if name == "bitwarden" else written["accounts"][0]["items"]
    assert len({one["id"] for one in listed}) == 2
    first, second = items(read(name, json.dumps(written)))
    assert (first.folders, second.folders) == (one.folders, ["Another"])
    assert [item.source.id for item in (first, second) if item.source is not None] == ["WA", "WA#2"]


KEEPASS_GROUPS = """<KeePassFile><Root><Group><Name>Database</Name><Notes>of all</Notes>
<Group><Name>Outer</Name><Notes>of outer</Notes><Tags>t</Tags><Group><Name>Inner</Name><Notes> </Notes>
<Entry><UUID>1</UUID></Entry><Entry><UUID>2</UUID></Entry></Group></Group>
<Group><Name>Empty</Name><Notes>of nobody</Notes></Group></Group></Root></KeePassFile>"""


def test_notes_of_keepass_groups_are_kept() -> None:
    """With the first entry below the group, once; those of a group without any are told as left out."""
    found = read("keepass-xml", KEEPASS_GROUPS)
    first, second = [one for one in found if isinstance(one, Item)]
    assert first.folders == second.folders == ["Outer/Inner"]
    assert first.source is not None
    assert second.source is not None
    assert first.source.rest["groups"] == [
        {"group": "Database", "inner": [{"name": "Notes", "text": "of all"}]},
        {"group": "Outer", "inner": [{"name": "Notes", "text": "of outer"}, {"name": "Tags", "text": "t"}]},
    ]
    assert "groups" not in second.source.rest
    assert [one.sentence for one in found if isinstance(one, Problem)] == [
        "The group 'Empty' has notes or settings, and no entry that was taken over; they were left out."
    ]


def test_what_a_field_of_onepassword_has_besides_is_kept() -> None:
    """The provider of an email address, and the description of a vault."""
    email = {"id": "e", "title": "Mail", "value": {"email": {"email_address": "a@b.example", "provider": "gmail"}}}
    raw = {"uuid": "u", "categoryUuid": "003", "details": {"sections": [{"title": "", "fields": [email]}]}}
    vault = {"attrs": {"name": "V", "desc": "about"}, "items": [raw | {"overview": {"title": "T"}}]}
    data = corpora.zipped({"export.data": json.dumps({"accounts": [{"vaults": [vault]}]}).encode()})
    [item] = items(read("1pux", data))
    assert [(one.label, one.value) for one in item.fields] == [("Mail", "a@b.example")]
    assert item.source is not None
    [section] = item.source.rest["details"]["sections"]
    assert section["fields"] == [{"id": "e", "title": "Mail", "value": {"email": {"provider": "gmail"}}}]
    assert item.source.rest["vault"] == {"desc": "about"}
