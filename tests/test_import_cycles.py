"""No circle of imports: neither between files nor, at any level, between folders and the files beside them."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.kit.project import SOURCE

Graph = dict[str, set[str]]


def module_of(path: Path) -> str:
    """The name under which a file is imported."""
    return ".".join(("strongroom", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")


SOURCES = {module_of(path): path.read_text() for path in SOURCE.rglob("*.py")}


def imported(source: str, modules: Iterable[str]) -> Iterator[str]:
    """The modules that a module imports: at its start, later, or only for the type checker."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules else node.module or ""


def graph(sources: Mapping[str, str]) -> Graph:
    """Which module imports which."""
    return {name: {one for one in imported(text, sources) if one in sources} - {name} for name, text in sources.items()}


def level(modules: Graph, package: str) -> Graph:
    """Which of the files and folders that lie in a package import which others of them."""

    def child(name: str) -> str | None:
        if name == package:
            return "__init__"
        return name[len(package) + 1 :].split(".", maxsplit=1)[0] if name.startswith(f"{package}.") else None

    found: Graph = {}
    for name, others in modules.items():
        if (own := child(name)) is not None:
            inner = {there for one in others if (there := child(one)) is not None}
            found.setdefault(own, set()).update(inner - {own})
    return found


def circle(modules: Graph) -> list[str]:
    """A circle, or nothing."""
    try:
        TopologicalSorter(modules).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def circles(sources: Mapping[str, str]) -> list[list[str]]:
    """A circle of each level that has one."""
    modules = graph(sources)
    packages = {name.rpartition(".")[0] for name in sources if "." in name}
    return [found for one in [modules, *(level(modules, package) for package in packages)] if (found := circle(one))]


def test_no_import_leads_back() -> None:
    """Whoever reads a file has to know only what lies below it."""
    assert circles(SOURCES) == []


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("strongroom.model", "from strongroom import rules"),
        ("strongroom.server.request", "def later():\n    from strongroom.server.routing import Table"),
        ("strongroom.store.statement", "if TYPE_CHECKING:\n    from strongroom.store.database import Tx"),
        ("strongroom.client.operations.core", "from strongroom.client.replica import local"),
    ],
)
def test_a_planted_circle_is_found(module: str, planted: str) -> None:
    """Between files, in a function, for the type checker alone, and between a folder and a file beside it."""
    assert circles({**SOURCES, module: f"{SOURCES[module]}\n{planted}\n"})
