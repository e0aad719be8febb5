"""A person with an account: a Python device, and browsers that are logged in."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from playwright.sync_api import Locator, Page, expect

from strongroom.client import Client
from strongroom.items import Login
from tests.client.both_clients import PASSWORD, unique_email
from tests.contract.harness import Server
from tests.support.waiting import until
from tests.support.web_app import Pages

VAULT: Final = "Personal"


class Person:
    """Somebody with an account on a server; `client` is a device of theirs that runs Python."""

    def __init__(self, server: Server) -> None:
        self.email = unique_email()
        self.client = Client(f"http://localhost:{server.port}")
        self.client.register(self.email, PASSWORD)
        self.items = self.client.items(VAULT, create=True)

    def close(self) -> None:
        """Close the Python device."""
        self.client.close()

    def log_in(self, pages: Pages) -> Page:
        """Log in in a browser, and wait for the list."""
        page = pages.open()
        page.get_by_label("Email").fill(self.email)
        page.get_by_label("Password", exact=True).fill(PASSWORD)
        page.get_by_role("button", name="Log in", exact=True).click()
        expect(page.get_by_role("searchbox", name="Search")).to_be_visible()
        return page

    def login_item(self, title: str = "GitHub", **members: Any) -> str:
        """A new login made by the Python device; its uid."""
        given = {"username": "ada", "password": "correct horse", **members}
        return self.items.create(Login(title=title, **given)).uid


def row(page: Page, title: str) -> Locator:
    """The row of the list with this title, if it is among those that can be seen."""
    return rows(page).filter(has=page.locator(".rowTitle", has_text=re.compile(f"^{re.escape(title)}$")))


def rows(page: Page) -> Locator:
    """The rows of the list that are in the page."""
    return page.get_by_role("listbox").get_by_role("option")


def choose(page: Page, title: str) -> None:
    """Open an item from the list, by searching for it."""
    search = page.get_by_role("searchbox", name="Search")
    search.fill(title)
    row(page, title).first.click()
    expect(page.get_by_role("heading", level=1, name=title)).to_be_visible()
    if search.is_visible():
        search.fill("")
        search.blur()


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until another device sees something, or the clipboard has it."""
    until(condition, "what the test expects")


def wide(page: Page) -> list[str]:
    """What can be seen beyond the edge of the page, and whether that scrolls sideways: nothing should."""
    found: list[str] = page.evaluate(
        """() => {
      const width = document.documentElement.clientWidth;
      const found = [];
      if (document.documentElement.scrollWidth > width) found.push(`page ${document.documentElement.scrollWidth}`);
      for (const one of document.querySelectorAll("body *")) {
        let { left, right, width: own, height } = one.getBoundingClientRect();
        if (!own || !height || one.closest(".visuallyHidden, .skip, .placeHead")) continue;
        for (let frame = one.parentElement; frame; frame = frame.parentElement) {
          if (getComputedStyle(frame).overflowX === "visible") continue;
          const box = frame.getBoundingClientRect(); // what is beyond it is not seen
          [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
        }
        const isOut = right > left && (right > width + 1 || left < -1);
        if (isOut) found.push(`${one.tagName}.${one.className} ${left} ${right}`);
      }
      return found.slice(0, 10);
    }"""
    )
    return found
