"""Time in the web app: history, trash, undo, conflicts, what waits, and changes of other devices as they come."""

from __future__ import annotations

import re
from contextlib import closing

import pytest
from playwright.sync_api import APIResponse, Route, expect

from strongroom.items import Login
from strongroom.items.types import Field
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.people.credentials import PASSWORD
from tests.kit.servers.process import Server, on_a_file
from tests.web.page_helpers import BLOCKED, OFFLINE, BrowserUser, choose, edit, held, row, wait_for, wide

# Waits until what a component does after it is drawn has been done.
_DRAWN = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"


def test_history_and_trash(person: BrowserUser, pages: Pages) -> None:
    """Versions are compared with secrets hidden, and restored; what was deleted comes back, or goes for good."""
    person.login_item("GitHub")
    person.change("GitHub", username="grace", password="new secret")
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.keyboard.press("h")
    expect(page.get_by_role("heading", name="What changed after version 1")).to_be_visible()
    table = page.locator(".differences")
    expect(table).to_contain_text("ada")
    expect(table).to_contain_text("grace")
    assert "new secret" not in page.content()
    assert "correct horse" not in page.content()
    check_accessibility(page)
    screenshot(page, "history")
    page.get_by_role("button", name="Show Password").click()
    expect(table).to_contain_text("new secret")
    page.get_by_role("button", name="Restore this version").click()
    expect(page.get_by_text("The version is restored.")).to_be_visible()
    wait_for(lambda: person.items.find("GitHub").version == 3)
    assert (person.login("GitHub").username, person.login("GitHub").password) == ("ada", "correct horse")

    page.keyboard.press("Delete")
    wait_for(lambda: person.items.list() == [])
    person.items.delete(person.items.create(Login(title="Second")))
    page.get_by_role("link", name="Trash").first.click()
    expect(page.get_by_role("listitem").filter(has_text="GitHub")).to_be_visible()
    check_accessibility(page)
    screenshot(page, "trash")
    page.get_by_role("listitem").filter(has_text="GitHub").get_by_role("button", name="Restore").click()
    wait_for(lambda: [one.value.title for one in person.items.list()] == ["GitHub"])
    page.get_by_role("button", name="Delete for good: Second").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete for good").click()
    expect(page.get_by_text("The trash is empty")).to_be_visible()
    person.items.delete(person.items.find("GitHub"))
    page.get_by_role("link", name="All items").first.click()
    page.get_by_role("link", name="Trash").first.click()
    page.get_by_role("button", name="Empty the trash").click()
    page.get_by_role("dialog").get_by_role("button", name="Empty the trash").click()
    expect(page.get_by_text("The trash is empty")).to_be_visible()
    assert [one for one in person.client.vault("Personal").trash if not one.purged] == []


@on_a_file
def test_emptying_the_trash_takes_what_is_listed(person: BrowserUser, pages: Pages) -> None:
    """What another device deletes after the list was read is not deleted for good with the others."""
    for title in ("listed", "deleted later"):
        person.login_item(title)
    person.items.delete(person.items.find("listed"))
    page = person.log_in(pages)
    answers: dict[str, APIResponse] = {}

    def again(route: Route) -> None:
        """Answer as the first time: the list that is shown stays as it is."""
        if route.request.url not in answers:
            answers[route.request.url] = route.fetch()
        route.fulfill(response=answers[route.request.url])

    page.route(re.compile("deleted=only"), again)
    page.get_by_role("link", name="Trash").first.click()
    expect(page.get_by_role("listitem").filter(has_text="listed")).to_be_visible()
    expect(page.locator(".navCount")).to_have_text(["1"])
    page.get_by_role("button", name="Empty the trash").click()
    person.items.delete(person.items.find("deleted later"))
    expect(page.locator(".navCount")).to_have_count(0)  # the page has heard of it
    page.get_by_role("dialog").get_by_role("button", name="Empty the trash").click()
    expect(page.get_by_text("1 document is deleted for good.")).to_be_visible()
    left = [one.uid for one in person.client.vault("Personal").trash if not one.purged]
    assert len(left) == 1


def test_two_browsers_and_a_python_device_in_conflict(
    server: Server, person: BrowserUser, make_pages: MakePages
) -> None:
    """Base, mine and theirs stand side by side; a person chooses by field, keeps one, or both. Nothing is lost."""
    for title in ("merged", "both", "theirs"):
        person.login_item(title)
    one = make_pages(server, service_workers="block")
    page = person.log_in(one)
    other = person.log_in(make_pages(server))
    page.goto(f"{one.url}/app/#/conflicts")  # so that the view is here
    expect(page.get_by_text("There are no conflicts")).to_be_visible()
    page.goto(f"{one.url}/app/#/items")
    choose(page, "merged")
    one.context.set_offline(True)
    edit(page, Username="mine", Notes="a note of mine")
    for title in ("both", "theirs"):
        choose(page, title)
        edit(page, Username="mine")
    person.change("merged", username="theirs", password="of python")
    person.change("theirs", username="of python")
    choose(other, "both")
    edit(other, Username="of the other browser")
    wait_for(lambda: person.login("both").username == "of the other browser")
    one.context.set_offline(False)
    one.forgive(OFFLINE)
    one.forgive(BLOCKED)
    page.goto(f"{one.url}/app/#/conflicts")
    expect(page.locator(".conflict")).to_have_count(3)
    card = page.get_by_role("region", name="merged")
    for text in ("ada", "mine", "theirs", "a note of mine"):
        expect(card).to_contain_text(text)
    assert "of python" not in card.inner_text()  # it is a password
    check_accessibility(page)
    screenshot(page, "conflicts")
    page.set_viewport_size({"width": 390, "height": 844})
    assert wide(page) == []
    screenshot(page, "phone-conflicts")
    page.set_viewport_size({"width": 1280, "height": 800})
    card.get_by_role("radio", name="Which one counts: Username: Elsewhere").check()
    card.get_by_role("button", name="Save the choice").click()
    page.get_by_role("region", name="both").get_by_role("button", name="Keep both").click()
    page.get_by_role("region", name="theirs").get_by_role("button", name="Keep theirs").click()
    expect(page.get_by_text("There are no conflicts")).to_be_visible()
    wait_for(lambda: person.login("merged").notes != "" and len(person.items.list()) == 4)
    merged = person.login("merged")
    assert (merged.username, merged.password, merged.notes) == ("theirs", "of python", "a note of mine")
    names = sorted(doc.value.username for doc in person.items.list() if doc.value.title == "both")  # type: ignore[attr-defined]
    assert names == ["mine", "of the other browser"]
    assert person.login("theirs").username == "of python"


@on_a_file
def test_each_choice_of_a_conflict_is_its_own(server: Server, person: BrowserUser, make_pages: MakePages) -> None:
    """Fields of the same name, and the same field of two items, are chosen apart; two types are not mixed by field."""
    for title in ("one", "two"):
        person.login_item(title, fields=[Field(label="PIN", value="was 1"), Field(label="PIN", value="was 2")])
    other = person.login_item("other kind")
    pages = make_pages(server, service_workers="block")
    page = person.log_in(pages)
    page.goto(f"{pages.url}/app/#/conflicts")
    expect(page.get_by_text("There are no conflicts")).to_be_visible()
    page.goto(f"{pages.url}/app/#/items")
    choose(page, "one")
    pages.context.set_offline(True)
    for title in ("one", "two"):
        choose(page, title)
        page.get_by_role("button", name="Edit").click()
        for at in range(2):
            page.get_by_role("textbox", name="Value").nth(at).fill(f"mine {at + 1}")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".itemView")).to_contain_text("mine 2")
        person.change(title, fields=[Field(label="PIN", value="theirs 1"), Field(label="PIN", value="theirs 2")])
    choose(page, "other kind")
    edit(page, Username="mine")
    collection = person.client.vault("Personal").collection("items")
    collection.replace(collection.get(other), {"type": "note", "title": "other kind", "notes": "theirs"})
    pages.context.set_offline(False)
    pages.forgive(OFFLINE)
    pages.forgive(BLOCKED)
    page.goto(f"{pages.url}/app/#/conflicts")
    expect(page.locator(".conflict")).to_have_count(3)
    cards = [page.get_by_role("region", name=title) for title in ("one", "two")]
    for card in cards:
        expect(card.get_by_role("radio", name="Elsewhere")).to_have_count(2)
    cards[0].get_by_role("radio", name="Elsewhere").nth(1).check()
    cards[1].get_by_role("radio", name="Elsewhere").nth(0).check()
    for card, chosen in zip(cards, ([False, True], [True, False]), strict=True):
        for at, is_theirs in enumerate(chosen):
            expect(card.get_by_role("radio", name="Elsewhere").nth(at)).to_be_checked(checked=is_theirs)
            expect(card.get_by_role("radio", name="This device").nth(at)).to_be_checked(checked=not is_theirs)
    card = page.get_by_role("region", name="other kind")
    expect(card.get_by_role("button", name="Save the choice")).to_have_count(0)
    card.get_by_role("button", name="Keep theirs").click()
    for card in cards:
        card.get_by_role("button", name="Save the choice").click()
    expect(page.get_by_text("There are no conflicts")).to_be_visible()
    wait_for(lambda: all(person.items.find(title).version == 3 for title in ("one", "two")))
    assert [[field.value for field in person.login(title).fields] for title in ("one", "two")] == [
        ["mine 1", "theirs 2"],
        ["theirs 1", "mine 2"],
    ]
    assert collection.get(other).value == {"type": "note", "title": "other kind", "notes": "theirs"}


@on_a_file
def test_changes_of_other_devices(person: BrowserUser, pages: Pages) -> None:
    """They appear by themselves. An open editor is told, nothing is overwritten, and both changes can be taken."""
    person.login_item("GitHub")
    page = person.log_in(pages)
    choose(page, "GitHub")
    person.change("GitHub", username="grace")
    expect(page.locator(".itemView")).to_contain_text("grace")
    person.login_item("Another")
    expect(row(page, "Another")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Notes", exact=True).fill("mine")
    person.change("GitHub", username="theirs", tags=["new"])
    expect(page.get_by_role("alert")).to_contain_text("changed on another device while you edit it")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("Nothing was overwritten: look at it")).to_be_visible()
    assert (person.login("GitHub").username, person.login("GitHub").notes) == ("theirs", "")
    check_accessibility(page)
    screenshot(page, "editor-told")
    page.get_by_role("button", name="Take both changes").click()
    expect(page.get_by_label("Username")).to_have_value("theirs")
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: person.login("GitHub").notes == "mine")
    found = person.login("GitHub")
    assert (found.username, found.notes, found.tags) == ("theirs", "mine", ["new"])
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Notes", exact=True).fill("kept although deleted")
    person.items.delete(person.items.find("GitHub"))
    expect(page.get_by_role("alert")).to_contain_text("deleted on another device while you edit it")
    page.get_by_role("button", name="Make it anew with my changes").click()
    page.get_by_role("button", name="Save", exact=True).click()
    wait_for(lambda: any(one.value.notes == "kept although deleted" for one in person.items.list()))


@on_a_file
def test_a_draft_is_kept(person: BrowserUser, pages: Pages) -> None:
    """What is typed and not saved is there again after a look at something else, and gone after a lock."""
    person.login_item("GitHub")
    person.login_item("Another")
    page = person.log_in(pages)
    choose(page, "GitHub")
    page.get_by_role("button", name="Edit").click()
    page.get_by_label("Username", exact=True).fill("unsaved")
    row(page, "Another").click()
    row(page, "GitHub").click()
    page.get_by_role("link", name="You have changes here that are not saved").click()
    expect(page.get_by_label("Username")).to_have_value("unsaved")
    assert person.login("GitHub").username == "ada"
    page.get_by_role("button", name="Lock").first.click()
    expect(page.get_by_role("button", name="Unlock", exact=True)).to_be_visible()
    assert "unsaved" not in page.content()
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Unlock", exact=True).click()
    choose(page, "GitHub")
    expect(page.get_by_role("link", name="You have changes here that are not saved")).to_have_count(0)


@on_a_file
def test_an_editor_that_appears_late_takes_no_focus(server: Server, person: BrowserUser, make_pages: MakePages) -> None:
    """Who types a search while the editor is still loading goes on typing there: nothing lands in the item."""
    person.login_item("GitHub")
    pages = make_pages(server, service_workers="block")
    page = person.log_in(pages)
    choose(page, "GitHub")
    [part] = [path for path in (web_app.app_folder() / "assets").glob("*.js") if '"itemEditor"' in path.read_text()]
    late = pages.context.new_page()
    with held(late, f"**/{part.name}"):
        late.goto(f"{page.url}/edit")
        search = late.get_by_role("searchbox", name="Search")
        search.press_sequentially("Git")
    expect(late.get_by_label("Username")).to_be_visible()
    late.evaluate(_DRAWN)
    expect(search).to_be_focused()
    late.keyboard.type("Hub")
    expect(search).to_have_value("GitHub")
    expect(late.get_by_label("Title")).to_have_value("GitHub")
    pages.forgive(BLOCKED)


@on_a_file
def test_what_is_not_sent(server: Server, person: BrowserUser, make_pages: MakePages) -> None:
    """Offline, changes wait and are named; back online they are sent by themselves."""
    person.login_item("GitHub")
    pages = make_pages(server, service_workers="block")
    page = person.log_in(pages)
    page.goto(f"{pages.url}/app/#/waiting")
    expect(page.get_by_role("heading", name="Not sent yet")).to_be_visible()
    page.goto(f"{pages.url}/app/#/items")
    choose(page, "GitHub")
    pages.context.set_offline(True)
    edit(page, Username="written on a train")
    expect(page.get_by_text("1 change not sent").or_(page.get_by_text("Offline")).first).to_be_visible()
    page.get_by_role("link", name="Not sent").first.click()
    expect(page.get_by_role("link", name="GitHub")).to_be_visible()
    expect(page.locator("main")).to_contain_text("1 change is sent as soon as the server can be reached")
    check_accessibility(page)
    screenshot(page, "waiting")
    assert person.login("GitHub").username == "ada"
    pages.context.set_offline(False)
    wait_for(lambda: person.login("GitHub").username == "written on a train")
    pages.forgive(OFFLINE)
    pages.forgive(BLOCKED)
    expect(page.get_by_text("Everything is sent").first).to_be_visible()


@pytest.fixture
def small(lone: Server) -> Server:
    """A server on which an account may have three documents."""
    lone.settings["QUOTA_DOCUMENTS"] = "3"
    return lone.start()


def test_a_full_quota(small: Server, make_pages: MakePages) -> None:
    """A change that the server refuses is named with the reason, and can be discarded; the others are sent."""
    with closing(BrowserUser(small)) as person:
        for title in ("one", "two", "three"):
            person.login_item(title)
        pages = make_pages(small)
        page = person.log_in(pages)
        page.get_by_role("button", name="New item").click()
        page.get_by_label("Title").fill("too much")
        page.get_by_role("button", name="Save", exact=True).click()
        expect(page.locator(".itemView")).to_contain_text("This change is not sent")
        choose(page, "one")
        edit(page, Username="changed")
        wait_for(lambda: person.login("one").username == "changed")
        page.get_by_role("link", name="Not sent").first.click()
        line = page.get_by_role("listitem").filter(has_text="too much")
        expect(line).to_contain_text("quota is used up")
        check_accessibility(page)
        screenshot(page, "refused")
        line.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name="Discard the change").click()
        page.get_by_role("dialog").get_by_role("button", name="Discard the change").click()
        expect(page.get_by_text("Everything is sent").first).to_be_visible()
        assert len(person.items.list()) == 3
        pages.forgive("507")


def test_a_move_that_a_full_quota_refuses(small: Server, make_pages: MakePages) -> None:
    """An item that does not fit into the other vault stays where it was, and a notice says so."""
    with closing(BrowserUser(small)) as person:
        for title in ("one", "two", "three"):
            person.login_item(title)
        other = person.client.items("Other", create=True)
        pages = make_pages(small)
        page = person.log_in(pages)
        choose(page, "one")
        page.keyboard.press("m")
        page.get_by_role("dialog").get_by_label("Vault").select_option("Other")
        page.get_by_role("dialog").get_by_role("button", name="Move").click()
        expect(page.get_by_text("An item was not moved to the other vault")).to_be_visible()
        expect(page.get_by_text("Everything is synced").first).to_be_visible()
        assert sorted(one.value.title for one in person.items.list()) == ["one", "three", "two"]
        assert other.list() == []
        expect(row(page, "one")).to_have_count(1)
        pages.forgive("507")
