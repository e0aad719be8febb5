"""Creates that one account is refused, each for a reason of its own."""

from __future__ import annotations

from typing import Any

from strongroom.model import AccountLimits
from tests.store.account_nodes import Node


async def quota_of_documents(node: Node, owner: str) -> Any:
    return await node.create(owner, "x", limits=AccountLimits(documents=1))


async def quota_of_bytes(node: Node, owner: str) -> Any:
    return await node.create(owner, "x", limits=AccountLimits(bytes=3))


async def unknown_vault(node: Node, owner: str) -> Any:
    return await node.create(owner, "x", "nowhere")


async def uid_of_a_document(node: Node, owner: str) -> Any:
    return await node.create(owner, "there", data="BBBB")


async def uid_of_a_vault(node: Node, owner: str) -> Any:
    return await node.create(owner, "v")


async def older_keyring(node: Node, owner: str) -> Any:
    return await node.create(owner, "x", keyring_version=4)


async def unfinished_import(node: Node, owner: str) -> Any:
    return await node.create(owner, "x")
