"""Example of a browser test: the web app in Chromium, with a server process."""

from playwright.sync_api import expect

from strongroom.items import Login
from tests.kit.browsers.web_app import Pages
from tests.kit.servers.process import on_a_file
from tests.web.page_helpers import BrowserUser, row


@on_a_file
def test_an_item_of_another_device_appears(person: BrowserUser, pages: Pages) -> None:
    """Without a reload."""
    page = person.log_in(pages)
    person.items.create(Login(title="Library"))
    expect(row(page, "Library")).to_be_visible()
