"""The package is installed into an empty project and used there as its pages say."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.client.both_clients import unique_email
from tests.client.test_passkeys_in_chromium import AUTHENTICATOR
from tests.contract.harness import Server
from tests.support.chromium import chromium
from tests.support.javascript import run, served
from tests.support.javascript_project import check, esbuild, project
from tests.support.ports import free_port
from tests.test_documents import ROOT, URL, fences, sections, text_of

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
    assert steps(text_of("README.md")) == [(five, "")]
    program = [(five.replace("grace@example.com", unique_email()), "")]
    assert in_node("five", program, server) == ["{ title: 'Hello again' }\n"]


def test_a_strict_program_is_checked() -> None:
    """A program passes the strictest check with nothing but the package's own types, and mistakes in it do not."""
    (project() / "consumer.ts").write_text(CONSUMER, encoding="utf-8")
    check(project(), "consumer.ts")
    (project() / "mistaken.ts").write_text(CONSUMER.replace("{ creat: true }", "{ create: true }"), encoding="utf-8")
    with pytest.raises(AssertionError, match="TS2578"):
        check(project(), "mistaken.ts")


def test_the_page_runs_word_for_word(server: Server) -> None:
    """In this order, every block of docs/javascript.md prints what stands below it, and nothing else."""
    text = text_of("docs/javascript.md")
    for name in BROWSER:
        text = text.replace(sections(text, 2)[name], "\n")
    program = steps(text)
    assert len(program) >= 12
    assert in_node("page", program, server) == [shown for _, shown in program]
    assert {language for language, _ in fences(text_of("docs/javascript.md"))} == {"sh", "ts", "text", "http"}


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
                chromium(_made(tmp_path / f"browser-{len(allowed)}")) as page,
            ):
                page.open(f"{origin}/index.html")
                page.add_authenticator(hasPrf=True, **AUTHENTICATOR)
                ended = page.run(story)
                printed: Any = page.run("globalThis.printed")
            assert ended == ("" if allowed == policy else "Unsupported")
        assert printed.split("-\n") == [shown for _, shown in program]
    finally:
        server.abandon()


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


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


def test_the_notes_app(server: Server, tmp_path: Path) -> None:
    """examples/notes-js, built as its page says: register, write, change, reload, log in again, read; no other origin.

    A wrong password is told in the client's sentence.
    """
    example = ROOT / "examples" / "notes-js"
    app = project() / "notes-js"
    shutil.copytree(example, app, ignore=shutil.ignore_patterns("node_modules", "dist"))
    check(project(), "notes-js/main.ts")
    [block] = [body for language, body in fences((example / "README.md").read_text("utf-8")) if language == "sh"]
    _, build, copy, _ = block.splitlines()
    esbuild(app, *build.removeprefix("npx esbuild ").split())
    *files, target = copy.removeprefix("cp ").split()
    for path in files:
        shutil.copy((project() if path.startswith("node_modules/") else app) / path, app / target)
    page = app / "dist" / "index.html"
    markup = page.read_text("utf-8")
    assert not re.findall(r"(?:src|href)=\"(?:https?:)?//", markup)
    page.write_text(markup.replace(URL, f"http://127.0.0.1:{server.port}"), encoding="utf-8")
    policy = (
        "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; connect-src *; "
        "require-trusted-types-for 'script'; trusted-types strongroom"
    )
    who = {"email": unique_email(), "password": "correct horse battery staple"}
    with served(app / "dist", policy=policy) as origin, chromium(_made(tmp_path / "browser")) as tab:

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
