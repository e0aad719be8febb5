"""add and edit: commands that write items. No secret stands on the command line."""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Final

from strongroom.cli import agent_requests, prompts, terminal
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse

_MOST_FILE: Final = 32 << 20  # bytes of a file that is read; how much the server takes is less
_FIELDS: Final = (
    "FIELD=VALUE sets a field that is no secret, such as username=ada or url=https://example.com. FIELD=- takes the "
    "value from standard input, or asks for it at the terminal: so give secrets, such as password=- or totp=-. "
    "file=@PATH reads a file. A field that the type does not have becomes one of your own."
)


def add_add(parser: argparse.ArgumentParser) -> None:
    """Add the options of `add`."""
    parser.description = "Add an item. Its secret is asked for at the terminal, generated, or read from standard input."
    parser.epilog = f"{_FIELDS} Types: {', '.join(_types())}."
    parser.add_argument("type", metavar="TYPE", help="the type, such as login; - reads a whole item as JSON")
    parser.add_argument("title", nargs="?", metavar="TITLE", help="what the item is called")
    parser.add_argument("fields", nargs="*", metavar="FIELD=VALUE", help="what it holds")
    parser.add_argument("--vault", metavar="NAME", help="the vault; not needed if there is only one")
    parser.add_argument("--create-vault", action="store_true", help="make the vault if there is none of this name")
    parser.add_argument("--edit", action="store_true", help="open the item in an editor before it is added")
    _add_generate(parser)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_add)


def add_edit(parser: argparse.ArgumentParser) -> None:
    """Add the options of `edit`."""
    parser.description = "Change an item: as JSON in your editor ($VISUAL or $EDITOR), or some of its fields."
    parser.epilog = _FIELDS
    parser.add_argument("item", metavar="ITEM", help="the item: its title, VAULT/TITLE, sr://VAULT/TITLE, or its id")
    parser.add_argument("fields", nargs="*", metavar="FIELD=VALUE", help="what to change; FIELD= empties a field")
    _add_generate(parser)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_edit)


def _types() -> tuple[str, ...]:
    from strongroom.items import TYPES

    return tuple(TYPES)


def _add_generate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--generate", action="store_true", help="generate its secret, as 'strongroom generate' does without options"
    )


def _add(options: argparse.Namespace) -> int:
    from strongroom.items import TYPES

    if options.type == prompts.STDIN:
        if options.title is not None or options.fields:
            raise CommandFailed("With -, the whole item comes from standard input; give no title and no fields.")
        raw = _parsed(prompts.all_of_input())
    else:
        if options.type not in TYPES:
            raise CommandFailed(f"There is no type {options.type!r}; the types are {', '.join(TYPES)}.")
        if options.title is None:
            raise CommandFailed("Say what the item is called: strongroom add TYPE TITLE.")
        raw = {"type": options.type, "title": options.title}
        given = _assign(raw, options.fields)
        _complete(raw, given, options)
    if options.edit:
        raw = _in_editor(raw)
    told = agent_requests.ask("add", item=raw, vault=options.vault, create=options.create_vault)
    return agent_requests.show(options, told, f"Added {told['title']!r} to {told['vault']!r}: {told['reference']}")


def _edit(options: argparse.Namespace) -> int:
    found = agent_requests.ask("item", item=options.item)
    before, proof = found["item"], found["proof"]
    raw = json.loads(json.dumps(before))
    if options.fields or options.generate:
        _assign(raw, options.fields)
        if options.generate:
            _generate(raw)
    else:
        raw = _in_editor(raw)
    if raw == before:
        return agent_requests.show(options, {"changed": False}, "Nothing was changed.")
    while True:
        try:
            told = agent_requests.ask("replace", id=found["id"], proof=proof, item=raw)
        except CommandFailed as failed:
            if options.fields or options.generate or not prompts.has_terminal():
                raise
            terminal.print_error(str(failed))
            proof, raw = _again(found["id"], proof, raw)
            continue
        return agent_requests.show(options, told | {"changed": True}, f"Changed {told['title']!r}.")


def _again(uid: str, proof: str, raw: Any) -> tuple[str, Any]:
    """What was typed is not lost: write it over a change of somebody else, or go on editing."""
    now = agent_requests.ask("item", item=uid)["proof"]
    if now != proof:
        if prompts.ask("Write yours over the other change? (y or n)").lower() not in {"y", "yes"}:
            raise CommandFailed("Nothing was changed.", 4)
        return now, raw
    if prompts.ask("Edit again? (y or n)").lower() not in {"y", "yes"}:
        raise CommandFailed("Nothing was changed.", 4)
    return proof, _in_editor(raw)


def _in_editor(raw: dict[str, Any]) -> dict[str, Any]:
    """The item as a person leaves it in the editor. What is not JSON is edited again."""
    from strongroom.cli import editor

    text = json.dumps(raw, ensure_ascii=False, indent=2) + "\n"
    while True:
        text = editor.edit(text, ".json")
        try:
            return _parsed(text)
        except CommandFailed as failed:
            terminal.print_error(str(failed))
            if prompts.ask("Edit again? (y or n)").lower() not in {"y", "yes"}:
                raise CommandFailed("Nothing was changed.", 4) from None


def _parsed(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        at = f", line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise CommandFailed(f"This is not JSON{at}; nothing was written.") from None
    if not isinstance(found, dict):
        raise CommandFailed("An item is a JSON object; nothing was written.")
    return found


def _assign(raw: dict[str, Any], fields: list[str]) -> set[str]:
    """Set fields of an item, as it is stored. The names that were given."""
    named: dict[str, str] = {}
    typed: set[str] = set()  # fields whose value stands on the command line
    for one in fields:
        given, equals, value = one.partition("=")
        if not equals or not given:
            raise CommandFailed("A field is given as FIELD=VALUE; FIELD=- asks for its value.")
        name = _spelled(raw, given)
        if name in named:
            raise CommandFailed(f"The field {name} is given twice.")
        named[name] = value
    if sum(value == prompts.STDIN for value in named.values()) > 1 and not sys.stdin.isatty():
        raise CommandFailed("Only one field can come from standard input; give the others at a terminal.")
    for name, value in named.items():
        if value == prompts.STDIN:
            given = prompts.ask_secret(_shown(name)) if sys.stdin.isatty() else prompts.all_of_input()
            _set(raw, name, given, concealed=True)
        elif name == "file" and value.startswith("@"):
            _attach(raw, value[1:])
        else:
            if value:
                typed.add(name)
            _set(raw, name, value, concealed=False)
    _refuse_typed_secrets(raw, typed)
    return set(named)


def _spelled(raw: dict[str, Any], name: str) -> str:
    """A field's name as its type spells it: `Password` is the password, unless the item has a field of that label."""
    from strongroom.items import Item
    from strongroom.items.types import TYPES, members_of

    if any(one.get("label") == name for one in raw.get("fields", [])):
        return name
    known = [member.spelled for member in members_of(TYPES.get(raw.get("type", ""), Item))]
    return next((one for one in ("url", "file", *known) if one.casefold() == name.casefold()), name)


def _set(raw: dict[str, Any], name: str, value: str, *, concealed: bool) -> None:
    """Set one field: a member of the type, something that all items have, or a field of one's own."""
    from strongroom.items import Item, totp
    from strongroom.items.types import TYPES, members_of

    members = {member.spelled: member for member in members_of(TYPES.get(raw.get("type", ""), Item))}
    own = next((one for one in raw.get("fields", []) if one.get("label") == name), None)
    if name == "url":
        raw["urls"] = [value] if value else []
    elif name in {"tags", "folders"}:
        raw[name] = [part.strip() for part in value.split(",") if part.strip()]
    elif name == "favorite":
        raw[name] = value.lower() in {"yes", "true", "1", "y"}
    elif name == "totp" and "totp" in members:
        if value:
            with agent_requests.refusals():
                raw["totp"] = totp.parse(value).to_json()
        else:
            raw.pop("totp", None)
    elif name in members and not members[name].listed and members[name].inner is None and name != "type":
        raw[name] = value
    elif own is not None:
        own["value"] = value
    elif value:
        kind = "concealed-string" if concealed else "string"
        raw.setdefault("fields", []).append({"label": name, "value": value, "type": kind})


def _attach(raw: dict[str, Any], path: str) -> None:
    import base64

    try:
        with open(path, "rb") as file:
            content = file.read(_MOST_FILE + 1)
    except OSError as error:
        raise CommandFailed(f"The file {path} cannot be read: {error.strerror}.") from None
    if len(content) > _MOST_FILE:
        raise CommandFailed(f"The file {path} is too large for an item.")
    files = [one for one in raw.get("files", []) if one.get("name") != os.path.basename(path)]
    raw["files"] = [*files, {"name": os.path.basename(path), "content": base64.b64encode(content).decode()}]


def _refuse_typed_secrets(raw: dict[str, Any], typed: set[str]) -> None:
    """A secret on the command line is in the shell's history, and others can see it in the list of processes."""
    from strongroom.items import Item, fields_of

    secret = {one.name for one in fields_of(Item.from_stored(raw)) if one.concealed}
    if shown := sorted(typed & secret):
        raise CommandFailed(
            f"The field {shown[0]} is a secret, and others can see a command line; write {shown[0]}=- to be asked for "
            "it. Your shell may have stored what you typed in its history."
        )


def _complete(raw: dict[str, Any], given: set[str], options: argparse.Namespace) -> None:
    """Ask for what a new item of this type is about, if it was not given."""
    from strongroom.items import TYPES

    main = TYPES[options.type].MAIN
    if options.generate:
        _generate(raw)
    elif main and not options.edit and not {main, "totp" if options.type == "totp" else main} & given:
        if main == "notes":
            raw["notes"] = prompts.all_of_input() if not sys.stdin.isatty() else _written()
        elif main == "file":
            raise CommandFailed("Say which file: file=@PATH.")
        else:
            name = "totp" if options.type == "totp" else main
            _set(raw, name, prompts.ask_secret(_shown(name)), concealed=True)
    elif not main and not options.edit and not given:
        options.edit = True


def _written() -> str:
    from strongroom.cli import editor

    return editor.edit("", ".txt").rstrip("\n")


def _generate(raw: dict[str, Any]) -> None:
    """A new secret for the main field."""
    from strongroom.items import TYPES
    from strongroom.items.generator import generate_password

    kind = TYPES.get(raw.get("type", ""))
    if kind is None or kind.MAIN not in {"password", "value", "key"}:
        raise CommandFailed("--generate makes the password of a login, the value of a secret or the key of an API.")
    raw[kind.MAIN] = generate_password().value


def _shown(name: str) -> str:
    return {"totp": "Secret of one-time codes, or otpauth URI"}.get(name, name[:1].upper() + name[1:])
