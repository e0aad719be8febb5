"""An empty project with the JavaScript client installed in it, as docs/javascript.md says; programs for it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.kit.clients.javascript import PACKAGE, once, package, run
from tests.kit.documents import fences, text_of

# As strict as a program can be.
STRICT: Final = (
    *("--ignoreConfig", "--noEmit", "--strict", "--noUncheckedIndexedAccess", "--exactOptionalPropertyTypes"),
    *("--target", "es2022", "--module", "nodenext", "--lib", "es2022,dom,dom.iterable,dom.asynciterable"),
)


def project() -> Path:
    """A folder with the package installed by the commands of the page, without a network; made once for all tests."""

    def make(folder: Path) -> None:
        (folder / "js").symlink_to(package())
        (folder / "package.json").write_text('{"private": true, "type": "module"}', encoding="utf-8")
        block = next(body for language, body in fences(text_of("docs/javascript.md")) if language == "sh")
        first, *commands = block.splitlines()
        assert first == "make js"
        for command in commands:
            program, *words = command.split()
            assert program == "npm"
            run("npm", *words, folder=folder, npm_config_offline="true", npm_config_audit="false")
        modules = folder / "node_modules"
        (modules / "@types").mkdir()
        for name in ("react", "react-dom", "scheduler", "csstype", "@types/react", "@types/react-dom"):
            (modules / name).symlink_to(PACKAGE / "node_modules" / name)

    return once("javascript-project", make)


def check(folder: Path, *files: str, types: str = "") -> None:
    """Check the types of programs in the project, strictly. A page has no types but its own; a program has `node`."""
    options = ("--jsx", "react-jsx", "--types", types, "--typeRoots", str(PACKAGE / "node_modules" / "@types"))
    run("node", str(PACKAGE / "node_modules/typescript/bin/tsc"), *STRICT, *options, *files, folder=folder)


def esbuild(folder: Path, *words: str) -> None:
    """Run esbuild in a folder."""
    run(str(PACKAGE / "node_modules/.bin/esbuild"), *words, "--log-level=warning", folder=folder)
