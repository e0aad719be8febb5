"""The app starts offline from its own files, and a newer release is loaded when the person agrees."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from collections import Counter
from pathlib import Path

from playwright.sync_api import Page, expect

from strongroom.web_release import SECURITY_HEADERS
from tests.client.both_clients import unique_email
from tests.contract.harness import Server
from tests.support import web_app
from tests.support.javascript import served
from tests.support.ports import free_port
from tests.support.waiting import until
from tests.support.web_app import MakePages, Pages

READY = "navigator.serviceWorker.ready.then(() => true)"
CACHED = """(async () => {
  const found = {};
  for (const name of await caches.keys()) {
    found[name] = (await (await caches.open(name)).keys()).map(({ url }) => new URL(url).pathname);
  }
  return found;
})()"""


def other_release(folder: Path, place: Path) -> Path:
    """A copy of a build with another page in it, as a newer release has; its folder."""
    shutil.copytree(folder, place, dirs_exist_ok=True)
    before = (place / "index.html").read_bytes()
    after = before.replace(b"<body>", b'<body data-release="newer">')
    (place / "index.html").write_bytes(after)
    worker = (place / "service-worker.js").read_text()
    sums = [base64.b64encode(hashlib.sha256(one).digest()).decode() for one in (before, after)]
    assert sums[0] in worker
    (place / "service-worker.js").write_text(worker.replace(sums[0], sums[1]))
    manifest = json.loads((place / "manifest.json").read_text())
    for name in ("index.html", "service-worker.js"):
        manifest["files"][name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
    (place / "manifest.json").write_text(json.dumps(manifest))
    return place


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
    lone.settings |= {"WEB": str(other_release(web_app.app_folder(), tmp_path / "newer"))}
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


def test_an_altered_file_is_not_stored(make_pages: MakePages, tmp_path: Path) -> None:
    """A file that is not the one of the release makes the whole release fail to install: nothing is stored."""
    for state in ("active", "none"):
        place = tmp_path / state
        shutil.copytree(web_app.app_folder(), place / "app")
        if state == "none":
            next((place / "app" / "assets").glob("operator-*.js")).write_text("evil()")
        with served(place, policy=SECURITY_HEADERS["content-security-policy"]) as url:
            host = Server(place / "none")
            host.port = int(url.rpartition(":")[2])
            pages: Pages = make_pages(host)
            with pages.context.expect_event("serviceworker"):
                page = pages.open()
            assert page.evaluate(INSTALLED) == state
            assert bool(page.evaluate(CACHED)) == (state == "active")
            pages.complaints.clear()  # Chromium tells of the file that it refused


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
