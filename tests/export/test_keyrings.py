"""The keys of an account in its export: they come in whole, with the password only, and never replace others."""

from __future__ import annotations

from typing import Any

from strongroom.rules import DAY
from strongroom.wire.export_file import MAX_KEYRINGS
from tests.export.files import Json, Upload, body, came, exported, furnish, imported, lines, sealed
from tests.kit.asynchronous import async_test
from tests.kit.network.responses import refused
from tests.kit.people.keyrings import keyring
from tests.kit.people.person import Person
from tests.kit.servers.in_process import InProcessServer, OpenServer

KDF: Json = {"kdf": "argon2id", "memory": 65_536, "salt": "AAAA"}
PASSWORD = "correct horse"


def proof(password: str = PASSWORD) -> bytes:
    """The line before the file."""
    return b'{"kind":"password","currentPassword":"%s"}\n' % password.encode()


async def with_keys(server: InProcessServer, *, name: str = "ann", count: int = 3) -> Person:
    """An account whose keyring was replaced a few times, the last one after a jump."""
    person: Person = await server.person()
    first = {"keyring": keyring(name), "version": 0, "kdf": KDF, "currentPassword": PASSWORD}
    assert (await person("PUT", "/auth/keyring", first)).status_code == 200
    for version in range(1, count):
        again = {"keyring": keyring(name, version=version + 1), "version": version}
        if version == count - 1:
            again["newVersion"] = 40
        assert (await person("PUT", "/auth/keyring", again)).status_code == 200
        server.clock.pass_(1_000)
    return person


async def keys(person: Person) -> list[Any]:
    """Everything that the server says of a person's keys."""
    told = [(await person("GET", "/auth/keyring")).json()]
    kept = (await person("GET", "/auth/keyring/versions")).json()["versions"]
    told += [(await person("GET", f"/auth/keyring/versions/{one['version']}")).json() for one in kept]
    prelogin = await person.http.post("/auth/email/prelogin", json={"email": person.email})
    return [*told, kept, prelogin.json()]


@async_test
async def test_the_keys_move_with_the_account(open_server: OpenServer) -> None:
    """Keyring, the keyrings before it, their versions and times, and what prelogin says: the same on both sides."""
    async with open_server() as server:
        ann, bob = await with_keys(server), await server.person()
        await furnish(ann)
        file = await exported(ann)
        header, current, *rest = lines(file)
        assert (header["kdf"], current["kind"], current["version"]) == (KDF, "keyring", 40)
        assert [line["version"] for line in rest if line["kind"] == "keyringVersion"] == [1, 2]
        answer = await imported(bob, proof() + file)
        assert (answer.status_code, answer.json()) == (200, came(file))
        assert answer.json()["keyrings"] == 1
        assert answer.json()["keyringVersions"] == 2
        assert await keys(bob) == await keys(ann)
        assert body(await exported(bob)) == body(file)
        assert (await server.login(bob.email)).status_code == 200
        again = await imported(bob, proof() + file)
        assert (again.status_code, again.json()) == (200, came(file))


@async_test
async def test_a_key_derivation_without_a_keyring_moves_too(open_server: OpenServer) -> None:
    """A client may only have stored how its password is derived."""
    async with open_server() as server:
        kdf: Json = {"email": "ada@example.com", "password": PASSWORD, "kdf": KDF}
        ann = Person(server.http, kdf["email"], (await server.http.post("/auth/email/register", json=kdf)).json())
        bob = await server.person()
        file = await exported(ann)
        refused(await imported(bob, file), 400, "validation_error")
        assert (await imported(bob, proof() + file)).status_code == 200
        assert (await keys(bob))[-1] == {"kdf": KDF}


@async_test
async def test_keys_come_in_only_with_the_password(open_server: OpenServer) -> None:
    """Without it, or with a wrong one, nothing is begun: a stolen token sets no keyring. Wrong ones are counted."""
    async with open_server() as server:
        ann, bob = await with_keys(server), await server.person()
        file = await exported(ann)
        error = refused(await imported(bob, file), 400, "validation_error")
        assert list(error["details"]["fields"]) == ["currentPassword"]
        server.clock.pass_(1)
        refused(await imported(bob, proof("wrong horse") + file), 401, "invalid_credentials")
        assert (await bob("GET", "/auth/events")).json()["events"][0]["type"] == "login_failed"
        assert (await bob("GET", "/auth/keyring")).status_code == 404
        refused(await bob("DELETE", "/auth/import"), 404, "import_not_found")
        await bob.vault()


@async_test
async def test_a_password_that_changes_meanwhile_proves_nothing(open_server: OpenServer) -> None:
    """Changed during the upload: the keys do not come in, and after the new one is proven they do."""
    async with open_server() as server:
        ann, bob = await with_keys(server), await server.person()
        await furnish(ann)
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(proof() + file[: len(file) // 2])
        words = {"currentPassword": PASSWORD, "newPassword": "another horse"}
        assert (await bob("PUT", "/auth/password", words)).status_code == 200
        await upload.piece(file[len(file) // 2 :])
        await upload.end()
        assert upload.status == 401
        assert (await bob("GET", "/auth/keyring")).status_code == 404
        assert (await imported(bob, proof("another horse") + file)).status_code == 200
        assert await keys(bob) == await keys(ann)


@async_test
async def test_nobody_is_shut_out_by_an_import(open_server: OpenServer) -> None:
    """An account with another keyring, or with another derivation of its password, keeps it and takes no file."""
    async with open_server() as server:
        ann = await with_keys(server)
        plain = await server.person()
        with_file, without_keys = await exported(ann), await exported(plain)
        other = await with_keys(server, name="other")
        before = await keys(other)
        for file in (with_file, without_keys):
            error = refused(await imported(other, proof() + file), 409, "account_not_empty")
            assert "keyring of its own" in error["message"]
        assert await keys(other) == before
        register: Json = {"email": "eve@example.com", "password": PASSWORD, "kdf": {**KDF, "salt": "BBBB"}}
        eve = Person(
            server.http, register["email"], (await server.http.post("/auth/email/register", json=register)).json()
        )
        error = refused(await imported(eve, proof() + with_file), 409, "account_not_empty")
        assert "password" in error["message"]
        assert (await keys(eve))[-1] == {"kdf": register["kdf"]}
        for person in (other, eve):
            await person.vault()


@async_test
async def test_a_newer_keyring_of_the_same_account_stays(open_server: OpenServer) -> None:
    """A client may seal the keyring anew before the file comes in: the file's is retained before it."""
    async with open_server() as server:
        ann = await with_keys(server)
        await furnish(ann)
        file = await exported(ann)
        for version, status in ((41, 200), (39, 409)):
            bob = await server.person()
            mine = {"keyring": keyring("ann", slots="mine", version=version), "version": 0, "newVersion": version}
            mine |= {"kdf": {**KDF, "salt": "mine"}, "currentPassword": PASSWORD}
            assert (await bob("PUT", "/auth/keyring", mine)).status_code == 200
            answer = await imported(bob, proof() + file)
            assert answer.status_code == status, answer.text
            told = await keys(bob)
            assert (told[0]["keyring"], told[-1]) == (mine["keyring"], {"kdf": mine["kdf"]})
            if status == 200:
                assert [one["version"] for one in told[-2]] == [40, 2, 1]
                assert told[1] == (await keys(ann))[0]
            else:
                await bob.vault()


@async_test
async def test_an_unfinished_import_shows_no_keys(open_server: OpenServer) -> None:
    """The keyring comes with the end: nobody takes an account for whole that is not. Given up, there is none."""
    async with open_server() as server:
        ann, bob = await with_keys(server), await server.person()
        await furnish(ann)
        file = await exported(ann)
        upload = Upload(server.app, bob)
        await upload.piece(proof() + file[:-20])
        await upload.vanish()
        assert (await bob("GET", "/auth/keyring")).status_code == 404
        assert (await bob("GET", "/auth/keyring/versions")).json() == {"versions": []}
        assert (await bob("DELETE", "/auth/import")).status_code == 200
        assert (await bob("GET", "/auth/keyring")).status_code == 404
        assert (await imported(bob, proof() + file)).status_code == 200
        assert await keys(bob) == await keys(ann)


@async_test
async def test_another_file_does_not_continue(open_server: OpenServer) -> None:
    """The keyrings belong to what was begun: a file that differs in them alone is another one."""
    async with open_server() as server:
        ann, bob = await with_keys(server), await server.person()
        await furnish(ann)
        written = lines(await exported(ann))[:-1]
        file = sealed(written)
        upload = Upload(server.app, bob)
        await upload.piece(proof() + b"".join(file.splitlines(keepends=True)[:5]))
        await upload.vanish()
        fewer = [line for line in written if line["kind"] != "keyringVersion"]
        other = [
            {**line, "keyring": keyring("ann", version=9)} if line["kind"] == "keyring" else line for line in written
        ]
        for wrong in (fewer, other):
            refused(await imported(bob, proof() + sealed(wrong)), 409, "import_unfinished")
        assert (await imported(bob, proof() + file)).status_code == 200


@async_test
async def test_a_bad_line_of_keys_is_refused_by_its_number(open_server: OpenServer) -> None:
    """Once, in order, before the vaults, of one account, no more than a server keeps; the password is no line."""
    async with open_server() as server:
        now = server.clock.now
        head: Json = {
            "kind": "header", "format": "strongroom-export", "version": 2, "epoch": "e", "clock": now,
            "exportedAt": now, "id": "0192f0c1-2b3c-7d4e-8f90-a1b2c3d4e5f6", "kdf": KDF,
        }  # fmt: skip
        ring: Json = {"kind": "keyring", "keyring": keyring(version=900), "version": 900, "updatedAt": 9}
        old: Json = {"kind": "keyringVersion", "keyring": keyring(), "version": 1, "updatedAt": 1, "replacedAt": 2}
        eves = {**old, "keyring": keyring("eve"), "version": 2}
        vault = {"kind": "vault", "uid": head["id"], "name": "v", "version": 1, "createdAt": 1, "updatedAt": 2}
        many = [{**old, "version": n + 1} for n in range(MAX_KEYRINGS + 1)]
        bad: dict[str, tuple[list[Any], int, str]] = {
            "a keyring of no base64": ([head, {**ring, "keyring": "Dear diary"}], 2, "keyring"),
            "a keyring that is too long": ([head, {**ring, "keyring": "A" * 262_145}], 2, "keyring"),
            "a derivation that is too long": ([{**head, "kdf": {"a": "x" * 2_049}}], 1, "kdf"),
            "two keyrings": ([head, ring, ring], 3, "kind"),
            "a keyring after a vault": ([head, vault, ring], 3, "kind"),
            "a replaced one before the keyring": ([head, old], 2, "kind"),
            "a replaced one after a vault": ([head, ring, vault, old], 4, "kind"),
            "a replaced one twice": ([head, ring, old, old], 4, "version"),
            "a replaced one that is newer": ([head, ring, {**old, "version": 900}], 3, "version"),
            "a replaced one of another account": ([head, ring, old, eves, vault], 4, "keyring"),
            "a replaced one of times out of order": ([head, ring, {**old, "updatedAt": 3}], 3, "replacedAt"),
            "a replaced one of the future": ([head, ring, {**old, "replacedAt": now + 2 * DAY}], 3, "replacedAt"),
            "too many": ([head, ring, *many], MAX_KEYRINGS + 3, "kind"),
        }  # fmt: skip
        for fault, (written, number, field) in bad.items():
            print(fault)  # noqa: T201 - the last one is the one that failed
            ann = await server.person()
            error = refused(await imported(ann, proof() + sealed(written)), 400, "validation_error")
            assert (error["details"]["line"], list(error["details"]["fields"])) == (number, [field])
            assert "Dear diary" not in str(error)
            assert (await ann("DELETE", "/auth/import")).status_code == (200 if vault in written[:3] else 404)
            assert (await imported(ann, proof() + sealed([head, ring, old, vault]))).status_code == 200
        bob = await server.person()
        refused(await imported(bob, proof() + proof() + sealed([head, ring])), 400, "validation_error")
        refused(await imported(bob, b'{"kind":"password"}\n' + sealed([head, ring])), 400, "validation_error")
