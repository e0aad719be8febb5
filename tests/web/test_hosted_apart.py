"""The app on another origin than its server: allowed by CORS_ORIGINS, refused to all others."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import expect

from strongroom.web_release import SECURITY_HEADERS
from tests.client.both_clients import unique_email
from tests.contract.harness import Server
from tests.support import web_app
from tests.support.javascript import served
from tests.support.ports import free_port
from tests.support.web_app import MakePages

PASSWORD = "correct horse battery staple"


def test_an_app_on_another_origin(tmp_path: Path, make_pages: MakePages) -> None:
    """It names its server, signs up there from an origin that CORS_ORIGINS names, and is told no from another one."""
    port, apart, other = free_port(), free_port(), free_port()
    built = web_app.app_folder("--server", f"http://localhost:{port}", name=f"web-app-apart-{port}", keep=False)
    server = Server(tmp_path / "server", PORT=str(port), WEB="off", CORS_ORIGINS=f"http://localhost:{apart}").start()
    policy = SECURITY_HEADERS["content-security-policy"].replace(
        "connect-src 'self'", f"connect-src 'self' http://localhost:{port}"
    )
    try:
        for place, allowed in ((apart, True), (other, False)):
            with served(built, policy=policy, port=place):
                host = Server(tmp_path / "none")
                host.port = place
                pages = make_pages(host)
                page = pages.open("/")
                expect(page.get_by_label("Server")).to_have_value(f"http://localhost:{port}")
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
