"""Generated files are in the repository, and are what their generator writes today."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from strongroom import client, errors
from tests.kit.requirements import skip_or_fail
from tools import (
    generate_blocking,
    generate_client_reference,
    generate_javascript_reference,
    generate_man_page,
)


@pytest.mark.parametrize("source", generate_blocking.FILES, ids=lambda path: path.name)
def test_the_blocking_clients_are_up_to_date(source: Path) -> None:
    """`make generate` after a change of an asynchronous module, or this fails."""
    assert generate_blocking.FILES[source].read_text("utf-8") == generate_blocking.blocking(source)


@pytest.mark.parametrize("source", generate_blocking.FILES, ids=lambda path: path.name)
def test_a_planted_change_is_seen(source: Path, tmp_path: Path) -> None:
    """One more method in the asynchronous module is one more in the blocking one, and nothing in it awaits."""
    planted = tmp_path / source.name
    method = "\n    async def planted(self) -> None:\n        await self.close()\n"
    planted.write_text(source.read_text("utf-8") + method, "utf-8")
    made = generate_blocking.blocking(planted)
    assert made != generate_blocking.FILES[source].read_text("utf-8")
    assert made.endswith("    def planted(self) -> None:\n        self.close()\n")
    assert not {"async", "await"} & set(made.partition("\n")[2].split())


def test_the_client_reference_is_up_to_date() -> None:
    """A change of the client's public names, signatures or documentation is seen in docs/client-api.md."""
    assert generate_client_reference.PAGE.read_text("utf-8") == generate_client_reference.page(), "run make generate"


def test_the_man_page_is_up_to_date() -> None:
    """A change of a command, an option or its help is seen in docs/strongroom.1, and every command is there."""
    made = generate_man_page.page()
    assert generate_man_page.PAGE.read_text("utf-8") == made, "run make generate"
    for command in ("login", "get", "share\\-token", "serve", "users"):
        assert f"\n.SS {command}\n" in made


def test_everything_that_a_program_names_is_exported() -> None:
    """What methods return, and what that holds, can be imported from strongroom.client, for annotations."""
    assert generate_client_reference.unexported() == set()
    assert all(hasattr(client, name) for name in client.__all__)
    assert dir(client) == sorted(client.__all__)


def swallowing(page: str) -> list[str]:
    """The signatures that take any argument."""
    return [line for line in page.splitlines() if re.search(r"`[^`]*\*\w", line)]


def test_no_signature_swallows_a_misspelt_argument() -> None:
    """Neither `**options` nor `*args`: what a function does not know, it refuses."""
    assert swallowing(generate_client_reference.page()) == []
    assert swallowing("- `with_token(url: str, **options: Any) -> Self`")
    assert swallowing("- `with_token(url: str, *more: str) -> Self`: As it was.")


def test_every_error_is_exported() -> None:
    """An error that a server raises can be caught by a name of strongroom.client, those of other programs aside."""
    found = {name: one for name, one in vars(errors).items() if isinstance(one, type) and issubclass(one, Exception)}
    not_for_programs = {
        "Conflict",  # the client's is another; DocumentConflict and VaultConflict are what is raised
        *("KeyringConflict", "KeyringNotFound"),  # the client deals with these by itself
        "ImportNotFound",  # of imports
        *("MethodNotAllowed", "UnsupportedMediaType"),  # of requests that the client does not send
    }
    assert {name for name, one in found.items() if getattr(client, name, None) is not one} == not_for_programs
    assert found.keys() - not_for_programs <= set(client.__all__)


PUBLIC = """
from __future__ import annotations
__all__ = ["Thing"]
LEAST = 3
class Thing:
    \"\"\"A thing.

    More.
    \"\"\"
    def __init__(self, name: str, *, count: int = LEAST) -> None:
        self.name = name
        self.left: int | None = None
        self._hidden = 1
    async def take(self, number: int | None = None) -> list[str]:
        \"\"\"Takes.\"\"\"
    def _private(self) -> None: ...
"""


def _page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> str:
    """The reference of a planted module."""
    (tmp_path / "planted.py").write_text(text, "utf-8")
    module = ModuleType("planted")
    module.__file__ = str(tmp_path / "planted.py")
    exec(compile((tmp_path / "planted.py").read_text("utf-8"), module.__file__, "exec"), module.__dict__)  # noqa: S102
    monkeypatch.setitem(sys.modules, "planted", module)
    return generate_client_reference.page(module)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("LEAST = 3", "LEAST = 4"),
        ("name: str, *", "name: str = '', *"),
        ("number: int | None = None", "number: int = 0"),
        ("list[str]", "list[int]"),
        ("async def take", "def take"),
        ("def take", "def fetch"),
        ("Takes.", "Gives."),
        ("self.name = name", "self._name = name"),
        ("self.left: int", "self.left: str"),
    ],
)
def test_a_planted_change_of_the_surface_is_seen(
    before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defaults, types, names, async and documentation are on the page; what is private is not."""
    page = _page(tmp_path, monkeypatch, PUBLIC)
    assert "`Thing(name: str, *, count: int=3)`" in page
    assert "- `async take(number: int | None=None) -> list[str]`: Takes." in page
    assert "More." not in page
    assert "private" not in page
    assert "hidden" not in page
    assert before in PUBLIC
    (tmp_path / "other").mkdir()
    assert _page(tmp_path / "other", monkeypatch, PUBLIC.replace(before, after)) != page


def test_a_planted_class_that_is_not_exported_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A public method that returns a class of strongroom makes a program want its name."""
    planted = PUBLIC.replace("import annotations", "import annotations\nfrom strongroom.model import User", 1)
    _page(tmp_path, monkeypatch, planted.replace("-> list[str]", "-> list[User]"))
    assert generate_client_reference.unexported(sys.modules["planted"]) == {"User"}
    (tmp_path / "other").mkdir()
    _page(tmp_path / "other", monkeypatch, planted)
    assert generate_client_reference.unexported(sys.modules["planted"]) == set()


def test_the_javascript_reference_is_up_to_date() -> None:
    """A change of the JavaScript client's public names, types or documentation is seen in docs/javascript-api.md."""
    if not generate_javascript_reference.is_possible():
        skip_or_fail("The packages of js/ are not installed. `make js` installs them.")
    page = generate_javascript_reference.page()
    assert generate_javascript_reference.PAGE.read_text("utf-8") == page, "run make generate"


DECLARED = {
    "index.d.ts": 'export { Thing, type Plain } from "./things.js";\nexport * from "./more.js";\n',
    "more.d.ts": "/** Adds. */\nexport declare function add(one: number, other?: number): number;\n",
    "things.d.ts": """import type { Core } from "./core.js";
/**
 * A thing.
 *
 * More.
 */
export declare class Thing<T = unknown> extends Base implements Iterable<T> {
    #private;
    readonly name: string;
    constructor(name: string, options?: {
        count?: number;
    });
    /** Takes; it is safe. */
    take(number: number): Promise<string[]>;
}
/** Hidden. */
export declare function hidden(): void;
export type Plain = Of<typeof plain>;
""",
}


def _declarations(folder: Path, before: str = "", after: str = "") -> str:
    """The reference of planted declarations, changed."""
    folder.mkdir()
    for name, text in DECLARED.items():
        (folder / name).write_text(text.replace(before, after) if before else text, "utf-8")
    return generate_javascript_reference.reference(folder, {"Plain": "{ uid: string }"})


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("name: string, options", "name: number, options"),
        ("count?: number", "count: number"),
        ("extends Base", "extends Other"),
        ("Promise<string[]>", "Promise<number[]>"),
        ("take(", "fetch("),
        ("Takes; it is safe.", "Gives."),
        ("readonly name", "readonly title"),
        ("other?: number", "other: number"),
        ("{ Thing, type Plain }", "{ Thing }"),
    ],
)
def test_a_planted_change_of_a_declaration_is_seen(before: str, after: str, tmp_path: Path) -> None:
    """Names, types, options and documentation are on the page; what is private or not exported is not."""
    page = _declarations(tmp_path / "before")
    assert "`new Thing(name: string, options?: { count?: number })`\n\nA thing.\n\nA subclass of `Base`." in page
    assert "- `take(number: number): Promise<string[]>`: Takes; it is safe." in page
    assert "`type Plain = { uid: string }`" in page
    assert "`add(one: number, other?: number): number`\n\nAdds." in page
    assert not any(word in page for word in ("More.", "private", "hidden"))
    assert any(before in text for text in DECLARED.values())
    assert _declarations(tmp_path / "after", before, after) != page
