"""The operator's page: figures behind the metrics token, a sentence for each fault, and nobody's content."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from strongroom.client import Client
from tests.kit.browsers.web_app import PHONE, MakePages, Pages, check_accessibility, screenshot
from tests.kit.servers.process import Server

TOKEN = "a-token-of-the-operator-2718281828"
EMAIL = "kanarienvogel@example.com"


@pytest.fixture
def measured(lone: Server) -> Server:
    """A server that shows metrics."""
    lone.settings |= {"METRICS_TOKEN": TOKEN}
    return lone.start()


def enter(page: Page, token: str = TOKEN) -> None:
    page.get_by_label("Metrics token").fill(token)
    page.get_by_role("button", name="Show", exact=True).click()


def test_the_figures(measured: Server, make_pages: MakePages) -> None:
    """Health, load, sizes and backups, with plots, in light and dark; no email, no content, and no stored token."""
    with Client(f"http://127.0.0.1:{measured.port}") as client:
        client.register(EMAIL, "correct horse battery staple")
        client.vault("AMSEL", create=True).collection("notes").create({"title": "DROSSEL"})
    for scheme, options in {"light": {}, "dark": {}, "phone": {"viewport": PHONE}}.items():
        pages = make_pages(measured, color_scheme="dark" if scheme == "dark" else "light", **options)
        page = pages.context.new_page()
        page.clock.install()
        page.goto(f"{pages.url}/app/operator/")
        screenshot(page, f"operator-token-{scheme}")
        check_accessibility(page)
        enter(page)
        expect(page.get_by_text("The server is ready.")).to_be_visible()
        for _ in range(6):
            with page.expect_response("**/metrics"), page.expect_response("**/ready"):
                page.clock.run_for(5_100)
        expect(page.get_by_role("img", name=re.compile("^Requests a second, plotted: lowest"))).to_be_visible()
        expect(page.locator(".figure", has_text="Database")).to_contain_text("KB")
        expect(page.get_by_text("This server makes no backups by itself")).to_be_visible()
        check_accessibility(page)
        screenshot(page, f"operator-{scheme}", full=True)
        text = page.content()
        assert not [word for word in (EMAIL, "AMSEL", "DROSSEL", TOKEN) if word in text]
        assert (
            page.evaluate("JSON.stringify([localStorage, sessionStorage, document.cookie, location.href])").find(TOKEN)
            < 0
        )
        page.get_by_role("button", name="Forget the token").click()
        expect(page.get_by_label("Metrics token")).to_have_value("")


def test_a_wrong_token_and_no_metrics(measured: Server, make_pages: MakePages, server: Server) -> None:
    """A wrong token and a server without metrics are told, each with its own sentence."""
    pages = make_pages(measured)
    page = pages.open("/app/operator/")
    enter(page, "not the token of this server")
    expect(page.get_by_role("alert")).to_contain_text("This is not the metrics token of this server.")
    check_accessibility(page)
    pages = make_pages(server)
    page = pages.open("/app/operator/")
    enter(page)
    expect(page.get_by_role("alert")).to_contain_text("This server shows no metrics here.")


def test_a_server_that_is_not_ready_or_gone(measured: Server, make_pages: MakePages) -> None:
    """Failed checks are named; when the server goes, the last figures stay, with their time."""
    measured.end()
    measured.settings |= {"READY_FREE_BYTES": "999999999999999"}
    measured.start()
    pages: Pages = make_pages(measured)
    page = pages.context.new_page()
    page.clock.install()
    page.goto(f"{pages.url}/app/operator/")
    enter(page)
    expect(page.get_by_role("status")).to_contain_text("The server is not ready. Failed:")
    measured.end()
    page.clock.run_for(5_100)
    expect(page.get_by_role("status")).to_contain_text("The server does not respond. The figures are those of")
    check_accessibility(page)
    screenshot(page, "operator-away")
    page.get_by_role("button", name="Forget the token").click()
    enter(page)
    expect(page.get_by_role("alert")).to_contain_text("The server does not respond. Check that it runs")
    pages.complaints.clear()  # Chromium tells of each failed request


SHOW = """(state) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => state === "hidden" });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def test_the_token_is_forgotten_in_the_background(measured: Server, make_pages: MakePages) -> None:
    """After five minutes in the background the page asks for the token again, and reads nothing any more."""
    pages = make_pages(measured)
    page = pages.context.new_page()
    page.clock.install()
    page.goto(f"{pages.url}/app/operator/")
    enter(page)
    expect(page.get_by_text("The server is ready.")).to_be_visible()
    for state, seconds in (("hidden", 250), ("visible", 100), ("hidden", 250)):  # twice for a shorter time
        page.evaluate(SHOW, state)
        page.clock.fast_forward(seconds * 1000)
    expect(page.get_by_text("The server is ready.")).to_be_visible()
    page.clock.fast_forward(51_000)
    expect(page.get_by_role("alert")).to_contain_text("because this page was in the background for 5 minutes")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.evaluate(SHOW, "visible")
    page.clock.run_for(20_000)
    expect(page.get_by_label("Metrics token")).to_have_value("")
    assert asked == []
    page.get_by_label("Metrics token").fill(TOKEN)  # typed, not entered
    page.evaluate(SHOW, "hidden")
    page.clock.fast_forward(301_000)
    expect(page.get_by_label("Metrics token")).to_have_value("")
