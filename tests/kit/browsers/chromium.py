"""A real Chromium without a window, driven through its DevTools protocol over a pipe; with a virtual authenticator."""

from __future__ import annotations

import atexit
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.kit.requirements import needed

_SECONDS: Final = 60.0  # for one command; a loaded machine needs some
_OPTIONS: Final = (
    *("--headless=new", "--remote-debugging-pipe", "--no-first-run", "--no-default-browser-check", "--disable-gpu"),
    *("--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--disable-extensions",
)
_REPORTS: Final = {"Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"}


class _Browser:
    """A process of Chromium with a profile in a folder, and the pipes to it."""

    def __init__(self, folder: Path) -> None:
        program = needed("chromium")
        prevent_crash_dumps(folder)
        self._buffer = b""
        self._numbers = itertools.count(1)
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        options = [*_OPTIONS, f"--user-data-dir={folder}"] + (["--no-sandbox"] if os.geteuid() == 0 else [])
        # Chromium takes commands from descriptor 3, and answers on 4.
        shell = f'exec "$0" "$@" 3</dev/fd/{commands} 4>/dev/fd/{answers}'
        with (folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", shell, str(program), *options, "about:blank"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=(commands, answers),
                env={**os.environ, "HOME": str(folder)},
            )
        os.close(commands)
        os.close(answers)

    def close(self) -> None:
        """End it, which it does with its pipe."""
        os.close(self._commands)
        os.close(self._answers)
        self._process.wait(_SECONDS)

    def write(self, message: dict[str, Any]) -> int:
        """Send a message; its number."""
        number = next(self._numbers)
        os.write(self._commands, json.dumps({"id": number, **message}).encode() + b"\0")
        return number

    def messages(self) -> Iterator[Any]:
        """What it says, as long as it says something."""
        deadline = time.monotonic() + _SECONDS
        while True:
            whole, _, rest = self._buffer.partition(b"\0")
            if len(whole) < len(self._buffer):
                self._buffer = rest
                yield json.loads(whole)
                continue
            ready, _, _ = select.select([self._answers], [], [], max(0.0, deadline - time.monotonic()))
            received = os.read(self._answers, 1 << 16) if ready else b""
            assert received, "Chromium says nothing any more"
            self._buffer += received


class Page:
    """A page of a browser; `open` opens another one in its place, and `show` goes back to one of before."""

    def __init__(self, browser: _Browser, **context: str) -> None:
        self._browser = browser
        self._context = context
        self._session: str | None = None
        self.reported: list[Any] = []  # what pages wrote to the console, and errors that nobody caught

    def open(self, url: str, *, any_script: bool = False) -> str:
        """Open this address in a new tab, and wait until it is loaded; the tab. `any_script`: whatever its policy."""
        self._session = None
        target = self.send("Target.createTarget", url="about:blank", **self._context)["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Inspector"):
            self.send(f"{domain}.enable")
        if any_script:
            self.send("Page.setBypassCSP", enabled=True)
        self.send("Page.navigate", url=url)
        self._until(lambda message: message.get("method") == "Page.loadEventFired")
        assert self._session is not None
        return self._session

    def show(self, tab: str) -> None:
        """Go on in a tab that was opened before."""
        self._session = tab

    def add_authenticator(self, **options: Any) -> str:
        """Plug a virtual authenticator in; its id."""
        self.send("WebAuthn.enable")
        found: str = self.send("WebAuthn.addVirtualAuthenticator", options=options)["authenticatorId"]
        return found

    def run(self, expression: str) -> Any:
        """The value of an expression in the page, once its promise is fulfilled."""
        made = self.send(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True, userGesture=True
        )
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def send(self, method: str, **params: Any) -> Any:
        """Send a command; its result."""
        number = self._write(method, params)
        answer = self._until(lambda one: one.get("id") == number)
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def crash(self) -> None:
        """Kill the process of this page, in the middle of whatever it does."""
        self._write("Page.crash", {})
        self._until(lambda one: one.get("method") in {"Inspector.targetCrashed", "Target.targetCrashed"})

    def _write(self, method: str, params: dict[str, Any]) -> int:
        session = {} if self._session is None else {"sessionId": self._session}
        return self._browser.write({"method": method, "params": params} | session)

    def _until(self, wanted: Any) -> Any:
        """The next message that is wanted."""
        for message in self._browser.messages():
            if message.get("method") in _REPORTS:
                self.reported.append(message["params"])
            if wanted(message):
                return message
        return None


def prevent_crash_dumps(home: Path) -> None:
    """Put a file where Chromium would keep dumps of crashed tabs.

    A dump holds memory of its tab, and tests search the folder for what the client writes to the disk.
    """
    dumps = home / ".config/chromium/Crash Reports"
    dumps.parent.mkdir(parents=True, exist_ok=True)
    dumps.touch()


@contextmanager
def chromium(folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own in this folder; skips the test where Chromium is not installed."""
    browser = _Browser(folder)
    try:
        yield Page(browser)
    finally:
        browser.close()


_shared: list[_Browser] = []  # one, or none


@contextmanager
def private_window() -> Iterator[Page]:
    """A window with a storage of its own, in a browser that the tests of this process share; it starts in no time.

    A test that looks at the files of a profile, or opens a profile again, has a browser of its own: `chromium`.
    """
    if not _shared:
        folder = tempfile.mkdtemp(prefix="strongroom-chromium-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        _shared.append(_Browser(Path(folder)))
    [browser] = _shared
    try:
        context = Page(browser).send("Target.createBrowserContext")["browserContextId"]
        yield Page(browser, browserContextId=context)
        Page(browser).send("Target.disposeBrowserContext", browserContextId=context)
    except BaseException:  # the next test begins with a new one
        _end_shared()
        raise


@atexit.register
def _end_shared() -> None:
    while _shared:
        _shared.pop().close()
