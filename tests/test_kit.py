"""One test kit: what several tests use is in tests/kit or beside them, once, and never in a test file."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
# Programs of users, for type checkers, and what npm installs.
LEFT_OUT = {"typing", "node_modules"}

Sources = Mapping[str, str]


parsed = functools.cache(ast.parse)  # several tests read every file


def sources() -> dict[str, str]:
    """The Python files of the tests by their path."""
    files = sorted(TESTS.rglob("*.py"))
    return {
        str(file.relative_to(TESTS.parent)): file.read_text("utf-8")
        for file in files
        if not LEFT_OUT & set(file.relative_to(TESTS).parts)
    }


def imported(path: str, tree: ast.Module) -> Iterator[str]:
    """The modules that a file imports, and each imported name as if it were a module."""
    package = Path(path).with_suffix("").parts
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = ".".join([*(package[: -node.level] if node.level else ()), *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def imports_of_test_files(files: Sources) -> set[str]:
    """Each import from a test file."""
    modules = {path.removesuffix(".py").replace("/", ".") for path in files if Path(path).name.startswith("test_")}
    return {
        f"{path} imports {module}"
        for path, text in files.items()
        for module in imported(path, parsed(text))
        if module in modules
    }


def defined(files: Sources, is_counted: Callable[[ast.AST], bool]) -> list[str]:
    """Where there is a definition that counts."""
    return [
        f"{path}:{node.lineno}"
        for path, text in files.items()
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and is_counted(node)
    ]


def is_person(node: ast.AST) -> bool:
    """Whether it is a class Person; one that is derived or decorated is an example of a user's data."""
    return isinstance(node, ast.ClassDef) and node.name == "Person" and not (node.bases or node.decorator_list)


def is_refused(node: ast.AST) -> bool:
    """Whether it is a function refused."""
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == "refused"


def is_home(node: ast.AST) -> bool:
    """Whether it is a fixture home."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    fixtures = [text for text in map(ast.unparse, node.decorator_list) if text.startswith("pytest.fixture")]
    return bool(fixtures) and (node.name == "home" or any("name='home'" in text for text in fixtures))


def test_no_file_imports_from_a_test_file() -> None:
    """A test file holds tests alone; what they share is in the kit, or in a module beside them."""
    assert sorted(imports_of_test_files(sources())) == []


@pytest.mark.parametrize("is_counted", [is_person, is_refused], ids=["class Person", "def refused"])
def test_there_is_one(is_counted: Callable[[ast.AST], bool]) -> None:
    """Something else has a name of its own."""
    found = defined(sources(), is_counted)
    assert len(found) <= 1, found


def test_no_fixture_is_called_home() -> None:
    """A fixture is named for what it is: a folder, a server, a database."""
    assert defined(sources(), is_home) == []


@pytest.mark.parametrize(
    "line",
    [
        "from tests.store.test_b import thing",
        "from tests.store import test_b",
        "from .test_b import thing",
        "from . import test_b",
        "import tests.store.test_b",
        "def later():\n    from tests.store.test_b import thing",
    ],
)
@pytest.mark.parametrize("path", ["tests/store/test_a.py", "tests/store/helpers.py"])
def test_a_planted_import_is_noticed(path: str, line: str) -> None:
    """However it is written, by a test file or by another."""
    planted = {"tests/store/test_b.py": "thing = 1", "tests/store/test_names.py": "", path: line}
    assert imports_of_test_files(planted) == {f"{path} imports tests.store.test_b"}


@pytest.mark.parametrize(
    ("is_counted", "line", "counts"),
    [
        (is_person, "class Person:\n    pass", True),
        (is_person, "def of():\n    class Person:\n        pass", True),
        (is_person, "class Person(pydantic.BaseModel):\n    pass", False),
        (is_person, "@dataclass\nclass Person:\n    pass", False),
        (is_refused, "def refused(): ...", True),
        (is_refused, "async def refused(): ...", True),
        (is_refused, "class Caller:\n    def refused(self): ...", True),
        (is_refused, "def refused_fields(): ...", False),
        (is_home, "@pytest.fixture\ndef home(): ...", True),
        (is_home, "@pytest.fixture(scope='module')\nasync def home(): ...", True),
        (is_home, "@pytest.fixture(name='home')\ndef a_folder(): ...", True),
        (is_home, "def home(): ...", False),
    ],
)
def test_a_planted_definition_is_noticed(is_counted: Callable[[ast.AST], bool], line: str, *, counts: bool) -> None:
    """In a class or a function too; what merely resembles it is not counted."""
    assert bool(defined({"tests/test_a.py": line}, is_counted)) is counts
