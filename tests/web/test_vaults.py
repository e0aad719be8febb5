"""Vaults, folders and many items at once in the web app: by the mouse and by the keyboard alone."""

from __future__ import annotations

import json

from playwright.sync_api import Page, Route, expect

from strongroom.items import Login
from strongroom.items.types import Field
from tests.kit.browsers.web_app import Pages, check_accessibility, screenshot
from tests.kit.servers.process import on_a_file
from tests.web.page_helpers import BrowserUser, choose, held, lock, row, rows, settings, unlock, wait_for


def _folders(person: BrowserUser) -> dict[str, list[str]]:
    return {one.value.title: one.value.folders for one in person.items.list()}


@on_a_file
def test_vaults(person: BrowserUser, pages: Pages) -> None:
    """A vault is made, renamed, and deleted only by somebody who types its name."""
    page = person.log_in(pages)
    page.get_by_role("button", name="New vault").first.click()
    page.get_by_role("textbox", name="Name").fill("Personal")
    expect(page.get_by_role("alert")).to_have_text("There is a vault of this name already.")
    page.get_by_role("textbox", name="Name").fill("Work")
    page.get_by_role("button", name="Make", exact=True).click()
    wait_for(lambda: {one.name for one in person.client.vaults()} == {"Personal", "Work"})
    page.get_by_role("link", name="Work").hover()
    page.get_by_role("button", name="Actions on the vault Work").click()
    page.get_by_role("menuitem", name="Rename the vault").click()
    page.get_by_role("textbox", name="Name").fill("Office")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("link", name="Office")).to_be_visible()
    page.get_by_role("link", name="Office").hover()
    page.get_by_role("button", name="Actions on the vault Office").click()
    page.get_by_role("menuitem", name="Delete the vault").click()
    button = page.get_by_role("button", name="Delete for good")
    expect(button).to_be_disabled()
    page.get_by_label("Type the name of the vault").fill("office")
    expect(button).to_be_disabled()
    page.get_by_label("Type the name of the vault").fill("Office")
    button.click()
    expect(page.get_by_role("link", name="Office")).to_have_count(0)
    assert {one.name for one in person.client.vaults()} == {"Personal"}


@on_a_file
def test_a_vault_is_not_taken_for_another_of_its_name(person: BrowserUser, pages: Pages) -> None:
    """Where another device gives its name to a new vault meanwhile, neither is deleted or renamed."""
    person.client.vault("Work", create=True)
    page = person.log_in(pages)

    def ask(action: str) -> None:
        """When nothing is under way: a list of vaults that was requested before would come while requests are held."""
        expect(page.get_by_role("button", name="Everything is synced")).to_be_visible()
        page.get_by_role("link", name="Work").hover()
        page.get_by_role("button", name="Actions on the vault Work").click()
        page.get_by_role("menuitem", name=action).click()

    def swap(name: str) -> None:
        """On the other device: the vault gets another name, and a new one gets its own."""
        person.client.vault("Work").rename(name)
        person.client.vault("Work", create=True)

    ask("Delete the vault")
    with held(page, "**/auth/keyring"):
        swap("First")
        page.get_by_label("Type the name of the vault").fill("Work")
        page.get_by_role("button", name="Delete for good").click()
    expect(page.get_by_role("alert")).to_contain_text("Another vault has this name by now. Nothing was changed")
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("link", name="First")).to_be_visible()
    ask("Rename the vault")
    with held(page, "**/auth/keyring"):
        swap("Second")
        page.get_by_role("textbox", name="Name").fill("Office")
        page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Another vault has this name by now. Nothing was changed")
    assert {one.name for one in person.client.vaults()} == {"Personal", "First", "Second", "Work"}


@on_a_file
def test_a_drag_ends_with_a_lock(person: BrowserUser, pages: Pages) -> None:
    """What was dragged when the app was locked cannot be dropped after it was unlocked."""
    person.login_item("one")
    other = person.client.items("Other", create=True)
    page = person.log_in(pages)
    place = page.get_by_role("navigation", name="Navigation").first.get_by_role("link", name="Other")

    def dropped(*events: str) -> bool:
        """Whether the place takes what is dragged."""
        taken: bool = place.evaluate(
            """(place, events) => {
              const dataTransfer = new DataTransfer();
              dataTransfer.setData("application/x-strongroom-items", "");
              return events.map((name) =>
                !place.dispatchEvent(new DragEvent(name, { dataTransfer, bubbles: true, cancelable: true }))).at(-1);
            }""",
            list(events),
        )
        return taken

    row(page, "one").evaluate(
        "(row) => row.dispatchEvent(new DragEvent('dragstart', { dataTransfer: new DataTransfer(), bubbles: true }))"
    )
    assert dropped("dragover")
    lock(page)
    unlock(page)
    expect(row(page, "one")).to_be_visible()
    assert not dropped("dragover", "drop")
    page.evaluate("new Promise((drawn) => requestAnimationFrame(drawn))")
    assert sorted(one.value.title for one in person.items.list()) == ["one"]
    assert other.list() == []


@on_a_file
def test_a_move_that_another_device_crosses(person: BrowserUser, pages: Pages) -> None:
    """Changed elsewhere while it is moved to another vault, an item stays with that change, and no copy is left."""
    person.login_item("one")
    other = person.client.items("Other", create=True)
    page = person.log_in(pages)
    choose(page, "one")
    page.keyboard.press("m")
    page.get_by_role("dialog").get_by_label("Vault").select_option("Other")
    with held(page, "**/vaults/**"):
        person.change("one", username="grace")
        page.get_by_role("dialog").get_by_role("button", name="Move").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("This was changed on another device meanwhile.")).to_be_visible()
    wait_for(lambda: other.list() == [])
    assert person.login("one").username == "grace"
    expect(row(page, "one")).to_have_count(1)


@on_a_file
def test_folders_and_many_items(person: BrowserUser, pages: Pages) -> None:
    """Items are moved by dragging and by a dialogue, also to another vault; many are tagged and deleted, and undone."""
    for title, folder in [("one", "A"), ("two", "A/B"), ("three", "C"), ("four", "")]:
        person.login_item(title, folders=[folder] if folder else [])
    other = person.client.items("Other", create=True)
    page = person.log_in(pages)
    navigation = page.get_by_role("navigation", name="Navigation").first
    navigation.get_by_role("link", name="A 2").click()
    expect(rows(page)).to_have_count(2)
    navigation.get_by_role("link", name="All items").click()
    row(page, "four").drag_to(navigation.get_by_role("link", name="C 1"))
    wait_for(lambda: _folders(person)["four"] == ["C"])

    row(page, "one").click(modifiers=["Control"])
    row(page, "three").click(modifiers=["Control"])
    expect(page.get_by_text("2 selected")).to_be_visible()
    screenshot(page, "selected")
    check_accessibility(page)
    page.get_by_role("toolbar").get_by_role("button", name="Move").click()
    page.get_by_role("dialog").get_by_label("Folder").select_option("New folder…")
    page.get_by_label("Name of the new folder").fill("D/E")
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    wait_for(lambda: _folders(person) == {"one": ["D/E"], "two": ["A/B"], "three": ["D/E"], "four": ["C"]})
    page.get_by_role("toolbar").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Add a tag").click()
    page.get_by_role("dialog").get_by_label("Tag").fill("red")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    wait_for(
        lambda: sorted(one.value.title for one in person.items.list() if one.value.tags) == ["one", "three"],
    )

    page.get_by_role("toolbar").get_by_role("button", name="Move").click()
    page.get_by_role("dialog").get_by_label("Vault").select_option("Other")
    page.get_by_role("dialog").get_by_role("button", name="Move").click()
    wait_for(lambda: sorted(one.value.title for one in other.list()) == ["one", "three"])
    wait_for(lambda: sorted(_folders(person)) == ["four", "two"])
    page.keyboard.press("u")
    wait_for(lambda: sorted(_folders(person)) == ["four", "one", "three", "two"])
    wait_for(lambda: other.list() == [])

    page.get_by_role("listbox").focus()
    page.keyboard.press("Control+a")
    page.get_by_role("toolbar").get_by_role("button", name="Delete").click()
    wait_for(lambda: person.items.list() == [])
    page.get_by_role("button", name="Undo").last.click()
    wait_for(lambda: len(person.items.list()) == 4)


@on_a_file
def test_keys_stay_out_of_forms(person: BrowserUser, pages: Pages) -> None:
    """Single keys do nothing in a form or to a button's item, and ask before they lose what was typed."""
    person.login_item("GitHub")
    person.login_item("Another")
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.get_by_role("button", name="Copy Username").focus()
    page.keyboard.press("Delete")
    page.keyboard.press("e")
    page.get_by_label("Username").fill("unsaved")
    page.get_by_role("button", name="Show Password").focus()
    page.keyboard.type("lnuh?/")
    expect(page.get_by_label("Username")).to_have_value("unsaved")
    expect(page.get_by_role("dialog")).to_have_count(0)
    row(page, "Another").click()
    expect(page.get_by_role("heading", level=1, name="Another")).to_be_visible()
    page.keyboard.press("l")
    question = page.get_by_role("dialog", name="Lock now?")
    expect(question).to_be_visible()
    check_accessibility(page)
    screenshot(page, "lock-now")
    page.keyboard.press("Escape")
    row(page, "GitHub").click()
    page.get_by_role("link", name="You have changes here that are not saved").click()
    expect(page.get_by_label("Username")).to_have_value("unsaved")
    row(page, "Another").click()
    page.keyboard.press("l")
    question.get_by_role("button", name="Lock").click()
    expect(page.get_by_role("button", name="Unlock", exact=True)).to_be_visible()
    assert len(person.items.list()) == 2


@on_a_file
def test_names_of_the_language_are_names(person: BrowserUser, pages: Pages) -> None:
    """A view, a kind of event, a type or a field that is called like a member of every object is nothing special."""
    person.login_item("GitHub", fields=[Field(label="constructor", value="toString", type="valueOf")])
    person.client.vault("Personal").collection("items").create({"type": "constructor", "title": "Of no type"})
    page = person.log_in(pages)
    for view in ("constructor", "__proto__", "hasOwnProperty"):
        page.evaluate("(view) => { location.hash = `#/${view}`; }", view)
        expect(row(page, "GitHub")).to_be_visible()
    choose(page, "Of no type")
    expect(page.locator(".itemView")).to_contain_text("constructor")
    choose(page, "GitHub")
    page.get_by_role("button", name="Edit").click()
    expect(page.locator(".customField").get_by_label("Kind")).to_have_value("valueOf")

    def rename(route: Route) -> None:
        response = route.fetch()
        body = response.json()
        for event in body["events"]:
            event["type"] = "constructor"
        route.fulfill(response=response, json=body)

    page.route("**/auth/events*", rename)
    settings(page, "activity")
    expect(page.get_by_role("cell", name="constructor").first).to_be_visible()


@on_a_file
def test_an_export_of_a_selection(person: BrowserUser, pages: Pages) -> None:
    """What is selected, and nothing else, is written to a file, after a warning. That part is loaded only then."""
    for title in ("one", "two", "three"):
        person.login_item(title, password=f"secret of {title}")
    person.client.items("Other", create=True).create(Login(title="four", password="secret of four"))
    page = person.log_in(pages)
    for title in ("one", "three", "four"):
        row(page, title).click(modifiers=["Control"])
    expect(page.get_by_text("3 selected")).to_be_visible()
    page.get_by_role("toolbar").get_by_role("button", name="More").click()
    loaded = _scripts(page)
    page.get_by_role("menuitem", name="Export").click()
    dialog = page.get_by_role("dialog", name="Export 3 items")
    expect(dialog).to_contain_text("The file is not encrypted")
    assert len(_scripts(page)) > len(loaded)
    check_accessibility(page)
    screenshot(page, "export-selection")
    dialog.get_by_label("Format").select_option("cxf")
    dialog.get_by_label("Format").select_option("bitwarden")
    with page.expect_download() as download:
        dialog.get_by_role("button", name="Write the file").click()
    exported = json.loads(download.value.path().read_text("utf-8"))
    folders = {one["id"]: one["name"] for one in exported["folders"]}
    found = {one["name"]: (one["login"]["password"], folders[one["folderId"]]) for one in exported["items"]}
    assert found == {
        "one": ("secret of one", "Personal"),
        "three": ("secret of three", "Personal"),
        "four": ("secret of four", "Other"),
    }
    expect(dialog).to_have_count(0)


def _scripts(page: Page) -> set[str]:
    """The scripts that a page has loaded."""
    names: list[str] = page.evaluate("performance.getEntriesByType('resource').map(({ name }) => name)")
    return {name for name in names if name.endswith(".js")}


def _focused(page: Page) -> str:
    found: str = page.evaluate("document.activeElement?.getAttribute('role') ?? document.activeElement?.tagName")
    return found


@on_a_file
def test_the_keyboard_alone(person: BrowserUser, pages: Pages) -> None:
    """Search, open, edit, save, undo, move, make, select, delete and the sheet of keys, without a mouse."""
    for number in range(40):
        person.login_item(f"item {number}")
    page = person.log_in(pages)
    expect(row(page, "item 0")).to_be_visible()
    press = page.keyboard.press
    press("?")
    expect(page.get_by_role("dialog", name="Keyboard")).to_contain_text("Undo the last change")
    check_accessibility(page)
    press("Escape")
    press("/")
    page.keyboard.type("ITEM 3")
    expect(rows(page)).to_have_count(13)
    press("Enter")
    assert _focused(page) == "listbox"
    press("j")
    press("Enter")
    expect(page.get_by_role("heading", level=1, name="item 13")).to_be_visible()
    press("e")
    expect(page.get_by_label("Title")).to_be_focused()
    press("Tab")
    page.keyboard.type("x")
    press("Control+s")
    expect(page.get_by_role("heading", level=1, name="item 13")).to_be_visible()
    wait_for(lambda: person.items.find("item 13").value.username == "x")  # type: ignore[attr-defined]
    press("u")
    wait_for(lambda: person.items.find("item 13").value.username == "ada")  # type: ignore[attr-defined]
    press("m")
    expect(page.get_by_role("dialog", name="Move 1 item")).to_be_visible()
    press("Escape")
    press("n")
    expect(page.get_by_role("heading", level=1, name="New login")).to_be_visible()
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("typed")
    press("Escape")
    expect(page.get_by_role("dialog", name="Discard your changes?")).to_be_visible()
    press("Escape")
    expect(page.get_by_label("Title")).to_be_focused()
    press("Control+Enter")
    wait_for(lambda: any(one.value.title == "typed" for one in person.items.list()))
    page.get_by_role("searchbox").focus()
    press("Escape")
    press("Escape")
    page.get_by_role("listbox").focus()
    press("Home")
    press(" ")
    press("Shift+ArrowDown")
    press("Shift+ArrowDown")
    expect(page.get_by_text("3 selected")).to_be_visible()
    press("Escape")
    expect(page.get_by_role("toolbar")).to_have_count(0)
    press("End")
    press("Enter")
    expect(page.get_by_role("heading", level=1, name="typed")).to_be_visible()
    press("Delete")
    wait_for(lambda: len(person.items.list()) == 40)
    press("l")
    expect(page.get_by_role("button", name="Unlock", exact=True)).to_be_visible()
