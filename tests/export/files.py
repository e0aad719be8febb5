"""What the tests of export and import share: a furnished account, a file, a body that is sent piece by piece."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import httpx2

from tests.kit.people.person import Person

Json = dict[str, Any]
LINES = "application/x-ndjson"


async def exported(person: Person) -> bytes:
    """The file of an account."""
    answer = await person("GET", "/auth/export")
    assert answer.status_code == 200, answer.text
    return answer.content


async def imported(person: Person, file: bytes, **more: Any) -> httpx2.Response:
    """What comes of sending a file."""
    return await person("POST", "/auth/import", content=file, headers={"content-type": LINES}, **more)


def lines(file: bytes) -> list[Json]:
    """The lines of a file."""
    return [json.loads(line) for line in file.splitlines()]


def body(file: bytes) -> list[bytes]:
    """The lines between the header and the trailer: what must not change from server to server."""
    return file.splitlines()[1:-1]


def came(file: bytes, left_out: int = 0) -> Json:
    """What the answer to an import says of a file."""
    return {**lines(file)[-1]["counts"], "leftOut": left_out}


def sealed(written: Iterable[Any], **trailer: Any) -> bytes:
    """A file of these lines, with a trailer that fits them."""
    given = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in written]
    kinds = [line.get("kind") if isinstance(line, dict) else None for line in map(_read, given)]
    plural = {
        "keyring": "keyrings",
        "keyringVersion": "keyringVersions",
        "vault": "vaults",
        "document": "documents",
        "version": "versions",
        "blobVersion": "blobVersions",
    }
    before = b"".join(line + b"\n" for line in given)
    end = {
        "kind": "trailer",
        "counts": {name: kinds.count(kind) for kind, name in plural.items()},
        "sha256": hashlib.sha256(before).hexdigest(),
        **trailer,
    }
    return before + json.dumps(end).encode() + b"\n"


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


async def furnish(person: Person, *, documents: int = 12, size: int = 40) -> Json:
    """Two vaults: one with a blob, documents, tombstones, a revived document and what they were before; one bare."""
    await person.vault()
    vault = await person.vault(data="sealed é\0", salt="AA==")

    async def batch(operations: list[Json]) -> list[Json]:
        done = await person("POST", f"/vaults/{vault['uid']}/batch", {"operations": operations})
        assert done.status_code == 200, done.text
        results: list[Json] = done.json()["results"]
        return results

    def put(n: int, version: int, letter: str) -> Json:
        return {"op": "put", "uid": uids[n], "version": version, "data": letter * size}

    made = await batch(
        [
            {"op": "create", "collection": f"c{n % 3}", "data": "A" * size, "hmac": "é" if n % 2 else None}
            for n in range(documents)
        ]
    )
    uids = [document["uid"] for document in made]
    for version in (1, 2, 3):
        await batch([put(n, version, "B") for n in range(documents) if n % 4 >= version])
    await batch([{"op": "delete", "uid": uids[n]} for n in range(1, documents, 3)])
    await batch([put(n, n % 4 + 2, "C") for n in range(4, documents, 6)])
    for version in (1, 2):
        again = {"data": f"again {version}", "salt": "", "version": version}
        assert (await person("PUT", f"/vault/{vault['uid']}", again)).status_code == 200
    return vault


class Upload:
    """An import whose body is sent piece by piece: what the server does in between can be seen."""

    def __init__(self, app: Callable[..., Awaitable[None]], person: Person) -> None:
        self._pieces: asyncio.Queue[Json] = asyncio.Queue()
        self._asked = asyncio.Event()
        self.status = 0
        self._answer = b""
        headers = [(b"authorization", f"Bearer {person.access}".encode()), (b"content-type", LINES.encode())]
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/auth/import",
            "raw_path": b"/auth/import",
            "query_string": b"",
            "root_path": "",
            "headers": [*headers, (b"transfer-encoding", b"chunked")],
            "client": ("127.0.0.1", 5),
        }
        self._task = asyncio.ensure_future(app(scope, self._receive, self._send))

    async def _receive(self) -> Json:
        self._asked.set()
        message = await self._pieces.get()
        self._asked.clear()
        return message

    async def _send(self, message: Json) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        else:
            self._answer += message.get("body", b"")

    async def piece(self, raw: bytes) -> None:
        """Send a piece, and wait until the server has done with it and asks for more."""
        await self._wait()
        self._asked.clear()
        self._pieces.put_nowait({"type": "http.request", "body": raw, "more_body": True})
        await self._wait()

    async def _wait(self) -> None:
        asked = asyncio.ensure_future(self._asked.wait())
        await asyncio.wait({asked, self._task}, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()

    async def end(self) -> Json:
        """Send the end; the answer."""
        self._pieces.put_nowait({"type": "http.request", "body": b"", "more_body": False})
        return await self.answer()

    async def vanish(self) -> None:
        """Break the connection off."""
        self._pieces.put_nowait({"type": "http.disconnect"})
        await self._task

    async def answer(self) -> Json:
        """The answer, when it is there."""
        await self._task
        given: Json = json.loads(self._answer)
        return given
