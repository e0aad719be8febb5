"""Clients of every kind behind one interface, so that a test is true of all: here the two of Python.

The TypeScript client is in typescript.py.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Iterator
from pathlib import Path
from typing import Any

from strongroom.client import AsyncClient, Client
from strongroom.client.async_vaults import AsyncVault
from strongroom.client.operations.vaults import OpenVault
from strongroom.client.vaults import Vault
from tests.kit.people.credentials import PASSWORD, unique_email


class Loop:
    """An event loop on a thread."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[Any]) -> Any:
        async def wait() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(wait(), self.loop).result(120)

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(20)
        self.loop.close()


def waited(loop: Loop, thing: Any) -> Any:
    """What an asynchronous thing gives, for somebody who waits."""
    if inspect.isawaitable(thing):
        return waited(loop, loop.run(thing))
    if isinstance(thing, list):
        return [waited(loop, entry) for entry in thing]
    if hasattr(thing, "__anext__"):
        return iter(Waiting(loop, thing))
    if type(thing).__module__.startswith("strongroom.client") and type(thing).__name__.startswith("Async"):
        return Waiting(loop, thing)
    return thing


class Waiting:
    """An asynchronous object whose methods wait."""

    def __init__(self, loop: Loop, thing: Any) -> None:
        self._loop = loop
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if not callable(found):
            return waited(self._loop, found)
        return lambda *args, **more: waited(self._loop, found(*args, **more))

    def __iter__(self) -> Iterator[Any]:
        walk: AsyncIterator[Any] = aiter(self._thing)
        end = object()
        try:
            while (item := self._loop.run(anext(walk, end))) is not end:
                yield item
        finally:
            if isinstance(walk, AsyncGenerator):
                self._loop.run(walk.aclose())

    def __repr__(self) -> str:
        return repr(self._thing)


class ClientFactory(ABC):
    """Makes clients of one kind, of one server."""

    kind: str
    url: str

    @abstractmethod
    def client(self, url: str | None = None, **options: Any) -> Any:
        """A client that nobody has logged in with."""

    @abstractmethod
    def with_token(self, token: str, url: str | None = None, *, state: Path | None = None) -> Any:
        """A client of a token; `state` is its state file."""

    @abstractmethod
    def import_account(self, url: str, path: Path, email: str, password: str, **options: Any) -> Any:
        """A client of an account that has moved."""

    def person(self, **options: Any) -> Any:
        """A client of somebody new."""
        client = self.client(**options)
        client.register(unique_email(), PASSWORD)
        return client

    @abstractmethod
    def close(self) -> None:
        """End what the clients use."""


class PythonClientFactory(ClientFactory):
    """Makes clients of one kind, and hangs up at the end."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url
        self._loop = Loop() if kind == "awaiting" else None
        self._made: list[Any] = []

    def _keep(self, client: Any) -> Any:
        made = client if self._loop is None else Waiting(self._loop, client)
        self._made.append(made)
        return made

    def client(self, url: str | None = None, **options: Any) -> Any:
        """A client that nobody has logged in with."""
        return self._keep((Client if self._loop is None else AsyncClient)(url or self.url, **options))

    def with_token(self, token: str, url: str | None = None, *, state: Path | None = None) -> Any:
        """A client of a token; `state` is its state file."""
        make = Client if self._loop is None else AsyncClient
        return self._keep(make.with_token(url or self.url, token, state=state))

    def import_account(self, url: str, path: Path, email: str, password: str, **options: Any) -> Any:
        """A client of an account that has moved."""
        if self._loop is None:
            return self._keep(Client.import_account(url, path, email, password, **options))
        return self._keep(self._loop.run(AsyncClient.import_account(url, path, email, password, **options)))

    def resume(self, path: Any, **options: Any) -> Any:
        """A client of a saved session."""
        if self._loop is None:
            return self._keep(Client.resume(path, **options))
        return self._keep(self._loop.run(AsyncClient.resume(path, **options)))

    def reopened(self, client: Any, opened: OpenVault) -> Any:
        """A vault that another client has opened, for this one, which need not ask for it."""
        if self._loop is None:
            return Vault(client._core, client._driver, opened)
        return Waiting(self._loop, AsyncVault(client._thing._core, client._thing._driver, opened))

    def close(self) -> None:
        for client in self._made:
            client.close()
        if self._loop is not None:
            self._loop.close()
