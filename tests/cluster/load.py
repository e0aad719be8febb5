"""Clients of the cluster that remember what they were told, and judge what they read by it."""

from __future__ import annotations

import asyncio
import itertools
import random
import time
import uuid
from collections import Counter
from typing import Any

import httpx2

from strongroom.client import AsyncClient, Refusal, RolledBack, Tampered, Unavailable
from tests.faults.concurrent_clients import client

_PAUSE = 0.05  # seconds before a request is repeated
_VERSIONS = 5  # of one document
_PASSWORD = "correct horse battery"


class Load:
    """Writers and readers over plain HTTP, and others with the Python client, until they are told to stop."""

    def __init__(self, url: str, token: str, vault: str) -> None:
        self._url, self._token, self._path = url, token, f"/vaults/{vault}/documents"
        self._alive = True
        self._tasks: list[asyncio.Task[None]] = []
        self.acknowledged: dict[str, int] = {}  # uid -> version
        self.heard: list[float] = []  # when each write was acknowledged
        self.reads = 0
        self.wrong: list[str] = []
        self.refused: Counter[object] = Counter()

    def start(self, writers: int, readers: int, programs: int) -> None:
        """Begin."""
        work = [self._write() for _ in range(writers)] + [self._read() for _ in range(readers)]
        work += [self._use_client(number) for number in range(programs)]
        self._tasks = [asyncio.create_task(one) for one in work]

    async def stop(self) -> None:
        """End, and wait for what is under way."""
        self._alive = False
        await asyncio.gather(*self._tasks)

    async def abandon(self) -> None:
        """End at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def check(self) -> None:
        """Raise what a client has met and nobody expects."""
        for task in self._tasks:
            if task.done() and not self._alive:
                continue
            if task.done():
                task.result()
                raise AssertionError("a client has ended before its time")

    def longest_stall(self, since: float) -> float:
        """The longest time from then on in which nothing was acknowledged."""
        moments = [since, *(moment for moment in self.heard if moment > since)]
        return max((later - one for one, later in itertools.pairwise(moments)), default=0.0)

    async def _write(self) -> None:
        async with client(self._url, self._token) as http:
            while self._alive:
                uid = str(uuid.uuid4())
                body: dict[str, Any] = {"uid": uid, "collection": "c", "data": "A" * 200}
                version = 1
                while version <= _VERSIONS:
                    if not await self._acknowledged(http, uid, version, body):
                        break
                    body = {"data": chr(65 + version) * 200, "version": version}
                    version += 1

    async def _acknowledged(self, http: httpx2.AsyncClient, uid: str, version: int, body: dict[str, Any]) -> bool:
        """Repeat a write until it is acknowledged; False where it is time to stop."""
        while self._alive:
            try:
                if version == 1:
                    answer = await http.post(self._path, json=body)
                else:
                    answer = await http.put(f"{self._path}/{uid}", json=body)
            except httpx2.TransportError as error:
                self.refused[type(error).__name__] += 1
            else:
                if answer.status_code in {200, 201}:
                    if answer.json()["version"] != version:
                        self.wrong.append(f"version {version} of {uid} was acknowledged as {answer.text}")
                    self.acknowledged[uid] = version
                    self.heard.append(time.monotonic())
                    return True
                self.refused[answer.status_code] += 1
                if answer.status_code < 500:  # nobody else writes to it: the server contradicts itself
                    self.wrong.append(f"version {version} of {uid}: {answer.status_code} {answer.text}")
                    return False
            await asyncio.sleep(_PAUSE)
        return False

    async def _read(self) -> None:
        """Read what was acknowledged before the read began: it must be there, at that version or a later one."""
        async with client(self._url, self._token) as http:
            while self._alive:
                if not self.acknowledged:
                    await asyncio.sleep(_PAUSE)
                    continue
                recent = list(itertools.islice(reversed(self.acknowledged), 40))
                uid = random.choice(recent)  # noqa: S311
                least = self.acknowledged[uid]
                try:
                    answer = await http.get(f"{self._path}/{uid}")
                except httpx2.TransportError as error:
                    self.refused[type(error).__name__] += 1
                else:
                    if answer.status_code < 500:
                        self.reads += 1
                        if answer.status_code != 200 or answer.json()["version"] < least:
                            self.wrong.append(f"{uid} had version {least}; a read gives {answer.text[:200]}")
                        await asyncio.sleep(0.005)
                        continue
                    self.refused[answer.status_code] += 1
                await asyncio.sleep(_PAUSE)

    async def _use_client(self, number: int) -> None:
        """The Python client, which judges what it reads itself: what is older than it has seen is RolledBack."""
        async with AsyncClient(self._url, retries=2) as program:
            await self._until_done(lambda: program.register(f"{number}-{uuid.uuid4()}@example.com", _PASSWORD))
            vault = await self._until_done(lambda: program.vault("v", create=True))
            if vault is None:  # it is over before it has begun
                return
            notes, kept = vault.collection("notes"), dict[str, int]()
            while self._alive:
                note = await self._until_done(lambda: notes.create({"count": 1}))
                for count in range(2, _VERSIONS):
                    if note is None:
                        break
                    kept[note.uid] = note.version
                    self.heard.append(time.monotonic())
                    uid, least = note.uid, note.version
                    read = await self._until_done(lambda uid=uid: notes.get(uid))
                    if read is None:
                        break
                    self.reads += 1
                    if read.version < least:
                        self.wrong.append(f"the Python client read version {read.version} of {uid} after {least}")
                    note = await self._until_done(lambda read=read, count=count: notes.replace(read, {"count": count}))
            for uid, version in kept.items():
                if (await notes.get(uid)).version < version:
                    self.wrong.append(f"{uid} of the Python client had version {version}")

    async def _until_done(self, call: Any) -> Any:
        while self._alive:
            try:
                return await call()
            except Unavailable as error:
                self.refused[error.code] += 1
                await asyncio.sleep(_PAUSE)
            except (RolledBack, Tampered) as error:
                self.wrong.append(f"the Python client says: {error}")
                return None
            except Refusal as error:
                self.wrong.append(f"the Python client was refused: {error}")
                return None
        return None
