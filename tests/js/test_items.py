"""Items of the TypeScript client: the vectors in a browser, and the same findings as in Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strongroom.cli import strength
from strongroom.client import Client
from strongroom.items import Item, Login, field
from tests.js.items_program import asked
from tests.kit.browsers.chromium import private_window
from tests.kit.clients.javascript import served
from tests.kit.people.credentials import PASSWORD, unique_email
from tests.kit.servers.process import Server

VECTORS = Path(__file__).parent.parent / "items" / "vectors"


def test_the_vectors_hold_in_a_browser() -> None:
    """Items, references and one-time codes, with the browser's WebCrypto, under a strict policy."""
    with served() as url, private_window() as page:
        page.open(f"{url}/empty.html")
        for path in sorted(VECTORS.glob("*.json")):
            told = json.dumps(json.dumps(json.loads(path.read_text("utf-8"))["cases"]))
            module = f'import("{url}/items.page.js")'
            assert page.run(f'{module}.then((it) => it.itemDifferences("{path.name}", JSON.parse({told})))') == []


@pytest.mark.parametrize("where", ["client", "replica"])
def test_typescript_changes_what_python_wrote(server: Server, tmp_path: Path, where: str) -> None:
    """Members that neither knows survive the edit of the other, at any depth; a document that does not fit as well."""
    url, email = f"http://127.0.0.1:{server.port}", unique_email()
    with Client(url) as client:
        client.register(email, PASSWORD)
        stored = client.items("Personal", create=True)
        login = Login(title="GitHub", username="ada", password="old", extra={"novel": [1, {"b": None}]})
        login.fields = Item.from_stored(
            {"type": "note", "fields": [{"label": "x", "value": "y", "later": True}]}
        ).fields
        stored.create(login)
        documents = client.vault("Personal").collection("items")
        documents.create({"type": "login", "title": "odd", "password": 5})
        told = asked(
            "edit",
            {
                "url": url,
                "email": email,
                "password": PASSWORD,
                "replica": str(tmp_path / "r") if where == "replica" else "",
            },
        )
        assert told == {
            "username": "ada",
            "problem": "The item does not fit its type: Expected `str`, got `int` - at `$.password`.",
        }
        found = {one.value.title: one for one in stored.list()}
        edited = found["GitHub"].value
        assert field(edited, "password").value == "new"
        assert edited.to_stored() == login.to_stored() | {"password": "new"}
        assert found["odd"].value.to_stored() == {"type": "login", "title": "odd", "password": 5}
        assert found["odd"].version == 2


PASSWORDS = """
a
password
Passwort1
correct horse battery staple
correct-horse-battery
tr0ub4dor&3
aaaaaaaa
abcdefgh
98765432
qwerty123
Größe-Straße ΣΊΣΥΦΟΣ
пароль пароль
日本語パスワード
x²y³ Ⅷ
test test test
ABC
🔑🔑🗝
strongroom!
İstanbul \u0131
a_b_c
\u0663\u0664\u0665 abc"""


def test_both_languages_rate_a_password_alike() -> None:
    """The bits of a password that a person chose are the same in both, for letters of any language."""
    passwords = PASSWORDS.split("\n")
    rated = asked("strength", passwords)
    assert rated == [pytest.approx(strength.bits(one)) for one in passwords]


MISFITS = r"""
{"type": "login", "password": 5}
{"type": "login", "tags": "x"}
{"type": "login", "tags": ["a", 4]}
{"type": "login", "apps": [1]}
{"type": "login", "favorite": 1}
{"type": "login", "creationAt": "x"}
{"type": "login", "creationAt": true}
{"type": "login", "creationAt": 1.5}
{"type": "login", "fields": [{"label": 4}]}
{"type": "login", "fields": {"a": 1}}
{"type": "login", "fields": [null]}
{"type": "login", "fields": [[1]]}
{"type": "login", "totp": "x"}
{"type": "login", "totp": {"digits": "6"}}
{"type": "login", "totp": {"digits": null}}
{"type": "file", "files": [{"content": "!x"}]}
{"type": "file", "files": [{"content": "YQ"}]}
{"type": "file", "files": [{"content": "YR=="}]}
{"type": "file", "files": [{"content": "YQ==\n"}]}
{"type": "file", "files": [{"content": 5}]}
{"type": "login", "source": {"rest": []}}
{"type": "login", "source": {"changes": [1]}}
{"type": "login", "password": 5, "title": 4}
{"type": "login", "totp": {"digits": "6"}, "title": 4}
{"type": "login", "tags": [null]}
{"type": "x", "title": 5}
{"type": "x", "warp": 9}
{"type": "login", "source": {"order": [5]}}
{"type": "identity", "name": {"given": 1}}
{"type": 5}
{}
[]
null
"x"
{"type": "login", "password": {"a": 1}}
{"type": "login", "password": [1]}
{"type": "login", "notes": null, "urls": []}
"""


def test_both_languages_say_the_same_of_what_does_not_fit() -> None:
    """The same documents fit, with the same sentence for those that do not, and are written alike."""
    here = []
    documents = [json.loads(line) for line in MISFITS.strip().splitlines()]
    for raw in documents:
        item = Item.from_stored(raw)
        problem = getattr(item, "problem", "")
        here.append([problem, raw if problem else item.to_stored()])
    assert asked("items", documents) == here
