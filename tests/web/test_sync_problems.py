"""What goes wrong is a sentence, and nothing is overwritten: sessions that end, full quotas, lies of the server."""

from __future__ import annotations

import json
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import pytest
from playwright.sync_api import Page, Route, expect

from strongroom import create_server
from strongroom.client import Client, Refusal
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.clock import Clock
from tests.kit.network.raw_http import listening
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, on_a_file
from tests.kit.servers.secret import SECRET
from tests.kit.waiting import until
from tests.web.page_helpers import (
    AWAY,
    BLOCKED,
    account,
    back_up,
    button,
    device,
    enter,
    expect_open,
    field,
    heading,
    lock,
    log_in,
    restore,
    settings,
    unlock,
    url_of,
)

OF_API: Final = re.compile(r"/(auth|events|vaults)\b")
DAY: Final = 86_400_000  # milliseconds


def write_something(page: Page) -> None:
    """Make one item: it is on the device at once, and waits to be sent."""
    button(page, "New item").click()
    field(page, "Title").fill("Written meanwhile")
    button(page, "Save").click()
    expect(heading(page, "Written meanwhile")).to_be_visible()


def test_an_ended_session_loses_nothing(pages: Pages, server: Server) -> None:
    """The app says so, goes on, asks for the password again, and sends what waited."""
    email, page = account(server), pages.open()
    enter(page, email)
    with device(server, email) as client:
        client.logout(everywhere=True)
    write_something(page)
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    check_accessibility(page)
    button(page, "Log in again").click()
    dialog = page.get_by_role("dialog")
    screenshot(page, "log-in-again")
    field(dialog, "Password").fill("not the password")
    button(dialog, "Log in").click()
    expect(dialog.get_by_text("The password is wrong.")).to_be_visible()
    field(dialog, "Password").fill(PASSWORD)
    button(dialog, "Log in").click()
    expect_open(page)
    with device(server, email) as client:
        items = client.vault("Personal").collection("items")
        until(lambda: len(list(items)) == 2, "what waited is sent")


@on_a_file
@pytest.mark.parametrize("way", ["event", "button"])
def test_a_network_that_is_back_is_used_at_once(pages: Pages, server: Server, way: str) -> None:
    """After pauses that grew, the browser's report of a network, or a click on Try again, begins the next attempt."""
    email, page = account(server), pages.open()
    enter(page, email)
    failures: list[float] = []
    page.on("requestfailed", lambda _: failures.append(time.monotonic()))
    if way == "event":
        pages.context.set_offline(True)
    else:
        page.route(OF_API, lambda route: route.abort())
    write_something(page)
    # A pause of 4 seconds, and an attempt of several requests: then there is one of 8 seconds.
    while not any(later - earlier > 3 for earlier, later in pairwise(failures)) or time.monotonic() < failures[-1] + 2:
        page.wait_for_timeout(50)
    with page.expect_request(OF_API, timeout=3000):
        if way == "event":
            pages.context.set_offline(False)
        else:
            page.unroute(OF_API)
            button(page, "Try again").click()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    pages.forgive(AWAY)
    pages.forgive(BLOCKED)


class Listening(NamedTuple):
    """A server that runs in this process, with the clock of the test."""

    port: int


def test_a_session_that_expires_keeps_the_draft(tmp_path: Path, clock: Clock, make_pages: MakePages) -> None:
    """After a month, the app asks for the password; what was typed and not saved is still there, and can be saved."""
    app = str(web_app.app_folder())
    with listening(create_server(jwt_secret=SECRET, clock=clock, db_path=tmp_path / "vault.db", web=app)) as port:
        server = cast("Server", Listening(port))
        pages = make_pages(server)
        email, page = account(server), pages.open()
        enter(page, email)
        button(page, "New item").click()
        field(page, "Title").fill("Typed before")
        clock.pass_(30 * DAY)
        pages.context.set_offline(True)
        pages.context.set_offline(False)
        expect(page.get_by_text("Your session has ended.")).to_be_visible()
        expect(field(page, "Title")).to_have_value("Typed before")
        button(page, "Log in again").click()
        field(page.get_by_role("dialog"), "Password").fill(PASSWORD)
        button(page.get_by_role("dialog"), "Log in").click()
        expect(page.get_by_text("Your session has ended.")).to_have_count(0)
        expect(field(page, "Title")).to_have_value("Typed before")
        button(page, "Save").click()
        with device(server, email) as client:
            items = client.vault("Personal").collection("items")
            until(lambda: len(list(items)) == 2, "the draft is sent")
        page.close()  # before the server ends, which it would complain of
    pages.forgive(AWAY)


@on_a_file
def test_a_password_that_was_changed_elsewhere_is_asked_for(pages: Pages, server: Server) -> None:
    """The app says so; the new password goes on without losing what is here, and unlocks from then on."""
    email, page = account(server), pages.open()
    enter(page, email)
    with device(server, email) as client:
        client.change_password(PASSWORD, "another password of theirs")
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    button(page, "Log in again").click()
    field(page.get_by_role("dialog"), "Password").fill("another password of theirs")
    button(page.get_by_role("dialog"), "Log in").click()
    expect_open(page)
    lock(page)
    unlock(page, "another password of theirs")
    expect_open(page)


def test_a_full_quota_is_said(lone: Server, make_pages: MakePages) -> None:
    """What does not fit stays on the device and is named; the usage says that it is full."""
    lone.settings["QUOTA_DOCUMENTS"] = "1"
    pages = make_pages(lone.start())
    page = pages.open()
    enter(page, account(lone))
    write_something(page)
    expect(page.get_by_text("1 change not sent")).to_be_visible()
    settings(page, "usage")
    expect(page.get_by_text("It is full.")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "usage-full")
    pages.forgive("507")


def test_a_server_that_is_killed_loses_nothing(lone: Server, make_pages: MakePages) -> None:
    """What is written meanwhile waits, is named before a log-out, and arrives when the server is back."""
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    enter(page, email)
    lone.process.kill()
    lone.process.wait()
    write_something(page)
    expect(page.get_by_text("The server cannot be reached. You can go on")).to_be_visible()
    settings(page, "appearance")
    button(page, "Log out").click()
    expect(page.get_by_role("dialog").get_by_text("1 change is not sent yet")).to_be_visible()
    screenshot(page, "log-out-pending")
    button(page.get_by_role("dialog"), "Cancel").click()
    lone.settings["PORT"] = str(lone.port)
    lone.start()
    expect(page.get_by_text("Everything is synced")).to_be_visible(timeout=20_000)
    with device(lone, email) as client:
        assert len(list(client.vault("Personal").collection("items"))) == 2
    pages.forgive(AWAY)


def changed(route: Route, change: Any) -> None:
    """Answer with what the server says, changed."""
    response = route.fetch()
    body = response.json()
    if response.ok:
        change(body)
    route.fulfill(response=response, body=json.dumps(body))


@on_a_file
def test_weak_parameters_are_refused(pages: Pages, server: Server) -> None:
    """A server that asks for a cheap derivation does not get the password, and the page says what to do."""
    email, page = account(server), pages.open()
    sent: list[str] = []
    page.on("request", lambda one: sent.append(one.url))

    def weaken(body: Any) -> None:
        body["kdf"] |= {"memory": 8, "passes": 1}

    page.route("**/auth/email/prelogin", lambda route: changed(route, weaken))
    log_in(page, email)
    expect(
        page.get_by_text("The server asked for a weaker derivation of your password than is allowed.")
    ).to_be_visible()
    check_accessibility(page)
    screenshot(page, "weak-parameters")
    assert not any(url.endswith("/auth/email/login") for url in sent)


@on_a_file
@pytest.mark.parametrize("lie", ["tampered", "rolled back"])
def test_a_lie_is_a_sentence(pages: Pages, server: Server, lie: str) -> None:
    """A keyring that is not theirs, or an older one, is refused: a notice says so, and nothing here is overwritten."""
    email, page = account(server), pages.open()
    enter(page, email)
    client = Client(url_of(server))
    client.login(email, PASSWORD)
    old: dict[str, Any] = {}
    if lie == "rolled back":

        def record(route: Route) -> None:
            response = route.fetch()
            if response.ok:
                old.update(response.json())
            route.fulfill(response=response)

        page.route("**/auth/keyring", record)
        lock(page)
        unlock(page)
        expect_open(page)
        client.vault("Second", create=True)
        expect(page.get_by_role("link", name="Second")).to_be_visible()
        page.unroute("**/auth/keyring")
        client.vault("Between", create=True)
        expect(page.get_by_role("link", name="Between")).to_be_visible()
        assert old

    def answer(route: Route) -> None:
        def change(body: Any) -> None:
            if lie == "tampered":
                body["keyring"] = body["keyring"][:-12] + "AAAAAAAAAAAA"
                body["version"] += 1
            else:
                body.update(old)

        changed(route, change)

    page.route("**/auth/keyring", answer)
    client.vault("Third", create=True)
    lock(page)
    unlock(page)
    title = "The server sent something that is not yours" if lie == "tampered" else "The server shows an older state"
    expect(heading(page, title)).to_be_visible()
    expect(page.get_by_text("Nothing on this device was overwritten")).to_be_visible()
    expect(page.get_by_role("link", name="Personal")).to_be_visible()
    check_accessibility(page)
    screenshot(page, f"lie-{lie.replace(' ', '-')}")
    page.unroute("**/auth/keyring")
    button(page, "Try again").click()
    expect_open(page)
    expect(page.get_by_role("link", name="Third")).to_be_visible()
    client.close()


@on_a_file
def test_only_what_the_server_says_is_said_to_be_its_word(pages: Pages, server: Server) -> None:
    """What it writes into a refusal is quoted as its word; what the app checks by itself is said by the app."""
    page = pages.open()
    log_in(page, f"{'a' * 300}@example.com")
    expect(page.get_by_text("Email must be an email address of 3 to 254 characters with one @.")).to_be_visible()
    expect(page.get_by_text("says: “")).to_have_count(0)
    fault = {"code": "validation_error", "details": {"fields": {"account": "is closed, call +1 555 0100"}}}
    page.route("**/auth/email/prelogin", lambda route: route.fulfill(status=400, json={"error": fault}))
    log_in(page, account(server))
    told = "The server refuses this, and says: “account is closed, call +1 555 0100.”"
    expect(page.get_by_text(told, exact=True)).to_be_visible()
    screenshot(page, "server-says")


@on_a_file
@pytest.mark.parametrize("what", ["not strongroom", "away"])
def test_another_server_is_a_sentence(pages: Pages, server: Server, what: str) -> None:
    """A web page in the place of the API, and no answer at all, are told apart and said to the person."""
    email, page = account(server), pages.open()
    if what == "away":
        page.route("**/auth/**", lambda route: route.abort())
        told = "The server cannot be reached."
    else:
        page.route(
            "**/auth/**", lambda route: route.fulfill(status=200, content_type="text/html", body="<p>Welcome</p>")
        )
        told = "not as a strongroom server does"
    log_in(page, email)
    expect(page.get_by_text(told)).to_be_visible(timeout=20_000)
    screenshot(page, f"server-{what.replace(' ', '-')}")
    pages.forgive(AWAY)


@on_a_file
def test_plain_http_on_a_network_says_why(server: Server, make_pages: MakePages) -> None:
    """Where the browser has no means to encrypt, the page says why and what to do, and asks for no password."""
    pages = make_pages(server)
    pages.context.add_init_script("Object.defineProperty(window, 'isSecureContext', { value: false });")
    page = pages.open()
    expect(heading(page, "This page cannot protect your data")).to_be_visible()
    expect(page.locator("input")).to_have_count(0)
    check_accessibility(page)
    screenshot(page, "insecure")


def test_a_restored_server_gets_back_what_it_forgot(lone: Server, make_pages: MakePages) -> None:
    """Restored from an older backup, it is given again what this device has seen, and nothing is lost here."""
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    enter(page, email)
    back_up(lone)
    with device(lone, email) as client:
        client.vault("Second", create=True).collection("items").create({"type": "note", "title": "After the backup"})
    expect(page.get_by_role("link", name="Second")).to_be_visible()
    restore(lone)
    with device(lone, email) as client:

        def notes() -> list[object]:
            try:
                return [note.value for note in client.vault("Second").collection("items")]
            except Refusal:  # it was not sent again yet
                return []

        assert until(notes, "what the backup did not have") == [{"type": "note", "title": "After the backup"}]
    expect(page.get_by_role("link", name="Second")).to_be_visible()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    pages.forgive(AWAY)
