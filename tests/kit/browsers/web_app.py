"""The web app in tests: built once, served by real servers, opened in Debian's Chromium by Playwright."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Error, Page, Request, expect, sync_playwright

from tests.kit.clients.javascript import kept, once, run
from tests.kit.requirements import needed

SOURCE: Final = Path(__file__).parents[3] / "web"
DESKTOP: Final = {"width": 1280, "height": 800}
PHONE: Final = {"width": 390, "height": 844}
SCREENSHOTS: Final = "STRONGROOM_SCREENSHOTS"  # the variable that names a folder for screenshots
ANOTHER_MACHINE: Final = "vault.test"  # a name that is not this machine's for the browser, and leads here
# What the strictest standard that the app promises has as rules of axe.
_AXE_TAGS: Final = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# A page reports what its policy refused; the console of Chromium has it too, and this names the directive.
_WATCH: Final = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


expect.set_options(timeout=30_000)  # a loaded machine may need some seconds for what takes a moment


@functools.cache
def app_folder(*options: str, name: str = "web-app", cheap: bool = True, keep: bool = True) -> Path:
    """The folder of a build, made once for all processes; skips the test where the packages of web/ are missing.

    `cheap`: it hashes passwords at a cost that tests can afford. A release never does. `keep`: for later runs too.
    """
    words = ["--inject", os.fspath(SOURCE.parent / "tests/web/cheapHashing.ts")] if cheap else []

    def make(folder: Path) -> None:
        run("node", "build.js", "--out", f"{folder}/app", *words, *options, folder=SOURCE)

    return (kept if keep else once)(name, make, packages=SOURCE) / "app"


@contextmanager
def browser() -> Iterator[Browser]:
    """Debian's Chromium without a window; skips the test where it is not installed.

    While it runs, the thread has an event loop: end it before a test of another folder needs its own.
    """
    program = needed("chromium")
    with tempfile.TemporaryDirectory() as home, sync_playwright() as playwright:
        words = ["--disable-gpu", "--disable-dev-shm-usage", f"--host-resolver-rules=MAP {ANOTHER_MACHINE} 127.0.0.1"]
        options: dict[str, Any] = {"args": words, "chromium_sandbox": os.geteuid() != 0}
        found = playwright.chromium.launch(executable_path=program, env={**os.environ, "HOME": home}, **options)
        try:
            yield found
        finally:
            found.close()


class Pages:
    """Pages of one person's browser. What one of them complains of fails the test, unless the test takes it out."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context = context
        self.url = url
        self.complaints: list[str] = []
        self._forgiven: list[str] = []
        self._unanswered: dict[Request, None] = {}
        context.add_init_script(_WATCH)
        context.on("request", self._began)
        context.on("requestfinished", self._ended)
        context.on("requestfailed", self._ended)
        context.on("console", self._heard)
        context.on("weberror", lambda error: self.complaints.append(f"uncaught: {error.error}"))

    def _began(self, request: Request) -> None:
        self._unanswered[request] = None

    def _ended(self, request: Request) -> None:
        self._unanswered.pop(request, None)

    def _heard(self, message: ConsoleMessage) -> None:
        """Note an error or a warning. Chromium writes one for each request that the API refuses, which is none."""
        address = message.location["url"]
        is_refusal = "responded with a status of 4" in message.text and "/app/" not in address
        if message.type in {"error", "warning"} and not is_refusal:
            self.complaints.append(f"{message.type}: {message.text} ({address})")

    def open(self, path: str = "/app/") -> Page:
        """A new tab with this path of the server."""
        page = self.context.new_page()
        page.goto(self.url + path)
        return page

    def forgive(self, part: str) -> None:
        """Expect complaints with this part, such as a request without a response: those to come are expected too."""
        self._forgiven.append(part)

    def describe(self) -> str:
        """What a person would see now: for each page its address, its text and the requests without a response."""
        return "\n".join(self._describe(page) for page in self.context.pages)

    def _describe(self, page: Page) -> str:
        try:
            waiting = [f"{one.method} {one.url}" for one in self._unanswered if one.frame.page == page]
            text = page.inner_text("body", timeout=2000)
        except Error as fault:  # a report must not fail: a page may be closed, a request of no frame
            return f"{page.url}\n{fault}"
        return "\n".join([page.url, "without a response: " + (", ".join(waiting) or "nothing"), text[:3000]])

    def check(self) -> None:
        """Fail if a page complained, or if its policy refused something."""
        for page in self.context.pages:
            try:
                self.complaints += page.evaluate("window.violations ?? []")
            except Error:  # the page has crashed or is closed: the console had it
                continue
        complaints = [line for line in self.complaints if not any(part in line for part in self._forgiven)]
        assert complaints == [], complaints


MakePages = Callable[..., Pages]


def screenshot(page: Page, name: str, *, full: bool = False) -> None:
    """Write a screenshot to the folder that an environment variable names; nothing without it."""
    folder = os.environ.get(SCREENSHOTS)
    if folder:
        page.screenshot(path=Path(folder) / f"{name}.png", full_page=full, animations="disabled")


def check_accessibility(page: Page) -> None:
    """Fail on what axe finds. Its script runs in the page's world by way of the debugger, whatever the policy."""
    script = (SOURCE / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
    page.evaluate(script)
    found = page.evaluate("(tags) => axe.run({ runOnly: tags, resultTypes: ['violations'] })", _AXE_TAGS)
    told = [(one["id"], one["help"], [node["html"][:300] for node in one["nodes"]][:5]) for one in found["violations"]]
    assert told == [], told
