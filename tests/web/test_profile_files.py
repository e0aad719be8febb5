"""A stolen browser profile: what its files hold, and what they open with and without a network."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import sqlite3
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from strongroom.client.format import account
from tests.js.browser_files import assert_not_on_disk
from tests.kit.browsers import profile_files
from tests.kit.browsers.chromium import prevent_crash_dumps
from tests.kit.browsers.web_app import DESKTOP, Pages
from tests.kit.people.credentials import PASSWORD
from tests.kit.requirements import needed
from tests.kit.servers.process import Server, on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import (
    AWAY,
    LOCKED,
    OFFLINE,
    BrowserUser,
    button,
    device,
    enter,
    expect_open,
    heading,
    lock,
    saved_sessions,
    unlock,
)

STORED: Final = ("IndexedDB", "Local Storage", "Session Storage", "Sessions", "Service Worker/Database")
SECRET: Final = "remember the milk"


class Profile:
    """A browser with a profile in a folder, which a thief can copy."""

    def __init__(self, browser: Browser, folder: Path, server: Server) -> None:
        self.folder = folder
        self.home = folder.parent / f"{folder.name}-home"
        prevent_crash_dumps(self.home)
        self._context = browser.browser_type.launch_persistent_context(
            folder,
            executable_path=needed("chromium"),
            env={**os.environ, "HOME": str(self.home)},
            args=["--disable-gpu", "--disable-dev-shm-usage"],
            chromium_sandbox=os.geteuid() != 0,
            viewport=DESKTOP,  # type: ignore[arg-type]
        )
        self.pages = Pages(self._context, f"http://localhost:{server.port}")
        self.process = next(_processes(folder))

    def close(self) -> None:
        """End the browser in its own time."""
        self._context.close()

    def kill(self) -> None:
        """End the browser at once, with SIGKILL."""
        os.kill(self.process, signal.SIGKILL)
        until(lambda: not list(_processes(self.folder)), "the browser has ended")
        with suppress(Error):
            self._context.close()


def _processes(folder: Path) -> Iterator[int]:
    """The processes of the browser itself that use this profile: not those of its tabs."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if f"--user-data-dir={folder}".encode() in words and not any(word.startswith(b"--type=") for word in words):
                yield int(entry.name)


@contextmanager
def profile(browser: Browser, folder: Path, server: Server) -> Iterator[Profile]:
    """A browser with this profile; what its pages complain of fails the test."""
    opened = Profile(browser, folder, server)
    try:
        yield opened
        opened.pages.check()
    finally:
        if list(_processes(folder)):
            opened.close()


def shares(server: Server) -> list[bytes]:
    """The key shares that a server on a file keeps."""
    with sqlite3.connect(server.home / "vault.db") as database:
        return [b64decode(share) for (share,) in database.execute("SELECT key_share FROM key_shares")]


def keys_of(person: BrowserUser) -> dict[str, bytes]:
    """Everything that opens the keyring or what is below it, by name."""
    ring = person.client._core.keyring()
    found = {"the account key": bytes(ring.key)}
    for vault in ring.vaults:
        found |= {f"key {generation} of {vault.name}": bytes(key) for generation, key in vault.keys}
    return found


def assert_useless(folder: Path, person: BrowserUser, kept: list[bytes]) -> None:
    """No file of a profile holds a key or a share that the server had, and no 32 bytes in it open the keyring."""
    wanted = keys_of(person) | {f"share {number}": share for number, share in enumerate(kept)}
    assert profile_files.holding(folder, wanted) == []
    assert_not_on_disk(folder, [PASSWORD, SECRET])
    sealed = person.client._core.sealed
    assert sealed
    for part in STORED:
        assert profile_files.opening(folder / "Default" / part, sealed) == []


def begin(opened: Profile, person: BrowserUser, server: Server) -> tuple[Page, list[bytes]]:
    """Log in, have the session saved, and reload: it is resumed. The page, and the share of the server."""
    before = shares(server)
    page = opened.pages.open()
    enter(page, person.email)
    until(lambda: saved_sessions(page) == 1, "the session is saved")
    page.reload()
    expect_open(page)
    kept = [share for share in shares(server) if share not in before]
    assert len(kept) == 1
    return page, kept


def steal(folder: Path, name: str) -> None:
    """Copy the profile of a browser that has ended."""
    shutil.copytree(folder / "profile", folder / name, symlinks=True, ignore=shutil.ignore_patterns("Singleton*"))


def left(browser: Browser, folder: Path, server: Server, person: BrowserUser, *copies: str) -> list[bytes]:
    """Log in and close the browser without a lock, which writes all of its files; the share. A thief copies them."""
    with profile(browser, folder / "profile", server) as opened:
        _, kept = begin(opened, person, server)
    for name in copies:
        steal(folder, name)
    return kept


@pytest.mark.parametrize("ended", ["locked", "logged out", "locked, then killed", "killed"])
@on_a_file
def test_the_files_open_nothing(
    browser: Browser, tmp_path: Path, server: Server, person: BrowserUser, ended: str
) -> None:
    """After a lock, a log-out, a kill after a lock, and a kill alone: no key and no share is in the profile's files."""
    person.login_item(notes=SECRET)
    with profile(browser, tmp_path / "profile", server) as opened:
        page, kept = begin(opened, person, server)
        if ended.startswith("locked"):
            lock(page)
            until(lambda: kept[0] not in shares(server), "the server has deleted the share")
            until(lambda: saved_sessions(page) == 0, "what was saved is deleted")
        elif ended == "logged out":
            lock(page)
            button(page, "Log out").click()
            button(page.get_by_role("dialog"), "Log out").click()
            expect(heading(page, "Log in")).to_be_visible()
        opened.pages.check()
        if "killed" in ended:
            opened.kill()
        else:
            opened.close()
        assert_useless(tmp_path / "profile", person, kept)


@on_a_file
def test_a_copy_from_before_a_lock_opens_nothing_after_it(
    browser: Browser, tmp_path: Path, server: Server, person: BrowserUser
) -> None:
    """With the profile, the refresh token and a network: the server refuses the token, and has deleted the share."""
    kept = left(browser, tmp_path, server, person, "stolen")
    with profile(browser, tmp_path / "profile", server) as opened:
        page = opened.pages.open()
        expect_open(page)
        lock(page)
        until(lambda: kept[0] not in shares(server), "the server has deleted the share")
    with profile(browser, tmp_path / "stolen", server) as thief:
        seen = thief.pages.open()
        expect(heading(seen, LOCKED)).to_be_visible()
        until(lambda: saved_sessions(seen) == 0, "what cannot be opened is deleted")


@on_a_file
def test_a_crash_without_a_lock(browser: Browser, tmp_path: Path, server: Server, person: BrowserUser) -> None:
    """Who has the profile opens it with a network, as the owner does; without one, not, and the password is asked for.

    Nor once the owner has ended the session from another device.
    """
    kept = left(browser, tmp_path, server, person)
    with profile(browser, tmp_path / "profile", server) as opened:
        expect_open(opened.pages.open())
        opened.kill()
    for name in ("with", "without", "later"):
        steal(tmp_path, name)
    with profile(browser, tmp_path / "without", server) as thief:
        thief.pages.context.route("**/auth/**", lambda route: route.abort())
        page = thief.pages.open()
        expect(heading(page, LOCKED)).to_be_visible()
        expect(page.get_by_text("Your password unlocks what is on this device.")).to_be_visible()
        assert saved_sessions(page) == 1
        unlock(page)
        expect(page.locator(".shell")).to_be_visible()
        thief.pages.forgive(AWAY)
    with profile(browser, tmp_path / "with", server) as thief:
        page = thief.pages.open()
        expect_open(page)
    with device(server, person.email) as other:
        for session in other.sessions():
            if not session.current:
                other.end_session(session.id)
        assert kept[0] not in shares(server)
    with profile(browser, tmp_path / "later", server) as thief:
        expect(heading(thief.pages.open(), LOCKED)).to_be_visible()


@on_a_file
def test_a_lock_without_a_network(browser: Browser, tmp_path: Path, server: Server, person: BrowserUser) -> None:
    """The tab tells the server as soon as it can; until then a copy opens with a network, and then it does not."""
    kept = left(browser, tmp_path, server, person, "sooner", "later")
    with profile(browser, tmp_path / "profile", server) as opened:
        page = opened.pages.open()
        expect_open(page)
        opened.pages.context.set_offline(True)
        lock(page)
        until(lambda: saved_sessions(page) == 0, "what was saved is deleted")
        assert kept[0] in shares(server)
        with profile(browser, tmp_path / "sooner", server) as thief:
            expect_open(thief.pages.open())
        opened.pages.context.set_offline(False)
        until(lambda: kept[0] not in shares(server), "the server has deleted the share")
        with profile(browser, tmp_path / "later", server) as thief:
            expect(heading(thief.pages.open(), LOCKED)).to_be_visible()
        opened.pages.forgive(OFFLINE)
        opened.close()
        assert_useless(tmp_path / "profile", person, kept)


def test_a_key_is_found_wherever_it_is(tmp_path: Path) -> None:
    """The search finds an account key between other bytes, in any spelling, and nothing where there is none."""
    made = account.register("ann@example.com", PASSWORD)
    (tmp_path / "000003.log").write_bytes(secrets.token_bytes(4097))
    assert profile_files.opening(tmp_path, made.sealed) == []
    key = bytes(made.keyring.key)
    (tmp_path / "000005.ldb").write_bytes(secrets.token_bytes(1001) + key + secrets.token_bytes(99))
    assert profile_files.opening(tmp_path, made.sealed) == ["000005.ldb opens the keyring"]
    for number, spelling in enumerate(profile_files.spellings(key)):
        (tmp_path / "found").write_bytes(b"x" * number + spelling)
        assert "found holds the key" in profile_files.holding(tmp_path, {"the key": key})
