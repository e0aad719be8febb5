"""The package is installed into an empty project and used there as its pages say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client
from tests.kit.browsers.authenticator import AUTHENTICATOR
from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import run, served
from tests.kit.clients.javascript_project import check, esbuild, project
from tests.kit.documents import URL, fences, sections, text_of
from tests.kit.network.ports import free_port
from tests.kit.people.credentials import unique_email
from tests.kit.project import ROOT
from tests.kit.servers.process import Server

BROWSER = ("In a browser", "Passkeys")  # the sections of the page that run in one
SPLIT = 'console.log("-");\n'
PRINTED = "globalThis.printed = '';\nconsole.log = (...words) => { globalThis.printed += words.join(' ') + '\\n'; };\n"
CONSUMER = """
import { Client, type Collection, type Document, Refusal, type Value } from "@strongroom/client";
import { browserAuthenticator } from "@strongroom/client/passkeys";
import { sessionFile } from "@strongroom/client/node";
import { argon2id } from "@strongroom/client/argon2";

interface Note { title: string }
export async function use(client: Client): Promise<string[]> {
  const notes: Collection<Note> = (await client.vault("v")).collection<Note>("n", { parse: (value) => value as Note });
  const note: Document<Note> = await notes.create({ title: "a" });
  const untyped: Value = (await (await client.vault("v")).collection("n").get(note.uid)).value;
  await client.login("a", "b", { code: browserAuthenticator });
  await client.saveSession(await sessionFile("x"));
  // @ts-expect-error: a misspelt option
  await client.vault("v", { creat: true });
  // @ts-expect-error: a value of another type
  await notes.create({ name: "a" });
  // @ts-expect-error: a permission that does not exist
  await notes.token("t", { permissions: ["admin"] });
  const refused: (error: unknown) => string = (error) => (error instanceof Refusal ? error.code : "");
  return [note.value.title, String(untyped), refused(null), typeof argon2id];
}
"""


def steps(text: str) -> list[tuple[str, str]]:
    """The programs of a page, and what each prints."""
    found: list[tuple[str, str]] = []
    for language, body in fences(text):
        if language in {"ts", "js"}:
            found.append((body, ""))
        elif language == "text":
            found[-1] = (found[-1][0], body)
    return found


def in_node(name: str, program: list[tuple[str, str]], server: Server) -> list[str]:
    """Check the types of a program and run it on a server; what each block prints."""
    joined = SPLIT.join(body for body, _ in program)
    assert URL in joined
    told = joined.replace(URL, f"http://127.0.0.1:{server.port}")
    (project() / f"{name}.ts").write_text(told, encoding="utf-8")
    check(project(), f"{name}.ts", types="node")
    esbuild(project(), f"{name}.ts", "--format=esm", f"--outfile={name}.js")
    return run("node", f"{name}.js", folder=project()).split("-\n")


def test_the_five_lines_of_its_readme(server: Server) -> None:
    """An empty project with the package installed runs the five lines of js/README.md; README.md has the same."""
    (five, _), *_ = steps(text_of("js/README.md"))
    assert [code for code, _ in steps(text_of("README.md"))] == [five]
    program = [(five.replace("grace@example.com", unique_email()), "")]
    assert in_node("five", program, server) == ["{ title: 'Hello again' }\n"]


def test_a_strict_program_is_checked() -> None:
    """A program passes the strictest check with nothing but the package's own types, and mistakes in it do not."""
    (project() / "consumer.ts").write_text(CONSUMER, encoding="utf-8")
    (project() / "mistaken.ts").write_text(CONSUMER.replace("{ creat: true }", "{ create: true }"), encoding="utf-8")
    with pytest.raises(AssertionError) as told:
        check(project(), "consumer.ts", "mistaken.ts")
    assert re.findall(r"^\s*([\w.]+)\(\d.*error (TS\d+)", str(told.value), re.MULTILINE) == [("mistaken.ts", "TS2578")]


def test_the_page_runs_word_for_word(server: Server) -> None:
    """In this order, every block of docs/javascript.md prints what stands below it, and nothing else."""
    text = text_of("docs/javascript.md")
    for name in BROWSER:
        text = text.replace(sections(text, 2)[name], "\n")
    program = steps(text)
    assert len(program) >= 12
    assert in_node("page", program, server) == [shown for _, shown in program]
    assert {language for language, _ in fences(text_of("docs/javascript.md"))} == {"sh", "ts", "tsx", "text", "http"}


def test_the_browsers_part_of_the_page_runs(tmp_path: Path) -> None:
    """The blocks for browsers run in Chromium under the policy that the page shows; without its word they do not."""
    text = text_of("docs/javascript.md")
    program = steps("".join(sections(text, 2)[name] for name in BROWSER))
    [header] = [body for language, body in fences(text) if language == "http"]
    policy = header.removeprefix("Content-Security-Policy: ").strip()
    (project() / "browser.ts").write_text(SPLIT.join(body for body, _ in program), encoding="utf-8")
    check(project(), "browser.ts")
    site = tmp_path / "site"
    esbuild(project(), "browser.ts", "--bundle", "--format=esm", "--splitting", f"--outdir={site}")
    shutil.copy(project() / "node_modules/@strongroom/client/dist/argon2-worker.js", site)
    (site / "printing.js").write_text(PRINTED, encoding="utf-8")
    (site / "index.html").write_text("<!doctype html><title>page</title>", encoding="utf-8")
    port = free_port()
    server = Server(tmp_path / "data", PUBLIC_URL=f"http://localhost:{port}")
    story = 'import("/printing.js").then(() => import("/browser.js")).then(() => "", (error) => error.name)'
    try:
        api = server.start().port
        for allowed in (policy.replace(" 'wasm-unsafe-eval'", ""), policy):
            with (
                served(site, api=api, policy=allowed, port=port) as origin,
                private_window() as page,
            ):
                page.open(f"{origin}/index.html")
                page.add_authenticator(hasPrf=True, **AUTHENTICATOR)
                ended = page.run(story)
                printed: Any = page.run("globalThis.printed")
            assert ended == ("" if allowed == policy else "Unsupported")
        assert printed.split("-\n") == [shown for _, shown in program]
    finally:
        server.abandon()


FILL = """(async () => {
  const until = async (found) => {
    for (let turn = 0; turn < 1200; turn++) {
      if (found()) return true;
      await new Promise((go) => setTimeout(go, 50));
    }
    throw new Error("waited too long: " + document.body.innerText);
  };
  const status = () => document.getElementById("status").textContent;
  const fill = (form, values, button) => {
    for (const [name, value] of Object.entries(values)) document.forms[form].elements[name].value = value;
    button.click();
  };
  const titles = () => [...document.querySelectorAll("#notes button")].map((one) => one.textContent);
  %s
})()"""
ENTER = """
  await until(() => status() === "Log in, or register.");
  fill("account", { email: "%(email)s", password: "%(password)s" }, document.querySelector("button[value=%(action)s]"));
  await until(() => status() !== "Opening…" && status() !== "Log in, or register.");
  return [status(), titles()];
"""
WRITE = """
  fill("editor", { title: "Shopping", text: "tea" }, document.querySelector("#editor button"));
  await until(() => titles().length === 1 && status() === "Saved.");
  document.querySelector("#notes button").click();
  const text = document.forms.editor.elements.text.value;
  fill("editor", { title: "Shopping list", text: "tea, milk" }, document.querySelector("#editor button"));
  await until(() => titles()[0] === "Shopping list");
  return [text, titles()];
"""
READ = """
  await until(() => status() === "Open." && titles().length);
  document.querySelector("#notes button").click();
  return [document.forms.editor.elements.text.value, titles(), document.forms.account.hidden];
"""
LEAVE = """
  document.getElementById("logout").click();
  await until(() => status() === "Logged out.");
  return [titles(), document.forms.account.hidden];
"""


def built(name: str, server: Server, *sources: str) -> Path:
    """An example as its page says that it is built, for this server; the folder of what was built."""
    example = ROOT / "examples" / name
    app = project() / name
    shutil.copytree(example, app, ignore=shutil.ignore_patterns("node_modules", "dist"))
    check(project(), *(f"{name}/{source}" for source in sources))
    [block] = [body for language, body in fences((example / "README.md").read_text("utf-8")) if language == "sh"]
    _, build, copy, _ = block.splitlines()
    esbuild(app, *build.removeprefix("npx esbuild ").split())
    *files, target = copy.removeprefix("cp ").split()
    for path in files:
        place = project() if path.startswith("node_modules/") else example if path.startswith("../") else app
        shutil.copy(place / path, app / target)
    page = app / "dist" / "index.html"
    markup = page.read_text("utf-8")
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", markup)
    page.write_text(markup.replace(URL, f"http://127.0.0.1:{server.port}"), encoding="utf-8")
    return app / "dist"


POLICY = (
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; connect-src *; "
    "require-trusted-types-for 'script'; trusted-types strongroom"
)


def test_the_notes_app(server: Server) -> None:
    """examples/notes-js, built as its page says: register, write, change, reload, log in again, read; no other origin.

    A wrong password is told in the client's sentence.
    """
    site = built("notes-js", server, "main.ts")
    who = {"email": unique_email(), "password": "correct horse battery staple"}
    with served(site, policy=POLICY) as origin, private_window() as tab:

        def do(script: str, **words: str) -> Any:
            return tab.run(FILL % (script % words if words else script))

        tab.open(f"{origin}/index.html")
        assert do(ENTER, action="register", **who) == ["Open.", []]
        assert do(WRITE) == ["tea", ["Shopping list"]]
        tab.open(f"{origin}/index.html")
        assert do(READ) == ["tea, milk", ["Shopping list"], True]
        assert do(LEAVE) == [[], False]
        tab.open(f"{origin}/index.html")
        refused = do(ENTER, action="login", **who | {"password": "not the password at all"})
        assert refused[0].startswith("The email or the password is wrong.")
        tab.open(f"{origin}/index.html")
        assert do(ENTER, action="login", **who) == ["Open.", ["Shopping list"]]
        assert do(READ) == ["tea, milk", ["Shopping list"], True]
        origins = tab.run(
            "[...new Set(performance.getEntriesByType('resource').map((one) => new URL(one.name).origin))]"
        )
    assert set(origins) == {origin, f"http://127.0.0.1:{server.port}"}


IN_REACT = """(async () => {
  const until = async (found) => {
    for (let turn = 0; turn < 1200; turn++) {
      const value = found();
      if (value) return value;
      await new Promise((go) => setTimeout(go, 50));
    }
    throw new Error("waited too long: " + document.body.innerText);
  };
  const shows = (text) => until(() => document.body.innerText.includes(text));
  const buttons = () => [...document.querySelectorAll("button")];
  const button = (text) => until(() => buttons().find((one) => one.innerText.startsWith(text)));
  const fill = (name, value) => {
    const field = document.querySelector(`[name=${name}]`);
    const kind = field instanceof HTMLTextAreaElement ? HTMLTextAreaElement : HTMLInputElement;
    Object.getOwnPropertyDescriptor(kind.prototype, "value").set.call(field, value);
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  const titles = () => [...document.querySelectorAll("li")].map((one) => one.innerText);
  %s
})()"""


@pytest.mark.production_hashing
def test_the_notes_app_in_react(server: Server) -> None:
    """examples/notes-react: it writes without a network, sends later, and lets a person decide a conflict.

    After a reload it goes on without the password; a logout deletes everything from the device.
    """
    site = built("notes-react", server, "main.tsx")
    who = {"email": unique_email(), "password": "correct horse battery staple"}
    with (
        served(site, policy=POLICY) as origin,
        private_window() as tab,
        Client(f"http://127.0.0.1:{server.port}") as elsewhere,
    ):

        def do(script: str) -> Any:
            return tab.run(IN_REACT % script)

        def network(*, offline: bool) -> None:
            tab.send("Network.enable")
            tab.send(
                "Network.emulateNetworkConditions",
                offline=offline, latency=0, downloadThroughput=-1, uploadThroughput=-1,
            )  # fmt: skip

        tab.open(f"{origin}/index.html")
        do(f"""await shows("Log in, or register.");
          fill("email", "{who["email"]}"); fill("password", "{who["password"]}"); (await button("Register")).click();
          await shows("Everything is sent.");
          fill("title", "Shopping"); fill("text", "tea"); (await button("Save")).click();
          await until(() => titles().length === 1); await shows("Everything is sent.");""")
        elsewhere.login(who["email"], who["password"])
        notes = elsewhere.vault("personal").collection("notes")
        assert [note.value for note in notes] == [{"title": "Shopping", "text": "tea"}]
        tab.open(f"{origin}/index.html")
        assert do("await until(() => titles().length === 1); return titles();") == ["Shopping"]
        network(offline=True)
        do("""(await button("Shopping")).click(); await button("Delete");
          fill("title", "Changed here"); (await button("Save")).click(); await shows("1 to send.");""")
        notes.replace(next(iter(notes)), {"title": "Changed elsewhere", "text": "tea"})
        network(offline=False)
        do("""(await button("Keep mine: Changed here")).click(); await shows("Everything is sent.");""")
        assert [note.value["title"] for note in notes] == ["Changed here"]
        left = do("""(await button("Log out")).click(); await shows("Logged out.");
          const names = (await indexedDB.databases()).map(({ name }) => name);
          return names.filter((name) => name !== "strongroom sessions");""")
        assert left == []


COMPONENT = """
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Client } from "@strongroom/client";
import { openReplica } from "@strongroom/client/replica";
import { Notes } from "./component.js";

const client = new Client(location.origin);
await client.register("%s", "correct horse battery staple");
const replica = await openReplica(client, "notes");
const vault = await replica.vault("personal", { create: true });
const notes = vault.collection("notes", { parse: (value) => value as { title: string } });
for (const title of ["Hello", "Hello again", "Other"]) await notes.create({ title });
createRoot(document.body.appendChild(document.createElement("div"))).render(
  <StrictMode><Notes replica={replica} notes={notes} /></StrictMode>,
);
"""


def test_the_component_of_the_page(server: Server, tmp_path: Path) -> None:
    """The block in React shows what its hooks say, under the strictest check of types."""
    [component] = [body for language, body in fences(text_of("docs/javascript.md")) if language == "tsx"]
    (project() / "component.tsx").write_text(component, encoding="utf-8")
    (project() / "shown.tsx").write_text(COMPONENT % unique_email(), encoding="utf-8")
    check(project(), "shown.tsx")
    site = tmp_path / "site"
    options = ("--bundle", "--format=esm", "--splitting", "--jsx=automatic", f"--outdir={site}")
    esbuild(project(), "shown.tsx", "--target=es2022", *options)
    shutil.copy(project() / "node_modules/@strongroom/client/dist/argon2-worker.js", site)
    (site / "index.html").write_text("<!doctype html><title>page</title><body></body>", encoding="utf-8")
    with served(site, api=server.port, policy=POLICY) as origin, private_window() as tab:
        tab.open(f"{origin}/index.html")
        tab.run(f'import("{origin}/shown.js").then(() => null)')
        shown = tab.run(
            IN_REACT % 'await shows("0 to send, 0 to decide."); return [titles(), document.body.innerText];'
        )
    assert shown[0] == ["Hello", "Hello again"]
    assert "First: Hello." in shown[1]
