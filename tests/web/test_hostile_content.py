"""Hostile content in the web app: nothing in an item runs, leads away, or leaves its frame."""

from __future__ import annotations

import re
from typing import Any, Final

from playwright.sync_api import Page, expect

from strongroom.items import Login, Note
from strongroom.items.types import Field, File, FileContent, Item
from tests.kit.browsers.web_app import Pages
from tests.kit.samples import some
from tests.kit.servers.process import on_a_file
from tests.web.page_helpers import BrowserUser, rows, wide

SCRIPTS: Final = [
    "<script>window.hit = 1</script>",
    "<img src=x onerror=window.hit=1>",
    "<svg onload=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<iframe srcdoc='<script>parent.hit=1</script>'></iframe>",
    "<a href='javascript:window.hit=1'>x</a>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=//example.invalid/x.css>",
    "<meta http-equiv=refresh content='0;url=https://example.invalid'>",
    "<base href=https://example.invalid>",
    "<form action=https://example.invalid><input autofocus onfocus=window.hit=1>",
    "</title></textarea></style></script><script>window.hit=1</script>",
    "{{constructor.constructor('window.hit=1')()}}",
    "${window.hit=1}",
    "javascript:window.hit=1",
    "data:text/html,<script>window.hit=1</script>",
    "__proto__",
    "constructor",
]
MARKDOWN: Final = [
    "[x](javascript:window.hit=1)",
    "[x](JaVaScRiPt:window.hit=1)",
    "[x](java\tscript:window.hit=1)",
    "[x](data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGl0PTE8L3NjcmlwdD4=)",
    "[x](vbscript:msgbox)",
    "[x](file:///etc/passwd)",
    "[x](//example.invalid)",
    "[x](#/settings)",
    "[https://bank.example](https://evil.example)",
    "![x](https://example.invalid/pixel.png)",
    "![x](javascript:window.hit=1)",
    '<https://example.invalid/" onmouseover="window.hit=1>',
    'https://example.invalid/"onmouseover=window.hit=1//',
    "[x]: javascript:window.hit=1\n\n[x]",
    "```\n</code></pre><script>window.hit=1</script>\n```",
    "`</code><script>window.hit=1</script>`",
    ">" * 5000 + " deep",
    "*" * 20_000,
    "[" * 20_000,
    "`" * 20_000,
    "- " * 10_000,
    "#" * 10_000 + " x",
    "1. " * 5_000,
    "_*" * 10_000,
    "https://" + "a" * 20_000,
]
TEXTS: Final = [
    "\u202egnp.exe",
    "user\u202e\u2066moc.live@ada",
    "\u200b\u200c\u200d\ufeff\u2060",
    "a\u200bb",
    "\u0000\u0007\u001b[31mred",
    "Z" + "\u0301\u0323\u0334\u035c" * 400,
    "🏳️‍🌈" * 2000,
    "\ufffd" * 300,
    "W" * 100_000,
    "\uff37" * 50_000,
    "a\n" * 5000,
    " " * 10_000,
    "العربية " * 500,
    "𒐫" * 500,
    "﷽" * 500,
]


def _items() -> list[Item]:
    found: list[Item] = []
    for text in [*SCRIPTS, *TEXTS]:
        found.append(
            Login(
                title=text,
                username=text,
                password=text,
                notes=text,
                urls=[text],
                tags=[text],
                folders=[text],
                fields=[Field(label=text, value=text, section=text), Field(label=text, value=text, type=text)],
            )
        )
        found.append(Note(title=f"note {len(found)}", subtitle=text, notes=text))
        found.append(
            File(title=f"file {len(found)}", files=[FileContent(name=text, content=b"<svg onload=window.hit=1>")])
        )
    found += [Note(title=f"markdown {number}", notes=text) for number, text in enumerate(MARKDOWN)]
    found += [Note(title=text) for text in ("M" * 3_000_000, "\u202e" * 900_000)]
    found += [
        Login(title=f"{text} {number}", notes=text) for number, text in enumerate((SCRIPTS + MARKDOWN + TEXTS) * 2)
    ]
    return [*found[:200], found[-1]]


def _is_calm(page: Page, pages: Pages) -> None:
    """Nothing ran, nothing led away, nothing is wider than the page, and the address and the title say nothing."""
    assert page.evaluate("window.hit") is None
    assert re.fullmatch(r"/app/(#/items(/[0-9a-f-]+)*(/edit|/history)?)?", page.url.removeprefix(pages.url)), page.url
    assert page.title() == "strongroom"
    assert wide(page) == []
    links: list[dict[str, Any]] = page.evaluate(
        """() => [...document.querySelectorAll('.itemView a')].map(({ href, target, rel }) => ({href, target, rel}))"""
    )
    for link in links:
        if not link["href"].startswith(f"{pages.url}/app/"):
            assert link["href"].split(":")[0] in {"http", "https", "mailto"}, link
            assert (link["target"], link["rel"]) == ("_blank", "noopener noreferrer")
    assert (
        page.locator(".itemView img, .itemView iframe, .itemView script, .itemView object, .itemView embed").count()
        == 0
    )


def _look_at_all(page: Page, pages: Pages, uids: list[tuple[str, str]]) -> None:
    for vault, uid in uids:
        page.evaluate("(hash) => { location.hash = hash; }", f"#/items/{vault}/{uid}")
        expect(page.locator(f".itemRow.isOpen, .itemView[data-uid='{uid}']").first).to_be_attached()
        expect(page.locator(f"article.itemView[data-uid='{uid}']")).to_be_visible()
        _is_calm(page, pages)


@on_a_file
def test_nothing_runs_and_nothing_leaves_its_frame(person: BrowserUser, pages: Pages) -> None:
    """200 items: scripts, Markdown tricks, bidirectional and invisible characters, names of megabytes, SVG files."""
    results = list(person.items.create_many(_items()))
    assert len([one for one in results if one.error is None]) == 201
    page = person.log_in(pages)
    expect(page.get_by_role("listbox")).to_have_attribute("aria-label", f"Items, {len(results)}", timeout=60_000)
    _is_calm(page, pages)
    everything = [(one.document.vault, one.document.uid) for one in results]
    _look_at_all(page, pages, some("items of hostile content", everything))
    page.set_viewport_size({"width": 390, "height": 844})
    _look_at_all(page, pages, some("items of hostile content", everything[::7]))
    for kind in ("edit", "history"):
        for vault, uid in some("items of hostile content", everything[::25]):
            page.evaluate("(hash) => { location.hash = hash; }", f"#/items/{vault}/{uid}/{kind}")
            expect(page.locator(".itemEditor, .versions, .emptyState").first).to_be_visible()
            _is_calm(page, pages)
    page.get_by_role("link", name="Items", exact=True).click()
    page.get_by_role("searchbox").fill("gnp.exe")
    expect(rows(page)).not_to_have_count(0)
    row = rows(page).first
    assert "\u202e" not in row.inner_text()


def _filled(line: str) -> str:
    """A note of lines like this one, as long as a note that is shown as Markdown may be."""
    return "\n".join([line] * (40_000 // (len(line) + 1)))


@on_a_file
def test_no_note_keeps_the_page_busy(person: BrowserUser, pages: Pages) -> None:
    """Lines made so that an expression which goes back and forth in them would take minutes are shown at once."""
    lines = [
        "# a" + " " * 800 + "b",
        "# " + " " * 200 + "\u2028",
        "`" * 20_000,
        "https://" + "." * 1500 + "a",
        "**a " * 2000,
    ]
    notes = [person.items.create(Note(title=f"slow {at}", notes=_filled(line))) for at, line in enumerate(lines)]
    page = person.log_in(pages)
    expect(rows(page)).to_have_count(len(notes))
    for document in notes:
        page.evaluate("(hash) => { location.hash = hash; }", f"#/items/{document.vault}/{document.uid}")
        expect(page.locator(f"article.itemView[data-uid='{document.uid}'] .markdown")).to_be_visible()
