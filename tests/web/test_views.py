"""Every view of the open account, light and dark, on a desktop and a phone: axe finds nothing, nothing is cut off."""

from __future__ import annotations

import itertools

import pytest
from playwright.sync_api import Page, expect

from strongroom.items import Card, Identity, Login, Note, OneTimeCode, SshKey
from strongroom.items.types import Address, Field, File, FileContent, Item, PersonName
from tests.kit.browsers.web_app import PHONE, MakePages, check_accessibility, screenshot
from tests.kit.servers.process import Server, on_a_file
from tests.web.page_helpers import BLOCKED, OFFLINE, BrowserUser, edit, expect_open, row, wait_for, wide

NOTES = """# Where it is used

- on the **train**
- at home, see [the page](https://example.com/page)

> Ask Grace before it is changed.

1. first
2. second, with `code`
"""
ITEMS: list[Item] = [
    Login(
        title="Library", username="ada.lovelace@example.com", password="correct horse battery", favorite=True,
        urls=["https://library.example.com/log-in", "https://m.library.example.com"], folders=["Home/Books"],
        tags=["reading", "city"], totp=OneTimeCode(secret="GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"), notes=NOTES,
        fields=[
            Field(label="Card number", value="0042 1815 1852"),
            Field(label="PIN", value="1815", type="concealed-string"),
            Field(label="Renewed on", value="2026-05-01", section="Membership"),
        ],
    ),
    Card(title="Bank card", full_name="Ada Lovelace", number="4111111111111111", expiry_date="2029-12", pin="1234"),
    Identity(
        title="Passport and address", name=PersonName(given="Ada", surname="Lovelace"),
        address=Address(street_address="12 Square Street", city="London", postal_code="SW1Y 4JH", country="GB"),
    ),
    SshKey(title="Deployment key", private_key="-----BEGIN-----", public_key=f"ssh-ed25519 {'A' * 60} ada@engine"),
    Note(title="A long title of a note that does not fit into one line of the list on any screen", notes=NOTES),
    File(title="Contract", files=[FileContent(name="contract-of-2026-with-an-address.pdf", content=bytes(40_000))]),
]  # fmt: skip


def go(page: Page, *parts: str) -> None:
    """Open a route."""
    page.evaluate("(route) => { location.hash = route; }", "#/" + "/".join(parts))


@on_a_file
@pytest.mark.parametrize(("scheme", "size"), list(itertools.product(("light", "dark"), ("desktop", "phone"))))
def test_every_view(server: Server, person: BrowserUser, make_pages: MakePages, scheme: str, size: str) -> None:
    """List, items, editors, history, trash, dialogues, conflicts, what waits, and empty ones."""
    made = {item.title: person.items.create(item) for item in ITEMS}
    person.change("Library", username="ada@example.com", password="a new password")
    person.items.delete(person.items.create(Login(title="An old account", username="ada")))
    person.client.vault("Work", create=True).collection("notes").create({"title": "Of another app", "tags": [1, 2]})
    vault = person.client.vault("Personal").uid
    options = {"viewport": PHONE, "has_touch": True, "is_mobile": True} if size == "phone" else {}
    pages = make_pages(server, color_scheme=scheme, service_workers="block", **options)
    page = person.log_in(pages)
    expect_open(page)

    def look(name: str, heading: str | None = None) -> None:
        if heading is not None:
            found = page.get_by_role("heading", name=heading).or_(page.get_by_text(heading, exact=True))
            expect(found.filter(visible=True).last).to_be_visible()
        expect(page.get_by_text("Loading…")).to_have_count(0)
        check_accessibility(page)
        assert wide(page) == [], name
        screenshot(page, f"view-{name}-{scheme}-{size}")

    expect(row(page, "Library")).to_be_visible()
    look("list")
    for title, document in made.items():
        go(page, "items", vault, document.uid)
        look(f"item-{title.split()[0].lower()}", title)
    library = made["Library"].uid
    for title in ("Library", "Passport and address"):
        go(page, "items", vault, made[title].uid, "edit")
        look(f"editor-{title.split()[0].lower()}", "Edit item")
    page.get_by_role("button", name="Add a field").scroll_into_view_if_needed()
    go(page, "items", "new", "login")
    look("new", "New login")
    page.get_by_role("button", name="Make one for Password").click()
    look("generator", "Make a password")
    page.keyboard.press("Escape")
    go(page, "items", vault, library, "history")
    look("history", "What changed after version 1")
    go(page, "items", vault, library)
    page.get_by_role("button", name="More", exact=True).click()
    look("menu", "Library")
    page.get_by_role("menuitem", name="Move to…").click()
    look("move", "Move 1 item")
    page.keyboard.press("Escape")
    go(page, "trash")
    expect(page.get_by_text("An old account")).to_be_visible()
    look("trash", "Trash")
    go(page, "conflicts")
    look("no-conflicts", "There are no conflicts")
    go(page, "waiting")
    look("nothing-waits", "Everything is sent")
    go(page, "items")
    if size == "phone":
        page.get_by_role("button", name="All items").click()
        look("places", "Vaults and folders")
        page.keyboard.press("Escape")
    else:
        page.get_by_role("listbox").focus()
        page.keyboard.press("Control+a")
        expect(page.get_by_role("toolbar")).to_be_visible()
        look("selected")
        page.keyboard.press("Escape")
        page.keyboard.press("?")
        look("keyboard", "Keyboard")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="New vault").first.click()
        look("new-vault", "New vault")
        page.keyboard.press("Escape")
    page.get_by_role("searchbox", name="Search").fill("nothing of this name")
    look("nothing-found", "Nothing found")
    page.get_by_role("button", name="Show everything").click()

    go(page, "items", vault, library)
    pages.context.set_offline(True)
    edit(page, Username="mine", Notes="a note of mine")
    look("offline", "Library")
    go(page, "waiting")
    look("waiting", "Not sent yet")
    person.change("Library", username="theirs", password="of another device")
    pages.context.set_offline(False)
    go(page, "conflicts")
    expect(page.locator(".conflict")).to_have_count(1)
    wait_for(lambda: page.locator(".toast").count() == 0)
    look("conflicts", "Conflicts")
    pages.forgive(OFFLINE)
    pages.forgive(BLOCKED)
