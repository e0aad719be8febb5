"""The app starts offline from its own files, and a newer release is loaded when the person agrees."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path

from playwright.sync_api import Page, expect

from strongroom.web_release import SECURITY_HEADERS
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import MakePages, Pages, check_accessibility, screenshot
from tests.kit.browsers.web_release import newer_release
from tests.kit.clients.javascript import served
from tests.kit.network.ports import free_port
from tests.kit.people.credentials import unique_email
from tests.kit.servers.process import Server
from tests.kit.waiting import until
from tests.web.page_helpers import BrowserUser, choose

READY = "navigator.serviceWorker.ready.then(() => true)"
CACHED = """(async () => {
  const found = {};
  for (const name of await caches.keys()) {
    found[name] = (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname);
  }
  return found;
})()"""


def shows_the_log_in(page: Page) -> None:
    expect(page.get_by_role("heading", name="Log in")).to_be_visible()


def test_the_app_starts_without_a_server(lone: Server, make_pages: MakePages) -> None:
    """After one visit it opens with the server gone; only its own files are stored, and no response of the API."""
    lone.start()
    pages = make_pages(lone)
    page = pages.open()
    assert page.evaluate(READY)
    page.reload()  # from now on the service worker is asked for everything
    shows_the_log_in(page)
    status = "async (path) => (await fetch(path)).status"
    assert [page.evaluate(status, path) for path in ("/health", "/ready", "/openapi.json")] == [200, 200, 200]
    names = json.loads((web_app.app_folder() / "manifest.json").read_text())["files"]
    expected = {f"/app/{name.removesuffix('index.html')}" for name in names} - {
        "/app/service-worker.js",
        "/app/licences.txt",
    }
    [[cache, stored]] = page.evaluate(CACHED).items()
    assert cache.startswith("strongroom-app ")
    assert set(stored) == expected
    page.close()
    assert lone.end() == 0
    for path in ("/app/", "/app/#/items", "/app/operator/"):
        page = pages.open(path)
        expect(page.locator("main")).to_be_visible()
        page.close()


def test_a_newer_release_waits_for_the_person(lone: Server, make_pages: MakePages, tmp_path: Path) -> None:
    """It is offered, not loaded; after the person agrees the page is that of the newer release, and the old is gone."""
    lone.settings |= {"PORT": str(free_port())}
    lone.start()
    pages = make_pages(lone)
    page = pages.open()
    assert page.evaluate(READY)
    page.reload()
    shows_the_log_in(page)
    before = list(page.evaluate(CACHED))
    assert lone.end() == 0
    lone.settings |= {"WEB": str(newer_release(web_app.app_folder(), tmp_path / "newer"))}
    lone.start()
    page.evaluate("navigator.serviceWorker.getRegistration().then((found) => found.update())")
    offer = page.get_by_role("button", name="Load it")
    expect(offer).to_be_visible()
    page.reload()  # a reload alone changes nothing
    assert page.locator("body").get_attribute("data-release") is None
    offer.click()
    expect(page.locator("body[data-release=newer]")).to_be_attached()
    shows_the_log_in(page)
    until(lambda: len(page.evaluate(CACHED)) == 1, "the end of the older release")
    assert list(page.evaluate(CACHED)) != before


INSTALLED = """async () => {
  for (let absent = 0; absent < 50; ) {
    const found = await navigator.serviceWorker.getRegistration();
    if (found?.active) return "active";
    absent = found ? 0 : absent + 1;
    await new Promise((go) => setTimeout(go, 20));
  }
  return "none";
}"""


def test_an_altered_file_or_a_page_without_the_policy_is_not_stored(make_pages: MakePages, tmp_path: Path) -> None:
    """A file that is not the one of the release, or another policy, makes the whole release fail to install."""
    policy = SECURITY_HEADERS["content-security-policy"]
    own = "script-src 'self' 'wasm-unsafe-eval'"
    rows = [
        ("active", False, policy),
        ("active", False, policy.replace("connect-src 'self'", "connect-src 'self' https://vault.example.com")),
        ("active", False, f"default-src 'self', {policy}"),  # a proxy adds one of its own: both hold
        ("none", True, policy),
        ("none", False, ""),
        ("none", False, policy.replace("; frame-ancestors 'none'", "")),
        ("none", False, policy.replace(own, f"script-src *; {own}")),
    ]
    for number, (state, is_altered, sent) in enumerate(rows):
        place = tmp_path / str(number)
        shutil.copytree(web_app.app_folder(), place / "app")
        if is_altered:
            next((place / "app" / "assets").glob("operator-*.js")).write_text("evil()")
        with served(place, policy=sent) as url:
            host = Server(place / "none")
            host.port = int(url.rpartition(":")[2])
            pages: Pages = make_pages(host)
            with pages.context.expect_event("serviceworker"):
                page = pages.open()
            assert page.evaluate(INSTALLED) == state, sent
            assert bool(page.evaluate(CACHED)) == (state == "active"), sent
            pages.complaints.clear()  # Chromium tells of the file that it refused
            page.close()


def test_another_tab_is_told_of_a_newer_release(lone: Server, make_pages: MakePages, tmp_path: Path) -> None:
    """One tab loads it. The other says so, and what it cannot load any more; what was typed there stays."""
    lone.settings |= {"PORT": str(free_port())}
    with closing(BrowserUser(lone.start())) as person:
        person.login_item("GitHub")
        pages = make_pages(lone)
        page = person.log_in(pages)
        assert page.evaluate(READY)
        page.reload()
        other = pages.open()
        choose(other, "GitHub")
        other.get_by_role("button", name="Edit").click()
        other.get_by_label("Title").fill("typed, not saved")
        assert lone.end() == 0
        lone.settings |= {"WEB": str(newer_release(web_app.app_folder(), tmp_path / "newer"))}
        lone.start()
        page.evaluate("navigator.serviceWorker.getRegistration().then((found) => found.update())")
        page.get_by_role("button", name="Load it").click()
        expect(page.locator("body[data-release=newer]")).to_be_attached()

        notices = other.locator(".toast")
        expect(notices).to_have_count(1)
        expect(notices).to_contain_text("Another tab has loaded a newer version of strongroom. Save what you have")
        pages.context.new_cdp_session(other).send("Network.clearBrowserCache")  # which may have parts of the older one
        other.get_by_role("link", name="Settings").click()
        missing = other.get_by_role("alert").filter(has_text="A part of this app cannot be loaded")
        expect(missing).to_be_visible()
        check_accessibility(other)
        screenshot(other, "missing-part")
        other.once("dialog", lambda dialog: dialog.dismiss())
        with other.expect_event("dialog") as asked:  # something is not saved: the browser asks
            missing.get_by_role("button", name="Reload").click()
        assert asked.value.type == "beforeunload"
        other.go_back()
        expect(other.get_by_label("Title")).to_have_value("typed, not saved")
        other.get_by_role("button", name="Save").click()
        expect(other.get_by_role("heading", level=1, name="typed, not saved")).to_be_visible()
        for _ in range(4):  # shorter notices come and go
            other.get_by_role("button", name=re.compile("^Copy .*assword")).click()
        expect(notices.filter(has_text="Another tab has loaded")).to_be_visible()
        notices.filter(has_text="Another tab has loaded").get_by_role("button", name="Reload").click()
        expect(other.locator("body[data-release=newer]")).to_be_attached()
        expect(other.get_by_role("heading", level=1, name="typed, not saved")).to_be_visible()
        pages.forgive("status of 404")
        pages.forgive("ERR_CONNECTION_REFUSED")  # while the server was upgraded
        pages.forgive("ERR_INCOMPLETE_CHUNKED_ENCODING")


def test_the_first_load_is_small(lone: Server, make_pages: MakePages) -> None:
    """Of a release, what a browser receives until somebody has an account is within 120 KB after gzip."""
    lone.settings |= {"WEB": str(web_app.app_folder("--check", name="web-app-release", cheap=False))}
    pages = make_pages(lone.start())
    received: Counter[str] = Counter()
    names: dict[str, str] = {}
    page = pages.context.new_page()
    session = pages.context.new_cdp_session(page)
    session.send("Network.enable")
    session.on("Network.responseReceived", lambda event: names.update({event["requestId"]: event["response"]["url"]}))
    session.on("Network.dataReceived", lambda event: received.update({event["requestId"]: event["encodedDataLength"]}))
    page.goto(f"{pages.url}/app/")
    page.get_by_role("button", name="Create an account").click()
    page.get_by_label("Email").fill(unique_email())
    page.get_by_label("Master password").fill("correct horse battery staple")
    page.get_by_label("The same password again").fill("correct horse battery staple")
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_role("heading", name="Your recovery sheet")).to_be_visible(timeout=60_000)
    app = {names[request]: size for request, size in received.items() if "/app/" in names[request]}
    assert 0 < sum(app.values()) <= 120_000, app
