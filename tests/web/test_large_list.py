"""Ten thousand items in the web app: the first look, search as you type, scrolling, memory. It prints the figures.

What it asserts are counts: of rows, of calls of the browser's cryptography, of steps. Times are printed, and compared
with those of a frame in which the same page does nothing, or reads 4 MiB of numbers as JSON.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

from playwright.sync_api import Page, expect

from strongroom.items import Login
from tests.kit.browsers.web_app import Pages
from tests.kit.servers.process import on_a_file
from tests.kit.waiting import until
from tests.web.page_helpers import FORGET_CONTENTS, BrowserUser, row, rows

COUNT: Final = 10_000
# What a page notes from its first moment on: calls of WebCrypto, and when the list has its first rows and all of them.
_NOTED: Final = """
window.noted = { opened: 0, steps: [] };
const decrypt = window.SubtleCrypto?.prototype.decrypt; // a page that is empty has none
if (decrypt) SubtleCrypto.prototype.decrypt = function (...given) {
  window.noted.opened += 1;
  return decrypt.apply(this, given);
};
const look = () => {
  const label = document.querySelector("[role=listbox]")?.getAttribute("aria-label") ?? "";
  const count = Number(label.replace(/[^0-9]/g, ""));
  const { steps, opened } = window.noted;
  if (count && count !== steps.at(-1)?.count) steps.push({ count, opened, at: performance.now() });
  requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
# How many boxes of contents the replica keeps.
_KEPT: Final = """async () => {
  const done = (request) => new Promise((go) => { request.onsuccess = () => go(request.result); });
  const name = (await indexedDB.databases()).map((one) => one.name).find((one) => one.startsWith("strongroom replica"));
  const database = await done(indexedDB.open(name));
  const keys = await done(database.transaction("facts").objectStore("facts").getAllKeys());
  database.close();
  return keys.filter(([, uid]) => uid !== undefined).length;
}"""
_SCROLL: Final = """async ({ step, seconds }) => {
  const list = document.querySelector("[role=listbox]");
  const next = () => new Promise(requestAnimationFrame);
  const times = [];
  let last = await next();
  for (const end = last + 1000 * seconds; last < end; ) {
    list.scrollTop += step;
    const now = await next();
    times.push(now - last);
    last = now;
  }
  const rows = document.querySelectorAll("[role=option]").length;
  return { times: times.sort((one, other) => one - other), rows };
}"""
# Times of key presses, and of frames in between in which the page does other work: 80 to 100 ms on an idle machine.
_TYPE: Final = """async (text) => {
  const input = document.querySelector("input[type=search]");
  const next = () => new Promise((go) => requestAnimationFrame(() => setTimeout(go)));
  const [times, others] = [[], []];
  const numbers = `[${"1,".repeat(2 << 20)}1]`;
  for (let length = 1; length <= text.length; length += 1) {
    const started = performance.now();
    JSON.parse(numbers);
    await next();
    others.push(performance.now() - started);
    const begun = performance.now();
    input.value = text.slice(0, length);
    input.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await next();
    times.push(performance.now() - begun);
  }
  return [times, others].map((all) => all.sort((one, other) => one - other));
}"""


def _middle(times: list[float]) -> float:
    return times[len(times) // 2]


def _dropped(times: list[float]) -> int:
    """How many frames of 60 in a second were left out."""
    return sum(max(0, round(one / (1000 / 60)) - 1) for one in times)


def _opened_again(page: Page) -> dict[str, Any]:
    """What the page notes of the time until all items are in the list, after it was loaded again."""
    page.reload()
    expect(page.get_by_role("listbox", name=f"Items, {COUNT:,}")).to_be_visible(timeout=120_000)
    noted: dict[str, Any] = page.evaluate("window.noted")
    return noted


@on_a_file
def test_ten_thousand_items(person: BrowserUser, pages: Pages) -> None:
    """Opened again, the app decrypts some boxes, not each item; only rows that can be seen are in the page.

    Where it must decrypt each, rows come as they are read, in a few steps.
    """
    pages.context.add_init_script(_NOTED)
    made = (
        Login(
            title=f"Account {n}", username=f"user{n}@example.com", password=f"secret {n}", urls=[f"https://{n}.example"]
        )
        for n in range(COUNT)
    )
    assert sum(1 for _ in person.items.create_many(made)) == COUNT
    page = person.log_in(pages)
    expect(page.get_by_role("listbox", name=f"Items, {COUNT:,}")).to_be_visible(timeout=120_000)
    until(lambda: page.evaluate(_KEPT) >= COUNT / 256, "the contents are kept", pause=0.5)
    warm = _opened_again(page)
    assert warm["opened"] < COUNT / 50
    idle: list[float] = page.evaluate(_SCROLL, {"step": 0, "seconds": 2})["times"]
    scrolled: dict[str, Any] = page.evaluate(_SCROLL, {"step": 100, "seconds": 5})
    typed, others = page.evaluate(_TYPE, "account 9876")
    expect(rows(page)).to_have_count(1)
    expect(row(page, "Account 9876")).to_be_visible()
    page.context.new_cdp_session(page).send("HeapProfiler.collectGarbage")
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
    page.evaluate(FORGET_CONTENTS)
    cold = _opened_again(page)
    assert cold["opened"] >= COUNT
    assert cold["steps"][0]["opened"] < COUNT / 4
    assert len(cold["steps"]) < 12
    frames = scrolled["times"]
    tell = " ".join(f"{step['count']:,} after {step['at'] / 1000:.2f} s;" for step in cold["steps"])
    sys.stdout.write(
        f"\n10,000 items: after a reload, first rows {warm['steps'][0]['at'] / 1000:.2f} s, all "
        f"{warm['steps'][-1]['at'] / 1000:.2f} s; without kept contents {tell} key press {_middle(typed):.1f} "
        f"of {_middle(others):.0f} ms, at most {typed[-1]:.0f}; "
        f"frame {_middle(frames):.1f} ms, {_dropped(frames)} dropped of {len(frames)}; "
        f"heap {heap:.0f} MB; load {os.getloadavg()[0]:.1f}\n"
    )
    assert scrolled["rows"] < 60
    assert _middle(frames) < 2 * _middle(idle)
    assert _middle(typed) < _middle(others)
    assert heap < 250
