"""Operations that open the account and close it: login, register, unlock, logout; and the agent's status."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any

from strongroom.agent import paths
from strongroom.agent.account import Account, Person
from strongroom.agent.operations import Operation, Operations, member
from strongroom.agent.protocol import Failed
from strongroom.agent.settings import options_of, read_settings, remove_everything, require_space, write_settings
from strongroom.client import Client, Progress, Refusal, SecurityKey, Unavailable
from strongroom.client.format.derive import normal_email

if TYPE_CHECKING:
    from collections.abc import Callable

    from strongroom.agent.conversation import Conversation


def _status(operations: Operations, _: dict[str, Any], __: Conversation) -> Any:
    account = operations.account
    told: dict[str, Any] = {"locked": account is None, "pid": os.getpid(), "lockAfter": operations.lock_after}
    with contextlib.suppress(Failed):
        settings = read_settings()
        told |= {"email": settings["email"], "url": settings["url"]}
    if account is not None:
        told |= {
            "items": len(account.catalog.entries()),
            "vaults": [one.name for one in account.replica.vaults()],
            "pending": account.replica.pending,
            "conflicts": len(account.replica.conflicts()),
            "refused": len(account.replica.refused()),
            "syncedAt": None if account.synced_at is None else int(account.synced_at * 1000),
            "problem": account.problem,
        }
    return told


def _login(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """With the master password; the second factor is asked for, or is the security key that is plugged in."""
    email, password = member(request, "email"), member(request, "password")
    key = _security_key(conversation) if request.get("security_key") else None
    return _sign_in(
        operations,
        request,
        conversation,
        lambda client, person: client.login(email, password, code=key or person.code),
    )


def _login_with_passkey(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """With a passkey of the security key that is plugged in, and without the password."""
    email, key = member(request, "email"), _security_key(conversation)
    return _sign_in(operations, request, conversation, lambda client, _: client.login_with_passkey(key, email=email))


def _security_key(conversation: Conversation) -> SecurityKey:
    def pin() -> str:
        """A PIN that somebody typed: the key counts every other one as a wrong one, and locks itself."""
        typed = conversation.ask("pin", "PIN of the security key")
        if not typed:
            raise Failed(
                "no_terminal", "There is no terminal to ask for the PIN of the security key, or none was typed."
            )
        return typed

    return SecurityKey(
        pin=pin,
        on_touch=lambda: conversation.notice("touch the security key"),
    )


def _register(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    email, password, invitation = member(request, "email"), member(request, "password"), request.get("invitation")
    return _sign_in(
        operations, request, conversation, lambda client, _: client.register(email, password, invitation=invitation)
    )


def _adopt(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """Take over an account that the operator has made."""
    email, password, new = member(request, "email"), member(request, "password"), member(request, "new")
    return _sign_in(operations, request, conversation, lambda client, _: client.adopt_account(email, password, new))


def _recover(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    """With the recovery key, and a new password."""
    email, key, new = member(request, "email"), member(request, "key"), member(request, "new")
    return _sign_in(
        operations, request, conversation, lambda client, person: client.recover(email, key, new, code=person.code)
    )


def _sign_in(
    operations: Operations,
    request: dict[str, Any],
    conversation: Conversation,
    open_: Callable[[Client, Person], Any],
) -> Any:
    """Open a session with the server, and the replica. Another account that is logged in here is not replaced."""
    settings = {"url": member(request, "url").rstrip("/"), "email": member(request, "email")}
    settings |= {name: request[name] for name in ("insecure", "ca_file", "proxy") if request.get(name)}
    with operations.opening:
        _require_same(settings)
        require_space()
        client, person = Client(settings["url"], **options_of(settings)), Person()
        try:
            with person.at(conversation):
                open_(client, person)
                before, operations.account = operations.account, None
                if before is not None:
                    with contextlib.suppress(Refusal):
                        before.client.logout()
                    before.close()
                write_settings(settings)
                return _use(operations, request, conversation, client, person, sync=True)
        except BaseException:
            if operations.account is None or operations.account.client is not client:
                client.close()
            raise


def _require_same(settings: dict[str, Any]) -> None:
    try:
        before = read_settings()
    except Failed as failed:
        if failed.code != "not_logged_in":
            raise
        return
    if (before["url"], normal_email(before["email"])) != (settings["url"], normal_email(settings["email"])):
        raise Failed(
            "other_account",
            f"{before['email']} at {before['url']} is logged in here; run strongroom logout first, or set "
            "STRONGROOM_HOME to another folder.",
        )


def _unlock(operations: Operations, request: dict[str, Any], conversation: Conversation) -> Any:
    password = member(request, "password")
    with operations.opening:
        settings = read_settings()
        client, person = Client(settings["url"], **options_of(settings)), Person()
        try:
            client.unlock(paths.replica(), password, code=person.code, session=paths.session())
            if operations.account is None:
                return _use(operations, request, conversation, client, person, sync=False)
        except BaseException:
            client.close()
            raise
        client.close()  # it was unlocked already: the password is right, and the clock begins anew
        _set_time(operations, request)
        return _told(operations)


def _use(
    operations: Operations,
    request: dict[str, Any],
    conversation: Conversation,
    client: Client,
    person: Person,
    *,
    sync: bool,
) -> Any:
    """Open the replica, and keep it in step from now on."""
    replica = client.open_replica(paths.replica())
    account = Account(client, replica, operations.log, person)
    if sync:
        with contextlib.suppress(Unavailable):
            account.sync(_progress(conversation))
    _set_time(operations, request)
    operations.account = account
    account.start()
    return _told(operations)


def _set_time(operations: Operations, request: dict[str, Any]) -> None:
    wanted = request.get("lock_after")
    if isinstance(wanted, int | float) and wanted > 0:
        operations.lock_after = float(wanted)


def _told(operations: Operations) -> dict[str, Any]:
    settings, account = read_settings(), operations.unlocked_account()
    return {
        "email": settings["email"],
        "url": settings["url"],
        "items": len(account.catalog.entries()),
        "lockAfter": operations.lock_after,
    }


def _progress(conversation: Conversation) -> Callable[[Progress], None]:
    return lambda made: conversation.progress(made.phase, made.done, made.total)


def _logout(operations: Operations, request: dict[str, Any], _: Conversation) -> Any:
    """End the session on the server, and delete the replica. Changes that were not sent stop it, unless forced."""
    account = operations.unlocked_account()
    pending = account.replica.pending
    if pending and not request.get("force"):
        raise Failed(
            "unsent", f"{pending} changes were not sent to the server; run strongroom sync first, or use --force."
        )
    ended = True
    try:
        account.client.logout(everywhere=bool(request.get("everywhere")))
    except Unavailable:
        if not request.get("force"):
            raise
        ended = False
    operations.account = None
    account.close()
    remove_everything()
    return {"ended": ended}


OPERATIONS: dict[str, Operation] = {
    "status": _status,
    "login": _login,
    "login_with_passkey": _login_with_passkey,
    "adopt": _adopt,
    "recover": _recover,
    "register": _register,
    "unlock": _unlock,
    "logout": _logout,
}
