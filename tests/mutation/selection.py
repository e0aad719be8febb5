"""Which tests can notice a mutant: those that ran its lines in a measured run, the likeliest and quickest first."""

from __future__ import annotations

import ast
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, zip_longest
from pathlib import Path

from tests.coverage.plugin import RESULTS
from tests.mutation.mutants import CACHED, Mutant

_PHASE = re.compile(r" \((setup|call|teardown)\)$")
Place = tuple[str, Iterable[int]]  # a file, and lines of it
_POSTGRES = 3.0  # seconds until a PostgreSQL runs, which its first test waits for


class Choice:
    """The tests of a measured run, by the lines of the sources that they ran."""

    def __init__(self, measured: Path, source: Path) -> None:
        self._source = source
        self._data = sqlite3.connect(f"file:{measured / 'data'}?mode=ro", uri=True)
        self._seconds: dict[str, float] = json.loads((measured / RESULTS).read_text())
        self._lines: dict[str, dict[int, set[str]]] = {}

    def tests_for(self, mutant: Mutant, most: int, seconds: float) -> list[str]:
        """Up to so many tests, that took up to so long together; none where no test that passed runs the lines."""
        places = self._users(mutant) if mutant.names else [(mutant.path, mutant.lines)]
        found = self._tests(places)
        refused = found & self._tests([(mutant.path, mutant.refusal)])
        stem = Path(mutant.path).stem.removesuffix("s")
        in_turn = zip_longest(self._ordered(refused, stem), self._ordered(found - refused, stem))
        others = self._ordered(self._tests(places, shared=True) - found, stem)
        chosen: list[str] = []
        for test in chain((one for pair in in_turn for one in pair if one), others):
            if len(chosen) < most and (not chosen or self._seconds[test] < seconds):
                seconds -= self._seconds[test]
                chosen.append(test)
        return chosen

    def _ordered(self, tests: set[str], stem: str) -> list[str]:
        """One of each function, then the second of each and so on; the likeliest and quickest first."""
        functions: dict[str, list[tuple[float, str]]] = defaultdict(list)
        for test in tests:
            cost = (self._seconds[test] + _POSTGRES * ("postgres" in test)) * (0.2 if stem in test else 1)
            functions[test.partition("[")[0]].append((cost, test))
        places = sorted((place, *one) for group in functions.values() for place, one in enumerate(sorted(group)))
        return [test for _, _, test in places]

    def time_of(self, tests: list[str]) -> float:
        """How long these took."""
        return sum(self._seconds[test] for test in tests)

    def _tests(self, places: Iterable[Place], *, shared: bool = False) -> set[str]:
        """The tests that ran these lines; or those whose folder shares a server that did."""
        contexts = {one for path, lines in places for line in lines for one in self._by_line(path).get(line, ())}
        if shared:
            folders = {one.partition("::")[0].rpartition("/")[0] for one in contexts if one.endswith(" (setup)")}
            return {test for test in self._seconds if test.partition("::")[0].rpartition("/")[0] in folders}
        return {_PHASE.sub("", one) for one in contexts} & self._seconds.keys()  # a process has the phase of its test

    def _by_line(self, path: str) -> dict[int, set[str]]:
        if path not in self._lines:
            found: dict[int, set[str]] = defaultdict(set)
            rows = self._data.execute(
                "SELECT DISTINCT context, abs(tono) FROM arc JOIN file ON file.id = file_id"
                " JOIN context ON context.id = context_id WHERE path = ? AND context <> ''",
                [str(self._source / path)],
            )
            for context, line in rows:
                found[line].add(context)
            self._lines[path] = found
        return self._lines[path]

    def _users(self, mutant: Mutant) -> list[Place]:
        """The lines of every function that uses one of these names, directly or through other constants."""
        found: list[Place] = []
        seen = set()
        waiting = [(mutant.path, name) for name in mutant.names]
        while waiting:
            path, name = where = waiting.pop()
            if where in seen:
                continue
            seen.add(where)
            for user, lines, constants in self._uses[name]:
                if user == path or not name.startswith("_"):
                    found.append((user, lines))
                    waiting += [(user, constant) for constant in constants]
        return found if self._tests(found) else [(mutant.path, self._by_line(mutant.path))]

    @cached_property
    def _uses(self) -> dict[str, list[tuple[str, range, frozenset[str]]]]:
        """Where each name is used: the lines of a function that runs at each call, or the names that are made of it."""
        uses: dict[str, list[tuple[str, range, frozenset[str]]]] = defaultdict(list)
        for file in sorted(self._source.rglob("*.py")):
            path = str(file.relative_to(self._source))
            for node in _units(ast.parse(file.read_text())):
                mentioned = {one.id if isinstance(one, ast.Name) else one.attr for one in _named(node)}
                made = frozenset[str]()
                lines = range(node.lineno + 1, (node.end_lineno or node.lineno) + 1)
                if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    made = frozenset(one.id for one in _named(node) if isinstance(one, ast.Name) and _stores(one))
                    lines = range(0)
                elif any(CACHED.search(ast.unparse(one)) for one in node.decorator_list):
                    made, lines = frozenset({node.name}), range(0)
                for name in mentioned - made:
                    uses[name].append((path, lines, made))
        return uses


def _units(tree: ast.AST) -> Iterator[ast.stmt]:
    """The functions of a module, and its statements outside of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.If):
            yield from _units(node)
        elif isinstance(node, ast.stmt):
            yield node


def _named(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    return (one for one in ast.walk(node) if isinstance(one, ast.Name | ast.Attribute))


def _stores(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Store)
