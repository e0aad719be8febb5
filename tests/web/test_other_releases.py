"""The app and a server of different releases: what cannot be done is told, and nothing is lost."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.kit.browsers.web_app import MakePages, check_accessibility
from tests.kit.servers.process import Server
from tests.web.page_helpers import BrowserUser, row, wait_for


def make_item(page: Page, title: str) -> None:
    """A new login, made in the browser."""
    page.get_by_role("button", name="New item").first.click()
    page.get_by_label("Title").fill(title)
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()


def test_an_older_server(lone: Server, make_pages: MakePages) -> None:
    """It lacks paths that a sync needs: a sentence says so, and what is made meanwhile arrives after an upgrade."""

    def lacking(route: Route) -> None:
        body = {"error": {"code": "not_found", "message": "There is no such path."}}
        route.fulfill(status=404, content_type="application/json", body=json.dumps(body))

    with closing(BrowserUser(lone.start())) as person:
        pages = make_pages(lone, service_workers="block")
        page = person.log_in(pages)
        expect(page.get_by_role("button", name="New item").first).to_be_enabled()
        pages.context.route("**/vaults/**", lacking)
        make_item(page, "made under an older server")
        expect(page.get_by_text("The server is of an older release than this app")).to_be_visible()
        check_accessibility(page)
        assert person.items.list() == []
        pages.context.unroute("**/vaults/**")
        page.get_by_role("button", name="Try again").first.click()
        wait_for(lambda: [one.value.title for one in person.items.list()] == ["made under an older server"])
        expect(page.get_by_text("The server is of an older release than this app")).to_be_hidden()
        pages.forgive("Service Worker registration blocked")


def with_more(value: Any) -> Any:
    """What a newer release may add to a response: members that nobody knows here."""
    if isinstance(value, list):
        return [with_more(one) for one in value]
    return {**value, "aMemberOfNextYear": {"of": ["any", 1]}} if isinstance(value, dict) else value


def test_a_newer_server(lone: Server, make_pages: MakePages) -> None:
    """Responses with members that this release does not know: an account is opened, and a change arrives."""

    def answer(route: Route) -> None:
        if "text/event-stream" in route.request.headers.get("accept", ""):
            return route.continue_()
        response = route.fetch()
        body = response.text()
        if response.headers.get("content-type") != "application/json" or not body:
            return route.fulfill(response=response)
        return route.fulfill(response=response, body=json.dumps(with_more(json.loads(body))))

    with closing(BrowserUser(lone.start())) as person:
        person.login_item("GitHub")
        pages = make_pages(lone, service_workers="block")
        for path in ("auth", "vaults", "vault", "keyring", "events", "health"):
            pages.context.route(f"**/{path}*", answer)
            pages.context.route(f"**/{path}/**", answer)
        page = person.log_in(pages)
        expect(row(page, "GitHub")).to_be_visible()
        make_item(page, "made under a newer server")

        def has_arrived() -> bool:
            page.wait_for_timeout(20)  # requests of the page are answered here only while this waits
            return "made under a newer server" in {one.value.title for one in person.items.list()}

        wait_for(has_arrived)
        pages.context.unroute_all(behavior="ignoreErrors")
        pages.forgive("Service Worker registration blocked")
