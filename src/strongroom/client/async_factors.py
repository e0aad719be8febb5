"""The second factor of an account, for asynchronous clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strongroom.client.async_iterators import AsyncPart
from strongroom.client.format.encoding import checked_secret
from strongroom.client.operations import second_factors
from strongroom.client.operations.factors import AsyncCode, FactorSource, checked_code

if TYPE_CHECKING:
    from strongroom.model import SecondFactors
    from strongroom.wire.responses import Enrolment


class AsyncSecondFactor(AsyncPart):
    """One-time codes (TOTP) as the second factor of the account, and the recovery codes that replace a lost phone."""

    async def status(self) -> SecondFactors:
        """Since when the account has one-time codes, and how many recovery codes are left. It is the server's word."""
        return await self._run(second_factors.status(self._core))

    async def enrol(self, password: str, *, code: AsyncCode | None = None) -> Enrolment:
        """Begin the enrolment of one-time codes: a secret for an authenticator app, also as a URI for a QR code.

        Nothing changes until `confirm`. If the account has a second factor already, `code` is that of before; the new
        secret then replaces the one of before.
        """
        password, code = checked_secret(password, "password"), checked_code(code)
        return await self._run(second_factors.enrol(self._core, password, FactorSource(code)))

    async def confirm(self, code: str) -> list[str]:
        """Confirm the enrolment by the app's first code. From now on a login asks for one; open sessions stay open.

        Returns ten recovery codes to print and keep, each good once in the place of a code. They are shown only here:
        if the response is lost, call `new_recovery_codes`.
        """
        code = checked_secret(code, "code")
        return await self._run(second_factors.confirm(self._core, code))

    async def disable(self, password: str, *, code: AsyncCode | None = None) -> None:
        """Remove the one-time codes. If there is no other second factor, the password alone logs in again."""
        password, code = checked_secret(password, "password"), checked_code(code)
        await self._run(second_factors.disable(self._core, password, FactorSource(code)))

    async def new_recovery_codes(self, password: str, *, code: AsyncCode | None = None) -> list[str]:
        """Ten new recovery codes. Those of before are good no more."""
        password, code = checked_secret(password, "password"), checked_code(code)
        return await self._run(second_factors.new_recovery_codes(self._core, password, FactorSource(code)))

    def __repr__(self) -> str:
        return "SecondFactor(...)"
