"""Items in the web app: every type, hidden secrets, notes, files, what does not fit, documents of other apps."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from strongroom.items import (
    ApiCredential,
    Card,
    Identity,
    Login,
    Note,
    OneTimeCode,
    Other,
    Secret,
    SshKey,
    Totp,
    field,
)
from strongroom.items.types import Address, Field, File, FileContent, Item, PersonName
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.servers.process import Server, on_a_file
from tests.web.page_helpers import BrowserUser, choose, row, wait_for, wide

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c626001000000ffff03000006000557bfabd4"
    "0000000049454e44ae426082"
)
ITEMS: list[Item] = [
    Login(title="A login", username="ada", password="hidden-1", urls=["https://example.com"]),
    Note(title="A note", notes="# Head\n\nsome **strong** text"),
    Card(title="A card", full_name="Ada Lovelace", number="hidden-2", pin="hidden-3", expiry_date="2028-05"),
    Identity(title="A person", name=PersonName(given="Ada"), address=Address(city="London")),
    Secret(title="A secret", value="hidden-4"),
    SshKey(title="A key", private_key="hidden-5", public_key="ssh-ed25519 AAAA", key_comment="ada@host"),
    Totp(title="A code", totp=OneTimeCode(secret="GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ")),
    ApiCredential(title="An API", key="hidden-6", username="robot", url="https://api.example.com"),
    File(
        title="A file", files=[FileContent(name="pixel.png", content=PNG), FileContent(name="x.svg", content=b"<svg/>")]
    ),
]
SHOWN = {
    "A login": ["ada", "https://example.com"],
    "A note": ["Head", "some strong text"],
    "A card": ["Ada Lovelace", "2028-05"],
    "A person": ["Given name", "Ada", "London"],
    "A secret": ["Value"],
    "A key": ["ssh-ed25519 AAAA", "ada@host"],
    "A code": ["One-time code"],
    "An API": ["robot", "https://api.example.com"],
    "A file": ["pixel.png", "x.svg"],
}


@on_a_file
def test_every_type_is_shown_and_no_secret_is(person: BrowserUser, pages: Pages) -> None:
    """Each type of docs/items.md with its fields; no secret is anywhere in the page."""
    for item in ITEMS:
        person.items.create(item)
    pages.context.clock.install()  # not in an open app, which would lock: for a moment it says 1970
    page = person.log_in(pages)
    for item in ITEMS:
        choose(page, item.title)
        detail = page.locator(".itemView")
        for text in SHOWN[item.title]:
            expect(detail).to_contain_text(text)
        assert "hidden-" not in page.content()
        assert wide(page) == []
    choose(page, "A code")
    expect(page.locator(".digits")).to_have_text(re.compile(r"^\d{3} \d{3}$"))
    code = page.locator(".digits").inner_text()
    page.clock.run_for(31_000)
    expect(page.locator(".digits")).not_to_have_text(code)
    choose(page, "A login")
    page.get_by_role("button", name="Show Password").click()
    expect(page.locator(".itemView")).to_contain_text("hidden-1")
    page.evaluate("Object.defineProperty(document, 'hidden', { value: true })")
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".itemView")).not_to_contain_text("hidden-1")  # nobody looks at it any more
    check_accessibility(page)
    screenshot(page, "item")


@on_a_file
def test_files(person: BrowserUser, pages: Pages, tmp_path: Path) -> None:
    """A picture is shown by a blob, an SVG never; files are downloaded as they are, and added while they fit."""
    person.items.create(ITEMS[-1])
    page = person.log_in(pages)
    choose(page, "A file")
    page.get_by_role("button", name="Show pixel.png").click()
    expect(page.get_by_role("img", name="pixel.png")).to_have_attribute("src", re.compile("^blob:"))
    assert (
        page.get_by_role("img", name="pixel.png").evaluate("async (one) => (await one.decode(), one.naturalWidth)") == 1
    )
    expect(page.get_by_role("button", name="Show x.svg")).to_have_count(0)
    with page.expect_download() as started:
        page.get_by_role("button", name="Download x.svg").click()
    assert Path(started.value.path()).read_bytes() == b"<svg/>"
    page.get_by_role("button", name="Edit").click()
    (tmp_path / "large.bin").write_bytes(bytes(3_100_000))
    (tmp_path / "small.bin").write_bytes(b"small")
    page.locator("input[type=file]").set_input_files(tmp_path / "large.bin")
    expect(page.get_by_role("alert")).to_contain_text("At most 4.0 MB fit")
    page.locator("input[type=file]").set_input_files(tmp_path / "small.bin")
    expect(page.locator(".fileName", has_text="small.bin")).to_be_visible()
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: len(person.items.find("A file").value.files) == 3)
    assert [one.name for one in person.items.find("A file").value.files] == ["pixel.png", "x.svg", "small.bin"]
    assert person.items.find("A file").value.files[2].content == b"small"


@on_a_file
def test_an_item_is_made_and_changed(person: BrowserUser, pages: Pages) -> None:
    """What is typed is what another device reads; members that the app does not know, at any depth, are kept."""
    raw = {
        "type": "login", "title": "Kept", "username": "ada", "totp": {"secret": "JBSWY3DPEHPK3PXP", "later": 1},
        "fields": [{"label": "PIN", "value": "1", "type": "concealed-string", "future": [2]}],
        "unknown": {"deep": [None, 3]},
    }  # fmt: skip
    kept = person.client.vault("Personal").collection("items").create(raw)
    page = person.log_in(pages)
    choose(page, "Kept")
    expect(page.get_by_text("This version does not know, and keeps: unknown.")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Username", exact=True).fill("grace")
    page.get_by_role("button", name="Save", exact=True).click()
    collection = person.client.vault("Personal").collection("items")
    wait_for(lambda: collection.get(kept.uid).version == 2)
    assert collection.get(kept.uid).value == raw | {"username": "grace"}

    page.get_by_role("button", name="New item").click()
    page.get_by_label("Title").fill("Made here")
    page.get_by_label("Username").fill("ada")
    page.get_by_role("button", name="Make one for Password").click()
    made = page.locator(".generated").inner_text()
    expect(page.get_by_role("dialog")).to_contain_text("very strong")
    page.get_by_role("button", name="Use it").click()
    page.get_by_role("textbox", name="Secret of the code").fill("not base 32!")
    expect(page.get_by_role("alert")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    page.get_by_role("textbox", name="Secret of the code").fill(
        "otpauth://totp/Example:ada?secret=JBSWY3DPEHPK3PXP&digits=8"
    )
    page.get_by_label("Addresses").fill("https://one.example\nhttps://two.example")
    page.get_by_role("button", name="Add a field").click()
    page.get_by_label("Label").fill("Door")
    page.get_by_label("Kind").select_option("concealed-string")
    page.locator(".customField").get_by_role("textbox", name="Value").fill("1234")
    page.get_by_label("Folders").fill("Work/Code")
    page.get_by_label("Tags").fill("red\nblue")
    check_accessibility(page)
    screenshot(page, "editor", full=True)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Made here")).to_be_visible()
    wait_for(lambda: len(person.items.list()) == 2)
    item = person.items.find("Made here").value
    assert isinstance(item, Login)
    assert (item.username, item.password, item.folders, item.tags) == ("ada", made, ["Work/Code"], ["red", "blue"])
    assert item.totp is not None
    assert (item.totp.digits, field(item, "url2").value, field(item, "Door").concealed) == (
        8,
        "https://two.example",
        True,
    )


def _clipboard(page: Page, field: str = "Search") -> str:
    """What a paste into a field of the page gives: no page may read the clipboard by itself."""
    box = page.get_by_label(field, exact=True)
    box.fill("")
    box.press("Control+v")
    text = box.input_value()
    box.fill("")
    box.blur()
    return text


@on_a_file
def test_the_clipboard_is_cleared(server: Server, person: BrowserUser, make_pages: MakePages) -> None:
    """A secret leaves the clipboard after 30 seconds, and at once when the app is locked; a username stays."""
    person.login_item()
    pages = make_pages(server, permissions=["clipboard-read", "clipboard-write"])
    pages.context.clock.install()
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.get_by_role("button", name="Copy Password").click()
    expect(page.get_by_text("The clipboard is cleared in 30 seconds.")).to_be_visible()
    assert _clipboard(page) == "correct horse"
    page.clock.run_for(15_000)  # the time that the test itself takes counts too
    assert _clipboard(page) == "correct horse"
    page.clock.run_for(15_500)
    wait_for(lambda: _clipboard(page) == "")
    page.get_by_role("button", name="Copy Username").click()
    page.clock.run_for(31_000)
    assert _clipboard(page) == "ada"
    page.keyboard.press("c")
    wait_for(lambda: _clipboard(page) == "correct horse")
    page.keyboard.press("l")
    expect(page.get_by_role("button", name="Unlock", exact=True)).to_be_visible()
    wait_for(lambda: _clipboard(page, "Password") == "")
    assert "GitHub" not in page.content()


@on_a_file
def test_what_ends_after_a_lock_leaves_nothing(server: Server, person: BrowserUser, make_pages: MakePages) -> None:
    """A copy that is under way is cleared, and a change that is under way is neither told nor kept for an undo."""
    person.login_item()
    pages = make_pages(server)
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.evaluate(
        """() => {
      Object.assign(window, { copied: [], ended: 0 });
      const gate = new Promise((open) => (window.openGate = open));
      navigator.clipboard.writeText = async (text) => {
        if (text) await gate;
        window.copied.push(text);
      };
      const { set } = Object.getOwnPropertyDescriptor(IDBTransaction.prototype, "oncomplete");
      Object.defineProperty(IDBTransaction.prototype, "oncomplete", {
        set(run) {
          set.call(this, async (event) => {
            if (this.mode === "readwrite") await gate;
            run(event);
            setTimeout(() => (window.ended += 1), 200);
          });
        },
      });
    }"""
    )
    page.get_by_role("button", name="Copy Password").click()
    page.get_by_role("button", name="Mark as favourite").click()
    page.get_by_role("button", name="Lock").first.click()
    expect(page.get_by_role("button", name="Unlock", exact=True)).to_be_visible()
    page.evaluate("window.openGate()")
    wait_for(lambda: page.evaluate("window.ended") > 0)
    assert page.evaluate("window.copied") == ["correct horse", ""]
    for told in ("The clipboard is cleared", "1 favourite added"):
        expect(page.get_by_text(told)).to_have_count(0)


@on_a_file
def test_fields_and_files_of_the_editor_keep_their_places(person: BrowserUser, pages: Pages) -> None:
    """No secret is revealed in the place of another; two additions of files at once both count."""
    fields = [Field(label=f"PIN {at}", value=f"hidden-{at}", type="concealed-string") for at in range(3)]
    person.login_item(
        fields=fields, files=[FileContent(name="a.png", content=PNG), FileContent(name="b.png", content=PNG)]
    )
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.get_by_role("button", name="Show PIN 1").click()
    expect(page.locator(".itemView")).to_contain_text("hidden-1")
    document = person.items.find("GitHub")
    document.value.fields = fields[:1] + fields[2:]
    person.items.replace(document, document.value)
    expect(page.locator(".itemView")).not_to_contain_text("PIN 1")
    expect(page.locator(".itemView")).not_to_contain_text("hidden-2")

    page.get_by_role("button", name="Edit").click()
    expect(page.locator(".itemEditor input[type=password]")).to_have_count(0)
    lines = page.locator(".customField")
    lines.nth(0).get_by_role("button", name="Show Value").click()
    expect(lines.locator(".masked")).to_have_count(1)
    lines.nth(1).get_by_role("button", name="Move PIN 2 up").click()
    expect(lines.nth(0).locator(".masked")).to_have_value("hidden-2")
    lines.nth(1).get_by_role("button", name="Remove PIN 0").click()
    expect(lines.locator(".masked")).to_have_value("hidden-2")
    lines.get_by_role("button", name="Show Value").click()
    expect(lines.locator(".masked")).to_have_count(0)
    page.evaluate(
        """() => {
      Object.defineProperty(document, "hidden", { configurable: true, value: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }"""
    )
    expect(lines.locator(".masked")).to_have_count(1)

    page.get_by_role("button", name="Show a.png").click()
    expect(page.locator(".picture")).to_have_count(1)
    page.get_by_role("button", name="Remove a.png").click()
    expect(page.locator(".picture")).to_have_count(0)
    page.evaluate(
        """() => {
      const input = document.querySelector("input[type=file]");
      for (const name of ["one", "two"]) {
        const chosen = new DataTransfer();
        chosen.items.add(new File(["x"], name));
        input.files = chosen.files;
        input.dispatchEvent(new Event("change", { bubbles: true }));
      }
    }"""
    )
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: len(person.items.find("GitHub").value.files) == 3)
    assert [file.name for file in person.items.find("GitHub").value.files] == ["b.png", "one", "two"]


@on_a_file
def test_what_does_not_fit_is_shown_and_not_changed(person: BrowserUser, pages: Pages) -> None:
    """A document that is no item says why and cannot be edited; one of a type that is not known can."""
    collection = person.client.vault("Personal").collection("items")
    bad = collection.create({"type": "login", "title": "Bad", "urls": "no list"})
    person.items.create(Other(title="New kind", type_name="hologram", notes="from the future", extra={"depth": 3}))
    page = person.log_in(pages)
    expect(row(page, "Bad")).to_contain_text("Does not fit its type")
    choose(page, "Bad")
    expect(page.locator(".itemView")).to_contain_text("$.urls")
    expect(page.get_by_role("button", name="Edit")).to_have_count(0)
    page.keyboard.press("e")
    expect(page.get_by_label("Title")).to_have_count(0)
    page.goto(f"{page.url}/edit")
    expect(page.locator(".itemView")).to_contain_text("$.urls")
    assert collection.get(bad.uid).version == 1
    choose(page, "New kind")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Notes", exact=True).fill("changed")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: person.items.find("New kind").version == 2)
    assert person.items.find("New kind").value.to_stored() == {
        "type": "hologram", "title": "New kind", "notes": "changed", "depth": 3,
    }  # fmt: skip


@on_a_file
def test_documents_of_other_apps(person: BrowserUser, pages: Pages) -> None:
    """They are shown as JSON and edited with care: valid JSON, after a question, never over another's change."""
    notes = person.client.vault("Personal").collection("notes")
    note = notes.create({"title": "Of another app", "count": 1})
    page = person.log_in(pages)
    page.get_by_role("navigation").get_by_role("link", name="notes 1").click()
    row(page, "Of another app").click()
    expect(page.locator(".json")).to_contain_text('"count": 1')
    page.get_by_role("button", name="Edit").click()
    area = page.get_by_role("textbox", name="JSON")
    for text, why in [("{", "not valid JSON"), ('{"n": 12345678901234567890}', "more digits")]:
        area.fill(text)
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text(why)
    area.fill('{"title": "Of another app", "count": 2}')
    note = notes.replace(note, {"title": "Of another app", "count": 7})
    expect(page.get_by_text("This was changed on another device while you edit it.")).to_be_visible()
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert notes.get(note.uid).value == {"title": "Of another app", "count": 7}
    page.get_by_role("button", name="Go on with mine").click()
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: notes.get(note.uid).version == 3)
    assert notes.get(note.uid).value == {"title": "Of another app", "count": 2}


@on_a_file
def test_a_phone(person: BrowserUser, phone_pages: Pages) -> None:
    """On a phone one column is shown at a time, nothing is wider than the screen, and axe finds nothing."""
    for item in ITEMS[:4]:
        person.items.create(item)
    page = person.log_in(phone_pages)
    expect(row(page, "A card")).to_be_visible()
    check_accessibility(page)
    assert wide(page) == []
    screenshot(page, "phone-list")
    row(page, "A person").click()
    expect(page.get_by_role("heading", level=1, name="A person")).to_be_visible()
    expect(page.get_by_role("listbox")).to_be_hidden()
    check_accessibility(page)
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("City", exact=True).fill("Paris")
    assert wide(page) == []
    check_accessibility(page)
    screenshot(page, "phone-editor")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".itemView")).to_contain_text("Paris")
    page.get_by_role("link", name="Back").click()
    page.get_by_role("button", name="All items").click()
    page.get_by_role("dialog").get_by_role("link", name="Favourites").click()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    assert wide(page) == []
