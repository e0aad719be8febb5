"""The TypeScript client behind the interface of the Python one: a process of Node.js that is driven by JSON lines.

`js/test/client.program.ts` is the other side. Names are turned from `snake_case` to `camelCase`, keyword arguments into
an object of options, and errors into the Python classes of the same names, so that a test of the Python client is true
of this one as well.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import itertools
import json
import math
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, Self

from strongroom import errors
from strongroom.client import Authenticator, Conflict
from strongroom.client import errors as client_errors
from strongroom.client.errors import TypeMismatch, Unreachable
from strongroom.client.replica import RefusedChange, Report, Resolution
from strongroom.errors import Later, Refusal, UidTaken
from tests.kit.clients.factory import ClientFactory
from tests.kit.clients.javascript import bundles, started

UNDEFINED = object()
_GENERATOR = ""  # the class of an asynchronous generator has no name
_KINDS = {name: kind for module in (errors, client_errors) for name, kind in vars(module).items()}


def camel(name: str) -> str:
    """`updated_at` as `updatedAt`."""
    return re.sub(r"_([a-z])", lambda found: found[1].upper(), name)


def snake(name: str) -> str:
    """`deviceName` as `device_name`."""
    return re.sub("[A-Z]", lambda found: "_" + found[0].lower(), name)


class Fault(AssertionError):  # noqa: N818 - not an error of the client
    """The TypeScript client threw something that is no refusal."""


class Gone(AssertionError):  # noqa: N818 - not an error of the client
    """The process of Node.js has ended."""


class Node:
    """A process of Node.js in which clients live."""

    def __init__(self) -> None:
        self._open = ExitStack()
        program = str(bundles() / "client.program.js")
        self._process = self._open.enter_context(
            started("node", program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        )
        self._gone = False
        self._numbers = itertools.count(1)
        self._waiting: dict[int, SimpleQueue[Any]] = {}
        self._writing = threading.Lock()
        self._functions: list[Any] = []
        threading.Thread(target=self._read, daemon=True).start()

    def ask(self, what: str, on: int = 0, name: str = "", args: tuple[Any, ...] = ()) -> Any:
        """Have something done, and wait for its result; an error is raised. Several threads may ask."""
        number, answer = next(self._numbers), SimpleQueue[Any]()
        self._waiting[number] = answer
        spelled = [self._given(arg) for arg in args]
        self._write({"id": number, "do": what, "on": on, "name": name, "args": spelled})
        line = None if self._gone else answer.get(timeout=300)
        if line is None:
            raise Gone
        if "error" in line:
            raise self._error(line["error"])
        return self._shown(line["result"])

    def _read(self) -> None:
        """Give each line to whoever waits for it; a function that is asked for runs on a thread of its own."""
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            if "ask" in line:
                threading.Thread(target=self._answer, args=(line,), daemon=True).start()
            else:
                self._waiting.pop(line["id"]).put(line)
        self._gone = True
        for waiting in list(self._waiting.values()):
            waiting.put(None)
        self._process.stdout.close()  # a long test begins and ends more processes than it may have files open
        assert self._process.stdin is not None
        with self._writing, contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()

    def _write(self, line: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        # Whoever waits for an answer learns that the process is gone.
        with self._writing, contextlib.suppress(BrokenPipeError):
            if self._process.stdin.closed:
                return
            self._process.stdin.write(json.dumps(line).encode() + b"\n")
            self._process.stdin.flush()

    def _answer(self, line: dict[str, Any]) -> None:
        """Call the function that the other side asks for."""
        made: Any
        try:
            if "i" in line:
                made = [self._given(one) for one in next(([item] for item in self._functions[line["i"]]), [])]
            else:
                made = self._given(self._functions[line["f"]](*map(self._shown, line["args"])))
        except Gone:
            return
        except Exception as error:  # noqa: BLE001 - it is raised over there
            self._write({"answer": line["ask"], "error": repr(error)})
        else:
            self._write({"answer": line["ask"], "value": made})

    def _given(self, value: Any) -> Any:
        """A value for the other side."""
        if value is UNDEFINED:
            return {"u": 1}
        if isinstance(value, Thing):
            return {"h": value._number}
        if value is None or isinstance(value, bool | str | int):
            return value if not isinstance(value, int) or abs(value) < 2**53 else {"n": str(value)}
        if isinstance(value, float):
            return (
                value if math.isfinite(value) else {"n": {"nan": "NaN", "inf": "Infinity"}.get(str(value), "-Infinity")}
            )
        if isinstance(value, bytes | bytearray | memoryview):
            return {"b": base64.b64encode(value).decode()}
        if isinstance(value, Path):
            return {"blob": base64.b64encode(value.read_bytes()).decode()}
        if isinstance(value, list | tuple | range):
            return [self._given(one) for one in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                return {"s": 1}
            return {"o": {key: self._given(one) for key, one in value.items()}}
        if isinstance(value, Resolution):
            return {"r": value.kind, "value": self._given(value.value)}
        if isinstance(value, Authenticator):
            return {"o": {"create": self._given(value.create), "get": self._given(value.get)}}
        if hasattr(value, "__iter__"):
            self._functions.append(iter(value))
            return {"i": len(self._functions) - 1}
        if callable(value):
            self._functions.append(value)
            return {"f": len(self._functions) - 1}
        return {"s": 1}

    def _shown(self, value: Any) -> Any:
        """A value of the other side."""
        if isinstance(value, list):
            return [self._shown(one) for one in value]
        if not isinstance(value, dict):
            return value
        if "o" in value:
            return Plain({name: self._shown(one) for name, one in value["o"].items()})
        if "b" in value:
            return base64.b64decode(value["b"])
        if "e" in value:
            return self._error(value["e"])
        if "n" in value:
            return float(value["n"])
        return Thing(self, value) if "h" in value else None

    def _error(self, told: dict[str, Any]) -> Exception:
        """A refusal as the Python class of the same name, with everything that a console would show of it."""
        kind = _KINDS.get(told["name"])
        if kind is None:
            return Fault(told["message"])
        made: Any = kind.__new__(kind)
        details = self._shown(told["details"])
        if isinstance(details, dict) and isinstance(details.get("fields"), dict):
            details["fields"] = {snake(field): why for field, why in details["fields"].items()}
        # Names of the API are spelled as Python spells them, so that both clients say the same.
        message = re.sub(r"`[\w.]+`", lambda found: snake(found[0]), told["message"])
        Refusal.__init__(made, message, details=None if details is None else _value(details))
        more = self._shown(told["more"])
        if isinstance(made, Later):
            made.retry_after = more.get("retryAfter", 1)
        for owner, names in (
            (Unreachable, ("reason",)),
            (UidTaken, ("version", "updated_at")),
            (TypeMismatch, ("uid", "problem")),
        ):
            if isinstance(made, owner):
                for name in names:
                    setattr(made, name, more.get(camel(name)))
        made.args = (message, told["said"])
        error: Exception = made
        return error

    def kill(self) -> None:
        """End the process in the middle of what it does."""
        self._process.kill()
        self._process.wait()
        self._gone = True

    def wait(self) -> None:
        """Wait until a process that is ending has ended. Its exit code stays: some parents never ask for one."""
        with contextlib.suppress(ChildProcessError):  # somebody has
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended."""
        return self._gone or self._process.poll() is not None

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(BrokenPipeError):  # something was on its way to a process that was killed
            self._open.close()


class Plain(dict[str, Any]):
    """An object of the other side that is nothing but its members; they are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[camel(name)]
        except KeyError:
            raise AttributeError(name) from None


def _value(found: Any) -> Any:
    """A document's value: plain data of Python."""
    if isinstance(found, list):
        return [_value(one) for one in found]
    return {name: _value(one) for name, one in found.items()} if isinstance(found, dict) else found


class Thing:
    """Something that lives in the process of Node.js: a client, a vault, a document."""

    _driver: Any = None  # of a client: what carries its requests, where a test does so

    def __init__(self, process: Node, told: dict[str, Any]) -> None:
        self._node = process
        self._number: int = told["h"]
        self._kind: str = told["kind"]
        self._fields: dict[str, Any] = {name: process._shown(one) for name, one in told["fields"].items()}
        self._methods, self._getters = told["methods"], told["getters"]

    def __getattr__(self, name: str) -> Any:
        spelled = camel(name)
        if name.startswith("_"):
            raise AttributeError(name)
        if self._kind == "Client" and name in {"open_replica", "unlock"}:
            return self._local(spelled)
        if self._kind == "Replica" and name in {"sync", "watch"}:
            return self._syncing(spelled)
        if self._kind == "Replica" and name == "pending":
            return self._node.ask("call", self._number, spelled)
        if spelled in self._fields:
            found = self._fields[spelled]
            return _value(found) if name in {"value", "raw"} else found
        if spelled in self._getters:
            return self._node.ask("get", self._number, spelled)
        if spelled not in self._methods:
            raise AttributeError(name)

        def call(*args: Any, **options: Any) -> Any:
            given = {camel(key): value for key, value in options.items() if value is not None}
            if name == "vault" and args == (None,):
                args = (UNDEFINED,)
            return self._node.ask("call", self._number, spelled, (*args, *((given,) if given else ())))

        return call

    def _local(self, spelled: str) -> Any:
        """What a client does with the file of a replica."""

        def call(path: Any, *args: Any, **options: Any) -> Any:
            return self._node.ask(spelled, self._number, args=(str(path), *args, options))

        return call

    def _syncing(self, spelled: str) -> Any:
        """The resolver is the first argument, whether it is given or not."""

        def call(resolver: Any = None, **options: Any) -> Any:
            given = {name: value for name, value in options.items() if value is not None}
            return self._node.ask("call", self._number, spelled, (UNDEFINED if resolver is None else resolver, given))

        return call

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Of what the Python client calls the same."""
        return {"Conflict": Conflict, "RefusedChange": RefusedChange, "Report": Report}.get(self._kind, Thing)

    @property
    def _thing(self) -> Any:
        return self

    def inside(self, name: str, *args: Any) -> Any:
        """What a test does inside a client."""
        return self._node.ask("inside", self._number, name, args)

    def exported(self) -> bytes:
        """The file of the account."""
        raw: bytes = self._node.ask("call", self._number, "exportAccount")
        return raw

    def export_account(self, path: Path) -> None:
        """Write the file of the account."""
        path.write_bytes(self.exported())

    def export(self, path: Path) -> None:
        """Write the file of what a replica holds."""
        path.write_bytes(self._node.ask("call", self._number, "export"))

    @property
    def _core(self) -> Inside:
        return Inside(self)

    def __iter__(self) -> Iterator[Any]:
        if self._kind not in {"Writes", _GENERATOR}:
            yield from self._node.ask("walk", self._number)
            return
        steps = self if self._kind == _GENERATOR else self._node.ask("begin", self._number)
        step: dict[str, Any] = {"done": False}
        most = 1  # one at first: a test may look what was taken for it
        try:
            while not step["done"]:
                step = self._node.ask("some", steps._number, args=(most,))
                yield from step["found"]
                most = 100 if self._kind == "Writes" else 1
            if "error" in step:
                raise step["error"]
        finally:
            getattr(steps, "return")()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Thing) or self._kind != other._kind:
            return False
        same = self._number == other._number
        return same or (self._kind in {"Document", "Blob"} and self._fields == other._fields)

    def __hash__(self) -> int:
        return hash(self._kind)

    def __repr__(self) -> str:
        return f"{self._kind}({self._fields})"


class Inside:
    """What tests look at inside a client, as `_core` of a Python client."""

    def __init__(self, client: Thing) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return self._client.inside(camel(name))

    @property
    def session(self) -> Tokens:
        """The tokens of the session."""
        return Tokens(*self._client.inside("tokens"))

    def keyring(self) -> Any:
        """The version, the generation and the vaults of the keyring."""
        return self._client.inside("keyring")


class Tokens(NamedTuple):
    """The tokens of a session, as a Python client calls them."""

    access: str
    refresh: str

    @property
    def _access(self) -> str:
        return self.access


@cache
def shared_node() -> Node:
    """The process that all clients of a session of tests share."""
    node = Node()
    atexit.register(node.close)
    return node


class TypeScriptClientFactory(ClientFactory):
    """Makes TypeScript clients; all live in one process."""

    kind = "typescript"

    def __init__(self, url: str) -> None:
        self.url = url
        self.node = shared_node()

    def client(self, url: str | None = None, **options: Any) -> Any:
        """A client that nobody has logged in with."""
        spelled = {camel(name): value for name, value in options.items() if value is not None}
        return self.node.ask("new", args=(url or self.url, spelled))

    def with_token(self, token: str, url: str | None = None, *, state: Path | None = None) -> Any:
        """A client of a token; `state` is its state file."""
        if state is not None:
            return self.node.ask("with-state", args=(url or self.url, token, str(state)))
        return self.node.ask("static", name="withToken", args=(url or self.url, token))

    def import_account(self, url: str, path: Path, email: str, password: str, **options: Any) -> Any:
        """A client of an account that moves."""
        spelled = {camel(name): value for name, value in options.items()}
        return self.node.ask("static", name="importAccount", args=(url, path, email, password, spelled))

    def close(self) -> None:
        """The process stays, for the clients of other tests."""
