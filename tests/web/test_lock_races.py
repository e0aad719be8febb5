"""A lock holds whatever is under way: a request that hangs, a tab that is closed, work that ends later."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.kit.browsers.web_app import Pages
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import (
    LOCKED,
    account,
    button,
    databases,
    device,
    enter,
    expect_open,
    field,
    heading,
    lock,
    saved_sessions,
    unlock,
)

SESSION = "strongroom session strongroom-web"  # the Web Lock that a refresh of the tokens holds


def hold(pages: Pages, name: str) -> Page:
    """A page of the same origin that holds a Web Lock until it is closed."""
    page = pages.open("/app/licences.txt")
    page.evaluate(
        """(name) => new Promise((held) => {
          void navigator.locks.request(name, () => (held(true), new Promise(() => undefined)));
        })""",
        name,
    )
    return page


def waiting(page: Page, name: str, kinds: str = "held pending") -> bool:
    """Whether somebody holds this Web Lock, or waits for it."""
    found: bool = page.evaluate(
        """async ([name, kinds]) => {
          const all = await navigator.locks.query();
          return kinds.some((kind) => all[kind].some((one) => one.name === name));
        }""",
        [name, kinds.split()],
    )
    return found


def until_waited_for(page: Page, name: str) -> None:
    """Wait until somebody waits for this Web Lock."""
    until(lambda: waiting(page, name, "pending"), "the lock is waited for")


@on_a_file
def test_a_lock_holds_while_a_refresh_hangs(pages: Pages, server: Server) -> None:
    """Lock while a refresh of the tokens hangs: the keys are gone at once, and the next tab is locked."""
    page = pages.open()
    enter(page, account(server))
    holder = hold(pages, SESSION)
    page.bring_to_front()
    lock(page)
    page.close()
    late = pages.open()
    expect(heading(late, LOCKED)).to_be_visible()
    until(lambda: saved_sessions(late) == 0, "the keys are gone")
    holder.close()
    unlock(late)
    expect_open(late)
    until(lambda: saved_sessions(late) == 1, "the session is saved")
    late.reload()
    expect_open(late)


@on_a_file
def test_a_mark_locks_what_is_still_saved(pages: Pages, server: Server) -> None:
    """Where a lock could not delete the keys before its tab ended, the next start deletes them and opens nothing."""
    page = pages.open()
    enter(page, account(server))
    other = pages.open("/app/licences.txt")
    page.close()
    other.evaluate("localStorage.setItem('strongroom-web.locked', '1')")
    assert saved_sessions(other) == 1
    other.goto(pages.url + "/app/")
    expect(heading(other, LOCKED)).to_be_visible()
    assert saved_sessions(other) == 0


@on_a_file
def test_a_tab_that_opens_late_stays_locked(pages: Pages, server: Server) -> None:
    """A tab that is still opening the replica when another one locks shows nothing when that ends."""
    page = pages.open()
    enter(page, account(server))
    [replica] = [name for name in databases(page) if name != "strongroom sessions"]
    holder = hold(pages, f"{replica} write")
    late = pages.open()
    until_waited_for(holder, f"{replica} write")
    page.bring_to_front()
    lock(page)
    late.evaluate(
        "new MutationObserver(() => { window.seen ||= !!document.querySelector('.shell'); })"
        ".observe(document.body, { childList: true, subtree: true })"
    )
    holder.close()
    expect(heading(late, LOCKED)).to_be_visible()
    until(lambda: not waiting(late, f"{replica} write"), "the replica is open")
    late.wait_for_timeout(300)
    expect(heading(late, LOCKED)).to_be_visible()
    assert not late.evaluate("window.seen")
    unlock(late)
    expect_open(late)
    expect_open(page)


@on_a_file
def test_no_answer_about_storage_keeps_it_from_opening(pages: Pages, server: Server) -> None:
    """The browser may ask a person whether data may stay; the app opens without the answer."""
    pages.context.add_init_script(
        "if (globalThis.StorageManager) StorageManager.prototype.persisted = async () => false;"
        "if (globalThis.StorageManager) StorageManager.prototype.persist = () => new Promise(() => undefined);"
    )
    enter(pages.open(), account(server))


@on_a_file
@pytest.mark.parametrize("how", ["log in", "log in again"])
def test_nothing_is_saved_after_a_lock(pages: Pages, server: Server, how: str) -> None:
    """Keys that are about to be saved when another tab locks or logs out are not there afterwards, and no tab opens."""
    one, other, email = pages.open(), pages.open(), account(server)
    enter(one, email)
    expect_open(other)
    if how == "log in":
        lock(one)
        expect(heading(other, LOCKED)).to_be_visible()
        button(one, "I changed the password on another device").click()
        field(one, "Email").fill(email)
    else:
        with device(server, email) as client:
            client.logout(everywhere=True)
        button(one, "Log in again").click()
    holder = hold(pages, SESSION)
    one.bring_to_front()
    field(one, "Password").fill(PASSWORD)
    button(one, "Log in").click()
    until_waited_for(holder, SESSION)
    other.bring_to_front()
    if how == "log in":
        button(other, "Log out").click()
        button(other.get_by_role("dialog"), "Log out").click()
        expect(heading(other, "Log in")).to_be_visible()
    else:
        lock(other)
    holder.close()
    until(lambda: not waiting(other, SESSION), "all is done")
    for _ in range(3):
        other.wait_for_timeout(200)
        assert saved_sessions(other) == 0
        for page in (one, other):
            expect(page.locator(".shell")).to_have_count(0)


# Where a key of localStorage says so, IndexedDB opens nothing: that of a database whose version is higher fails.
BROKEN = """
const real = IDBFactory.prototype.open;
window.makeBroken = () => new Promise((done) => { real.call(indexedDB, "broken", 2).onsuccess = () => done(true); });
IDBFactory.prototype.open = function (...given) {
  return real.apply(this, localStorage.getItem("broken") ? ["broken", 1] : given);
};
"""


@on_a_file
def test_storage_that_does_not_open_loses_nothing(pages: Pages, server: Server) -> None:
    """Where the browser cannot open its databases for a while, the app says so, stays locked and keeps the account."""
    pages.context.add_init_script(BROKEN)
    page = pages.open()
    enter(page, account(server))
    page.evaluate("makeBroken().then(() => localStorage.setItem('broken', '1'))")
    page.reload()
    expect(heading(page, LOCKED)).to_be_visible()
    expect(page.get_by_text("Something went wrong in this app.")).to_be_visible()
    unlock(page)
    expect(page.get_by_text("What this browser has stored cannot be opened right now.")).to_be_visible()
    expect(heading(page, LOCKED)).to_be_visible()
    page.evaluate("localStorage.removeItem('broken')")
    unlock(page)
    expect_open(page)


@on_a_file
@pytest.mark.parametrize("event", ["storage", "pageshow"])
def test_a_mark_is_seen_at_once(pages: Pages, server: Server, event: str) -> None:
    """A page that hears of a lock, or comes back from the history, is locked before any timer runs."""
    page = pages.context.new_page()
    page.clock.install()
    page.goto(f"{pages.url}/app/")
    enter(page, account(server))
    page.clock.pause_at(page.evaluate("Date.now() + 1000") / 1000)
    if event == "storage":
        pages.open("/app/licences.txt").evaluate("localStorage.setItem('strongroom-web.locked', '1')")
    else:
        page.evaluate("localStorage.setItem('strongroom-web.locked', '1')")
        page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
    expect(heading(page, LOCKED)).to_be_visible()
    assert "Personal" not in page.content()
