"""People in front of the web app: what they read, type and press, by its words; and a Python device of theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from playwright.sync_api import Locator, Page, Route, expect

from strongroom.client import Client
from strongroom.items import Login
from tests.kit.browsers.web_app import Pages
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server
from tests.kit.waiting import until

VAULT: Final = "Personal"
LOCKED: Final = "Locked"
OFFLINE: Final = "ERR_INTERNET_DISCONNECTED"
BLOCKED: Final = "Service Worker registration blocked"  # Playwright's offline is not that of a service worker
AWAY: Final = "Failed to load resource"  # a request that the server refused, or did not answer
_KEY: Final = re.compile(r"SR2(-[0-9A-Z]{4}){9}")
# Forgets the contents that the replica of a page keeps for its next start; how many boxes there were.
FORGET_CONTENTS: Final = """async () => {
  const done = (request) => new Promise((go) => { request.onsuccess = () => go(request.result); });
  const name = (await indexedDB.databases()).map((one) => one.name).find((one) => one.startsWith("strongroom replica"));
  const database = await done(indexedDB.open(name));
  const facts = database.transaction("facts", "readwrite").objectStore("facts");
  const keys = (await done(facts.getAllKeys())).filter(([, uid]) => uid !== undefined);
  for (const key of keys) facts.delete(key);
  await new Promise((go) => { facts.transaction.oncomplete = go; });
  database.close();
  return keys.length;
}"""


class BrowserUser:
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
        log_in(page, self.email)
        expect(page.get_by_role("searchbox", name="Search")).to_be_visible()
        return page

    def login_item(self, title: str = "GitHub", **members: Any) -> str:
        """A new login made by the Python device; its uid."""
        given = {"username": "ada", "password": "correct horse", **members}
        return self.items.create(Login(title=title, **given)).uid

    def change(self, title: str, **members: object) -> None:
        """Change an item on the Python device."""
        document = self.items.find(title)
        for name, value in members.items():
            setattr(document.value, name, value)
        self.items.replace(document, document.value)

    def login(self, title: str) -> Login:
        """A login as the Python device reads it now."""
        item = self.items.find(title).value
        assert isinstance(item, Login)
        return item


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


def edit(page: Page, **labels: str) -> None:
    """Change fields of the item that is open, and save it."""
    page.get_by_role("button", name="Edit").click()
    for label, value in labels.items():
        page.get_by_label(label, exact=True).fill(value)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Saved.").last).to_be_visible()


@contextmanager
def held(page: Page, pattern: str) -> Iterator[list[Route]]:
    """Hold the requests of this address back; at the end, those that are still here go on."""
    found: list[Route] = []

    def hold(route: Route) -> None:
        found.append(route)

    page.route(pattern, hold)
    yield found
    for route in found:
        route.continue_()
    page.unroute(pattern)


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


def url_of(server: Server) -> str:
    """The address of the API."""
    return f"http://127.0.0.1:{server.port}"


def back_up(server: Server) -> None:
    """Make a backup of a server on a file, for `restore`."""
    made = strongroom(server.home, "backup", "kept.backup", DB_PATH="vault.db")
    assert made.returncode == 0, made.stderr


def restore(server: Server) -> None:
    """Stop a server, put the backup in the place of its file, and start it at the same address."""
    server.end()
    restored = strongroom(server.home, "restore", "kept.backup", DB_PATH="vault.db")
    assert restored.returncode == 0, restored.stderr
    server.settings["PORT"] = str(server.port)
    server.start()


def account(server: Server, password: str = PASSWORD) -> str:
    """Register an account by the Python client, with one vault and one item; its email."""
    email = unique_email()
    with Client(url_of(server)) as client:
        client.register(email, password)
        client.vault("Personal", create=True).collection("items").create({"type": "note", "title": "From Python"})
        client.logout()
    return email


@contextmanager
def device(server: Server, email: str, password: str = PASSWORD) -> Iterator[Client]:
    """Another device of theirs, which runs Python and has logged in."""
    with Client(url_of(server)) as client:
        client.login(email, password)
        yield client


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


def settings(page: Page, section: str) -> None:
    """Open a section of the settings."""
    page.evaluate("(section) => { location.hash = `#/settings/${section}`; }", section)
    expect(page.locator(".settingsDetail")).to_be_visible()


def saved_sessions(page: Page) -> int:
    """How many sessions are saved in this browser."""
    found: int = page.evaluate(
        """() => new Promise((done, failed) => {
          const opening = indexedDB.open("strongroom sessions");
          opening.onerror = () => failed(opening.error);
          opening.onsuccess = () => {
            const database = opening.result;
            if (!database.objectStoreNames.length) return (database.close(), done(0));
            const counting = database.transaction("sessions").objectStore("sessions").count();
            counting.onsuccess = () => (database.close(), done(counting.result));
          };
        })"""
    )
    return found


def databases(page: Page) -> list[str]:
    """The names of the databases of this browser."""
    found: list[str] = page.evaluate("async () => (await indexedDB.databases()).map(({ name }) => name).sort()")
    return found


def watch_progress(page: Page) -> None:
    """Note every text of a progress bar from now on, also after a reload."""
    script = """
      window.progress = [];
      new MutationObserver(() => {
        for (const one of document.querySelectorAll(".progress")) {
          const text = one.textContent;
          if (window.progress.at(-1) !== text) window.progress.push(text);
        }
      }).observe(document, { childList: true, subtree: true, characterData: true });
    """
    page.add_init_script(script)
    page.evaluate(script)


def shown_progress(page: Page) -> list[str]:
    """The texts of progress bars that were shown."""
    found: list[str] = page.evaluate("window.progress")
    return found
