"""What takes long or is cut off: many items with progress, a server that is killed or restored, work without it."""

from __future__ import annotations

from contextlib import closing
from typing import Any

from playwright.sync_api import Route, expect

from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import (
    AWAY,
    BrowserUser,
    account,
    back_up,
    button,
    choose,
    device,
    edit,
    enter,
    expect_open,
    field,
    heading,
    held,
    lock,
    restore,
    row,
    settings,
    shown_progress,
    unlock,
    watch_progress,
)

MANY = 450


def stop(server: Server) -> None:
    """Kill a server, which begins again on the same port."""
    server.process.kill()
    server.process.wait()
    server.settings["PORT"] = str(server.port)


def test_many_items_come_and_go(lone: Server, make_pages: MakePages) -> None:
    """An import, a first sync and an export show their progress; a server that is killed meanwhile has each once."""
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    watch_progress(page)
    enter(page, email)
    settings(page, "transfer")
    with page.expect_file_chooser() as chooser:
        button(page, "Choose a file").click()
    lines = "".join(f"Item {at},https://{at}.example,ada,secret {at}\n" for at in range(MANY))
    content = f"name,url,username,password\n{lines}".encode()
    chooser.value.set_files({"name": "passwords.csv", "mimeType": "text/csv", "buffer": content})
    button(page, "Show what would come").click()
    with held(page, "**/batch") as sent:
        button(page, f"Import {MANY} items").click()
        expect(page.get_by_text(f"{MANY} items were imported.")).to_be_visible()
        assert f"200 of {MANY}" in shown_progress(page)
        until(lambda: page.evaluate("1") and sent, "a request with items")
        for route in sent:  # the server has it, and the browser does not hear of that
            route.fetch()
        stop(lone)
    expect(page.get_by_text("The server cannot be reached. You can go on")).to_be_visible()
    lone.start()
    expect(page.get_by_text("Everything is synced")).to_be_visible()
    with device(lone, email) as other:
        titles = [one.value["title"] for one in other.vault("Personal").collection("items")]
    assert sorted(titles) == sorted(["From Python", *(f"Item {at}" for at in range(MANY))])

    page.evaluate("window.progress = []")
    with page.expect_download() as download:
        button(page, "Write the file").click()
    assert f"secret {MANY - 1}" in download.value.path().read_text("utf-8")
    assert "Read: 200" in shown_progress(page)

    second = make_pages(lone).open()
    watch_progress(second)
    enter(second, email)
    told = [text for text in shown_progress(second) if text.startswith("Fetching your data: ")]
    assert told, shown_progress(second)
    assert any(f"of {MANY + 1}" in text or text == f"Fetching your data: {MANY + 1}" for text in told), told
    pages.forgive(AWAY)


def test_a_day_without_the_server(lone: Server, make_pages: MakePages) -> None:
    """Without it, the app starts, unlocks, makes, edits, moves and deletes; all of it arrives later."""
    with closing(BrowserUser(lone.start())) as person:
        for title in ("edited", "deleted", "moved"):
            person.login_item(title)
        pages = make_pages(lone)
        page = person.log_in(pages)
        expect_open(page)
        choose(page, "edited")  # so that everything that is needed is stored
        page.evaluate("navigator.serviceWorker.ready.then(() => true)")
        stop(lone)
        page.reload()  # the server's share of the key is missing
        expect(page.get_by_text("Your password unlocks what is on this device.")).to_be_visible()
        unlock(page)
        expect(page.get_by_text("The server cannot be reached. You can go on")).to_be_visible()
        lock(page)
        unlock(page)
        choose(page, "edited")
        edit(page, Username="changed offline")
        choose(page, "deleted")
        page.keyboard.press("Delete")
        expect(row(page, "deleted")).to_have_count(0)
        page.get_by_role("button", name="New vault").first.click()
        page.get_by_role("textbox", name="Name").fill("Made offline")
        page.get_by_role("button", name="Make", exact=True).click()
        expect(page.get_by_role("link", name="Made offline")).to_be_visible()
        page.get_by_role("button", name="New item").first.click()
        page.get_by_label("Title").fill("new")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.get_by_role("heading", level=1, name="new")).to_be_visible()
        page.get_by_role("navigation", name="Navigation").first.get_by_role("link", name="All items").click()
        choose(page, "moved")
        page.keyboard.press("m")
        page.get_by_role("dialog").get_by_label("Vault").select_option("Made offline")
        page.get_by_role("dialog").get_by_role("button", name="Move").click()
        expect(page.get_by_text("1 item moved.")).to_be_visible()
        screenshot(page, "day-without-server")
        check_accessibility(page)
        lone.start()
        expect(page.get_by_text("Everything is synced")).to_be_visible()
        assert [one.value.title for one in person.items.list()] == ["edited"]
        assert person.login("edited").username == "changed offline"
        made = person.client.items("Made offline")
        assert sorted(one.value.title for one in made.list()) == ["moved", "new"]
        pages.forgive(AWAY)


def test_a_backup_of_before_the_password(lone: Server, make_pages: MakePages) -> None:
    """A restored server that knows an older password is named as such, and what the app says to do mends it."""
    pages = make_pages(lone.start())
    email, page = account(lone), pages.open()
    enter(page, email)
    back_up(lone)
    settings(page, "password")

    def change(old: str, new: str) -> None:
        button(page, "Change the password").click()
        dialog = page.get_by_role("dialog")
        field(dialog, "New master password").fill(new)
        field(dialog, "The same password again").fill(new)
        field(dialog, "Your current password").fill(old)
        if old == PASSWORD and new == "a third password of theirs":
            dialog.get_by_label("The server was restored from a backup").check()
            screenshot(page, "password-restored")
        button(dialog, "Change it").click()
        expect(page.get_by_text("The password was changed.").last).to_be_visible()

    change(PASSWORD, "another password of theirs")
    restore(lone)
    expect(heading(page, "The server was restored from an old backup")).to_be_visible()
    expect(page.get_by_text("Nothing on this device was overwritten")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "lie-credentials")
    change(PASSWORD, "a third password of theirs")
    expect_open(page)
    with device(lone, email, "a third password of theirs") as other:
        assert [vault.name for vault in other.vaults()] == ["Personal"]
    pages.forgive(AWAY)


@on_a_file
def test_a_forged_document_is_a_sentence(person: BrowserUser, pages: Pages) -> None:
    """Altered content is refused by name, what is here stays, and the true one comes once the server is honest."""
    person.login_item("GitHub")
    page = person.log_in(pages)
    expect_open(page)
    choose(page, "GitHub")

    def alter(route: Route) -> None:
        response = route.fetch()
        body: Any = response.json() if response.ok else {}
        for one in body.get("documents", []):
            if one["data"]:
                one["data"] = one["data"][:-8] + ("AAAAAAAA" if one["data"][-8:] != "AAAAAAAA" else "BBBBBBBB")
        route.fulfill(response=response, json=body)

    page.route("**/documents?*", alter)
    person.change("GitHub", username="grace")
    expect(heading(page, "The server sent something that is not yours")).to_be_visible()
    expect(page.get_by_text("Nothing on this device was overwritten")).to_be_visible()
    expect(page.locator(".itemView")).to_contain_text("ada")
    page.unroute("**/documents?*")
    button(page, "Try again").click()
    expect(page.locator(".itemView")).to_contain_text("grace")
    expect_open(page)
