"""Sign up, log in, lock, unlock and log out in the web app, by hand, by keyboard, in several tabs and offline."""

from __future__ import annotations

import json
import re
import signal
import time

import pytest
from playwright.sync_api import expect

from strongroom.client import Client, Refusal
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.people import one_time_codes
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.programs.command_line import strongroom
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import (
    AWAY,
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
    log_in,
    saved_sessions,
    settings,
    sign_up,
    unlock,
    url_of,
    wide,
)


def test_a_person_signs_up(pages: Pages, server: Server) -> None:
    """The strength is said, the recovery key is shown once and opens the account, and the first vault is there."""
    email = unique_email()
    page = pages.open()
    screenshot(page, "log-in")
    button(page, "Create an account").click()
    field(page, "Master password").fill("password1")
    expect(page.get_by_text("Weak: at most")).to_be_visible()
    screenshot(page, "sign-up-weak")
    button(page, "I have an account").click()
    key = sign_up(page, email)
    expect_open(page)
    expect(page.get_by_role("link", name="Personal")).to_be_visible()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    assert key not in page.content()
    with Client(url_of(server)) as client:
        client.recover(email, key, "another password of theirs")
        assert [vault.name for vault in client.vaults()] == ["Personal"]
    expect(page.get_by_text("Your session has ended.")).to_be_visible()
    screenshot(page, "session-ended")


@on_a_file
def test_a_sheet_is_confirmed_by_what_stands_on_it(phone_pages: Pages) -> None:
    """Wrong letters do not confirm it, and the app says so after a log-in; only the sheet is on paper; on a phone."""
    page, email = phone_pages.open(), unique_email()
    button(page, "Create an account").click()
    check_accessibility(page)
    screenshot(page, "sign-up-phone", full=True)
    field(page, "Email").fill(email)
    field(page, "Master password").fill(PASSWORD)
    field(page, "The same password again").fill("something else")
    button(page, "Create the account").click()
    expect(page.get_by_text("The two passwords are not the same.").first).to_be_visible()
    field(page, "The same password again").fill(PASSWORD)
    button(page, "Create the account").click()
    expect(page.locator(".sheetKey")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "recovery-sheet-phone", full=True)
    page.locator("form input").fill("0000" if "0000" not in page.content() else "1111")
    button(page, "I have it").click()
    expect(page.get_by_text("That is not what stands on the sheet.")).to_be_visible()
    page.emulate_media(media="print")
    expect(page.locator(".sheetKey")).to_be_visible()
    assert page.locator("h1").evaluate("(one) => getComputedStyle(one).visibility") == "hidden"
    page.emulate_media(media="screen")
    page.reload()  # as if the tab was closed
    log_in(page, email)
    expect(page.get_by_text("nobody has confirmed to have it")).to_be_visible()
    assert wide(page) == []
    screenshot(page, "key-unconfirmed-phone")
    settings(page, "password")
    button(page, "Remove the recovery key").click()
    field(page, "Your current password").fill(PASSWORD)
    button(page.get_by_role("dialog"), "Remove the recovery key").click()
    expect(page.get_by_text("There is no recovery key.")).to_be_visible()
    expect(page.get_by_text("nobody has confirmed to have it")).to_have_count(0)


@on_a_file
def test_everything_works_by_keyboard(pages: Pages) -> None:
    """Sign up, lock, unlock, look at the keys and log in again, without a pointer."""
    page, email = pages.open(), unique_email()

    def press(*keys: str) -> None:
        for key in keys:
            page.keyboard.press(key)

    def tab_to(name: str) -> None:
        for _ in range(40):
            if (
                page.evaluate("document.activeElement?.innerText || document.activeElement?.labels?.[0]?.innerText")
                == name
            ):
                return
            page.keyboard.press("Tab")
        raise AssertionError(f"no Tab leads to {name}")

    tab_to("Create an account")
    press("Enter")
    expect(field(page, "Email")).to_be_focused()
    page.keyboard.type(email)
    tab_to("Master password")
    page.keyboard.type(PASSWORD)
    tab_to("The same password again")
    page.keyboard.type(PASSWORD)
    press("Enter")
    expect(page.locator(".sheetKey")).to_be_visible()
    groups = page.locator(".sheetKey").inner_text().replace("\n", "").split("-")[1:]
    label = page.locator("form label").inner_text()
    names = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "last"]
    [number] = [at for at, name in enumerate(names) if f"the {name} group" in label]
    tab_to(label)
    page.keyboard.type(groups[number])
    press("Enter")
    expect_open(page)
    press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "keyboard-sheet")
    press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    press("l")
    expect(field(page, "Password")).to_be_focused()
    page.keyboard.type(PASSWORD)
    press("Enter")
    expect_open(page)


def test_a_closed_server_asks_for_an_invitation(lone: Server, make_pages: MakePages) -> None:
    """The field appears once the server has said so, a wrong code is a sentence, and a right one registers."""
    lone.settings["SIGNUPS"] = "closed"
    pages = make_pages(lone.start())
    page = pages.open()
    button(page, "Create an account").click()
    expect(field(page, "Invitation code")).to_have_count(0)
    field(page, "Email").fill(unique_email())
    field(page, "Master password").fill(PASSWORD)
    field(page, "The same password again").fill(PASSWORD)
    button(page, "Create the account").click()
    expect(field(page, "Invitation code")).to_be_visible()
    screenshot(page, "sign-up-invitation")
    field(page, "Invitation code").fill("SRI-00000-00000-00000-00000-00000")
    button(page, "Create the account").click()
    expect(page.get_by_text("This invitation cannot be used")).to_be_visible()
    made = strongroom(lone.home, "invite", "create", DB_PATH="vault.db")
    [code] = re.findall(r"\bSRI[-0-9A-Z]+", made.stdout)[:1]
    field(page, "Invitation code").fill(code)
    button(page, "Create the account").click()
    button(page, "Do this later").click()
    button(page, "Continue").click()
    expect(page.get_by_text("nobody has confirmed to have it")).to_be_visible()


@on_a_file
def test_a_wrong_password_is_a_sentence(pages: Pages, server: Server) -> None:
    """It says that email or password is wrong, on the log-in and on the lock screen, and opens nothing."""
    email, page = account(server), pages.open()
    button(page, "Log in").click()
    expect(page.get_by_text("Enter the email of your account.")).to_be_visible()
    log_in(page, email, "not the password")
    expect(page.get_by_text("The email or the password is wrong.")).to_be_visible()
    screenshot(page, "log-in-wrong")
    check_accessibility(page)
    field(page, "Password").fill(PASSWORD)
    button(page, "Log in").click()
    expect_open(page)
    lock(page)
    unlock(page, "not the password")
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    screenshot(page, "unlock-wrong")
    check_accessibility(page)
    unlock(page)
    expect_open(page)


def test_locking_leaves_nothing_to_read(pages: Pages, server: Server) -> None:
    """After a lock no key is saved, nothing decrypted is in the page, and the session has ended on the server."""
    email, page = account(server), pages.open()
    enter(page, email)
    assert saved_sessions(page) == 1
    page.reload()
    expect_open(page)
    with device(server, email) as client:
        assert len(client.sessions()) == 2
        lock(page)
        assert "Personal" not in page.content()
        until(lambda: saved_sessions(page) == 0, "the saved session is deleted")
        until(lambda: len(client.sessions()) == 1, "the session has ended on the server")
    page.reload()
    expect(heading(page, LOCKED)).to_be_visible()
    unlock(page)
    expect_open(page)


def test_a_lock_does_not_wait_for_the_server(lone: Server, make_pages: MakePages) -> None:
    """Where the server does not answer, the keys are deleted all the same: before any timer of the page runs."""
    pages = make_pages(lone.start())
    page = pages.context.new_page()
    page.clock.install()
    page.goto(f"{pages.url}/app/")
    enter(page, account(lone))
    assert saved_sessions(page) == 1
    lone.process.send_signal(signal.SIGSTOP)
    try:
        page.clock.pause_at(page.evaluate("Date.now() + 1000") / 1000)
        lock(page)
        until(lambda: saved_sessions(page) == 0, "the keys are gone")
    finally:
        lone.process.send_signal(signal.SIGCONT)


@on_a_file
def test_it_locks_by_time(pages: Pages, server: Server) -> None:
    """Whoever does nothing for the chosen time is locked out, and a start after that locks first."""
    page = pages.open()
    enter(page, account(server))
    page.evaluate("localStorage.setItem('strongroom-web.until', `${Date.now() - 1}`)")
    expect(heading(page, LOCKED)).to_be_visible()
    until(lambda: saved_sessions(page) == 0, "the saved session is deleted")
    unlock(page)
    expect_open(page)
    until(lambda: saved_sessions(page) == 1, "the session is saved")
    page.goto("about:blank")
    page.goto(pages.url + "/app/licences.txt")
    page.evaluate("localStorage.setItem('strongroom-web.until', `${Date.now() - 1}`)")
    assert saved_sessions(page) == 1
    page.goto(pages.url + "/app/")
    expect(heading(page, LOCKED)).to_be_visible()
    assert saved_sessions(page) == 0


@on_a_file
def test_it_locks_with_the_last_tab(pages: Pages, server: Server) -> None:
    """With that choice, a reload and a second tab stay open, and a tab after the last one was closed is locked."""
    page = pages.open()
    enter(page, account(server))
    settings(page, "appearance")
    field(page, "Lock").select_option(label="When the last tab is closed")
    page.reload()
    expect_open(page)
    other = pages.open()
    expect_open(other)
    other.close()
    page.close()
    late = pages.open()
    expect(heading(late, LOCKED)).to_be_visible()
    assert saved_sessions(late) == 0


@on_a_file
def test_several_tabs_are_one(pages: Pages, server: Server) -> None:
    """A log-in, a lock, an unlock and a log-out in one tab happen in the other, too."""
    one, other = pages.open(), pages.open()
    enter(one, account(server))
    expect_open(other)
    lock(other)
    expect(heading(one, LOCKED)).to_be_visible()
    unlock(one)
    expect_open(one)
    expect_open(other)
    settings(one, "appearance")
    button(one, "Log out").click()
    button(one.get_by_role("dialog"), "Log out").click()
    for page in (one, other):
        expect(heading(page, "Log in")).to_be_visible()
    until(lambda: databases(one) == ["strongroom sessions"], "the replica to be deleted")


@on_a_file
def test_a_log_out_that_was_interrupted_is_finished(pages: Pages, server: Server) -> None:
    """Where the tab is closed before the data of the account is deleted, the next start deletes it."""
    page = pages.open()
    enter(page, account(server))
    page.evaluate("() => { IDBFactory.prototype.deleteDatabase = () => ({}); }")
    settings(page, "appearance")
    button(page, "Log out").click()
    button(page.get_by_role("dialog"), "Log out").click()
    expect(heading(page, "Log in")).to_be_visible()
    assert len(databases(page)) == 2
    page.close()
    again = pages.open()
    expect(heading(again, "Log in")).to_be_visible()
    until(lambda: databases(again) == ["strongroom sessions"], "the replica to be deleted")


def test_a_second_factor_is_asked_for(pages: Pages, server: Server) -> None:
    """A wrong code is a sentence; a right one logs in, and so does a recovery code."""
    email = account(server)
    with device(server, email) as client:
        secret = client.second_factor.enrol(PASSWORD).secret
        now = int(time.time() * 1000)
        codes = list(client.second_factor.confirm(one_time_codes.code(secret, now, -1)))
    page = pages.open()
    log_in(page, email)
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    check_accessibility(page)
    screenshot(page, "second-factor")
    field(dialog, "Code").fill(one_time_codes.wrong_code(secret, now))
    button(dialog, "Continue").click()
    expect(dialog.get_by_text("This code is wrong, or was used already.")).to_be_visible()
    field(dialog, "Code").fill(one_time_codes.code(secret, int(time.time() * 1000)))
    button(dialog, "Continue").click()
    expect_open(page)
    lock(page)
    unlock(page)
    expect(dialog).to_be_visible()
    field(dialog, "Code").fill(codes[0])
    button(dialog, "Continue").click()
    expect(page.get_by_text("Everything is synced")).to_be_visible()


def test_a_lost_password_is_replaced_by_the_recovery_key(pages: Pages, server: Server) -> None:
    """A typo is named with its group, an old key is a sentence; the right one opens the account with a new password."""
    email = account(server)
    with device(server, email) as client:
        old, key = client.make_recovery_key(PASSWORD), client.make_recovery_key(PASSWORD)
    page = pages.open()
    button(page, "I have lost my password").click()
    check_accessibility(page)
    screenshot(page, "recover")
    field(page, "Email").fill(email)
    field(page, "Recovery key").fill(key[:-1] + ("0" if key[-1] != "0" else "1"))
    field(page, "New master password").fill("another password of theirs")
    field(page, "The same password again").fill("another password of theirs")
    button(page, "Open the account").click()
    expect(
        page.get_by_text("Recovery key has a typo, most likely in group 9; compare it with the print.")
    ).to_be_visible()
    field(page, "Recovery key").fill(old)
    button(page, "Open the account").click()
    expect(page.get_by_text("This recovery key does not open this account")).to_be_visible()
    field(page, "Recovery key").fill(key.lower().replace("-", " "))
    button(page, "Open the account").click()
    expect_open(page)
    with Client(url_of(server)) as client:
        client.login(email, "another password of theirs")


def test_offline_it_unlocks_from_the_device(lone: Server, make_pages: MakePages) -> None:
    """With the server gone, the password opens what is on the device; a wrong one does not; later it syncs."""
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    enter(page, email)
    lock(page)
    lone.end()
    unlock(page, "not the password")
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    unlock(page)
    expect(page.locator(".shell")).to_be_visible()
    expect(page.get_by_text("The server cannot be reached. You can go on")).to_be_visible()
    expect(page.get_by_role("link", name="Personal")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "offline")
    lone.settings["PORT"] = str(lone.port)
    lone.start()
    again = button(page, "Try again")
    again.evaluate_all("(found) => found.forEach((one) => one.click())")  # gone where the app has tried by itself
    expect_open(page)
    pages.forgive(AWAY)


@on_a_file
def test_data_that_the_browser_has_deleted_is_said(pages: Pages, server: Server) -> None:
    """Where the browser has made room, the app says so, and a log-in fetches everything again."""
    email, page = account(server), pages.open()
    enter(page, email)
    lock(page)
    [replica] = [name for name in databases(page) if name != "strongroom sessions"]
    page.evaluate(
        """(name) => new Promise((done) => { indexedDB.deleteDatabase(name).onsuccess = () => done(true); })""", replica
    )
    unlock(page)
    expect(page.get_by_text("The browser has deleted your data from this device")).to_be_visible()
    enter(page, email)
    expect(page.get_by_role("link", name="Personal")).to_be_visible()


def test_a_passkey_unlocks(lone: Server, make_pages: MakePages) -> None:
    """Added in the settings it comes with recovery codes; then one touch unlocks, and it is a second factor."""
    lone.start()
    lone.end()
    lone.settings |= {"PORT": str(lone.port), "PUBLIC_URL": f"http://localhost:{lone.port}"}
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    tools = pages.context.new_cdp_session(page)
    tools.send("WebAuthn.enable")
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True, "hasPrf": True,
    }  # fmt: skip
    tools.send("WebAuthn.addVirtualAuthenticator", {"options": options})
    enter(page, email)
    settings(page, "passkeys")
    button(page, "Add a passkey").click()
    field(page, "Name").fill("this browser")
    field(page, "Your current password").fill(PASSWORD)
    button(page, "Continue").click()
    expect(heading(page, "Recovery codes")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "recovery-codes")
    page.get_by_label("I have kept them").check()
    button(page, "Done").click()
    expect(page.get_by_text("unlocks", exact=True)).to_be_visible()
    screenshot(page, "settings-passkeys")
    lock(page)
    button(page, "Unlock with a passkey").click()
    expect_open(page)
    lock(page)
    unlock(page)
    button(page, "Use a passkey instead").click()
    expect(page.get_by_text("Everything is synced")).to_be_visible()


@on_a_file
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_before_the_account_is_accessible(server: Server, make_pages: MakePages, scheme: str) -> None:
    """Axe finds nothing on any of them, in either colour scheme."""
    pages = make_pages(server, color_scheme=scheme)
    page = pages.open()
    check_accessibility(page)
    screenshot(page, f"log-in-{scheme}")
    for name in ("Create an account", "I have lost my password", "Move an account here from another server"):
        button(page, name).click()
        expect(page.locator("form")).to_be_visible()
        check_accessibility(page)
        screenshot(page, f"{name.lower().replace(' ', '-')}-{scheme}")
        button(page, "I have an account" if name == "Create an account" else "Back").click()
    enter(page, account(server))
    lock(page)
    check_accessibility(page)
    screenshot(page, f"locked-{scheme}")


@on_a_file
def test_nothing_secret_is_kept_or_sent(pages: Pages, server: Server) -> None:
    """Requests, storage, databases, caches, address, title and console have no password, key, name or email."""
    sent: list[str] = []
    pages.context.on(
        "request", lambda one: sent.append(f"{one.url} {json.dumps(one.all_headers())} {one.post_data or ''}")
    )
    heard: list[str] = []
    pages.context.on("console", lambda one: heard.append(one.text))
    page, email = pages.open(), unique_email()
    key = sign_up(page, email, "canary of a password 7291")
    expect_open(page)
    stored = page.evaluate(
        """async () => {
          const found = [JSON.stringify({ ...localStorage }), JSON.stringify({ ...sessionStorage }), document.cookie];
          const spell = (value) => value instanceof ArrayBuffer || ArrayBuffer.isView(value)
            ? new TextDecoder("latin1").decode(value)
            : value instanceof CryptoKey ? `key, extractable: ${value.extractable}`
            : typeof value === "object" && value !== null ? Object.values(value).map(spell).join(" ") : String(value);
          for (const { name } of await indexedDB.databases()) {
            const database = await new Promise((done) => {
              const opening = indexedDB.open(name);
              opening.onsuccess = () => done(opening.result);
            });
            for (const store of database.objectStoreNames) {
              const all = await new Promise((done) => {
                const reading = database.transaction(store).objectStore(store).getAll();
                reading.onsuccess = () => done(reading.result);
              });
              found.push(...all.map(spell));
            }
            database.close();
          }
          for (const name of await caches.keys()) {
            const cache = await caches.open(name);
            for (const one of await cache.keys()) found.push(one.url, await (await cache.match(one)).text());
          }
          return found;
        }"""
    )
    whole = "\n".join([*sent, *heard, *stored, page.url, page.title()])
    assert "strongroom-web" in whole, "nothing was looked at"
    assert "extractable: false" in whole
    assert "extractable: true" not in whole
    for secret in ("canary of a password", key, key[4:18]):
        assert secret not in whole
    everything_but_sent = "\n".join([*heard, *stored, page.url, page.title()])
    assert email not in everything_but_sent
    bodies = "\n".join(sent)
    for name in ("Personal", "items"):
        assert f'"{name}"' not in bodies
    assert page.title() == "strongroom"
    with Client(url_of(server)) as client, pytest.raises(Refusal):
        client.login(email, "canary of a password")
