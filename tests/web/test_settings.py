"""The settings of the web app: every section does what it says, is accessible, and fits a desktop and a phone."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from strongroom.client import Client, Refusal
from tests.client.both_clients import PASSWORD
from tests.contract.harness import Server, on_a_file
from tests.support import one_time_codes
from tests.support.sampling import one_of
from tests.support.web_app import PHONE, MakePages, Pages, check_accessibility, screenshot
from tests.support.web_person import (
    account,
    button,
    confirm_sheet,
    enter,
    expect_open,
    field,
    heading,
    lock,
    log_in,
    settings,
    tolerate,
    unlock,
    url_of,
)

SECTIONS = (
    *("appearance", "password", "second-factor", "passkeys", "devices", "tokens", "activity", "usage", "rotation"),
    *("transfer", "move"),
)


@on_a_file
@pytest.mark.parametrize(("scheme", "size"), one_of(itertools.product(("light", "dark"), ("desktop", "phone"))))
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
    """The list names this browser and another device, and ends the other one."""
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


@contextmanager
def device(server: Server, email: str) -> Iterator[Client]:
    """Another device that has logged in."""
    with Client(url_of(server)) as client:
        client.login(email, PASSWORD)
        yield client


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


@on_a_file
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
    tolerate(pages, "Failed to load resource")


@on_a_file
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
    tolerate(pages, "Failed to load resource")


@on_a_file
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
    """Everything is under new keys and a new password, tokens are revoked, and the app goes on."""
    email, page = account(server), pages.open()
    with device(server, email) as other:
        other.vault("Personal").token("an agent")
    enter(page, email)
    settings(page, "rotation")
    button(page, "Make new keys").click()
    dialog = page.get_by_role("dialog")
    field(dialog, "New master password").fill("another password of theirs")
    field(dialog, "The same password again").fill("another password of theirs")
    field(dialog, "Your current password").fill(PASSWORD)
    button(dialog, "Make new keys").click()
    expect(page.get_by_text("Everything is under new keys.")).to_be_visible()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    page.reload()
    expect_open(page)
    with Client(url_of(server)) as fresh:
        fresh.login(email, "another password of theirs")
        assert fresh.api_keys() == []
        [document] = fresh.vault("Personal").collection("items")
        assert document.value["title"] == "From Python"
    tolerate(pages, "Failed to load resource")


@on_a_file
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
    tolerate(new_pages, "Failed to load resource")
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
    tolerate(pages, "Failed to load resource")
