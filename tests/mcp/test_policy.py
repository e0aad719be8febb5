"""The policy file: strict, absolute, and only from its owner. What is not written down is not allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from strongroom.mcp.policy import Policy, load
from strongroom.programs.private_files import FileRefused

WHOLE = """
items = ["sr://office/*", "sr://*/Wiki"]
reveal = ["sr://office/Wiki/username"]

[[command]]
argv = ["/usr/bin/psql", "--host=db.example.com", "--command={text}", "{word}", "{number}"]
description = "Query the database"
environment = { PGPASSWORD = "sr://office/Database/password", PGUSER = "report" }
folder = "/srv"
timeout = 10
output_bytes = 1000

[[template]]
name = "app"
source = "/srv/app.conf.tmpl"
target = "/run/app/app.conf"
references = ["sr://office/Database/password"]

[memory]
url = "https://vault.example.com"
token_file = "/srv/memory.token"
"""


def load_text(folder: Path, text: str) -> Policy:
    """Load a policy with this text."""
    path = folder / "mcp.toml"
    path.write_text(text)
    path.chmod(0o600)
    return load(str(path))


@pytest.fixture
def private_folder(tmp_path: Path) -> Path:
    """A folder that only its owner can write."""
    tmp_path.chmod(0o700)
    return tmp_path


def test_a_policy_is_read_whole(private_folder: Path) -> None:
    """Each part of the example."""
    policy = load_text(private_folder, WHOLE)
    [command] = policy.command
    assert (command.timeout, command.output_bytes, command.folder) == (10, 1000, "/srv")
    assert policy.memory is not None
    assert [one.name for one in policy.template] == ["app"]
    assert policy.shows("office", "uid", "Anything")
    assert policy.shows("home", "uid", "Wiki")
    assert not policy.shows("home", "uid", "Bank")
    assert not policy.shows("Office", "uid", "Bank")
    assert policy.revealed("sr://office/%57iki/username") == "sr://office/Wiki/username"
    for other in (
        "sr://office/Wiki/password",
        "sr://office/Wiki",
        "sr://Office/Wiki/username",
        "sr://office/wiki/username",
    ):
        assert policy.revealed(other) is None


def test_the_policy_of_the_page_is_valid(private_folder: Path) -> None:
    """The example in docs/agents.md, word for word."""
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text("utf-8")
    [example] = [text for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[[command]]" in text]
    policy = load_text(private_folder, example)
    assert policy.memory is not None
    assert policy.items
    assert policy.reveal
    [command] = policy.command
    query = "--command=SELECT status FROM orders WHERE id = "
    assert command.fits([*command.argv[:3], query + "12", "shop"])
    assert not command.fits([*command.argv[:3], query + "12 OR 1 = 1", "shop"])
    assert [one.target for one in policy.template] == ["/run/app/app.conf"]


def test_an_empty_policy_allows_nothing(private_folder: Path) -> None:
    """And so does none at all."""
    assert load_text(private_folder, "") == Policy()
    assert not Policy().shows("office", "uid", "Wiki")
    assert Policy().revealed("sr://office/Wiki/username") is None


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        (["/usr/bin/psql", "--host=db.example.com", "--command=SELECT 1", "orders", "12"], True),
        (["/usr/bin/psql", "--host=db.example.com", "--command=SELECT 1; -- x", "a.b_c-d", "0"], True),
        (["psql", "--host=db.example.com", "--command=SELECT 1", "orders", "12"], False),
        (["/usr/bin/psql", "--host=evil.example.com", "--command=SELECT 1", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com\n", "--command=SELECT 1", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=-x", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a\nb", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a\0", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=\ud800", "orders", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "--file", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "../x", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "a/b", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "orders\n", "12"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "orders", "1e3"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "orders", "١٢"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "orders", "12", "more"], False),
        (["/usr/bin/psql", "--host=db.example.com", "--command=a", "orders"], False),
        (["/usr/bin/../bin/psql", "--host=db.example.com", "--command=a", "orders", "12"], False),
        ([], False),
    ],
)
def test_a_command_line_fits_word_by_word(private_folder: Path, given: list[str], *, fits: bool) -> None:
    """Literally, or by a placeholder, and never with an option where there is none."""
    [command] = load_text(private_folder, WHOLE).command
    assert command.fits(given) == fits


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("commands = []", "unknown field `commands`"),
        ('[[command]]\nargv = ["/bin/true"]\nshell = true', "unknown field `shell`"),
        ('[memory]\nurl = "https://x"\ntoken = "srv_x"', "unknown field `token`"),
        ("[[command]]\nargv = []", "argv is empty"),
        ('[[command]]\nargv = ["psql"]', "absolute path"),
        ('[[command]]\nargv = ["./psql"]', "absolute path"),
        ('[[command]]\nargv = ["/usr/bin/../../tmp/psql"]', "absolute path"),
        ('[[command]]\nargv = ["/usr/bin/{word}"]', "has no placeholder"),
        ('[[command]]\nargv = ["/bin/echo", "{anything}"]', "{anything} is no placeholder"),
        ('[[command]]\nargv = ["/bin/echo", "sr://office/Wiki/password"]', "seen by other programs"),
        ('[[command]]\nargv = ["/bin/echo", "{{ sr://office/Wiki/password }}"]', "seen by other programs"),
        ('[[command]]\nargv = ["/bin/true"]\nenvironment = { A = "sr://office/Wiki" }', "must name a field"),
        ('[[command]]\nargv = ["/bin/true"]\nenvironment = { A = "sr://office/*/password" }', "must name one field"),
        ('[[command]]\nargv = ["/bin/true"]\nenvironment = { A = "x{{ sr://a/b/c }}" }', "must be a reference"),
        ('[[command]]\nargv = ["/bin/true"]\nenvironment = { "A=B" = "x" }', "no name of a variable"),
        ('[[command]]\nargv = ["/bin/true"]\nfolder = "srv"', "folder must be an absolute path"),
        ('[[command]]\nargv = ["/bin/true"]\ntimeout = 0', "timeout"),
        ('[[command]]\nargv = ["/bin/true"]\noutput_bytes = 99999999', "output_bytes"),
        ('[[command]]\nargv = "/bin/true"', "argv"),
        ('reveal = ["sr://office/Wiki"]', "must name a field"),
        ('reveal = ["sr://office/*/username"]', "must name one field"),
        ('reveal = ["sr://office/Wiki/*"]', "must name one field"),
        ('reveal = ["office/Wiki/username"]', "is no reference"),
        ('items = ["sr://office/Wiki/username"]', "must have the form"),
        ('[[template]]\nname="a"\nsource="a"\ntarget="/b"\nreferences=[]', "source must be an absolute path"),
        ('[[template]]\nname="a"\nsource="/a"\ntarget="/a"\nreferences=[]', "the same file"),
        ('[[template]]\nname="A b"\nsource="/a"\ntarget="/b"\nreferences=[]', "a name has"),
        ('[[template]]\nname="a"\nsource="/a"\ntarget="/b"', "references"),
        (2 * '[[template]]\nname="a"\nsource="/a"\ntarget="/b"\nreferences=[]\n', "the same name"),
        ('[memory]\nurl = "https://x"\ntoken_file = "token"', "token_file must be an absolute path"),
        ("items = [", "not valid"),
    ],
)
def test_a_policy_that_is_wrong_is_refused(private_folder: Path, text: str, sentence: str) -> None:
    """Each mistake with a sentence; nothing is guessed."""
    with pytest.raises(FileRefused) as refused:
        load_text(private_folder, text)
    assert sentence in str(refused.value)


def test_a_policy_that_others_can_write_is_refused(private_folder: Path) -> None:
    """A file of the group, of everybody, or behind a link."""
    path = private_folder / "mcp.toml"
    load_text(private_folder, WHOLE)
    for mode in (0o620, 0o602):
        path.chmod(mode)
        with pytest.raises(FileRefused, match="chmod go-w"):
            load(str(path))
    path.chmod(0o600)
    (private_folder / "link").symlink_to(path)
    with pytest.raises(FileRefused, match="symbolic link"):
        load(str(private_folder / "link"))
