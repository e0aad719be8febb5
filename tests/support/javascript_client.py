"""The JavaScript client, used from Python: in a Node.js process, or in a page of a browser.

`JavaScript.call("Client.withToken", …)` calls what the package exports; what it gives is a value, or a `Remote` whose
methods are called the same way. A refusal is raised as the class that the Python client has for its code.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from strongroom import errors as server_errors
from strongroom.client import errors as client_errors
from strongroom.errors import Refusal
from tests.support.chromium import Page
from tests.support.javascript import bundles, started

CLASSES: dict[str, type[Refusal]] = {
    found.code: found
    for module in (server_errors, client_errors)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, Refusal)
}


def camel(name: str) -> str:
    """A name of Python as JavaScript spells it."""
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


class Answers:
    """An argument that is a function, which gives one of these at each call."""

    def __init__(self, *values: Any) -> None:
        self.values = values


class Remote:
    """An object of JavaScript. Its methods are called under their names in Python's spelling."""

    def __init__(self, javascript: JavaScript, number: int, kind: str) -> None:
        self._javascript, self._number, self.kind = javascript, number, kind

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **options: self._javascript.ask(self._number, "call", camel(name), *args, **options)

    def __getitem__(self, name: str) -> Any:
        """A member that is not a method."""
        return self._javascript.ask(self._number, "get", camel(name))

    def part(self, name: str) -> Remote:
        """A member that is an object with methods."""
        found: Remote = self[name]
        return found

    def __iter__(self) -> Iterator[Any]:
        return iter(self._javascript.ask(self._number, "all", ""))

    def __repr__(self) -> str:
        return f"<{self.kind} of JavaScript>"


class JavaScript:
    """The package; `act` carries a question to it and its answer back."""

    def __init__(self, act: Callable[[dict[str, Any]], Any]) -> None:
        self._act = act

    def client(self, url: str, **options: Any) -> Remote:
        """A client of a server."""
        made: Remote = self.ask(0, "new", "Client", url, **options)
        return made

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Call something that the package exports."""
        return self.ask(0, "call", name, *args, **options)

    def export(self, name: str) -> Remote:
        """Something that the package exports."""
        found: Remote = self.ask(0, "get", name)
        return found

    def ask(self, on: int, do: str, name: str, *args: Any, **options: Any) -> Any:
        """Ask for something, and wait for it."""
        given = [_given(one) for one in args]
        if options:
            given.append({camel(key): _given(value) for key, value in options.items()})
        answer = self._act({"on": on, "do": do, "name": name, "args": given})
        if "error" in answer:
            told = answer["error"]
            raise refusal(told["code"], told["message"], told.get("details"))
        assert "fault" not in answer, answer["fault"]
        return self._told(answer["gives"])

    def _told(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._told(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "bytes" in value:
            return base64.b64decode(value["bytes"])
        if "plain" in value:
            return {name: self._told(one) for name, one in value["plain"]}
        return Remote(self, value["object"], value["kind"])


def refusal(code: str, message: str, details: dict[str, Any] | None) -> Refusal:
    """An error of the class that the Python client has for a code, whatever its constructor takes."""
    kind = CLASSES[code]
    made = kind.__new__(kind)
    made.message, made.details = message, details
    made.args = (message,)
    return made


def _given(value: Any) -> Any:
    if isinstance(value, Remote):
        return {"$object": value._number}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Answers):
        return {"$answers": [_given(one) for one in value.values]}
    if isinstance(value, (list, tuple)):
        return [_given(one) for one in value]
    if isinstance(value, dict):
        return {key: _given(one) for key, one in value.items()}
    return value


@contextmanager
def in_node(*, cheap: bool = True) -> Iterator[JavaScript]:
    """The client in a process of Node.js. `cheap`: with the hashing that the tests' Python has."""
    with started("node", str(bundles() / "actor.program.js"), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def act(question: dict[str, Any]) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(question).encode() + b"\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, "the actor has ended"
            return json.loads(line)

        made = JavaScript(act)
        if cheap:
            made.call("hashCheaply")
        yield made
        process.stdin.close()


def in_page(page: Page, url: str, *, cheap: bool = True) -> JavaScript:
    """The client in a page that `served()` gives, at this address."""
    page.open(f"{url}/empty.html")

    def act(question: dict[str, Any]) -> Any:
        told = json.dumps(json.dumps(question))
        return page.run(f'import("{url}/actor.page.js").then((it) => it.act(JSON.parse({told})))')

    made = JavaScript(act)
    if cheap:
        made.call("hashCheaply")
    return made
