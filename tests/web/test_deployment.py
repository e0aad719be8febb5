"""The app as operators put it up: on a network, over TLS, behind proxies, below a path."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.kit.browsers import web_app
from tests.kit.browsers.web_app import ANOTHER_MACHINE, MakePages, check_accessibility, screenshot
from tests.kit.network.ports import free_port
from tests.kit.network.tls import Authority
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.programs.command_line import strongroom
from tests.kit.requirements import needed
from tests.kit.servers.process import Server
from tests.proxies import processes


def sign_up(page: Page) -> None:
    """Make an account, to the recovery sheet."""
    page.get_by_role("button", name="Create an account").click()
    page.get_by_label("Email").fill(unique_email())
    page.get_by_label("Master password").fill(PASSWORD)
    page.get_by_label("The same password again").fill(PASSWORD)
    page.get_by_role("button", name="Create the account").click()
    expect(page.get_by_role("heading", name="Your recovery sheet")).to_be_visible()


def test_over_plain_http_on_a_network(lone: Server, make_pages: MakePages) -> None:
    """The browser gives no means to encrypt: the page says so, and what to do. Nothing can be typed there."""
    pages = make_pages(lone.start())
    pages.url = f"http://{ANOTHER_MACHINE}:{lone.port}"
    page = pages.open()
    expect(page.get_by_role("heading", name="This page cannot protect your data")).to_be_visible()
    for way in ("https://", "docs/operating.md", "ssh -L 3000:127.0.0.1:3000"):
        expect(page.get_by_role("listitem").filter(has_text=way)).to_be_visible()
    assert page.locator("input").count() == 0
    check_accessibility(page)
    screenshot(page, "unsupported")
    pages.forgive("Cross-Origin-Opener-Policy header has been ignored")


def test_over_tls_with_a_certificate_of_ones_own(lone: Server, make_pages: MakePages, tmp_path: Path) -> None:
    """An account is made. Without trust in the certificate Chromium gives no service worker: no more is missing.

    `web verify` refuses a certificate that is not trusted, and reads everything under one that is.
    """
    authority = Authority(tmp_path)
    certificate, key = authority.issue("localhost", "127.0.0.1", ANOTHER_MACHINE)
    port = str(free_port())
    lone.settings |= {"TLS_CERT_FILE": str(certificate), "TLS_KEY_FILE": str(key), "PORT": port}
    pages = make_pages(lone.start(), ignore_https_errors=True)
    pages.url = f"https://{ANOTHER_MACHINE}:{lone.port}"
    sign_up(pages.open())
    pages.forgive("SSL certificate error")
    manifest = str(web_app.app_folder() / "manifest.json")
    for trusted, code, said in (
        ({}, 8, "its certificate is not trusted"),
        ({"SSL_CERT_FILE": str(authority.file)}, 0, "headers are the same"),
    ):
        words = ("web", "verify", f"https://localhost:{lone.port}", "--manifest", manifest)
        done = strongroom(tmp_path, *words, **trusted)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


# What operators add to the settings of docs/operating.md: compression, or a header that comes twice then.
COMPRESSION = {
    "caddy": ("reverse_proxy", "encode zstd gzip\n\treverse_proxy"),
    "nginx": ("client_max_body_size", "gzip on;\n    gzip_types *;\n    gzip_proxied any;\n    client_max_body_size"),
}
ADDED = {
    "caddy": ("reverse_proxy", "header +Referrer-Policy unsafe-url\n\treverse_proxy"),
    "nginx": ("client_max_body_size", "add_header Referrer-Policy unsafe-url;\n    client_max_body_size"),
}


@pytest.mark.parametrize("name", list(COMPRESSION))
def test_behind_a_proxy(name: str, lone: Server, make_pages: MakePages, tmp_path: Path) -> None:
    """Also where it compresses: every file and header comes as the server sends it, and an account is made.

    A header that the proxy adds is told by `web verify`.
    """
    program = needed(name)
    lone.start()
    manifest = str(web_app.app_folder() / "manifest.json")
    for number, change in enumerate((None, COMPRESSION[name], ADDED[name])):
        port = free_port()
        text = processes.settings(name, port, lone.port).replace(processes.HOST, "localhost")
        if change is not None:
            assert change[0] in text
            text = text.replace(*change, 1)
        with processes.started(name, program, tmp_path / str(number), text, port):
            done = strongroom(tmp_path, "web", "verify", f"http://localhost:{port}", "--manifest", manifest)
            if change is ADDED[name]:
                assert done.returncode == 1, done.stdout
                assert "header     index.html: Referrer-Policy must be sent once, and be: no-referrer" in done.stdout
                continue
            assert done.returncode == 0, done.stdout + done.stderr
            host = Server(tmp_path / "none")
            host.port = port
            pages = make_pages(host)
            sign_up(pages.open("/"))


def test_below_a_path(make_pages: MakePages, lone: Server, tmp_path: Path) -> None:
    """A proxy that puts the server below a path: the page says that it does not work there, and asks for nothing."""
    program = needed("caddy")
    lone.start()
    port = free_port()
    text = (
        f"http://localhost:{port} {{\n\thandle_path /vault/* {{\n\t\treverse_proxy 127.0.0.1:{lone.port}\n\t}}\n"
        f"\treverse_proxy /health 127.0.0.1:{lone.port}\n}}\n"
    )
    with processes.started("caddy", program, tmp_path / "proxy", text, port):
        host = Server(tmp_path / "none")
        host.port = port
        page = make_pages(host).open("/vault/app/")
        expect(page.get_by_role("heading", name="This page is not where it works")).to_be_visible()
        expect(page.get_by_text("strongroom needs a host name of its own")).to_be_visible()
        assert page.locator("input").count() == 0
        check_accessibility(page)
        screenshot(page, "misplaced")
