# Generated from async_factors.py by `make generate`. Do not edit.
"""The second factor of an account, for blocking clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.client.format.encoding import checked_secret
from strongroom.client.iterators import Part
from strongroom.client.operations import second_factors
from strongroom.client.operations.factors import Code, FactorSource, checked_code

if TYPE_CHECKING:
    from strongroom.model import SecondFactors
    from strongroom.wire.responses import Enrolment


class SecondFactor(Part):
    """One-time codes (TOTP) as the second factor of the account, and the recovery codes that replace a lost phone."""

    def status(self) -> SecondFactors:
        """Since when the account has one-time codes, and how many recovery codes are left. It is the server's word."""
        return self._run(second_factors.status(self._core))

    def enrol(self, password: str, *, code: Code | None = None) -> Enrolment:
        """Begin the enrolment of one-time codes: a secret for an authenticator app, also as a URI for a QR code.

        Nothing changes until `confirm`. If the account has a second factor already, `code` is that of before; the new
        secret then replaces the one of before.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return self._run(second_factors.enrol(self._core, password, FactorSource(code)))

    def confirm(self, code: str) -> list[str]:
        """Confirm the enrolment by the app's first code. From now on a login asks for one; open sessions stay open.

        Returns ten recovery codes to print and keep, each good once in the place of a code. They are shown only here:
        if the response is lost, call `new_recovery_codes`.
        """
        code = checked_secret(code, "code")
        return self._run(second_factors.confirm(self._core, code))

    def disable(self, password: str, *, code: Code | None = None) -> None:
        """Remove the one-time codes. If there is no other second factor, the password alone logs in again."""
        password, code = checked_secret(password, "password"), checked_code(code)
        self._run(second_factors.disable(self._core, password, FactorSource(code)))

    def new_recovery_codes(self, password: str, *, code: Code | None = None) -> list[str]:
        """Ten new recovery codes. Those of before are good no more."""
        password, code = checked_secret(password, "password"), checked_code(code)
        return self._run(second_factors.new_recovery_codes(self._core, password, FactorSource(code)))

    def __repr__(self) -> str:
        return "SecondFactor(...)"
