"""The examples of docs/client.md run as they stand."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from strongroom.client import Client
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.people.one_time_codes import code
from tests.kit.servers.process import Server

PAGE = (Path(__file__).parents[2] / "docs" / "client.md").read_text("utf-8")


def blocks(title: str) -> list[str]:
    """The programs of one section."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.mark.parametrize("title", ["Vaults and documents", "Many documents", "History and trash"])
def test_the_examples_run(server: Server, title: str) -> None:
    """With a client that has logged in, and a collection of notes."""
    with Client(f"http://127.0.0.1:{server.port}") as client:
        client.register(unique_email(), PASSWORD)
        vault = client.vault("personal", create=True)
        names: dict[str, Any] = {"client": client, "vault": vault, "notes": vault.collection("notes")}
        assert blocks(title)
        for program in blocks(title):
            exec(compile(program, f"{title} of docs/client.md", "exec"), names)  # noqa: S102 - our own page
        assert list(names["notes"]) == []


def test_the_example_of_a_second_factor_runs(server: Server) -> None:
    """An app gives the first code; the function of the page is asked at login, and gives a recovery code."""
    email = unique_email()
    names: dict[str, Any] = {"email": email, "password": PASSWORD}

    def ask(_prompt: str) -> str:
        if "recovery_codes" in names:
            return str(names["recovery_codes"][0])
        return code(names["enrolment"].secret, time.time_ns() // 1_000_000)

    with Client(f"http://127.0.0.1:{server.port}") as client:
        client.register(email, PASSWORD)
        names |= {"client": client, "input": ask}
        [program] = blocks("A second factor")
        exec(compile(program, "docs/client.md", "exec"), names)  # noqa: S102 - our own page
        assert client.second_factor.status().recovery_codes == 9
