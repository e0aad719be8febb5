"""Vaults, folders and many items at once in the web app: by the mouse and by the keyboard alone."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.contract.harness import on_a_file
from tests.support.web_app import Pages, check_accessibility, screenshot
from tests.web.stage import Person, row, rows, wait_for


def _folders(person: Person) -> dict[str, list[str]]:
    return {one.value.title: one.value.folders for one in person.items.list()}


@on_a_file
def test_vaults(person: Person, pages: Pages) -> None:
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
def test_folders_and_many_items(person: Person, pages: Pages) -> None:
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


def _focused(page: Page) -> str:
    found: str = page.evaluate("document.activeElement?.getAttribute('role') ?? document.activeElement?.tagName")
    return found


@on_a_file
def test_the_keyboard_alone(person: Person, pages: Pages) -> None:
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
