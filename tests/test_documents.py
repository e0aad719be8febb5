"""The documents are true: the tour runs as it is written; tables, routes, trees and links agree with the code."""

from __future__ import annotations

import ast
import fnmatch
import functools
import itertools
import json
import keyword
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from strongroom import __version__, client, errors, wire
from strongroom.client import errors as client_errors
from strongroom.model import Document, Variant
from strongroom.options import TABLE
from strongroom.server import routes
from strongroom.server.request import Access, Endpoint
from strongroom.server.response import STATUS
from tests.kit.documents import URL, differences, fences, prose, sections, text_of, values
from tests.kit.programs import processes
from tests.kit.programs.command_line import isolated_environment
from tests.kit.project import ROOT, SOURCE
from tests.kit.rows import each_row
from tests.kit.servers.documented_server import serving
from tests.kit.waiting import PATIENCE

ENDPOINTS = routes.router(Variant.BOTH).endpoints

_CODE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def rows(text: str) -> Iterator[list[str]]:
    """The cells of every row of every table in a text, without heads and rules."""
    lines = prose(text).splitlines()
    for above, line in itertools.pairwise(lines):
        if line.startswith("|") and above.startswith("|") and not line.startswith("|--"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def coded(text: str) -> list[str]:
    """What stands between backticks."""
    return _CODE.findall(text)


def ignored(path: Path) -> bool:
    """Whether .gitignore, or Git itself, leaves this path out."""
    relative = path.relative_to(ROOT)
    parts = [part.as_posix() for part in (relative, *relative.parents)][:-1]
    patterns = [line.strip("/") for line in text_of(".gitignore").splitlines() if line and not line.startswith("#")]
    names = {part.rpartition("/")[2] for part in parts} | set(parts)
    return any(fnmatch.fnmatch(name, pattern) for name in names for pattern in [*patterns, ".git"])


def files(pattern: str = "*") -> list[Path]:
    """The files of the project."""
    found: list[Path] = []
    for folder, names, leaves in os.walk(ROOT):
        here = Path(folder)
        names[:] = sorted(name for name in names if not ignored(here / name))
        found += [here / leaf for leaf in sorted(leaves) if fnmatch.fnmatch(leaf, pattern) and not ignored(here / leaf)]
    return found


def name_of(path: Path) -> str:
    """A file's name for the reader of a report."""
    return path.relative_to(ROOT).as_posix()


PAGES = files("*.md")


# The tour


def steps(text: str) -> list[tuple[str, list[Any]]]:
    """The tour's blocks in order: what to paste, and the JSON values that the reader is shown as the answer."""
    found: list[tuple[str, list[Any]]] = []
    for language, body in fences(text):
        if language == "sh":
            found.append((body, []))
        else:
            assert language == "json", f"the tour holds a block of {language!r}"
            found[-1][1].extend(values(body))
    return found


def test_the_tour_runs_word_for_word(tmp_path: Path) -> None:
    """Pasted in order, the blocks of docs/tour.md succeed, and every response is the one that the page shows."""
    tour = steps(text_of("docs/tour.md"))
    with serving(tmp_path, "-m", "strongroom", "serve") as address:
        script = "set -euo pipefail\n" + "printf '\\036'\n".join(block for block, _ in tour)
        assert URL in script
        (tmp_path / "tour.sh").write_text(script.replace(URL, address))
        done = processes.run(
            ["bash", "tour.sh"],
            cwd=tmp_path,
            env=isolated_environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    printed = done.stdout.split("\x1e")
    for (block, shown), output in zip(tour, printed, strict=True):
        assert differences(shown, values(output)) == [], block


def test_the_tour_shows_both_variants() -> None:
    """The tour goes through everything that it promises: both kinds of vault, the conflict, the sync, the key."""
    tour = steps(text_of("docs/tour.md"))
    script = "".join(block for block, _ in tour)
    shown = json.dumps([answers for _, answers in tour])
    for part in ("/auth/email/register", "-X PUT", "-X DELETE", "?since=", "/auth/api-keys", '"salt"', "/auth/logout"):
        assert part in script
    for part in ('"document_conflict"', "409", '"deletedAt": 1', '"srk_', '"hasMore"', '"insufficient_scope"'):
        assert part in shown


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": True}),
        ({"a": None}, {"a": 1_731_600_000_000}),
        ({"a": 1_731_600_000_000}, {"a": 1}),
        ({"a": "srk_…"}, {"a": "key"}),
        ({"a": "…"}, {"a": None}),
        ([1], [1, 1]),
        ([], [{}]),
    ],
)
def test_a_planted_difference_is_seen(shown: Any, real: Any) -> None:
    """The comparison of the tour with its answers can fail."""
    assert differences(shown, real)
    assert differences(shown, shown) == []


def test_the_python_example_serves(tmp_path: Path) -> None:
    """The few lines of Python in docs/settings.md start a server."""
    [example] = [body for _, body in fences(text_of("docs/settings.md")) if "listen(3000)" in body]
    (tmp_path / "example.py").write_text(example.replace("listen(3000)", "listen(0)"))
    with serving(tmp_path, "example.py") as address:
        assert address != URL
    assert (tmp_path / "data" / "vault.db").is_file()


def test_the_five_lines_run(tmp_path: Path) -> None:
    """The README's client stores a document and reads it back, and the server's file does not tell what."""
    [example] = [body for language, body in fences(text_of("README.md")) if language == "python" and "Client(" in body]
    with serving(tmp_path, "-m", "strongroom", "serve") as address:
        (tmp_path / "example.py").write_text(example.replace(URL, address))
        assert python(tmp_path, "example.py") == "{'title': 'Hello again'}\n"
    stored = list(tmp_path.glob("vault.db*"))
    assert stored
    for path in stored:
        assert not any(word in path.read_bytes() for word in (b"Hello", b"personal", b"notes"))


def test_the_longer_example_runs(tmp_path: Path) -> None:
    """examples/notes.py tells its story to the end."""
    with serving(tmp_path, "-m", "strongroom", "serve") as address:
        said = python(tmp_path, str(ROOT / "examples" / "notes.py"), address).splitlines()
    assert said[-5:] == [
        "Sent by the phone: 1 and undecided: 0",
        "Everywhere: ['tea', 'milk', 'bread', 'jam']",
        "The agent reads: ['Shopping']",
        "The agent cannot write.",
        "Left: 0",
    ]


def test_the_tour_of_the_client_runs_word_for_word(tmp_path: Path) -> None:
    """Typed at a prompt in this order, every block prints what stands below it, and nothing else."""
    steps: list[tuple[str, str]] = []  # what is typed, and what is shown
    for language, body in fences(text_of("docs/client-tour.md")):
        if language == "python":
            steps.append((body, ""))
        elif language == "text":
            steps[-1] = (steps[-1][0], body)
    assert len(steps) >= 10
    with serving(tmp_path, "-m", "strongroom", "serve") as address:
        typed = "\nprint('-')\n".join(body for body, _ in steps).replace(URL, address)
        printed = python(tmp_path, "-i", "-q", "-c", "", typed=typed)
    assert printed.split("-\n") == [shown for _, shown in steps]


@pytest.mark.parametrize("page", ["docs/client.md", "docs/client-tour.md", "docs/export.md"])
def test_every_error_of_a_page_can_be_imported(page: str) -> None:
    """A program that follows the page imports what it names from strongroom.client."""
    named = set(re.findall(r"\b[A-Z][A-Za-z]+\b", text_of(page)))
    ours = {name for module in (errors, client_errors) for name in vars(module) if name in named}
    assert ours - {"Any", "Final", "Conflict"} <= set(client.__all__)


def python(home: Path, *words: str, typed: str = "") -> str:
    """What a Python program prints."""
    done = processes.run(
        [sys.executable, *words],
        cwd=home,
        env=isolated_environment(home),
        input=typed,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


# Tables, routes, trees


@each_row("page", PAGES, ids=name_of)
def test_nothing_is_told_twice(page: Path) -> None:
    """A page has each heading once: of two, a reader would find either, and the tests below only the last."""
    for level in (2, 3):
        blank = prose(page.read_text("utf-8"))
        found = re.findall(rf"^#{{{level}}} +(.+)$", blank, re.MULTILINE)
        if page.name != "CHANGELOG.md":
            assert len(found) == len(set(found)), found


def test_the_settings_are_those_of_the_code() -> None:
    """The table in docs/settings.md is the code's, row by row and word for word."""
    table = list(rows(text_of("docs/settings.md").partition("\n## ")[0]))
    assert [[cell.strip("`") for cell in row] for row in table] == [list(option) for option in TABLE]
    for row, option in zip(table, TABLE, strict=True):
        assert [cell.startswith("`") for cell in row] == [True, True, bool(option.default), False]


def test_the_readme_compares_what_was_measured() -> None:
    """The README's requests a second are those of docs/benchmarks.md with 64 clients, with the machine named."""
    runs = sections(text_of("docs/benchmarks.md"), 2)
    run = next(text for title, text in runs.items() if title.startswith("The whole run on"))  # the newest
    compared = [row for row in rows(run) if row[1] == "64" and row[2] != "the floor" and "workers" not in row[2]]
    measured = {(row[0], row[2]): row[3] for row in compared}
    targets = {name.partition(",")[0]: name for _, name in measured}
    part = sections(text_of("README.md"), 2)["Compared with others"]
    found = 0
    for product, _, _, database, get, create, _ in rows(part):
        name = product.strip("[").partition("]")[0]
        target = f"{name}, {database}" if name == "strongroom" else targets.get(name)
        if target is None:
            assert get == create == ""
        else:
            assert [get, create] == [
                measured[scenario, target] for scenario in ("get one document (1 KB)", "create (1 KB)")
            ]
            found += 1
    assert found == len({name for _, name in measured})
    [[cores, architecture]] = re.findall(r"(\d+) cores, (\w+)", run)
    assert f"{cores} cores of {architecture}" in " ".join(part.split())


def shape(path: str) -> str:
    """A path without the names of its variables, which differ between documents and code."""
    return re.sub(r"\{[^}]*\}", "{}", path.partition("?")[0].rstrip("."))


KNOWN = {(endpoint.method, shape(path)) for endpoint in ENDPOINTS for path in (endpoint.path, *endpoint.aliases)}
REFERENCE = sections(text_of("docs/api.md"), 3)


def heading(endpoint: Endpoint) -> str:
    """How the reference is to name an endpoint."""
    return f"{endpoint.method} {endpoint.path.replace('*}', '}')}"


APP_PAGES = ("/app/", "/app/operator/")  # of the web app, which are no part of the API


def strangers(text: str) -> list[str]:
    """The routes that a text names and the code does not have, whether with a method or as a path alone."""
    found = re.findall(r"\b(GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) (/[^\s`|,;:)]*)", text)
    bare = [path for path in coded(prose(text)) if path.startswith("/") and not path.startswith(("/etc/", "/var/"))]
    bare = [path for path in bare if path not in APP_PAGES]
    return [f"{method} {path}" for method, path in found if (method, shape(path)) not in KNOWN] + [
        path for path in bare if not any(f"{known}/".startswith(shape(path).rstrip("/") + "/") for _, known in KNOWN)
    ]


def test_the_reference_has_every_route() -> None:
    """Every route has one heading in the reference, and every such heading is a route."""
    headings = re.findall(r"^### (.+)$", text_of("docs/api.md"), re.MULTILINE)
    assert sorted(headings) == sorted(REFERENCE) == sorted(map(heading, ENDPOINTS))


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "SECURITY.md", "docs/api.md", "docs/design.md", "docs/tour.md"]
)
def test_no_document_names_a_route_that_is_not(name: str) -> None:
    """A route that a document mentions exists."""
    assert strangers(text_of(name)) == []


@pytest.mark.parametrize(
    "planted", ["PATCH /vault", "GET /vaults", "see `POST /auth/login`", "at `/figures`", "PUT /vault/{uid}/documents"]
)
def test_a_planted_route_is_seen(planted: str) -> None:
    """The search for routes that do not exist can succeed."""
    assert strangers(planted)
    assert strangers("GET /vaults/{any}/documents?since=1, `DELETE /vault/{uid}`, `/vault`, `/`") == []


def points(text: str) -> dict[str, str]:
    """The labelled points of a route in the reference, like `- Body: ...`."""
    found = re.finditer(r"^- (\w[\w ]*): ((?:.|\n  )*)", text, re.MULTILINE)
    return {match[1]: " ".join(match[2].split()) for match in found}


def fields_of(kind: type[msgspec.Struct] | None) -> set[str]:
    """The names of a struct's fields, as JSON spells them."""
    return set() if kind is None else {field.encode_name for field in msgspec.structs.fields(kind)}


def callers(endpoint: Endpoint) -> str:
    """How the reference is to say who may call."""
    if endpoint.access is not Access.ANY:
        return {Access.PUBLIC: "anyone", Access.USER: "a user"}[endpoint.access]
    permission = "" if endpoint.permission is None else f" with `{endpoint.permission}`"
    return (
        f"a user or an API key{permission}" + ", unless it is limited to vaults or collections" * endpoint.whole_account
    )


@each_row("endpoint", ENDPOINTS, ids=heading)
def test_the_reference_is_right_about_a_route(endpoint: Endpoint) -> None:
    """Who may call, the body, the headers, the query, the answer and the refusals are those of the code."""
    told = points(REFERENCE[heading(endpoint)])
    assert told.keys() <= {"Called by", "Body", "Query", "Headers", "Response", "Errors"}
    assert told["Called by"].partition(";")[0] == callers(endpoint)
    assert ("Body" in told) == (endpoint.request_type is not None)
    assert set(coded(told.get("Body", ""))) == fields_of(endpoint.request_type)
    assert coded(told.get("Query", "")) == [name for name, _, _ in endpoint.query]
    assert tuple(coded(told.get("Headers", ""))) == endpoint.request_headers
    codes = {kind.code for kind in STATUS}
    assert [name for name in coded(told["Errors"]) if name in codes] == [kind.code for kind in endpoint.refusals]
    assert told["Response"].startswith(f"{302 if endpoint.path == '/' else endpoint.status}")
    named = set(coded(told["Response"]))
    named |= fields_of(wire.responses.Vault) if "the vault" in told["Response"] else set()
    named |= fields_of(Document) if re.search("the (document|tombstone)", told["Response"]) else set()
    assert fields_of(endpoint.response_type) <= named


def test_the_reference_has_every_error() -> None:
    """The table of errors holds every code with its status, and no other."""
    table = {code.strip("`"): int(status) for status, code, _ in rows(sections(text_of("docs/api.md"), 2)["Errors"])}
    assert table == {kind.code: status for kind, status in STATUS.items()}


@pytest.mark.parametrize(("section", "kind"), [("Vaults", wire.responses.Vault), ("Documents", Document)])
def test_the_reference_shows_whole_objects(section: str, kind: type[msgspec.Struct]) -> None:
    """The example of a vault and of a document has every field, in the order of the answers."""
    language, body = fences(sections(text_of("docs/api.md"), 2)[section])[0]
    assert language == "json"
    assert list(json.loads(body)) == [field.encode_name for field in msgspec.structs.fields(kind)]


def test_the_reference_shows_every_event() -> None:
    """The table of events names what each one's data holds, and every reason for which a stream ends is explained."""
    part = sections(text_of("docs/api.md"), 2)["Events"]
    table = {cells[0].strip("`"): set(coded(cells[1])) for cells in rows(part) if len(cells) == 3}
    assert table == {
        "ready": fields_of(wire.events.Ready),
        "document": fields_of(wire.events.DocumentChanged),
        "vault": fields_of(wire.events.VaultChanged),
        "end": fields_of(wire.events.Ended),
    }
    reasons = [reason for cells in rows(part) if len(cells) == 2 for reason in coded(cells[0])]
    assert sorted(reasons) == sorted(reason.value for reason in wire.events.Ending)


def tree(drawing: str) -> set[str]:
    """The modules in the drawing of a tree of folders: two spaces are one step down."""
    found: set[str] = set()
    folders: list[str] = []
    for line in drawing.splitlines()[1:]:
        depth = (len(line) - len(line.lstrip())) // 2
        folders = folders[: max(depth - 1, 0)]
        for word in line.split():
            if word.endswith("/"):
                folders.append(word.strip("/"))
            elif word.endswith(".py"):
                found.add("/".join([*folders, word]))
            else:
                break
    return found


def test_what_is_built_has_the_version_that_runs() -> None:
    """A wheel is named after one of them, and a server tells the other."""
    assert tomllib.loads(text_of("pyproject.toml"))["project"]["version"] == __version__


def test_the_house_is_drawn_as_it_stands() -> None:
    """The tree in the design names every module, and no other."""
    [drawing] = [body for _, body in fences(text_of("docs/design.md")) if body.startswith("src/strongroom/")]
    assert tree(drawing) == {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py")}


def defined(body: Iterable[ast.AST], owner: str) -> Iterator[tuple[str, str]]:
    """What a module or a class defines, each with its owner: classes, functions, parameters, fields, constants."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield owner, node.name
            yield from defined(node.body, node.name)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from ((node.name, argument.arg) for argument in ast.walk(node.args) if isinstance(argument, ast.arg))
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((owner, target.id) for target in targets if isinstance(target, ast.Name))


@functools.cache
def sources_and_names() -> tuple[dict[Path, str], set[tuple[str, str]]]:
    """The code of every file, and every name that it defines, with its owner."""
    sources = {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return sources, {pair for path, code in sources.items() for pair in defined(ast.parse(code).body, path.stem)}


def unknown(text: str) -> list[str]:
    """The files and names between backticks of a text that the code does not have."""
    sources, found = sources_and_names()
    schema = "".join(path.read_text("utf-8") for path in (SOURCE / "store" / "migrations").glob("*.sql"))
    names = {name for _, name in found} | required() | set(re.findall(r"\w+", schema)) | set(keyword.kwlist)
    names |= {option.variable for option in TABLE}

    def exists(name: str) -> bool:
        if "/" in name or name.endswith(".py"):
            return any((base / name).exists() for base in (ROOT, SOURCE)) or name in {path.name for path in sources}
        if not name.replace(".", "").isidentifier():
            return True  # not a name: a header, a piece of SQL
        owner, _, last = name.rpartition(".")
        if last.isupper() and not owner:
            return any(re.search(rf"\b{last}\b", code) for code in sources.values())
        last = re.sub(r"([a-z])([A-Z])", r"\1_\2", last).lower() if last[0].islower() else last
        return (
            (owner, last) in found or bool(re.search(rf"TABLE {owner} [^;]*\b{last}\b", schema))
            if owner
            else last in names
        )

    return [name for name in coded(prose(text)) if not exists(name)]


def test_the_design_names_what_exists() -> None:
    """Every file, class, function, table and setting between backticks of the design is in the code."""
    text = text_of("docs/design.md")
    assert unknown(text) == []
    hops = re.findall(r"^[1-8] (\w+/\S+\.py) +(\w+): ", text, re.MULTILINE)
    assert len(hops) == 7
    for path, function in hops:
        assert (SOURCE / path).is_file(), path
        assert re.search(rf"^async def {function}\(", (SOURCE / path).read_text("utf-8"), re.MULTILINE), (
            path,
            function,
        )


@pytest.mark.parametrize(
    "planted",
    ["server/desk.py", "desk.py", "store/rooms/", "RequestDesk", "ledgers.draw", "Tx.tell", "vaults.mood", "DESKS"],
)
def test_a_planted_name_is_seen(planted: str) -> None:
    """The search for names that the code does not have can succeed."""
    assert unknown(f"see `{planted}`") == [planted]
    assert (
        unknown("`server/app.py`, `store/`, `Tx.notify`, `ledgers.advance`, `ledgers.importing`, `PORT`, `updatedAt`")
        == []
    )


def requirement(line: str) -> str:
    """The name of a package in a line that requires it."""
    match = re.match(r"[A-Za-z0-9._-]+", line)
    assert match is not None, line
    return match[0]


def required() -> set[str]:
    """Every package that the project asks for by name."""
    project: Mapping[str, Any] = tomllib.loads(text_of("pyproject.toml"))
    lines: list[str] = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    for extra in project["project"].get("optional-dependencies", {}).values():
        lines += extra
    for path in sorted(ROOT.glob("requirements-*.in")):
        lines += [line for line in path.read_text("utf-8").splitlines() if line.strip() and line[0] not in "#-"]
    return {requirement(line) for line in lines}


def test_every_dependency_has_a_reason() -> None:
    """Each package that is asked for has one line of reason, and no line is left of one that is gone."""
    [record] = (ROOT / "docs" / "decisions").glob("0005-*.md")
    table = {name.strip("`"): reason for name, reason in rows(record.read_text("utf-8"))}
    assert set(table) == required()
    assert all(table.values())


def test_every_dependency_of_the_javascript_client_has_a_reason() -> None:
    """Record 0014 names each package that js/package.json asks for."""
    package = json.loads(text_of("js/package.json"))
    asked = {name for kind in ("dependencies", "devDependencies") for name in package.get(kind, {})}
    assert asked
    assert asked <= set(coded(text_of("docs/decisions/0014-the-javascript-client.md")))


def test_every_command_is_in_the_makefile() -> None:
    """A `make` that a document tells the reader to run exists."""
    targets = set(re.findall(r"^([a-z]+):", text_of("Makefile"), re.MULTILINE))
    named = {
        word
        for page in PAGES
        for code in [*coded(prose(page.read_text("utf-8"))), *(body for _, body in fences(page.read_text("utf-8")))]
        for word in re.findall(r"^make ([a-z]+)", code, re.MULTILINE)
    }
    assert {"serve", "test"} <= named <= targets


# Links and leaks


def anchors(text: str) -> set[str]:
    """The names that headings can be linked by."""
    found = re.findall(r"^#+ +(.+)$", prose(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", name.lower()).strip().replace(" ", "-") for name in found}


def dead_links(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere inside the project."""
    dead = []
    for link in _LINK.findall(prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = target.exists() and target.is_relative_to(ROOT) and not ignored(target)
        if not inside or (anchor and anchor not in anchors(text if target == page else target.read_text("utf-8"))):
            dead.append(link)
    return dead


def test_links_lead_somewhere() -> None:
    """Every relative link in a document leads to a file of the project, and to a heading in it where it names one."""
    assert [f"{name_of(page)}: {link}" for page in PAGES for link in dead_links(page, page.read_text("utf-8"))] == []


@pytest.mark.parametrize(
    "planted", ["[a](nowhere.md)", "[a](#nothing)", "[a](docs/api.md#nothing)", "[a](../elsewhere)", "[a](.venv/)"]
)
def test_a_planted_dead_link_is_seen(planted: str) -> None:
    """The search for dead links can succeed."""
    assert dead_links(ROOT / "README.md", planted)
    assert (
        dead_links(ROOT / "README.md", "# A b\n[a](docs/api.md#who-may-call) [b](#a-b) [c](https://example.com/x)")
        == []
    )


LEAKS = {
    "a path of somebody's machine": re.compile(
        r"(?<![\w.~}-])/(?:home|root|Users|work|workspace|private|var/folders)/[\w.-]|\b[A-Z]:\\+Users\b"
    ),
    "the host of a package registry": re.compile(
        r"\b(?:py[p]i|npm[j]s|python[h]osted)\.(?:org|com)\b"
        r"|https?://[^/\s\"']*(?:py[p]i|npm|registry|artifactory|nexus|devpi|mirror)[^/\s\"']*"
        r"|^\s*(?:-i|--(?:extra-)?index-url|--find-links|--trusted-host)\b",
        re.IGNORECASE | re.MULTILINE,
    ),
}


def leaks(text: str) -> Iterable[str]:
    """What a text tells of the machine that it was written on."""
    return [f"{what}: {match[0]!r}" for what, pattern in LEAKS.items() for match in pattern.finditer(text)]


def test_nothing_tells_of_a_machine() -> None:
    """No file of the project names a folder of somebody's machine or the host of a package registry."""
    texts = {path: data.decode("utf-8") for path in files() if b"\0" not in (data := path.read_bytes())}
    assert [f"{name_of(path)} names {leak}" for path, text in texts.items() for leak in leaks(text)] == []


@pytest.mark.parametrize("place", ["/ho" + "me/ada/x", "(/ro" + "ot/.cache)", "/wo" + "rk/x", "C:\\Us" + "ers\\ada"])
def test_a_planted_path_is_seen(place: str) -> None:
    """The search for a machine's paths can succeed."""
    assert leaks(f"see {place} for more")
    assert leaks("src/home/x, ~/works/x, ./data/vault.db, bench/.work/x") == []


@pytest.mark.parametrize("host", ["py" + "pi.org", "https://reg" + "istry.example/simple", "--ind" + "ex-url x"])
def test_a_planted_registry_is_seen(host: str) -> None:
    """The search for a registry's host can succeed."""
    assert leaks(f"a line\n{host}\n")
    assert leaks("uv pip compile --no-emit-" + "index-url, https://example.com/") == []
