"""Generates docs/client-api.md, the reference of strongroom.client: `python -m tools.generate_client_reference`.

Part of `make generate`. Signatures are read from the sources, not from the running objects, whose annotations print
differently from one Python to the next.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib
import inspect
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Final

from strongroom import client, items

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "client-api.md"
_HEAD: Final = """\
<!-- Generated from src/strongroom/client by `make generate`. Do not edit. -->

# Client API reference

Every public name of `strongroom.client`, with its signature and the first paragraph of its documentation. The
[client page](client.md) explains how they are used. Names that are not here may change in any release.
"""
# Methods that a program uses by other syntax: loops, `with`, and the like.
_SYNTAX: Final = {
    *("__iter__", "__aiter__", "__next__", "__anext__", "__len__", "__contains__", "__getitem__", "__call__"),
    *("__enter__", "__aenter__"),
}
_NOT_TOLD: Final = {"Struct", "Part", "AsyncPart"}  # bases that say nothing to a program
_FUNCTIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef)
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Found = tuple[ModuleType, ast.stmt]


def page(module: ModuleType = client) -> str:
    """The whole page."""
    public = _public(module)
    parts = [_HEAD]
    for name, found in public.items():
        parts += [f"## {name}\n", *_entry(name, found, public)]
    return "\n".join(parts)


def unexported(module: ModuleType = client) -> set[str]:
    """The classes of strongroom that something public returns or holds, and that are not public themselves.

    Those of items are imported from `strongroom.items`.
    """
    public = _public(module)
    return {name for found in public.values() for name, _ in _mentioned(*found)} - public.keys() - {*items.__all__}


def _public(module: ModuleType) -> dict[str, _Found]:
    return {name: _definition(module, name) for name in sorted(module.__all__)}


def _entry(name: str, found: _Found, public: dict[str, _Found]) -> Iterator[str]:
    """The section of one name."""
    module, node = found
    if isinstance(node, _FUNCTIONS):
        yield f"`{_signature(module, node)}`\n"
        yield _paragraph(node) + "\n"
    elif isinstance(node, ast.ClassDef):
        members = list(_members(module, node))
        for made in members:
            if isinstance(made, _FUNCTIONS) and made.name == "__init__" and _is_for_programs(made, public):
                yield f"`{name}{_arguments(module, made)}`\n"
        yield _paragraph(node) + "\n"
        bases = [ast.unparse(base) for base in node.bases]
        told = [base for base in bases if base.isidentifier() and base not in _NOT_TOLD and base[0] != "_"]
        yield from (f"A subclass of `{base}`.\n" for base in told)
        lines = [f"- {_member(module, one)}" for one in members if getattr(one, "name", "") != "__init__"]
        if lines:
            yield "\n".join(lines) + "\n"
    else:
        yield f"`{ast.unparse(node)}`\n"


def _member(module: ModuleType, member: ast.AnnAssign | _Function) -> str:
    if isinstance(member, ast.AnnAssign):
        return f"`{ast.unparse(member)}`"
    told = " ".join(_paragraph(member).split())
    return f"`{_signature(module, member)}`" + (f": {told}" if told else "")


def _members(module: ModuleType, node: ast.ClassDef) -> Iterator[ast.AnnAssign | _Function]:
    """The public fields, attributes, properties and methods of a class, in the order of the source."""
    for member in _overloads_documented(node.body):
        if isinstance(member, ast.AnnAssign) and not ast.unparse(member.target).startswith("_"):
            yield member
        elif isinstance(member, _FUNCTIONS):
            if member.name == "__init__":
                yield from _attributes(member)
            if member.name in {"__init__", *_SYNTAX} or not member.name.startswith("_"):
                yield member
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id.startswith("_"):
            source, inherited = _definition(module, base.id)
            if isinstance(inherited, ast.ClassDef):
                yield from (one for one in _members(source, inherited) if getattr(one, "name", "") != "__init__")


def _overloads_documented(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The members with overloads in the place of the function that implements them; the last has its docstring."""
    overloads: list[_Function] = []
    for member in body:
        if isinstance(member, _FUNCTIONS) and "overload" in {ast.unparse(one) for one in member.decorator_list}:
            overloads.append(member)
        elif isinstance(member, _FUNCTIONS) and overloads and overloads[-1].name == member.name:
            last = copy.copy(overloads.pop())
            last.body = member.body
            yield from (*overloads, last)
            overloads = []
        else:
            yield member


def _attributes(made: _Function) -> Iterator[ast.AnnAssign]:
    """The public attributes that a constructor sets: what it is given, or makes by calling a class."""
    given = {one.arg: one.annotation for one in (*made.args.args, *made.args.kwonlyargs)}
    for node in made.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Attribute) and node.target.attr[0] != "_":
            yield ast.AnnAssign(ast.Name(node.target.attr), node.annotation, None, 1)
        if isinstance(node, ast.Assign):
            value = node.value
            kind = value.func if isinstance(value, ast.Call) else given.get(ast.unparse(value))
            for target in node.targets:
                if isinstance(target, ast.Attribute) and not target.attr.startswith("_"):
                    yield ast.AnnAssign(ast.Name(target.attr), kind or ast.Name("Any"), None, 1)


def _is_for_programs(made: _Function, public: dict[str, _Found]) -> bool:
    """Whether all that a constructor takes is public or built in."""
    named = {node.id for node in ast.walk(made.args) if isinstance(node, ast.Name)}
    return all(name in public or hasattr(builtins, name) or name in {"Any", *_constants(named)} for name in named)


def _constants(names: set[str]) -> set[str]:
    return {name for name in names if name.isupper()}


def _mentioned(module: ModuleType, node: ast.stmt) -> Iterator[tuple[str, _Found]]:
    """Classes of strongroom that something public returns or holds."""
    members = list(_members(module, node)) if isinstance(node, ast.ClassDef) else [node]
    for member in members:
        told = member.returns if isinstance(member, _FUNCTIONS) else getattr(member, "annotation", None)
        for name in {one.id for one in ast.walk(told) if isinstance(one, ast.Name)} if told is not None else ():
            if not hasattr(builtins, name):
                try:
                    found = _definition(module, name)
                except LookupError:
                    continue
                if found[0].__name__.startswith("strongroom.") and isinstance(found[1], ast.ClassDef):
                    yield name, found


def _definition(module: ModuleType, name: str) -> _Found:
    """Where a name is defined: followed through imports to the class, function or assignment."""
    for node in _statements(module):
        if isinstance(node, (ast.ClassDef, *_FUNCTIONS)) and node.name == name:
            return module, node
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("strongroom"):
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _definition(importlib.import_module(str(node.module)), alias.name)
    raise LookupError(f"{module.__name__} does not define {name}.")


@cache
def _statements(module: ModuleType) -> list[ast.stmt]:
    """The statements of a module, those under `if TYPE_CHECKING` too."""
    found: list[ast.stmt] = []
    for node in ast.parse(inspect.getsource(module)).body:
        found += node.body if isinstance(node, ast.If) else [node]
    return found


def _signature(module: ModuleType, node: _Function) -> str:
    """A function as a program calls it."""
    marks = {ast.unparse(one) for one in node.decorator_list}
    result = "" if node.returns is None else ast.unparse(node.returns)
    if "property" in marks:
        return f"{node.name}: {result}"
    words = ["classmethod"] * ("classmethod" in marks) + ["async"] * isinstance(node, ast.AsyncFunctionDef)
    return " ".join([*words, f"{node.name}{_arguments(module, node)} -> {result}"])


def _arguments(module: ModuleType, node: _Function) -> str:
    """The parameters of a function, without `self`; a constant as its value."""
    bare = copy.deepcopy(node.args)
    for parameters in (bare.posonlyargs, bare.args):
        if parameters and parameters[0].arg in {"self", "cls"}:
            del parameters[0]
    for defaults in (bare.defaults, bare.kw_defaults):
        for at, default in enumerate(defaults):
            if isinstance(default, ast.Name):
                defaults[at] = ast.Constant(getattr(module, default.id))
    return f"({ast.unparse(bare)})"


def _paragraph(node: ast.ClassDef | _Function) -> str:
    """The first paragraph of a docstring."""
    return (ast.get_docstring(node) or "").partition("\n\n")[0]


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), "utf-8")


if __name__ == "__main__":
    main()
