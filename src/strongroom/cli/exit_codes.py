"""The exit codes of people's commands. They are stable: docs/command-line.md has the table."""

from __future__ import annotations

DONE, FAILED, WRONG_USE, NOT_FOUND, NOT_CONFIRMED = 0, 1, 2, 3, 4
LOCKED, REFUSED, AMBIGUOUS, UNREACHABLE, CONFLICT = 5, 6, 7, 8, 9

_BY_CODE = {
    "locked": LOCKED,
    "agent_ended": LOCKED,
    "not_logged_in": LOCKED,
    "no_terminal": LOCKED,
    "invalid": WRONG_USE,
    "invalid_reference": WRONG_USE,
    "invalid_totp": WRONG_USE,
    "validation_error": WRONG_USE,
    "file_refused": WRONG_USE,
    "password_needed": REFUSED,
    "not_confirmed": NOT_CONFIRMED,
    "ambiguous_name": AMBIGUOUS,
    "unreachable": UNREACHABLE,
    "unavailable": UNREACHABLE,
    "wrong_server": UNREACHABLE,
    "document_conflict": CONFLICT,
    "vault_conflict": CONFLICT,
    "keyring_conflict": CONFLICT,
    "unsent": CONFLICT,
    "other_account": CONFLICT,
    "invalid_credentials": REFUSED,
    "invalid_refresh_token": REFUSED,
    "second_factor_required": REFUSED,
    "invalid_second_factor": REFUSED,
    "invalid_passkey": REFUSED,
    "insufficient_scope": REFUSED,
    "account_disabled": REFUSED,
    "unauthorized": REFUSED,
    "signups_closed": REFUSED,
    "invalid_invitation": REFUSED,
    "rate_limited": REFUSED,
}


def exit_code(code: str) -> int:
    """The exit code for what failed: for a code of the agent, the client or the server."""
    return _BY_CODE.get(code, NOT_FOUND if code.endswith("not_found") else FAILED)
