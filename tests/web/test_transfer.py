"""Import and export of items in the web app."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.kit.browsers.web_app import Pages, check_accessibility, screenshot
from tests.kit.servers.process import Server
from tests.kit.waiting import until
from tests.web.page_helpers import account, button, device, enter, field, settings


def test_items_come_and_go_as_files(pages: Pages, server: Server) -> None:
    """A dry run says what would come, the items arrive on another device, and an export has them."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "transfer")
    with page.expect_file_chooser() as chooser:
        button(page, "Choose a file").click()
    content = (
        b"name,url,username,password\nBank,https://bank.example,ada,swordfish\nShop,https://shop.example,ada,trout\n"
    )
    chooser.value.set_files({"name": "passwords.csv", "mimeType": "text/csv", "buffer": content})
    expect(field(page, "Format").first).to_have_value("chrome")
    button(page, "Show what would come").click()
    expect(page.get_by_text("2 new items would come")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "import-preview")
    with device(server, email) as other:
        items = other.vault("Personal").collection("items")
        assert len(list(items)) == 1
        button(page, "Import 2 items").click()
        expect(page.get_by_text("2 items were imported.")).to_be_visible()
        until(lambda: len(list(items)) == 3, "the items are on the server")
    with page.expect_download() as download:
        button(page, "Write the file").click()
    assert "swordfish" in download.value.path().read_text("utf-8")
