"""References in templates, environments and files of variables."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from strongroom.programs import env_file
from strongroom.programs.templates import NotFilled, fill, fill_environment, references_in

VALUES = {"sr://office/db/password": "p{{ sr://office/other/x }}", "sr://My vault/An item/user name": "ada"}


class Reader:
    """Has two values, and says what it does not have."""

    def read(self, references: Sequence[str]) -> dict[str, str]:
        missing = [f"{one}: There is no such item." for one in references if one not in VALUES]
        if missing:
            raise NotFilled(missing, "item_not_found")
        return {one: VALUES[one] for one in references}


def test_a_template_is_filled() -> None:
    """References are replaced; other braces, and references in values, are left alone."""
    text = "a={{ sr://office/db/password }}\r\nb={{sr://My vault/An item/user name}} {{ .Values.x }} {{ }} ${{ a }}\n"
    assert references_in(text) == list(VALUES)
    assert fill(text, VALUES) == "a=p{{ sr://office/other/x }}\r\nb=ada {{ .Values.x }} {{ }} ${{ a }}\n"


def test_a_reference_that_is_not_closed_is_refused() -> None:
    """Each with its line; nothing is filled."""
    with pytest.raises(NotFilled) as refused:
        references_in("ok {{ sr://office/db/password }}\n{{ sr://office/db\n}}\n{{ sr://x")
    assert [sentence.split(":")[0] for sentence in refused.value.sentences] == ["Line 2", "Line 4"]


def test_an_environment_is_filled() -> None:
    """A reference as a whole value, or within one; what has none is as it was."""
    given = {"A": "sr://office/db/password", "B": "x-{{ sr://My vault/An item/user name }}-y", "C": "http://sr://"}
    filled = fill_environment(given, Reader())
    assert filled.variables == {"A": VALUES["sr://office/db/password"], "B": "x-ada-y", "C": "http://sr://"}
    assert filled.secrets == VALUES
    assert "ada" not in repr(filled)


def test_every_reference_that_cannot_be_replaced_has_a_sentence() -> None:
    """All of them at once, so that they can be mended at once."""
    with pytest.raises(NotFilled) as refused:
        fill_environment({"A": "sr://a/b/c", "B": "sr://office/db/password", "C": "{{ sr://d/e/f }}"}, Reader())
    assert refused.value.sentences == ["sr://a/b/c: There is no such item.", "sr://d/e/f: There is no such item."]
    with pytest.raises(NotFilled, match="The variable A has"):
        fill_environment({"A": "{{ sr://a/b/c"}, Reader())


def test_a_value_that_no_environment_can_hold_is_refused() -> None:
    """A NUL would end it in the middle."""

    class WithNul:
        def read(self, references: Sequence[str]) -> dict[str, str]:
            return dict.fromkeys(references, "canary\0more")

    for value in ("sr://a/b/c", "x{{ sr://a/b/c }}"):
        with pytest.raises(NotFilled, match="The variable A would contain a NUL") as refused:
            fill_environment({"A": value}, WithNul())
        assert "canary" not in str(refused.value)


def test_a_file_of_variables_is_read() -> None:
    """Comments, quotes, `export`, and nothing that is expanded."""
    text = """\N{ZERO WIDTH NO-BREAK SPACE}# a comment

export A=one two  # said behind it
B='single # "quoted" \\n $HOME'
 C = "double \\"quoted\\" \\n $HOME \\\\"
D=
E=#comment
F=a#b
G=sr://office/db/password
A=again
"""
    assert env_file.parse(text, "app.env") == {
        "A": "again",
        "B": 'single # "quoted" \\n $HOME',
        "C": 'double "quoted" \n $HOME \\',
        "D": "",
        "E": "",
        "F": "a#b",
        "G": "sr://office/db/password",
    }


def test_the_file_of_the_page_is_read() -> None:
    """The example in docs/agents.md, word for word."""
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    [example] = [text for text in re.findall(r"```text\n(.*?)```", page, re.DOTALL) if "# app.env" in text]
    found = env_file.parse(example, "app.env")
    assert list(found) == ["DATABASE_HOST", "DATABASE_PASSWORD", "DATABASE_URL"]
    assert references_in(found["DATABASE_URL"]) == [found["DATABASE_PASSWORD"]]


@pytest.mark.parametrize("end", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\r", "\0"])
def test_no_variable_hides_behind_a_line_end_that_editors_do_not_show(end: str) -> None:
    """A comment with such a sign in it would set a variable that nobody sees."""
    with pytest.raises(NotFilled, match="line 2: it has a control character"):
        env_file.parse(f"A=1\n# a comment{end}LD_PRELOAD=/x.so\n", "app.env")
    assert env_file.parse("A=1\r\nB=\t2\r\n", "app.env") == {"A": "1", "B": "2"}


def test_a_line_that_is_none_is_refused_and_not_shown() -> None:
    """With its number, for each; a line may hold a secret, so it is not repeated."""
    with pytest.raises(NotFilled) as refused:
        env_file.parse('A=1\nhunter2\nB=\'open\nC="x" y\n1D=x\n', "app.env")
    assert [sentence.partition(":")[0] for sentence in refused.value.sentences] == [
        f"app.env, line {number}" for number in (2, 3, 4, 5)
    ]
    assert "hunter2" not in str(refused.value)
