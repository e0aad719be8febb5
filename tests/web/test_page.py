"""The app opens in a browser under the policy of the server, without a complaint of the console or of axe."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect

from strongroom.client import Client
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server, on_a_file
from tests.web.page_helpers import BLOCKED, expect_open, lock, row, sign_up, unlock, url_of, wait_for


@pytest.mark.parametrize("path", ["/", "/app/", "/app/operator/"])
def test_the_page_opens(pages: Pages, path: str) -> None:
    """It shows something, its title never says more than the name, and axe finds nothing."""
    page = pages.open(path)
    expect(page.locator("main")).to_be_visible()
    expect(page).to_have_title("strongroom")
    check_accessibility(page)
    screenshot(page, f"page{path.replace('/', '-')}")


@on_a_file
def test_the_first_load_is_all_that_is_needed(server: Server, make_pages: MakePages) -> None:
    """Without any other script, somebody signs up, sees the list, syncs, locks and unlocks: what the budget counts."""
    pages = make_pages(server, service_workers="block")
    page = (Path(web_app.app_folder()) / "index.html").read_text("utf-8")
    first = {*re.findall(r'"(assets/[^"]*\.js)"', page)}
    assert 0 < len(first) < 4

    def load(route: Route) -> None:
        name = route.request.url.split("/app/")[-1]
        if name in first or "argon2-worker" in name:
            route.fallback()
        else:
            route.abort()

    pages.context.route("**/*.js", load)
    email = unique_email()
    tab = pages.open()
    sign_up(tab, email)
    expect_open(tab)
    with Client(url_of(server)) as other:
        other.login(email, PASSWORD)
        wait_for(lambda: "Personal" in [vault.name for vault in other.vaults()])
        other.vault("Personal").collection("items").create({"type": "note", "title": "From Python"})
        expect(row(tab, "From Python")).to_be_visible()
        lock(tab)
        unlock(tab)
        expect(row(tab, "From Python")).to_be_visible()
        other.vault("Personal").collection("items").create({"type": "note", "title": "Another"})
        expect(row(tab, "Another")).to_be_visible()
    pages.forgive("ERR_FAILED")
    pages.forgive(BLOCKED)
