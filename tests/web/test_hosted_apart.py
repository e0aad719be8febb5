"""The app on another origin than its server: allowed by CORS_ORIGINS, refused to all others."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from strongroom.web_release import SECURITY_HEADERS
from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import MakePages
from tests.kit.clients.javascript import served
from tests.kit.network.ports import free_port
from tests.kit.people.credentials import unique_email
from tests.kit.servers.process import Server
from tests.kit.waiting import until

PASSWORD = "correct horse battery staple"


STORED = "caches.match(location.href).then((found) => found?.headers.get('content-security-policy') ?? '')"
REACHED = "(url) => fetch(url).then(() => true, () => false)"


def mend_the_header(page: Page, sent: list[str], policy: str, url: str) -> None:
    """Send another policy with the same files; the page that is stored follows at its next start but one."""
    assert page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()
    assert not page.evaluate(REACHED, url)
    sent.append(policy)
    page.reload()
    until(lambda: page.evaluate(STORED) == policy, "the header of today in the stored page")
    page.reload()
    assert page.evaluate(REACHED, url)


def test_an_app_on_another_origin(tmp_path: Path, make_pages: MakePages) -> None:
    """It names its server, signs up there from an origin that CORS_ORIGINS names, and is told no from another one.

    An operator who has forgotten the server in the header, and mends that, reaches people who have the app stored.
    """
    port, apart, other = free_port(), free_port(), free_port()
    built = web_app.app_folder("--server", f"http://localhost:{port}", name=f"web-app-apart-{port}", keep=False)
    server = Server(tmp_path / "server", PORT=str(port), WEB="off", CORS_ORIGINS=f"http://localhost:{apart}").start()
    assert not list(built.rglob("*operator*"))  # that page reads figures of its own origin
    forgotten = SECURITY_HEADERS["content-security-policy"]
    policy = forgotten.replace("connect-src 'self'", f"connect-src 'self' http://localhost:{port}")
    try:
        for place, allowed in ((apart, True), (other, False)):
            sent = [forgotten if allowed else policy]
            with served(built, policy=sent, port=place):
                host = Server(tmp_path / "none")
                host.port = place
                pages = make_pages(host)
                page = pages.open("/")
                expect(page.get_by_label("Server")).to_have_value(f"http://localhost:{port}")
                if allowed:
                    mend_the_header(page, sent, policy, f"http://localhost:{port}/health")
                    pages.complaints.clear()
                page.get_by_role("button", name="Create an account").click()
                page.get_by_label("Email").fill(unique_email())
                page.get_by_label("Master password").fill(PASSWORD)
                page.get_by_label("The same password again").fill(PASSWORD)
                page.get_by_role("button", name="Create the account").click()
                if allowed:
                    expect(page.get_by_role("heading", name="Your recovery sheet")).to_be_visible(timeout=30_000)
                else:
                    expect(page.get_by_role("alert").filter(has_text="server")).to_be_visible(timeout=30_000)
                    assert any("CORS" in line for line in pages.complaints)
                    pages.complaints.clear()
                page.close()
    finally:
        server.abandon()
