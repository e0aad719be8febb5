"""sync, conflicts, share-token, recovery, passwd, rotate, agent: commands about the account as a whole."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

from strongroom.cli import agent_requests, prompts, terminal
from strongroom.cli.login import add_password, duration, say_strength
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse

_PERMISSIONS: Final = ("read", "write", "delete")


# The web app says the same in the same words.
_DOES: Final = (
    "New keys are made, and everything is encrypted again under them: anyone who had the old keys cannot read "
    "what is written from then on. Tokens are revoked, passkeys open the account no more until each is enabled again, "
    "and other devices log in again."
)
_CANNOT: Final = (
    "It cannot take back what was read before. A device that has not seen it continues under the old keys: log in "
    "again on each."
)
_LEFT: Final = (
    "New keys are made. {} under the old keys were left as they are, because this device had not read them before: "
    "somebody who has had the old keys may have made them. The web app shows them, and finishes."
)
_PASSKEYS: Final = "These passkeys open the account no more, until each is enabled again:"
_DEVICES: Final = "These devices have not seen it, as the server reports; log in again on each:"


def add_sync(parser: argparse.ArgumentParser) -> None:
    """Add the options of `sync`."""
    parser.description = (
        "Send what was changed here, and fetch what was changed elsewhere. The agent does it by itself."
    )
    agent_requests.add_json(parser)
    parser.set_defaults(run=_sync)


def add_conflicts(parser: argparse.ArgumentParser) -> None:
    """Add the options of `conflicts`."""
    parser.description = (
        "List items that were changed here and on another device, and changes that the server refused; or decide one."
    )
    parser.add_argument("item", nargs="?", metavar="ITEM", help="the title or id of the one to decide")
    parser.add_argument("--all", action="store_true", help="decide all of them in the same way")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--keep", choices=["mine", "theirs", "both"], help="which side of a conflict stays")
    how.add_argument("--discard", action="store_true", help="drop a change that was refused")
    how.add_argument("--retry", action="store_true", help="send a change that was refused once more")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_conflicts)


def add_share_token(parser: argparse.ArgumentParser) -> None:
    """Add the options of `share-token`."""
    parser.description = (
        "Make a token for a program or a machine. It opens one vault, or one collection of it, and nothing else. The "
        "token is a secret, and is printed once."
    )
    parser.add_argument("vault", nargs="?", metavar="VAULT", help="the vault that it opens")
    parser.add_argument("--name", metavar="NAME", help="what the list of tokens calls it; the server can read that")
    parser.add_argument("--collection", metavar="NAME", help="only this collection of the vault; items are in 'items'")
    parser.add_argument(
        "--allow",
        metavar="WHAT",
        default="read",
        help="what it may do: read, write, delete, with commas; read by default",
    )
    parser.add_argument(
        "--expires", metavar="TIME", type=duration, help="for how long it is good: 12h, 30d; 30d at most"
    )
    parser.add_argument("--list", action="store_true", help="list the tokens of the account")
    parser.add_argument("--revoke", metavar="NAME", help="revoke a token, by its name or id")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_share_token)


def add_recovery(parser: argparse.ArgumentParser) -> None:
    """Add the options of `recovery`."""
    parser.description = (
        "Make a recovery key, which opens the account if the master password is lost. It is shown once, at the "
        "terminal: print it. A new one replaces the one before."
    )
    parser.add_argument("--remove", action="store_true", help="remove the recovery key")
    add_password(parser)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_recovery)


def add_passwd(parser: argparse.ArgumentParser) -> None:
    """Add the options of `passwd`."""
    parser.description = "Change the master password. Other devices log in again."
    agent_requests.add_json(parser)
    parser.set_defaults(run=_passwd)


def add_rotate(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rotate`."""
    parser.description = f"After a device was lost, or a token or the password was seen by others. {_DOES} {_CANNOT}"
    parser.add_argument("--keep-password", action="store_true", help="keep the master password; a new one is better")
    parser.add_argument("--yes", action="store_true", help="do it without confirmation")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_rotate)


def add_agent(parser: argparse.ArgumentParser) -> None:
    """Add the options of `agent`."""
    parser.description = (
        "Say where the agent is, or run it in the foreground. It is started by itself when it is needed, holds the "
        "keys in memory, and ends when it locks."
    )
    parser.add_argument("--foreground", action="store_true", help="run the agent here, until it locks")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_agent)


def _sync(options: argparse.Namespace) -> int:
    told = agent_requests.ask("sync")
    for one in told["renamed"]:
        terminal.print_error(
            f"The vault {one['wanted']!r} is now {one['name']!r}: another device has that name already."
        )
    waiting = told["conflicts"] + told["refused"]
    sentence = f"Fetched {told['pulled']:,}, sent {told['pushed']:,}."
    if waiting:
        sentence += f" {waiting:,} wait for a decision; run: strongroom conflicts"
    return agent_requests.show(options, told, sentence)


def _conflicts(options: argparse.Namespace) -> int:
    how = "discard" if options.discard else "retry" if options.retry else options.keep
    if how is not None:
        if (options.item is None) != options.all:
            raise CommandFailed("Name one conflict, or use --all.")
        told = agent_requests.ask("resolve", id=options.item, how=how, all=options.all)
        return agent_requests.show(options, told, f"Decided: {told['decided']:,}.")
    told = agent_requests.ask("conflicts")
    if options.json:
        agent_requests.show_json(told)
        return 0
    for one in told["conflicts"]:
        told_of = (
            f"{one['vault']}/{one['title']} ({one['id']}): {one['here']} here {_when(one['changedHereAt'])}, "
            f"{one['there']} elsewhere {_when(one['changedThereAt'])}; different: {', '.join(one['fields'])}."
        )
        terminal.print_line(terminal.plain(told_of))
    if told["conflicts"]:
        terminal.print_line("Decide with: strongroom conflicts ITEM --keep mine, theirs or both")
    for one in told["refused"]:
        terminal.print_line(terminal.plain(f"{one['vault']}/{one['title']} ({one['id']}): {one['sentence']}"))
    if told["refused"]:
        terminal.print_line("Decide with: strongroom conflicts ITEM --discard or --retry")
    if not told["conflicts"] and not told["refused"]:
        terminal.print_line("Nothing waits for a decision.")
    return 0


def _share_token(options: argparse.Namespace) -> int:
    if options.list:
        return _list_tokens(options)
    if options.revoke is not None:
        told = agent_requests.ask("revoke", id=options.revoke)
        return agent_requests.show(options, told, f"Revoked the token {told['name']!r}.")
    if options.vault is None or not options.name:
        raise CommandFailed("Say which vault and a name: strongroom share-token VAULT --name NAME.")
    permissions = [part.strip() for part in options.allow.split(",")]
    if unknown := [one for one in permissions if one not in _PERMISSIONS]:
        raise CommandFailed(f"--allow takes read, write and delete, not {unknown[0]!r}.")
    told = agent_requests.ask(
        "token",
        vault=options.vault,
        name=options.name,
        collection=options.collection,
        permissions=permissions,
        expires_in=options.expires,
    )
    if not options.json and sys.stderr.isatty():
        terminal.print_error(f"shown once; use it with STRONGROOM_URL={told['url']} and STRONGROOM_TOKEN_FILE")
    return agent_requests.show(options, told, told["token"])


def _list_tokens(options: argparse.Namespace) -> int:
    found = agent_requests.ask("tokens")
    if options.json:
        agent_requests.show_json(found)
        return 0
    rows = [
        (
            one["name"],
            "all" if one["vaults"] is None else ", ".join(one["vaults"]),
            "all" if one["permissions"] is None else ", ".join(one["permissions"]),
            "-" if one["expiresAt"] is None else _when(one["expiresAt"]),
            "never" if one["lastUsedAt"] is None else _when(one["lastUsedAt"]),
            one["id"],
        )
        for one in found
    ]
    if rows:
        terminal.table(("NAME", "VAULTS", "ALLOWED", "EXPIRES", "USED", "ID"), rows)
    return 0


def _recovery(options: argparse.Namespace) -> int:
    if options.remove:
        password = prompts.secret("Master password", options.password)
        agent_requests.ask("remove_recovery", password=password)
        return agent_requests.show(
            options, {"removed": True}, "The recovery key is removed: it opens nothing any more."
        )
    if not prompts.has_terminal():
        raise prompts.NoTerminal("a reader of the recovery key")
    password = prompts.secret("Master password", options.password)
    key = agent_requests.ask("make_recovery", password=password)["key"]
    _show_key(key)
    return agent_requests.show(options, {"made": True}, "The recovery key is made. Nobody can show it again.")


def _show_key(key: str) -> None:
    """Show a recovery key once at the terminal, until the person has proven that they have it."""
    prompts.show(f"\nYour recovery key. Print it, or write it down:\n\n    {key}\n")
    wanted = _last_group(key)
    while prompts.ask("Type its last group to go on").strip().upper() != wanted.upper():
        prompts.show("That is not its last group.")


def _last_group(key: str) -> str:
    return key.replace(" ", "-").rsplit("-", 1)[-1][-8:]


def _passwd(options: argparse.Namespace) -> int:
    old = prompts.ask_secret("Master password")
    new = prompts.ask_secret("New master password", again="New master password again")
    say_strength(new)
    agent_requests.ask("passwd", password=old, new=new)
    return agent_requests.show(
        options, {"changed": True}, "The master password is changed; other devices log in again."
    )


def _rotate(options: argparse.Namespace) -> int:
    terminal.confirm(f"{_DOES} {_CANNOT} Make new keys?", yes=options.yes)
    password = prompts.ask_secret("Master password")
    new = None
    if not options.keep_password:
        new = prompts.ask_secret("New master password", again="New master password again")
        say_strength(new)
    made = agent_requests.ask("rotate", password=password, new=new)
    if made["key"] is not None:
        _show_key(made["key"])
    shown = {name: made[name] for name in ("unseen", "passkeys", "devices")}
    lines = [_LEFT.format(len(made["unseen"])) if made["unseen"] else "Everything is under new keys."]
    lines += [f"  {one}" for one in made["unseen"]]
    for names, sentence in ((made["passkeys"], _PASSKEYS), (made["devices"], _DEVICES)):
        lines += [sentence, *(f"  {name}" for name in names)] if names else []
    return agent_requests.show(options, {"rotated": not made["unseen"]} | shown, "\n".join(lines))


def _agent(options: argparse.Namespace) -> int:
    from strongroom.agent import connection, paths

    if options.foreground:
        from strongroom.agent.process import serve

        with agent_requests.failures():
            terminal.print_error(f"the agent listens at {paths.socket()}, and writes to {paths.log()}")
            serve(lambda: None)
        return 0
    with agent_requests.failures():
        told: dict[str, Any] = {"running": connection.is_running(), "socket": paths.socket(), "log": paths.log()}
    state = "runs" if told["running"] else "does not run"
    sentence = f"The agent {state}; its socket: {told['socket']}, its log: {told['log']}"
    return agent_requests.show(options, told, sentence)


def _when(milliseconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))
