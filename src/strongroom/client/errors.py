"""Exceptions of the client, in addition to those of the server.

    Refusal
    ├── Tampered        tampered           what was received is not what a key holder made for this place
    ├── RolledBack      rolled_back        it was true once, and this device has seen newer
    │   ├── UndecidedConflicts             undecided_conflicts        a restore, while conflicts of the one before wait
    │   └── CredentialsRolledBack          credentials_rolled_back    the same of the password or the recovery key
    ├── WeakParameters  weak_parameters    key-derivation parameters outside the format's limits, or below those seen
    ├── Locked          locked             there is no key here for that
    ├── HistoryLeftOut  history_left_out   an account was moved, and the new server keeps less history than the old one
    ├── Unsupported     unsupported        the account uses something that this client does not know
    ├── CeremonyFailed  ceremony_failed    an authenticator failed, is not there, or was not touched
    ├── ReadOnlyReplica read_only_replica  another process writes to the replica
    ├── TypeMismatch    type_mismatch      a document is genuine, and its value is not of the type that was asked for
    ├── WrongServer     wrong_server       what answers at this address is not strongroom
    └── Unavailable
        └── Unreachable unreachable        there is no response; `reason` says why

One class stands for every way in which a check can fail: which check it was would only help an attacker.
"""

from __future__ import annotations

from typing import Any

from strongroom.errors import Refusal, Unavailable


class Tampered(Refusal):
    """What was received is not what a key holder made for this place."""

    code = "tampered"
    sentence = "What the server sent was not made with your keys for this place; it was changed, moved or forged."


class RolledBack(Refusal):
    """What was received is older than what this device has seen."""

    code = "rolled_back"
    sentence = "The server sent something older than what this device has seen already."


class CredentialsRolledBack(RolledBack):
    """The server knows a password or a recovery key that was replaced: it was restored from an older backup."""

    code = "credentials_rolled_back"
    sentence = (
        "The server was restored from a backup that is older than your last change of password or recovery key. "
        "Nothing was written. Open your replica with `unlock`, and call `change_password` with the password of that "
        "time and a new one; then make a new recovery key."
    )


class UndecidedConflicts(RolledBack):
    """The server was restored again while conflicts of before wait: what they keep must not be compared away."""

    code = "undecided_conflicts"
    sentence = (
        "The server was restored again, and conflicts since the restore before wait in this vault. Decide them first; "
        "until then the vault is not synced, and nothing of it is lost."
    )


class WeakParameters(Refusal):
    """The key-derivation parameters are outside what the format allows, or below what this device has seen."""

    code = "weak_parameters"
    sentence = "The server asked for key-derivation parameters that are not allowed; the password was not used."


class Locked(Refusal):
    """There is no key for this here."""

    code = "locked"
    sentence = "There is no key for this here; log in, or use a token that carries the key."


class Unsupported(Refusal):
    """The account uses something that this client does not know."""

    code = "unsupported"
    sentence = "This account uses something that this client does not know; update the client."


class CeremonyFailed(Refusal):
    """A passkey was not made or used: the authenticator failed, is not there, or nobody touched it in time."""

    code = "ceremony_failed"
    sentence = "The authenticator did not do what was asked; try again."


class ReadOnlyReplica(Refusal):
    """This process only reads the replica: another one writes to it, or it was opened for reading only."""

    code = "read_only_replica"
    sentence = (
        "Another process, or another client in this one, has this replica open and writes to it; here it can only be "
        "read. Write there, or close it there and write here again."
    )


class TypeMismatch(Refusal):
    """A document is genuine, and its value does not fit the type of its collection. `Document.raw` has the value.

    `uid` is the document's, `problem` says what does not fit; neither shows a part of the value. Of a blob,
    `uid` is the vault's.
    """

    code = "type_mismatch"
    sentence = "The value of a document does not fit the type that was asked for."

    def __init__(self, uid: str, type_name: str, problem: str, *, kind: str = "document") -> None:
        self.uid = uid
        self.problem = problem
        super().__init__(
            f"The {kind} {uid} is genuine, but its value does not fit the type {type_name}: {problem}. "
            "Its attribute `raw` has the value as it is stored.",
            details={"uid": uid, "type": type_name, "problem": problem},
        )


class WrongServer(Refusal):
    """What answers at this address is not strongroom: another program, a proxy's page, a wrong path of the URL."""

    code = "wrong_server"
    sentence = "What answers at this address is not a strongroom server; check the URL."


class Unreachable(Unavailable):
    """There is no response. `reason` is a word for programs, like `dns`, `refused` or `certificate_expired`."""

    code = "unreachable"
    sentence = "The server cannot be reached, or did not answer."

    def __init__(
        self,
        message: str | None = None,
        *,
        reason: str = "no_response",
        details: dict[str, Any] | None = None,
        retry_after: int = 1,
    ) -> None:
        super().__init__(retry_after, message)
        self.reason = reason
        self.details = {"reason": reason, **(details or {})}


class HistoryLeftOut(Refusal):
    """An account was moved, and the new server has left out history or trash; `details` says how much."""

    code = "history_left_out"
    sentence = (
        "Everything of the account was moved and verified but a part of its history or trash: the new server keeps "
        "less of it. Call import_account again with allow_less_history=True to accept that. Or let the server keep "
        "more, delete the account there, and import it again."
    )
