"""Sealed memory: notes of a model, encrypted, in a collection that a token opens. The server cannot read them."""

from __future__ import annotations

from collections import deque
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from strongroom.agent.protocol import Failed
from strongroom.agent.secrets import read_token_file
from strongroom.client import AsyncClient, AsyncCollection
from strongroom.mcp import policy

LONGEST: Final = 16_384  # characters of a memory
MOST: Final = 50  # memories in one reply
_MOST_CHARACTERS: Final = 1 << 16  # in one reply

Text = Annotated[str, Meta(min_length=1, max_length=LONGEST)]
Tags = Annotated[list[Annotated[str, Meta(min_length=1, max_length=100)]], Meta(max_length=20)]


class _Stored(Struct, frozen=True, omit_defaults=True):
    text: str
    tags: list[str] = []


class Remembered(Struct, frozen=True, kw_only=True):
    """A memory."""

    uid: str
    text: str
    tags: list[str]
    updated_at: int


class SealedMemory:
    """The memories in a collection. Each call opens the collection, and forgets its key after it."""

    def __init__(self, where: policy.Memory) -> None:
        self._where = where

    async def remember(self, text: str, tags: list[str]) -> str:
        """Store a memory; its uid."""
        async with self._client() as client:
            return (await _collection(client).create(msgspec.to_builtins(_Stored(text, tags)))).uid

    async def recall(self, query: str, most: int) -> list[Remembered]:
        """The newest memories in which every word of the query stands."""
        words = query.casefold().split()
        found: deque[Remembered] = deque(maxlen=most)
        async with self._client() as client:
            async for document in _collection(client):  # in the order of their last change
                try:
                    stored = msgspec.convert(document.raw, _Stored)
                except msgspec.ValidationError:
                    continue  # a document of another program
                text = "\n".join([stored.text, *stored.tags]).casefold()
                if all(word in text for word in words):
                    one = Remembered(
                        uid=document.uid, text=stored.text, tags=stored.tags, updated_at=document.updated_at
                    )
                    found.append(one)
        shown: list[Remembered] = []
        room = _MOST_CHARACTERS
        for one in reversed(found):
            room -= len(one.text)
            if room < 0:
                break
            shown.append(one)
        return shown

    async def forget(self, uid: str) -> None:
        """Delete a memory. It stays in the trash for as long as the server keeps it."""
        async with self._client() as client:
            collection = _collection(client)
            await collection.delete(await collection.get(uid))

    def _client(self) -> AsyncClient:
        token = read_token_file(self._where.token_file)
        return AsyncClient.with_token(self._where.url, token, state=self._where.state_file, ca_file=self._where.ca_file)


def _collection(client: AsyncClient) -> AsyncCollection[Any]:
    from strongroom.client.errors import Locked

    try:
        return client.collection()
    except Locked:
        raise Failed("invalid", "The memory needs a token for one collection.") from None
