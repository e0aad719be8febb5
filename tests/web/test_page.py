"""The app opens in a browser under the policy of the server, without a complaint of the console or of axe."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.support.web_app import Pages, check_accessibility, screenshot


@pytest.mark.parametrize("path", ["/", "/app/", "/app/operator/"])
def test_the_page_opens(pages: Pages, path: str) -> None:
    """It shows something, its title never says more than the name, and axe finds nothing."""
    page = pages.open(path)
    expect(page.locator("main")).to_be_visible()
    expect(page).to_have_title("strongroom")
    check_accessibility(page)
    screenshot(page, f"page{path.replace('/', '-')}")
