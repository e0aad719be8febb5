"""Vaults with everything that a vault can have, to be deleted; and the steps in which their rows go."""

from __future__ import annotations

import json
from typing import Any

from strongroom.actions import deletions
from tests.kit.network.responses import good
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer
from tests.kit.servers.internals import context_of, database_of

VAULT = "0192f0c1-0000-7000-8000-000000000001"
COUNT = 90  # documents: more than one step deletes
TABLES = ("documents", "versions", "blob_versions")


def uid_of(number: int) -> str:
    """The uid of a document, the same in each vault that is filled."""
    return f"0192f0c2-0000-7000-8000-{number:012}"


async def fill(person: Person, content: str, uid: str = VAULT) -> None:
    """A vault with documents, history, trash and a blob that was replaced; all of it begins with this content."""
    vault = await person.vault(uid=uid, name="Personal", data=f"{content}blob", salt="s")
    path = f"/vaults/{uid}"
    for start in range(0, COUNT, 30):
        creates = [
            {"op": "create", "uid": uid_of(n), "collection": f"c{n % 3}", "data": f"{content}{n:04}"}
            for n in range(start, start + 30)
        ]
        good(await person("POST", f"{path}/batch", {"operations": creates}))
    puts = [{"op": "put", "uid": uid_of(n), "version": 1, "data": f"{content}{n:04}AAAA"} for n in range(0, COUNT, 3)]
    good(await person("POST", f"{path}/batch", {"operations": puts}))
    deletes = [{"op": "delete", "uid": uid_of(n)} for n in range(0, COUNT, 5)]
    good(await person("POST", f"{path}/batch", {"operations": deletes}))
    for version in (1, 2):
        changed = {"data": f"{content}blob{version}", "salt": "s", "version": version}
        vault = good(await person("PUT", f"/vault/{uid}", changed))
    assert vault["version"] == 3


async def seen(person: Person, uid: str = VAULT) -> dict[str, Any]:
    """All that a client can see of a vault and of its account, without times and ids that no two accounts share."""
    path = f"/vaults/{uid}"
    found: dict[str, Any] = {}
    for name, where in {
        "vault": f"/vault/{uid}",
        "vaults": "/vault",
        "documents": f"{path}/documents?since=0",
        "trash": f"{path}/documents?deleted=only",
        "document": f"{path}/documents/{uid_of(3)}",
        "versions": f"{path}/documents/{uid_of(3)}/versions",
        "version": f"{path}/documents/{uid_of(3)}/versions/1",
        "history": f"{path}/documents/history?since=0",
        "blobs": f"/vault/{uid}/versions",
        "blob": f"/vault/{uid}/versions/1",
        "sync": f"{path}/documents/sync?since=0",
        "collections": f"{path}/collections",
        "me": "/auth/me",
    }.items():
        response = await person("GET", where)
        found[name] = (response.status_code, _timeless(response.json()))
    exported = (await person("GET", "/auth/export")).text.splitlines()
    found["export"] = [_timeless(json.loads(line)) for line in exported[1:-1]]
    return found


_TIMES = {
    "updatedAt",
    "createdAt",
    "deletedAt",
    "replacedAt",
    "next",
    "syncedAt",
    "epoch",
    "requestId",
    "id",
    "email",
    "etag",
}


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _timeless(one) for name, one in value.items() if name not in _TIMES}
    return [_timeless(one) for one in value] if isinstance(value, list) else value


async def step(server: InProcessServer, progress: deletions.DeletionProgress | None = None) -> bool:
    """One transaction of the deletion, in a process that knows nothing of the earlier ones; whether there was work."""
    return await database_of(server.app).write_long(deletions.delete_some, progress or deletions.DeletionProgress())


async def finish(server: InProcessServer) -> int:
    """All steps, and the end of the deletion; how many there were."""
    steps, progress = 0, deletions.DeletionProgress()
    while await step(server, progress):
        steps += 1
    assert await context_of(server.app).deletions.truncate()
    return steps
