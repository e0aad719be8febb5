"""A person in front of the web app: what they read, type and press, by the words that are on the page."""

from __future__ import annotations

import re
from typing import Final

from playwright.sync_api import Locator, Page, expect

from strongroom.client import Client
from tests.client.both_clients import PASSWORD, unique_email
from tests.contract.harness import Server
from tests.support.waiting import until
from tests.support.web_app import Pages

LOCKED: Final = "Locked"
_KEY: Final = re.compile(r"SR2(-[0-9A-Z]{4}){9}")


def url_of(server: Server) -> str:
    """The address of the API."""
    return f"http://127.0.0.1:{server.port}"


def account(server: Server, password: str = PASSWORD) -> str:
    """Register an account by the Python client, with one vault and one item; its email."""
    email = unique_email()
    with Client(url_of(server)) as client:
        client.register(email, password)
        client.vault("Personal", create=True).collection("items").create({"type": "note", "title": "From Python"})
        client.logout()
    return email


def field(page: Page | Locator, label: str) -> Locator:
    """The field with this label."""
    return page.get_by_label(label, exact=True)


def button(page: Page | Locator, name: str) -> Locator:
    """The button with this word."""
    return page.get_by_role("button", name=name, exact=True)


def heading(page: Page, name: str) -> Locator:
    """The heading with this text."""
    return page.get_by_role("heading", name=name, exact=True)


def log_in(page: Page, email: str, password: str = PASSWORD) -> None:
    """Fill in the log-in page, and send it."""
    field(page, "Email").fill(email)
    field(page, "Password").fill(password)
    button(page, "Log in").click()


def expect_open(page: Page) -> None:
    """Wait until the account is open, and the first sync is done."""
    expect(page.locator(".shell")).to_be_visible()
    known = "(localStorage.getItem('strongroom-web.account') ?? '').includes('\"isWhole\":true')"
    until(lambda: page.evaluate(known), "the first sync is done")
    expect(page.locator(".banner")).to_have_count(0)


def enter(page: Page, email: str, password: str = PASSWORD) -> None:
    """Log in, and wait until the account is open."""
    log_in(page, email, password)
    expect_open(page)


def lock(page: Page) -> None:
    """Lock by hand."""
    page.keyboard.press("l")
    expect(heading(page, LOCKED)).to_be_visible()


def unlock(page: Page, password: str = PASSWORD) -> None:
    """Unlock with the password."""
    field(page, "Password").fill(password)
    button(page, "Unlock").click()


def sign_up(page: Page, email: str, password: str = PASSWORD) -> str:
    """Create an account, and confirm its recovery sheet; the recovery key."""
    button(page, "Create an account").click()
    field(page, "Email").fill(email)
    field(page, "Master password").fill(password)
    field(page, "The same password again").fill(password)
    button(page, "Create the account").click()
    return confirm_sheet(page)


def confirm_sheet(page: Page) -> str:
    """Type the part of the recovery key that is asked for; the key."""
    found = _KEY.search(page.locator(".sheetKey").inner_text().replace("\n", ""))
    assert found
    groups = found[0].split("-")[1:]
    asked = page.get_by_label(re.compile("To confirm that you have it"))
    names = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "last"]
    label = page.locator("label", has_text="To confirm that you have it").inner_text()
    [number] = [at for at, name in enumerate(names) if f"the {name} group" in label]
    asked.fill(groups[number].lower())
    button(page, "I have it").click()
    return found[0]


def tolerate(pages: Pages, part: str) -> None:
    """Take out complaints of the console that may be there, such as of a request that is refused as it must be."""
    pages.complaints = [line for line in pages.complaints if part not in line]


def settings(page: Page, section: str) -> None:
    """Open a section of the settings."""
    page.evaluate("(section) => { location.hash = `#/settings/${section}`; }", section)
    expect(page.locator(".settingsDetail")).to_be_visible()
