"""The list of the web app while items come and go, and while they are being read."""

from __future__ import annotations

from typing import Final

import pytest
from playwright.sync_api import expect

from strongroom.items import Login
from tests.kit.browsers.web_app import MakePages, Pages
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import BLOCKED, FORGET_CONTENTS, OFFLINE, BrowserUser, choose, row

_TOP: Final = """(list) => {
  const edge = list.getBoundingClientRect().top;
  const rows = [...list.querySelectorAll("[role=option]")].map((row) => [row.getBoundingClientRect().top - edge, row]);
  const [top, row] = rows.filter(([at]) => at > 0).sort(([one], [other]) => one - other)[0];
  return [row.querySelector(".rowTitle").textContent, top];
}"""


@on_a_file
def test_rows_stay_under_the_hand(person: BrowserUser, pages: Pages) -> None:
    """What comes or goes above the rows that can be seen does not move them; a search begins at the top of the list."""
    made = list(person.items.create_many(Login(title=f"Item {number}") for number in range(60)))
    page = person.log_in(pages)
    expect(page.get_by_role("listbox", name="Items, 60")).to_be_visible()
    page.get_by_role("listbox").evaluate("(list) => { list.scrollTop = 1234; }")
    expect(row(page, "Item 30")).to_be_visible()
    before = page.get_by_role("listbox").evaluate(_TOP)
    list(person.items.create_many(Login(title=f"A {number}") for number in range(7)))
    expect(page.get_by_role("listbox", name="Items, 67")).to_be_visible()
    assert page.get_by_role("listbox").evaluate(_TOP) == before
    person.items.delete(made[0].document)
    expect(page.get_by_role("listbox", name="Items, 66")).to_be_visible()
    assert page.get_by_role("listbox").evaluate(_TOP) == before
    page.get_by_role("searchbox", name="Search").fill("item")
    expect(page.get_by_role("listbox", name="Items, 59")).to_be_visible()
    assert page.get_by_role("listbox").evaluate("(list) => list.scrollTop") == 0


# Holds back what verifies documents; other parts of the app verify nothing.
_HELD: Final = """
const verify = SubtleCrypto.prototype.verify;
let release = () => undefined;
const open = new Promise((go) => { release = go; });
window.openDocuments = release;
SubtleCrypto.prototype.verify = async function (...given) {
  await open;
  return verify.apply(this, given);
};
"""


@on_a_file
def test_a_place_is_changed_only_when_it_is_read(person: BrowserUser, make_pages: MakePages, server: Server) -> None:
    """While items are being read, nobody deletes a vault or changes a folder of which only a part is known."""
    person.login_item("one")
    pages = make_pages(server)
    page = person.log_in(pages)
    expect(row(page, "one")).to_be_visible()
    page.reload()
    until(lambda: page.evaluate(FORGET_CONTENTS), "contents are kept, and forgotten")
    pages.context.add_init_script(_HELD)
    page.reload()
    page.get_by_role("link", name="Personal").hover()
    page.get_by_role("button", name="Actions on the vault Personal").click()
    page.get_by_role("menuitem", name="Delete the vault").click()
    dialog = page.get_by_role("dialog", name="Delete the vault")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("button", name="Delete for good")).to_have_count(0)
    page.evaluate("window.openDocuments()")
    expect(dialog).to_contain_text("1 document")
    expect(dialog.get_by_role("button", name="Delete for good")).to_be_disabled()


# No tab writes into the replica until this is released.
_STOP_WRITES: Final = """async () => {
  const name = (await indexedDB.databases()).map((one) => one.name).find((one) => one.startsWith("strongroom replica"));
  await new Promise((held) => {
    void navigator.locks.request(`${name} write`, () => new Promise((go) => { window.goOn = go; held(); }));
  });
}"""


def _username(person: BrowserUser, title: str) -> str:
    item = person.items.find(title).value
    assert isinstance(item, Login)
    return item.username


@on_a_file
def test_a_save_that_ends_late_takes_nobody_back(person: BrowserUser, pages: Pages) -> None:
    """Who goes on to another item while the one before is being saved stays there; it is saved all the same."""
    for title in ("one", "two"):
        person.login_item(title)
    page = person.log_in(pages)
    choose(page, "one")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Username", exact=True).fill("late")
    page.evaluate(_STOP_WRITES)
    page.get_by_role("button", name="Save", exact=True).click()
    choose(page, "two")
    page.evaluate("window.goOn()")
    expect(page.get_by_text("Saved.")).to_be_visible()
    until(lambda: _username(person, "one") == "late", "it is saved")
    expect(page.get_by_role("heading", level=1, name="two")).to_be_visible()


# The event of another address comes two seconds after it, as on a busy machine.
_DELAY_ADDRESSES: Final = """
addEventListener("hashchange", (event) => {
  if (!event.isTrusted) return;
  event.stopImmediatePropagation();
  setTimeout(() => dispatchEvent(new HashChangeEvent("hashchange")), 2000);
});
"""


@on_a_file
@pytest.mark.parametrize("action", ["edit", "history"])
def test_a_save_that_ends_before_the_view_changes_takes_nobody_back(
    person: BrowserUser, pages: Pages, action: str
) -> None:
    """A person who opens another view while a change is saved stays there."""
    uid = person.login_item("one")
    person.change("one", username="grace")
    pages.context.add_init_script(_DELAY_ADDRESSES)
    page = person.log_in(pages)
    expect(row(page, "one")).to_be_visible()
    page.goto(f"{pages.url}/app/#/items/{person.client.vault('Personal').uid}/{uid}/{action}")
    if action == "edit":
        page.get_by_label("Username").fill("changed")
    else:
        page.get_by_role("button", name="Version 1").click()
    page.get_by_role("button", name="Save" if action == "edit" else "Restore this version", exact=True).evaluate(
        "(button) => { button.click(); location.hash = '#/trash'; }"
    )
    expect(page.get_by_text("Saved." if action == "edit" else "The version is restored.")).to_be_visible()
    expect(page.get_by_role("link", name="Trash").first).to_have_attribute("aria-current", "page")
    assert page.url.endswith("#/trash")


@on_a_file
def test_a_banner_moves_nothing(person: BrowserUser, pages: Pages) -> None:
    """What a person is about to click or to drag stays where it is when the network goes and comes."""
    person.login_item("one")
    page = person.log_in(pages)
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    before = row(page, "one").bounding_box()
    pages.context.set_offline(True)
    banner = page.get_by_text("The server cannot be reached. You can go on")
    expect(banner).to_be_visible()
    assert row(page, "one").bounding_box() == before
    pages.context.set_offline(False)
    expect(banner).to_have_count(0)
    assert row(page, "one").bounding_box() == before
    pages.forgive(OFFLINE)
    pages.forgive(BLOCKED)
