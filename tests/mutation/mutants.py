"""Mutants: small faults in a source file, each found by its syntax tree and made by changing a few bytes."""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tests.mutation import sql

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_EMPTY = {"bytes": "b''", "dict": "{}", "float": "0.0", "int": "0", "list": "[]", "str": "''", "tuple": "()"}
_LOGS = re.compile(r"\b(_?log|logger|_?say|_?note|warnings|super\(\))\b|\.(debug|info|warning|error|exception|say)\(")
_CHECKS = re.compile(r"\b_?(check|require|verify|refuse|ensure|prove|expect|admit|allow|forbid|claim|lock|_?same)")
_BOUND_DATA = re.compile(r"\b(items|_LABEL|_PROOF|associated|place|_whole|_row)\b")
CACHED = re.compile(r"\b(lru_cache|cache)\b")


@dataclass(frozen=True)
class Mutant:
    """One fault: the bytes from `start` to `end` of a file, replaced."""

    path: str  # below the folder of sources
    line: int
    column: int
    kind: str
    before: str
    after: str
    start: int
    end: int
    guard: bool  # of an owner, a version, a scope, a bound, a mode, an ending, associated data
    lines: frozenset[int]  # which a test must run to notice it
    names: frozenset[str]  # of what runs once, when it is imported or first called: then whoever uses these notices it
    refusal: frozenset[int]  # the lines that a guard leads to: who ran one of them was refused by it
    id: str = ""

    def __str__(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {_short(self.before)} → {_short(self.after)} [{self.id}]"

    def applied(self, source: bytes) -> bytes:
        """The source with this fault."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) < 90 else f"{text[:60]} … {text[-25:]}"


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a source file."""
    source = path.read_bytes()
    finder = _Finder(str(path.relative_to(root)), source)
    finder.visit(ast.parse(source))
    seen: Counter[str] = Counter()
    found = []
    for mutant in sorted(finder.found, key=lambda one: (one.start, one.kind, one.after)):
        context = source[source.rfind(b"\n", 0, mutant.start) + 1 : mutant.end].decode().strip()
        key = f"{mutant.path}|{mutant.kind}|{context}|{mutant.before}|{mutant.after}"
        seen[key] += 1  # the id does not depend on what stands in other lines
        name = hashlib.sha256(f"{key}|{seen[key]}".encode()).hexdigest()[:8]
        found.append(replace(mutant, id=name))
    return found


class _Finder(ast.NodeVisitor):
    """Collects the mutants of a file. Annotations, docstrings, logs, decorators and what errors say are left out."""

    def __init__(self, path: str, source: bytes) -> None:
        self.found: list[Mutant] = []
        self._path = path
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._has_sql = path.startswith(("strongroom/store/", "strongroom/client/replica/store/"))
        self._guard = False
        self._refusal: frozenset[int] = frozenset()
        self._statement: ast.stmt | None = None
        self._returns = ""
        self._names: frozenset[str] | None = frozenset()  # None within a function that runs at every call

    def _span(self, node: ast.AST) -> tuple[int, int]:
        start = self._starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self._starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _add(self, node: ast.AST, kind: str, after: str, *, guard: bool = False, part: slice | None = None) -> None:
        start, end = self._span(node)
        if part is not None:
            text = self._text(node)
            start, end = start + len(text[: part.start].encode()), start + len(text[: part.stop].encode())
        line = self._source.count(b"\n", 0, start) + 1
        before = self._source[start:end].decode()
        statement = self._statement
        lines = {node.lineno, line} | ({statement.lineno} if statement else set())  # type: ignore[attr-defined]
        names = self._names if self._names is not None else frozenset()
        if before != after:
            column = start - self._starts[line - 1]
            where = (self._path, line, column, kind, before, after, start, end)
            self.found.append(Mutant(*where, guard or self._guard, frozenset(lines), names, self._refusal))

    @contextmanager
    def _within(self, **state: object) -> Iterator[None]:
        before = {name: getattr(self, name) for name in state}
        self.__dict__.update(state)
        yield
        self.__dict__.update(before)

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.stmt):
            names = self._names
            if names is not None and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
                names = names or frozenset(one.id if isinstance(one, ast.Name) else "" for one in targets)
            with self._within(_statement=node, _names=names):
                super().visit(node)
        else:
            super().visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        with self._within(_names=frozenset({node.name})):
            for statement in node.body:
                self.visit(statement)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name == "__repr__":
            return
        cached = any(CACHED.search(self._text(one)) for one in node.decorator_list)
        state = {
            "_names": frozenset({node.name}) if cached else None,
            "_returns": self._text(node.returns) if node.returns else "",
            "_guard": False,
        }
        with self._within(**state):
            for child in (*node.args.defaults, *(one for one in node.args.kw_defaults if one), *node.body):
                self.visit(child)

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 (the name in ast)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in self._text(node.test):
            return
        refusal = frozenset(one.lineno for one in node.body if isinstance(one, ast.Raise))
        with self._within(_guard=bool(refusal), _refusal=refusal):
            self.visit(node.test)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_Raise(self, node: ast.Raise) -> None:
        self._add(node, "raise removed", "pass", guard=node.exc is not None)

    def visit_Expr(self, node: ast.Expr) -> None:
        called = node.value.value if isinstance(node.value, ast.Await) else node.value
        if not isinstance(called, ast.Call) or _LOGS.search(self._text(called)):
            return
        self._add(node, "call removed", "pass", guard=bool(_CHECKS.search(self._text(called.func))))
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is None:
            return
        kind = self._returns.split("[")[0].strip("\"'")
        values = ["True", "False"] if kind == "bool" else ["None"] if self._returns.endswith("| None") else []
        values += [_EMPTY[kind]] if kind in _EMPTY else []
        for value in values:
            self._add(node.value, "value returned", value)
        self.visit(node.value)

    def visit_Compare(self, node: ast.Compare) -> None:
        for place, operator in enumerate(node.ops):
            operators = [*node.ops[:place], _OPPOSITE[type(operator)](), *node.ops[place + 1 :]]
            self._add(node, "comparison", ast.unparse(ast.Compare(node.left, operators, node.comparators)))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        word = "or" if isinstance(node.op, ast.And) else "and"
        parts = [f"({self._text(one)})" for one in node.values]
        self._add(node, f"to {word}", f" {word} ".join(parts))
        other = "and" if word == "or" else "or"
        for place in range(len(parts)):
            self._add(node, "operand dropped", f" {other} ".join(parts[:place] + parts[place + 1 :]))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not):
            self._add(node, "not dropped", f"bool({self._text(node.operand)})")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        spelled = self._text(node)
        if isinstance(node.value, str):
            self._visit_sql(node)
        elif type(node.value) is int and spelled.startswith("0o"):
            self._add(node, "mode", "0o755" if spelled.startswith("0o7") else "0o644", guard=True)
        elif type(node.value) is int:
            self._add(node, "number", str(node.value + 1))
            self._add(node, "number", str(node.value - 1))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self._visit_sql(node)

    def _visit_sql(self, node: ast.expr) -> None:
        literal = self._text(node)
        if self._has_sql and sql.IS_SQL.search(literal):
            for kind, start, end, after in sql.changes(literal):
                self._add(node, kind, after, guard=True, part=slice(start, end))

    def visit_Call(self, node: ast.Call) -> None:
        if self._text(node.func) == "items" and len(node.args) > 1:
            parts = [self._text(one) for one in node.args]
            for place in range(len(parts)):
                rest = ", ".join(parts[:place] + parts[place + 1 :])
                self._add(node, "associated data dropped", f"items({rest})", guard=True)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if isinstance(node.op, ast.Add) and "/client/" in self._path and _BOUND_DATA.search(self._text(node)):
            for side in (node.left, node.right):
                self._add(node, "associated data dropped", self._text(side), guard=True)
        self.generic_visit(node)
