"""The package of the TypeScript client: what it depends on, and that what is packed works where it is installed."""

from __future__ import annotations

import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.kit.clients.javascript import PACKAGE, package, run
from tests.kit.people.credentials import unique_email
from tests.kit.servers.process import Server

FIVE_LINES = """
import { Client, Invalid } from "@strongroom/client";
import { replicaFile, sessionFile } from "@strongroom/client/node";
import { openReplica } from "@strongroom/client/replica";
import { browserAuthenticator } from "@strongroom/client/passkeys";
import { argon2id } from "@strongroom/client/argon2";

const client = new Client("%(url)s");
await client.register("%(email)s", "correct horse battery staple");
const notes = (await client.vault("personal", { create: true })).collection("notes");
let note = await notes.create({ title: "Hello" });
note = await notes.replace(note, { title: "Hello again" });
for await (const { value } of notes) console.log(value.title);
const replica = await openReplica(client, replicaFile("%(file)s"));
const { pulled } = await replica.sync();
await (await replica.vault("personal")).collection("notes").create({ title: "written offline" });
const { pushed } = await replica.sync();
await replica.close();
console.log(pulled, pushed);
const refused = await browserAuthenticator.get("", {}).catch(({ name, code }) => `${name} ${code}`);
console.log(refused, new Invalid({}).code, typeof sessionFile, typeof argon2id);
"""


def test_it_brings_nothing_along() -> None:
    """No package is installed with it; those that build it have exact versions, and the lock names no host."""
    told: dict[str, Any] = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    assert "dependencies" not in told
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in told["devDependencies"].values())
    lock = (PACKAGE / "package-lock.json").read_text("utf-8")
    assert "http" not in lock.replace("https://opencollective.com", "").replace("https://github.com", "")
    assert all("integrity" in one for name, one in json.loads(lock)["packages"].items() if name)


def test_what_is_packed_runs_the_five_lines(tmp_path: Path, server: Server) -> None:
    """In an empty project, with Argon2id as it is in production; errors have their names in the minified files too."""
    [packed] = json.loads(run("npm", "pack", "--json", "--pack-destination", str(tmp_path), folder=package()))
    names = {entry["path"] for entry in packed["files"]}
    assert {"package.json", "README.md", "LICENSE", "dist/argon2-worker.js", "dist/types/index.d.ts"} <= names
    assert "dist/THIRD-PARTY-LICENSES" in names
    assert not [name for name in names if name.startswith(("src", "test", "node_modules"))]
    with tarfile.open(tmp_path / packed["filename"]) as archive:
        archive.extractall(tmp_path, filter="data")
    home = tmp_path / "node_modules" / "@strongroom"
    home.mkdir(parents=True)
    (tmp_path / "package").rename(home / "client")
    program = tmp_path / "app.mjs"
    told = {"url": f"http://127.0.0.1:{server.port}", "email": unique_email(), "file": str(tmp_path / "replica")}
    program.write_text(FIVE_LINES % told, "utf-8")
    assert run("node", str(program)) == (
        "Hello again\n1 1\nCeremonyFailed ceremony_failed validation_error function function\n"
    )


def test_it_brings_the_licences_along() -> None:
    """Of every package of which something is in the files: their text is what the licence asks for."""
    told = (package() / "dist" / "THIRD-PARTY-LICENSES").read_text("utf-8")
    bundled = {
        match[1]
        for path in (package() / "dist").glob("*.map")
        for source in json.loads(path.read_text("utf-8"))["sources"]
        if (match := re.search(r".*node_modules/((?:@[^/]+/)?[^/]+)", source))
    }
    for name in bundled | {"hash-wasm"}:  # which is in the worker
        [file] = (PACKAGE / "node_modules" / name).glob("LICENSE*")
        assert file.read_text("utf-8").strip() in told, name


@pytest.mark.parametrize("name", ["index.js", "argon2-worker.js"])
def test_no_browser_is_asked_for_modules_of_node(name: str) -> None:
    """A bundler that looks for `node:` in what a page loads would fail."""
    built = package() / "dist"
    for path in [built / name, *built.glob("chunk-*.js"), *built.glob("rare-*.js")]:
        assert not re.search(r"""(import|from)\s*\(?["']node:""", path.read_text("utf-8")), path.name
