"""login, logout, unlock, lock, status, agent."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from strongroom.cli import agent_requests, prompts, terminal
from strongroom.cli.exit_codes import exit_code
from strongroom.cli.terminal import CommandFailed

if TYPE_CHECKING:
    import argparse

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST: Final = 30 * 86400


def add_login(parser: argparse.ArgumentParser) -> None:
    """Add the options of `login`."""
    parser.description = (
        "Log in, and keep an encrypted copy of the account on this device. The master password is asked for at the "
        "terminal, and never sent."
    )
    parser.add_argument("email", nargs="?", metavar="EMAIL", help="the email of the account; asked for if missing")
    parser.add_argument("--server", metavar="URL", help="the address of the server; asked for at the first login")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--register", action="store_true", help="make a new account")
    how.add_argument("--passkey", action="store_true", help="with a passkey of a security key, without the password")
    how.add_argument("--recover", action="store_true", help="with the recovery key, and set a new master password")
    how.add_argument(
        "--adopt", action="store_true", help="take over an account that the operator made, and set a master password"
    )
    parser.add_argument("--security-key", action="store_true", help="the second factor is a security key")
    parser.add_argument("--invitation", metavar="-", help="with --register: - reads the invitation from standard input")
    add_password(parser)
    _add_lock_after(parser)
    parser.add_argument("--ca-file", metavar="FILE", help="the only certificates to trust, in PEM form")
    parser.add_argument("--proxy", metavar="URL", help="the address of an HTTP proxy")
    parser.add_argument("--insecure", action="store_true", help="allow plain http to another machine")
    agent_requests.add_json(parser)
    parser.set_defaults(run=_login)


def add_unlock(parser: argparse.ArgumentParser) -> None:
    """Add the options of `unlock`."""
    parser.description = "Open the account with the master password; no server is needed."
    add_password(parser)
    _add_lock_after(parser)
    agent_requests.add_json(parser)
    parser.set_defaults(run=_unlock)


def add_lock(parser: argparse.ArgumentParser) -> None:
    """Add the options of `lock`."""
    parser.description = "Forget every key: the agent ends."
    agent_requests.add_json(parser)
    parser.set_defaults(run=_lock)


def add_logout(parser: argparse.ArgumentParser) -> None:
    """Add the options of `logout`."""
    parser.description = "End the session on the server, and delete the copy of the account on this device."
    parser.add_argument("--everywhere", action="store_true", help="end all sessions of the account")
    parser.add_argument(
        "--force",
        action="store_true",
        help="also without the server, and with changes that were not sent: they are lost",
    )
    agent_requests.add_json(parser)
    parser.set_defaults(run=_logout)


def add_status(parser: argparse.ArgumentParser) -> None:
    """Add the options of `status`."""
    parser.description = "Say who is logged in, whether it is unlocked, and what waits to be sent or decided."
    agent_requests.add_json(parser)
    parser.set_defaults(run=_status)


def add_password(parser: argparse.ArgumentParser) -> None:
    """Add the option --password."""
    parser.add_argument(
        "--password", metavar="-", help="- reads the master password from standard input, in the place of the terminal"
    )


def _add_lock_after(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--lock-after", metavar="TIME", type=duration, help="lock when unused for so long: 90s, 15m, 8h; 15m by default"
    )


def duration(text: str) -> int:
    """Seconds, from a number with a unit."""
    import argparse

    number, unit = (text[:-1], text[-1:]) if text[-1:] in _UNITS else (text, "s")
    if not number.isdecimal() or not 0 < int(number) * _UNITS[unit] <= _LONGEST:
        raise argparse.ArgumentTypeError(f"must be a number with s, m, h or d, at most 30d, not {text!r}")
    return int(number) * _UNITS[unit]


def _login(options: argparse.Namespace) -> int:
    known = _known()
    url = options.server or known.get("url") or os.environ.get("STRONGROOM_URL") or prompts.ask("Server (https://…)")
    email = options.email or known.get("email") or prompts.ask("Email")
    if options.invitation is not None and not options.register:
        raise CommandFailed("--invitation is for --register.")
    if options.proxy is not None and "@" in options.proxy:
        raise CommandFailed("--proxy takes no password, which others could see; set HTTPS_PROXY instead.")
    members: dict[str, Any] = {"url": url, "email": email, "insecure": options.insecure, "proxy": options.proxy}
    members["ca_file"] = None if options.ca_file is None else os.path.abspath(options.ca_file)
    members["lock_after"] = options.lock_after
    operation = "login"
    if options.register:
        operation = "register"
        if options.invitation is not None:
            members["invitation"] = prompts.secret("Invitation", options.invitation)
        members["password"] = prompts.secret("Master password", options.password, again="Master password again")
        say_strength(members["password"])
    elif options.recover:
        operation, members["key"] = "recover", prompts.secret("Recovery key", options.password)
        members["new"] = _new_password()
    elif options.adopt:
        operation, members["password"] = "adopt", prompts.secret("Password from the operator", options.password)
        members["new"] = _new_password()
    elif options.passkey:
        operation = "login_with_passkey"
    else:
        members["password"] = prompts.secret("Master password", options.password)
        members["security_key"] = options.security_key
    try:
        told = agent_requests.ask(operation, unlocks=False, **members)
    except CommandFailed as failed:  # the client names the parameters of Python
        message = str(failed).removeprefix("url ").replace("see insecure=True", "--insecure allows it")
        raise CommandFailed(
            f"The server's address {message}" if message != str(failed) else message, failed.code
        ) from None
    done = "Registered" if options.register else "Logged in as"
    sentence = f"{done} {told['email']} at {told['url']}: {_counted(told['items'], 'item')}."
    if options.register:
        sentence += " If you lose the master password, only a recovery key opens the account; run: strongroom recovery"
    return agent_requests.show(options, told, sentence)


def _new_password() -> str:
    new = prompts.ask_secret("New master password", again="New master password again")
    say_strength(new)
    return new


def _known() -> dict[str, Any]:
    from strongroom.agent.protocol import Failed
    from strongroom.agent.settings import read_settings

    try:
        return read_settings()
    except Failed as failed:
        if failed.code == "not_logged_in":
            return {}
        raise CommandFailed(failed.message, exit_code(failed.code)) from None


def say_strength(password: str) -> None:
    """Say how strong a new master password is. A weak one is told, and not refused."""
    from strongroom.cli import strength

    if sys.stderr.isatty():
        terminal.print_error(strength.sentence(password))


def _unlock(options: argparse.Namespace) -> int:
    known = _known()
    if not known:
        raise CommandFailed("Nobody is logged in here; run: strongroom login", 5)
    password = prompts.secret(f"Master password of {known['email']}", options.password)
    told = agent_requests.ask("unlock", unlocks=False, password=password, lock_after=options.lock_after)
    return agent_requests.show(options, told, f"Unlocked; locks when unused for {_spelled(told['lockAfter'])}.")


def _lock(options: argparse.Namespace) -> int:
    from strongroom.agent import connection

    with agent_requests.failures():
        if connection.is_running():
            agent_requests.ask("lock", unlocks=False)
    return agent_requests.show(options, {"locked": True}, "Locked.")


def _logout(options: argparse.Namespace) -> int:
    if not _known():
        raise CommandFailed("Nobody is logged in here.", 5)
    if options.force and agent_requests.is_locked():  # the password may be lost: then at least nothing stays here
        from strongroom.agent.settings import remove_everything

        with agent_requests.failures():
            remove_everything()
        told = {"ended": False}
    else:
        told = agent_requests.ask("logout", everywhere=options.everywhere, force=options.force)
    sentence = "Logged out; the copy on this device is deleted."
    if not told["ended"]:
        sentence += " The server was not reached: end the session from another device."
    return agent_requests.show(options, told, sentence)


def _status(options: argparse.Namespace) -> int:
    from strongroom.agent import connection

    known = _known()
    told: dict[str, Any] = {"locked": True, "email": known.get("email"), "url": known.get("url")}
    with agent_requests.failures():
        if connection.is_running():
            told |= agent_requests.ask("status", unlocks=False)
    if options.json:
        agent_requests.show_json(told)
        return 0
    if not known:
        terminal.print_line("Nobody is logged in here; run: strongroom login")
        return 0
    terminal.print_line(f"{known['email']} at {known['url']}: {'locked' if told['locked'] else 'unlocked'}.")
    if not told["locked"]:
        for line in _details(told):
            terminal.print_line(line)
    return 0


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _details(told: dict[str, Any]) -> list[str]:
    at = told["syncedAt"]
    when = "not yet in this session" if at is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(at / 1000))
    held = f"{_counted(told['items'], 'item')} in {_counted(len(told['vaults']), 'vault')}"
    lines = [f"{held}; last sync: {when}."]
    if told["pending"]:
        lines.append(f"{told['pending']:,} changes wait to be sent.")
    if told["conflicts"]:
        lines.append(f"{told['conflicts']:,} conflicts wait to be decided; run: strongroom conflicts")
    if told["refused"]:
        lines.append(f"{told['refused']:,} changes were refused by the server; run: strongroom conflicts")
    if told["problem"]:
        lines.append(f"The last sync failed: {told['problem']}")
    lines.append(f"Locks when unused for {_spelled(told['lockAfter'])}.")
    return lines


def _spelled(seconds: float) -> str:
    for unit, name in ((3600, "hours"), (60, "minutes"), (1, "seconds")):
        if seconds % unit == 0 or unit == 1:
            return f"{seconds / unit:g} {name}"
    return ""
