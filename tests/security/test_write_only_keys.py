"""A key without the permission to read gets no ciphertext in any response but what its own request carried."""

from __future__ import annotations

import base64
import itertools
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from strongroom.model import Variant
from strongroom.server import routes
from strongroom.server.request import Access
from tests.kit.asynchronous import async_test
from tests.kit.people.person import Person
from tests.kit.samples import some
from tests.kit.servers.in_process import InProcessServer, OpenServer
from tests.security.asgi_request import ask

_numbers = itertools.count(1)


def marker(what: str) -> str:
    """A text by which stored ciphertext is recognised; it is base64 as well."""
    return base64.urlsafe_b64encode(f"{what} {uuid.uuid4().hex}".encode()).decode().rstrip("=")


class Place(NamedTuple):
    """A vault with a blob and a document, each with a version that was replaced; and what must not be shown of them."""

    vault: str
    name: str
    data: str
    salt: str
    document: str
    doc_data: str
    doc_hmac: str
    deleted: str
    secrets: tuple[str, ...]


async def furnished(app: Any, owner: Person) -> Place:
    """A place of its own for each try that may change it."""
    texts = [marker(f"secret{number}") for number in range(8)]
    old_data, old_salt, data, salt, old_doc, old_hmac, doc, hmac = texts
    name, vault, uids = f"vault number {next(_numbers)}", str(uuid.uuid4()), [str(uuid.uuid4()) for _ in range(2)]
    new = {"collection": "in", "data": old_doc, "hmac": old_hmac}
    for method, path, body in (
        ("POST", "/vault", {"uid": vault, "name": name, "data": old_data, "salt": old_salt}),
        ("PUT", f"/vault/{vault}", {"data": data, "salt": salt}),
        ("POST", f"/vaults/{vault}/batch", {"operations": [{"op": "create", "uid": uid, **new} for uid in uids]}),
        (
            "POST",
            f"/vaults/{vault}/batch",
            {"operations": [{"op": "put", "uid": uid, "data": doc, "hmac": hmac, "version": 1} for uid in uids]},
        ),
        ("DELETE", f"/vaults/{vault}/documents/{uids[1]}", None),
    ):
        answer = await ask(app, method, path, owner.access, body)
        assert answer.status in {200, 201}, answer
    return Place(vault, name, data, salt, uids[0], doc, hmac, uids[1], tuple(texts))


class Try(NamedTuple):
    """One request. Those of one way are made one after the other."""

    method: str
    route: str
    body: Any = None
    if_match: str | None = None


def ways(at: Place) -> Iterator[list[Try]]:
    """Every way that we know to get an answer that holds something stored."""
    vault, document, batch = "/vault/{uid}", "/vaults/{vaultUid}/documents/{uid}", "/vaults/{vaultUid}/batch"
    blob, new = {"data": at.data, "salt": at.salt}, f"{at.name}, renamed"
    for tag in ("*", '"2"', '"1"', '"1", "2"'):
        yield [Try("PUT", vault, {"name": new}, tag), Try("PUT", vault, {"name": new}, tag)]
        yield [Try("PUT", vault, {"name": at.name}, tag)]
        yield [Try("PUT", vault, {"data": "AAAA", "salt": ""}, tag), Try("PUT", vault, {"name": at.name}, tag)]
        yield [Try("PUT", document, {"data": "AAAA"}, tag), Try("PUT", document, {"data": "AAAA"}, tag)]
        yield [Try("DELETE", document, None, tag), Try("PUT", document, {"data": "AAAA"}, tag)]
        yield [Try("DELETE", vault, None, tag)]
    for version in (1, 2, 3, 9):
        yield [Try("PUT", vault, {"name": new, "version": version})] * 2
        yield [Try("PUT", vault, {"name": at.name, "version": version})]
        yield [Try("PUT", vault, {**blob, "version": version})]
        yield [Try("PUT", vault, {"data": "AAAA", "salt": "", "version": version})] * 2
        yield [Try("PUT", vault, {"name": new, "data": "AAAA", "salt": "", "version": version})] * 2
        yield [Try("PUT", document, {"data": "AAAA", "version": version})] * 2
        yield [Try("PUT", document, {"data": at.doc_data, "hmac": at.doc_hmac, "version": version})]
        yield [Try("PUT", document, {"data": at.doc_data, "version": version})]
        yield [Try("PUT", document, {"data": "AAAA", "version": version, "newVersion": version + 1})] * 2
        yield [Try("PUT", vault, {"name": new, "version": version, "newVersion": version + 1})] * 2
        yield [Try("DELETE", document, {"version": version})] * 2
        for op in (
            {"op": "put", "uid": at.document, "data": "AAAA", "version": version},
            {"op": "put", "uid": at.document, "data": at.doc_data, "hmac": at.doc_hmac, "version": version},
            {"op": "put", "uid": at.deleted, "data": "AAAA", "version": version},
            {"op": "delete", "uid": at.document, "version": version},
        ):
            yield [Try("POST", batch, {"operations": [op]})] * 2
    yield [Try("DELETE", document), Try("PUT", document, {"data": "AAAA", "version": 3})]
    yield [Try("POST", batch, {"operations": [{"op": "delete", "uid": at.document}]})]
    for uid in (at.vault, at.document, at.deleted):
        yield [Try("POST", "/vault", {"uid": uid, "name": at.name})]
        yield [Try("POST", "/vault", {"uid": uid, "name": at.name, "data": "AAAA", "salt": ""})]
        made = {"uid": uid, "collection": "in", "data": "AAAA"}
        yield [Try("POST", "/vaults/{vaultUid}/documents", made)] * 2
        yield [Try("POST", batch, {"operations": [{"op": "create", **made}]})] * 2
        for version in (1, 2, 3):
            yield [Try("POST", "/vaults/{vaultUid}/documents", {**made, "newVersion": version})] * 2
    yield [Try("POST", "/vault", {"name": at.name})]
    for route in (
        *("/vault", vault, "/vault/by-name/{name*}", "/vault/{uid}/versions", "/vault/{uid}/versions/{version}"),
        *("/vaults/{vaultUid}/documents", "/vaults/{vaultUid}/documents/sync", document),
        *("/vaults/{vaultUid}/documents/history", "/vaults/{vaultUid}/collections"),
        *(f"{document}/versions", f"{document}/versions/{{version}}"),
        *("/vaults/{vaultUid}/events", "/events", "/auth/me"),
    ):
        yield [Try("GET", route)]


def spelled(one: Try, at: Place) -> str:
    """The path of a try."""
    about_document = "{vaultUid}" in one.route
    path = one.route.replace("{vaultUid}", at.vault).replace("{version}", "1").replace("{name*}", quote(at.name))
    return path.replace("{uid}", at.document if about_document else at.vault)


async def shown(app: Any, key: str, one: Try, at: Place) -> list[str]:
    """Which stored ciphertext a try is shown that it did not carry; and counts."""
    headers = () if one.if_match is None else (("if-match", one.if_match),)
    answer = await ask(app, one.method, spelled(one, at), key, one.body, headers=headers)
    text = answer.body.decode() + repr(answer.headers)
    assert answer.status < 500, text
    found = [secret for secret in at.secrets if secret in text and secret not in repr(one.body)]
    if answer.status < 300 and "/vault" in one.route and answer.json().keys() & {"documents", "bytes"}:
        found.append("counts")
    return found


KEYS = (
    (["write"], ""),
    (["delete"], ""),
    (["write", "delete"], "vaultUids"),
    (["write", "delete"], "collections"),
    (["write", "delete"], "vaultUids collections"),
)


async def key_of(owner: Person, at: Place, permissions: list[str], scope: str) -> str:
    """A key of these permissions, limited to what the place is."""
    scopes = {"vaultUids": [at.vault], "collections": ["in"]}
    return await owner.key(permissions=permissions, **{name: scopes[name] for name in scope.split()})


async def play(
    server: InProcessServer, permissions: list[str], scope: str, numbers: Iterable[int] | None = None
) -> list[str]:
    """The ways of these numbers, or all, with keys of these permissions; what was shown that should not have been."""
    owner = await server.person()
    unchanged = await furnished(server.app, owner)
    count = len(list(ways(unchanged)))
    unscoped = "" if scope else await key_of(owner, unchanged, permissions, scope)
    leaks: list[str] = []
    for number in range(count) if numbers is None else numbers:
        reads = all(one.method == "GET" for one in list(ways(unchanged))[number])
        at = unchanged if reads else await furnished(server.app, owner)
        key = unscoped or await key_of(owner, at, permissions, scope)
        for one in list(ways(at))[number]:
            if "read" in permissions and one.route.endswith("/events"):
                continue  # a stream, which has no end of its own
            found = await shown(server.app, key, one, at)
            leaks += [f"{one.method} {one.route} {one.body} {one.if_match}: {secret}" for secret in found]
    return leaks


@async_test
async def test_who_may_not_read_is_shown_nothing_stored(open_server: OpenServer) -> None:
    """Permissions without `read`, alone and with every scope, by every way that answers with something stored.

    In `make test` each kind of key comes by a quarter of the ways; each way with some key.
    """
    async with open_server() as server:
        count = len(list(ways(await furnished(server.app, await server.person()))))
        for shift, (permissions, scope) in enumerate(KEYS):
            assert not await play(
                server, permissions, scope, some("ways to read with a key that may not", range(count), shift)
            ), (permissions, scope)


@async_test
async def test_the_same_ways_show_it_to_who_may_read(open_server: OpenServer) -> None:
    """A test in which nobody is shown anything would pass too easily."""
    async with open_server() as server:
        seen = await play(server, ["read", "write", "delete"], "")
        for way in ("PUT /vault/{uid}", "DELETE /vaults/{vaultUid}/documents/{uid}", "GET /vault/{uid}"):
            assert any(leak.startswith(way) for leak in seen), way


@async_test
async def test_every_route_of_keys_is_tried(open_server: OpenServer) -> None:
    """A new route that an API key may call needs a way here."""
    async with open_server() as server:
        at = await furnished(server.app, await server.person())
        tried = {(one.method, one.route) for way in ways(at) for one in way}
        open_to_keys = {
            (endpoint.method, endpoint.path)
            for endpoint in routes.router(Variant.BOTH).endpoints
            if endpoint.access is Access.ANY
        }
        assert open_to_keys == tried
