"""Generates docs/javascript-api.md, the reference of @strongroom/client.

`python -m tools.generate_javascript_reference`, part of `make generate`. It reads the declarations that the compiler
writes from js/src, as a program that imports the package gets them. It needs the packages of js/, which `make js`
installs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tools import node

ROOT: Final = Path(__file__).parent.parent
PACKAGE: Final = ROOT / "js"
PAGE: Final = ROOT / "docs" / "javascript-api.md"
_HEAD: Final = """\
<!-- Generated from js/src by `make generate`. Do not edit. -->

# JavaScript API reference

Every public name of `@strongroom/client`, with its type and the first paragraph of its documentation. The
[JavaScript page](javascript.md) explains how they are used. Names that are not here may change in any release.
"""
_OPEN, _CLOSE = "([{", ")]}"
_COMMENT = re.compile(r"/\*\*(.*?)\*/", re.DOTALL)
_DECLARATION = re.compile(
    r"^export (?:declare )?(?:abstract )?(class|interface|function|const|type) (\w+)", re.MULTILINE
)
_IMPORT = re.compile(r'^(?:import|export) (?:type )?\{([^}]*)\} from "(\.[^"]*)";', re.MULTILINE)
_ALL = re.compile(r'^export \* from "(\.[^"]*)";', re.MULTILINE)
_NAMES = re.compile(r"^export (?:type )?\{([^}]*)\}", re.MULTILINE)
# Members that every error has, and what stands for private fields.
_LEFT_OUT = re.compile(r"#private$|private |static readonly (kind|sentence)\b")


class Declared(NamedTuple):
    """A public name: its kind, the text of its declaration, and the first paragraph of its documentation."""

    kind: str
    text: str
    told: str


def is_possible() -> bool:
    """Whether the packages of js/ are installed."""
    return (PACKAGE / "node_modules" / ".done").exists()


def page() -> str:
    """The whole page."""
    with tempfile.TemporaryDirectory() as folder:
        types = Path(folder)
        _compile(PACKAGE / "src", types, "-p", "tsconfig.dist.json")
        return reference(types, _spelled_out(types))


def reference(types: Path, shapes: dict[str, str]) -> str:
    """The page of the declarations in this folder. `shapes` are types that the compiler has spelled out."""
    parts = [_HEAD]
    told: dict[str, list[Declared]] = {}
    for entry, path in entries(types):
        found = {name: definition(path, name) for name in sorted(exported(path))}
        shown = {name: one for name, one in found.items() if told.get(name) != one}
        parts += [f"## {entry}\n"] * bool(shown)
        for name, one in shown.items():
            heading = f"{name} of {entry.rpartition('/')[2]}" if name in told else name
            parts += [f"### {heading}\n", *_section(name, one, shapes)]
        told |= found
    return "\n".join(parts)


def entries(types: Path) -> Iterator[tuple[str, Path]]:
    """What a program can import from, and the file of its declarations; what is not built is left out."""
    package = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    for way, files in package["exports"].items():
        path = types / Path(files["types"]).relative_to("dist/types")
        if path.exists():
            yield package["name"] + way.removeprefix("."), path


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _beside(path: Path, module: str) -> Path:
    return Path(os.path.normpath(path.parent / module)).with_suffix(".d.ts")


def _listed(names: str) -> Iterator[tuple[str, str]]:
    """The names between braces: what each is called here, and there."""
    for one in names.split(","):
        there, _, here = one.strip().removeprefix("type ").partition(" as ")
        if there:
            yield here or there, there


def exported(path: Path) -> set[str]:
    """Every name that a file exports."""
    text = _text(path)
    found = {match[2] for match in _DECLARATION.finditer(text)}
    found |= {here for match in _NAMES.finditer(text) for here, _ in _listed(match[1])}
    return found.union(*(exported(_beside(path, match[1])) for match in _ALL.finditer(text)))


def definition(path: Path, name: str) -> list[Declared]:
    """Where a name is declared, followed through imports; a function may be declared several times."""
    text = _text(path)
    if found := [_declared(text, match) for match in _DECLARATION.finditer(text) if match[2] == name]:
        return found
    for match in _IMPORT.finditer(text):
        for here, there in _listed(match[1]):
            if here == name:
                return definition(_beside(path, match[2]), there)
    for match in _ALL.finditer(text):
        other = _beside(path, match[1])
        if name in exported(other):
            return definition(other, name)
    raise LookupError(f"{path.name} does not declare {name}.")


def _declared(text: str, match: re.Match[str]) -> Declared:
    end = _end(text, match.start(), is_block=match[1] in {"class", "interface"})
    before = list(_COMMENT.finditer(text, 0, match.start()))
    told = before[-1][1] if before and not text[before[-1].end() : match.start()].strip() else ""
    return Declared(match[1], text[match.start() : end], _paragraph(told))


def _end(text: str, start: int, *, is_block: bool) -> int:
    """Where a declaration or a member ends: at the bracket that closes its block, or at its semicolon."""
    depth = 0
    at = start
    while at < len(text):
        if text.startswith("/*", at):
            at = text.index("*/", at) + 2
            continue
        if text[at] in "\"'`":
            at = text.index(text[at], at + 1) + 1
            continue
        depth += (text[at] in _OPEN) - (text[at] in _CLOSE)
        at += 1
        if depth == 0 and (text[at - 1] == ";" or (is_block and text[at - 1] == "}")):
            return at
    return at


def _paragraph(comment: str) -> str:
    """The first paragraph of a comment, in one line."""
    lines = [line.strip().removeprefix("*").strip() for line in comment.strip().splitlines()]
    return " ".join(" ".join(lines).split()) if "" not in lines else " ".join(lines[: lines.index("")])


def _section(name: str, found: list[Declared], shapes: dict[str, str]) -> Iterator[str]:
    """What the page says of one name."""
    told = next((one.told for one in found if one.told), "")
    kind, text, _ = found[0]
    if kind in {"class", "interface"}:
        head, _, body = text.partition("{")
        members = list(_members(body.rstrip()[:-1]))
        yield from (f"`new {name}{one.removeprefix('constructor')}`\n" for one, doc in members if _is_made(one, doc))
        yield told + "\n"
        bases = re.search(r" extends ([^{]+?)(?: implements |$)", head.strip())
        if bases:
            word = "A subclass of" if kind == "class" else "With everything of"
            yield f"{word} {', '.join(f'`{base.strip()}`' for base in bases[1].split(','))}.\n"
        lines = [
            f"- `{one}`" + (f": {doc}" if doc else "") for one, doc in members if not one.startswith("constructor")
        ]
        if lines:
            yield "\n".join(lines) + "\n"
        return
    for one in found:
        spelled = re.sub(r"^export (declare )?(function |const )?", "", _line(one.text))
        if kind == "type" and name in shapes:
            spelled = f"type {name} = {shapes[name]}"
        yield f"`{spelled}`\n"
    yield told + "\n"


def _is_made(member: str, told: str) -> bool:
    """Whether a member is a constructor that programs call; the others say what makes the object."""
    return member.startswith("constructor") and not re.search(r"\b(Core|Row|Typed|Made by)\b", member + told)


def _members(body: str) -> Iterator[tuple[str, str]]:
    """The public members of a class or an interface, and the first paragraph of what is said of each."""
    at, told = 0, ""
    while body[at:].strip():
        at += len(body[at:]) - len(body[at:].lstrip())
        if comment := _COMMENT.match(body, at):
            told, at = _paragraph(comment[1]), comment.end()
            continue
        end = _end(body, at, is_block=False)
        member = _line(body[at:end])
        if not _LEFT_OUT.match(member):
            made = member.removeprefix("readonly ") if member.startswith("readonly code:") else member
            yield made, told
        at, told = end, ""


def _line(text: str) -> str:
    """A declaration in one line, without comments."""
    joined = " ".join(_COMMENT.sub("", text).split()).removesuffix(";")
    return re.sub(r";? \}", " }", joined)


def _spelled_out(types: Path) -> dict[str, str]:
    """The types that are derived from values, with their members, as the compiler spells them."""
    lines = []
    for _, path in entries(types):
        derived = [name for name in sorted(exported(path)) if _is_derived(definition(path, name)[0])]
        lines += [f'import type {{ {name} }} from "./{path.name.removesuffix(".d.ts")}.js";' for name in derived]
        for name in derived:
            shown = f"Record<{name}, never>" if "keyof " in definition(path, name)[0].text else name
            lines.append(f"export const of{name} = {{ ...(null as unknown as {shown}) }};")
    (types / "shapes.ts").write_text("\n".join(lines), "utf-8")
    options = json.loads((PACKAGE / "tsconfig.json").read_text("utf-8"))["compilerOptions"]
    target = ("--target", options["target"], "--lib", ",".join(options["lib"]))
    modules = ("--module", options["module"], "--moduleResolution", options["moduleResolution"])
    made = types / "made"
    _compile(types, made, "--ignoreConfig", "--strict", "--skipLibCheck", *target, *modules, str(types / "shapes.ts"))
    text = (made / "shapes.d.ts").read_text("utf-8")
    spelled = {
        match[2].removeprefix("of"): _line(_declared(text, match).text).partition(": ")[2]
        for match in _DECLARATION.finditer(text)
    }
    return {name: _union(shape) if ": never" in shape else shape for name, shape in spelled.items()}


def _union(shape: str) -> str:
    """The names of an object's members, as the type of a text that is one of them."""
    return " | ".join(f'"{name}"' for name in re.findall(r"(\w+): never", shape))


def _is_derived(found: Declared) -> bool:
    return found.kind == "type" and "typeof " in found.text


def _compile(sources: Path, target: Path, *options: str) -> None:
    """Have the compiler write the declarations of these sources into a folder."""
    place = node.environment()
    program = shutil.which("node", path=place["PATH"]) or "node"
    command = [
        program,
        "node_modules/typescript/bin/tsc",
        "--noEmit",
        "false",
        "--declaration",
        "--emitDeclarationOnly",
    ]
    done = subprocess.run(  # noqa: S603
        [*command, "--rootDir", str(sources), "--outDir", str(target), *options],
        cwd=PACKAGE,
        env=place,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stdout + done.stderr)


if __name__ == "__main__":
    if is_possible():
        PAGE.write_text(page(), "utf-8")
    else:
        sys.stdout.write("The packages of js/ are not installed: docs/javascript-api.md stays as it is.\n")
