"""What is loaded apart from the list: shown as soon as it is there, whenever somebody asks for it."""

from __future__ import annotations

from typing import Final

from playwright.sync_api import expect

from tests.kit.browsers.web_app import Pages
from tests.kit.servers.process import on_a_file
from tests.web.page_helpers import BrowserUser, held, log_in

# Preact runs effects after the next frame, or after a short time: from here on, both come late, as on a busy machine.
_DELAY_EFFECTS: Final = """() => {
  const wait = window.setTimeout.bind(window);
  window.setTimeout = (run, time = 0, ...rest) => wait(run, time > 0 && time <= 100 ? 2000 : time, ...rest);
  window.requestAnimationFrame = (run) => wait(() => run(performance.now()), 2000);
}"""


@on_a_file
def test_a_part_that_is_loaded_between_a_frame_and_its_effects(person: BrowserUser, pages: Pages) -> None:
    """A dialogue whose part arrives after it was drawn and before its effects run is shown all the same."""
    page = pages.open()
    with held(page, "**/app/assets/*.js") as parts:
        log_in(page, person.email)
        expect(page.get_by_role("searchbox", name="Search")).to_be_visible()
        while not parts:
            page.wait_for_timeout(20)
        page.evaluate(_DELAY_EFFECTS)
        page.get_by_role("button", name="New vault").first.click()
    expect(page.get_by_role("textbox", name="Name")).to_be_visible()
