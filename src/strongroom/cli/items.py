"""list, search, get, totp, copy, rm, restore, history: commands that show items, delete them and bring them back."""

from __future__ import annotations

import os
import shlex
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from strongroom.agent.secrets import open_secrets, token_of_environment
from strongroom.cli import agent_requests, terminal
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse

CLEAR_AFTER: Final = 30  # seconds that the clipboard holds a secret
_ITEM: Final = "the item: its title, VAULT/TITLE, sr://VAULT/TITLE, or its id"


def add_list(parser: argparse.ArgumentParser) -> None:
    """Add the options of `list`."""
    parser.description = "List items, without their values."
    _add_filters(parser)
    parser.add_argument("--deleted", action="store_true", help="list what is in the trash; needs the server")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_list)


def add_search(parser: argparse.ArgumentParser) -> None:
    """Add the options of `search`."""
    parser.description = "Find items by a part of their title, username, address or tag; every word must be found."
    parser.add_argument("words", nargs="+", metavar="WORD", help="what to look for; capitals do not matter")
    _add_filters(parser)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_search)


def _add_filters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--vault", metavar="NAME", help="only of this vault")
    parser.add_argument("--type", metavar="TYPE", help="only of this type, such as login or note")
    parser.add_argument("--tag", metavar="TAG", help="only with this tag")


def add_get(parser: argparse.ArgumentParser) -> None:
    """Add the options of `get`."""
    parser.description = "Print a field of an item: the password of a login, unless another one is named."
    parser.add_argument("item", metavar="ITEM", help=_ITEM)
    parser.add_argument("field", nargs="?", default="", metavar="FIELD", help="the field, such as username or code")
    parser.add_argument("-n", "--no-newline", action="store_true", help="print no line end after the value")
    parser.add_argument("--output", metavar="FILE", help="write the value to a new file that only you can read")
    parser.add_argument("--json", action="store_true", help="print the whole item with all its values as JSON")
    parser.set_defaults(run=_get)


def add_totp(parser: argparse.ArgumentParser) -> None:
    """Add the options of `totp`."""
    parser.description = "Print the one-time code of an item."
    parser.add_argument("item", metavar="ITEM", help=_ITEM)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_totp)


def add_copy(parser: argparse.ArgumentParser) -> None:
    """Add the options of `copy`."""
    parser.description = "Copy a field to the clipboard, and clear it after some seconds if it still holds that."
    parser.add_argument("item", metavar="ITEM", help=_ITEM)
    parser.add_argument("field", nargs="?", default="", metavar="FIELD", help="the field, such as username or code")
    parser.add_argument("--clear-after", type=int, default=CLEAR_AFTER, metavar="SECONDS", help="30 by default")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_copy)


def add_rm(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rm`."""
    parser.description = "Delete an item. It can be restored while the server keeps it in the trash."
    parser.add_argument("item", metavar="ITEM", help=_ITEM)
    parser.add_argument("--yes", action="store_true", help="do it without confirmation")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_rm)


def add_restore(parser: argparse.ArgumentParser) -> None:
    """Add the options of `restore` with a reference."""
    parser.description = (
        "Restore a deleted item, or an item as it was at a version. (With a file instead of a reference, this is the "
        "operators' command that restores a backup.)"
    )
    parser.add_argument("item", metavar="sr://VAULT/ITEM", help="the item, by its title or id")
    parser.add_argument("--version", type=int, metavar="N", help="a version that 'strongroom history' lists")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_restore)


def add_history(parser: argparse.ArgumentParser) -> None:
    """Add the options of `history`."""
    parser.description = "List the versions of an item that the server keeps, or print one whole."
    parser.add_argument("item", metavar="ITEM", help=_ITEM)
    parser.add_argument("--version", type=int, metavar="N", help="print this version as JSON, with all its values")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_history)


def _list(options: argparse.Namespace) -> int:
    if options.deleted:
        return _show(options, agent_requests.ask("trash", vault=options.vault))
    return _show(options, _entries(options.vault))


def _search(options: argparse.Namespace) -> int:
    words = [word.casefold() for word in options.words]
    found = []
    for one in _entries(options.vault):
        text = "\n".join([one["title"], one["username"], *one["urls"], *one["tags"]]).casefold()
        if all(word in text for word in words):
            found.append(one)
    if not found and not options.json:
        raise CommandFailed("Nothing was found.", 3)
    return _show(options, found)


def _entries(vault: str | None) -> list[dict[str, Any]]:
    """The items that this person, or this machine's token, can read."""
    with agent_requests.failures(), open_secrets(unlock=agent_requests.unlock) as secrets:
        return secrets.items(vault)


def _show(options: argparse.Namespace, found: list[dict[str, Any]]) -> int:
    found = [
        one
        for one in found
        if (options.type is None or one["type"] == options.type) and (options.tag is None or options.tag in one["tags"])
    ]
    if options.json:
        agent_requests.show_json(found)
    elif found:
        rows = [(one["vault"], one["title"] or one["id"], one["type"], one["username"]) for one in found]
        terminal.table(("VAULT", "TITLE", "TYPE", "USERNAME"), rows)
    return 0


def _get(options: argparse.Namespace) -> int:
    if options.json:
        agent_requests.show_json(_whole(options.item))
        return 0
    value = _field(options.item, options.field, text=options.output is None)
    if options.output is not None:
        write_new(options.output, value)
        return 0
    terminal.print_bytes(value + (b"" if options.no_newline else b"\n"))
    return 0


def _whole(name: str) -> Any:
    """An item with its values."""
    with agent_requests.failures():
        token = token_of_environment()
    if token is None:
        return agent_requests.ask("item", item=name)
    raise CommandFailed("With a token, items are read one field at a time: strongroom get ITEM FIELD.")


def _field(name: str, field: str, *, text: bool = False) -> bytes:
    """A field, from the agent or with the token of this machine."""
    with agent_requests.failures(), open_secrets(unlock=agent_requests.unlock) as secrets:
        found = secrets.field(name, field)
    if text and sys.stdout.isatty() and b"\0" in found:
        raise CommandFailed("The value is a file and no text; use --output FILE.")
    return found


def write_new(path: str, value: bytes) -> None:
    """A new file that only its owner can read; a file that is there is not replaced."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise CommandFailed(f"The file {path} exists already; it was not replaced.") from None
    except OSError as error:
        raise CommandFailed(f"The file {path} cannot be written: {error.strerror}.") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(value)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        with suppress(OSError):
            os.unlink(path)  # a part of it would be in the way of the next attempt
        raise CommandFailed(f"The file {path} cannot be written: {error.strerror}.") from None


def _totp(options: argparse.Namespace) -> int:
    with agent_requests.failures():
        token = token_of_environment()
    if token is not None:
        code = _field(options.item, "code").decode()
        return agent_requests.show(options, {"code": code}, code)
    told = agent_requests.ask("totp", item=options.item)
    if not options.json and sys.stderr.isatty():
        terminal.print_error(f"good for {told['seconds']} s")
    return agent_requests.show(options, told, told["code"])


def _copy(options: argparse.Namespace) -> int:
    from strongroom.cli import clipboard

    if not 1 <= options.clear_after <= 3600:
        raise CommandFailed("--clear-after takes 1 to 3600 seconds.")
    board = clipboard.find()
    board.copy(_field(options.item, options.field), options.clear_after)
    told = {"copied": True, "clipboard": board.name, "clearAfter": options.clear_after if board.clears else None}
    after = (
        f"it is cleared in {options.clear_after} s" if board.clears else "the terminal holds it, and cannot clear it"
    )
    return agent_requests.show(options, told, f"Copied with {board.name}; {after}.")


def _rm(options: argparse.Namespace) -> int:
    entry = agent_requests.ask("find", item=options.item)
    question = f"Delete the item {entry['title']!r} of the vault {entry['vault']!r}?"
    terminal.confirm(question, yes=options.yes)
    told = agent_requests.ask("remove", id=entry["id"])
    how = f"To bring it back: strongroom restore {shlex.quote(told['reference'])}"
    if not told["restorable"]:
        how = "The server was not reached: if it was never sent there, it cannot be brought back."
    return agent_requests.show(options, told, f"Deleted {told['title']!r}. {how}")


def _restore(options: argparse.Namespace) -> int:
    told = agent_requests.ask("restore", item=options.item, version=options.version)
    what = "Restored" if options.version is None else f"Restored version {options.version} of"
    return agent_requests.show(options, told, f"{what} {told['title']!r} in {told['vault']!r}.")


def _history(options: argparse.Namespace) -> int:
    told = agent_requests.ask("history", item=options.item, version=options.version)
    if options.json or options.version is not None:
        agent_requests.show_json(told)
        return 0
    rows = [(str(one["version"]), _when(one["updatedAt"]), _kind(one)) for one in told["versions"]]
    terminal.table(("VERSION", "WHEN", ""), rows, right={0})
    return 0


def _kind(one: dict[str, Any]) -> str:
    return "current" if one["current"] else "deleted" if one["deleted"] else ""


def _when(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))
