"""The operations that commands ask the agent for. Each takes the members of its request, and gives a result as JSON."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from strongroom.agent import paths
from strongroom.agent.protocol import PROTOCOL, Failed

if TYPE_CHECKING:
    from strongroom.agent.account import Account
    from strongroom.agent.conversation import Conversation
    from strongroom.agent.log import Log
    from strongroom.errors import Refusal

# What never waits for a server, nor for a password to be derived. `get` must not wait behind a sync.
LOCAL: Final = frozenset(
    {"status", "items", "read", "get", "find", "item", "add", "replace", "totp", "conflicts", "resolve"}
)
# What SQLite says of the disk that the copy of the account is on.
_DISK: Final = {
    "FullError": "the disk is full",
    "ReadOnlyError": "the disk is read-only",
    "IOError": "the disk is full, or has a fault",
}
_WITHOUT_KEYS: Final = frozenset({"status", "login", "login_with_passkey", "register", "adopt", "recover", "unlock"})
_FREE: Final = "What was stored is still there; free some space, and run this again."
_UNKNOWN: Final = "The agent does not know this operation."
LOCK_AFTER: Final = 15 * 60  # seconds without use


class Operations:
    """All operations, and the account that they work on once it is unlocked."""

    def __init__(self, log: Log, table: Callable[[], dict[str, Operation]]) -> None:
        self.log = log
        self._table = table
        self.account: Account | None = None
        self.lock_after: float = LOCK_AFTER
        self.opening = threading.Lock()  # one login or unlock at a time
        self._used = _now()
        self._running = 0
        self._counting = threading.Lock()

    @property
    def unlocked(self) -> bool:
        """Whether there are keys, or somebody is about to open them."""
        return self.account is not None or self._running > 0

    def idle_for_too_long(self) -> bool:
        """Whether nobody has used the keys for so long that they are to be forgotten."""
        return self.account is not None and self._running == 0 and _now() - self._used > self.lock_after

    def find(self, request: dict[str, Any]) -> str:
        """The name of the operation that a request is for."""
        operation = request.get("operation")
        if operation == "lock":  # by a command of any release
            return "lock"
        if request.get("protocol") != PROTOCOL:
            raise Failed("protocol", "The agent is of another release; run: strongroom lock, and then this again.")
        if not isinstance(operation, str):
            raise Failed("invalid", _UNKNOWN)
        return operation

    def run(self, operation: str, request: dict[str, Any], conversation: Conversation) -> str | None:
        """Run an operation and reply; the reason to end the agent after it, if it is one."""
        from strongroom.errors import Refusal

        self._count(1)
        try:
            result = self._known(operation)(self, request, conversation)
        except Failed as failed:
            conversation.fail(failed)
        except Refusal as refusal:
            self.log.write(f"{operation}: {refusal.code}")
            conversation.fail(_own_file(refusal) or Failed(refusal.code, str(refusal), _plain(refusal.details)))
        except ModuleNotFoundError as error:  # its message says what to install
            conversation.fail(Failed("not_installed", str(error)))
        except OSError as error:
            what = f"The file {error.filename}" if isinstance(error.filename, str) else "A file"
            conversation.fail(paths.unusable(f"{what} cannot be used", error))
        except Exception as error:  # noqa: BLE001 - its text may hold what was asked for, so only its kind is told
            kind = type(error).__name__
            self.log.write(f"{operation}: {kind}")
            conversation.fail(
                Failed("file", _with_advice(f"The copy of the account cannot be written: {_DISK[kind]}."))
                if kind in _DISK
                else Failed("internal_error", f"The agent has a fault of its own ({kind}).")
            )
        else:
            conversation.reply(result)
        finally:
            self._count(-1)
            if operation != "status":
                self._used = _now()
        return "logged out" if operation == "logout" and self.account is None else None

    def _known(self, operation: str) -> Operation:
        """An operation, if there is one of this name, and keys for it."""
        found = self._table().get(operation)  # the first time, this loads the client
        if found is None:
            raise Failed("invalid", _UNKNOWN)
        if operation not in _WITHOUT_KEYS:
            self.unlocked_account()
        return found

    def _count(self, change: int) -> None:
        with self._counting:
            self._running += change

    def unlocked_account(self) -> Account:
        """The account; locked where there is none."""
        if self.account is None:
            raise Failed("locked", "strongroom is locked; run: strongroom unlock")
        return self.account

    def close(self) -> None:
        """Forget all keys. Requests that wait for a thread find it locked."""
        account, self.account = self.account, None
        if account is not None:
            account.close()

    def __repr__(self) -> str:
        return "Operations(...)"


Operation: TypeAlias = Callable[[Operations, dict[str, Any], "Conversation"], Any]


def member(request: dict[str, Any], name: str, default: str | None = None) -> str:
    """A text of a request."""
    found = request.get(name, default)
    if not isinstance(found, str):
        raise Failed("invalid", f"The member {name} of the request must be text.")
    return found


def _now() -> float:
    """Seconds, those included in which the machine was asleep."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _own_file(refusal: Refusal) -> Failed | None:
    """The failure to use the replica or the saved session, whose paths no person has given; None for all else."""
    fields = refusal.details.get("fields") if isinstance(refusal.details, dict) else None
    if not isinstance(fields, dict) or [*fields] != ["path"]:
        return None
    return Failed("file", _with_advice(f"The copy of the account in {paths.home()} {fields['path']}."))


def _with_advice(sentence: str) -> str:
    """A sentence about a file, with what to do where the disk is full."""
    is_full = "the disk is full" in sentence or os.strerror(errno.ENOSPC) in sentence
    return f"{sentence} {_FREE}" if is_full else sentence


def _plain(details: Any) -> Any:
    """Details of a refusal that may be shown: a ticket is a secret."""
    if not isinstance(details, dict):
        return None
    return {name: value for name, value in details.items() if name not in {"ticket", "expiresAt"}}
