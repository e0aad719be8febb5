"""A tab of a browser in which a test calls the functions of a page's module."""

from __future__ import annotations

import json
from typing import Any

from tests.kit.browsers.chromium import Page


class Tab:
    """A page of the browser, with the module of this name from js/test/."""

    def __init__(self, page: Page, url: str, module: str) -> None:
        self._page = page
        self._module = f"{url}/{module}.page.js"
        self._tab = page.open(f"{url}/empty.html")

    def call(self, name: str, *args: Any) -> Any:
        """Call a function of the module; what it returns, once that is there."""
        self._page.show(self._tab)
        told = ", ".join(json.dumps(arg) for arg in args)
        return self._page.run(f'import("{self._module}").then((it) => it.{name}({told}))')

    def run(self, script: str) -> Any:
        """Run a script in the tab."""
        self._page.show(self._tab)
        return self._page.run(script)

    def crash(self) -> None:
        """Kill the process of the tab."""
        self._page.show(self._tab)
        self._page.crash()
