"""The settings of the web app: every section does what it says, is accessible, and fits a desktop and a phone."""

from __future__ import annotations

import itertools
import time

import pytest
from playwright.sync_api import expect

from strongroom.client import Client, Refusal
from tests.kit.browsers.web_app import PHONE, MakePages, Pages, check_accessibility, screenshot
from tests.kit.people import one_time_codes
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import (
    AWAY,
    LOCKED,
    account,
    button,
    confirm_sheet,
    device,
    enter,
    expect_open,
    field,
    heading,
    lock,
    log_in,
    saved_sessions,
    settings,
    shown_progress,
    unlock,
    url_of,
    watch_progress,
)

SECTIONS = (
    *("appearance", "password", "second-factor", "passkeys", "devices", "tokens", "activity", "usage", "rotation"),
    *("transfer", "move"),
)


@on_a_file
@pytest.mark.parametrize(("scheme", "size"), list(itertools.product(("light", "dark"), ("desktop", "phone"))))
def test_every_section_is_accessible(server: Server, make_pages: MakePages, scheme: str, size: str) -> None:
    """Axe finds nothing in any of them, and nothing is wider than the page."""
    options = {"viewport": PHONE, "has_touch": True, "is_mobile": True} if size == "phone" else {}
    pages = make_pages(server, color_scheme=scheme, **options)
    page = pages.open()
    enter(page, account(server))
    page.evaluate("location.hash = '#/settings'")
    expect(heading(page, "Settings")).to_be_visible()
    check_accessibility(page)
    screenshot(page, f"settings-{scheme}-{size}")
    for section in SECTIONS:
        settings(page, section)
        expect(page.get_by_text("Loading…")).to_have_count(0)
        check_accessibility(page)
        screenshot(page, f"settings-{section}-{scheme}-{size}")
        for part in ("html", ".columnDetail"):
            assert page.locator(part).evaluate("(one) => one.scrollWidth <= one.clientWidth"), (section, part)


def test_a_session_is_ended(pages: Pages, server: Server) -> None:
    """The list names this browser and another device, and ends the other one; the log has all of it."""
    email, page = account(server), pages.open()
    enter(page, email)
    with Client(url_of(server), device_name="a lost phone") as client:
        client.login(email, PASSWORD)
        settings(page, "devices")
        row = page.get_by_role("listitem").filter(has_text="a lost phone")
        expect(page.get_by_role("listitem").filter(has_text="strongroom web app")).to_contain_text("this one")
        button(row, "End").click()
        button(page.get_by_role("dialog"), "End").click()
        expect(row).to_have_count(0)
        with pytest.raises(Refusal):
            client.vaults()
    settings(page, "activity")
    for event in ("A session ended", "Logged in", "The account was created"):
        expect(page.get_by_role("cell", name=event).first).to_be_visible()


def test_a_token_opens_what_the_dialogue_says(pages: Pages, server: Server) -> None:
    """It reads the collection and nothing else, is shown once, is listed with its scope, and can be revoked."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "tokens")
    button(page, "Make a token").click()
    dialog = page.get_by_role("dialog")
    field(dialog, "Name").fill("weekly report")
    expect(dialog.get_by_text("Whoever has this token can read everything in the collection “items”")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "token-new")
    button(dialog, "Make the token").click()
    token = dialog.get_by_role("textbox", name="Token").inner_text()
    assert token.startswith("srv_")
    check_accessibility(page)
    screenshot(page, "token-ready")
    with Client.with_token(url_of(server), token) as agent:
        assert [one.value["title"] for one in agent.collection()] == ["From Python"]
    button(dialog, "Done").click()
    assert token not in page.content()
    row = page.get_by_role("listitem").filter(has_text="weekly report")
    expect(row).to_contain_text("May read in the vault “Personal”, one collection of it")
    screenshot(page, "tokens")
    button(row, "Revoke").click()
    button(page.get_by_role("dialog"), "Revoke").click()
    expect(row).to_have_count(0)
    with device(server, email) as other:
        assert other.api_keys() == []


def test_the_password_is_changed(pages: Pages, server: Server) -> None:
    """A wrong current password is a sentence; then the old one opens nothing, in this browser neither."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "password")
    button(page, "Change the password").click()
    dialog = page.get_by_role("dialog")
    field(dialog, "New master password").fill("another password of theirs")
    field(dialog, "The same password again").fill("another password of theirs")
    field(dialog, "Your current password").fill("not the password")
    screenshot(page, "password-change")
    button(dialog, "Change it").click()
    expect(dialog.get_by_text("The password is wrong.")).to_be_visible()
    field(dialog, "Your current password").fill(PASSWORD)
    button(dialog, "Change it").click()
    expect(page.get_by_text("The password was changed.")).to_be_visible()
    lock(page)
    unlock(page)
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    unlock(page, "another password of theirs")
    expect_open(page)
    pages.forgive(AWAY)


def test_a_recovery_key_is_made_anew(pages: Pages, server: Server) -> None:
    """It is shown once, to be confirmed, and it opens the account."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "password")
    expect(page.get_by_text("There is no recovery key.")).to_be_visible()
    button(page, "Make a recovery key").click()
    field(page, "Your current password").fill(PASSWORD)
    button(page, "Continue").click()
    key = confirm_sheet(page)
    expect(page.get_by_text("The new recovery key is in force.")).to_be_visible()
    expect(button(page, "Make a new recovery key")).to_be_visible()
    with Client(url_of(server)) as client:
        client.recover(email, key, "another password of theirs")
    pages.forgive(AWAY)


@on_a_file
def test_a_recovery_key_that_nobody_confirmed(pages: Pages, server: Server) -> None:
    """Locked before its sheet was confirmed, the app says so after each unlock and start, until one is confirmed."""
    page = pages.open()
    enter(page, account(server))
    warning = page.get_by_text("nobody has confirmed to have it")

    def make(name: str, password: str = PASSWORD) -> None:
        settings(page, "password")
        button(page, name).click()
        field(page, "Your current password").fill(password)
        button(page, "Continue").click()

    make("Make a recovery key", "not the password")
    expect(page.get_by_text("The password is wrong.")).to_be_visible()
    page.reload()
    expect_open(page)
    expect(warning).to_have_count(0)
    make("Make a recovery key")
    expect(page.locator(".sheetKey")).to_be_visible()
    expect(warning).to_have_count(0)
    page.evaluate("localStorage.setItem('strongroom-web.until', `${Date.now() - 1}`)")
    expect(heading(page, LOCKED)).to_be_visible()
    unlock(page)
    expect(warning).to_be_visible()
    check_accessibility(page)
    screenshot(page, "key-unconfirmed")
    until(lambda: saved_sessions(page) == 1, "the session is saved")
    page.reload()
    expect(warning).to_be_visible()
    button(page, "Make a new one").click()
    make("Make a new recovery key")
    confirm_sheet(page)
    expect(warning).to_have_count(0)
    page.reload()
    expect_open(page)


@on_a_file
def test_a_wide_token_needs_the_password(pages: Pages, server: Server) -> None:
    """Of a whole vault, or without an end, it asks for the password; a copy of it leaves the clipboard, if later."""
    pages.context.clock.install()  # not in an open app, which would lock: for a moment it says 1970
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "tokens")
    button(page, "Make a token").click()
    dialog = page.get_by_role("dialog")
    field(dialog, "Name").fill("wide")
    password = field(dialog, "Your current password")
    expect(password).to_have_count(0)
    field(dialog, "It expires").select_option(label="never")
    expect(password).to_be_visible()
    field(dialog, "It expires").select_option(label="after 30 days")
    expect(password).to_have_count(0)
    field(dialog, "It opens").select_option(label="The whole vault")
    button(dialog, "Make the token").click()
    expect(dialog.get_by_text("Enter your password.")).to_be_visible()
    password.fill("not the password")
    button(dialog, "Make the token").click()
    expect(dialog.get_by_text("The password is wrong.")).to_be_visible()
    with device(server, email) as other:
        assert other.api_keys() == []
    password.fill(PASSWORD)
    button(dialog, "Make the token").click()
    token = dialog.get_by_role("textbox", name="Token").inner_text()
    page.evaluate(
        """() => {
          Object.assign(window, { copied: [], isAway: false });
          navigator.clipboard.writeText = async (text) => {
            if (window.isAway) throw new DOMException("Document is not focused.", "NotAllowedError");
            window.copied.push(text);
          };
        }"""
    )
    button(dialog, "Copy").click()
    until(lambda: page.evaluate("copied") == [token], "the token is copied")
    page.evaluate("isAway = true")
    page.clock.run_for(31_000)
    assert page.evaluate("copied") == [token]
    page.evaluate("isAway = false; dispatchEvent(new Event('focus'))")
    until(lambda: page.evaluate("copied") == [token, ""], "the clipboard is cleared")


def test_one_time_codes_are_enrolled(pages: Pages, server: Server) -> None:
    """The first code turns them on, recovery codes are shown, and the next log-in asks for a code."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "second-factor")
    button(page, "Set up one-time codes").click()
    field(page, "Your current password").fill(PASSWORD)
    button(page, "Continue").click()
    expect(page.get_by_role("img", name="QR code with the secret of the one-time codes")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "second-factor-enrol")
    page.get_by_text("I cannot scan it").click()
    secret = page.locator(".secretBox").inner_text().replace(" ", "")
    field(page, "The code that the app shows now").fill(one_time_codes.code(secret, int(time.time() * 1000), -1))
    button(page, "Turn it on").click()
    expect(heading(page, "Recovery codes")).to_be_visible()
    assert len(page.locator(".codeList li").all_inner_texts()) == 10
    page.get_by_label("I have kept them").check()
    button(page, "Done").click()
    expect(page.get_by_text("10 codes left")).to_be_visible()
    lock(page)
    unlock(page)
    field(page.get_by_role("dialog"), "Code").fill(one_time_codes.code(secret, int(time.time() * 1000)))
    button(page, "Continue").click()
    expect_open(page)


def test_keys_are_made_anew(pages: Pages, server: Server) -> None:
    """Everything is under new keys and a new password, tokens are revoked, and other devices are named."""
    email, page = account(server), pages.open()
    with device(server, email) as other:
        other.vault("Personal").token("an agent")
    with Client(url_of(server), device_name="grandfather's tower") as tower:
        tower.login(email, PASSWORD)
    watch_progress(page)
    enter(page, email)
    settings(page, "rotation")
    button(page, "Make new keys").click()
    dialog = page.get_by_role("dialog")
    field(dialog, "New master password").fill("another password of theirs")
    field(dialog, "The same password again").fill("another password of theirs")
    field(dialog, "Your current password").fill(PASSWORD)
    button(dialog, "Make new keys").click()
    expect(page.get_by_text("Everything is under new keys.")).to_be_visible()
    assert any(text.startswith("Encrypted anew: ") for text in shown_progress(page)), shown_progress(page)
    expect(dialog.get_by_text("These devices have not seen it, as the server reports")).to_be_visible()
    expect(dialog.get_by_text("grandfather's tower")).to_be_visible()
    button(dialog, "Close").last.click()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    page.reload()
    expect_open(page)
    with Client(url_of(server)) as fresh:
        fresh.login(email, "another password of theirs")
        assert fresh.api_keys() == []
        [document] = fresh.vault("Personal").collection("items")
        assert document.value["title"] == "From Python"
    pages.forgive(AWAY)


def test_an_account_moves_to_another_server(lone: Server, pages: Pages, server: Server, make_pages: MakePages) -> None:
    """The file of one server opens on another, with the same password; then the account is deleted on the first."""
    email, page = account(server), pages.open()
    enter(page, email)
    settings(page, "move")
    with page.expect_download() as download:
        button(page, "Export the account").click()
    file = download.value.path()
    new_pages = make_pages(lone.start())
    new_page = new_pages.open()
    button(new_page, "Move an account here from another server").click()
    with new_page.expect_file_chooser() as chooser:
        button(new_page, "Choose the file").click()
    chooser.value.set_files(file)
    field(new_page, "Email").fill(email)
    field(new_page, "Password").fill(PASSWORD)
    button(new_page, "Move the account").click()
    expect_open(new_page)
    expect(new_page.get_by_role("link", name="Personal")).to_be_visible()
    new_pages.forgive(AWAY)
    button(page, "Delete the account").click()
    dialog = page.get_by_role("dialog")
    screenshot(page, "delete-account")
    field(dialog, "Your current password").fill(PASSWORD)
    button(dialog, "Delete the account").click()
    expect(dialog.get_by_text("Type the email of the account to confirm").last).to_be_visible()
    field(dialog, "Type the email of the account to confirm").fill(email)
    button(dialog, "Delete the account").click()
    expect(heading(page, "Log in")).to_be_visible()
    log_in(page, email)
    expect(page.get_by_text("The email or the password is wrong.")).to_be_visible()
    pages.forgive(AWAY)
